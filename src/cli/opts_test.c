/* SPDX-License-Identifier: Apache-2.0 */
/* cli/opts_test.c - every form an option can take, and every way to get it wrong */
#include "base/test.h"
#include "cli/cli.h"

enum { OPT_MEMORY = 1, OPT_ENV, OPT_JSON, OPT_INTERACTIVE, OPT_TTY };

static const struct opt table[] = {
	{ "memory", 0, "SIZE", "memory limit", OPT_MEMORY },
	{ "env", 'e', "K=V", "set a variable", OPT_ENV },
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "interactive", 'i', NULL, "keep stdin", OPT_INTERACTIVE },
	{ "tty", 't', NULL, "a terminal", OPT_TTY },
	{ NULL },
};

#define WORDS(...) ((char *[]){ (char[]){ "run" }, __VA_ARGS__, NULL })
#define W(s) ((char[]){ s })

static struct opts start(char **argv)
{
	struct opts o;
	int n = 0;

	while (argv[n])
		n++;
	opts_init(&o, table, n, argv);
	return o;
}

TEST(nothing_at_all)
{
	char verb[] = "run", *argv[] = { verb, NULL };
	struct opts o;
	struct err e = ERR_INIT;

	opts_init(&o, NULL, 1, argv);
	CHECK_INT(opts_next(&o, &e), 0);
	CHECK_INT(o.at, 1);
	opts_init(&o, table, 0, argv);
	CHECK_INT(opts_next(&o, &e), 0);
}

TEST(long_forms)
{
	struct opts o = start(WORDS(W("--memory"), W("2g"), W("--memory=3g"), W("--json"),
				    W("--env="), W("ls"), W("--json")));
	struct err e = ERR_INIT;

	CHECK_INT(opts_next(&o, &e), OPT_MEMORY);
	CHECK_STR(o.value, "2g");
	CHECK_INT(opts_next(&o, &e), OPT_MEMORY);
	CHECK_STR(o.value, "3g");
	CHECK_INT(opts_next(&o, &e), OPT_JSON);
	CHECK(o.value == NULL);
	CHECK_INT(opts_next(&o, &e), OPT_ENV);
	CHECK_STR(o.value, "");
	CHECK_INT(opts_next(&o, &e), 0);
	CHECK_STR(o.argv[o.at], "ls");
	CHECK(!o.saw_dashdash);
	CHECK_INT(opts_next(&o, &e), 0);
}

TEST(letters)
{
	struct opts o =
		start(WORDS(W("-it"), W("-eA=1"), W("-e"), W("B=2"), W("-iteC"), W("--"), W("-i")));
	struct err e = ERR_INIT;

	CHECK_INT(opts_next(&o, &e), OPT_INTERACTIVE);
	CHECK_INT(opts_next(&o, &e), OPT_TTY);
	CHECK_INT(opts_next(&o, &e), OPT_ENV);
	CHECK_STR(o.value, "A=1");
	CHECK_INT(opts_next(&o, &e), OPT_ENV);
	CHECK_STR(o.value, "B=2");
	CHECK_INT(opts_next(&o, &e), OPT_INTERACTIVE);
	CHECK_INT(opts_next(&o, &e), OPT_TTY);
	CHECK_INT(opts_next(&o, &e), OPT_ENV);
	CHECK_STR(o.value, "C");
	CHECK_INT(opts_next(&o, &e), 0);
	CHECK(o.saw_dashdash);
	CHECK_STR(o.argv[o.at], "-i");
	CHECK_INT(opts_next(&o, &e), 0);
}

TEST(a_dash_alone_is_a_word)
{
	struct opts o = start(WORDS(W("--env"), W("-"), W("-")));
	struct err e = ERR_INIT;

	CHECK_INT(opts_next(&o, &e), OPT_ENV);
	CHECK_STR(o.value, "-");
	CHECK_INT(opts_next(&o, &e), 0);
	CHECK_STR(o.argv[o.at], "-");
}

static void refused(char **argv, const char *msg)
{
	struct opts o = start(argv);
	struct err e = ERR_INIT;
	int r;

	while ((r = opts_next(&o, &e)) > 0)
		;
	CHECK_INT(r, -EINVAL);
	CHECK_INT(e.kind, ERR_USAGE);
	CHECK_STR(e.msg, msg);
}

TEST(mistakes)
{
	refused(WORDS(W("--memroy"), W("2g")), "option '--memroy' is not known; did you mean "
					       "--memory?");
	refused(WORDS(W("--memroy=2g")), "option '--memroy' is not known; did you mean --memory?");
	refused(WORDS(W("--mem")), "option '--mem' is not known");
	refused(WORDS(W("--zzz")), "option '--zzz' is not known");
	refused(WORDS(W("-ix")), "option '-x' is not known");
	refused(WORDS(W("--json=1")), "option '--json' takes no value");
	refused(WORDS(W("--memory")), "option '--memory' needs a value (SIZE)");
	refused(WORDS(W("-e")), "option '-e' needs a value (K=V)");
	refused(WORDS(W("--memory"), W("--"), W("ls")), "option '--memory' needs a value (SIZE); "
							"one that begins with '-' is written "
							"--memory=VALUE");
	refused(WORDS(W("-e"), W("-t")), "option '-e' needs a value (K=V); one that begins with "
					 "'-' is written --env=VALUE");
	refused(WORDS(W("--\033[2J")), "option '--\\x1b[2J' is not known");
	refused(WORDS(W("---")), "option '---' is not known");
	refused(WORDS(W("--=x")), "option '--' is not known");
}

/* The words in one line. */
static void arranged(char **argv, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct err e = ERR_INIT;
	int n = 0;

	while (argv[n])
		n++;
	CHECK_INT(opts_arrange(table, n, argv, &e), 0);
	for (int i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", argv[i]);
	CHECK_STR(buf_cstr(&b), want);
}

static bool has_colon(const char *word)
{
	return strchr(word, ':') != NULL;
}

TEST(one_letter_for_two)
{
	static const struct opt two[] = {
		{ "tty", 't', NULL, "a terminal", OPT_TTY },
		{ "image", 't', "IMAGE", "an image", OPT_MEMORY },
		{ "interactive", 'i', NULL, "keep stdin", OPT_INTERACTIVE },
		{ NULL },
	};
	struct opts o = start(WORDS(W("-t"), W("a:1"), W("-t"), W("-it"), W("-t"), W("b")));
	struct err e = ERR_INIT;

	o.table = two;
	o.is_value = has_colon;
	CHECK_INT(opts_next(&o, &e), OPT_MEMORY);
	CHECK_STR(o.value, "a:1");
	CHECK_INT(opts_next(&o, &e), OPT_TTY);
	CHECK_INT(opts_next(&o, &e), OPT_INTERACTIVE);
	CHECK_INT(opts_next(&o, &e), OPT_TTY);
	CHECK_INT(opts_next(&o, &e), OPT_TTY);
	CHECK_INT(opts_next(&o, &e), 0);
	CHECK_STR(o.argv[o.at], "b");
}

TEST(options_anywhere)
{
	char *wrong[] = { W("run"), W("box"), W("--memroy"), NULL };
	char *cut[] = { W("run"), W("box"), W("--memory"), NULL };
	struct err e = ERR_INIT;

	arranged(WORDS(W("box"), W("--json")), "run --json box");
	arranged(WORDS(W("a"), W("-it"), W("b"), W("--memory"), W("2g"), W("c")), "run -it "
										  "--memory 2g a b "
										  "c");
	arranged(WORDS(W("a"), W("-ie"), W("K=V"), W("b"), W("-")), "run -ie K=V a b -");
	arranged(WORDS(W("a"), W("--json"), W("--"), W("-i"), W("b")), "run --json -- a -i b");
	arranged(WORDS(W("a")), "run a");
	CHECK_INT(opts_arrange(table, 3, wrong, &e), -EINVAL);
	CHECK_STR(e.msg, "option '--memroy' is not known; did you mean --memory?");
	CHECK_INT(opts_arrange(table, 3, cut, &e), -EINVAL);
	CHECK_STR(e.msg, "option '--memory' needs a value (SIZE)");
}

TEST(nearest)
{
	static const char *const words[] = {
		"run", "explain", "engines", "doctor", "policy", NULL
	};
	char longest[200];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK_STR(cli_nearest("docter", words), "doctor");
	CHECK_STR(cli_nearest("engine", words), "engines");
	CHECK_STR(cli_nearest("polciy", words), "policy");
	CHECK_STR(cli_nearest("rnu", words), "run");
	CHECK(cli_nearest("rm", words) == NULL);
	CHECK(cli_nearest("xyz", words) == NULL);
	CHECK(cli_nearest("", words) == NULL);
	CHECK(cli_nearest(longest, words) == NULL);
}

TEST_MAIN()
