/* SPDX-License-Identifier: Apache-2.0 */
/* agent/night.c - see night.h */
#include "agent/night.h"

#include "agent/report.h"
#include "base/num.h"

#define WORDS_MAX 160

/* ---- the log of a repository ---- */

static bool is_hex(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\0' || strchr("0123456789abcdef", p[i]) == NULL)
			return false;
	return true;
}

/* Digits that end at `end`; what stands before them is at *ret_before. */
static bool number_before(const char *from, const char *end, uint64_t *ret)
{
	const char *p = end;
	uint64_t n = 0;

	while (p > from && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == end || end - p > 12 || p == from || p[-1] != ' ')
		return false;
	for (; p < end; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	*ret = n;
	return true;
}

bool night_commit(const char *line, size_t n, struct night_commit *ret)
{
	const char *tab = memchr(line, '\t', n), *first = memchr(line, ' ', n), *colon, *zone;
	size_t id = first ? (size_t)(first - line) : 0;

	if (tab == NULL || (id != 40 && id != 64) || n < 2 * id + 2 || line[2 * id + 1] != ' ' ||
	    !is_hex(line, id) || !is_hex(first + 1, id))
		return false;
	tab++;
	if ((size_t)(line + n - tab) < strlen("commit") ||
	    memcmp(tab, "commit", strlen("commit")) != 0)
		return false;
	colon = memchr(tab, ':', (size_t)(line + n - tab));
	zone = memrchr(line, ' ', (size_t)(tab - 1 - line));
	if (colon == NULL || zone == NULL || !number_before(line + 2 * id, zone, &ret->time))
		return false;
	memcpy(ret->id, first + 1, 12);
	ret->id[12] = '\0';
	ret->subject = colon + 1 + (colon + 1 < line + n && colon[1] == ' ');
	ret->n = (size_t)(line + n - ret->subject);
	return true;
}

/* ---- events ---- */

static bool is_denied(const struct json *data)
{
	const char *verdict = json_text(data, "verdict", NULL);

	return verdict && str_eq(verdict, "deny");
}

static void put_host(const struct json *data, struct buf *out)
{
	const char *host = json_text(data, "host", NULL);
	uint64_t port;

	buf_printf(out, "network: %.*s", WORDS_MAX, host ? host : "?");
	if (json_get(data, "port") && json_u64(json_get(data, "port"), &port))
		buf_printf(out, ":%llu", (unsigned long long)port);
}

static void put_words(const struct json *argv, struct buf *out)
{
	for (const struct json *v = argv && argv->type == JSON_ARRAY ? argv->first : NULL;
	     v && out->n < WORDS_MAX; v = v->next)
		buf_printf(out, " %.*s", WORDS_MAX, v->type == JSON_STRING ? v->text : "");
}

static void put_one(const char *what, const struct json *data, const char *const *keys,
		    struct buf *out)
{
	const char *text = NULL;

	for (; text == NULL && *keys; keys++)
		text = json_text(data, *keys, NULL);
	buf_printf(out, "%s: %.*s", what, WORDS_MAX, text ? text : "?");
}

bool night_refusal(const struct json *event, struct buf *out)
{
	static const char *const wall[] = { "path", "message", "wall", NULL };
	static const char *const guard[] = { "input", "rule", "message", NULL };
	static const char *const path[] = { "path", NULL }, *const limit[] = { "limit", NULL };
	const struct json *data = json_get(event, "data");
	const char *type = json_text(event, "type", NULL);

	if (type == NULL || data == NULL || data->type != JSON_OBJECT)
		return false;
	if (str_eq(type, "net.verdict") && is_denied(data)) {
		put_host(data, out);
	} else if (str_eq(type, "wall.refused")) {
		put_one("wall", data, wall, out);
	} else if (str_eq(type, "guard.decision") && is_denied(data)) {
		put_one("guard", data, guard, out);
	} else if (str_eq(type, "file.quarantined")) {
		put_one("quarantined", data, path, out);
	} else if (str_eq(type, "broker.ran") && is_denied(data)) {
		buf_puts(out, "broker:");
		put_words(json_get(data, "argv"), out);
	} else if (str_eq(type, "limit.hit")) {
		put_one("limit", data, limit, out);
	} else {
		return false;
	}
	return true;
}

/* A number, or digits in a string: telemetry knows both. */
static const char *digits_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);

	return v && (v->type == JSON_NUMBER || v->type == JSON_STRING) ? v->text : NULL;
}

static uint64_t count_of(const struct json *o, const char *key)
{
	const char *text = digits_of(o, key);
	struct err none = ERR_INIT;
	uint64_t n = 0;

	return text && num_parse(text, 0, INT64_MAX, &n, &none) == 0 ? n : 0;
}

bool night_spent(const struct json *event, struct night_spent *ret)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *data = json_get(event, "data");
	const char *type = json_text(event, "type", NULL), *signal, *attributes, *cost;
	struct err none = ERR_INIT;

	if (type == NULL || !str_eq(type, "otel") || data == NULL || data->type != JSON_OBJECT)
		return false;
	signal = json_text(data, "signal", NULL);
	attributes = json_text(data, "attributes", NULL);
	/* Metrics say the same once more, summed up. */
	if (signal == NULL || !str_eq(signal, "logs") || attributes == NULL ||
	    json_parse_foreign(attributes, strlen(attributes), &doc, &none) < 0 ||
	    doc.root->type != JSON_OBJECT)
		return false;
	cost = digits_of(doc.root, "cost_usd");
	if (cost == NULL)
		return false;
	*ret = (struct night_spent){ .tokens_in = count_of(doc.root, "input_tokens"),
				     .tokens_out = count_of(doc.root, "output_tokens") };
	return report_dollars(cost, &ret->cost) || ret->tokens_in || ret->tokens_out;
}
