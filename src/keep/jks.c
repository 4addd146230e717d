/* SPDX-License-Identifier: Apache-2.0 */
/* keep/jks.c - see jks.h */
#include "keep/jks.h"
#include "base/base64.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"
#define MAGIC 0xfeedfeedU
#define TRUSTED 2
#define DER_MAX ((size_t)64 * 1024)
#define DIGEST 20

static void put_u32(struct buf *b, uint32_t v)
{
	const uint8_t p[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
			       (uint8_t)v };

	buf_add(b, p, sizeof(p));
}

static void put_text(struct buf *b, const char *text)
{
	size_t n = strlen(text);
	const uint8_t p[2] = { (uint8_t)(n >> 8), (uint8_t)n };

	buf_add(b, p, sizeof(p));
	buf_add(b, text, n);
}

static void put_entry(struct buf *b, unsigned number, const struct buf *der)
{
	char alias[24];

	(void)snprintf(alias, sizeof(alias), "ca-%u", number);
	put_u32(b, TRUSTED);
	put_text(b, alias);
	put_u32(b, 0); /* when it was put in: nobody asks */
	put_u32(b, 0);
	put_text(b, "X.509");
	put_u32(b, (uint32_t)der->n);
	buf_add(b, der->p, der->n);
}

/* The base64 between two marks, without its line ends. */
static bool read_block(const char *p, size_t n, struct buf *der)
{
	_cleanup_(buf_done) struct buf text = BUF(2 * DER_MAX);

	for (size_t i = 0; i < n; i++)
		if (p[i] != '\n' && p[i] != '\r')
			buf_putc(&text, p[i]);
	return !text.is_over && text.n > 0 &&
	       base64_read((struct str){ .p = text.p, .n = text.n }, der) && !der->is_over;
}

void jks_put(struct buf *out, struct str pem)
{
	_cleanup_(buf_done) struct buf entries = BUF(out->max);
	const char *at = pem.p, *end = pem.p + pem.n;
	static const uint8_t digest[DIGEST];
	unsigned n = 0;

	while (at < end) {
		_cleanup_(buf_done) struct buf der = BUF(DER_MAX);
		const char *from = memmem(at, (size_t)(end - at), BEGIN, strlen(BEGIN));
		const char *to;

		if (from == NULL)
			break;
		from += strlen(BEGIN);
		to = memmem(from, (size_t)(end - from), END, strlen(END));
		if (to == NULL)
			break;
		if (read_block(from, (size_t)(to - from), &der))
			put_entry(&entries, n++, &der);
		at = to + strlen(END);
	}
	put_u32(out, MAGIC);
	put_u32(out, 2);
	put_u32(out, n);
	buf_add(out, buf_cstr(&entries), entries.n);
	buf_add(out, digest, sizeof(digest));
}
