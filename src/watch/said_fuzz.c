/* SPDX-License-Identifier: Apache-2.0 */
/* watch/said_fuzz.c - any bytes as a report, and as a line of structured output
 *
 * Whatever is read makes whole frames of the two types, marked as said by the inside, with the fields those have.
 */
#include "watch/said.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int check(void *arg, enum event_type type, const struct event_field *f, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * EVENT_MAX_BYTES);
	struct event_head h = { .type = (uint16_t)type, .session = EVENT_NO_SESSION };
	const struct event_type_def *d = event_type_def(type);
	struct event ev;

	(void)arg;
	bug_on(type != EV_TOOL_CALL && type != EV_GUARD_DECISION);
	event_encode(&h, f, n, &b);
	bug_on(event_decode(b.p, b.n, &ev) != (ssize_t)b.n);
	bug_on(event_get_num(&ev, EK_IS_INSIDE) != 1);
	for (size_t i = 0; i < d->n_needed; i++)
		bug_on(event_get(&ev, d->keys[i]) == NULL);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err e = ERR_INIT;

	if (n == 0)
		return 0;
	if (data[0] & 1)
		(void)said_report((const char *)data + 1, n - 1, check, NULL, &e);
	else
		(void)said_line((const char *)data + 1, n - 1, check, NULL);
	return 0;
}
