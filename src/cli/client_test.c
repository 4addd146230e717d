/* SPDX-License-Identifier: Apache-2.0 */
/* cli/client_test.c - a keeper that closes the connection before, or after, it has the request */
#include <signal.h>
#include <sys/socket.h>

#include "base/test.h"
#include "cli/client.h"

static char word[] = "true";
static char *const command[] = { word, NULL }, *const env[] = { NULL };

static int connect_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

TEST(closed_before_the_request)
{
	struct talk t = { .flags = 0 };
	struct outcome o = { 0 };
	struct err e = ERR_INIT;
	int ends[2];

	CHECK_INT(connect_pair(ends), 0);
	fd_close(ends[1]);
	(void)signal(SIGPIPE, SIG_IGN);
	CHECK_INT(client_exec(ends[0], &t, command, env, "/", &e), 0);
	CHECK(t.is_unsent);
	CHECK_INT(client_serve(ends[0], &t, &o, &e), 0);
	CHECK_INT(o.why, END_CLOSING);
	CHECK(!o.has_begun);
	buf_done(&o.notes);
	fd_close(ends[0]);
}

/* The keeper's answer waits in the connection that it closed. */
TEST(refused_before_the_request)
{
	struct keep_msg no = { .type = KEEP_ENDED, .a = 125, .b = END_ERROR };
	struct talk t = { .flags = 0 };
	struct outcome o = { 0 };
	struct err e = ERR_INIT;
	int ends[2];

	CHECK_INT(connect_pair(ends), 0);
	CHECK_INT(keep_send(ends[1], &no, NULL, 0), 0);
	fd_close(ends[1]);
	CHECK_INT(client_exec(ends[0], &t, command, env, "/", &e), 0);
	CHECK_INT(client_serve(ends[0], &t, &o, &e), 0);
	CHECK_INT(o.why, END_ERROR);
	buf_done(&o.notes);
	fd_close(ends[0]);
}

/* The command may have begun: it is not tried again. */
TEST(closed_after_the_request)
{
	struct talk t = { .flags = 0 };
	struct outcome o = { 0 };
	struct err e = ERR_INIT;
	int ends[2], fds[PACKET_FDS];
	struct keep_msg m;

	CHECK_INT(connect_pair(ends), 0);
	CHECK_INT(client_exec(ends[0], &t, command, env, "/", &e), 0);
	CHECK(!t.is_unsent);
	CHECK_INT(keep_recv(ends[1], &m, fds), 1);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	CHECK_INT(m.type, KEEP_EXEC);
	fd_close(ends[1]);
	CHECK_INT(client_serve(ends[0], &t, &o, &e), -EPIPE);
	CHECK(o.why != END_CLOSING);
	buf_done(&o.notes);
	fd_close(ends[0]);
}

TEST_MAIN()
