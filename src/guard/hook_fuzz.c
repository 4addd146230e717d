/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook_fuzz.c - any bytes as an agent's call: no crash, and an answer that is the agent's own JSON
 *
 * The first byte says which agent was named on the command line. An answer is read again; a refusal is written
 * somewhere, and whatever could not be read is refused by its status or in words.
 */
#include "guard/hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_answer(const struct hook_call *call, const struct judgement *j)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB), err = BUF(MIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	int status = hook_answer(call, j, &out, &err);

	bug_on(status != 0 && status != 2);
	if (out.n)
		bug_on(json_parse_foreign(buf_cstr(&out), out.n, &doc, &e) < 0);
	if (j->verdict == VERDICT_DENY)
		bug_on(out.n == 0 && !(status == 2 && err.n));
	if (j->verdict == VERDICT_DENY && out.n)
		bug_on(strstr(buf_cstr(&out), "\"deny\"") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	enum agent told = n ? data[0] % AGENT_COUNT_ : AGENT_UNKNOWN;
	char refusal[512];
	struct hook_call call;
	struct judgement j;
	struct err e = ERR_INIT;
	struct guard g;
	int r;

	if (n)
		buf_add(&text, data + 1, n - 1);
	r = hook_read(&mem, buf_cstr(&text), text.n, told, &call, &e);
	if (r < 0) {
		r = hook_refusal(told, e.msg, refusal, sizeof(refusal));
		bug_on(r != 2 && strstr(refusal, "deny") == NULL);
		return 0;
	}
	bug_on(call.agent == AGENT_UNKNOWN || (call.kind == TOOL_SHELL && call.command == NULL));
	guard_init_plain(&g, "/home/u", "/home/u/project");
	j = (struct judgement){ .rule = "", .say = "", .command = "" };
	if (call.command)
		guard_command(&g, &mem, call.command, strlen(call.command), &j);
	else
		guard_tool(&g, &mem, call.acts, call.n_acts, call.is_cut, &j);
	check_answer(&call, &j);
	return 0;
}
