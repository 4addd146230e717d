/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-sudo.c - vitrine-sudo: sudo inside a sandbox whose template has ids of its own
 *
 * For: making its caller root of the sandbox's user namespace. It is copied into such templates and has the set-user-id
 *     bit only there; run anywhere else it says that there is no root. There are no passwords inside and no rules here,
 *     because outside that root is an id that owns nothing: the walls decide what it may do.
 * Links: libc alone, statically.
 * Talks to: nobody. It reads /etc/passwd and executes the command.
 * Must not: pass on what a root must not take from another user: where programs and libraries are searched, HOME.
 * Promises: none. It inherits the walls of the sandbox.
 *
 * Of sudo's options those are known that scripts use.
 */
#include <grp.h>
#include <unistd.h>

#include "base/io.h"
#include "base/passwd.h"

#define LINE_MAX_ 1024

struct who {
	uid_t uid;
	gid_t gid;
	char name[64], home[256], shell[256];
};

static _Noreturn void stop(const char *what)
{
	(void)fprintf(stderr, "sudo: %s\n", what);
	_exit(1);
}

/* A line of passwd that is this account's, by name or, "#5", by number. */
static bool take_line(char *line, const char *want, struct who *ret)
{
	struct passwd_line l;
	char number[16];

	if (!passwd_parse(line, &l))
		return false;
	(void)snprintf(number, sizeof(number), "#%u", l.uid);
	if (!str_eq(want[0] == '#' ? number : l.name, want))
		return false;
	*ret = (struct who){ .uid = l.uid, .gid = l.gid };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", l.name);
	(void)snprintf(ret->home, sizeof(ret->home), "%s", l.home);
	(void)snprintf(ret->shell, sizeof(ret->shell), "%s", l.shell[0] ? l.shell : "/bin/sh");
	return true;
}

static bool find_who(const char *want, struct who *ret)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);
	struct err ignored;
	char *next;

	if (io_read_file("/etc/passwd", &b, &ignored) < 0 || b.n == 0)
		return false;
	for (char *line = b.p; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (take_line(line, want, ret))
			return true;
	}
	return false;
}

static void become(const struct who *w)
{
	if (setgroups(1, &w->gid) < 0 || setresgid(w->gid, w->gid, w->gid) < 0 ||
	    setresuid(w->uid, w->uid, w->uid) < 0)
		stop("the ids cannot be taken");
}

static void set_env(const struct who *w)
{
	static const char *const gone[] = {
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV",
		"PERL5LIB",   "PYTHONPATH",      "PERL5OPT", "IFS",      "CDPATH"
	};

	for (size_t i = 0; i < ARRAY_LEN(gone); i++)
		(void)unsetenv(gone[i]);
	if (setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0 ||
	    setenv("HOME", w->home, 1) < 0 || setenv("USER", w->name, 1) < 0 ||
	    setenv("LOGNAME", w->name, 1) < 0)
		stop("out of memory");
}

struct options {
	const char *user;
	bool is_shell, is_check;
};

/* 1: an option; 0: the command begins here. */
static int option(char **argv, int *at, struct options *o)
{
	const char *a = argv[*at];

	if (a[0] != '-' || str_eq(a, "-"))
		return 0;
	if (str_eq(a, "--")) {
		++*at;
		return 0;
	}
	if (str_eq(a, "-u") || str_eq(a, "--user") || str_eq(a, "-g") || str_eq(a, "-p")) {
		if (argv[*at + 1] == NULL)
			stop("an option lacks its value");
		if (a[1] == 'u' || a[1] == '-')
			o->user = argv[*at + 1];
		*at += 2;
		return 1;
	}
	if (str_eq(a, "-s") || str_eq(a, "-i") || str_eq(a, "--shell") || str_eq(a, "--login"))
		o->is_shell = true;
	else if (str_eq(a, "-v") || str_eq(a, "-l") || str_eq(a, "-k") || str_eq(a, "-K"))
		o->is_check = true;
	else if (str_starts(a, "--") ? !str_starts(a, "--preserve-env") && !str_eq(a, "--non-"
										      "interactive")
				     : strspn(a + 1, "nEHSAb") != strlen(a + 1))
		stop("an option that this sudo does not know; inside a sandbox it takes -u USER, "
		     "-E, -H, -n, -s, -i");
	++*at;
	return 1;
}

int main(int argc, char **argv)
{
	struct options o = { .user = "root" };
	struct who w;
	int at = 1;

	while (at < argc && option(argv, &at, &o))
		;
	while (at < argc && strchr(argv[at], '=') &&
	       argv[at][0] != '/') /* NAME=VALUE before the command */
		if (putenv(argv[at++]) != 0)
			stop("out of memory");
	if (geteuid() != 0)
		stop("there is no root in this sandbox; see 'vitrine template' and --sudo");
	if (!find_who(o.user, &w))
		stop("no such user");
	if (o.is_check && at == argc)
		return 0;
	if (at == argc && !o.is_shell)
		stop("which command?");
	become(&w);
	set_env(&w);
	if (at == argc)
		(void)execl(w.shell, w.shell, (char *)NULL);
	else if (o.is_shell && argc - at == 1)
		(void)execl(w.shell, w.shell, "-c", argv[at], (char *)NULL);
	else
		(void)execvp(argv[at], argv + at);
	(void)fprintf(stderr, "sudo: %s: %s\n", at < argc ? argv[at] : w.shell, strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
