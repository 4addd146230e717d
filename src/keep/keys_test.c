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

/* As kitty's keyboard protocol and xterm's modifyOtherKeys write them. */
TEST(encoded)
{
#define P "\033[112;5u"
#define Q "\033[113;5u"
	static const struct {
		const char *keys, *typed, *want;
	} table[] = {
		{ "ctrl-p,ctrl-q", "a" P Q "b", "a!" },
		{ "ctrl-p,ctrl-q", "\033[27;5;112~\033[27;5;113~", "!" },
		{ "ctrl-p,ctrl-q", "\x10" Q, "!" },
		{ "ctrl-p,ctrl-q", P "x" Q, P "x" Q },
		{ "ctrl-p,ctrl-q", P P Q, P "!" },
		/* Press, let go, caps lock, the key's other names. */
		{ "ctrl-p,ctrl-q", "\033[112;5:1u\033[112;5:3u\033[113:81;69:1u", "!" },
		{ "ctrl-p,ctrl-q", "\033[57442;5u" P "\033[57442;1:3u\033[57442;5u" Q,
		  "\033[57442;5u!" },
		/* Other modifiers, other keys, other sequences. */
		{ "ctrl-p,ctrl-q", "\033[112;7u" Q, "\033[112;7u" Q },
		{ "ctrl-p,ctrl-q", "\033[A\033[1;5C\033[3~\033", "\033[A\033[1;5C\033[3~\033" },
		{ "ctrl-p,ctrl-q", "\033[112;5", "\033[112;5" },
		{ "ctrl-p,ctrl-q", "\033[112;5;1;1u" Q, "\033[112;5;1;1u" Q },
		{ "a", "\033[97u", "!" },
		{ "A", "\033[97:65;2u", "!" },
		{ "ctrl-_", "\033[45:95;6u", "!" },
		{ "ctrl-\\", "\033[92;5u", "!" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		check(table[i].keys, table[i].typed, true, table[i].want);
#undef P
#undef Q
}

/* What does not fit into what is held back goes on to the command. */
TEST(held_is_bounded)
{
	struct keys k = keys_of("ctrl-p,ctrl-q");
	char out[KEYS_HELD + 64];
	size_t n = 0, all = 0;

	CHECK(!keys_feed(&k, "\x10", 1, out, &n) && n == 0);
	for (int i = 0; i < 100; i++) {
		CHECK(!keys_feed(&k, "\033[112;5:3u", 10, out, &n));
		all += n;
	}
	CHECK(all + k.n_held == 1001 && k.n_held <= KEYS_HELD);
}

/* An answer of the terminal, which the inside can ask for, is no key. */
TEST(one_key)
{
	static const char *const pressed[] = { "\x1a", "ab\x1a", "\033[122;5u", "x\033[122;5:1u",
					       "\033[27;5;122~" };
	static const char *const not_pressed[] = {
		"",           "z",         "\033[122;5R", "\033[122;5:3u",
		"\033[122;5", "\033[122u", "\033[122;5n", "\033[?122;5u"
	};

	for (size_t i = 0; i < ARRAY_LEN(pressed); i++)
		CHECK(keys_has(pressed[i], strlen(pressed[i]), 0x1a));
	for (size_t i = 0; i < ARRAY_LEN(not_pressed); i++)
		CHECK(!keys_has(not_pressed[i], strlen(not_pressed[i]), 0x1a));
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
