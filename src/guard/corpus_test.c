/* SPDX-License-Identifier: Apache-2.0 */
/* guard/corpus_test.c - our verdicts beside those that other tools' test suites ask for
 *
 *     corpus_test [FILE] [--report]
 *
 * The corpus (commands with verdicts: source, verdict, command, category, policy) is not part of the project. It is
 * looked for in $VITRINE_HOOK_CORPUS and beside the source tree; where there is none this test says so and passes.
 * --report prints every disagreement with its reason, as Markdown.
 */
#include <stdlib.h>

#include "base/io.h"
#include "base/test.h"
#include "guard/corpus_reasons.h"
#include "guard/guard.h"

#define MAX_ROWS 16384

struct row {
	const char *source, *verdict, *category, *policy;
	char *command;
};

/* All rows about one command under a default policy. */
struct entry {
	const struct row *rows[8];
	size_t n;
	enum verdict ours;
	const char *rule, *say;
	unsigned blocked_by;
	bool is_allowed, is_allowed_by_list;
};

struct corpus {
	struct buf text;
	struct row rows[MAX_ROWS];
	size_t n;
	struct entry entries[MAX_ROWS];
	size_t n_entries;
};

static char *next_field(char **line)
{
	char *s = *line, *tab = strchr(s, '\t');

	if (tab) {
		*tab = '\0';
		*line = tab + 1;
	} else {
		*line = s + strlen(s);
	}
	return s;
}

static void unescape(char *s)
{
	static const char names[] = "\\ntr", values[] = "\\\n\t\r";
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1] && strchr(names, s[1])) {
			s++;
			*to++ = values[strchr(names, *s) - names];
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static void read_rows(struct corpus *c)
{
	char *at = c->text.p, *end;

	for (; at && *at && c->n < MAX_ROWS; at = end ? end + 1 : NULL) {
		struct row *r = &c->rows[c->n];

		end = strchr(at, '\n');
		if (end)
			*end = '\0';
		r->source = next_field(&at);
		r->verdict = next_field(&at);
		r->command = next_field(&at);
		r->category = next_field(&at);
		r->policy = next_field(&at);
		unescape(r->command);
		c->n += !str_eq(r->source, "source");
	}
}

static int by_command(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return strcmp(x->command, y->command);
}

/* Two rows of one tool are one voice. */
static unsigned voice(const char *source)
{
	static const char *const names[] = { "aca",   "cc-safety-net", "dcg",
					     "codex", "fence",         "dippy" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (str_starts(source, names[i]))
			return BIT(i);
	return BIT(31);
}

static void add_row(struct entry *e, const struct row *r)
{
	if (e->n < ARRAY_LEN(e->rows))
		e->rows[e->n++] = r;
	if (str_eq(r->verdict, "block"))
		e->blocked_by |= voice(r->source);
	e->is_allowed |= str_eq(r->verdict, "allow");
	e->is_allowed_by_list |= str_eq(r->verdict, "allow") && str_starts(r->source, "dippy");
}

static void group_rows(struct corpus *c)
{
	qsort(c->rows, c->n, sizeof(c->rows[0]), by_command);
	for (size_t i = 0; i < c->n; i++) {
		struct entry *e;

		if (!str_starts(c->rows[i].policy, "default"))
			continue;
		e = c->n_entries ? &c->entries[c->n_entries - 1] : NULL;
		if (e == NULL || !str_eq(e->rows[0]->command, c->rows[i].command))
			e = &c->entries[c->n_entries++];
		add_row(e, &c->rows[i]);
	}
}

static void judge(struct entry *e)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	struct judgement j;
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	guard_command(&g, &mem, e->rows[0]->command, strlen(e->rows[0]->command), &j);
	e->ours = j.verdict;
	e->rule = "";
	for (size_t i = 0; i < rules_built_in()->n_rules; i++)
		if (str_eq(j.rule, rules_built_in()->rules[i].id)) {
			e->rule = rules_built_in()->rules[i].id;
			e->say = rules_built_in()->rules[i].say;
		}
}

static const char *corpus_path(void)
{
	static const char *const places[] = { "../shared/data/hook_corpus.tsv", "../../shared/data/"
										"hook_corpus.tsv" };
	const char *given = getenv("VITRINE_HOOK_CORPUS"), *root = getenv("VITRINE_SOURCE");
	static char path[4096];

	if (given)
		return given;
	for (size_t i = 0; root && i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", root, places[i]);
		if (access(path, R_OK) == 0)
			return path;
	}
	return NULL;
}

static const char *reason_for(const struct entry *e)
{
	for (size_t i = 0; i < ARRAY_LEN(corpus_reasons); i++)
		for (size_t k = 0; k < e->n; k++)
			if (rules_list_fits(corpus_reasons[i].category, e->rows[k]->category) &&
			    rules_list_fits(corpus_reasons[i].command, e->rows[k]->command))
				return corpus_reasons[i].reason;
	return NULL;
}

static void print_entry(const struct entry *e, const char *peer, const char *reason)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_esc(&b, e->rows[0]->command, strlen(e->rows[0]->command));
	for (char *c = b.p; c && *c; c++)
		if (*c == '|')
			*c = '\xa6';
	(void)printf("| `` %.160s `` | %s: %s | %s %s | %s |\n", buf_cstr(&b), e->rows[0]->source,
		     peer, verdict_name(e->ours), e->rule, reason);
}

struct sums {
	size_t blocks, two, two_missed, missed, unexplained;
	size_t allows, denied, asked, plain_allows, plain_denied, plain_asked;
};

static void add_block(const struct entry *e, struct sums *s, bool is_report)
{
	bool is_two = __builtin_popcount(e->blocked_by) >= 2;
	const char *reason;

	s->blocks++;
	s->two += is_two;
	if (e->ours != VERDICT_ALLOW)
		return;
	s->missed++;
	s->two_missed += is_two;
	reason = reason_for(e);
	s->unexplained += reason == NULL;
	if (is_report || reason == NULL)
		print_entry(e, "block", reason ? reason : "NO REASON GIVEN");
}

static void add_allow(const struct entry *e, struct sums *s, bool is_report)
{
	s->allows++;
	s->denied += e->ours == VERDICT_DENY;
	s->asked += e->ours == VERDICT_ASK;
	if (!e->is_allowed_by_list) {
		s->plain_allows++;
		s->plain_denied += e->ours == VERDICT_DENY;
		s->plain_asked += e->ours == VERDICT_ASK;
	}
	if (is_report && e->ours != VERDICT_ALLOW)
		print_entry(e, "allow", e->say ? e->say : "");
}

static void add_up(const struct corpus *c, struct sums *s, bool is_report)
{
	for (size_t i = 0; i < c->n_entries; i++) {
		if (c->entries[i].blocked_by)
			add_block(&c->entries[i], s, is_report);
		if (c->entries[i].is_allowed)
			add_allow(&c->entries[i], s, is_report);
	}
}

static void print_sums(const struct sums *s)
{
	(void)printf("blocked by a peer: %zu; of these allowed here: %zu (%zu without a reason)\n",
		     s->blocks, s->missed, s->unexplained);
	(void)printf("blocked by two peers: %zu; of these allowed here: %zu\n", s->two,
		     s->two_missed);
	(void)printf("allowed by a peer: %zu; denied here: %zu (%.2f %%), asked: %zu (%.2f %%)\n",
		     s->allows, s->denied, 100.0 * (double)s->denied / (double)s->allows, s->asked,
		     100.0 * (double)s->asked / (double)s->allows);
	(void)printf("allowed by a peer that has no allowlist: %zu; denied here: %zu (%.2f %%), "
		     "asked: %zu (%.2f %%)\n",
		     s->plain_allows, s->plain_denied,
		     100.0 * (double)s->plain_denied / (double)s->plain_allows, s->plain_asked,
		     100.0 * (double)s->plain_asked / (double)s->plain_allows);
}

static bool compare(const char *path, bool is_report, struct sums *ret)
{
	static struct corpus c = { .text = { .max = 16 * MIB } };
	struct err e = ERR_INIT;

	if (io_read_file(path, &c.text, &e) < 0)
		return false;
	read_rows(&c);
	group_rows(&c);
	for (size_t i = 0; i < c.n_entries; i++)
		judge(&c.entries[i]);
	if (is_report)
		(void)printf("| command | peer | here | reason |\n|---|---|---|---|\n");
	add_up(&c, ret, is_report);
	print_sums(ret);
	buf_done(&c.text);
	return true;
}

static int failures(const struct sums *s)
{
	return (s->two_missed > 0) + (s->denied * 100 > s->allows) +
	       (s->asked * 100 > 3 * s->allows) + (s->plain_denied * 100 > s->plain_allows) +
	       (s->plain_asked * 100 > 3 * s->plain_allows) + (s->unexplained > 0);
}

int main(int argc, char **argv)
{
	bool is_report = argc > 1 && str_eq(argv[argc - 1], "--report");
	const char *path = argc > 1 + is_report ? argv[1] : corpus_path();
	struct sums s = { 0 };
	int failed;

	if (path == NULL) {
		(void)printf("no corpus is here; nothing was compared\n1 passed, 0 failed, 0 "
			     "skipped\n");
		return 0;
	}
	if (!compare(path, is_report, &s)) {
		(void)printf("%s cannot be read\n0 passed, 1 failed, 0 skipped\n", path);
		return 1;
	}
	failed = failures(&s);
	(void)printf("%d passed, %d failed, 0 skipped\n", 6 - failed, failed);
	return failed != 0;
}
