/* SPDX-License-Identifier: Apache-2.0 */
/* keep/screen_fuzz.c - output of a command, and what is typed: bounded, the same in pieces, and a replay asks nothing */
#include "keep/keys.h"
#include "keep/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_replay(const struct screen *s, struct str text)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB), again = BUF(64 * MIB);
	struct str part[2] = { { .p = text.p, .n = text.n / 2 }, str_from(text, text.n / 2) };
	struct str all[2] = { { 0 } };
	struct screen after = { 0 };

	screen_put_replay(s, part, false, &out);
	bug_on(out.is_over || out.n > text.n * 2 + KIB);
	/* A terminal that has seen the replay is in the modes of one that has seen it all, and a replay of it is itself. */
	screen_follow(&after, out.p, out.n);
	all[0] = (struct str){ .p = out.p, .n = out.n };
	screen_put_replay(&after, all, false, &again);
	bug_on(memmem(out.p, out.n, "\033[6n", 4) || memmem(out.p, out.n, "\033[c", 3) ||
	       memmem(out.p, out.n, "\033P", 2) || memmem(out.p, out.n, "\033_", 2) ||
	       (out.n && memchr(out.p, 5, out.n)) || memmem(out.p, out.n, "\302\233", 2));
}

static void check_reset(uint64_t bits)
{
	_cleanup_(buf_done) struct buf out = BUF(4 * KIB);
	struct screen s = { 0 };

	screen_put_reset(bits, SCREEN_LEFT, &out);
	bug_on(out.is_over || out.n == 0);
	screen_follow(&s, out.p, out.n);
	bug_on(screen_bits(&s) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t seq[KEEP_KEYS] = { 16, 17 };
	const char *text = (const char *)data;
	struct screen whole = { 0 }, pieces = { 0 };
	struct keys k;
	_free_ char *out = mem_new(n + KEYS_HELD, 1);
	size_t m = 0;

	screen_follow(&whole, text, n);
	for (size_t i = 0; i < n; i++)
		screen_follow(&pieces, text + i, 1);
	bug_on(screen_bits(&whole) != screen_bits(&pieces));
	check_replay(&whole, (struct str){ .p = text, .n = n });
	check_reset(screen_bits(&whole));
	keys_set(&k, seq);
	if (!keys_feed(&k, text, n, out, &m))
		bug_on(m + k.n_held != n || memcmp(out, text, m) != 0);
	return 0;
}
