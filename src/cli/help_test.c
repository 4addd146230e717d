/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help_test.c - help, manual pages and completions from a table with everything awkward in it
 *
 * Manual pages are given to groff with all warnings on; the bash completion is driven as bash would drive it.
 * Both programs are among the test dependencies.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "base/test.h"
#include "cli/cli.h"

extern const struct opt help_opts[];

static const struct opt run_opts[] = {
	{ "env", 'e', "K=V", "set a variable; it's \"quoted\" [here]: a\\b ~ ^ `x`", 1 },
	{ "policy", 0, "FILE", "read this policy", 2 },
	{ "workdir", 'w', "DIR",
	  "a sentence that is long enough to need a second line when it is shown beside its option "
	  "name",
	  3 },
	{ "a-very-long-option-name", 0, "SOMETHING", "goes to the next line", 4 },
	{ "json", 0, NULL, "print JSON", 5 },
	{ NULL },
};

static int nothing(int argc, char **argv, struct err *e)
{
	return 0;
}

const struct verb verbs[] = {
	{ "run", nothing, "run [options] [--] CMD [ARGS...]", "run a command", run_opts,
	  ".starts with a dot, and 'quotes'.\nA second line \xe2\x80\x93 with a dash.\n\n    $ "
	  "vitrine run -- ls -l\n"
	  "    .dot 'quote\n\nLast paragraph." },
	{ "policy", nothing, "policy check FILE\npolicy show", "look at policies", NULL, NULL },
	{ "help", nothing, "help [--man] [VERB]", "tell more", help_opts, "" },
	{ "completion", nothing, "completion bash|zsh|fish", "print completions", NULL, NULL },
	{ NULL },
};

const struct verb_group verb_groups[] = {
	{ "One", "policy run" },
	{ "Two", "help completion" },
	{ NULL, NULL },
};

TEST(help_of_a_verb)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	cli_help_verb(&verbs[0], &b);
	CHECK_STR(buf_cstr(&b), "usage: vitrine run [options] [--] CMD [ARGS...]\n"
				"\n"
				"vitrine run: run a command\n"
				"\n"
				"options:\n"
				"  -e, --env K=V             set a variable; it's \"quoted\" "
				"[here]: a\\b ~ ^ `x`\n"
				"      --policy FILE         read this policy\n"
				"  -w, --workdir DIR         a sentence that is long enough to "
				"need a second line\n"
				"                            when it is shown beside its option "
				"name\n"
				"      --a-very-long-option-name SOMETHING\n"
				"                            goes to the next line\n"
				"      --json                print JSON\n"
				"\n"
				".starts with a dot, and 'quotes'. A second line \xe2\x80\x93 with "
				"a dash.\n"
				"\n"
				"    $ vitrine run -- ls -l\n"
				"    .dot 'quote\n"
				"\n"
				"Last paragraph.\n");
	buf_done(&b);
	cli_help_verb(&verbs[1], &b);
	CHECK_STR(buf_cstr(&b), "usage: vitrine policy check FILE\n"
				"       vitrine policy show\n\nvitrine policy: look at policies\n");
}

TEST(help_of_all)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	cli_help_all(&b);
	for (const struct verb *v = verbs; v->name; v++)
		CHECK(strstr(buf_cstr(&b), v->summary) != NULL);
	CHECK(strstr(buf_cstr(&b), "\nOne\n  policy      look at policies\n  run         run a "
				   "command\n\nTwo\n") != NULL);
}

/* Gives `input` to a shell command and returns its exit status; *output gets what it prints. */
static int filter(const char *cmd, const char *input, struct buf *output)
{
	char path[] = "/tmp/vitrine-help-test-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), status;
	_free_ char *line = mem_fmt("exec 2>&1 </dev/null; F=%s; %s", path, cmd);
	char chunk[512];
	FILE *f;

	if (fd < 0 || write(fd, input, strlen(input)) != (ssize_t)strlen(input)) {
		fd_close(fd);
		return -1;
	}
	fd_close(fd);
	f = popen(line, "re"); /* NOLINT(cert-env33-c): a constant command in a test */
	if (f == NULL)
		return -1;
	while (fgets(chunk, sizeof(chunk), f))
		buf_puts(output, chunk);
	status = pclose(f);
	(void)unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(man_pages_are_clean_roff)
{
	for (int i = -1; i < 4; i++) {
		_cleanup_(buf_done) struct buf page = BUF(MIB), said = BUF(MIB);

		cli_man_page(i < 0 ? NULL : &verbs[i], &page);
		CHECK_INT(filter("groff -ww -man -Tascii -z \"$F\"", buf_cstr(&page), &said), 0);
		CHECK_STR(buf_cstr(&said), "");
	}
}

TEST(man_page_shows_what_the_table_says)
{
	_cleanup_(buf_done) struct buf page = BUF(MIB), text = BUF(MIB);

	cli_man_page(&verbs[0], &page);
	CHECK_INT(filter("groff -ww -man -Tutf8 -P-cbou -rLL=200n \"$F\"", buf_cstr(&page), &text),
		  0);
	CHECK(strstr(buf_cstr(&text), ".starts with a dot, and 'quotes'.") != NULL);
	CHECK(strstr(buf_cstr(&text), "A second line \xe2\x80\x93 with a dash.") != NULL);
	CHECK(strstr(buf_cstr(&text), "it's \"quoted\" [here]: a\\b ~ ^ `x`.") != NULL);
	CHECK(strstr(buf_cstr(&text), "    $ vitrine run -- ls -l\n") != NULL);
	CHECK(strstr(buf_cstr(&text), ".dot 'quote\n") != NULL);
	CHECK(strstr(buf_cstr(&text), "-e, --env K=V") != NULL);
	CHECK(strstr(buf_cstr(&text), "vitrine-run - run a command") != NULL);
}

/* What bash would offer for these words, sorted, on one line. */
static void offers(const char *words, const char *want)
{
	_cleanup_(buf_done) struct buf script = BUF(MIB), said = BUF(MIB);
	struct err e = ERR_INIT;

	CHECK_INT(cli_completion("bash", &script, &e), 0);
	buf_printf(&script,
		   "\nCOMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _vitrine\n"
		   "printf '%%s\\n' \"${COMPREPLY[@]}\" | sort -u | tr '\\n' ' '\n",
		   words);
	CHECK_INT(filter("cd / && bash \"$F\"", buf_cstr(&script), &said), 0);
	CHECK_STR(buf_cstr(&said), want);
}

TEST(bash_offers)
{
	offers("vitrine ''", "completion help policy run ");
	offers("vitrine r", "run ");
	offers("vitrine run --a", "--a-very-long-option-name ");
	offers("vitrine run --h", "--help ");
	offers("vitrine run --policy us", "usr ");
	offers("vitrine run -w us", "usr ");
	offers("vitrine run -e us", " ");
	offers("vitrine run -- basenam", "basename ");
	offers("vitrine run -- ls us", "usr ");
	offers("vitrine help r", "run ");
	offers("vitrine completion ''", "bash fish zsh ");
	offers("vitrine policy ''", "check show ");
	offers("vitrine policy check us", "usr ");
}

TEST(completions_name_everything)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		_cleanup_(buf_done) struct buf b = BUF(MIB);

		CHECK_INT(cli_completion(shells[i], &b, &e), 0);
		for (const struct verb *v = verbs; v->name; v++)
			CHECK(strstr(buf_cstr(&b), v->name) != NULL);
		for (const struct opt *o = run_opts; o->name; o++)
			CHECK(strstr(buf_cstr(&b), o->name) != NULL);
	}
}

TEST(zsh_and_fish_quote_what_they_must)
{
	_cleanup_(buf_done) struct buf zsh = BUF(MIB), fish = BUF(MIB);
	struct err e = ERR_INIT;

	CHECK_INT(cli_completion("zsh", &zsh, &e), 0);
	CHECK(strstr(buf_cstr(&zsh), "'*--env=[set a variable; it'\\''s \"quoted\" \\[here\\]\\: "
				     "a\\\\b") != NULL);
	CHECK(strstr(buf_cstr(&zsh), "'*-e+[") != NULL);
	CHECK(strstr(buf_cstr(&zsh), ":FILE:_files' \\\n") != NULL);
	CHECK_INT(cli_completion("fish", &fish, &e), 0);
	CHECK(strstr(buf_cstr(&fish), "-l env -s e -x -d 'set a variable; it'\\''s") != NULL);
	CHECK(strstr(buf_cstr(&fish), "-l policy -r -F -d") != NULL);
}

TEST(an_unknown_shell)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	CHECK_INT(cli_completion("tcsh", &b, &e), -EINVAL);
	CHECK_INT(e.kind, ERR_USAGE);
	CHECK_INT(b.n, 0);
}

TEST(help_for_a_verb_that_is_not)
{
	char w0[] = "help", w1[] = "rnu", *argv[] = { w0, w1, NULL };
	struct err e = ERR_INIT;

	CHECK_INT(cmd_help(2, argv, &e), -EINVAL);
	CHECK_STR(e.msg, "there is no verb 'rnu'; did you mean run?");
}

TEST_MAIN()
