/* SPDX-License-Identifier: Apache-2.0 */
/* guard/limits_test.c - hostile texts of the largest size: an answer in time, and never a yes by exhaustion
 *
 * Processor time, the best of several tries, so that other work on the machine does not count: a text is tried again
 * until it is within the bound. Where the processor itself is shared it may be half as fast, so that a failure is twice the
 * bound; the worst figure is printed. With sanitizers only the answers are checked.
 */
#include <time.h>

#include "base/buf.h"
#include "base/test.h"
#include "guard/guard.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_TIMED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_TIMED 0
#endif
#endif
#ifndef IS_TIMED
#define IS_TIMED 1
#endif

#define WORST_MS 50.0
#define TYPICAL_US 20.0

static double cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#define TEN(s) s s s s s s s s s s
#define LONG TEN(TEN("/aaaaaaaa")) /* 900 bytes */

/* head, then `piece` as often as fits, then tail, to 128 KiB. "%%%%" in a piece is a number that differs each time, so that
 * nothing that was worked out for one word serves for the next. */
static const struct {
	const char *name, *head, *piece, *tail;
} texts[] = {
	{ "commands", "", "a;", "" },
	{ "commands with words", "", "rm -rf b;", "" },
	{ "words", "rm -rf", " /a", "" },
	{ "secret words", "cat", " .env.x/y.pem", "" },
	{ "relative words", "rm -rf", " a/b/../c", "" },
	{ "options", "git", " -c a=b", " status" },
	{ "letters", "ls -", "a", "" },
	{ "letters without a dash", "tar ", "a", "" },
	{ "one word", "echo ", "a", "" },
	{ "quotes", "echo ", "''", "" },
	{ "double quotes", "echo ", "\"\"", "" },
	{ "open substitutions", "", "$(", "" },
	{ "open parentheses", "", "(", "" },
	{ "open double parentheses", "", "((", "" },
	{ "open arithmetic", "echo ", "$((", "" },
	{ "closed arithmetic", "echo ", "$((1))", "" },
	{ "not arithmetic", "", "$((a);b)", "" },
	{ "open braces", "echo ", "{a,", "" },
	{ "braces", "echo ", "{a,b}", "" },
	{ "braces apart", "echo", " {a,b}{c,d}", "" },
	{ "open parameters", "echo ", "${x:-", "" },
	{ "parameters", "echo ", "$x", "" },
	{ "known parameters", "x=aaaaaaaaaaaaaaaa; echo ", "$x", "" },
	{ "assignments", "", "x=1;", "" },
	{ "doubling", "x=ab;", "x=$x$x;", "" },
	{ "backquotes", "", "`a`;", "" },
	{ "open backquotes", "", "`\\", "" },
	{ "pipes", "a", "|a", "" },
	{ "pipes with variables", "a=1;b=2;c=3;d=4;e=5", ";a|b", "" },
	{ "subshells", "", "(a);", "" },
	{ "and", "a", "&&a", "" },
	{ "ifs", "", "if ", "" },
	{ "cases", "", "case a in a) ", "" },
	{ "closed cases", "", "case a in a) ;; esac;", "" },
	{ "functions", "", "f(){ a;};", "" },
	{ "open functions", "", "f(){ ", "" },
	{ "loops", "", "for x in a b c d e f;do ", "" },
	{ "closed loops", "", "for x in a b c d e f;do $x;done;", "" },
	{ "heredocs", "", "a<<E\nE\n", "" },
	{ "heredocs on one line", "a", " <<E", "\nE\n" },
	{ "heredoc body", "sh <<E\n", "a\n", "E\n" },
	{ "heredoc substitutions", "a <<E\n", "$(a)\n", "E\n" },
	{ "tests", "[[ ", "a && ", "a ]]" },
	{ "redirections", "a", " >b", "" },
	{ "written files", "", "a>b;sh b;", "" },
	{ "sudo", "", "sudo ", "a" },
	{ "env", "env", " A=b", " a" },
	{ "xargs", "", "xargs ", "a" },
	{ "eval", "", "eval ", "a" },
	{ "find exec", "find .", " -exec a {} ;", "" },
	{ "find", "find .", " -name a", "" },
	{ "parallel", "parallel a :::", " b", "" },
	{ "parallel commands", "parallel :::", " 'rm -rf /a'", "" },
	{ "interpreter", "python -c \"import os; os.system(", "'rm -rf a b c',", ")\"" },
	{ "interpreters", "", "awk 'system(x)';", "" },
	{ "secrets in code", "node -e \"", "'.env',", "\"" },
	{ "comments", "", "#a\n", "" },
	{ "newlines", "", "\n", "" },
	{ "backslashes", "echo ", "\\\\", "" },
	{ "continuations", "echo ", "\\\n", "" },
	{ "stars", "cat ", "*", "" },
	{ "starred words", "cat", " *a*b*", "" },
	{ "tildes", "cat", " ~/.x", "" },
	{ "slashes", "cat ", "/..", "" },
	{ "ansi", "echo $'", "\\x41", "'" },
	{ "bytes", "echo ", "\xff", "" },
	{ "az", "az", " a", " keys list" },
	{ "git words", "git", " a", "" },
	{ "shells", "sh -c '", "a;", "'" },
	{ "processes", "a", " <(b)", "" },
	{ "arrays", "x=(", " a", ")" },
	{ "subscripts", "", "x[1]=2 ", "a" },
	{ "exports", "", "export A=b;a;", "" },
	{ "aliases", "", "alias a=b;a;", "" },
	{ "awk writes", "awk '", "print > \"a\";", "'" },
	{ "loops in code", "python -c \"", "while True: a.append('x'*10**11);", "\"" },
	{ "variables in code", "python -c \"", "a='b';", "\"" },
	{ "calls in code", "python -c \"", "open(a,'w');", "\"" },
	{ "loops", "", "for i in 1 2;do a;done;", "" },
	{ "pipes of words", "a", " | a b c", "" },
	{ "statements", "psql -c \"", "delete from a;", "\"" },
	{ "texts in statements", "psql -c \"", "'a' ", "\"" },
	{ "find names", "find .", " -name '*.pyc' -exec rm {} ;", "" },
	{ "fd exec", "fd", " -x a ;", "" },
	{ "ssh options", "ssh", " -o ProxyCommand=a", "" },
	{ "makefile", "make -f - <<E\n", "\ta\n", "E\n" },
	{ "written scripts", "", "a>b;./b;", "" },
	{ "expect", "expect -c '", "spawn a;", "'" },
	{ "lisp", "emacs --eval '", "(delete-file \"a\")", "'" },
	{ "uses", "frobnicate", " ~/.x", "" },
	{ "long options", "frobnicate", " --a=/b", "" },
	{ "removes", "rm", " /a/b", "" },
	{ "kills", "kill", " $(a b)", "" },
	{ "headers", "curl x://y", " -H \"a: $B\"", "" },
	{ "other uses", "frobnicate", " ~/.x%%%%", "" },
	{ "other uses below", "frobnicate", " ~/.config/x%%%%/y", "" },
	{ "other words", "rm -rf", " /a%%%%", "" },
	{ "other relative words", "rm -rf", " a/../%%%%", "" },
	{ "other starred words", "cat", " a*b%%%%*", "" },
	{ "other secret words", "cat", " ~/.aws/x%%%%", "" },
	{ "other bracketed words", "cat", " ~/.e[n]v%%%%", "" },
	{ "other options", "frobnicate", " --a%%%%=/b", "" },
	{ "other commands", "", "a%%%%;", "" },
	{ "other commands with words", "", "a%%%% ~/.b%%%%;", "" },
	{ "other variables", "", "x%%%%=1;", "" },
	{ "other aliases", "", "alias a%%%%=b;a%%%%;", "" },
	{ "other functions", "", "f%%%%(){ a;};", "" },
	{ "other written files", "", "a>b%%%%;sh b%%%%;", "" },
	{ "other devices", "dd", " of=/dev/sd%%%%", "" },
	{ "other directories", "", "cd a%%%%;rm b;", "" },
	{ "other paths in code", "python -c \"", "open('~/.x%%%%','w');", "\"" },
	{ "beginnings of statements", "psql -c \"", "dr ", "\"" },
	{ "ends of statements", "psql -c \"", "drop tables ", "\"" },
	{ "beginnings of calls", "python -c \"", "xremove(a);", "\"" },
	{ "deep words", "frobnicate", " ~/.a/b/c/d/e/f/g", "" },
	{ "stars in the home", "cat", " ~/.*/x*", "" },
	{ "long directory", "cd " LONG, ";rm b", "" },
	{ "words in a long directory", "cd " LONG ";rm", " b", "" },
	{ "words in a long directory's home", "cd " LONG ";frobnicate", " .b", "" },
	{ "starred words in a long directory", "cd " LONG ";cat", " .q*", "" },
	{ "long values", "x=" LONG ";rm", " $x", "" },
	{ "long values of a program", "x=" LONG ";frobnicate", " ~/.$x", "" },
	{ "long values as commands", "x=" LONG, ";$x b", "" },
	{ "long values assigned", "x=" LONG, ";y=$x", "" },
	{ "long values in quotes", "x=" LONG ";echo \"", "$x", "\"" },
	{ "long values in code", "x=" LONG ";python -c \"", "$x", "\"" },
	{ "long written files", "echo '" LONG "'>b", ";sh b", "" },
	{ "long aliases", "alias a='b " LONG "'", ";a", "" },
	{ "long exports", "export A=" LONG, ";a", "" },
	{ "via many", "", "sudo env timeout 1 ", "a" },
};

static void fill(struct buf *b, size_t i, size_t most)
{
	size_t n = strlen(texts[i].piece), tail = strlen(texts[i].tail);

	buf_puts(b, texts[i].head);
	for (size_t k = 0; b->n + n + tail <= SHELL_MAX_BYTES && k < most; k++) {
		char *at;

		buf_puts(b, texts[i].piece);
		for (at = b->p + b->n - n; (at = strstr(at, "%%%%")) != NULL; at += 4) {
			char digits[8];

			(void)snprintf(digits, sizeof(digits), "%04zu", k % 10000);
			memcpy(at, digits, 4);
		}
	}
	buf_puts(b, texts[i].tail);
}

static double judge_once(const struct guard *g, const struct buf *b, struct judgement *ret)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	double begin = cpu_us();

	guard_command(g, &mem, b->p, b->n, ret);
	return cpu_us() - begin;
}

/* As often as fits, and as often as the limits of words and commands just allow. */
static const size_t counts[] = { SIZE_MAX,
				 SHELL_MAX_WORDS - 8,
				 SHELL_MAX_WORDS / 2 - 8,
				 SHELL_MAX_COMMANDS - 8,
				 SHELL_MAX_COMMANDS / 2 - 8,
				 1000,
				 60 };

#define TRIES 12

static double time_text(const struct guard *g, size_t i, size_t count)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct judgement j = { .rule = "" };
	double best = 1e12;

	fill(&b, i, count);
	for (int k = 0; k < (IS_TIMED ? TRIES : 1); k++) {
		double took = judge_once(g, &b, &j);

		best = took < best ? took : best;
		if (best <= WORST_MS * 1e3 / 2 || (k >= 3 && best <= WORST_MS * 1e3))
			break;
	}
	if (getenv("VERBOSE") || (IS_TIMED && best > WORST_MS * 1e3))
		(void)fprintf(stderr, "%-24s %7zu %8.2f ms  %s %s\n", texts[i].name, count,
			      best / 1e3, verdict_name(j.verdict), j.rule);
	return best;
}

TEST(largest_texts_in_time)
{
	const char *name = "";
	double worst = 0;
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		/* Sanitizers take many times as long, and need not see every size. */
		for (size_t k = 0; k < ARRAY_LEN(counts);
		     k += IS_TIMED ? 1 : ARRAY_LEN(counts) - 1) {
			double took = time_text(&g, i, counts[k]);

			CHECK(!IS_TIMED || took <= 2 * WORST_MS * 1e3);
			name = took > worst ? texts[i].name : name;
			worst = took > worst ? took : worst;
		}
	(void)printf("worst of %zu texts of at most 128 KiB: %.1f ms of processor time (%s)\n",
		     ARRAY_LEN(texts) * ARRAY_LEN(counts), worst / 1e3, name);
}

TEST(too_large_is_no_yes)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct judgement j;
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	while (b.n <= SHELL_MAX_BYTES)
		buf_puts(&b, "ls; ");
	(void)judge_once(&g, &b, &j);
	CHECK_INT(j.verdict, VERDICT_ASK);
	CHECK_STR(j.rule, "code.unreadable");
	CHECK(!j.is_proved);
}

/* What expansions and a long directory make out of a text is bounded as the text is. */
TEST(too_much_made_of_a_text_is_no_yes)
{
	static const char *const names[] = { "long values", "long values of a program",
					     "long values in quotes", "words in a long directory",
					     "starred words in a long directory" };
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			_cleanup_(buf_done) struct buf b = BUF(MIB);
			struct judgement j;

			if (!str_eq(texts[i].name, names[k]))
				continue;
			fill(&b, i, SHELL_MAX_WORDS - 8);
			(void)judge_once(&g, &b, &j);
			CHECK(j.verdict != VERDICT_ALLOW);
			CHECK(!j.is_proved);
		}
}

/* Danger in the end of one long text of inline code, which is put together from parts. */
TEST(danger_cannot_hide_in_the_end_of_a_part)
{
	static const char *const parts[][2] = {
		{ "python3 -c \"import os; os.system('echo ", "' + '; rm -rf ~/work')\"" },
		{ "node -e \"require('child_process').execSync('echo ", "' + ' && rm -rf "
									"~/work')\"" },
		{ "python3 -c \"import shutil,os; shutil.rmtree(os.path.expanduser('~/./", "../../"
											   "../"
											   "..'))"
											   "\"" },
	};
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (size_t n = 500; n < 8 * KIB; n *= 2) {
			_cleanup_(buf_done) struct buf b = BUF(MIB);
			struct judgement j;

			buf_puts(&b, parts[i][0]);
			for (size_t k = 0; k < n; k++)
				buf_puts(&b, i == 2 ? "./" : "x");
			buf_puts(&b, parts[i][1]);
			(void)judge_once(&g, &b, &j);
			if (j.verdict == VERDICT_ALLOW)
				(void)fprintf(stderr, "allowed: part %zu, %zu\n", i, n);
			CHECK(j.verdict != VERDICT_ALLOW);
		}
}

/* Nor behind more parts, or more calls, than are read. */
TEST(danger_cannot_hide_behind_parts_and_calls)
{
	static const char *const shapes[][3] = {
		{ "python3 -c \"import os; os.system('echo '", " + 'a'",
		  " + '; rm -rf ~/work')\"" },
		{ "python3 -c \"import os; ", "open('a'); ", "os.system('rm -rf ~/work')\"" },
		{ "node -e \"require('child_process').execSync('echo '", " + 'a'",
		  " + '; rm -rf ~/work')\"" },
	};
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		for (size_t n = 1; n < 2000; n = n * 2 + 1) {
			_cleanup_(buf_done) struct buf b = BUF(MIB);
			struct judgement j;

			buf_puts(&b, shapes[i][0]);
			for (size_t k = 0; k < n; k++)
				buf_puts(&b, shapes[i][1]);
			buf_puts(&b, shapes[i][2]);
			(void)judge_once(&g, &b, &j);
			if (j.verdict == VERDICT_ALLOW)
				(void)fprintf(stderr, "allowed: shape %zu, %zu\n", i, n);
			CHECK(j.verdict != VERDICT_ALLOW);
		}
}

/* Danger behind any amount of harmless text is still found, or the text refused. */
TEST(danger_cannot_hide_behind_bulk)
{
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_(buf_done) struct buf b = BUF(MIB), all = BUF(MIB);
		struct judgement j;

		fill(&b, i, SIZE_MAX);
		buf_add(&all, b.p, b.n < SHELL_MAX_BYTES - 64 ? b.n : SHELL_MAX_BYTES - 64);
		buf_puts(&all, "\nrm -rf /\n");
		(void)judge_once(&g, &all, &j);
		if (j.verdict == VERDICT_ALLOW)
			(void)fprintf(stderr, "allowed: %s\n", texts[i].name);
		/* Where the text is a comment, a quote or a word that goes on, there may be no command. */
		CHECK(j.verdict != VERDICT_ALLOW || strchr("#\\", texts[i].piece[0]) != NULL);
	}
}

TEST(typical_command_is_read_quickly)
{
	static const char text[] = "cd /home/u/project && npm run build 2>&1 | tail -20 && git add "
				   "-A && git commit -m \"$(date)\"";
	double best = 1e12;

	for (int round = 0; round < 20; round++) {
		double begin = cpu_us();

		for (int i = 0; i < 100; i++) {
			_cleanup_(arena_done) struct arena mem = ARENA(MIB);
			struct shell_error e;

			CHECK(shell_parse(&mem, text, strlen(text), &e) != NULL);
		}
		double took = (cpu_us() - begin) / 100;

		best = took < best ? took : best;
	}
	(void)printf("a typical command is read in %.2f us\n", best);
	CHECK(!IS_TIMED || best <= TYPICAL_US);
}

TEST_MAIN()
