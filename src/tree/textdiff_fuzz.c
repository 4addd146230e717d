/* SPDX-License-Identifier: Apache-2.0 */
/* tree/textdiff_fuzz.c - a diff, applied to the old text, must give the new one
 *
 * Input is OLD 0xff NEW. The diff is applied by the simplest reader there is.
 */
#include "base/num.h"
#include "tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define NO_NEWLINE "\\ No newline at end of file\n"

static void copy_lines(struct buf *out, const char **at, const char *end, size_t n)
{
	for (; n > 0 && *at < end; n--) {
		const char *nl = memchr(*at, '\n', (size_t)(end - *at));
		const char *next = nl ? nl + 1 : end;

		buf_add(out, *at, (size_t)(next - *at));
		*at = next;
	}
}

static size_t number(const char **p)
{
	size_t n = 0;

	while (**p >= '0' && **p <= '9')
		n = n * 10 + (size_t)(*(*p)++ - '0');
	return n;
}

/* "@@ -A[,N] +B[,M] @@": lines of the old text to copy before it. */
static size_t hunk_begin(const char *p)
{
	size_t at, n = 1;

	bug_on(!str_starts(p, "@@ -"));
	p += 4;
	at = number(&p);
	if (*p == ',') {
		p++;
		n = number(&p);
	}
	return n ? at - 1 : at;
}

static void apply(const char *old, size_t old_n, const struct buf *diff, struct buf *out)
{
	const char *at = old, *end = old + old_n, *p = diff->p ? diff->p : "", *stop = p + diff->n;
	size_t line = 0;

	while (p < stop) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		size_t len = (size_t)(nl - p) + 1;
		bool is_open =
			(size_t)(stop - nl) > strlen(NO_NEWLINE) && str_starts(nl + 1, NO_NEWLINE);

		if (*p == '@') {
			size_t want = hunk_begin(p);

			copy_lines(out, &at, end, want - line);
			line = want;
		} else if (*p == ' ') {
			copy_lines(out, &at, end, 1);
			line++;
		} else if (*p == '-') {
			_cleanup_(buf_done) struct buf dropped = BUF(MIB);

			copy_lines(&dropped, &at, end, 1);
			line++;
		} else if (*p == '+') {
			buf_add(out, p + 1, len - 1 - is_open);
		}
		p += len + (is_open ? strlen(NO_NEWLINE) : 0);
	}
	copy_lines(out, &at, end, SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf diff = BUF(16 * MIB);
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	const uint8_t *cut = memchr(data, 0xff, n);
	const char *a = (const char *)data, *b;
	struct text_count c;
	size_t a_n, b_n;

	if (cut == NULL || n > 64 * KIB)
		return 0;
	a_n = (size_t)(cut - data);
	b = a + a_n + 1;
	b_n = n - a_n - 1;
	text_diff(a, a_n, b, b_n, &c, &diff);
	bug_on((diff.n == 0) != (a_n == b_n && memcmp(a, b, a_n) == 0));
	apply(a, a_n, &diff, &out);
	bug_on(out.n != b_n || memcmp(buf_cstr(&out), b, b_n) != 0);
	return 0;
}
