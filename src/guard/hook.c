/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook.c - see hook.h
 *
 * Which agent speaks is told by `--agent`, which `vitrine guard install` writes into the agent's own settings. Without
 * it the text is looked at: each agent has a field that the others do not have.
 */
#include "guard/hook.h"

#include "base/json.h"
#include "guard/hook_input.h"

static const char *const agent_names[AGENT_COUNT_] = {
	[AGENT_UNKNOWN] = "unknown", [AGENT_CLAUDE] = "claude",
	[AGENT_CODEX] = "codex",     [AGENT_GEMINI] = "gemini",
	[AGENT_COPILOT] = "copilot", [AGENT_CURSOR] = "cursor",
	[AGENT_DROID] = "droid",     [AGENT_OPENCODE] = "opencode",
	[AGENT_QWEN] = "qwen",       [AGENT_GOOSE] = "goose",
	[AGENT_PI] = "pi",
};

const char *agent_name(enum agent a)
{
	bug_on(a >= AGENT_COUNT_);
	return agent_names[a];
}

enum agent agent_find(const char *name)
{
	for (enum agent a = AGENT_CLAUDE; a < AGENT_COUNT_; a++)
		if (str_eq(agent_names[a], name))
			return a;
	return AGENT_UNKNOWN;
}

/* Reading. */

static const char *text_at(struct arena *mem, const struct json *o, const char *key)
{
	const struct json *v = o && o->type == JSON_OBJECT ? json_get(o, key) : NULL;

	return v && v->type == JSON_STRING ? arena_strn(mem, v->text, v->n) : NULL;
}

static const char *first_text(struct arena *mem, const struct json *o, const char *const *keys)
{
	const char *s = NULL;

	for (; *keys && s == NULL; keys++)
		s = text_at(mem, o, *keys);
	return s;
}

static enum agent detect(const struct json *root)
{
	const struct json *event = json_get(root, "hook_event_name");
	const struct json *path = json_get(root, "transcript_path");
	const char *name = event && event->type == JSON_STRING ? event->text : "";
	const char *transcript = path && path->type == JSON_STRING ? path->text : "";

	if (json_get(root, "cursor_version") || json_get(root, "conversation_id"))
		return AGENT_CURSOR;
	if (json_get(root, "toolName"))
		return AGENT_COPILOT;
	if (json_get(root, "matcher_context"))
		return AGENT_GOOSE;
	if (str_eq(name, "BeforeTool"))
		return AGENT_GEMINI;
	if (json_get(root, "toolCallId"))
		return AGENT_PI;
	if (json_get(root, "callID") || json_get(root, "sessionID"))
		return AGENT_OPENCODE;
	if (strstr(transcript, "/.qwen/"))
		return AGENT_QWEN;
	if (strstr(transcript, "/.copilot/"))
		return AGENT_COPILOT;
	if (strstr(transcript, "/.factory/"))
		return AGENT_DROID;
	if (json_get(root, "turn_id") || strstr(transcript, "/.codex/"))
		return AGENT_CODEX;
	if (str_eq(name, "PreToolUse") || json_get(root, "tool_input"))
		return AGENT_CLAUDE;
	return AGENT_UNKNOWN;
}

/* Names that agents give to the same few tools. */
static enum tool_kind kind_of(const char *tool)
{
	static const char shells[] = "Bash|bash|shell|Shell|run_shell_command|powershell|terminal|"
				     "exec|exec_command|"
				     "local_shell|Execute|run_terminal_cmd|launch-process|run_"
				     "command|developer__shell";
	static const char readers[] = "Read|read|read_file|view|ReadFile|cat|read_many_files|"
				      "NotebookRead";
	static const char writers[] = "Write|Edit|MultiEdit|NotebookEdit|write|edit|create|write_"
				      "file|replace|Create|ApplyPatch|"
				      "str_replace_editor|EditFile|apply_patch|developer__write|"
				      "developer__edit";

	if (rules_list_has(shells, tool))
		return TOOL_SHELL;
	if (rules_list_has(readers, tool))
		return TOOL_READ;
	if (rules_list_has(writers, tool))
		return TOOL_WRITE;
	return TOOL_OTHER;
}

/* A command may be a list of words: ["bash", "-lc", "..."]. */
static const char *command_of(struct arena *mem, const struct json *input)
{
	static const char *const keys[] = { "command", "cmd", "script", "CommandLine", NULL };
	const char *s = first_text(mem, input, keys);
	const struct json *list = input->type == JSON_OBJECT ? json_get(input, "command") : NULL;

	if (s || list == NULL || list->type != JSON_ARRAY)
		return s;
	return hook_words(mem, list);
}

static void read_input(struct arena *mem, const struct json *input, struct hook_call *ret)
{
	static const char *const paths[] = { "file_path",     "filePath", "path", "notebook_path",
					     "absolute_path", "file",     NULL };
	static const char *const dirs[] = { "working_directory", "workdir", "directory", "cwd",
					    NULL };
	const char *dir;

	if (ret->kind == TOOL_SHELL)
		ret->command = command_of(mem, input);
	else
		ret->path = first_text(mem, input, paths);
	if (ret->kind == TOOL_SHELL && ret->command) {
		ret->acts[0] = (struct tool_act){ .kind = ACT_SHELL, .text = ret->command };
		ret->n_acts = 1;
	} else {
		hook_acts(mem, input, ret);
	}
	dir = first_text(mem, input, dirs);
	if (dir && dir[0] == '/')
		ret->cwd = dir;
}

/* Copilot's CLI sends the arguments as a text that is JSON itself. */
static int input_of(const struct json *root, struct json_doc *nested, const struct json **ret,
		    struct err *e)
{
	static const char *const keys[] = { "tool_input", "toolArgs", "args", "tool_args" };
	const struct json *v = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys) && v == NULL; i++)
		v = json_get(root, keys[i]);
	if (v && v->type == JSON_STRING && v->n && (v->text[0] == '{' || v->text[0] == '[')) {
		int r = json_parse_foreign(v->text, v->n, nested, e);

		if (r < 0)
			return err_wrap(e, r, "the tool's arguments");
		v = nested->root;
	}
	*ret = v ? v : root;
	return 0;
}

static bool is_mode_unattended(const char *mode)
{
	return rules_list_has("bypassPermissions|dontAsk|yolo|auto", mode);
}

/* Cursor names the event instead of the tool. */
static const char *tool_of(struct arena *mem, const struct json *root, const char *event)
{
	static const char *const keys[] = { "tool_name", "toolName", "tool", NULL };
	const char *tool = first_text(mem, root, keys);

	if (str_eq(event, "beforeShellExecution"))
		return "Shell";
	if (str_eq(event, "beforeReadFile"))
		return "Read";
	return tool ? tool : "";
}

static const char *cwd_of(struct arena *mem, const struct json *root)
{
	static const char *const keys[] = { "cwd", "directory", "workdir", "working_dir", NULL };
	const char *cwd = first_text(mem, root, keys);
	const struct json *roots = json_get(root, "workspace_roots");

	if (cwd && cwd[0])
		return cwd;
	if (roots && roots->type == JSON_ARRAY && roots->first && roots->first->type == JSON_STRING)
		return arena_strn(mem, roots->first->text, roots->first->n);
	return "";
}

static void read_frame(struct arena *mem, const struct json *root, enum agent told,
		       struct hook_call *ret)
{
	static const char *const events[] = { "hook_event_name", "hookEventName", "event", NULL };
	static const char *const sessions[] = { "session_id", "sessionId", "sessionID",
						"conversation_id", NULL };
	const char *mode = text_at(mem, root, "permission_mode");
	const char *event = first_text(mem, root, events),
		   *session = first_text(mem, root, sessions);

	ret->agent = told != AGENT_UNKNOWN ? told : detect(root);
	ret->event = event ? event : "";
	ret->tool = tool_of(mem, root, ret->event);
	ret->kind = kind_of(ret->tool);
	ret->cwd = cwd_of(mem, root);
	ret->session = session ? session : "";
	ret->is_unattended = mode && is_mode_unattended(mode);
}

int hook_read(struct arena *mem, const char *text, size_t n, enum agent told, struct hook_call *ret,
	      struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 }, nested = { 0 };
	const struct json *input = NULL;
	int r = json_parse_foreign(text, n, &doc, e);

	*ret = (struct hook_call){
		.agent = told, .event = "", .tool = "", .cwd = "", .session = ""
	};
	if (r < 0)
		return err_wrap(e, r, "the call");
	if (doc.root->type != JSON_OBJECT)
		return err_set(e, ERR_CONFIG, EINVAL, "the call is not an object");
	read_frame(mem, doc.root, told, ret);
	if (ret->agent == AGENT_UNKNOWN)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "no agent speaks like this; use --agent NAME");
	if (ret->tool[0] == '\0')
		return err_set(e, ERR_CONFIG, EINVAL, "no tool is named in the call");
	r = input_of(doc.root, &nested, &input, e);
	if (r < 0)
		return r;
	read_input(mem, input, ret);
	if (ret->kind == TOOL_SHELL && ret->command == NULL)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "the tool '%.40s' was called without a command", ret->tool);
	return 0;
}

/* Answering. */

/* Where a question would be taken for a yes, or nobody would hear it, it is a no. */
static enum verdict final_verdict(const struct hook_call *c, enum verdict v)
{
	if (v != VERDICT_ASK)
		return v;
	switch (c->agent) {
	case AGENT_CLAUDE:
	case AGENT_COPILOT:
	case AGENT_DROID:
	case AGENT_QWEN:
		return c->is_unattended ? VERDICT_DENY : VERDICT_ASK;
	case AGENT_CURSOR:
		return c->is_unattended || !str_starts(c->event, "before") ||
				       str_eq(c->event, "beforeReadFile")
			       ? VERDICT_DENY
			       : VERDICT_ASK;
	case AGENT_CODEX:
	case AGENT_GEMINI:
	case AGENT_OPENCODE:
	case AGENT_GOOSE:
	case AGENT_PI:
	case AGENT_UNKNOWN:
	case AGENT_COUNT_:
		return VERDICT_DENY;
	}
	return VERDICT_DENY;
}

static const char *footer(enum intent i)
{
	switch (i) {
	case INTENT_STOP:
		return " Do not look for another way to do this.";
	case INTENT_ALTERNATIVE:
		return " Use that way instead.";
	case INTENT_SCOPE:
		return " Do less, or say exactly what is meant.";
	case INTENT_HUMAN:
		return " If it is needed, tell the user what and why, and let them do it.";
	case INTENT_COUNT_:
		break;
	}
	return "";
}

static void put_reason(const struct judgement *j, struct buf *out)
{
	buf_printf(out, "Vitrine guard (%s): %s", j->rule, j->say);
	if (j->verdict != VERDICT_ALLOW)
		buf_puts(out, footer(j->intent));
}

static void put_claude(const char *decision, const char *reason, struct buf *out)
{
	buf_printf(out,
		   "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\","
		   "\"permissionDecision\":\"%s\","
		   "\"permissionDecisionReason\":",
		   decision);
	buf_json(out, reason);
	buf_puts(out, "}}\n");
}

static void put_flat(const char *key, const char *decision, const char *reason_key,
		     const char *reason, struct buf *out)
{
	buf_printf(out, "{\"%s\":\"%s\",\"%s\":", key, decision, reason_key);
	buf_json(out, reason);
	buf_puts(out, "}\n");
}

static void put_cursor(const char *decision, const char *reason, struct buf *out)
{
	buf_printf(out, "{\"permission\":\"%s\",\"user_message\":", decision);
	buf_json(out, reason);
	buf_puts(out, ",\"agent_message\":");
	buf_json(out, reason);
	buf_puts(out, "}\n");
}

static void put_answer(enum agent a, const char *decision, const char *reason, struct buf *out)
{
	switch (a) {
	case AGENT_CLAUDE:
	case AGENT_CODEX:
	case AGENT_DROID:
	case AGENT_QWEN:
		put_claude(decision, reason, out);
		break;
	case AGENT_GOOSE:
		put_flat("decision", "block", "reason", reason, out);
		break;
	case AGENT_GEMINI:
	case AGENT_OPENCODE:
	case AGENT_PI:
		put_flat("decision", decision, "reason", reason, out);
		break;
	case AGENT_COPILOT:
		put_flat("permissionDecision", decision, "permissionDecisionReason", reason, out);
		break;
	case AGENT_CURSOR:
		put_cursor(decision, reason, out);
		break;
	case AGENT_UNKNOWN:
	case AGENT_COUNT_:
		break;
	}
}

int hook_answer(const struct hook_call *call, const struct judgement *j, struct buf *out,
		struct buf *err)
{
	enum verdict v = final_verdict(call, j->verdict);
	_cleanup_(buf_done) struct buf reason = BUF(64 * KIB);

	if (v == VERDICT_ALLOW) {
		/* Silence leaves the agent's own questions in place; these three take it for a failure. */
		if (call->agent == AGENT_CURSOR)
			buf_puts(out, "{\"permission\":\"allow\"}\n");
		else if (call->agent == AGENT_OPENCODE || call->agent == AGENT_PI)
			buf_puts(out, "{\"decision\":\"allow\"}\n");
		return 0;
	}
	put_reason(j, &reason);
	put_answer(call->agent, verdict_name(v), buf_cstr(&reason), out);
	if (call->agent != AGENT_UNKNOWN)
		return 0;
	buf_printf(err, "%s\n", buf_cstr(&reason));
	return 2;
}

/* What may stand in a JSON string without escapes. */
static char plain(char c)
{
	if (c == '"' || c == '\\' || (unsigned char)c < 32)
		return ' ';
	return c;
}

int hook_refusal(enum agent a, const char *why, char *out, size_t n)
{
	static const char copilot[] = "{\"permissionDecision\":\"deny\","
				      "\"permissionDecisionReason\":\"Vitrine guard: %s\"}\n";
	static const char cursor[] = "{\"permission\":\"deny\",\"user_message\":\"Vitrine guard: "
				     "%s\","
				     "\"agent_message\":\"Vitrine guard could not judge this "
				     "call\"}\n";
	static const char plugin[] = "{\"decision\":\"deny\",\"reason\":\"Vitrine guard: %s\"}\n";
	static const char *const forms[AGENT_COUNT_] = {
		/* Exit status 2 and a line on stderr is a refusal to these; their JSON is for the others. */
		[AGENT_UNKNOWN] = NULL,    [AGENT_CLAUDE] = NULL,     [AGENT_CODEX] = NULL,
		[AGENT_GEMINI] = NULL,     [AGENT_DROID] = NULL,      [AGENT_QWEN] = NULL,
		[AGENT_GOOSE] = NULL,      [AGENT_COPILOT] = copilot, [AGENT_CURSOR] = cursor,
		[AGENT_OPENCODE] = plugin, [AGENT_PI] = plugin,
	};
	char *to = out;

	out[0] = '\0';
	if (forms[a] == NULL)
		return 2;
	/* Like printf, but safe in a signal handler; `why` is ours and needs no escapes. */
	for (const char *s = forms[a]; *s && to < out + n - 1; s++) {
		if (s[0] == '%' && s[1] == 's') {
			for (const char *k = why; *k && to < out + n - 1; k++)
				*to++ = plain(*k);
			s++;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	/* An exit status other than 0 would make Copilot ignore what we said. */
	return a == AGENT_COPILOT ? 0 : 2;
}
