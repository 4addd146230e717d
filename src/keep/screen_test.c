/* SPDX-License-Identifier: Apache-2.0 */
/* keep/screen_test.c - what is followed, what is repeated, what is undone; and sequences in pieces, cut off, too long */
#include "base/test.h"
#include "keep/screen.h"

/* In one piece and byte by byte. */
static struct screen follow(const char *text)
{
	struct screen a = { 0 }, b = { 0 };

	screen_follow(&a, text, strlen(text));
	for (const char *p = text; *p; p++)
		screen_follow(&b, p, 1);
	CHECK(screen_bits(&a) == screen_bits(&b));
	return a;
}

static void check_reset(const char *text, enum screen_leave how, const char *want)
{
	struct screen s = follow(text);
	_cleanup_(buf_done) struct buf out = BUF(4 * KIB);

	screen_put_reset(screen_bits(&s), how, &out);
	CHECK_STR(buf_cstr(&out), want);
}

static void check_replay(const char *text, const char *want)
{
	size_t n = strlen(text);
	struct screen s = follow(text);

	/* Wherever the ring turns. */
	for (size_t cut = 0; cut <= n; cut++) {
		_cleanup_(buf_done) struct buf out = BUF(64 * KIB);
		struct str part[2] = { { .p = text, .n = cut }, { .p = text + cut, .n = n - cut } };

		screen_put_replay(&s, part, false, &out);
		CHECK_STR(buf_cstr(&out), want);
	}
}

#define ST "\033\\"
#define PLAIN "\033(B\017\033[0m"

TEST(reset)
{
	check_reset("text\r\n\033[31mred\033[0m", SCREEN_ENDED, "");
	check_reset("text", SCREEN_LEFT, ST PLAIN);
	check_reset("\033[?1049h\033[?25l", SCREEN_LEFT, ST "\033[?25h\033[?1049l" PLAIN);
	/* Not on: not left, for that would move the cursor. */
	check_reset("\033[?1049h\033[?1049l\033[?2004h", SCREEN_LEFT, ST "\033[?2004l" PLAIN);
	check_reset("\033[?1004h\033[?2031h\033[?1000;1006h\033[?2004h", SCREEN_ENDED,
		    ST "\033[?1000l\033[?1004l\033[?1006l\033[?2004l\033[?2031l");
	check_reset("\033[?1047h", SCREEN_ENDED, ST "\033[?1047l");
	check_reset("\033[?47h\033[?1049l", SCREEN_ENDED, "");
	check_reset("\033[>1u\033[>3u", SCREEN_ENDED, ST "\033[<2u");
	check_reset("\033[>1u\033[>3u\033[<u", SCREEN_ENDED, ST "\033[<1u");
	check_reset("\033[>1u\033[<9u\033[<u", SCREEN_ENDED, "");
	/* Each screen has a keyboard of its own. */
	check_reset("\033[>1u\033[?1049h\033[>5u", SCREEN_ENDED, ST "\033[<1u\033[?1049l\033[<1u");
	check_reset("\033[=1u", SCREEN_ENDED, ST "\033[=0u");
	check_reset("\033[>4;2m\033=\033[5 q", SCREEN_ENDED, ST "\033[>4m\033>\033[0 q");
	check_reset("\033[>4;2m\033[>4m\033=\033>\033[5 q\033[ q", SCREEN_ENDED, "");
	check_reset("\033[2;10r", SCREEN_ENDED, ST "\0337\033[r\0338");
	check_reset("\033[2;10r\033[r", SCREEN_ENDED, "");
	check_reset("\033]11;#fff\a\033]4;1;red\033\\\033]8;;http://x/\a", SCREEN_ENDED,
		    ST "\033]104" ST "\033]110" ST "\033]111" ST "\033]112" ST "\033]8;;" ST);
	check_reset("\033]11;?\a\033]8;;http://x/\a\033]8;;\a", SCREEN_ENDED, "");
	check_reset("\033[?1049h\033c", SCREEN_ENDED, "");
	/* An inline interface: what it has drawn below the cursor goes. */
	check_reset("a\r\nb\033[A", SCREEN_LEFT, ST PLAIN "\033[J");
	check_reset("\033[7l\033[?7l", SCREEN_ENDED, ST "\033[?7h");
}

TEST(reset_of_what_is_not_known)
{
	_cleanup_(buf_done) struct buf out = BUF(4 * KIB);

	screen_put_reset(SCREEN_UNKNOWN, SCREEN_LEFT, &out);
	CHECK(strstr(buf_cstr(&out), "\033[?1047l") && strstr(buf_cstr(&out), "\033[?2004l"));
	CHECK(strstr(buf_cstr(&out), "1049") == NULL && strstr(buf_cstr(&out), "\033[J") == NULL);
}

/* Every query that a terminal answers, and what it would do once more. */
TEST(replay_asks_nothing)
{
	static const char *const left_out[] = {
		"\033[c",
		"\033[0c",
		"\033[>c",
		"\033[>0q",
		"\033[=c",
		"\033[5n",
		"\033[6n",
		"\033[?6n",
		"\033[?996n",
		"\033[?u",
		"\033[?2026$p",
		"\033[4$p",
		"\033[14t",
		"\033[18t",
		"\033[22;0t",
		"\033[x",
		"\033[?1;1;0S",
		"\033[?4m",
		"\033[1;1;1;1;1;1*y",
		"\033[&u",
		"\033Z",
		"\005",
		"\a",
		"\033[?15n",
		"\033[1;2;3;4;5T",
		"\033]10;?\a",
		"\033]11;?\033\\",
		"\033]4;0;?\a",
		"\033]52;c;?\a",
		"\033]52;c;aGk=\a",
		"\033]9;done\a",
		"\033]777;notify;a;b\033\\",
		"\033]99;;x\033\\",
		"\033P$qm\033\\",
		"\033P+q544e\033\\",
		"\033_Gi=31,a=q;AAAA\033\\",
		"\033^x\033\\",
		"\033Xx\033\\",
		"\302\2336n",
		"\2336n",
		"\033[1\0306n",
		"\033]0;a\302\2336n\a",
		"\033]0;a\033[6n",
	};

	for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
		_free_ char *text = mem_fmt("a%sb", left_out[i]);
		_cleanup_(buf_done) struct buf out = BUF(4 * KIB);
		struct screen s = follow(text);
		struct str part[2] = { str_of(text), { 0 } };

		screen_put_replay(&s, part, false, &out);
		/* What is left of 8-bit controls and of a sequence that was broken off is text. */
		if (out.n != 2 && !str_eq(buf_cstr(&out), "a6nb")) {
			CHECK_STR(buf_cstr(&out), text);
		}
	}
}

TEST(replay_shows_the_screen)
{
	check_replay("one\r\n\033[1;31mtwo\033[0m\t\033[2Jx", "one\r\n\033[1;31mtwo\033[0m\t\033["
							      "2Jx");
	check_replay("\303\244\342\202\254\360\237\230\200", "\303\244\342\202\254\360\237\230"
							     "\200");
	check_replay("\033(0qq\033(B\0337\0338\033#8", "\033(0qq\033(B\0337\0338\033#8");
	check_replay("\033]0;title\a\033]8;;http://x/\033\\l\033]8;;\033\\",
		     "\033]0;title" ST "\033]8;;http://x/" ST "l\033]8;;" ST);
	/* Modes come once, at the end, as they are now. */
	check_replay("\033[?2004hx\033[?2004l\033[?1004h\033[?25ly", "xy\033[?25l\033[?1004h");
	check_replay("\033[4hx\033[?6hy\033[4l\033[?6l", "\033[4hx\033[?6hy\033[4l\033[?6l");
	check_replay("\033=\033[>4;2mz\033[3 q", "z\033=\033[>4;1m\033[3 q");
	check_replay("\033[>1uz\033[>3u", "\033[>1u\033[>3uz");
	/* Of the screens only the one that is on. */
	check_replay("main\r\n\033[?1049hALT", "\033[?1049hALT");
	check_replay("m\033[?1049hA\033[?1049ln\033[?1049hB", "\033[?1049hB");
	check_replay("main \033[?1049hALT\033[?1049lagain", "main again");
	check_replay("ALT\033[?1049lagain", "again");
	check_replay("\033[>1um\033[?1049h\033[>5uA", "\033[>1u\033[?1049h\033[>5uA");
	/* A sequence that has no end yet. */
	check_replay("a\033[3", "a");
	check_replay("a\033]0;title", "a");
}

TEST(bounded)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB), out = BUF(MIB);
	struct screen s = { 0 };
	struct str part[2] = { { 0 } };

	buf_puts(&text, "\033]0;");
	for (int i = 0; i < 5000; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\033\\\033[");
	for (int i = 0; i < 5000; i++)
		buf_puts(&text, "1;");
	buf_puts(&text, "h\033[?99999999999999h\033[?1049hok");
	for (int i = 0; i < 100; i++)
		buf_puts(&text, "\033[>1u");
	screen_follow(&s, text.p, text.n);
	CHECK_INT(s.n_keyboards[1], SCREEN_KEYBOARDS);
	part[0] = (struct str){ .p = text.p, .n = text.n };
	screen_put_replay(&s, part, true, &out);
	CHECK_STR(buf_cstr(&out), ST "\033[?1049hok");
}

TEST_MAIN()
