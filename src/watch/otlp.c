/* SPDX-License-Identifier: Apache-2.0 */
/* watch/otlp.c - the walk over one export request; see otlp.h
 *
 * A request is resources, each with scopes, each with records: that much is the same for the three signals, only the
 * names differ. Attributes are kept as one JSON text: who asks for them has jq at hand, and no agent's own names have
 * to be in our table.
 */
#include "watch/otlp.h"

#include "base/num.h"

#define MAX_DEPTH 32
#define TEXT_MAX (2 * EVENT_MAX_TEXT)
/* Of one list of attributes; the specification's own bound is 128. Each is compared with those before it. */
#define PAIRS_MAX 1024

struct walk {
	enum otlp_signal signal;
	otlp_record_fn *fn;
	void *arg;
	size_t records;
	const struct json *resource, *scope;
	struct err *e;
};

/* The fields of one record being put together. */
struct record {
	struct event_field f[EVENT_MAX_FIELDS];
	size_t n;
	struct buf body, attributes;
};

static void record_done(struct record *r)
{
	buf_done(&r->body);
	buf_done(&r->attributes);
}

const char *otlp_signal_name(enum otlp_signal signal)
{
	static const char *const names[OTLP_SIGNAL_COUNT_] = { "logs", "metrics", "traces" };

	return names[signal];
}

/* ---- the tree ---- */

static const struct json *at(const struct json *v, const char *key)
{
	return v && v->type == JSON_OBJECT ? json_get(v, key) : NULL;
}

static const struct json *list(const struct json *v, const char *key)
{
	const struct json *l = at(v, key);

	return l && l->type == JSON_ARRAY ? l->first : NULL;
}

/* 64-bit numbers are strings in JSON. */
static uint64_t number(const struct json *v)
{
	struct err ignored = ERR_INIT;
	uint64_t n = 0;

	if (v && v->type == JSON_STRING && num_parse(v->text, 0, UINT64_MAX, &n, &ignored) < 0)
		return 0;
	if (v && v->type == JSON_NUMBER && !json_u64(v, &n))
		return 0;
	return n;
}

static const struct json *key_of(const struct json *pair)
{
	const struct json *key = at(pair, "key");

	return key && key->type == JSON_STRING ? key : NULL;
}

/* Two readers of one text must not see two values: of a key that stands twice the first counts, here as in attribute().
 */
static bool is_repeated(const struct json *first, const struct json *pair)
{
	const struct json *key = key_of(pair);

	for (const struct json *p = first; p != pair; p = p->next) {
		const struct json *other = key_of(p);

		if (other && other->n == key->n && memcmp(other->text, key->text, key->n) == 0)
			return true;
	}
	return false;
}

static void put_value(struct buf *b, const struct json *any, int depth);

static void put_pairs(struct buf *b, const struct json *first, int depth)
{
	bool is_first = true;
	size_t n = 0;

	buf_putc(b, '{');
	for (const struct json *pair = first; pair && b->n < TEXT_MAX && n < PAIRS_MAX;
	     pair = pair->next, n++) {
		const struct json *key = key_of(pair);

		if (key == NULL || is_repeated(first, pair))
			continue;
		if (!is_first)
			buf_putc(b, ',');
		is_first = false;
		buf_json_n(b, key->text, key->n);
		buf_putc(b, ':');
		put_value(b, at(pair, "value"), depth + 1);
	}
	buf_putc(b, '}');
}

static void put_list(struct buf *b, const struct json *v, int depth)
{
	buf_putc(b, '[');
	for (const struct json *x = v; x && b->n < TEXT_MAX; x = x->next) {
		if (x != v)
			buf_putc(b, ',');
		put_value(b, x, depth + 1);
	}
	buf_putc(b, ']');
}

/* Of a number only what has been read as one goes out without quotes. */
static void put_scalar(struct buf *b, const struct json *v)
{
	if (v->type == JSON_BOOL)
		buf_puts(b, v->is_true ? "true" : "false");
	else if (v->type == JSON_NUMBER)
		buf_add(b, v->text, v->n);
	else if (v->type == JSON_STRING)
		buf_json_n(b, v->text, v->n);
	else
		buf_puts(b, "null");
}

static bool is_whole(const struct json *v)
{
	size_t sign = v->n > 0 && v->text[0] == '-';

	return v->type == JSON_STRING && v->n > sign && v->n - sign < 20 &&
	       strspn(v->text + sign, "0123456789") == v->n - sign &&
	       (v->text[sign] != '0' || v->n - sign == 1);
}

/* An AnyValue as JSON. NOLINTNEXTLINE(misc-no-recursion): as deep as MAX_DEPTH */
static void put_value(struct buf *b, const struct json *any, int depth)
{
	const struct json *v = any && any->type == JSON_OBJECT ? any->first : NULL;

	if (v == NULL || depth > MAX_DEPTH)
		buf_puts(b, "null");
	else if (str_eq(v->key, "arrayValue"))
		put_list(b, list(v, "values"), depth);
	else if (str_eq(v->key, "kvlistValue"))
		put_pairs(b, list(v, "values"), depth);
	else if (str_eq(v->key, "intValue") && is_whole(v))
		buf_add(b, v->text, v->n);
	else
		put_scalar(b, v);
}

static const struct json *attribute(const struct json *pairs, const char *name)
{
	for (; pairs; pairs = pairs->next) {
		const struct json *key = key_of(pairs);

		if (key && str_eq(key->text, name))
			return at(at(pairs, "value"), "stringValue");
	}
	return NULL;
}

/* ---- fields ---- */

static void add_text(struct record *r, enum event_key key, const struct json *v)
{
	if (v && v->type == JSON_STRING && v->n > 0)
		r->f[r->n++] = event_text(key, v->text, v->n);
}

static void add_number(struct record *r, enum event_key key, uint64_t v)
{
	if (v > 0)
		r->f[r->n++] =
			(struct event_field){ .key = (uint16_t)key, .kind = EVENT_U64, .num = v };
}

static void add_buf(struct record *r, enum event_key key, const struct buf *b)
{
	if (b->n > 0)
		r->f[r->n++] = event_text(key, b->p, b->n);
}

/* A text stays what it is; anything else is shown as JSON. */
static void add_body(struct record *r, const struct json *any)
{
	const struct json *text = at(any, "stringValue");

	if (any == NULL || any->type != JSON_OBJECT || any->first == NULL)
		return;
	if (text && text->type == JSON_STRING)
		buf_add(&r->body, text->text, text->n < TEXT_MAX ? text->n : TEXT_MAX);
	else
		put_value(&r->body, any, 0);
	add_buf(r, EK_BODY, &r->body);
}

static void add_attributes(struct record *r, const struct json *v)
{
	const struct json *pairs = list(v, "attributes");

	if (pairs == NULL)
		return;
	put_pairs(&r->attributes, pairs, 0);
	add_buf(r, EK_ATTRIBUTES, &r->attributes);
}

static void begin(const struct walk *w, struct record *r)
{
	*r = (struct record){ .body = BUF(16 * MIB), .attributes = BUF(16 * MIB) };
	r->f[r->n++] = EVENT_STR(SIGNAL, otlp_signal_name(w->signal));
	add_text(r, EK_SERVICE, attribute(list(w->resource, "attributes"), "service.name"));
	add_text(r, EK_SCOPE, at(w->scope, "name"));
}

static int emit(struct walk *w, struct record *r)
{
	if (++w->records > OTLP_MAX_RECORDS)
		return err_set(w->e, ERR_CONFIG, E2BIG, "more than %zu records in one request",
			       OTLP_MAX_RECORDS);
	return w->fn(w->arg, r->f, r->n);
}

/* ---- records ---- */

static int log_record(struct walk *w, const struct json *v)
{
	_cleanup_(record_done) struct record r;
	const struct json *name = at(v, "eventName"), *severity = at(v, "severityText");
	uint64_t when = number(at(v, "timeUnixNano"));
	char level[24];

	begin(w, &r);
	add_text(&r, EK_TITLE, name ? name : attribute(list(v, "attributes"), "event.name"));
	add_body(&r, at(v, "body"));
	if (severity == NULL && number(at(v, "severityNumber")) > 0) {
		(void)snprintf(level, sizeof(level), "%llu",
			       (unsigned long long)number(at(v, "severityNumber")));
		r.f[r.n++] = EVENT_STR(SEVERITY, level);
	}
	add_text(&r, EK_SEVERITY, severity);
	add_text(&r, EK_TRACE, at(v, "traceId"));
	add_text(&r, EK_SPAN, at(v, "spanId"));
	add_attributes(&r, v);
	add_number(&r, EK_WHEN, when ? when : number(at(v, "observedTimeUnixNano")));
	return emit(w, &r);
}

static int span_record(struct walk *w, const struct json *v)
{
	_cleanup_(record_done) struct record r;
	uint64_t start = number(at(v, "startTimeUnixNano")), end = number(at(v, "endTimeUnixNano"));
	const struct json *status = at(v, "status");

	begin(w, &r);
	add_text(&r, EK_TITLE, at(v, "name"));
	add_text(&r, EK_TRACE, at(v, "traceId"));
	add_text(&r, EK_SPAN, at(v, "spanId"));
	add_text(&r, EK_PARENT, at(v, "parentSpanId"));
	if (number(at(status, "code")) == 2)
		r.f[r.n++] = EVENT_STR(SEVERITY, "error");
	add_text(&r, EK_BODY, at(status, "message"));
	add_attributes(&r, v);
	add_number(&r, EK_WHEN, start);
	add_number(&r, EK_DURATION, end > start ? end - start : 0);
	return emit(w, &r);
}

static int point(struct walk *w, const struct json *metric, const struct json *v)
{
	_cleanup_(record_done) struct record r;
	const struct json *value = at(v, "asInt"), *unit = at(metric, "unit");

	begin(w, &r);
	add_text(&r, EK_TITLE, at(metric, "name"));
	if (value == NULL)
		value = at(v, "asDouble");
	if (value == NULL)
		value = at(v, "sum");
	if (value && (value->type == JSON_NUMBER || value->type == JSON_STRING))
		buf_add(&r.body, value->text, value->n < TEXT_MAX ? value->n : TEXT_MAX);
	if (r.body.n > 0 && unit && unit->type == JSON_STRING && unit->n > 0) {
		buf_putc(&r.body, ' ');
		buf_add(&r.body, unit->text, unit->n < TEXT_MAX ? unit->n : TEXT_MAX);
	}
	add_buf(&r, EK_BODY, &r.body);
	add_number(&r, EK_COUNT, number(at(v, "count")));
	add_attributes(&r, v);
	add_number(&r, EK_WHEN, number(at(v, "timeUnixNano")));
	return emit(w, &r);
}

static int metric_record(struct walk *w, const struct json *v)
{
	static const char *const kinds[] = { "gauge", "sum", "histogram", "exponentialHistogram",
					     "summary" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (const struct json *p = list(at(v, kinds[i]), "dataPoints"); p && r == 0;
		     p = p->next)
			r = point(w, v, p);
	return r;
}

/* ---- the request ---- */

static int walk(struct walk *w, const struct json *root)
{
	static const struct {
		const char *resources, *scopes, *records;
		int (*fn)(struct walk *w, const struct json *v);
	} names[OTLP_SIGNAL_COUNT_] = {
		[OTLP_LOGS] = { "resourceLogs", "scopeLogs", "logRecords", log_record },
		[OTLP_METRICS] = { "resourceMetrics", "scopeMetrics", "metrics", metric_record },
		[OTLP_TRACES] = { "resourceSpans", "scopeSpans", "spans", span_record },
	};
	int r = 0;

	for (const struct json *a = list(root, names[w->signal].resources); a && r == 0;
	     a = a->next) {
		w->resource = at(a, "resource");
		for (const struct json *b = list(a, names[w->signal].scopes); b && r == 0;
		     b = b->next) {
			w->scope = at(b, "scope");
			for (const struct json *c = list(b, names[w->signal].records); c && r == 0;
			     c = c->next)
				r = names[w->signal].fn(w, c);
		}
	}
	return r;
}

static int read_json(struct walk *w, const void *p, size_t n)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	int r = json_parse_foreign(p, n, &doc, w->e);

	if (r < 0)
		return r == -E2BIG ? r : -EBADMSG;
	if (doc.root->type != JSON_OBJECT)
		return err_set(w->e, ERR_CONFIG, EBADMSG, "an export request is an object");
	return walk(w, doc.root);
}

int otlp_read(const struct otlp_request *q, otlp_record_fn *fn, void *arg, struct err *e)
{
	struct walk w = { .signal = q->signal, .fn = fn, .arg = arg, .e = e };
	struct otlp_tree tree;
	int r;

	if (q->n > OTLP_MAX_BYTES)
		return err_set(e, ERR_CONFIG, E2BIG, "more than %zu bytes", OTLP_MAX_BYTES);
	if (q->is_json) {
		r = read_json(&w, q->p, q->n);
	} else {
		r = otlp_proto(q->signal, q->p, q->n, &tree, e);
		if (r == 0) {
			r = walk(&w, tree.root);
			otlp_tree_done(&tree);
		}
	}
	return r != 0 ? r : (int)w.records;
}
