/* SPDX-License-Identifier: Apache-2.0 */
/* engine/seatbelt/profile.c - a plan as a profile of macOS' sandbox (SBPL)
 *
 * There are no mounts and no namespaces there: the command sees the host's own tree, and the profile says what of it
 * may be read and written. So it is a list of paths, the last rule that matches deciding: all refused; what a program
 * needs to start; what the plan shows, read-only or not; private places by path; and behind them what it hides and
 * protects. No network, no Apple events, no other process' information.
 */
#include "base/path.h"
#include "engine/seatbelt/seatbelt.h"

/* A string of the profile's language: quotes and backslashes are escaped, what cannot be printed is refused. */
static int put_string(struct buf *out, const char *text, struct err *e)
{
	buf_putc(out, '"');
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127)
			return err_set(e, ERR_UNSUPPORTED, EINVAL,
				       "engine 'seatbelt' cannot honour: a path with control "
				       "characters");
		if (*p == '"' || *p == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *p);
	}
	buf_putc(out, '"');
	return 0;
}

static int put_rule(struct buf *out, const char *verdict, const char *what, const char *path,
		    bool is_dir, struct err *e)
{
	int r;

	buf_printf(out, "(%s %s (%s ", verdict, what, is_dir ? "subpath" : "literal");
	r = put_string(out, path, e);
	buf_puts(out, "))\n");
	return r;
}

static bool is_shown(const struct mount *m)
{
	return m->kind == MOUNT_BIND && !str_eq(m->dst, INIT_INSIDE);
}

static int put_shown(struct buf *out, const struct plan *p, struct err *e)
{
	int r = 0;

	buf_puts(out, "\n; what the policy shows\n");
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_dir = m->flags & MOUNT_DIR;

		if (!is_shown(m))
			continue;
		/* A path cannot be shown at another place than its own. */
		if (!str_eq(m->src, m->dst) && !(m->flags & MOUNT_OWN))
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
				       "engine 'seatbelt' cannot honour: '%s' at another place",
				       m->src);
		r = put_rule(out, "allow", "file-read*", m->src, is_dir, e);
		if (r == 0 && !(m->flags & MOUNT_RO))
			r = put_rule(out, "allow", "file-write*", m->src, is_dir, e);
	}
	return r;
}

static int put_covers(struct buf *out, const struct plan *p, struct err *e)
{
	int r = 0;

	buf_puts(out, "\n; what it hides and protects; the last word decides\n");
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_dir = m->flags & MOUNT_DIR;

		if (path_is_beneath(m->dst, "/proc"))
			continue;
		if (m->kind == MOUNT_HIDE)
			r = put_rule(out, "deny", "file-read* file-write*", m->dst, is_dir, e);
		else if (m->kind == MOUNT_PROTECT)
			r = put_rule(out, "deny", "file-write*", m->dst, is_dir, e);
		else if (m->kind == MOUNT_PIN)
			r = put_rule(out, "deny", "file-write-unlink", m->dst, false, e);
	}
	return r;
}

int seatbelt_profile(const struct plan *p, const char *private_dir, struct buf *out, struct err *e)
{
	static const char *const system[] = { "/System",       "/usr",
					      "/bin",          "/sbin",
					      "/Library",      "/private/etc/ssl",
					      "/opt/homebrew", "/private/var/db/dyld" };
	static const char *const devices[] = { "/dev/null",    "/dev/zero", "/dev/random",
					       "/dev/urandom", "/dev/tty",  "/dev/ptmx" };
	int r;

	buf_puts(out, "(version 1)\n(deny default)\n(deny network*)\n(deny appleevent-send)\n"
		      "(deny process-info* (target others))\n(deny signal (target others))\n"
		      "\n; to start a program at all\n"
		      "(allow process-fork)\n(allow process-exec)\n(allow signal (target "
		      "same-sandbox))\n"
		      "(allow process-info* (target same-sandbox))\n(allow sysctl-read)\n"
		      "(allow file-read-metadata (literal \"/\"))\n(allow pseudo-tty)\n");
	for (size_t i = 0; i < ARRAY_LEN(system); i++)
		(void)put_rule(out, "allow", "file-read*", system[i], true, e);
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		(void)put_rule(out, "allow", "file-read* file-write-data file-ioctl", devices[i],
			       false, e);
	buf_puts(out, "\n; its private home and temporary files\n");
	r = put_rule(out, "allow", "file-read* file-write*", private_dir, true, e);
	if (r == 0)
		r = put_shown(out, p, e);
	if (r == 0)
		r = put_covers(out, p, e);
	return r;
}

/* ---- is it one? ---- */

bool seatbelt_is_profile(const char *text)
{
	size_t depth = 0, forms = 0;
	bool in_string = false;

	for (const char *p = text; *p; p++) {
		if (in_string) {
			if (*p == '\\' && p[1])
				p++;
			else if (*p == '"')
				in_string = false;
		} else if (*p == ';' && depth == 0) {
			p += strcspn(p, "\n");
			if (*p == '\0')
				break;
		} else if (*p == '"') {
			in_string = depth > 0;
			if (depth == 0)
				return false;
		} else if (*p == '(') {
			forms += depth++ == 0;
		} else if (*p == ')') {
			if (depth-- == 0)
				return false;
		} else if (depth == 0 && *p != '\n' && *p != ' ') {
			return false;
		}
	}
	return depth == 0 && !in_string && forms > 0 &&
	       str_starts(text, "(version 1)\n(deny default)\n");
}
