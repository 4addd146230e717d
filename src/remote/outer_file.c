/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_file.c - files of the inside, as sockets
 *
 * The keeper asks for them as it asks the native init, and gets a descriptor back: here one end of a socket pair, through
 * which the bytes of the file go, or of a directory its names. Of a file that is written, the last thing to be read from the
 * socket is four bytes: the errno of it all. What breaks off inside breaks off outside.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "remote/outer_flow.h"

static void told(struct flow *f, int error, const struct init_msg *more, int fd)
{
	struct init_msg m = *more;

	m.type = INIT_FILE_DONE;
	m.session = f->id;
	m.a = error;
	f->is_joined = true;
	outer_tell(f->outer, &m, &fd, fd >= 0 ? 1 : 0);
}

/* The paths; then, of a file that is made, what comes through the socket. */
static ssize_t pull(void *arg, void *p, size_t n)
{
	struct flow *f = arg;
	size_t left = f->body.n - f->at;

	if (f->which == 0)
		return 0; /* not said yet */
	if (left > 0) {
		n = n < left ? n : left;
		memcpy(p, f->body.p + f->at, n);
		f->at += n;
		return (ssize_t)n;
	}
	if (f->which != FILE_CREATE)
		return PULL_END;
	return f->from ? source_pull(f->from, p, n) : f->is_joined ? PULL_END : 0;
}

void file_ask(struct outer *o, const struct init_msg *m, int fd)
{
	_cleanup_(buf_done) struct buf paths = BUF(FILE_PATHS);
	struct init_msg no = { .type = INIT_FILE_DONE, .session = m->session, .a = EINVAL };
	struct head h = outer_request("POST", "/file/%d", m->a);
	struct flow *f;

	if (m->a <= 0 || m->a >= FILE_OP_COUNT_ || outer_read(fd, &paths) < 0 || paths.n == 0) {
		outer_tell(o, &no, NULL, 0);
		return;
	}
	head_add(&h, "mode", "%u", (unsigned)m->b & 07777);
	head_add(&h, "paths", "%zu", paths.n);
	f = outer_ask(o, ROLE_FILE, &h, pull);
	if (f == NULL) {
		no.a = EAGAIN;
		outer_tell(o, &no, NULL, 0);
		return;
	}
	f->id = m->session;
	f->which = m->a;
	f->body = paths;
	paths = BUF(0);
	stream_wake(f->stream);
}

/* Our end becomes both ports, theirs goes out. */
static int join(struct flow *f)
{
	struct loop *l = f->outer->loop;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK); /* theirs waits */
	if (f->which == FILE_CREATE) {
		int copy = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);

		if (copy < 0) {
			fd_close(pair[0]);
			fd_close(pair[1]);
			return -EMFILE;
		}
		f->from = source_new(l, copy);
		port_is_socket(f->from);
		port_join(f->from, f->stream);
	}
	f->to = sink_new(l, pair[0]);
	port_is_socket(f->to);
	port_join(f->to, f->stream);
	return pair[1];
}

static int first_answer(struct flow *f, const struct head *h)
{
	struct init_msg m = { 0 };
	uint64_t error, mode = 0, size = 0;
	int fd;

	if (f->is_joined || h->status != 200 || head_number(h, "errno", 4095, &error) < 0)
		return -EBADMSG;
	if (error || (f->which != FILE_OPEN && f->which != FILE_CREATE)) {
		told(f, (int)error, &m, FD_NONE);
		stream_wake(f->stream); /* nothing more will be said */
		return 0;
	}
	if (f->which == FILE_OPEN &&
	    (head_number(h, "mode", UINT32_MAX, &mode) < 0 ||
	     head_number(h, "size", INT64_MAX, &size) < 0 || !(S_ISREG(mode) || S_ISDIR(mode))))
		return -EBADMSG;
	m.b = (int32_t)(mode & (S_IFMT | 0777));
	m.written = size;
	fd = join(f);
	told(f, fd < 0 ? -fd : 0, &m, fd);
	fd_close(fd);
	if (fd < 0)
		stream_reset(f->stream);
	else
		stream_widen(f->stream, WIDE_STDIO);
	stream_wake(f->stream);
	return 0;
}

/* What became of all that was written. */
static int last_answer(struct flow *f, const struct head *h)
{
	uint64_t error;
	uint32_t said;

	if (f->which != FILE_CREATE || !f->is_joined || f->to == NULL || f->has_end ||
	    head_number(h, "errno", 4095, &error) < 0)
		return -EBADMSG;
	said = (uint32_t)error;
	f->has_end = true;
	(void)sink_put(f->to, &said, sizeof(said)); /* who has gone does not want to know */
	return 0;
}

int file_head(struct flow *f, const struct head *h, bool is_trailer)
{
	return is_trailer ? last_answer(f, h) : first_answer(f, h);
}

int file_data(struct flow *f, const void *p, size_t n)
{
	return f->which == FILE_OPEN ? outer_pass(f, p, n) : -EBADMSG;
}

void file_end(struct flow *f)
{
	f->has_end |= f->which == FILE_OPEN;
}

void file_gone(struct flow *f)
{
	struct init_msg no = { 0 };

	if (!f->is_joined && !f->outer->is_down)
		told(f, EIO, &no, FD_NONE);
	port_join(f->from, NULL);
	port_join(f->to, NULL);
	port_free(f->from);
	/* All of it has come: it still goes to whoever reads slowly. */
	if (f->has_end)
		sink_abandon(f->to);
	else
		port_free(f->to);
}
