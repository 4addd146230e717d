/* SPDX-License-Identifier: Apache-2.0 */
/* core/hint.c - see hint.h */
#include "core/hint.h"

#include "base/path.h"
#include "policy/rules.h"

/* Text as C string, bounded; NULs inside become spaces so that the search sees all of it. */
static char *as_text(const char *tail, size_t n)
{
	char *s = mem_strn(tail, n);

	for (size_t i = 0; i < n; i++)
		if (s[i] == '\0')
			s[i] = ' ';
	return s;
}

static bool says(const char *text, const char *const *phrases)
{
	for (; *phrases; phrases++)
		if (strstr(text, *phrases))
			return true;
	return false;
}

/* A name of the workspace that the plan covers and the text mentions. */
static const struct mount *mentioned(const struct plan *p, const char *text, enum mount_kind kind)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind == kind && path_is_beneath(m->dst, p->workspace) &&
		    strstr(text, path_below(m->dst, p->workspace)))
			return m;
	}
	return NULL;
}

static bool cover_hint(const struct mount *m, const char *flag, const char *what, struct buf *out)
{
	/* Parts of a repository are protected by the entry for the whole. */
	const char *rule = str_eq(m->why, "git") ? ".git" : m->why;

	buf_printf(out, "'%s' is %s here (rule %s); --%s '!%s' would open it", path_name(m->dst),
		   what, rule, flag, rule);
	return true;
}

static bool is_shown(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (path_is_beneath(path, p->mounts[i].dst))
			return true;
	return false;
}

/* The last absolute path in the text that satisfies `want`, copied. */
static char *last_path(const struct plan *p, const char *text, bool (*exists)(const char *path))
{
	char *found = NULL;

	for (const char *s = text; (s = strchr(s, '/')) != NULL;) {
		size_t n = strcspn(s, " \t\r\n'\"`:;,()<>|");
		_free_ char *word = mem_strn(s, n);
		bool is_start = s == text || strchr(" \t\r\n'\"`:=(<", s[-1]) != NULL;

		if (is_start && path_is_clean(word) && n > 1 && !is_shown(p, word) &&
		    exists(word)) {
			free(found);
			found = take(word);
		}
		s += n ? n : 1;
	}
	return found;
}

static bool path_hint(const struct plan *p, const char *text, bool (*exists)(const char *path),
		      const char *flag, struct buf *out)
{
	_free_ char *path = last_path(p, text, exists);

	if (path == NULL)
		return false;
	buf_printf(out, "'%s' exists outside and is not shown inside; --%s '%s' would show it",
		   path, flag, path);
	return true;
}

static bool limit_hint(const struct plan *p, const char *text, struct buf *out)
{
	static const struct {
		enum limit_id id;
		const char *flag;
		const char *phrases[4];
	} table[] = {
		{ LIMIT_PIDS,
		  "pids",
		  { "Cannot fork", "Resource temporarily unavailable", "EAGAIN", NULL } },
		{ LIMIT_DISK, "disk", { "No space left on device", "ENOSPC", NULL } },
		{ LIMIT_OPEN_FILES, "open-files", { "Too many open files", "EMFILE", NULL } },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!p->limits[table[i].id].is_set || !says(text, table[i].phrases))
			continue;
		buf_printf(out, "the limit %s may be in its way (", limit_name(table[i].id));
		limit_format(table[i].id, p->limits[table[i].id].max, out);
		buf_printf(out, "); --%s raises it", table[i].flag);
		return true;
	}
	return false;
}

/* The kernel copies a file into the layer that is written in with its owner and group, and takes only those that are known
 * inside. */
static bool layer_hint(const struct plan *p, const char *text, struct buf *out)
{
	static const char *const foreign[] = { "Value too large for defined data type", "EOVERFLOW",
					       NULL };

	if (!says(text, foreign))
		return false;
	for (size_t i = 0; i < p->n_mounts; i++) {
		if (p->mounts[i].kind != MOUNT_OVERLAY || !str_eq(p->mounts[i].dst, p->workspace))
			continue;
		buf_puts(out, "a file of another owner or group than yours cannot be changed under "
			      "review; 'chgrp' on the host makes it yours, and a sandbox that "
			      "works "
			      "in place can write it");
		return true;
	}
	return false;
}

void hint_no_network(const char *name, struct buf *out)
{
	const char *group = net_group_of(name);

	buf_puts(out, HINT_WORD "'");
	buf_esc(out, name, strlen(name));
	buf_puts(out, "' was looked up, and this sandbox has no network; --allow ");
	buf_esc(out, group ? group : name, strlen(group ? group : name));
	buf_puts(out, " lets it reach that host");
}

bool hint_find(const struct plan *p, const char *tail, size_t n, bool (*exists)(const char *path),
	       struct buf *out)
{
	static const char *const network[] = { "Could not resolve host",
					       "name resolution",
					       "Name or service not known",
					       "Network is unreachable",
					       "ENOTFOUND",
					       "EAI_AGAIN",
					       "ENETUNREACH",
					       "network is unreachable",
					       NULL };
	static const char *const read_only[] = { "Read-only file system", "EROFS", NULL };
	static const char *const denied[] = { "Permission denied", "EACCES", "permission denied",
					      NULL };
	static const char *const busy[] = { "Device or resource busy", "EBUSY", NULL };
	static const char *const missing[] = { "No such file or directory", "not found", "ENOENT",
					       NULL };
	/* Installing into the host's own system: sudo, apt, dpkg, npm -g, pip. */
	static const char *const install[] = { "are you root?",
					       "requires superuser privilege",
					       "effective uid is not 0",
					       "no new privileges",
					       "sudo: /etc/sudo.conf",
					       "/usr/lib/node_modules",
					       "/usr/local/lib/node_modules",
					       NULL };
	_free_ char *text = as_text(tail, n);
	const struct mount *m = NULL;

	if (says(text, install)) {
		buf_puts(out, "the host's own /usr is read-only here; a sandbox of a template has "
			      "one that "
			      "it can write: 'vitrine template agent', then 'vitrine run --name "
			      "NAME --template "
			      "agent'");
		return true;
	}

	if (says(text, network)) {
		buf_puts(out, p->net.has_gate ? "only hosts that a rule allows can be reached; "
						"--allow HOST adds one"
					      : "this sandbox has no network; --allow HOST lets it "
						"reach one");
		return true;
	}
	if (says(text, read_only) || says(text, denied) || says(text, busy)) {
		m = mentioned(p, text, MOUNT_PROTECT);
		if (m && !says(text, denied))
			return cover_hint(m, "protect", "protected", out);
		m = mentioned(p, text, MOUNT_HIDE);
		if (m)
			return cover_hint(m, "hide", "hidden", out);
		m = mentioned(p, text, MOUNT_PIN);
		if (m && says(text, busy)) {
			buf_printf(out,
				   "'%s' cannot be renamed here: something in it is hidden or "
				   "protected",
				   path_name(m->dst));
			return true;
		}
	}
	if (says(text, read_only) && path_hint(p, text, exists, "write", out))
		return true;
	if (says(text, missing) && path_hint(p, text, exists, "read", out))
		return true;
	return layer_hint(p, text, out) || limit_hint(p, text, out);
}
