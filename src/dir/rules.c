/* SPDX-License-Identifier: Apache-2.0 */
/* dir/rules.c - see rules.h
 *
 * Three directories of a git dir hold names that people choose (branches, logs of branches) or that are hashes: refs,
 * logs and objects. They are attached over the served directory and can come to light when the host removes them, so
 * the rules by name do not hold in them, and nothing can be moved out of them: a branch may be called "config".
 *
 * A lock file of the host's is the host's next configuration: whoever writes to it, replaces it or takes its name
 * writes the configuration. The same is true of the files that editors and sed write before they rename them. So
 * every name with "config" in it, and sed's, is a lock: the inside gets at it only if it made the file itself, which
 * O_EXCL guarantees that the host did not.
 */
#include "dir/rules.h"

#include "base/path.h"
#include "base/sabotage.h"
#include "base/str.h"
#include "view/gitcfg.h"
#include "view/gitcfg_redact.h"
#include "view/known.h"

#define GIT_DIR ".git"

void dir_rules_add(struct dir_rules *r, enum dir_kind kind, const char *rel)
{
	vec_reserve(r->v, r->n, r->cap);
	r->v[r->n++] = (struct dir_rule){ .rel = mem_str(rel), .kind = kind };
}

void dir_rules_done(struct dir_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].rel);
	free(r->v);
	free(r->workspace);
	*r = (struct dir_rules){ 0 };
}

/* The next component; *at is behind it. Empty: there is none. */
static struct str next_part(const char **at)
{
	struct str s = { .p = *at, .n = strcspn(*at, "/") };

	*at += s.n + ((*at)[s.n] == '/');
	return s;
}

static bool is_branches(struct str s)
{
	return str_is(s, "refs") || str_is(s, "logs") || str_is(s, "objects");
}

/* At or below one of the three directories, of this git dir or of a linked worktree's. Names of submodules can have
 * any number of components, one of which may be "refs": there the rules hold everywhere. */
static bool is_free(const char *rel)
{
	struct str part = next_part(&rel);

	if (str_is(part, "worktrees")) {
		(void)next_part(&rel);
		part = next_part(&rel);
	}
	return is_branches(part);
}

static bool has_word(struct str s, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= s.n; i++)
		if (strncasecmp(s.p + i, word, n) == 0)
			return true;
	return false;
}

static bool is_lock_name(struct str s)
{
	return has_word(s, "config") || (s.n > 3 && strncasecmp(s.p, "sed", 3) == 0);
}

bool dir_is_lock(const char *rel)
{
	struct str name = str_of(path_name(rel));

	return str_is_nocase(name, "config.lock") || str_is_nocase(name, "config.worktree.lock");
}

static enum dir_kind kind_of_name(const char *rel)
{
	while (*rel) {
		struct str part = next_part(&rel);
		bool is_last = *rel == '\0';

		if (part.n >= sizeof(DIR_OWN_NAME) - 1 &&
		    strncasecmp(part.p, DIR_OWN_NAME, sizeof(DIR_OWN_NAME) - 1) == 0)
			return DIR_OWN;
		if (str_is_nocase(part, "hooks"))
			return DIR_READONLY;
		if (!is_last)
			continue;
		if (str_is_nocase(part, "config") || str_is_nocase(part, "config.worktree"))
			return DIR_CONFIG;
		if (is_lock_name(part))
			return DIR_LOCK;
	}
	return DIR_PLAIN;
}

static bool is_own_name(const char *rel)
{
	return has_word(str_of(rel), DIR_OWN_NAME);
}

/* The strictest thing that the plan says of rel or of a directory above it. A configuration is judged, whatever the
 * plan would have masked it with. */
static enum dir_kind kind_of_plan(const struct dir_rules *r, const char *rel)
{
	enum dir_kind kind = DIR_PLAIN;

	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].kind > kind && path_is_beneath(rel, r->v[i].rel))
			kind = r->v[i].kind;
	return kind;
}

enum dir_kind dir_kind_of(const struct dir_rules *r, const char *rel)
{
	enum dir_kind kind;

	if (is_own_name(rel))
		return DIR_OWN;
	if (is_free(rel))
		return kind_of_plan(r, rel);
	kind = kind_of_name(rel);
	if (kind == DIR_CONFIG || kind == DIR_READONLY)
		return kind;
	return kind_of_plan(r, rel) != DIR_PLAIN ? kind_of_plan(r, rel) : kind;
}

/* Something that the plan names lies at or below: neither may be taken away from its name. */
static bool is_pinned(const struct dir_rules *r, const char *rel)
{
	for (size_t i = 0; i < r->n; i++)
		if (path_is_beneath(r->v[i].rel, rel))
			return true;
	return false;
}

int dir_may(const struct dir_rules *r, const char *rel, enum dir_act act)
{
	if (sabotaged("served"))
		return DIR_YES;
	switch (dir_kind_of(r, rel)) {
	case DIR_PLAIN:
		/* Git needs no links in a git dir; those that lead out of it are one of the ways to a foreign one. */
		if (act == DIR_LINK)
			return -EPERM;
		return act == DIR_REMOVE && is_pinned(r, rel) ? -EPERM : DIR_YES;
	case DIR_LOCK:
		if (act == DIR_LINK)
			return -EPERM;
		return act == DIR_CREATE ? DIR_YES : DIR_IF_OWN;
	case DIR_CONFIG:
	case DIR_READONLY:
		return act == DIR_READ ? DIR_YES : -EPERM;
	case DIR_HIDDEN:
		return act == DIR_READ ? -EACCES : -EPERM;
	case DIR_OWN:
		return act == DIR_CREATE || act == DIR_LINK ? -EPERM : -ENOENT;
	case DIR_KIND_COUNT_:
		break;
	}
	return -EPERM;
}

static bool is_lock_of(const char *lock, const char *config)
{
	size_t n = strlen(config);

	return strncmp(lock, config, n) == 0 && str_eq(lock + n, ".lock");
}

int dir_may_move(const struct dir_rules *r, const char *from, const char *to, unsigned flags)
{
	enum dir_kind old = dir_kind_of(r, from), new = dir_kind_of(r, to);

	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if (sabotaged("served"))
		return DIR_MOVE;
	if (is_free(from) != is_free(to))
		return -EXDEV;
	if (new == DIR_CONFIG && old == DIR_LOCK &&is_lock_of(from, to) && flags == 0)
		return DIR_JUDGE;
	if (new != DIR_PLAIN || is_pinned(r, from) || is_pinned(r, to))
		return -EPERM;
	if (old == DIR_LOCK && !(flags & RENAME_EXCHANGE))
		return DIR_MOVE_OWN;
	if (old != DIR_PLAIN)
		return -EPERM;
	return DIR_MOVE;
}

/* ---- a configuration ---- */

struct place {
	const struct dir_rules *r;
	const char *dir; /* of the configuration, below the git dir */
};

/* Of a submodule's work tree: in the workspace and not in its git dir. By the text alone: links on the way are the
 * sweep's business, which looks at the same file from outside. */
static bool is_in_workspace(void *arg, const char *path)
{
	const struct place *at = arg;
	_free_ char *base = mem_fmt("%s/" GIT_DIR "/%s", at->r->workspace, at->dir);
	_free_ char *real = path_join(base, path);
	_free_ char *git = mem_fmt("%s/" GIT_DIR, at->r->workspace);

	return path_is_beneath(real, at->r->workspace) && !path_is_beneath(real, git) &&
	       !str_eq(real, at->r->workspace);
}

static int refuse(struct err *e, const char *rel, const char *why)
{
	return err_set(e, ERR_DENIED, EPERM, GIT_DIR "/%.200s was not changed: %.200s", rel, why);
}

/* A configuration that is not there yet is that of a new submodule or worktree. */
static int judge_new(const struct place *at, const char *rel, const struct dir_text *now,
		     struct err *e)
{
	_free_ char *why = gitcfg_objection(now->p, now->n, at->dir[0] ? is_in_workspace : NULL,
					    (void *)(uintptr_t)at);

	return why ? refuse(e, rel, why) : 0;
}

static int refuse_change(struct err *e, const char *rel, const struct known_text *last,
			 const struct known_text *next, struct place *at)
{
	_free_ char *key = known_difference(last, next, at->dir[0] ? is_in_workspace : NULL, at);
	_free_ char *why = key ? mem_fmt("git config key %s could make git run something; change "
					 "it "
					 "outside the sandbox",
					 key)
			       : mem_str("it cannot be read with certainty");

	return refuse(e, rel, why);
}

int dir_judge(const struct dir_rules *r, const char *rel, const struct dir_text *host,
	      const struct dir_text *now, struct buf *ret, struct err *e)
{
	_free_ char *dir = mem_strn(rel, (size_t)(path_name(rel) - rel));
	struct place at = { .r = r, .dir = dir };
	struct known_text last = { 0 }, next;
	struct err why = ERR_INIT;

	if (dir[0])
		dir[strlen(dir) - 1] = '\0';
	if (now->n && memchr(now->p, '\0', now->n))
		return refuse(e, rel, "it holds a zero byte");
	if (host == NULL) {
		buf_add(ret, now->p, now->n);
		return ret->is_over ? refuse(e, rel, "too large") : judge_new(&at, rel, now, e);
	}
	if (gitcfg_unredact(host->p, host->n, now->p, now->n, ret, &why) < 0 || ret->is_over)
		return refuse(e, rel, why.kind ? why.msg : "too large");
	last = (struct known_text){ host->p, host->n };
	next = (struct known_text){ buf_cstr(ret), ret->n };
	if (!known_is_calm_near(&last, &next, dir[0] ? is_in_workspace : NULL, &at))
		return refuse_change(e, rel, &last, &next, &at);
	return 0;
}
