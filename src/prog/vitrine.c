/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine.c - vitrine: the command that people type. It finds the verb, calls it, and reports its failure once
 *
 * For: every verb (cli/verbs.c), the keeper of each running sandbox (a fork of this program, keep/) and the native engine.
 * Links: libc alone, statically. Loading a shared library would cost more than the whole start of a sandbox.
 * Talks to: the keeper of a sandbox, over its control socket. The verbs with VERB_STORE and VERB_LOOP are executed by
 *     vitrine-store and vitrine-loop in place of this process; the keeper starts the other programs of this folder.
 * Must not: load a library, and need no other program of this folder for a plain run without a network.
 * Promises: none for the whole program. It runs with the user's rights, and builds the walls for others. Children that
 *     read foreign bytes confine themselves first (keep/refuser.c, engine/native/lock.c).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/program.h"
#include "base/title.h"
#include "cli/cli.h"

/* Whatever we open must not land where the command's stdio will be. */
static void fill_stdio(void)
{
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		/* NOLINTNEXTLINE(android-cloexec-open): they are for the command */
		if (fstat(fd, &st) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(125);
}

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (str_eq(v->name, name))
			return v;
	return NULL;
}

static int unknown_verb(const char *word)
{
	const char *names[64] = { NULL };
	_free_ char *text = NULL;
	const char *near;
	size_t n = 0;

	for (const struct verb *v = verbs; v->name && n < ARRAY_LEN(names) - 1; v++)
		names[n++] = v->name;
	near = cli_nearest(word, names);
	text = near ? mem_fmt("no verb '%.64s'; did you mean '%s'?", word, near)
		    : mem_fmt("no verb and no agent '%.64s'; 'vitrine help' lists the verbs, "
			      "'vitrine agents' the agents",
			      word);
	cli_complain(text);
	return 2;
}

/* First behind the verb, or anywhere before "--" where no command of somebody else's can stand. */
static bool wants_help(const struct verb *v, int argc, char **argv)
{
	int end = v->flags & VERB_ORDER && argc > 2 ? 2 : argc;

	for (int i = 1; i < end && !str_eq(argv[i], "--"); i++)
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h"))
			return true;
	return false;
}

/* argv[0] is the verb. */
static int call(const struct verb *v, int argc, char **argv, struct err *e)
{
	int r = v->flags & VERB_ORDER ? 0 : opts_arrange(v->opts, argc, argv, e);

	if (r < 0)
		return r;
	if (v->flags & VERB_STORE)
		return program_exec("vitrine-store", argv - 1, e);
	if (v->flags & VERB_LOOP)
		return program_exec("vitrine-loop", argv - 1, e);
	return v->fn(argc, argv, e);
}

/* `vitrine claude ...` is `vitrine run claude ...`. */
static int call_agent(int argc, char **argv, struct err *e)
{
	char **v = mem_new((size_t)argc + 2, sizeof(*v));

	v[0] = argv[0];
	v[1] = (char *)(uintptr_t) "run"; /* argv wants char *; nobody writes to it */
	memcpy(v + 2, argv + 1, (size_t)argc * sizeof(*v));
	return call(find_verb("run"), argc, v + 1, e);
}

static int dispatch(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	const char *word = argv[1];
	const struct verb *v;

	if (str_eq(word, "--help") || str_eq(word, "-h"))
		word = "help";
	if (str_eq(word, "--version"))
		word = "version";
	v = find_verb(word);
	if (v == NULL)
		return cli_is_agent(word) ? call_agent(argc, argv, e) : unknown_verb(word);
	if (wants_help(v, argc - 1, argv + 1)) {
		cli_help_verb(v, &text);
		(void)fputs(buf_cstr(&text), stdout);
		return 0;
	}
	return call(v, argc - 1, argv + 1, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int r;

	title_init(argc, argv);
	fill_stdio();
	r = argc > 1 ? dispatch(argc, argv, &e) : cmd_overview(&e);
	if (r >= 0)
		return r;
	cli_complain(e.msg);
	return err_exit_code(&e);
}
