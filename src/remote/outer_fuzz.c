/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_fuzz.c - what comes from inside, to the process that decodes it
 *
 * The plan has been sent and a command asked for; the input is all that init answers. Whatever it is, the process may
 * end the link and must do nothing else: no crash, no message to the keeper with a type or a descriptor of its own
 * making.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "gate/wire.h"
#include "remote/outer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int front[2]; /* ours, and vitrine-link's */
static int said[2];  /* so are these: to the receiver */

/* One of each act is under way. */
static void ask_files(struct outer *o)
{
	static const char paths[] = "/a\0/b";

	for (int op = FILE_OPEN; op < FILE_OP_COUNT_; op++) {
		struct init_msg m = { .type = INIT_FILE, .session = (uint32_t)op, .a = op };
		int fds[PACKET_FDS] = { memfd_create("x", MFD_CLOEXEC), FD_NONE, FD_NONE, FD_NONE };

		bug_on(write(fds[0], paths, sizeof(paths)) != (ssize_t)sizeof(paths));
		outer_message(o, &m, fds);
		fd_close(fds[0]);
	}
}

static void start(struct outer *o)
{
	struct init_msg guest = { .type = INIT_GUEST, .a = 50 };
	struct init_msg first = { .type = INIT_START, .flags = INIT_PTY_IN };
	int fds[PACKET_FDS] = { memfd_create("x", MFD_CLOEXEC), FD_NONE, FD_NONE, FD_NONE };
	struct init_msg gate = { .type = INIT_GATE }, ear = { .type = INIT_EAR };
	int out[2];

	(void)signal(SIGPIPE, SIG_IGN);
	outer_message(o, &guest, fds);
	bug_on(pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0);
	fds[1] = fds[2] = out[1];
	outer_message(o, &first, fds);
	fds[1] = fds[2] = FD_NONE;
	bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, front) < 0);
	fds[3] = fds[0];
	fds[0] = front[1];
	outer_message(o, &gate, fds);
	bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, said) < 0);
	fds[0] = said[1];
	outer_message(o, &ear, fds);
	fds[0] = fds[3];
	fds[3] = FD_NONE;
	ask_files(o);
	fd_close(out[0]);
	fd_close(out[1]);
	fd_close(fds[0]);
}

/* What comes to the gate is a client with a descriptor, or none for what it asked to be opened, and nothing else. */
static void hear_gate(void)
{
	int fds[PACKET_FDS];
	struct gate_msg m;
	char c;

	while (gate_recv(front[0], &m, fds) == 1) {
		bug_on(m.type != GATE_CLIENT || fds[0] < 0 || fds[1] >= 0);
		bug_on(m.via != VIA_NONE && m.via != VIA_DNS && m.via != VIA_HOST_PORT);
		fd_close(fds[0]);
	}
	fd_close(front[0]);
	while (packet_recv(said[0], &c, 1, fds) == 1) {
		bug_on(fds[0] < 0 || fds[1] >= 0);
		fd_close(fds[0]);
	}
	fd_close(said[0]);
}

static void hear(int keeper)
{
	int fds[PACKET_FDS];
	struct init_msg m;

	while (init_recv(keeper, &m, fds) == 1) {
		bug_on(m.type < INIT_FAILED || m.type > INIT_FILE_DONE);
		bug_on(m.type != INIT_STARTED && m.type != INIT_FILE_DONE && fds[0] >= 0);
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct loop *l = loop_new();
	struct outer *o;
	int pair[2];

	bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0);
	o = outer_new(l, pair[0], FD_NONE, FD_NONE, 1024);
	start(o);
	/* In two pieces, so that what is cut is seen cut. */
	if (outer_feed(o, data, n / 2) == 0)
		(void)outer_feed(o, data + n / 2, n - n / 2);
	hear(pair[1]);
	hear_gate();
	outer_free(o);
	loop_free(l);
	fd_close(pair[0]);
	fd_close(pair[1]);
	return 0;
}
