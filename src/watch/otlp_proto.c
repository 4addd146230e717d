/* SPDX-License-Identifier: Apache-2.0 */
/* watch/otlp_proto.c - the few protobuf messages of OTLP, by a table
 *
 * The table holds what the walker looks at, by number and by the name JSON uses; every other field is skipped by its
 * wire type. What an honest encoder never writes is refused: groups, lengths that run over, varints of more than ten
 * bytes, a single field twice, strings that are no UTF-8. Depth and number of nodes are bounded before anything is
 * allocated; a node costs about as much as the shortest bytes that make one, times forty.
 */
#include "base/utf8.h"
#include "watch/otlp.h"

#define MAX_DEPTH 32
#define MAX_NODES ((size_t)200000)
#define MAX_FIELDS 16

void otlp_tree_done(struct otlp_tree *t)
{
	arena_done(&t->mem);
	t->root = NULL;
}

static struct json *node_new(struct otlp_tree *t, enum json_type type, const char *key)
{
	struct json *v;

	if (t->nodes == MAX_NODES)
		return NULL;
	t->nodes++;
	v = arena_new(&t->mem, struct json);
	*v = (struct json){ .type = type, .key = key };
	return v;
}

/* ---- the table ---- */

enum kind { STRING, HEX, BOOL, VARINT, FIXED64, SFIXED64, DOUBLE, MESSAGE };

struct message;
struct field {
	uint32_t number;
	enum kind kind;
	bool is_repeated;
	const char *name;
	const struct message *sub;
};

struct message {
	const struct field *v;
	size_t n;
};

#define MESSAGE_DEF(name, ...)                                                                     \
	static const struct field name##_fields[] = { __VA_ARGS__ };                               \
	static const struct message name = { name##_fields, ARRAY_LEN(name##_fields) }
#define ONE(number, kind, name)                                                                    \
	{                                                                                          \
		(number), (kind), false, (name), NULL                                              \
	}
#define SUB(number, name, message)                                                                 \
	{                                                                                          \
		(number), MESSAGE, false, (name), &(message)                                       \
	}
#define MANY(number, name, message)                                                                \
	{                                                                                          \
		(number), MESSAGE, true, (name), &(message)                                        \
	}

static const struct message any_value;
static const struct message key_value;

MESSAGE_DEF(array_value, MANY(1, "values", any_value));
MESSAGE_DEF(kvlist_value, MANY(1, "values", key_value));
static const struct field any_value_fields[] = {
	ONE(1, STRING, "stringValue"),     ONE(2, BOOL, "boolValue"),
	ONE(3, VARINT, "intValue"),        ONE(4, DOUBLE, "doubleValue"),
	SUB(5, "arrayValue", array_value), SUB(6, "kvlistValue", kvlist_value),
	ONE(7, HEX, "bytesValue"),
};
static const struct message any_value = { any_value_fields, ARRAY_LEN(any_value_fields) };
static const struct field key_value_fields[] = { ONE(1, STRING, "key"),
						 SUB(2, "value", any_value) };
static const struct message key_value = { key_value_fields, ARRAY_LEN(key_value_fields) };

MESSAGE_DEF(resource, MANY(1, "attributes", key_value));
MESSAGE_DEF(scope, ONE(1, STRING, "name"), ONE(2, STRING, "version"));

MESSAGE_DEF(log_record, ONE(1, FIXED64, "timeUnixNano"), ONE(2, VARINT, "severityNumber"),
	    ONE(3, STRING, "severityText"), SUB(5, "body", any_value),
	    MANY(6, "attributes", key_value), ONE(9, HEX, "traceId"), ONE(10, HEX, "spanId"),
	    ONE(11, FIXED64, "observedTimeUnixNano"), ONE(12, STRING, "eventName"));
MESSAGE_DEF(scope_logs, SUB(1, "scope", scope), MANY(2, "logRecords", log_record));
MESSAGE_DEF(resource_logs, SUB(1, "resource", resource), MANY(2, "scopeLogs", scope_logs));
MESSAGE_DEF(logs, MANY(1, "resourceLogs", resource_logs));

MESSAGE_DEF(status, ONE(2, STRING, "message"), ONE(3, VARINT, "code"));
MESSAGE_DEF(span, ONE(1, HEX, "traceId"), ONE(2, HEX, "spanId"), ONE(4, HEX, "parentSpanId"),
	    ONE(5, STRING, "name"), ONE(7, FIXED64, "startTimeUnixNano"),
	    ONE(8, FIXED64, "endTimeUnixNano"), MANY(9, "attributes", key_value),
	    SUB(15, "status", status));
MESSAGE_DEF(scope_spans, SUB(1, "scope", scope), MANY(2, "spans", span));
MESSAGE_DEF(resource_spans, SUB(1, "resource", resource), MANY(2, "scopeSpans", scope_spans));
MESSAGE_DEF(traces, MANY(1, "resourceSpans", resource_spans));

MESSAGE_DEF(number_point, ONE(3, FIXED64, "timeUnixNano"), ONE(4, DOUBLE, "asDouble"),
	    ONE(6, SFIXED64, "asInt"), MANY(7, "attributes", key_value));
MESSAGE_DEF(histogram_point, ONE(3, FIXED64, "timeUnixNano"), ONE(4, FIXED64, "count"),
	    ONE(5, DOUBLE, "sum"), MANY(9, "attributes", key_value));
MESSAGE_DEF(exponential_point, MANY(1, "attributes", key_value), ONE(3, FIXED64, "timeUnixNano"),
	    ONE(4, FIXED64, "count"), ONE(5, DOUBLE, "sum"));
MESSAGE_DEF(summary_point, ONE(3, FIXED64, "timeUnixNano"), ONE(4, FIXED64, "count"),
	    ONE(5, DOUBLE, "sum"), MANY(7, "attributes", key_value));
MESSAGE_DEF(numbers, MANY(1, "dataPoints", number_point));
MESSAGE_DEF(histogram, MANY(1, "dataPoints", histogram_point));
MESSAGE_DEF(exponential, MANY(1, "dataPoints", exponential_point));
MESSAGE_DEF(summary, MANY(1, "dataPoints", summary_point));
MESSAGE_DEF(metric, ONE(1, STRING, "name"), ONE(3, STRING, "unit"), SUB(5, "gauge", numbers),
	    SUB(7, "sum", numbers), SUB(9, "histogram", histogram),
	    SUB(10, "exponentialHistogram", exponential), SUB(11, "summary", summary));
MESSAGE_DEF(scope_metrics, SUB(1, "scope", scope), MANY(2, "metrics", metric));
MESSAGE_DEF(resource_metrics, SUB(1, "resource", resource), MANY(2, "scopeMetrics", scope_metrics));
MESSAGE_DEF(metrics, MANY(1, "resourceMetrics", resource_metrics));

/* ---- bytes ---- */

struct cursor {
	const uint8_t *p, *end;
};

static bool take_varint(struct cursor *c, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && c->p < c->end; shift += 7) {
		uint8_t b = *c->p++;

		/* The tenth byte has one bit left. */
		if (shift == 63 && b > 1)
			return false;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool take_fixed(struct cursor *c, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n)
		return false;
	for (size_t i = n; i-- > 0;)
		v = v << 8 | c->p[i];
	c->p += n;
	*ret = v;
	return true;
}

static bool take_bytes(struct cursor *c, struct cursor *ret)
{
	uint64_t n;

	if (!take_varint(c, &n) || n > (uint64_t)(c->end - c->p))
		return false;
	*ret = (struct cursor){ c->p, c->p + n };
	c->p += n;
	return true;
}

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

static bool skip(struct cursor *c, unsigned wire)
{
	struct cursor ignored;
	uint64_t v;

	switch (wire) {
	case WIRE_VARINT:
		return take_varint(c, &v);
	case WIRE_64:
		return take_fixed(c, 8, &v);
	case WIRE_BYTES:
		return take_bytes(c, &ignored);
	case WIRE_32:
		return take_fixed(c, 4, &v);
	default:
		return false; /* groups */
	}
}

static unsigned wire_of(enum kind k)
{
	switch (k) {
	case BOOL:
	case VARINT:
		return WIRE_VARINT;
	case FIXED64:
	case SFIXED64:
	case DOUBLE:
		return WIRE_64;
	case STRING:
	case HEX:
	case MESSAGE:
		break;
	}
	return WIRE_BYTES;
}

/* ---- nodes ---- */

static char *put_text(struct otlp_tree *t, struct json *v, const void *text, size_t n)
{
	char *copy = arena_take(&t->mem, n + 1);

	if (n > 0)
		memcpy(copy, text, n);
	copy[n] = '\0';
	v->text = copy;
	v->n = n;
	return copy;
}

/* Texts of the tree end at a NUL, so one inside becomes a question mark. */
static bool put_string(struct otlp_tree *t, struct json *v, const struct cursor *b)
{
	size_t n = (size_t)(b->end - b->p);
	char *copy;

	for (const uint8_t *p = b->p; p < b->end;) {
		size_t len = utf8_decode(p, (size_t)(b->end - p), NULL);

		if (len == 0)
			return false;
		p += len;
	}
	copy = put_text(t, v, b->p, n);
	for (size_t i = 0; i < n; i++)
		if (copy[i] == '\0')
			copy[i] = '?';
	return true;
}

static bool put_hex(struct otlp_tree *t, struct json *v, const struct cursor *b)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = (size_t)(b->end - b->p);
	char *text = arena_take(&t->mem, 2 * n + 1);

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[b->p[i] >> 4];
		text[2 * i + 1] = digits[b->p[i] & 15];
	}
	text[2 * n] = '\0';
	v->text = text;
	v->n = 2 * n;
	return true;
}

static void put_number(struct otlp_tree *t, struct json *v, enum kind kind, uint64_t bits)
{
	char text[40];
	double d;

	memcpy(&d, &bits, sizeof(d));
	if (kind == FIXED64)
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bits);
	else if (kind != DOUBLE)
		(void)snprintf(text, sizeof(text), "%lld", (long long)bits);
	else if (d != d || d - d != 0) {
		/* JSON has no such numbers; its encoding of OTLP says them in words. */
		v->type = JSON_STRING;
		(void)snprintf(text, sizeof(text), "%s",
			       d != d  ? "NaN"
			       : d > 0 ? "Infinity"
				       : "-Infinity");
	} else
		(void)snprintf(text, sizeof(text), "%.17g", d);
	(void)put_text(t, v, text, strlen(text));
}

static enum json_type type_of(enum kind k)
{
	switch (k) {
	case STRING:
	case HEX:
		return JSON_STRING;
	case BOOL:
		return JSON_BOOL;
	case MESSAGE:
		return JSON_OBJECT;
	case VARINT:
	case FIXED64:
	case SFIXED64:
	case DOUBLE:
		break;
	}
	return JSON_NUMBER;
}

/* ---- messages ---- */

/* Where the children of the message being read hang. */
struct frame {
	struct json *object, *last;
	struct json *list[MAX_FIELDS], *list_last[MAX_FIELDS];
	bool has[MAX_FIELDS];
};

static void append(struct json *parent, struct json **last, struct json *v)
{
	if (*last)
		(*last)->next = v;
	else
		parent->first = v;
	*last = v;
	parent->n++;
}

/* Hangs v where it belongs; false for a single field that is there already. */
static bool hang(struct otlp_tree *t, struct frame *f, const struct message *m, size_t i,
		 struct json *v)
{
	const struct field *d = &m->v[i];

	if (!d->is_repeated) {
		if (f->has[i])
			return false;
		f->has[i] = true;
		v->key = d->name;
		append(f->object, &f->last, v);
		return true;
	}
	if (f->list[i] == NULL) {
		f->list[i] = node_new(t, JSON_ARRAY, d->name);
		if (f->list[i] == NULL)
			return false;
		append(f->object, &f->last, f->list[i]);
	}
	append(f->list[i], &f->list_last[i], v);
	return true;
}

static bool read_message(struct otlp_tree *t, const struct message *m, struct cursor c,
			 struct json *object, int depth);

static bool read_value(struct otlp_tree *t, const struct field *d, struct cursor *c, struct json *v,
		       int depth)
{
	struct cursor bytes = { NULL, NULL };
	uint64_t bits = 0;

	switch (wire_of(d->kind)) {
	case WIRE_BYTES:
		if (!take_bytes(c, &bytes))
			return false;
		if (d->kind == MESSAGE)
			return read_message(t, d->sub, bytes, v, depth + 1);
		return d->kind == HEX ? put_hex(t, v, &bytes) : put_string(t, v, &bytes);
	case WIRE_64:
		if (!take_fixed(c, 8, &bits))
			return false;
		break;
	default:
		if (!take_varint(c, &bits))
			return false;
		break;
	}
	if (d->kind == BOOL)
		v->is_true = bits != 0;
	else
		put_number(t, v, d->kind, bits);
	return true;
}

static size_t find(const struct message *m, uint64_t number)
{
	size_t i = 0;

	while (i < m->n && m->v[i].number != number)
		i++;
	return i;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as MAX_DEPTH */
static bool read_message(struct otlp_tree *t, const struct message *m, struct cursor c,
			 struct json *object, int depth)
{
	struct frame f = { .object = object };

	bug_on(m->n > MAX_FIELDS);
	if (depth > MAX_DEPTH)
		return false;
	while (c.p < c.end) {
		struct json *v;
		uint64_t tag;
		size_t i;

		if (!take_varint(&c, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
			return false;
		i = find(m, tag >> 3);
		if (i == m->n || wire_of(m->v[i].kind) != (tag & 7)) {
			if (i < m->n || !skip(&c, tag & 7))
				return false;
			continue;
		}
		v = node_new(t, type_of(m->v[i].kind), NULL);
		if (v == NULL || !read_value(t, &m->v[i], &c, v, depth) || !hang(t, &f, m, i, v))
			return false;
	}
	return true;
}

int otlp_proto(enum otlp_signal signal, const void *p, size_t n, struct otlp_tree *ret,
	       struct err *e)
{
	static const struct message *const roots[OTLP_SIGNAL_COUNT_] = {
		[OTLP_LOGS] = &logs, [OTLP_METRICS] = &metrics, [OTLP_TRACES] = &traces
	};
	struct cursor c = { p, (const uint8_t *)p + n };

	*ret = (struct otlp_tree){ 0 };
	ret->root = node_new(ret, JSON_OBJECT, NULL);
	if (read_message(ret, roots[signal], c, ret->root, 0))
		return 0;
	otlp_tree_done(ret);
	return err_set(e, ERR_CONFIG, EBADMSG, "not a protobuf of %s", otlp_signal_name(signal));
}
