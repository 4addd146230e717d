/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loop_test.c - stop conditions, back-off, reports, task lists */
#include "agent/loop.h"
#include "agent/report.h"
#include "agent/tasks.h"
#include "base/test.h"

static const struct loop_conf conf = {
	.max = 5, .still = 3, .failures = 3, .backoff = 10, .has_marker = true
};

static enum loop_stop next(const struct loop_conf *c, const struct loop_sum *s)
{
	uint64_t wait;

	return loop_decide(c, s, &wait);
}

static const struct loop_result good = {
	.n_changed = 1, .duration = 10, .cost = 5, .tokens_in = 3, .tokens_out = 2
};

TEST(goes_on_until_max)
{
	struct loop_sum s = { 0 };

	for (int i = 0; i < 5; i++) {
		CHECK_INT(next(&conf, &s), LOOP_GOES_ON);
		loop_fold(&s, &good);
	}
	CHECK_INT(next(&conf, &s), LOOP_MAX);
	CHECK_INT(s.iterations, 5);
	CHECK_INT(s.cost, 25);
}

TEST(budgets)
{
	struct loop_conf c = conf;
	struct loop_sum s = { 0 };

	loop_fold(&s, &good);
	loop_fold(&s, &good);
	c.time = 20;
	CHECK_INT(next(&c, &s), LOOP_TIME);
	c.time = 21;
	c.cost = 10;
	CHECK_INT(next(&c, &s), LOOP_COST);
	c.cost = 11;
	c.tokens = 10;
	CHECK_INT(next(&c, &s), LOOP_TOKENS);
	c.tokens = 11;
	CHECK_INT(next(&c, &s), LOOP_GOES_ON);
	s.cost = UINT64_MAX - 1;
	loop_fold(&s, &good);
	CHECK(s.cost == UINT64_MAX); /* no agent talks its way around a budget by wrapping it */
}

TEST(success_before_limits)
{
	struct loop_conf c = conf;
	struct loop_sum s = { 0 };
	struct loop_result r = good;

	r.is_marked = true;
	for (int i = 0; i < 5; i++)
		loop_fold(&s, &r);
	CHECK_INT(next(&c, &s), LOOP_MARKER);
	/* Where there is a check, saying "done" is not enough. */
	c.has_check = true;
	CHECK_INT(next(&c, &s), LOOP_MAX);
	s.is_checked = true;
	CHECK_INT(next(&c, &s), LOOP_CHECK);
	c.has_check = c.has_marker = false;
	CHECK_INT(next(&c, &s), LOOP_MAX);
}

TEST(still_and_failing)
{
	struct loop_sum s = { 0 };
	struct loop_result idle = { .outcome = LOOP_OK },
			   bad = { .outcome = LOOP_FAILED, .failure = 7, .n_changed = 1 };

	loop_fold(&s, &idle);
	loop_fold(&s, &idle);
	loop_fold(&s, &good);
	CHECK_INT(next(&conf, &s), LOOP_GOES_ON);
	for (int i = 0; i < 3; i++)
		loop_fold(&s, &idle);
	struct loop_conf many = conf;
	many.max = 100;
	CHECK_INT(next(&many, &s), LOOP_STILL);

	s = (struct loop_sum){ 0 };
	loop_fold(&s, &bad);
	loop_fold(&s, &bad);
	bad.failure = 8;
	loop_fold(&s, &bad);
	CHECK_INT(next(&many, &s), LOOP_GOES_ON);
	loop_fold(&s, &bad);
	loop_fold(&s, &bad);
	CHECK_INT(next(&many, &s), LOOP_FAILING);
	loop_fold(&s, &good);
	CHECK_INT(next(&many, &s), LOOP_GOES_ON);
	CHECK_INT(s.failed, 5);
}

TEST(busy_backs_off)
{
	struct loop_sum s = { 0 };
	struct loop_result busy = { .outcome = LOOP_LIMITED };
	uint64_t wait = 0;

	for (int i = 0; i < LOOP_BUSY_MAX; i++) {
		CHECK_INT(loop_decide(&conf, &s, &wait), LOOP_GOES_ON);
		CHECK_INT(wait, i == 0 ? 0 : 10ULL << (i - 1));
		loop_fold(&s, &busy);
	}
	CHECK_INT(loop_decide(&conf, &s, &wait), LOOP_BUSY);
	CHECK_INT(s.iterations, 0);
	CHECK_INT(s.tries, LOOP_BUSY_MAX);
	loop_fold(&s, &good);
	CHECK_INT(loop_decide(&conf, &s, &wait), LOOP_GOES_ON);
	CHECK_INT(wait, 0);
	s.busy = 11;
	struct loop_conf slow = conf;
	slow.backoff = 60 * NS_PER_SEC;
	(void)loop_decide(&slow, &s, &wait);
	CHECK(wait == LOOP_WAIT_MAX);
	CHECK(loop_is_busy("API Error: rate_limit", NULL) && loop_is_busy("x quota y", "none\0quota"
										       "\0"));
	CHECK(!loop_is_busy("all is well", "none\0quota\0"));
}

TEST(interruptions)
{
	for (enum loop_stop s = 0; s < LOOP_STOP_COUNT_; s++)
		CHECK_INT(loop_stop_is_interruption(s),
			  s == LOOP_GOES_ON || s == LOOP_BUSY || s == LOOP_SIGNAL);
}

TEST(failures_are_compared)
{
	const char a[] = "12:30:01 error in line 7", b[] = "12:31:55 error in line 19",
		   c[] = "error elsewhere";

	CHECK(loop_failure(1, a, strlen(a)) == loop_failure(1, b, strlen(b)));
	CHECK(loop_failure(1, a, strlen(a)) != loop_failure(2, a, strlen(a)));
	CHECK(loop_failure(1, a, strlen(a)) != loop_failure(1, c, strlen(c)));
}

TEST(reports)
{
	static const struct preset_report claude = { .when = "type=result",
						     .text = "result",
						     .cost = "total_cost_usd",
						     .tokens_in = "usage.input_tokens",
						     .tokens_out = "usage.output_tokens",
						     .failed = "is_error" };
	static const struct preset_report codex = { .when = "type=turn.completed",
						    .text_when = "type=item.completed",
						    .text = "item.text",
						    .tokens_in = "usage.input_tokens" };
	const char a[] = "not json\n{\"type\":\"system\",\"usage\":{\"input_tokens\":9}}\n"
			 "{\"type\":\"result\",\"result\":\"all "
			 "DONE\",\"is_error\":true,\"total_cost_usd\":0.0125,"
			 "\"usage\":{\"input_tokens\":100,\"output_tokens\":20}}";
	const char b[] = "{\"type\":\"item.completed\",\"item\":{\"text\":\"one\"}}\n{\"type\":"
			 "\"turn.completed\",\"usage\":{"
			 "\"input_tokens\":1}}\n{\"type\":\"item.completed\",\"item\":{\"text\":"
			 "\"two\"}}\n"
			 "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":2}}\n{\"type\":"
			 "\"turn.completed\"\n[]\n{\n";
	struct report r;

	report_read(&claude, a, strlen(a), &r);
	CHECK_STR(buf_cstr(&r.text), "all DONE\n");
	CHECK_INT(r.cost, 12500);
	CHECK_INT(r.tokens_in, 100);
	CHECK_INT(r.tokens_out, 20);
	CHECK(r.is_failed && r.has_cost && r.has_tokens);
	report_done(&r);
	report_read(&codex, b, strlen(b), &r);
	CHECK_STR(buf_cstr(&r.text), "one\ntwo\n");
	CHECK_INT(r.tokens_in, 3);
	CHECK(!r.has_cost && !r.is_failed);
	report_done(&r);
	report_read(&(struct preset_report){ 0 }, a, strlen(a), &r);
	CHECK(!r.has_tokens && r.text.n == 0);
	report_done(&r);
}

TEST(reports_with_lists)
{
	static const struct preset_report how = { .when = "type=end",
						  .text = "message.content.text" };
	const char a[] = "{\"type\":\"end\",\"message\":{\"content\":[{\"type\":\"thinking\"},{"
			 "\"text\":"
			 "\"one\"},7,[{\"text\":\"two\"}],{\"text\":{\"text\":\"no\"}}]}}\n"
			 "{\"type\":\"end\",\"message\":\"no\"}\n{\"type\":\"end\",\"message\":{"
			 "\"content\":\"no\"}}\n";
	struct report r;

	report_read(&how, a, strlen(a), &r);
	CHECK_STR(buf_cstr(&r.text), "one\ntwo\n");
	report_done(&r);
}

TEST(dollars)
{
	uint64_t n = 0;

	CHECK(report_dollars("12", &n) && n == 12000000);
	CHECK(report_dollars("0.5", &n) && n == 500000);
	CHECK(report_dollars("3.1234567", &n) && n == 3123456);
	CHECK(report_dollars("1.5e-7", &n) && n == 0);
	CHECK(!report_dollars("", &n) && !report_dollars("-1", &n) && !report_dollars("1e9", &n) &&
	      !report_dollars("x", &n));
	CHECK(!report_dollars("99999999999999999999", &n) &&
	      !report_dollars("18446744073709551615", &n));
}

TEST(task_lists)
{
	const char text[] = "# Plan\n- [ ] one\n  * [x] two\r\n1. [X] three\n- [-] none\n-[ ] "
			    "none\n[ ] none\n```\n- [ ] code\n```\n"
			    "> + [ ] four\n- [x]";
	const char beads[] = "{\"id\":\"a\",\"title\":\"one\",\"status\":\"open\"}\n{\"id\":\"b\","
			     "\"title\":\"two\",\"status\":"
			     "\"closed\"}\nnonsense\n{\"title\":1,\"status\":\"open\"}\n";
	struct tasks t = { 0 };

	tasks_markdown(&t, text, strlen(text));
	CHECK_INT(t.open, 2);
	CHECK_INT(t.done, 3);
	CHECK_STR(t.v[0].text, "one");
	CHECK_STR(t.v[1].text, "two");
	CHECK_STR(t.v[3].text, "four");
	tasks_done(&t);
	tasks_beads(&t, beads, strlen(beads));
	CHECK_INT(t.open, 1);
	CHECK_INT(t.done, 1);
	tasks_done(&t);
}

TEST_MAIN()
