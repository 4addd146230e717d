/* SPDX-License-Identifier: Apache-2.0 */
/* guard/shell_fuzz.c - any bytes as a command: no crash, and a verdict that holds together
 *
 * Beyond sanitizers: a text that cannot be read is never allowed, one that is proved safe was read, and the same text
 * behind a command that is always refused is refused as well, unless it closes off that command by a comment or quote
 * of its own, which it cannot as it comes last.
 */
#include "base/buf.h"
#include "guard/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB), again = ARENA(64 * MIB);
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	struct shell_error error;
	struct judgement j;
	struct guard g;

	guard_init_plain(&g, "/home/u", "/home/u/project");
	buf_add(&text, data, n);
	guard_command(&g, &mem, buf_cstr(&text), text.n, &j);
	bug_on(j.verdict >= VERDICT_COUNT_ || j.n_all > WALK_MAX_FINDINGS);
	bug_on(j.verdict != VERDICT_ALLOW && (j.rule[0] == '\0' || j.say[0] == '\0'));
	if (shell_parse(&again, buf_cstr(&text), text.n, &error) == NULL)
		bug_on(j.verdict == VERDICT_ALLOW || j.is_proved || error.what == NULL);
	/* Whatever comes behind it: the first line is run. */
	text.n = 0;
	buf_puts(&text, "rm -rf /\n");
	buf_add(&text, data, n);
	guard_command(&g, &again, buf_cstr(&text), text.n, &j);
	bug_on(j.verdict == VERDICT_ALLOW);
	return 0;
}
