/* SPDX-License-Identifier: Apache-2.0 */
/* base/buf.c - see buf.h; the escapers live here because they are how foreign bytes reach people */
#include <stdarg.h>

#include "base/buf.h"
#include "base/utf8.h"

void buf_done(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ .max = b->max };
}

static bool reserve(struct buf *b, size_t more)
{
	size_t need;

	if (b->is_over || !add_ok(b->n, more, &need) || need > b->max) {
		b->is_over = true;
		return false;
	}
	if (need + 1 > b->cap) {
		b->cap = 2 * need + 512;
		b->p = mem_grow(b->p, b->cap, 1);
	}
	return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	bug_on(n < 0);
	if (reserve(b, (size_t)n)) {
		(void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

/* C1 controls (U+0080..9F), line/paragraph separators and bidi marks, overrides and isolates can rewrite what a person
 * reads; the byte order mark is seen by nobody. */
static bool is_control(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void buf_esc(struct buf *b, const char *str, size_t n)
{
	const unsigned char *s = (const unsigned char *)str;

	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = utf8_decode(s + i, n - i, &c);

		if (s[i] == '\n')
			buf_puts(b, "\\n");
		else if (s[i] == '\t')
			buf_puts(b, "\\t");
		else if (len == 0 || s[i] < 0x20 || s[i] == 0x7f)
			buf_printf(b, "\\x%02x", s[i]);
		else if (is_control(c))
			for (size_t k = 0; k < len; k++)
				buf_printf(b, "\\x%02x", s[i + k]);
		else
			buf_add(b, s + i, len);
		i += len ? len : 1;
	}
}

void buf_json(struct buf *b, const char *str)
{
	buf_json_n(b, str, strlen(str));
}

void buf_json_n(struct buf *b, const char *str, size_t n)
{
	const unsigned char *s = (const unsigned char *)str;

	buf_putc(b, '"');
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = utf8_decode(s + i, n - i, &c);

		if (len == 0)
			buf_puts(b, "\\ufffd");
		else if (s[i] == '"' || s[i] == '\\')
			buf_printf(b, "\\%c", s[i]);
		else if (s[i] < 0x20 || s[i] == 0x7f)
			buf_printf(b, "\\u%04x", s[i]);
		else if (is_control(c))
			buf_printf(b, "\\u%04x", c);
		else
			buf_add(b, s + i, len);
		i += len ? len : 1;
	}
	buf_putc(b, '"');
}

const char *buf_cstr(const struct buf *b)
{
	return b->p ? b->p : "";
}

char *buf_take(struct buf *b)
{
	char *p = b->p ? b->p : mem_str("");

	*b = (struct buf){ .max = b->max };
	return p;
}
