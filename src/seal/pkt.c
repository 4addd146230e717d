/* SPDX-License-Identifier: Apache-2.0 */
/* seal/pkt.c - see pkt.h */
#include "seal/pkt.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

ssize_t pkt_next(const char *p, size_t n, struct pkt *ret, struct err *e)
{
	static const enum pkt_kind special[] = { PKT_FLUSH, PKT_DELIM, PKT_END };
	size_t len = 0;

	for (size_t i = 0; i < 4 && i < n; i++) {
		int v = hex_digit(p[i]);

		if (v < 0)
			return err_set(e, ERR_DENIED, EBADMSG, "a pkt-line has no length");
		len = len * 16 + (size_t)v;
	}
	if (n < 4)
		return 0;
	if (len < ARRAY_LEN(special)) {
		*ret = (struct pkt){ .kind = special[len] };
		return 4;
	}
	if (len < 4 || len > PKT_MAX)
		return err_set(e, ERR_DENIED, EBADMSG, "a pkt-line of %zu bytes", len);
	if (n < len)
		return 0;
	*ret = (struct pkt){ .kind = PKT_LINE, .data = { .p = p + 4, .n = len - 4 } };
	return (ssize_t)len;
}

void pkt_put(struct buf *b, struct str data)
{
	bug_on(data.n > PKT_MAX - 4);
	buf_printf(b, "%04zx", data.n + 4);
	buf_add(b, data.p, data.n);
}

void pkt_put_flush(struct buf *b)
{
	buf_puts(b, "0000");
}
