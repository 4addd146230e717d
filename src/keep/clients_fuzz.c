/* SPDX-License-Identifier: Apache-2.0 */
/* keep/clients_fuzz.c - any sequence of messages on the control socket, from several clients, and of init's answers
 *
 * A keeper without a sandbox: init is a socket whose other end we read and write ourselves. The input is a list of
 * acts: a client comes or goes, says something with some descriptors, or init says something. Whatever it is, the
 * keeper lives, loses no descriptor, and every client that broke the rules is gone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/io.h"
#include "keep/keeper.h"

struct input {
	const uint8_t *p;
	size_t n;
};

static uint8_t byte(struct input *in)
{
	if (in->n == 0)
		return 0;
	in->n--;
	return *in->p++;
}

static void bytes(struct input *in, void *ret, size_t n)
{
	size_t have = in->n < n ? in->n : n;

	memcpy(ret, in->p, have);
	in->p += have;
	in->n -= have;
}

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* What may come along with a message. */
static int some_fd(uint8_t kind, struct input *in)
{
	char text[64] = "";
	int fd;

	if (kind % 4 == 0)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	if (kind % 4 == 1)
		return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bytes(in, text, byte(in) % sizeof(text));
	bug_on(fd < 0 || io_write_all(fd, text, sizeof(text)) < 0);
	if (kind % 4 == 2)
		bug_on(fcntl(fd, F_ADD_SEALS,
			     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0);
	return fd;
}

static void some_fds(struct input *in, size_t n, int fds[PACKET_FDS])
{
	for (size_t i = 0; i < PACKET_FDS; i++)
		fds[i] = i < n ? some_fd(byte(in), in) : FD_NONE;
}

static void close_fds(const int fds[PACKET_FDS])
{
	for (size_t i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

static void client_says(struct keeper *k, struct input *in)
{
	struct client *c = &k->clients[byte(in) % 8];
	struct keep_msg m = { 0 };
	int fds[PACKET_FDS];

	if (!c->is_used)
		return;
	m.type = byte(in) % (KEEP_MSG_COUNT_ + 2);
	some_fds(in, byte(in) % (PACKET_FDS + 1), fds);
	m.a = byte(in) - 128;
	m.b = byte(in) - 128;
	m.flags = byte(in);
	m.session = byte(in) % 8;
	bytes(in, &m.rows, 2);
	bytes(in, &m.cols, 2);
	bytes(in, m.keys, 4);
	client_message(c, &m, fds);
	close_fds(fds);
}

static void init_says(struct keeper *k, int init, struct input *in)
{
	struct init_msg m = { 0 };
	int fds[PACKET_FDS];
	size_t n = byte(in) % 3;

	m.type = byte(in) % (INIT_MSG_COUNT_ + 1);
	m.session = byte(in) % 8;
	m.a = byte(in) & 0x7f;
	m.b = byte(in) & 1;
	some_fds(in, n, fds);
	if (init_send(init, &m, fds, n) == 0)
		inside_message(k);
	close_fds(fds);
}

static void drain(int fd)
{
	char text[2048];
	int fds[PACKET_FDS];

	while (packet_recv(fd, text, sizeof(struct init_msg), fds) > 0)
		close_fds(fds);
}

static void one_act(struct keeper *k, int init, int far[8], struct input *in)
{
	uint8_t act = byte(in) % 8;
	int pair[2];

	if (act == 0) {
		uint8_t i = byte(in) % 8;

		if (far[i] >= 0 ||
		    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
			return;
		far[i] = pair[1];
		(void)client_add(k, pair[0]);
	} else if (act < 5) {
		client_says(k, in);
	} else {
		init_says(k, init, in);
	}
	drain(init);
}

static void finish(struct keeper *k, const int far[8])
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used) {
			clients_end(k, &k->sessions[i], 0, END_EXIT);
			session_close(&k->sessions[i]);
		}
	clients_end_all(k, 0, END_EXIT);
	refuser_finish(k);
	served_finish(k);
	notice_finish(k);
	for (size_t i = 0; i < 8; i++)
		fd_close(far[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	char *argv[] = { NULL };
	char name[] = "fuzz", none[] = "/nonexistent";
	struct plan plan = { .name = name,
			     .state_dir = none,
			     .cwd = none,
			     .argv = argv,
			     .is_named = true,
			     .user = name,
			     .engine = name,
			     .workspace = none };
	static struct policy policy; /* as it is built in; nothing here changes it */
	static bool is_ready;
	struct keeper_in kin = { .plan = &plan, .policy = &policy, .is_kept = true };
	struct keeper *k = mem_new(1, sizeof(*k));
	int far[8], pair[2];
	size_t before = open_fds();

	if (!is_ready)
		policy_init(&policy);
	is_ready = true;
	for (size_t i = 0; i < 8; i++)
		far[i] = FD_NONE;
	bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0);
	*k = (struct keeper){ .in = &kin,
			      .native = NATIVE_NONE,
			      .loop = loop_new(),
			      .dir = FD_NONE,
			      .lock = FD_NONE,
			      .listener = FD_NONE,
			      .sessions_dir = FD_NONE,
			      .proc = FD_NONE,
			      .shared = SHARED_NONE };
	k->native.ctl = pair[0];
	for (int i = 0; i < 64 && in.n > 0; i++)
		one_act(k, pair[1], far, &in);
	finish(k, far);
	fd_close(k->proc);
	fd_close(pair[0]);
	fd_close(pair[1]);
	loop_free(k->loop);
	free(k);
	bug_on(open_fds() != before);
	return 0;
}
