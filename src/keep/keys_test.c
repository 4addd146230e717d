/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keys_test.c - the sequence in one piece, in pieces, broken off, and texts that are none */
#include "base/test.h"
#include "keep/keys.h"

static struct keys keys_of(const char *text)
{
	uint8_t seq[KEEP_KEYS];
	struct err e = ERR_INIT;
	struct keys k = { 0 };

	CHECK(keys_parse(text, seq, &e) == 0);
	keys_set(&k, seq);
	return k;
}

/* Types text one byte at a time or at once; what came through, with '!' where it detached. */
static void check(const char *keys, const char *typed, bool at_once, const char *want)
{
	struct keys k = keys_of(keys);
	char got[64] = "", out[64];
	size_t n = 0, at = 0, len = strlen(typed), m;

	for (size_t i = 0; i < len; i += at_once ? len : 1) {
		bool is_done = keys_feed(&k, typed + i, at_once ? len : 1, out, &m);

		memcpy(got + n, out, m);
		n += m;
		if (is_done) {
			got[n++] = '!';
			break;
		}
	}
	(void)at;
	got[n] = '\0';
	CHECK_STR(got, want);
}

TEST(sequence)
{
	static const struct {
		const char *keys, *typed, *want;
	} table[] = {
		{ "ctrl-p,ctrl-q", "a\x10\x11 b", "a!" },
		{ "ctrl-p,ctrl-q", "\x10\x10\x11", "\x10!" },
		{ "ctrl-p,ctrl-q", "\x10x\x11", "\x10x\x11" },
		{ "ctrl-p,ctrl-q", "\x11\x10", "\x11" },
		{ "none", "\x10\x11", "\x10\x11" },
		{ "a", "xa", "x!" },
		{ "a,b,c", "ababc", "ab!" },
		{ "ctrl-a,d",
		  "\x01\x01"
		  "d",
		  "\x01!" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		check(table[i].keys, table[i].typed, true, table[i].want);
		check(table[i].keys, table[i].typed, false, table[i].want);
	}
}

TEST(texts)
{
	static const char *const bad[] = { "",        ",",        "ctrl-",
					   "ctrl-p,", "ctrl-pp",  "ab",
					   "ctrl-1",  "ctrl-p q", "a,b,c,d,e,f,g,h,i",
					   " ",       "ctrl-@" };
	uint8_t seq[KEEP_KEYS];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		CHECK(keys_parse(bad[i], seq, &e) < 0);
		CHECK(e.kind == ERR_USAGE);
	}
	CHECK_INT(keys_of("ctrl-[,ctrl-_").seq[0], 27);
	CHECK_INT(keys_of("a,b,c,d,e,f,g,h").n, 8);
}

TEST_MAIN()
