/* SPDX-License-Identifier: Apache-2.0 */
/* base/base64.c - see base64.h */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i += 3) {
		uint32_t v = 0;
		size_t n = s.n - i < 3 ? s.n - i : 3;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (k < n ? (unsigned char)s.p[i + k] : 0U);
		for (size_t k = 0; k < 4; k++)
			buf_add(b, k <= n ? &digits[v >> (18 - 6 * k) & 63] : "=", 1);
	}
}

/* 0..63, or -1. */
static int value_of(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Four digits, of which n count: n - 1 bytes. Bits that no byte needs must be zero. */
static bool read_group(const char *p, size_t n, struct buf *b)
{
	uint32_t v = 0;

	for (size_t k = 0; k < 4; k++) {
		int d = k < n ? value_of(p[k]) : 0;

		if (d < 0)
			return false;
		v = v << 6 | (uint32_t)d;
	}
	if ((n == 3 && (v & 0xff)) || (n == 2 && (v & 0xffff)))
		return false;
	for (size_t k = 0; k + 1 < n; k++)
		buf_putc(b, (char)(v >> (16 - 8 * k) & 0xff));
	return true;
}

bool base64_read(struct str s, struct buf *b)
{
	size_t pad = s.n > 0 && s.p[s.n - 1] == '=' ? 1 + (s.n > 1 && s.p[s.n - 2] == '=') : 0;

	if (s.n % 4 != 0)
		return false;
	for (size_t i = 0; i < s.n; i += 4)
		if (!read_group(s.p + i, i + 4 == s.n ? 4 - pad : 4, b))
			return false;
	return !b->is_over;
}
