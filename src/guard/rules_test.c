/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rules_test.c - every rule file's own tests, each as a case of its own */
#include "base/io.h"
#include "base/test.h"
#include "guard/guard.h"

static const char *const files[] = { "files", "git",  "credentials", "publish",  "packages",
				     "cloud", "code", "effects",     "programs", "safe" };

static void check_one(const struct guard *g, const struct rule_test *t)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	struct judgement j;

	guard_command(g, &mem, t->command, strlen(t->command), &j);
	if (j.verdict != t->verdict || (t->verdict != VERDICT_ALLOW && !str_eq(j.rule, t->rule))) {
		bool is_among = false;

		/* Another rule may be stricter; ours must have fitted, and the verdict be at least as strict. */
		for (size_t i = 0; i < j.n_all; i++)
			is_among |= str_eq(j.all[i].rule->id, t->rule) &&
				    j.all[i].verdict == t->verdict;
		if (t->verdict != VERDICT_ALLOW && is_among)
			return;
		test_failures++;
		(void)fprintf(stderr, "%s: '%s' is %s by '%s', want %s\n", t->rule, t->command,
			      verdict_name(j.verdict), j.rule, verdict_name(t->verdict));
	}
}

static void check_file(const char *name)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	const char *dir = getenv("VITRINE_RULES");
	_free_ char *path = mem_fmt("%s/%s.json", dir ? dir : "rules", name);
	struct rules r = { 0 };
	struct err e = ERR_INIT;
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	CHECK(io_read_file(path, &text, &e) >= 0);
	if (rules_load(&mem, buf_cstr(&text), text.n, true, &r, &e) < 0)
		(void)fprintf(stderr, "%s: %s\n", path, e.msg);
	CHECK(r.n_rules + r.n_safe + r.n_syntaxes > 0);
	for (size_t i = 0; i < r.n_tests; i++)
		check_one(&g, &r.tests[i]);
	/* A rule that no command proves is a guess; tools have no command. */
	for (size_t i = 0; i < r.n_rules; i++) {
		bool is_proved = r.rules[i].program && str_starts(r.rules[i].program, "tool-");

		for (size_t k = 0; k < r.n_tests; k++)
			is_proved |= str_eq(r.tests[k].rule, r.rules[i].id) &&
				     r.tests[k].verdict != VERDICT_ALLOW;
		if (!is_proved)
			(void)fprintf(stderr, "%s: no command proves it\n", r.rules[i].id);
		CHECK(is_proved);
	}
}

TEST(rule_files)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		check_file(files[i]);
}

/* "command => effects": exactly these, in this order. */
static void check_program(const struct guard *g, const struct syntax *s)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	_cleanup_(buf_done) struct buf got = BUF(4 * KIB);
	const char *arrow = strstr(s->test, " => ");
	struct judgement j;

	CHECK(arrow != NULL);
	if (arrow == NULL)
		return;
	guard_command(g, &mem, s->test, (size_t)(arrow - s->test), &j);
	for (size_t i = 0; i < j.n_effects; i++)
		buf_printf(&got, "%s%s %s", i ? "; " : "", effect_name(j.effects[i].kind),
			   j.effects[i].what);
	if (!str_eq(buf_cstr(&got), arrow + 4))
		(void)fprintf(stderr, "%s: '%s'\n", s->name, s->test);
	CHECK_STR(buf_cstr(&got), arrow + 4);
}

TEST(programs_do_what_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_(buf_done) struct buf text = BUF(MIB);
		_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
		const char *dir = getenv("VITRINE_RULES");
		_free_ char *path = mem_fmt("%s/%s.json", dir ? dir : "rules", files[i]);
		struct rules r = { 0 };
		struct err e = ERR_INIT;
		struct guard g;

		guard_init_plain(&g, "/home/u", "/home/u/project");
		CHECK(io_read_file(path, &text, &e) >= 0);
		CHECK(rules_load(&mem, buf_cstr(&text), text.n, true, &r, &e) >= 0);
		for (size_t k = 0; k < r.n_syntaxes; k++) {
			CHECK((r.syntaxes[k].does == NULL) == (r.syntaxes[k].test == NULL));
			if (r.syntaxes[k].test)
				check_program(&g, &r.syntaxes[k]);
		}
	}
}

TEST(ids_are_unique)
{
	for (size_t i = 0; i < rules_built_in()->n_rules; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(!str_eq(rules_built_in()->rules[i].id,
				      rules_built_in()->rules[k].id));
}

TEST(bad_files_are_named)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "[]", "1:1: a rule file is an object" },
		{ "{\"rules\": [{}]}", "needs \"program\"" },
		{ "{\"rules\": [{\"id\": \"x\", \"program\": \"y\", \"verdict\": \"deny\"}]}",
		  "needs \"id\" and \"say\"" },
		{ "{\"rules\": [{\"id\": \"x\", \"program\": \"y\", \"say\": \"z\", \"verdict\": "
		  "\"allow\"}]}",
		  "\"ask\" or \"deny\"" },
		{ "{\"rules\": [{\"id\": \"x\", \"program\": \"y\", \"colour\": 1}]}", "no "
										       "\"colour"
										       "\"" },
		{ "{\"rules\": [{\"id\": \"x\", \"program\": \"y\", \"arg\": \"@nowhere\", "
		  "\"say\": \"z\", \"verdict\": \"ask\"}]}",
		  "no class \"@nowhere\"" },
		{ "{\"safe\": [\"rm\"]}", "may only add" },
		{ "{\"not_secret\": [\".env\"]}", "may only add" },
		{ "{", "1:2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		struct rules r;
		struct err e = ERR_INIT;

		CHECK(rules_load(&mem, bad[i].text, strlen(bad[i].text), false, &r, &e) < 0);
		CHECK(strstr(e.msg, bad[i].want));
	}
}

TEST_MAIN()
