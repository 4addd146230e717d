/* SPDX-License-Identifier: Apache-2.0 */
/* policy/merge_test.c - files into the policy: layers, widening, and the exact words of every refusal */
#include "base/test.h"
#include "policy/table.h"

static int merge(struct policy *p, const char *text, enum layer layer, bool may_widen,
		 struct err *e)
{
	*e = ERR_INIT;
	return policy_merge_text(p, ".vitrine.jsonc", text, strlen(text), layer, may_widen, e);
}

/* As a user's file; must go in. */
static void user(struct policy *p, const char *text)
{
	struct err e;

	if (merge(p, text, LAYER_USER, true, &e) < 0)
		CHECK_STR(e.msg, text);
}

/* As an untrusted project file on the built-in layer (plus `before` as the user's). "": must go in. */
static void project(const char *before, const char *text, const char *want)
{
	_cleanup_(policy_done) struct policy p;
	struct err e;
	int r;

	policy_init(&p);
	if (before)
		user(&p, before);
	r = merge(&p, text, LAYER_PROJECT, false, &e);
	CHECK((r < 0) == (want[0] != '\0'));
	CHECK_STR(e.msg, want);
	if (r < 0)
		CHECK_INT(e.kind, ERR_CONFIG);
}

/* Wrong in every layer. */
static void bad(const char *text, const char *want)
{
	_cleanup_(policy_done) struct policy p;
	struct err e;

	policy_init(&p);
	CHECK(merge(&p, text, LAYER_USER, true, &e) < 0);
	CHECK_STR(e.msg, want);
	CHECK_INT(e.kind, ERR_CONFIG);
}

TEST(whole_file)
{
	static const char text[] = "{\n"
				   "  \"$schema\": \"policy.schema.json\",\n"
				   "  \"workspace\": { \"path\": \"/w\", \"mode\": \"review\" },\n"
				   "  \"files\": { \"read\": [\"/opt/a\", \"~/b\"], \"write\": "
				   "[\"/srv/c\"], \"mount\": [\"/x:/y:ro\"],\n"
				   "    \"hide\": [\"*.sqlite\", \"!.env\"], \"protect\": "
				   "[\"Makefile\"], \"home\": \"tmp\", \"tmp\": \"private\" },\n"
				   "  \"network\": { \"mode\": \"gate\" },\n"
				   "  \"sockets\": [\"/run/x.sock\"],\n"
				   "  \"limits\": { \"memory\": \"2g\", \"cpus\": 1.5, \"pids\": "
				   "100, \"time\": \"10m,optional\", \"disk\": \"none\" },\n"
				   "  \"env\": { \"pass\": [\"FOO\"], \"set\": { \"K\": \"a=b\" } "
				   "},\n"
				   "  \"engine\": \"native\", // the built-in one\n"
				   "  \"features\": { \"debug\": true },\n"
				   "}\n";
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	user(&p, text);
	CHECK_STR(p.workspace, "/w");
	CHECK(p.mode == WS_REVIEW && p.mode_origin == LAYER_USER);
	CHECK_INT(p.read.n, 2);
	CHECK_STR(p.read.v[1].text, "~/b");
	CHECK_STR(p.write.v[0].text, "/srv/c");
	CHECK_STR(p.mount.v[0].text, "/x:/y:ro");
	CHECK_INT(items_match(&p.hide, ".env"), -1);
	CHECK(items_match(&p.hide, "a/b.sqlite") >= 0);
	CHECK(items_match(&p.protect, "Makefile") >= 0);
	CHECK_INT(p.home, HOME_TMP);
	CHECK_INT(p.network, NET_GATE);
	CHECK_STR(p.sockets.v[0].text, "/run/x.sock");
	CHECK_INT(p.limits[LIMIT_MEMORY].max, 2 * GIB);
	CHECK(!p.limits[LIMIT_MEMORY].is_optional);
	CHECK_INT(p.limits[LIMIT_CPUS].max, 1500);
	CHECK_INT(p.limits[LIMIT_PIDS].max, 100);
	CHECK(p.limits[LIMIT_TIME].is_optional);
	CHECK(!p.limits[LIMIT_DISK].is_set && p.limits[LIMIT_DISK].is_widened);
	CHECK(policy_env_passes(&p, "FOO"));
	CHECK_STR(p.env_set.v[0].text, "K=a=b");
	CHECK_INT(p.engine_origin, LAYER_BUILTIN); /* stated, not changed */
	CHECK(p.debug);
	CHECK_INT(policy_validate(&p, &e), 0);
}

TEST(unknown_keys)
{
	bad("{\n \"limits\": {\n  \"time\": 1, \"memroy\": \"2g\" } }", ".vitrine.jsonc:3:14: "
									"unknown key \"memroy\" in "
									"limits; did you mean "
									"\"memory\"?");
	bad("{ \"limit\": {} }", ".vitrine.jsonc:1:3: unknown key \"limit\"; did you mean "
				 "\"limits\"?");
	bad("{ \"file\": {} }", ".vitrine.jsonc:1:3: unknown key \"file\"; did you mean "
				"\"files\"?");
	bad("{ \"zzzzzz\": {} }", ".vitrine.jsonc:1:3: unknown key \"zzzzzz\"; known: workspace, "
				  "files, network, inspect, git, secrets, sockets, limits, events, "
				  "env, tools, broker, engine, "
				  "isolation, "
				  "features");
	bad("{ \"env\": { \"allow\": [] } }", ".vitrine.jsonc:1:12: unknown key \"allow\" in env; "
					      "known: pass, set");
	bad("{ \"env\": { \"pass.x\": [] } }", ".vitrine.jsonc:1:12: unknown key \"pass.x\" in "
					       "env; did you mean \"pass\"?");
	bad("{ \"memory\": \"2g\" }", ".vitrine.jsonc:1:3: unknown key \"memory\"; known: "
				      "workspace, files, network, inspect, git, secrets, sockets, "
				      "limits, events, env, tools, broker, "
				      "engine, "
				      "isolation, "
				      "features");
	bad("{ \"$schema\": 1 }", ".vitrine.jsonc:1:3: unknown key \"$schema\"; known: workspace, "
				  "files, network, inspect, git, secrets, sockets, limits, events, "
				  "env, tools, broker, engine, "
				  "isolation, "
				  "features");
}

TEST(wrong_types)
{
	bad("[]", ".vitrine.jsonc:1:1: a policy is an object, not a list");
	bad("{ \"limits\": [] }", ".vitrine.jsonc:1:13: limits must be an object, not a list");
	bad("{ \"limits\": { \"memory\": true } }", ".vitrine.jsonc:1:25: limits.memory must be a "
						    "string such as \"2g\" or \"none\", or a "
						    "number, not true or false");
	bad("{ \"files\": { \"read\": \"/x\" } }", ".vitrine.jsonc:1:22: files.read must be a list "
						   "of strings, not a string");
	bad("{ \"files\": { \"read\": [\"/x\", 3] } }", ".vitrine.jsonc:1:29: files.read must be a "
							"list of strings, not a number");
	bad("{ \"env\": { \"set\": [] } }", ".vitrine.jsonc:1:19: env.set must be an object of "
					    "strings, not a list");
	bad("{ \"env\": { \"set\": {\"A\": 1} } }", ".vitrine.jsonc:1:25: env.set must be an "
						    "object of strings, not a number");
	bad("{ \"features\": { \"debug\": \"true\" } }", ".vitrine.jsonc:1:26: features.debug must "
							 "be true or false, not a string");
	bad("{ \"engine\": true }", ".vitrine.jsonc:1:13: engine must be a string, not true or "
				    "false");
	bad("{ \"workspace\": { \"path\": 1 } }", ".vitrine.jsonc:1:26: workspace.path must be a "
						  "string, not a number");
}

TEST(wrong_values)
{
	bad("{ \"limits\": { \"memory\": \"2x\" } }", ".vitrine.jsonc:1:25: limits.memory: '2x' is "
						      "not a size such as 512m or 2g");
	bad("{ \"limits\": { \"memory\": -1 } }", ".vitrine.jsonc:1:25: limits.memory: '-1' is not "
						  "a size such as 512m or 2g");
	bad("{ \"limits\": { \"memory\": \"1m\" } }", ".vitrine.jsonc:1:25: limits.memory: '1m' is "
						      "outside 4m..1024t; \"none\" lifts the "
						      "limit");
	bad("{ \"limits\": { \"time\": \"5\\u001b[2J\" } }", ".vitrine.jsonc:1:23: limits.time: "
							     "'5\\x1b[2J' is not a time such as "
							     "90s, 10m or 2h");
	bad("{ \"workspace\": { \"mode\": \"clon\" } }", ".vitrine.jsonc:1:26: workspace.mode: "
							 "unknown value \"clon\"; did you mean "
							 "\"clone\"?");
	bad("{ \"files\": { \"hide\": [\"/etc\"] } }", ".vitrine.jsonc:1:23: files.hide: a pattern "
						       "is relative to the workspace, it cannot "
						       "begin with '/'");
	bad("{ \"files\": { \"read\": [\"../x\"] } }", ".vitrine.jsonc:1:23: files.read: must be "
						       "an absolute path (or ~/...) without '.', "
						       "'..' or a slash at the end");
	bad("{ \"env\": { \"set\": {\"A=B\": \"1\"} } }", ".vitrine.jsonc:1:20: env.set: the name "
							  "of a variable cannot hold '='");
	bad("{ \"env\": { \"set\": {\"A\": \"1\", \"\": \"2\"} } }", ".vitrine.jsonc:1:30: "
								     "env.set: must be the name of "
								     "a variable and its value");
	bad("{ \"limits\": { \"pids\": 5, } } x", ".vitrine.jsonc:1:30: 'x' where the end should "
						  "be");
}

TEST(what_runs_outside_is_the_users)
{
	project(NULL, "{ \"broker\": { \"push\": [\"https://h/x refs/heads/y\"] } }",
		".vitrine.jsonc:1:24: broker.push: only your own policy file and flags can let "
		"something run outside");
	project(NULL, "{ \"broker\": { \"commands\": {\"x\": \"/bin/x\"} } }",
		".vitrine.jsonc:1:28: broker.commands: only your own policy file and flags can let "
		"something run outside");
	project("{ \"broker\": { \"fetch\": [\"https://h/x\"] } }",
		"{ \"broker\": { \"fetch\": [\"!https://h/x\"] } }", "");
	project(NULL, "{ \"tools\": { \"use\": \"always\" } }", "");
}

TEST(project_does_not_decide_what_is_kept)
{
	project(NULL, "{ \"events\": { \"max_age\": \"1h\" } }",
		".vitrine.jsonc:1:26: events.max_age: a project file cannot choose what is kept on "
		"record");
}

TEST(project_can_tighten)
{
	project(NULL, "{}", "");
	project(NULL,
		"{ \"limits\": { \"memory\": \"1g\", \"pids\": 10, \"time\": \"5m,optional\" } }",
		"");
	project(NULL,
		"{ \"files\": { \"hide\": [\"*.key\"], \"protect\": [\"ci\"], \"home\": \"tmp\" } "
		"}",
		"");
	project(NULL, "{ \"workspace\": { \"mode\": \"clone\" } }", "");
	project(NULL, "{ \"env\": { \"pass\": [\"!USER\", \"PATH\"] } }", "");
	project("{ \"files\": { \"read\": [\"/opt\"] } }",
		"{ \"files\": { \"read\": [\"/opt\", \"!/opt\"] } }", "");
	project("{ \"network\": { \"mode\": \"gate\" } }",
		"{ \"network\": { \"mode\": \"none\" } }", "");
	project("{ \"features\": { \"debug\": true } }", "{ \"features\": { \"debug\": false } }",
		"");
	project("{ \"limits\": { \"memory\": \"1g\" } }", "{ \"limits\": { \"memory\": \"1g\" } }",
		"");
	project("{ \"workspace\": { \"mode\": \"review\" } }",
		"{ \"workspace\": { \"mode\": \"clone\" } }", "");
}

#define WIDENS(place, key)                                                                         \
	".vitrine.jsonc:" place ": " key " would widen the policy; a project file can only "       \
	"tighten. "                                                                                \
	"Run 'vitrine trust' to allow exactly this content"

TEST(project_cannot_widen)
{
	project(NULL, "{ \"files\": { \"read\": [\n    \"/opt\"] } }", WIDENS("2:5", "files.read"));
	project(NULL, "{ \"files\": { \"write\": [\"/opt\"] } }", WIDENS("1:24", "files.write"));
	project(NULL, "{ \"files\": { \"mount\": [\"/a:/b:ro\"] } }",
		WIDENS("1:24", "files.mount"));
	project(NULL, "{ \"sockets\": [\"/run/x\"] }", WIDENS("1:15", "sockets"));
	project(NULL, "{ \"files\": { \"hide\": [\"!.env\"] } }", WIDENS("1:23", "files.hide"));
	project(NULL, "{ \"files\": { \"protect\": [\"!.git\"] } }",
		WIDENS("1:26", "files.protect"));
	project(NULL, "{ \"network\": { \"mode\": \"gate\" } }", WIDENS("1:24", "network.mode"));
	project(NULL, "{ \"env\": { \"pass\": [\"SSH_AUTH_SOCK\"] } }", WIDENS("1:21", "env.pass"));
	project(NULL, "{ \"env\": { \"set\": {\"LD_PRELOAD\": \"x\"} } }",
		WIDENS("1:20", "env.set"));
	project(NULL, "{ \"features\": { \"debug\": true } }", WIDENS("1:26", "features.debug"));
	project(NULL, "{ \"limits\": { \"pids\": \"none\" } }", WIDENS("1:23", "limits.pids"));
	project(NULL, "{ \"limits\": { \"pids\": 5000 } }", WIDENS("1:23", "limits.pids"));
	project("{ \"limits\": { \"memory\": \"1g\" } }", "{ \"limits\": { \"memory\": \"2g\" } }",
		WIDENS("1:25", "limits.memory"));
	project("{ \"limits\": { \"memory\": \"1g\" } }",
		"{ \"limits\": { \"memory\": \"500m,optional\" } }",
		WIDENS("1:25", "limits.memory"));
	project("{ \"workspace\": { \"mode\": \"review\" } }",
		"{ \"workspace\": { \"mode\": \"direct\" } }", WIDENS("1:26", "workspace.mode"));
	project("{ \"files\": { \"home\": \"tmp\" } }", "{ \"files\": { \"home\": \"private\" } }",
		WIDENS("1:22", "files.home"));
	project("{ \"env\": { \"pass\": [\"!PATH\"] } }", "{ \"env\": { \"pass\": [\"PATH\"] } }",
		WIDENS("1:21", "env.pass"));
	project(NULL, "{ \"workspace\": { \"path\": \"/\" } }",
		".vitrine.jsonc:1:26: workspace.path: a project file cannot choose the workspace");
}

/* In one file, too: a value may not be lowered to be raised again, nor taken back what the file itself closed. */
TEST(project_cannot_undo_itself_into_more)
{
	project(NULL, "{ \"files\": { \"hide\": [\"x\", \"!x\"] } }", WIDENS("1:28", "files.hide"));
}

TEST(trusted_project_may_widen)
{
	_cleanup_(policy_done) struct policy p;
	struct err e;

	policy_init(&p);
	CHECK_INT(merge(&p,
			"{ \"network\": { \"mode\": \"gate\" }, \"files\": { \"read\": [\"/opt\"] "
			"} }",
			LAYER_PROJECT, true, &e),
		  0);
	CHECK(p.network == NET_GATE && p.network_origin == LAYER_PROJECT);
	CHECK_INT(p.read.v[0].origin, LAYER_PROJECT);
	CHECK(p.widened & BIT(SETTING_NETWORK));
	CHECK(merge(&p, "{ \"workspace\": { \"path\": \"/x\" } }", LAYER_PROJECT, true, &e) < 0);
}

TEST(messages_are_safe_to_show)
{
	_cleanup_(policy_done) struct policy p;
	char name[3000], *n = name;
	struct err e = ERR_INIT;
	static const char text[] = "{ \"a\\u001b]0;x\\u0007\": 1 }";

	policy_init(&p);
	CHECK(policy_merge_text(&p, "dir\n\x1b[1m/f", text, strlen(text), LAYER_USER, true, &e) <
	      0);
	CHECK(str_starts(e.msg, "dir\\n\\x1b[1m/f:1:3: unknown key \"a\\x1b]0;x\\x07\"; known: "));
	memset(n, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(policy_merge_text(&p, name, text, strlen(text), LAYER_USER, true, &e) < 0);
	CHECK(strstr(e.msg, "ddd:1:3: unknown key") !=
	      NULL); /* a long path does not push the place out */
}

TEST_MAIN()
