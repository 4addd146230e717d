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

/* Does this sentence, or clause, begin with a verb that tells somebody to do something? */
static bool is_advice(const char *s)
{
	static const char verbs[] = "ask|blot|build|call|change|commit|count|delete|describe|do|"
				    "give|keep|leave|let|list|"
				    "listen|look|make|mend|mount|name|pack|prepare|preview|print|"
				    "push|put|read|rebase|"
				    "remove|run|save|say|set|show|start|stay|tell|unpack|use|work|"
				    "write";
	char word[16] = "";
	size_t n = strcspn(s, " ,.");

	if (n >= sizeof(word))
		return false;
	memcpy(word, s, n);
	if (word[0] >= 'A' && word[0] <= 'Z')
		word[0] = (char)(word[0] + 32);
	return rules_list_has(verbs, word);
}

/* What happens comes first; somewhere behind it stands what to do instead. */
static bool has_advice(const char *say)
{
	for (const char *at = say; (at = strpbrk(at, ".;:")) != NULL; at++)
		if (at[1] == ' ' && is_advice(at + 2))
			return true;
	return false;
}

TEST(every_rule_says_what_to_do_instead)
{
	const struct rules *r = rules_built_in();
	_cleanup_(arena_done) struct arena mem = ARENA(MIB);
	struct judgement j;
	struct guard g;

	CHECK(!has_advice("This deletes it. The user decides about that."));
	CHECK(!has_advice("Name it."));
	CHECK(has_advice("This deletes it. The user decides; name what is to go."));
	CHECK(r->n_rules > 200);
	for (size_t i = 0; i < r->n_rules; i++) {
		const char *say = r->rules[i].say;
		bool is_whole = say && say[0] && say[strlen(say) - 1] == '.' && has_advice(say);

		if (r->rules[i].verdict == VERDICT_ALLOW)
			continue;
		if (!is_whole)
			(void)fprintf(stderr, "%s: no alternative in '%s'\n", r->rules[i].id,
				      say ? say : "");
		CHECK(is_whole);
	}
	/* The one question that no rule asks. */
	guard_init_plain(&g, "/home/u", "/home/u/project");
	g.level = LEVEL_STRICT;
	guard_command(&g, &mem, "make", 4, &j);
	CHECK_STR(j.rule, "strict.unknown");
	CHECK(has_advice(j.say));
}

/* Commands that the sentences name as the better way. */
TEST(what_is_recommended_is_not_stopped)
{
	static const char *const commands[] = {
		"git stash",
		"git reset --keep HEAD~1",
		"git merge --abort",
		"git diff",
		"git switch main",
		"git show HEAD~1:a.c > copy",
		"git clean -n",
		"git push --force-with-lease origin mine",
		"git branch -d old",
		"git rm a.c",
		"git worktree remove ../w",
		"git revert HEAD",
		"git init new",
		"sed 's/=.*/=***/' .env",
		"grep -c TOKEN .env",
		"cut -d= -f1 .env",
		"cargo publish --dry-run",
		"gem build x.gemspec",
		"mvn verify",
		"gradle build",
		"dotnet pack",
		"vercel",
		"python3 -m venv .venv",
		"uv add x",
		"crontab -l",
		"lsmod",
		"sysctl -n vm.swappiness",
		"kubectl get pods",
		"aws s3 rm s3://b/x --recursive --dryrun",
		"aws ec2 describe-instances",
		"az vm list",
		"gcloud compute instances describe x",
		"heroku info",
		"heroku pg:info",
		"helm status x",
		"helm history x",
		"pulumi preview",
		"python manage.py test",
		"python manage.py migrate",
		"docker compose down",
		"dpkg -x a.deb out",
		"curl http://localhost:9200/_cat/indices",
		"find . -name '*.tmp' -print",
		"rsync -an --delete src/ dst/",
	};

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
		struct judgement j;
		struct guard g;

		guard_init_plain(&g, "/home/u", "/home/u/project");
		guard_command(&g, &mem, commands[i], strlen(commands[i]), &j);
		if (j.verdict != VERDICT_ALLOW)
			(void)fprintf(stderr, "%s: %s by %s\n", commands[i],
				      verdict_name(j.verdict), j.rule);
		CHECK_INT(j.verdict, VERDICT_ALLOW);
	}
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
