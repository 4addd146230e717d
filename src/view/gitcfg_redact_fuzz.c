/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg_redact_fuzz.c - any bytes around a token: it is never shown, what was shown comes back, nothing else does */
#include "base/buf.h"
#include "view/gitcfg_redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const planted[] = {
	"\n[remote \"o\"]\n\turl = https://me:5ecret@h/x\n",
	"\n[http]\n\textraHeader = Authorization: basic 5ecret\n",
	"\n[url \"https://5ecret@h/\"]\n\tinsteadOf = https://h/\n",
	"\n# was https://me:5ecret@h/x\n",
};

static bool shows(const struct buf *b)
{
	return b->n && memmem(b->p, b->n, "5ecret", 6) != NULL;
}

/* The fuzzer's bytes as what the inside wrote: of the host's text it gets back whole lines that were shown, or nothing. */
static void write_back(const struct buf *host, const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf out = BUF(8 * MIB), again = BUF(8 * MIB);
	struct err e = ERR_INIT;

	if (gitcfg_unredact(buf_cstr(host), host->n, (const char *)data, n, &out, &e) < 0)
		return;
	if (!shows(&out))
		return;
	if (gitcfg_redact(buf_cstr(&out), out.n, &again) >= 0)
		bug_on(shows(&again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf host = BUF(4 * MIB), shown = BUF(4 * MIB),
				       back = BUF(4 * MIB);
	struct err e = ERR_INIT;
	size_t cut;

	if (n < 2 || memmem(data, n, "5ecret", 6))
		return 0;
	cut = 2 + data[1] % (n - 1);
	buf_add(&host, data + 2, cut - 2);
	buf_puts(&host, planted[data[0] % ARRAY_LEN(planted)]);
	buf_add(&host, data + cut, n - cut);
	if (gitcfg_redact(buf_cstr(&host), host.n, &shown) >= 0) {
		bug_on(shows(&shown));
		bug_on(gitcfg_unredact(buf_cstr(&host), host.n, buf_cstr(&shown), shown.n, &back,
				       &e) < 0);
		bug_on(back.n != host.n || memcmp(back.p, host.p, host.n) != 0);
	}
	host.n = 0;
	buf_puts(&host, planted[data[0] % ARRAY_LEN(planted)]);
	write_back(&host, data, n);
	return 0;
}
