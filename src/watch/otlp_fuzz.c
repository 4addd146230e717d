/* SPDX-License-Identifier: Apache-2.0 */
/* watch/otlp_fuzz.c - any bytes as an export request
 *
 * The first byte chooses signal and encoding. Whatever is read must make whole frames of events, and what is said of
 * attributes must be JSON that our own reader takes, which means that no key stands twice.
 */
#include "watch/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int check(void *arg, const struct event_field *f, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * EVENT_MAX_BYTES);
	struct event_head h = { .type = EV_OTEL, .session = EVENT_NO_SESSION };
	struct json_doc doc;
	struct err e = ERR_INIT;
	struct event ev;

	(void)arg;
	event_encode(&h, f, n, &b);
	bug_on(event_decode(b.p, b.n, &ev) != (ssize_t)b.n);
	for (size_t i = 0; i < n; i++) {
		if (f[i].key != EK_ATTRIBUTES)
			continue;
		bug_on(json_parse_foreign(f[i].p, f[i].n, &doc, &e) < 0 &&
		       strstr(e.msg, "values") == NULL && e.num != ELOOP);
		if (e.kind == ERR_NONE)
			json_done(&doc);
		e = ERR_INIT;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct otlp_request q = { 0 };
	struct err e = ERR_INIT;

	if (n == 0)
		return 0;
	q.signal = data[0] % OTLP_SIGNAL_COUNT_;
	q.is_json = data[0] & 0x80;
	q.p = data + 1;
	q.n = n - 1;
	(void)otlp_read(&q, check, NULL, &e);
	return 0;
}
