/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report_fuzz.c - an agent's output, a project's task lists and a repository's log, whatever they hold */
#include "agent/night.h"
#include "agent/report.h"
#include "agent/tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct preset_report how = { .when = "type=result",
						  .text = "result",
						  .cost = "cost",
						  .tokens_in = "usage.in",
						  .tokens_out = "usage.out",
						  .failed = "failed" };
	static const struct preset_report lists = { .when = "type=result", .text = "a.b.c" };
	const char *text = (const char *)data;
	struct tasks t = { 0 };
	struct report r;

	report_read(&how, text, n, &r);
	bug_on(r.text.n > REPORT_TEXT_MAX || r.text.is_over);
	report_done(&r);
	report_read(&lists, text, n, &r);
	bug_on(r.text.n > REPORT_TEXT_MAX || r.text.is_over);
	report_done(&r);
	tasks_markdown(&t, text, n);
	tasks_beads(&t, text, n);
	bug_on(t.n > TASKS_MAX || t.n > t.open + t.done);
	tasks_done(&t);
	struct night_commit c;

	if (night_commit(text, n, &c))
		bug_on(c.subject < text || c.subject + c.n != text + n);
	return 0;
}
