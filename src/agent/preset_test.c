/* SPDX-License-Identifier: Apache-2.0 */
/* agent/preset_test.c - reading presets strictly, the commands they make, the built-in ones, the user's own */
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/preset.h"
#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "policy/policy.h"

static int parse(const char *text, struct preset *p, struct err *e)
{
	*e = ERR_INIT;
	return preset_parse("x", "x.json", text, strlen(text), p, e);
}

/* Refused, and with these words. */
static void refused(const char *text, const char *words)
{
	struct preset p = { 0 };
	struct err e;

	CHECK(parse(text, &p, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFIG);
	if (strstr(e.msg, words) == NULL) {
		CHECK_STR(e.msg, words);
	}
}

#define HEAD "{ \"summary\": \"s\", \"command\": [\"a\", \"b\"]"

TEST(strict)
{
	refused("[]", "x.json:1:1: a preset is an object, not a list");
	refused("{", "x.json:1:");
	refused("{}", "needs a \"command\"");
	refused("{ \"command\": [\"a\"] }", "needs a \"summary\"");
	refused("{ \"command\": [] }", "needs a \"command\"");
	refused(HEAD ",\n \"secret\": [] }", "x.json:2:2: unknown key \"secret\"; did you mean "
					     "\"secrets\"?");
	refused(HEAD ", \"zzzzzzzz\": 1 }", "known: summary, command");
	refused(HEAD ", \"free\": \"--x\" }", "free must be a list of strings, not a string");
	refused(HEAD ", \"free\": [1] }", "free must be a list of strings, not a number");
	refused(HEAD ", \"busy\": [\"\"] }", "busy holds an empty string");
	refused(HEAD ", \"prompt\": [\"a\"] }", "must hold the word \"{prompt}\"");
	refused(HEAD ", \"begin\": [\"a\"] }", "begin must hold the word \"{prompt}\"");
	refused(HEAD ", \"policy\": [] }", "policy must be an object");
	refused(HEAD ", \"share\": [\"/etc\"] }", "share takes paths below the home");
	refused(HEAD ", \"share\": [\"~/../x\"] }", "share takes paths below the home");
	refused(HEAD ", \"seed\": { \"../x\": {} } }", "must be a path below the home");
	refused(HEAD ", \"seed\": { \"/etc/x\": {} } }", "must be a path below the home");
	refused(HEAD ", \"seed\": { \"a//b\": {} } }", "must be a path below the home");
	refused(HEAD ", \"seed\": { \"a\": \"text\" } }", "seed must be an object or a list of "
							  "lines");
	refused(HEAD ", \"seed\": { \"a\": [1] } }", "seed must be");
	refused(HEAD ", \"etc\": { \"../x\": {} } }", "must be a path below /etc");
	refused(HEAD ", \"etc\": { \"a\": 1 } }", "etc must be an object or a list");
	refused(HEAD ", \"report\": { \"tokens\": \"x\" } }", "unknown key \"tokens\"");
	refused(HEAD ", \"report\": { \"when\": \"x\" } }", "MEMBER=VALUE");
}

TEST(policy_inside_knows_its_place)
{
	struct policy policy;
	struct preset p = { 0 };
	struct err e;

	CHECK_INT(parse(HEAD ",\n\"policy\": {\n  \"network\": { \"alow\": [] } } }", &p, &e), 0);
	policy_init(&policy);
	CHECK(preset_apply(&p, &policy, &e) < 0);
	CHECK_STR(e.msg, "x.json:3:16: unknown key \"alow\" in network; did you mean \"allow\"?");
	policy_done(&policy);
	preset_done(&p);
}

static char *joined(const char **argv)
{
	struct buf b = BUF(4 * KIB);

	for (size_t i = 0; argv[i]; i++)
		buf_printf(&b, "%s%s", i ? " " : "", argv[i]);
	free(argv);
	return buf_take(&b);
}

#define COMMAND(want, ...)                                                                         \
	do {                                                                                       \
		const char *words_[] = { NULL, ##__VA_ARGS__, NULL };                              \
		_free_ char *line_ =                                                               \
			joined(preset_command(&p, (char *const *)(uintptr_t)(words_ + 1)));        \
		CHECK_STR(line_, want);                                                            \
	} while (0)

#define BEGIN(want, has_terminal, ...)                                                             \
	do {                                                                                       \
		const char *words_[] = { __VA_ARGS__, NULL };                                      \
		_free_ char *line_ =                                                               \
			joined(preset_begin(&p, (char *const *)(uintptr_t)words_, has_terminal));  \
		CHECK_STR(line_, want);                                                            \
	} while (0)

TEST(commands)
{
	struct preset p = { 0 };
	const char **argv = NULL;
	struct err e;

	CHECK_INT(parse(HEAD ", \"free\": [\"--go\", \"on\"], \"prompt\": [\"a\", \"-p\", "
			     "\"{prompt}\", \"-z\"] }",
			&p, &e),
		  0);
	COMMAND("a b --go on");
	COMMAND("a b --go on -p hi", "-p", "hi");
	COMMAND("ls -l", "ls", "-l");
	/* Every agent's word for it. */
	COMMAND("a b --go on", "--dsp");
	COMMAND("a b --go on -p hi", "--dangerously-skip-permissions", "-p", "hi");
	COMMAND("a b --go on -p hi -v", "-p", "hi", "--yolo", "-v", "--trust-all-tools");
	COMMAND("a exec --go on hi", "a", "exec", "--dsp", "hi");
	COMMAND("a exec --go on hi", "a", "exec", "--dsp", "hi", "--yolo");
	/* Its own words are given once, wherever they come from: codex refuses an option that is given twice. */
	COMMAND("a b --go on -p hi", "--go", "-p", "hi");
	COMMAND("env a exec --go on hi", "env", "a", "exec", "--yolo", "--go", "hi");
	COMMAND("a exec --go on -- --yolo --go", "a", "exec", "--dsp", "--", "--yolo", "--go");
	BEGIN("a b --go on do it", true, "do it");
	BEGIN("a -p do it -z -v", false, "do it", "-v");
	CHECK_INT(preset_check_free(&p, &e), 0);
	CHECK_INT(preset_prompt(&p, "do it", &argv, &e), 0);
	_free_ char *got = joined(argv);

	CHECK_STR(got, "a -p do it -z");
	preset_done(&p);

	/* One that has its word only where it gets a prompt. */
	CHECK_INT(parse(HEAD ", \"free\": [], \"prompt\": [\"a\", \"x\", \"--yolo\", \"{prompt}\"] "
			     "}",
			&p, &e),
		  0);
	COMMAND("a b", "--dsp");
	COMMAND("a x --yolo hi", "a", "x", "--dsp", "hi");
	COMMAND("a x --yolo hi", "a", "x", "--yolo", "hi");
	preset_done(&p);

	CHECK_INT(parse(HEAD ", \"free\": [\"-y\"], \"begin\": [\"a\", \"-i\", \"{prompt}\"] }", &p,
			&e),
		  0);
	BEGIN("a -i do it -v", true, "do it", "-v");
	BEGIN("a -i do it", false, "do it"); /* it says nothing of working alone */
	preset_done(&p);

	CHECK_INT(parse(HEAD " }", &p, &e), 0);
	BEGIN("a b do it", true, "do it");
	COMMAND("a b --dsp", "--dsp"); /* nobody's word for anything here */
	CHECK(preset_check_free(&p, &e) < 0 && e.kind == ERR_USAGE);
	CHECK(preset_prompt(&p, "x", &argv, &e) < 0 && e.kind == ERR_CONFIG);
	preset_done(&p);
}

static const char *variable(const void *arg, const char *name, size_t n)
{
	return n == 3 && strncmp(name, "KEY", 3) == 0 ? arg : NULL;
}

TEST(seeds)
{
	struct preset_fill quoted = { .workspace = "/w \"q\"" }, plain = {
		.workspace = "/w", .variable = variable, .arg = "sk-0-abcdefghijklmnopqrst"
	};
	struct preset p = { 0 };
	struct err e;
	_cleanup_(buf_done) struct buf a = BUF(KIB), b = BUF(KIB);

	CHECK_INT(parse(HEAD ", \"seed\": { \"a.json\": { \"n\": 1, \"b\": [true, null, "
			     "\"{workspace}\"], \"{workspace}\": {} },"
			     "\"b.toml\": [\"x = \\\"{workspace}/y\\\"\", \"\", \"z\", \"{end:KEY} "
			     "{end:NO}{ {end:\"] } }",
			&p, &e),
		  0);
	preset_seed_text(json_get(p.seed, "a.json"), &quoted, &a);
	CHECK_STR(buf_cstr(&a), "{\"n\":1,\"b\":[true,null,\"/w \\\"q\\\"\"],\"/w "
				"\\\"q\\\"\":{}}\n");
	preset_seed_text(json_get(p.seed, "b.toml"), &plain, &b);
	CHECK_STR(buf_cstr(&b), "x = \"/w/y\"\n\nz\nabcdefghijklmnopqrst { {end:\n");
	preset_done(&p);
}

/* Each is found, applies to a policy, and is valid there; an agent has what an agent needs. */
TEST(built_in)
{
	char **names = NULL;
	struct err e = ERR_INIT;
	size_t n = 0;

	CHECK_INT(preset_names(NULL, &names, &e), 0);
	for (; names && names[n]; n++) {
		struct policy policy;
		struct preset p = { 0 };

		CHECK_INT(preset_load(NULL, names[n], &p, &e), 0);
		CHECK_STR(p.name, names[n]);
		CHECK_STR(p.origin, PRESET_BUILTIN);
		policy_init(&policy);
		if (preset_apply(&p, &policy, &e) < 0 || policy_validate(&policy, &e) < 0)
			CHECK_STR(e.msg, "");
		CHECK(p.prompt != NULL);
		if (!str_eq(p.name, "shell")) {
			CHECK(p.free != NULL && p.install != NULL);
			CHECK_INT(policy.network, NET_GATE);
			CHECK(policy.net_allow.n > 0);
			CHECK_INT(policy.net_preset, LEVEL_NONE);
		}
		policy_done(&policy);
		preset_done(&p);
	}
	CHECK_INT(n, 17);
	preset_names_free(names);
	struct preset none = { 0 };
	CHECK_INT(preset_load(NULL, "nobody", &none, &e), -ENOENT);
	CHECK(preset_is_there(NULL, "claude") && !preset_is_there(NULL, "nobody") &&
	      !preset_is_there("/", "../etc/passwd"));
}

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	_free_ char *path = mem_fmt("%s/agents/%s", dir, name);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

TEST(users_own)
{
	char dir[] = "/tmp/preset-test-XXXXXX";
	struct preset p = { 0 };
	struct err e = ERR_INIT;
	char **names = NULL;
	size_t n = 0;

	CHECK(mkdtemp(dir) != NULL);
	_free_ char *agents = mem_fmt("%s/agents", dir);
	CHECK_INT(mkdir(agents, 0700), 0);
	put(dir, "claude.json", HEAD " }", 0600);
	put(dir, "mine.json", "{ \"summary\": 1 }", 0600);
	put(dir, "open.json", HEAD " }", 0666);
	put(dir, "README", "", 0600);
	CHECK_INT(preset_load(dir, "claude", &p, &e), 0);
	CHECK_STR(preset_program(&p), "a");
	preset_done(&p);
	CHECK(preset_load(dir, "mine", &p, &e) < 0 && strstr(e.msg, "/agents/mine.json:1:14: "
								    "summary must be a string"));
	CHECK(preset_load(dir, "open", &p, &e) < 0 && strstr(e.msg, "can be written by others"));
	CHECK_INT(preset_load(dir, "codex", &p, &e), 0);
	preset_done(&p);
	CHECK(preset_is_there(dir, "mine"));
	CHECK_INT(preset_names(dir, &names, &e), 0);
	while (names[n])
		n++;
	CHECK_INT(n, 19);
	preset_names_free(names);
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

TEST_MAIN()
