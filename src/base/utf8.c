/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.c - see utf8.h */
#include "base/utf8.h"

/* What the first byte says; 0 for one that cannot be first. */
static size_t announced(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c < 0xc0 || c >= 0xf8)
		return 0;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

size_t utf8_decode(const void *text, size_t n, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = text;
	size_t len = announced(p[0]);
	uint32_t v;

	if (len == 0 || len > n)
		return 0;
	v = len == 1 ? p[0] : p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	if (ret)
		*ret = v;
	return len;
}
