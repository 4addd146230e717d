/* SPDX-License-Identifier: Apache-2.0 */
/* guard/install_test.c - settings with our entry in and out again, and what a record keeps to itself */
#include "base/redact.h"
#include "base/test.h"
#include "guard/install.h"

static char *edited(enum agent a, const char *text, const char *program)
{
	struct buf out = BUF(MIB);
	struct err e = ERR_INIT;

	if (install_edit(a, text, strlen(text), program, &out, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.msg);
		buf_done(&out);
		return mem_str("");
	}
	return buf_take(&out);
}

TEST(in_twice_and_out_leaves_what_was_there)
{
	static const char before[] = "{\"model\": \"x\", \"hooks\": {\"PreToolUse\": "
				     "[{\"matcher\": \"Bash\", \"hooks\": []}], "
				     "\"Stop\": []}, \"n\": 1.5}";
	_free_ char *in = edited(AGENT_CLAUDE, before, "/usr/bin/vitrine");
	_free_ char *twice = edited(AGENT_CLAUDE, in, "/opt/vitrine");
	_free_ char *out = edited(AGENT_CLAUDE, twice, NULL);
	_free_ char *same = edited(AGENT_CLAUDE, before, NULL);

	CHECK(strstr(in, "'/usr/bin/vitrine' hook --agent claude") != NULL);
	CHECK(strstr(in, "\"onFailure\": \"block\"") != NULL);
	CHECK(strstr(twice, "'/opt/vitrine' hook --agent claude") != NULL);
	CHECK(strstr(twice, "/usr/bin/vitrine") == NULL);
	CHECK_STR(out, same);
	CHECK(strstr(out, "\"n\": 1.5") != NULL);
}

TEST(every_agent_from_nothing)
{
	static const enum agent agents[] = { AGENT_CLAUDE, AGENT_CODEX, AGENT_GEMINI, AGENT_COPILOT,
					     AGENT_CURSOR, AGENT_DROID, AGENT_QWEN,   AGENT_GOOSE };

	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		_free_ char *in = edited(agents[i], "{}", "/v");
		_free_ char *out = edited(agents[i], in, NULL);

		CHECK(strstr(in, "'/v' hook --agent") != NULL);
		CHECK_STR(out, "{}\n");
	}
}

TEST(extensions_name_the_program)
{
	static const enum agent agents[] = { AGENT_OPENCODE, AGENT_PI };

	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		_cleanup_(buf_done) struct buf out = BUF(MIB);
		_free_ char *own = mem_fmt("\"--agent\", \"%s\"", agent_name(agents[i]));
		struct err e = ERR_INIT;

		CHECK_INT(install_text(agents[i], NULL, "/opt/v \"x\"", &out, &e), 0);
		CHECK(strstr(buf_cstr(&out), "const VITRINE = \"/opt/v \\\"x\\\"\"\n") != NULL);
		CHECK(strstr(buf_cstr(&out), own) != NULL);
		CHECK(strstr(buf_cstr(&out), "@VITRINE@") == NULL);
	}
}

TEST(comments_are_not_lost)
{
	struct buf out = BUF(KIB);
	struct err e = ERR_INIT;
	static const char text[] = "{ // mine\n}";

	CHECK(install_edit(AGENT_CLAUDE, text, strlen(text), "/v", &out, &e) < 0);
	CHECK(strstr(e.msg, "comments") != NULL);
	buf_done(&out);
}

TEST(secrets_stay_out_of_the_record)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "ls -la", "ls -la" },
		{ "TOKEN=hunter2 make", "TOKEN=*** make" },
		{ "export MY_API_KEY='a b'; x", "export MY_API_KEY=***; x" },
		{ "curl -H \"Authorization: Bearer abc.def\" u", "curl -H \"Authorization: Bearer "
								 "***\" u" },
		{ "curl --password hunter2 x", "curl --password *** x" },
		{ "git clone https://me:pw@host/r", "git clone https://me:***@host/r" },
		{ "echo sk-abcdefghijklmnop", "echo ***" },
		{ "echo ghp_abcdefghijklmnop1234", "echo ***" },
		{ "git commit -m 'tokenizer'", "git commit -m 'tokenizer'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(buf_done) struct buf b = BUF(KIB);

		redact(cases[i].text, 1000, &b);
		CHECK_STR(buf_cstr(&b), cases[i].want);
	}
}

TEST(settings_that_hold_a_token_themselves)
{
	static const char *const with[] = {
		"//r.example/:_authToken=abcd-1234\n",
		"registry=https://r.example/\n_auth = bWU6cHc=\n",
		"npmAuthToken: \"abcd1234\"\n",
		"npmAuthIdent: \"me:secret\"\n",
		"[global]\nindex-url = https://me:hunter2@r.example/simple\n",
		"<add key=\"ClearTextPassword\" value=\"hunter2\" />",
		"{ \"http-basic\": { \"h\": { \"password\": \"hunter2\" } } }",
		"credentials \"h\" {\n  token = \"abcd.atlasv1.x\"\n}",
		"key=\"-----BEGIN PRIVATE KEY-----\\nabc\"",
		"x = npm_abcdefghijklmn",
	};
	static const char *const without[] = {
		"",
		"registry=https://r.example/\nalways-auth=true\nsave-exact=true\n",
		"//r.example/:_authToken=${NPM_TOKEN}\n",
		"npmAuthToken: \"${NPM_TOKEN}\"\n",
		"npmAuthToken:\n",
		"index-url = https://${USER}:${TOKEN}@r.example/simple\n",
		"token-helper = none\npassword = null\n",
		"yarnPath: .yarn/releases/yarn-4.cjs\nnodeLinker: node-modules\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(with); i++)
		if (!redact_has_token(with[i]))
			CHECK_STR("nothing", with[i]);
	for (size_t i = 0; i < ARRAY_LEN(without); i++)
		if (redact_has_token(without[i]))
			CHECK_STR("a token", without[i]);
}

TEST_MAIN()
