/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/test.h"
#include "event/event.h"

static const struct event_head head = {
	.type = EV_SESSION_STARTED, .session = 3, .number = 7, .time_ns = 1700000000123456789ULL
};
static const struct event_origin origin = { .sandbox = "box", .run = "abc" };

TEST(the_table_is_sound)
{
	for (size_t i = 0; i < event_keys_n; i++) {
		CHECK_INT(event_keys[i].key, i + 1);
		for (size_t k = 0; k < i; k++)
			CHECK(!str_eq(event_keys[i].name, event_keys[k].name));
	}
	for (size_t i = 0; i < event_types_n; i++) {
		const struct event_type_def *d = &event_types[i];

		CHECK(d->n_keys < EVENT_MAX_FIELDS && d->n_needed <= d->n_keys);
		CHECK(event_type_def(d->type) == d && event_type_named(d->name) == d);
		for (size_t k = 0; k < d->n_keys; k++)
			CHECK(event_key_def(d->keys[k]) != NULL);
	}
	CHECK(event_type_def(9999) == NULL && event_key_def(0) == NULL);
	CHECK_INT(event_type_def(EV_SESSION_ENDED)->n_needed, 2);
}

TEST(a_frame_comes_back_as_it_went)
{
	static const char *const argv[] = { "make", "", "a b", NULL };
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), words = BUF(KIB);
	struct event_field f[] = { event_list(EK_ARGV, argv, &words), EVENT_STR(CWD, "/w"),
				   EVENT_NUM(PID, 42), EVENT_IS(IS_TTY, true) };
	struct event ev;

	event_encode(&head, f, ARRAY_LEN(f), &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), b.n);
	CHECK_INT(ev.n, 4);
	CHECK_INT(ev.head.session, 3);
	CHECK_INT(ev.head.number, 7);
	CHECK(ev.head.time_ns == head.time_ns);
	CHECK_INT(event_get_num(&ev, EK_PID), 42);
	CHECK_INT(event_get(&ev, EK_ARGV)->n, 10);
	CHECK(event_get(&ev, EK_STATUS) == NULL);
	for (size_t cut = 0; cut < b.n; cut++)
		CHECK_INT(event_decode(b.p, cut, &ev), 0);
	for (size_t i = 0; i < b.n; i++) {
		b.p[i] ^= 1;
		CHECK(event_decode(b.p, b.n, &ev) <= 0);
		b.p[i] ^= 1;
	}
}

TEST(what_is_needed_must_be_there)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES);
	struct event_field f[] = { EVENT_STR(CWD, "/w") };
	struct event ev;

	event_encode(&head, f, 1, &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), -EBADMSG);
}

TEST(a_key_twice_is_refused)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES);
	struct event_field f[] = { EVENT_STR(MESSAGE, "a"), EVENT_STR(MESSAGE, "b") };
	struct event_head h = { .type = EV_NOTE };
	struct event ev;

	event_encode(&h, f, 2, &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), -EBADMSG);
}

TEST(long_texts_are_cut_and_say_so)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), text = BUF(MIB);
	struct event_head h = { .type = EV_TOOL_CALL };
	struct event_field f[8];
	struct event ev;
	size_t n;

	while (text.n < 100000)
		buf_puts(&text, "\xc3\xa4");
	f[0] = event_text(EK_TOOL, text.p, text.n);
	f[1] = event_text(EK_CALL, text.p, text.n);
	f[2] = event_text(EK_INPUT, text.p, text.n);
	f[3] = event_text(EK_OUTPUT, text.p, text.n);
	f[4] = event_text(EK_MESSAGE, text.p, text.n);
	event_encode(&h, f, 5, &b);
	CHECK(b.n <= EVENT_MAX_BYTES);
	CHECK_INT(event_decode(b.p, b.n, &ev), b.n);
	CHECK(event_get_num(&ev, EK_CUT) >= 1);
	n = ev.fields[0].n;
	CHECK(n <= EVENT_MAX_TEXT && ev.fields[0].p[n - 1] == ']');
}

TEST(long_lists_keep_whole_words)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), words = BUF(MIB);
	struct event_head h = { .type = EV_PROCESS_EXEC };
	struct event_field f[2] = { EVENT_NUM(PID, 1) };
	struct event ev;

	for (int i = 0; i < 5000; i++)
		buf_add(&words, "word", 5);
	f[1] = (struct event_field){
		.key = EK_ARGV, .kind = EVENT_LIST, .p = words.p, .n = words.n
	};
	event_encode(&h, f, 2, &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), b.n);
	CHECK(event_get(&ev, EK_ARGV)->n <= EVENT_MAX_TEXT);
}

TEST(restamping_keeps_type_and_fields_only)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), c = BUF(EVENT_MAX_BYTES);
	struct event_head lie = { .type = EV_NOTE, .session = 9, .number = 9, .flags = 0xffff };
	struct event_field f[] = { EVENT_STR(MESSAGE, "hello") };
	struct event ev;

	event_encode(&lie, f, 1, &b);
	CHECK_INT(event_restamp(b.p, b.n, &head, &c), 0);
	CHECK_INT(event_decode(c.p, c.n, &ev), c.n);
	CHECK_INT(ev.head.type, EV_NOTE);
	CHECK_INT(ev.head.flags, 0);
	CHECK_INT(ev.head.session, 3);
	CHECK_INT(event_restamp(b.p, b.n - 1, &head, &c), -EBADMSG);
	buf_putc(&b, 'x');
	CHECK_INT(event_restamp(b.p, b.n, &head, &c), -EBADMSG);
}

TEST(nobody_forges_a_frame_of_the_journal)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), c = BUF(EVENT_MAX_BYTES);
	struct event_head lie = { .type = EV_JOURNAL_ENDED };
	struct event_field f[] = { EVENT_STR(RUN, "x") };

	event_encode(&lie, f, 1, &b);
	CHECK_INT(event_restamp(b.p, b.n, &head, &c), -EBADMSG);
}

static const char nasty[] = "a\x1b[2J\n\"}\x00z\xe2\x80\xae\xc2\x9b\xff\xe2\x80\xa8\xd8\x9c";

TEST(json_is_one_line_that_parses)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), out = BUF(MIB);
	struct event_head h = { .type = EV_NOTE, .session = EVENT_NO_SESSION, .time_ns = 1 };
	struct event_field f[] = { event_text(EK_MESSAGE, nasty, sizeof(nasty) - 1) };
	struct event ev;

	event_encode(&h, f, 1, &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), b.n);
	event_json(&ev, &origin, &out);
	CHECK_STR(buf_cstr(&out), "{\"time\":\"1970-01-01T00:00:00.000000001Z\",\"type\":\"note\","
				  "\"sandbox\":"
				  "\"box\",\"session\":null,\"run\":\"abc\",\"number\":0,\"data\":{"
				  "\"message\":"
				  "\"a\\u001b[2J\\u000a\\\"}"
				  "\\u0000z\\u202e\\u009b\\ufffd\\u2028\\u061c\"}}");
}

TEST(a_line_shows_no_escape)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES), out = BUF(MIB);
	struct event_field f[] = { event_text(EK_MESSAGE, nasty, sizeof(nasty) - 1),
				   EVENT_STR(PATH, "") };
	struct event_head h = head;
	struct event ev;

	h.type = EV_NOTE;
	event_encode(&h, f, 2, &b);
	CHECK_INT(event_decode(b.p, b.n, &ev), b.n);
	event_line(&ev, &origin, &out);
	CHECK_STR(buf_cstr(&out), "2023-11-14T22:13:20.123Z box/3 note "
				  "message=\"a\\x1b[2J\\n\\\"}"
				  "\\x00z\\xe2\\x80\\xae\\xc2\\x9b\\xff\\xe2\\x80\\xa8"
				  "\\xd8\\x9c\" path=\"\"");
}

TEST(what_is_not_known_is_shown_all_the_same)
{
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	struct event ev = { .head = { .type = 60000, .session = 1 },
			    .fields = { { .key = 900, .kind = EVENT_U64, .num = 5 } },
			    .n = 1 };

	event_json(&ev, &origin, &out);
	CHECK(strstr(buf_cstr(&out), "\"type\":\"type_60000\"") != NULL);
	CHECK(strstr(buf_cstr(&out), "\"field_900\":5") != NULL);
}

TEST(names_of_parts)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct event_part p;

	CHECK(event_part_parse("18a3f2c4d1b0aa0123.000042", &p));
	CHECK_STR(p.run, "18a3f2c4d1b0aa0123");
	CHECK(p.part == 42 && !p.is_hidden);
	event_part_name(&p, &b);
	CHECK_STR(buf_cstr(&b), "18a3f2c4d1b0aa0123.000042");
	CHECK(event_part_parse(".18a3f2c4d1b0aa0123.000042", &p) && p.is_hidden);
	CHECK(!event_part_parse("18a3f2c4d1b0aa012.000042", &p));
	CHECK(!event_part_parse("18a3f2c4d1b0aa0123.00004", &p));
	CHECK(!event_part_parse("18a3f2c4d1b0aa0123.000042x", &p));
	CHECK(!event_part_parse("18a3f2c4d1b0aa012G.000042", &p));
	CHECK(!event_part_parse(".lock", &p) && !event_part_parse("", &p));
}

TEST(dates)
{
	static const struct {
		uint64_t sec;
		const char *want;
	} v[] = { { 0, "1970-01-01T00:00:00.000000000Z" },
		  { 951782400, "2000-02-29T00:00:00.000000000Z" },
		  { 4107542399, "2100-02-28T23:59:59.000000000Z" },
		  { 4107542400, "2100-03-01T00:00:00.000000000Z" } };

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);

		event_time(v[i].sec * NS_PER_SEC, &out);
		CHECK_STR(buf_cstr(&out), v[i].want);
	}
}

TEST_MAIN()
