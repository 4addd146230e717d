/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/said.h"

#include "base/test.h"

/* Events as the lines people would see, one behind the other. */
static int collect(void *arg, enum event_type type, const struct event_field *f, size_t n)
{
	_cleanup_(buf_done) struct buf frame = BUF(2 * EVENT_MAX_BYTES), line = BUF(MIB);
	struct event_head h = { .type = (uint16_t)type, .session = EVENT_NO_SESSION };
	struct event_origin from = { 0 };
	struct event ev;
	struct buf *out = arg;

	event_encode(&h, f, n, &frame);
	CHECK(event_decode(frame.p, frame.n, &ev) > 0);
	event_line(&ev, &from, &line);
	buf_puts(out, strstr(buf_cstr(&line), event_type_def(type)->name));
	buf_putc(out, '\n');
	return 0;
}

static void report(const char *text, const char *want, const char *message)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct err e = ERR_INIT;
	int r = said_report(text, strlen(text), collect, &out, &e);

	CHECK((r < 0) == (message[0] != '\0'));
	CHECK_STR(e.msg, message);
	CHECK_STR(buf_cstr(&out), want);
}

static void line(const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);

	CHECK(said_line(text, strlen(text), collect, &out) >= 0);
	CHECK_STR(buf_cstr(&out), want);
}

TEST(a_report_is_a_call)
{
	report("{\"tool\":\"Bash\",\"call\":\"t1\",\"agent\":\"claude\",\"input\":{\"command\":"
	       "\"ls\"},"
	       "\"output\":\"a\",\"code\":0,\"duration_ns\":5}",
	       "tool.call tool=Bash call=t1 agent=claude input=\"{\\\"command\\\":\\\"ls\\\"}\" "
	       "output=a code=0 duration_ns=5 inside=true\n",
	       "");
	report("{\"tool\":\"x\"}", "tool.call tool=x inside=true\n", "");
}

TEST(with_a_verdict_it_is_a_decision_too)
{
	report("{\"tool\":\"Bash\",\"verdict\":\"deny\",\"rule\":\"rm\",\"message\":\"no\","
	       "\"input\":\"rm -rf /\"}",
	       "tool.call tool=Bash input=\"rm -rf /\" inside=true\n"
	       "guard.decision tool=Bash input=\"rm -rf /\" message=no verdict=deny rule=rm "
	       "inside=true\n",
	       "");
}

TEST(anything_else_is_no_report)
{
	report("", "", "not a report");
	report("[]", "", "not an object");
	report("{}", "", "no tool");
	report("{\"tool\":1}", "", "'tool' is not a string");
	report("{\"tool\":\"x\",\"type\":\"net.verdict\"}", "", "a report has no such key");
	report("{\"tool\":\"x\",\"verdict\":\"maybe\"}", "", "'verdict' is not allow, ask or deny");
	report("{\"tool\":\"x\"} {}", "", "not a report");
}

TEST(lines_of_agents)
{
	line("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}"
	     ","
	     "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}"
	     ","
	     "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"Read\",\"input\":{}}]}}",
	     "tool.call tool=Bash call=a input=\"{\\\"command\\\":\\\"ls\\\"}\" inside=true\n"
	     "tool.call tool=Read call=b input={} inside=true\n");
	line("{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"command_execution\","
	     "\"command\":\"true\",\"aggregated_output\":\"out\",\"exit_code\":1}}",
	     "tool.call tool=command_execution call=i input=true output=out code=1 inside=true\n");
	line("{\"type\":\"tool_use\",\"tool_name\":\"shell\",\"tool_id\":\"g\",\"parameters\":{"
	     "\"a\":[1,"
	     "true,null]}}",
	     "tool.call tool=shell call=g input=\"{\\\"a\\\":[1,true,null]}\" inside=true\n");
	line("{\"type\":\"tool_use\",\"part\":{\"tool\":\"bash\",\"callID\":\"o\",\"state\":{"
	     "\"input\":"
	     "{},\"output\":\"x\"}}}",
	     "tool.call tool=bash call=o input={} output=x inside=true\n");
}

TEST(lines_that_tell_of_no_call)
{
	line("", "");
	line("hello", "");
	line("{\"type\":\"result\"}", "");
	line("{\"type\":\"assistant\",\"message\":{\"content\":\"text\"}}", "");
	line("{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"x\"}}",
	     "");
	line("{\"type\":\"assistant\"", "");
}

TEST_MAIN()
