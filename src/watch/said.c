/* SPDX-License-Identifier: Apache-2.0 */
/* watch/said.c - see said.h */
#include "watch/said.h"

#include "base/json.h"

#define TEXT_MAX (2 * EVENT_MAX_TEXT)

/* The fields of one call being put together. */
struct call {
	struct event_field f[EVENT_MAX_FIELDS];
	size_t n;
	struct buf input, output;
};

#define CALL_INIT                                                                                  \
	{                                                                                          \
		.input = BUF(4 * TEXT_MAX), .output = BUF(4 * TEXT_MAX)                            \
	}

static void call_done(struct call *c)
{
	buf_done(&c->input);
	buf_done(&c->output);
}

static const struct json *at(const struct json *v, const char *key)
{
	return v && v->type == JSON_OBJECT ? json_get(v, key) : NULL;
}

static const struct json *text_at(const struct json *v, const char *key)
{
	const struct json *t = at(v, key);

	return t && t->type == JSON_STRING ? t : NULL;
}

static bool is(const struct json *v, const char *key, const char *text)
{
	const struct json *t = text_at(v, key);

	return t && str_eq(t->text, text);
}

/* ---- a value as JSON text; what is too long is cut, like every text of an event ---- */

static void put_tree(struct buf *b, const struct json *v);

static void put_children(struct buf *b, const struct json *v)
{
	for (const struct json *x = v->first; x && b->n < TEXT_MAX; x = x->next) {
		if (x != v->first)
			buf_putc(b, ',');
		if (v->type == JSON_OBJECT) {
			buf_json(b, x->key);
			buf_putc(b, ':');
		}
		put_tree(b, x);
	}
}

static void put_tree(struct buf *b, const struct json *v)
{
	bool is_object = v->type == JSON_OBJECT;

	if (v->type == JSON_STRING) {
		buf_json_n(b, v->text, v->n < TEXT_MAX ? v->n : TEXT_MAX);
	} else if (v->type == JSON_NUMBER) {
		buf_add(b, v->text, v->n);
	} else if (v->type == JSON_BOOL) {
		buf_puts(b, v->is_true ? "true" : "false");
	} else if (v->type == JSON_NULL) {
		buf_puts(b, "null");
	} else {
		buf_putc(b, is_object ? '{' : '[');
		put_children(b, v);
		buf_putc(b, is_object ? '}' : ']');
	}
}

static void add(struct call *c, struct event_field f)
{
	bug_on(c->n == EVENT_MAX_FIELDS);
	c->f[c->n++] = f;
}

static void add_text(struct call *c, enum event_key key, const struct json *v)
{
	if (v && v->type == JSON_STRING)
		add(c, event_text(key, v->text, v->n));
}

/* Text as it is, everything else as JSON. */
static void add_value(struct call *c, enum event_key key, const struct json *v, struct buf *b)
{
	if (v == NULL || v->type == JSON_NULL)
		return;
	if (v->type == JSON_STRING) {
		add_text(c, key, v);
		return;
	}
	put_tree(b, v);
	add(c, event_text(key, buf_cstr(b), b->n));
}

static void add_number(struct call *c, enum event_key key, const struct json *v)
{
	uint64_t n;

	if (json_u64(v, &n))
		add(c, (struct event_field){ .key = (uint16_t)key, .kind = EVENT_U64, .num = n });
}

static int tell(struct call *c, enum event_type type, said_fn *fn, void *arg)
{
	int r;

	add(c, EVENT_IS(IS_INSIDE, true));
	r = fn(arg, type, c->f, c->n);
	c->n--;
	return r < 0 ? r : 1;
}

/* ---- reports ---- */

static const struct {
	const char *name;
	enum event_key key;
	enum json_type type; /* JSON_NULL: any */
	bool is_of_call;     /* of tool.call */
	bool is_of_verdict;  /* of guard.decision */
} report_keys[] = {
	{ "tool", EK_TOOL, JSON_STRING, true, true },
	{ "call", EK_CALL, JSON_STRING, true, true },
	{ "agent", EK_AGENT, JSON_STRING, true, true },
	{ "input", EK_INPUT, JSON_NULL, true, true },
	{ "output", EK_OUTPUT, JSON_STRING, true, false },
	{ "code", EK_CODE, JSON_NUMBER, true, false },
	{ "duration_ns", EK_DURATION, JSON_NUMBER, true, false },
	{ "message", EK_MESSAGE, JSON_STRING, false, true },
	{ "verdict", EK_VERDICT, JSON_STRING, false, true },
	{ "rule", EK_RULE, JSON_STRING, false, true },
};

static int find_key(const struct json *v)
{
	for (size_t i = 0; i < ARRAY_LEN(report_keys); i++)
		if (str_eq(report_keys[i].name, v->key))
			return (int)i;
	return -1;
}

static int check_report(const struct json *root, struct err *e)
{
	const struct json *verdict = at(root, "verdict");

	if (root->type != JSON_OBJECT)
		return err_set(e, ERR_USAGE, EBADMSG, "not an object");
	for (const struct json *v = root->first; v; v = v->next) {
		int i = find_key(v);

		if (i < 0)
			return err_set(e, ERR_USAGE, EBADMSG, "a report has no such key");
		if (report_keys[i].type != JSON_NULL && report_keys[i].type != v->type)
			return err_set(e, ERR_USAGE, EBADMSG, "'%s' is not %s", report_keys[i].name,
				       json_type_name(report_keys[i].type));
	}
	if (text_at(root, "tool") == NULL)
		return err_set(e, ERR_USAGE, EBADMSG, "no tool");
	if (verdict && !str_eq(verdict->text, "allow") && !str_eq(verdict->text, "ask") &&
	    !str_eq(verdict->text, "deny"))
		return err_set(e, ERR_USAGE, EBADMSG, "'verdict' is not allow, ask or deny");
	return 0;
}

static int tell_report(const struct json *root, bool is_verdict, said_fn *fn, void *arg)
{
	_cleanup_(call_done) struct call c = CALL_INIT;

	for (size_t i = 0; i < ARRAY_LEN(report_keys); i++) {
		const struct json *v = at(root, report_keys[i].name);

		if (!(is_verdict ? report_keys[i].is_of_verdict : report_keys[i].is_of_call))
			continue;
		if (report_keys[i].type == JSON_NUMBER)
			add_number(&c, report_keys[i].key, v);
		else
			add_value(&c, report_keys[i].key, v, &c.input);
	}
	return tell(&c, is_verdict ? EV_GUARD_DECISION : EV_TOOL_CALL, fn, arg);
}

int said_report(const char *text, size_t n, said_fn *fn, void *arg, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	int r, calls;

	if (n > SAID_MAX_BYTES || json_parse_foreign(text, n, &doc, e) < 0)
		return err_set(e, ERR_USAGE, EBADMSG, "not a report");
	r = check_report(doc.root, e);
	if (r < 0)
		return r;
	calls = tell_report(doc.root, false, fn, arg);
	if (calls < 0 || at(doc.root, "verdict") == NULL)
		return calls;
	r = tell_report(doc.root, true, fn, arg);
	return r < 0 ? r : calls + r;
}

/* ---- structured output ---- */

/* {"type":"assistant","message":{"content":[{"type":"tool_use","id":..,"name":..,"input":..}]}} */
static int from_claude(const struct json *root, said_fn *fn, void *arg)
{
	const struct json *content = at(at(root, "message"), "content");
	int calls = 0;

	if (!is(root, "type", "assistant") || content == NULL || content->type != JSON_ARRAY)
		return 0;
	for (const struct json *v = content->first; v; v = v->next) {
		_cleanup_(call_done) struct call c = CALL_INIT;
		int r;

		if (!is(v, "type", "tool_use") || text_at(v, "name") == NULL)
			continue;
		add_text(&c, EK_TOOL, text_at(v, "name"));
		add_text(&c, EK_CALL, at(v, "id"));
		add_value(&c, EK_INPUT, at(v, "input"), &c.input);
		r = tell(&c, EV_TOOL_CALL, fn, arg);
		if (r < 0)
			return r;
		calls++;
	}
	return calls;
}

/* {"type":"item.completed","item":{"id":..,"type":"command_execution","command":..,"aggregated_output":..,"exit_code":..}} */
static int from_codex(const struct json *root, said_fn *fn, void *arg)
{
	const struct json *item = at(root, "item"), *type = text_at(item, "type");
	_cleanup_(call_done) struct call c = CALL_INIT;

	if (!is(root, "type", "item.completed") || type == NULL ||
	    (!str_eq(type->text, "command_execution") && !str_eq(type->text, "file_change") &&
	     !str_eq(type->text, "mcp_tool_call") && !str_eq(type->text, "web_search")))
		return 0;
	add_text(&c, EK_TOOL, text_at(item, "tool") ? at(item, "tool") : type);
	add_text(&c, EK_CALL, at(item, "id"));
	add_value(&c, EK_INPUT,
		  at(item, "command")     ? at(item, "command")
		  : at(item, "changes")   ? at(item, "changes")
		  : at(item, "arguments") ? at(item, "arguments")
					  : at(item, "query"),
		  &c.input);
	add_text(&c, EK_OUTPUT, at(item, "aggregated_output"));
	add_number(&c, EK_CODE, at(item, "exit_code"));
	return tell(&c, EV_TOOL_CALL, fn, arg);
}

/* {"type":"tool_use","tool_name":..,"tool_id":..,"parameters":..} */
static int from_gemini(const struct json *root, said_fn *fn, void *arg)
{
	_cleanup_(call_done) struct call c = CALL_INIT;

	if (!is(root, "type", "tool_use") || text_at(root, "tool_name") == NULL)
		return 0;
	add_text(&c, EK_TOOL, at(root, "tool_name"));
	add_text(&c, EK_CALL, at(root, "tool_id"));
	add_value(&c, EK_INPUT, at(root, "parameters"), &c.input);
	return tell(&c, EV_TOOL_CALL, fn, arg);
}

/* {"type":"tool_use","part":{"tool":..,"callID":..,"state":{"input":..,"output":..}}} */
static int from_opencode(const struct json *root, said_fn *fn, void *arg)
{
	const struct json *part = at(root, "part"), *state = at(part, "state");
	_cleanup_(call_done) struct call c = CALL_INIT;

	if (!is(root, "type", "tool_use") || text_at(part, "tool") == NULL)
		return 0;
	add_text(&c, EK_TOOL, at(part, "tool"));
	add_text(&c, EK_CALL, at(part, "callID"));
	add_value(&c, EK_INPUT, at(state, "input"), &c.input);
	add_text(&c, EK_OUTPUT, at(state, "output"));
	return tell(&c, EV_TOOL_CALL, fn, arg);
}

int said_line(const char *text, size_t n, said_fn *fn, void *arg)
{
	static int (*const forms[])(const struct json *, said_fn *,
				    void *) = { from_claude, from_codex, from_gemini,
						from_opencode };
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err ignored = ERR_INIT;
	int r = 0;

	if (n < 2 || text[0] != '{' || n > SAID_MAX_BYTES ||
	    json_parse_foreign(text, n, &doc, &ignored) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(forms); i++)
		r = forms[i](doc.root, fn, arg);
	return r;
}
