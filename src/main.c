/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - find the verb, run it, report its failure once */
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
		    : mem_fmt("no verb '%.64s'; 'vitrine help' lists them", word);
	cli_complain(text);
	return 2;
}

static bool wants_help(int argc, char **argv)
{
	return argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"));
}

int main(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	const struct verb *v;
	struct err e = ERR_INIT;
	const char *word;
	int r;

	title_init(argc, argv);
	fill_stdio();
	word = argc > 1 ? argv[1] : "help";
	if (str_eq(word, "--help") || str_eq(word, "-h"))
		word = "help";
	if (str_eq(word, "--version"))
		word = "version";
	v = find_verb(word);
	if (v == NULL)
		return unknown_verb(word);
	if (wants_help(argc - 1, argv + 1)) {
		cli_help_verb(v, &text);
		(void)fputs(buf_cstr(&text), stdout);
		return 0;
	}
	if (v->flags & VERB_STORE)
		r = program_exec("vitrine-store", argv, &e);
	else if (v->flags & VERB_LOOP)
		r = program_exec("vitrine-loop", argv, &e);
	else
		r = argc > 1 ? v->fn(argc - 1, argv + 1, &e) : v->fn(0, argv, &e);
	if (r >= 0)
		return r;
	cli_complain(e.msg);
	return err_exit_code(&e);
}
