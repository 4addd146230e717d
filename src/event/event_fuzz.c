/* SPDX-License-Identifier: Apache-2.0 */
/* event/event_fuzz.c - any bytes as a journal
 *
 * Read as a journal is read: frame behind frame until one is refused. What is accepted must be shown as JSON that our
 * own strict reader takes and as a line without a control character, and must survive being written again. Sums are
 * put right first when the first byte is odd, or no input would ever come past them.
 */
#include "base/json.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void mend_sum(uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	size_t len;

	if (n < EVENT_HEAD_BYTES)
		return;
	for (size_t i = 0; i < 4; i++)
		p[i] = (uint8_t) "VEV1"[i];
	len = p[4] | (size_t)p[5] << 8 | (size_t)p[6] << 16 | (size_t)p[7] << 24;
	if (len < EVENT_HEAD_BYTES || len > n || len > EVENT_MAX_BYTES) {
		len = n < EVENT_MAX_BYTES ? n : EVENT_MAX_BYTES;
		for (size_t i = 0; i < 4; i++)
			p[4 + i] = (uint8_t)(len >> 8 * i);
	}
	for (size_t i = 0; i < len; i++)
		if (i < 28 || i >= EVENT_HEAD_BYTES)
			h = (h ^ p[i]) * 0x100000001b3ULL;
	h ^= h >> 32;
	for (size_t i = 0; i < 4; i++)
		p[28 + i] = (uint8_t)(h >> 8 * i);
}

static void show(const struct event *ev)
{
	_cleanup_(buf_done) struct buf json = BUF(8 * MIB), line = BUF(8 * MIB);
	struct event_origin from = { .sandbox = "box", .run = "r" };
	struct json_doc doc;
	struct err e = ERR_INIT;

	event_json(ev, &from, &json);
	event_line(ev, &from, &line);
	bug_on(json.is_over || line.is_over);
	/* Our reader refuses NUL in strings, escaped or not; everybody else takes it. */
	if (json.n < JSON_MAX_BYTES && strstr(json.p, "\\u0000") == NULL) {
		bug_on(json_parse(json.p, json.n, &doc, &e) < 0);
		json_done(&doc);
	}
	for (size_t i = 0; i < line.n; i++)
		bug_on((uint8_t)line.p[i] < 0x20 || line.p[i] == 0x7f);
}

static void write_again(const struct event *ev, const uint8_t *frame, size_t n)
{
	_cleanup_(buf_done) struct buf out = BUF(EVENT_MAX_BYTES);
	struct event_head h = { .session = 1, .number = 2, .time_ns = 3 };
	struct event back;

	if (event_restamp(frame, n, &h, &out) < 0)
		return;
	bug_on(event_decode(out.p, out.n, &back) != (ssize_t)out.n);
	bug_on(back.n != ev->n || back.head.type != ev->head.type || back.head.session != 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_free_ uint8_t *copy = n > 1 ? mem_new(n - 1, 1) : NULL;
	struct event ev;
	ssize_t used;

	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, n - 1);
	for (size_t at = 0; at < n - 1; at += (size_t)used) {
		if (data[0] & 1)
			mend_sum(copy + at, n - 1 - at);
		used = event_decode(copy + at, n - 1 - at, &ev);
		if (used <= 0)
			break;
		show(&ev);
		write_again(&ev, copy + at, (size_t)used);
	}
	return 0;
}
