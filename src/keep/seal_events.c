/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal_events.c - what seal says of requests, as events like the gate's
 *
 * Its words are foreign: what is not one of our objects is not on record, and harmless.
 */
#include "base/json.h"
#include "keep/gate.h"
#include "keep/seal_parts.h"

static uint64_t number_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	uint64_t n = 0;

	return v && json_u64(v, &n) ? n : 0;
}

/* Secrets by name, so that it is on record which went where. */
static void say_secrets(const struct json *o, char *to, size_t size)
{
	const struct json *list = json_get(o, "secrets");
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);

	if (list == NULL || list->type != JSON_ARRAY || to[0])
		return;
	buf_puts(&b, "with secret");
	for (const struct json *v = list->first; v; v = v->next)
		buf_printf(&b, " %s", v->type == JSON_STRING ? v->text : "?");
	gate_say(to, size, "%s", buf_cstr(&b));
}

void seal_event(struct seal *s, const struct seal_msg *m)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct gate_msg g = { .type = GATE_EVENT, .via = VIA_CONNECT };
	struct err e = ERR_INIT;
	const struct json *o;

	if (json_parse(m->data, m->n, &doc, &e) < 0 || doc.root->type != JSON_OBJECT)
		return; /* not one of ours: not on record, and harmless */
	o = doc.root;
	g.id = (uint32_t)number_of(o, "connection");
	g.port = (uint16_t)number_of(o, "port");
	g.code = (uint32_t)number_of(o, "code");
	g.up = number_of(o, "bytes_out");
	g.down = number_of(o, "bytes_in");
	g.ns = number_of(o, "duration_ns");
	g.verdict = str_eq(json_text(o, "verdict", ""), "deny") ? GATE_REFUSED : GATE_ALLOWED;
	g.event = g.verdict == GATE_ALLOWED ? EVENT_REQUEST : EVENT_ALERT;
	gate_say(g.host, sizeof(g.host), "%s", json_text(o, "host", ""));
	gate_say(g.method, sizeof(g.method), "%s", json_text(o, "method", ""));
	gate_say(g.path, sizeof(g.path), "%s", json_text(o, "request", ""));
	gate_say(g.rule, sizeof(g.rule), "%s", json_text(o, "rule", ""));
	gate_say(g.text, sizeof(g.text), "%s%s%s%s%s", g.method, g.method[0] ? " " : "", g.path,
		 g.method[0] ? ": " : "", json_text(o, "message", ""));
	if (g.verdict == GATE_ALLOWED)
		g.text[0] = '\0';
	say_secrets(o, g.text, sizeof(g.text));
	if (json_text(o, "login", "")[0])
		gate_say(g.text, sizeof(g.text), "the tokens of %s were taken out of the answer",
			 json_text(o, "login", ""));
	(void)tell_net(s->k, &g); /* what it tells of is done, or refused anyhow */
}
