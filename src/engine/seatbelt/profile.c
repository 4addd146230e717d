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

/* To get to a place a program asks about every directory on the way, and learns nothing but that it is one. */
static int put_way(struct buf *out, const char *path, struct err *e)
{
	_free_ char *at = path_parent(path);
	int r = 0;

	while (r == 0 && !str_eq(at, "/")) {
		char *up = path_parent(at);

		r = put_rule(out, "allow", "file-read-metadata", at, false, e);
		free(at);
		at = up;
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
		      "(allow file-read-metadata (literal \"/\"))\n(allow pseudo-tty)\n"
		      "(allow ipc-posix-sem)\n"
		      "(allow mach-lookup (global-name "
		      "\"com.apple.system.opendirectoryd.libinfo\"))\n"
		      "(allow file-read* file-write* file-ioctl (regex #\"^/dev/ttys[0-9]+$\"))\n");
	for (size_t i = 0; i < ARRAY_LEN(system); i++)
		(void)put_rule(out, "allow", "file-read*", system[i], true, e);
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		(void)put_rule(out, "allow", "file-read* file-write-data file-ioctl", devices[i],
			       false, e);
	buf_puts(out, "\n; its private home and temporary files\n");
	r = put_rule(out, "allow", "file-read* file-write*", private_dir, true, e);
	if (r == 0)
		r = put_way(out, private_dir, e);
	if (r == 0)
		r = put_way(out, p->workspace, e);
	if (r == 0)
		r = put_shown(out, p, e);
	if (r == 0)
		r = put_covers(out, p, e);
	return r;
}

/* ---- to run it ---- */

void seatbelt_args(const char *profile, char *const *argv, struct args *out)
{
	args_put(out, "/usr/bin/sandbox-exec", "-p", profile, "--", NULL);
	for (; *argv; argv++)
		args_add(out, *argv);
}
