/* SPDX-License-Identifier: Apache-2.0 */
/* http/chunked_fuzz.c - a chunked body cut anywhere decodes like the whole
 *
 * The first byte seeds where the cuts are. What was decoded is written as chunks and must decode to itself.
 */
#include "http/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Bytes used, or -errno; the cuts follow from seed. */
static ssize_t decode(const char *p, size_t n, unsigned seed, struct buf *out)
{
	const struct http_framing f = { .kind = HTTP_CHUNKED };
	struct http_body b;
	struct err e = ERR_INIT;
	size_t at = 0;

	http_body_init(&b, &f);
	while (at < n && !b.is_done) {
		struct str d;
		size_t used, room = n - at;
		int r;

		seed = seed * 1103515245U + 12345U;
		if (seed % 7 && room > 1 + seed / 65536 % 11)
			room = 1 + seed / 65536 % 11;
		r = http_body_next(&b, p + at, room, &used, &d, &e);
		if (r < 0)
			return r;
		bug_on(used > room || d.n > used || (used == 0 && r == 0));
		buf_add(out, d.p, d.n);
		at += used;
	}
	return b.is_done ? (ssize_t)at : -ENODATA;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf whole = BUF(MIB), cut = BUF(MIB), again = BUF(4 * MIB),
				       back = BUF(MIB);
	ssize_t r;

	if (n < 1)
		return 0;
	r = decode((const char *)data + 1, n - 1, 0, &whole);
	bug_on(decode((const char *)data + 1, n - 1, data[0], &cut) != r);
	bug_on(r >= 0 && (whole.n != cut.n || (whole.n && memcmp(whole.p, cut.p, cut.n) != 0)));
	if (r < 0)
		return 0;
	http_put_chunk(&again, (struct str){ .p = buf_cstr(&whole), .n = whole.n });
	http_put_last_chunk(&again);
	bug_on(decode(again.p, again.n, data[0], &back) != (ssize_t)again.n);
	bug_on(back.n != whole.n || (back.n && memcmp(back.p, whole.p, back.n) != 0));
	return 0;
}
