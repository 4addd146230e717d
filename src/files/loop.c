/* SPDX-License-Identifier: Apache-2.0 */
/* files/loop.c - requests of the guest, one after the other, and the keeper's question for the table of open files */
#include <fcntl.h>
#include <poll.h>

#include "base/io.h"
#include "files/serve.h"
#include "files/wire.h"
#include "sys/packet.h"

/* What has come and is not a whole message yet. */
struct inbox {
	char *p;
	size_t n;
};

static bool answer_all(struct files *f, struct inbox *in)
{
	size_t at = 0, size;

	for (;;) {
		if (p9_length(in->p + at, in->n - at, &size) < 0)
			return false;
		if (size == 0 || in->n - at < size)
			break;
		if (files_answer(f, in->p + at, size) < 0 ||
		    io_write_all(FILES_FD_GUEST, f->out.p, f->out.n) < 0)
			return false;
		at += size;
	}
	memmove(in->p, in->p + at, in->n - at);
	in->n -= at;
	return true;
}

static bool on_guest(struct files *f, struct inbox *in)
{
	ssize_t n = io_read(FILES_FD_GUEST, in->p + in->n, P9_MSIZE - in->n);

	if (n <= 0)
		return false;
	in->n += (size_t)n;
	return answer_all(f, in);
}

static bool on_keeper(struct files *f, const struct inbox *in)
{
	struct files_msg m = { 0 };
	struct err e = ERR_INIT;
	int fds[PACKET_FDS];
	size_t lost = 0;
	int r = packet_recv(FILES_FD_KEEPER, &m, sizeof(m), fds);
	bool is_one = r == 1 && m.is_save && fds[0] >= 0;

	if (is_one) {
		r = in->n > 0 ? err_set(&e, ERR_SYSTEM, EBUSY, "a request is on its way")
			      : fids_save(&f->fids, fds[0], &lost, &e);
		m = (struct files_msg){ .error = -r, .lost = lost };
		(void)snprintf(m.why, sizeof(m.why), "%.199s", r < 0 ? e.msg : "");
		is_one = packet_send(FILES_FD_KEEPER, &m, sizeof(m), NULL, 0) == 0;
	}
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	return is_one;
}

void files_loop(struct files *f)
{
	struct inbox in = { .p = mem_new(P9_MSIZE, 1) };
	struct pollfd p[2] = { { .fd = FILES_FD_GUEST, .events = POLLIN },
			       { .fd = FILES_FD_KEEPER, .events = POLLIN } };

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents && !on_guest(f, &in))
			return;
		if (p[1].revents && !on_keeper(f, &in))
			return;
	}
}

int files_start(struct files *f, const char *root, bool is_again, struct err *e)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), r;
	size_t lost;

	if (fd < 0)
		return err_sys(e, "'%s'", root);
	r = files_init(f, fd, io_most_files(65536));
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s'", root);
	if (is_again) {
		f->is_open = true; /* the guest's kernel has agreed to it before it was saved */
		r = fids_load(&f->fids, FILES_FD_TABLE, &lost, e);
		(void)close(FILES_FD_TABLE);
	}
	return r < 0 ? r : files_confine(root, e);
}
