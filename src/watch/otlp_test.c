/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/otlp.h"

#include "base/test.h"

/* Records as the lines people would see, one behind the other. */
static int collect(void *arg, const struct event_field *f, size_t n)
{
	_cleanup_(buf_done) struct buf frame = BUF(2 * EVENT_MAX_BYTES), line = BUF(MIB);
	struct event_head h = { .type = EV_OTEL, .session = EVENT_NO_SESSION };
	struct event_origin from = { 0 };
	struct event ev;
	struct buf *out = arg;

	event_encode(&h, f, n, &frame);
	CHECK(event_decode(frame.p, frame.n, &ev) > 0);
	event_line(&ev, &from, &line);
	buf_puts(out, strstr(buf_cstr(&line), "otel"));
	buf_putc(out, '\n');
	return 0;
}

static int read_bytes(enum otlp_signal signal, bool is_json, const void *p, size_t n,
		      struct buf *out, struct err *e)
{
	struct otlp_request q = { .signal = signal, .is_json = is_json, .p = p, .n = n };

	return otlp_read(&q, collect, out, e);
}

static void json(enum otlp_signal signal, const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct err e = ERR_INIT;
	int r = read_bytes(signal, true, text, strlen(text), &out, &e);

	CHECK(r >= 0);
	CHECK_STR(e.msg, "");
	CHECK_STR(buf_cstr(&out), want);
}

TEST(logs_in_json)
{
	json(OTLP_LOGS,
	     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
	     "\"value\":"
	     "{\"stringValue\":\"claude-code\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},"
	     "\"logRecords\":[{\"timeUnixNano\":\"1700000000000000001\",\"severityText\":\"INFO\","
	     "\"body\":{\"stringValue\":\"claude_code.tool_result\"},\"attributes\":[{\"key\":"
	     "\"tool_name\",\"value\":{\"stringValue\":\"Bash\"}},{\"key\":\"duration_ms\","
	     "\"value\":"
	     "{\"intValue\":\"12\"}},{\"key\":\"ok\",\"value\":{\"boolValue\":true}}],\"traceId\":"
	     "\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"\"}]}]}]}",
	     "otel signal=logs service=claude-code scope=s body=claude_code.tool_result "
	     "severity=INFO trace=5b8efff798038103d269b633813fc60c "
	     "attributes=\"{\\\"tool_name\\\":\\\"Bash\\\",\\\"duration_ms\\\":12,\\\"ok\\\":true}"
	     "\" "
	     "when_ns=1700000000000000001\n");
}

TEST(of_a_key_that_stands_twice_the_first_counts)
{
	json(OTLP_LOGS,
	     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
	     "\"value\":{\"stringValue\":"
	     "\"first\"}},{\"key\":\"service.name\",\"value\":{\"stringValue\":\"second\"}}]},"
	     "\"scopeLogs\":[{"
	     "\"logRecords\":[{\"attributes\":[{\"key\":\"a\",\"value\":{\"intValue\":\"1\"}},{"
	     "\"key\":\"b\","
	     "\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"c\",\"value\":{\"intValue\":\"3\"}"
	     "},{\"key\":\"c\","
	     "\"value\":{\"intValue\":\"4\"}}]}}},{\"key\":\"a\",\"value\":{\"intValue\":\"2\"}}]}]"
	     "}]}]}",
	     "otel signal=logs service=first "
	     "attributes=\"{\\\"a\\\":1,\\\"b\\\":{\\\"c\\\":3}}\"\n");
}

TEST(metrics_in_json)
{
	json(OTLP_METRICS,
	     "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"cost\",\"unit\":"
	     "\"USD\",\"sum\":{\"dataPoints\":[{\"asDouble\":1e-7,\"timeUnixNano\":\"5\"},{"
	     "\"asInt\":"
	     "\"3\"}]}},{\"name\":\"h\",\"histogram\":{\"dataPoints\":[{\"count\":\"4\",\"sum\":2."
	     "5}]"
	     "}}]}]}]}",
	     "otel signal=metrics title=cost body=\"1e-7 USD\" when_ns=5\n"
	     "otel signal=metrics title=cost body=\"3 USD\"\n"
	     "otel signal=metrics title=h body=2.5 count=4\n");
}

TEST(spans_in_json)
{
	json(OTLP_TRACES,
	     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"turn\",\"traceId\":"
	     "\"aa\","
	     "\"spanId\":\"bb\",\"parentSpanId\":\"cc\",\"startTimeUnixNano\":\"100\","
	     "\"endTimeUnixNano\":\"350\",\"status\":{\"code\":2,\"message\":\"no\"}}]}]}]}",
	     "otel signal=traces title=turn trace=aa span=bb parent=cc severity=error body=no "
	     "when_ns=100 duration_ns=250\n");
}

TEST(what_is_not_there_is_no_record)
{
	json(OTLP_LOGS, "{}", "");
	json(OTLP_LOGS, "{\"resourceLogs\":[]}", "");
	json(OTLP_LOGS, "{\"resourceLogs\":[{}],\"new\":7}", "");
	json(OTLP_LOGS, "{\"resourceLogs\":{\"a\":1}}", "");
}

/* ---- protobuf, written by hand ---- */

static void put_tag(struct buf *b, unsigned number, unsigned wire)
{
	buf_putc(b, (char)(number << 3 | wire));
}

static void put_bytes(struct buf *b, unsigned number, const void *p, size_t n)
{
	put_tag(b, number, 2);
	if (n >= 0x80)
		buf_putc(b, (char)(n | 0x80));
	buf_putc(b, (char)(n >= 0x80 ? n >> 7 : n));
	buf_add(b, p, n);
}

static void put_str(struct buf *b, unsigned number, const char *s)
{
	put_bytes(b, number, s, strlen(s));
}

static void put_fixed(struct buf *b, unsigned number, uint64_t v)
{
	put_tag(b, number, 1);
	for (unsigned i = 0; i < 8; i++)
		buf_putc(b, (char)(v >> 8 * i));
}

/* Wraps what is in b into field `number` of the next message out. */
static void wrap(struct buf *b, unsigned number)
{
	struct buf out = BUF(MIB);

	put_bytes(&out, number, b->p, b->n);
	buf_done(b);
	*b = out;
}

static void one_log(struct buf *b)
{
	_cleanup_(buf_done) struct buf body = BUF(KIB);

	put_str(&body, 1, "hello");
	put_fixed(b, 1, 77);
	put_tag(b, 2, 0);
	buf_putc(b, 9);
	put_bytes(b, 5, body.p, body.n);
	put_bytes(b, 9, "\x01\xab", 2);
	put_tag(b, 15, 0); /* a field nobody knows */
	buf_putc(b, 1);
	put_str(b, 14, "skipped");
	wrap(b, 2); /* log_records */
	wrap(b, 2); /* scope_logs */
	wrap(b, 1); /* resource_logs */
}

TEST(logs_in_protobuf)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB), out = BUF(MIB);
	struct err e = ERR_INIT;

	one_log(&b);
	CHECK_INT(read_bytes(OTLP_LOGS, false, b.p, b.n, &out, &e), 1);
	CHECK_STR(buf_cstr(&out), "otel signal=logs body=hello severity=9 trace=01ab when_ns=77\n");
	/* Cut anywhere, it is none. */
	for (size_t n = 1; n < b.n; n++)
		CHECK_INT(read_bytes(OTLP_LOGS, false, b.p, n, &out, &e), -EBADMSG);
	CHECK_INT(read_bytes(OTLP_LOGS, false, b.p, 0, &out, &e), 0);
}

TEST(metrics_in_protobuf)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB), out = BUF(MIB), point = BUF(KIB);
	struct err e = ERR_INIT;
	double d = 0.25;
	uint64_t bits;

	memcpy(&bits, &d, 8);
	put_fixed(&point, 4, bits);
	wrap(&point, 1); /* data_points */
	put_str(&b, 1, "cost");
	put_bytes(&b, 7, point.p, point.n); /* sum */
	wrap(&b, 2);
	wrap(&b, 2);
	wrap(&b, 1);
	CHECK_INT(read_bytes(OTLP_METRICS, false, b.p, b.n, &out, &e), 1);
	CHECK_STR(buf_cstr(&out), "otel signal=metrics title=cost body=0.25\n");
}

static void refused(const struct buf *b)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct err e = ERR_INIT;

	CHECK_INT(read_bytes(OTLP_LOGS, false, b->p, b->n, &out, &e), -EBADMSG);
}

TEST(wrong_protobuf_is_refused)
{
	_cleanup_(buf_done) struct buf group = BUF(KIB), twice = BUF(KIB), deep = BUF(MIB),
				       text = BUF(KIB), varint = BUF(KIB);

	put_tag(&group, 9, 3);
	refused(&group);
	for (int i = 0; i < 2; i++)
		put_fixed(&twice, 1, 1);
	wrap(&twice, 2);
	wrap(&twice, 2);
	wrap(&twice, 1);
	refused(&twice);
	put_str(&deep, 1, "x");
	for (int i = 0; i < 40; i++) {
		wrap(&deep, 1); /* values */
		wrap(&deep, 5); /* arrayValue */
	}
	wrap(&deep, 5); /* body */
	wrap(&deep, 2);
	wrap(&deep, 2);
	wrap(&deep, 1);
	refused(&deep);
	put_str(&text, 3, "\xff");
	wrap(&text, 2);
	wrap(&text, 2);
	wrap(&text, 1);
	refused(&text);
	for (int i = 0; i < 11; i++)
		buf_putc(&varint, (char)0xff);
	refused(&varint);
}

TEST(too_many_records_are_refused)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * MIB), out = BUF(64 * MIB);
	struct err e = ERR_INIT;

	buf_puts(&b, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}");
	for (size_t i = 0; i < OTLP_MAX_RECORDS; i++)
		buf_puts(&b, ",{}");
	buf_puts(&b, "]}]}]}");
	CHECK_INT(read_bytes(OTLP_LOGS, true, b.p, b.n, &out, &e), -E2BIG);
}

TEST_MAIN()
