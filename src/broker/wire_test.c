/* SPDX-License-Identifier: Apache-2.0 */
/* broker/wire_test.c - one way to say a thing */
#include <fcntl.h>

#include "base/test.h"
#include "broker/wire.h"

TEST(there_and_back)
{
	const char *const words[] = { "git-push", "https://h/x", "--", "", "+a:refs/heads/b" };
	_cleanup_(buf_done) struct buf b = BUF(WIRE_BYTES);
	struct request r;

	CHECK(request_make(words, ARRAY_LEN(words), &b));
	CHECK_INT(request_length((const uint8_t *)b.p), b.n - WIRE_HEAD);
	CHECK_INT(request_parse(b.p + WIRE_HEAD, b.n - WIRE_HEAD, &r), 0);
	CHECK_INT(r.n, ARRAY_LEN(words));
	for (size_t i = 0; i < r.n; i++)
		CHECK_STR(r.words[i], words[i]);
	request_done(&r);
}

TEST(refusals)
{
	static const uint8_t magic[WIRE_HEAD] = "VBR2\1", none[WIRE_HEAD] = "VBR1";
	static const uint8_t large[WIRE_HEAD] = { 'V', 'B', 'R', '1', 0, 0, 0, 1 };
	static char many[2 * WIRE_WORDS];
	struct request r;

	for (size_t i = 0; i < sizeof(many); i += 2)
		many[i] = 'a';
	CHECK_INT(request_length(magic), -EBADMSG);
	CHECK_INT(request_length(none), -EBADMSG);
	CHECK_INT(request_length(large), -EBADMSG);
	CHECK_INT(request_parse("abc", 3, &r), -EBADMSG);
	CHECK_INT(request_parse("", 1, &r), -EBADMSG);
	CHECK_INT(request_parse("a\033b", 4, &r), -EBADMSG);
	CHECK_INT(request_parse("a\rb", 4, &r), -EBADMSG);
	CHECK_INT(request_parse(many, sizeof(many), &r), -EBADMSG);
}

TEST(frames)
{
	static char data[WIRE_FRAME_MAX], big[3 * WIRE_FRAME_MAX / 2];
	struct frame f;
	int fds[2];
	uint8_t bad[FRAME_HEAD] = { 'Z', 0, 0, 0 }, odd[FRAME_HEAD] = { 'D', 1, 0, 0 },
		longer[FRAME_HEAD] = { 'D', 0, 0xff, 0xff };

	CHECK_INT(frame_head(bad, &f), -EBADMSG);
	CHECK_INT(frame_head(odd, &f), -EBADMSG);
	CHECK_INT(frame_head(longer, &f), -EBADMSG);
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	CHECK_INT(frame_send(fds[1], WIRE_DATA, big, sizeof(big)), 0);
	CHECK_INT(frame_send(fds[1], WIRE_END, "\3", 1), 0);
	CHECK_INT(frame_recv(fds[0], &f, data), 1);
	CHECK_INT(f.n, WIRE_FRAME_MAX);
	CHECK_INT(frame_recv(fds[0], &f, data), 1);
	CHECK_INT(f.n, WIRE_FRAME_MAX / 2);
	CHECK_INT(frame_recv(fds[0], &f, data), 1);
	CHECK(f.kind == WIRE_END && f.n == 1 && data[0] == 3);
	fd_close(fds[1]);
	CHECK_INT(frame_recv(fds[0], &f, data), 0);
	fd_close(fds[0]);
}

TEST_MAIN()
