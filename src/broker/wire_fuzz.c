/* SPDX-License-Identifier: Apache-2.0 */
/* broker/wire_fuzz.c - a request is refused, or made of exactly the words that make it again */
#include "broker/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	_cleanup_(buf_done) struct buf again = BUF(2 * WIRE_BYTES);
	struct request r;
	struct frame f;

	if (n >= FRAME_HEAD && frame_head(p, &f) == 0)
		bug_on(f.n > WIRE_FRAME_MAX);
	if (n < WIRE_HEAD || request_length(p) < 0 || (size_t)request_length(p) != n - WIRE_HEAD)
		return 0;
	if (request_parse((const char *)p + WIRE_HEAD, n - WIRE_HEAD, &r) < 0)
		return 0;
	bug_on(!request_make(r.words, r.n, &again) || again.n != n || memcmp(again.p, p, n) != 0);
	request_done(&r);
	return 0;
}
