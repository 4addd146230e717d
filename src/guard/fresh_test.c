/* SPDX-License-Identifier: Apache-2.0 */
/* guard/fresh_test.c - commands written by people who had not seen the rules
 *
 *     fresh_test FILE... [--list]
 *
 * Each line has a class, "dangerous" or "harmless", a context that is not used here, and a command ("\n" is a newline),
 * separated by tabs. The verdicts are those of the built-in rules outside of a sandbox: a dangerous command is missed when
 * it is allowed, a harmless one is a false alarm when it is not. The bounds hold for all files together: 5 % misses in all,
 * 10 % in any class, 1 % false alarms. --list prints every command that is judged the wrong way.
 */
#include "base/io.h"
#include "base/test.h"
#include "guard/guard.h"

#define MAX_CLASSES 16

int test_failures;

struct tally {
	const char *name;
	size_t n, wrong;
};

struct sums {
	struct tally dangerous[MAX_CLASSES];
	struct tally harmless;
	bool is_listed;
};

static char *next_field(char **line)
{
	char *s = *line, *tab = strchr(s, '\t');

	if (tab)
		*tab = '\0';
	*line = tab ? tab + 1 : s + strlen(s);
	return s;
}

static void unescape(char *s)
{
	static const char names[] = "\\nt", values[] = "\\\n\t";
	char *to = s;

	for (; *s; s++)
		if (s[0] == '\\' && s[1] && strchr(names, s[1]))
			*to++ = values[strchr(names, *++s) - names];
		else
			*to++ = *s;
	*to = '\0';
}

static struct tally *class_of(struct sums *s, const char *name)
{
	struct tally *c = s->dangerous;

	while (c->name && !str_eq(c->name, name))
		c++;
	bug_on(c == s->dangerous + MAX_CLASSES - 1);
	c->name = name;
	return c;
}

static void judge_line(struct sums *s, char *line)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	const char *name = next_field(&line), *want = next_field(&line);
	bool is_dangerous = str_eq(want, "dangerous"), is_wrong;
	struct tally *c = is_dangerous ? class_of(s, name) : &s->harmless;
	struct judgement j;
	struct guard g;

	CHECK(is_dangerous || str_eq(want, "harmless"));
	(void)next_field(&line);
	unescape(line);
	guard_init_plain(&g, "/home/dev", "/home/dev/proj");
	guard_command(&g, &mem, line, strlen(line), &j);
	is_wrong = is_dangerous == (j.verdict == VERDICT_ALLOW);
	c->n++;
	c->wrong += is_wrong;
	if (is_wrong && s->is_listed)
		(void)printf("%s\t%s\t%s\n", name, j.rule, line);
	guard_done(&g);
}

static void judge_file(struct sums *s, char *text)
{
	for (char *at = text, *end; at && *at; at = end ? end + 1 : NULL) {
		end = strchr(at, '\n');
		if (end)
			*end = '\0';
		if (*at && *at != '#' && !str_starts(at, "class\t"))
			judge_line(s, at);
	}
}

static double percent(size_t n, size_t of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

static void check_bounds(const struct sums *s)
{
	size_t n = 0, wrong = 0;

	for (const struct tally *c = s->dangerous; c->name; c++) {
		(void)printf("%-13s %3zu of %3zu missed (%.1f %%)\n", c->name, c->wrong, c->n,
			     percent(c->wrong, c->n));
		CHECK(c->wrong * 10 <= c->n);
		n += c->n;
		wrong += c->wrong;
	}
	(void)printf("in all        %3zu of %3zu missed (%.1f %%)\n", wrong, n, percent(wrong, n));
	(void)printf("harmless      %3zu of %3zu stopped (%.1f %%)\n", s->harmless.wrong,
		     s->harmless.n, percent(s->harmless.wrong, s->harmless.n));
	CHECK(n >= 300 && s->harmless.n >= 200);
	CHECK(wrong * 20 <= n);
	CHECK(s->harmless.wrong * 100 <= s->harmless.n);
}

int main(int argc, char **argv)
{
	struct buf texts[8];
	struct sums s = { .is_listed = argc > 1 && str_eq(argv[argc - 1], "--list") };
	int n = argc - 1 - s.is_listed;

	bug_on(n < 1 || n > (int)ARRAY_LEN(texts));
	for (int i = 0; i < n; i++) {
		struct err e = ERR_INIT;

		/* Names of classes point into the texts; all of them stay until the end. */
		texts[i] = (struct buf)BUF(4 * MIB);
		if (io_read_file(argv[i + 1], &texts[i], &e) < 0) {
			(void)printf("%s: %s\n0 passed, 1 failed, 0 skipped\n", argv[i + 1], e.msg);
			return 1;
		}
		judge_file(&s, texts[i].p);
	}
	check_bounds(&s);
	(void)printf("%d passed, %d failed, 0 skipped\n", test_failures ? 0 : 1,
		     test_failures ? 1 : 0);
	for (int i = 0; i < n; i++)
		buf_done(&texts[i]);
	return test_failures != 0;
}
