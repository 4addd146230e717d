/* SPDX-License-Identifier: Apache-2.0 */
/* seal/h2_fuzz.c - any frames from both sides, through nghttp2's callbacks and ours */
#include "seal/talk_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const char settings[] = "\0\0\0\4\0\0\0\0\0";
	struct talk t;

	talk_init(&t);
	t.conn.h2 = h2_new(&t.conn);
	fifo_add(&t.conn.client.in, preface, sizeof(preface) - 1);
	fifo_add(&t.conn.client.in, settings, sizeof(settings) - 1);
	fifo_add(&t.conn.server.in, settings, sizeof(settings) - 1);
	talk_run(&t, data, n);
	talk_done(&t);
	return 0;
}
