/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook_test.c - each agent's words: what is read from them, what is answered */
#include "base/test.h"
#include "guard/hook.h"

#define COMMAND "\"command\":\"git reset --hard\""

static const struct {
	const char *text;
	enum agent agent;
	const char *cwd;
} calls[] = {
	{ "{\"session_id\":\"s\",\"transcript_path\":\"/h/.claude/t\",\"cwd\":\"/"
	  "w\",\"permission_mode\":\"default\","
	  "\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{" COMMAND
	  "},\"tool_use_id\":\"x\"}",
	  AGENT_CLAUDE, "/w" },
	{ "{\"session_id\":\"s\",\"turn_id\":\"t\",\"model\":\"m\",\"transcript_path\":null,"
	  "\"cwd\":\"/w\","
	  "\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{" COMMAND "}}",
	  AGENT_CODEX, "/w" },
	{ "{\"session_id\":\"s\",\"cwd\":\"/"
	  "w\",\"hook_event_name\":\"BeforeTool\",\"timestamp\":\"t\","
	  "\"tool_name\":\"run_shell_command\",\"tool_input\":{" COMMAND ",\"directory\":\"/w/"
	  "sub\"}}",
	  AGENT_GEMINI, "/w/sub" },
	{ "{\"sessionId\":\"s\",\"timestamp\":1.7e12,\"cwd\":\"/w\",\"toolName\":\"bash\","
	  "\"toolArgs\":\"{\\\"command\\\":\\\"git reset --hard\\\"}\"}",
	  AGENT_COPILOT, "/w" },
	{ "{\"sessionId\":\"s\",\"timestamp\":1700000000000,\"cwd\":\"/"
	  "w\",\"toolName\":\"bash\",\"toolArgs\":{" COMMAND "}}",
	  AGENT_COPILOT, "/w" },
	{ "{\"conversation_id\":\"s\",\"generation_id\":\"g\",\"hook_event_name\":"
	  "\"beforeShellExecution\","
	  "\"cursor_version\":\"2\",\"workspace_roots\":[\"/w\"]," COMMAND ",\"cwd\":\"\"}",
	  AGENT_CURSOR, "/w" },
	{ "{\"conversation_id\":\"s\",\"hook_event_name\":\"preToolUse\",\"cursor_version\":\"2\","
	  "\"tool_name\":\"Shell\","
	  "\"tool_input\":{" COMMAND ",\"working_directory\":\"/w\"}}",
	  AGENT_CURSOR, "/w" },
	{ "{\"event\":\"tool.execute.before\",\"tool\":\"bash\",\"sessionID\":\"s\",\"callID\":"
	  "\"c\",\"cwd\":\"/w\","
	  "\"args\":{" COMMAND "}}",
	  AGENT_OPENCODE, "/w" },
	{ "{\"session_id\":\"s\",\"transcript_path\":\"/h/.qwen/t\",\"cwd\":\"/w\","
	  "\"hook_event_name\":\"PreToolUse\",\"permission_mode\":\"yolo\","
	  "\"tool_name\":\"run_shell_command\",\"tool_input\":{" COMMAND "}}",
	  AGENT_QWEN, "/w" },
	{ "{\"event\":\"PreToolUse\",\"session_id\":\"s\",\"matcher_context\":\"shell\","
	  "\"tool_name\":\"shell\",\"tool_input\":{" COMMAND "},\"working_dir\":\"/w\"}",
	  AGENT_GOOSE, "/w" },
	{ "{\"event\":\"PreToolUse\",\"session_id\":\"s\",\"matcher_context\":\"x\","
	  "\"tool_name\":\"developer__shell\",\"tool_input\":{" COMMAND "},\"working_dir\":\"/w\"}",
	  AGENT_GOOSE, "/w" },
	{ "{\"event\":\"tool_call\",\"tool\":\"bash\",\"sessionID\":\"s\",\"toolCallId\":\"c\","
	  "\"cwd\":\"/w\",\"args\":{" COMMAND "}}",
	  AGENT_PI, "/w" },
};

TEST(agents_are_told_apart)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		struct hook_call c;
		struct err e = ERR_INIT;

		CHECK_INT(hook_read(&mem, calls[i].text, strlen(calls[i].text), AGENT_UNKNOWN, &c,
				    &e),
			  0);
		CHECK_INT(c.agent, calls[i].agent);
		CHECK_INT(c.kind, TOOL_SHELL);
		CHECK_STR(c.command, "git reset --hard");
		CHECK_STR(c.cwd, calls[i].cwd);
		CHECK_STR(c.session, "s");
	}
}

static void answer(enum agent a, const char *event, enum verdict v, bool is_unattended,
		   struct buf *out, int *status)
{
	_cleanup_(buf_done) struct buf err = BUF(KIB);
	struct hook_call c = {
		.agent = a, .event = event, .kind = TOOL_SHELL, .is_unattended = is_unattended
	};
	struct judgement j = {
		.verdict = v, .intent = INTENT_ALTERNATIVE, .rule = "r", .say = "Say \"it\"."
	};

	*status = hook_answer(&c, &j, out, &err);
}

static const struct {
	enum agent agent;
	const char *event;
	enum verdict verdict;
	bool is_unattended;
	const char *want; /* in the answer; "" for silence */
} answers[] = {
	{ AGENT_CLAUDE, "PreToolUse", VERDICT_ALLOW, false, "" },
	{ AGENT_CLAUDE, "PreToolUse", VERDICT_ASK, false, "\"permissionDecision\":\"ask\"" },
	{ AGENT_CLAUDE, "PreToolUse", VERDICT_ASK, true, "\"permissionDecision\":\"deny\"" },
	{ AGENT_CLAUDE, "PreToolUse", VERDICT_DENY, false, "\"permissionDecision\":\"deny\"" },
	{ AGENT_CODEX, "PreToolUse", VERDICT_ALLOW, false, "" },
	{ AGENT_CODEX, "PreToolUse", VERDICT_ASK, false, "\"permissionDecision\":\"deny\"" },
	{ AGENT_CODEX, "PreToolUse", VERDICT_DENY, false, "\"hookEventName\":\"PreToolUse\"" },
	{ AGENT_GEMINI, "BeforeTool", VERDICT_ALLOW, false, "" },
	{ AGENT_GEMINI, "BeforeTool", VERDICT_ASK, false, "\"decision\":\"deny\"" },
	{ AGENT_GEMINI, "BeforeTool", VERDICT_DENY, false, "\"decision\":\"deny\"" },
	{ AGENT_COPILOT, "", VERDICT_ALLOW, false, "" },
	{ AGENT_COPILOT, "", VERDICT_ASK, false, "{\"permissionDecision\":\"ask\"" },
	{ AGENT_COPILOT, "", VERDICT_ASK, true, "{\"permissionDecision\":\"deny\"" },
	{ AGENT_CURSOR, "beforeShellExecution", VERDICT_ALLOW, false,
	  "{\"permission\":\"allow\"}" },
	{ AGENT_CURSOR, "beforeShellExecution", VERDICT_ASK, false, "\"permission\":\"ask\"" },
	{ AGENT_CURSOR, "preToolUse", VERDICT_ASK, false, "\"permission\":\"deny\"" },
	{ AGENT_CURSOR, "beforeReadFile", VERDICT_ASK, false, "\"permission\":\"deny\"" },
	{ AGENT_OPENCODE, "", VERDICT_ALLOW, false, "{\"decision\":\"allow\"}" },
	{ AGENT_OPENCODE, "", VERDICT_ASK, false, "\"decision\":\"deny\"" },
	{ AGENT_QWEN, "PreToolUse", VERDICT_ALLOW, false, "" },
	{ AGENT_QWEN, "PreToolUse", VERDICT_ASK, false, "\"permissionDecision\":\"ask\"" },
	{ AGENT_QWEN, "PreToolUse", VERDICT_ASK, true, "\"permissionDecision\":\"deny\"" },
	{ AGENT_GOOSE, "PreToolUse", VERDICT_ALLOW, false, "" },
	{ AGENT_GOOSE, "PreToolUse", VERDICT_ASK, false, "{\"decision\":\"block\",\"reason\":" },
	{ AGENT_GOOSE, "PreToolUse", VERDICT_DENY, false, "{\"decision\":\"block\",\"reason\":" },
	{ AGENT_PI, "tool_call", VERDICT_ALLOW, false, "{\"decision\":\"allow\"}" },
	{ AGENT_PI, "tool_call", VERDICT_ASK, false, "\"decision\":\"deny\"" },
};

TEST(answers_in_the_agents_own_form)
{
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB * 4);
		_cleanup_(json_done) struct json_doc doc = { 0 };
		struct err e = ERR_INIT;
		int status = -1;

		answer(answers[i].agent, answers[i].event, answers[i].verdict,
		       answers[i].is_unattended, &out, &status);
		CHECK_INT(status, 0);
		if (answers[i].want[0] == '\0') {
			CHECK_INT(out.n, 0);
			continue;
		}
		CHECK(strstr(buf_cstr(&out), answers[i].want) != NULL);
		CHECK(json_parse(buf_cstr(&out), out.n, &doc, &e) == 0);
		if (answers[i].verdict != VERDICT_ALLOW)
			CHECK(strstr(buf_cstr(&out), "(r): Say \\\"it\\\".") != NULL);
	}
}

TEST(what_cannot_be_read_is_an_error)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"tool_input\":{}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\"}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{"
		"\"command\":7}}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{"
		"\"command\":\"a\\u0000b\"}}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{"
		"\"command\":\"a\",\"command\":\"b\"}}",
		"{\"toolName\":\"bash\",\"toolArgs\":\"{\\\"command\\\"\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		struct hook_call c;
		struct err e = ERR_INIT;

		CHECK(hook_read(&mem, bad[i], strlen(bad[i]), AGENT_UNKNOWN, &c, &e) < 0);
		CHECK(e.msg[0] != '\0');
	}
}

TEST(a_refusal_needs_no_call)
{
	for (enum agent a = AGENT_UNKNOWN; a < AGENT_COUNT_; a++) {
		char out[512];
		int status = hook_refusal(a, "it \"broke\"", out, sizeof(out));

		CHECK(status == 2 || strstr(out, "\"deny\""));
		CHECK(status == 2 || a == AGENT_COPILOT);
		if (out[0]) {
			_cleanup_(json_done) struct json_doc doc = { 0 };
			struct err e = ERR_INIT;

			CHECK(json_parse(out, strlen(out), &doc, &e) == 0);
		}
	}
}

static enum verdict judged(const char *tool, const char *input)
{
	_cleanup_(arena_done) struct arena mem = ARENA(16 * MIB);
	_free_ char *text = mem_fmt("{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"%s\","
				    "\"tool_input\":%s}",
				    tool, input);
	struct hook_call c;
	struct judgement j;
	struct guard g;
	struct err e = ERR_INIT;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	CHECK_INT(hook_read(&mem, text, strlen(text), AGENT_CLAUDE, &c, &e), 0);
	guard_tool(&g, &mem, c.acts, c.n_acts, c.is_cut, &j);
	return j.verdict;
}

TEST(tools_are_judged_by_what_they_do)
{
	static const struct {
		const char *tool, *input;
		enum verdict want;
	} cases[] = {
		{ "Read", "{\"file_path\":\"/home/u/project/.env\"}", VERDICT_DENY },
		{ "Read", "{\"file_path\":\"/home/u/project/main.c\"}", VERDICT_ALLOW },
		{ "Write", "{\"file_path\":\"/home/u/project/new.c\",\"content\":\"rm -rf /\"}",
		  VERDICT_ALLOW },
		{ "Write", "{\"file_path\":\"/home/u/project/.git/hooks/pre-commit\"}",
		  VERDICT_DENY },
		{ "Write", "{\"file_path\":\"/home/u/.claude/settings.json\"}", VERDICT_DENY },
		{ "Edit", "{\"file_path\":\"/home/u/project/.claude/settings.local.json\"}",
		  VERDICT_DENY },
		{ "Edit", "{\"file_path\":\"/home/u/.bashrc\"}", VERDICT_DENY },
		{ "apply_patch",
		  "{\"input\":\"*** Begin Patch\\n*** Update File: src/a.c\\n*** End Patch\"}",
		  VERDICT_ALLOW },
		{ "apply_patch",
		  "{\"input\":\"*** Begin Patch\\n*** Add File: .claude/settings.json\\n*** End "
		  "Patch\"}",
		  VERDICT_DENY },
		{ "apply_patch",
		  "{\"input\":\"*** Begin Patch\\n*** Delete File: /home/u/notes.txt\\n*** End "
		  "Patch\"}",
		  VERDICT_ASK },
		{ "NotebookEdit",
		  "{\"notebook_path\":\"/home/u/project/a.ipynb\",\"new_source\":\"import "
		  "shutil\\nshutil.rmtree('/home/u')\"}",
		  VERDICT_DENY },
		{ "NotebookEdit",
		  "{\"notebook_path\":\"/home/u/project/a.ipynb\",\"new_source\":\"print(1)\"}",
		  VERDICT_ALLOW },
		{ "mcp__shell__run", "{\"command\":\"rm -rf ~\"}", VERDICT_DENY },
		{ "mcp__shell__run", "{\"command\":\"rm\",\"args\":[\"-rf\",\"/home/u\"]}",
		  VERDICT_DENY },
		{ "mcp__shell__run", "{\"options\":{\"argv\":[\"git\",\"reset\",\"--hard\"]}}",
		  VERDICT_DENY },
		{ "mcp__shell__run", "{\"Command\":[\"rm\",\"-rf\",\"/home/u\"]}", VERDICT_DENY },
		{ "mcp__shell__run", "{\"cmd\":\"rm\",\"Arguments\":[\"-rf\",\"/home/u\"]}",
		  VERDICT_DENY },
		{ "mcp__shell__run", "{\"command\":\"ls\"}", VERDICT_ALLOW },
		{ "mcp__filesystem__write_file", "{\"path\":\"/home/u/.claude/settings.json\"}",
		  VERDICT_DENY },
		{ "mcp__filesystem__delete_file", "{\"path\":\"/home/u/thesis.tex\"}",
		  VERDICT_ASK },
		{ "mcp__filesystem__move_file",
		  "{\"source\":\"a\",\"destination\":\"/home/u/.bashrc\"}", VERDICT_DENY },
		{ "mcp__filesystem__read_text_file", "{\"path\":\"/home/u/.ssh/id_rsa\"}",
		  VERDICT_DENY },
		{ "mcp__postgres__query", "{\"sql\":\"DROP TABLE users\"}", VERDICT_ASK },
		{ "mcp__postgres__query", "{\"sql\":\"SELECT * FROM users\"}", VERDICT_ALLOW },
		{ "mcp__x__search", "{\"query\":\"how to drop table in sql\",\"limit\":5}",
		  VERDICT_ALLOW },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum verdict v = judged(cases[i].tool, cases[i].input);

		if (v != cases[i].want)
			(void)fprintf(stderr, "%s %s\n", cases[i].tool, cases[i].input);
		CHECK_INT(v, cases[i].want);
	}
}

TEST_MAIN()
