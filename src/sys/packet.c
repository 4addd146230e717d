/* SPDX-License-Identifier: Apache-2.0 */
/* sys/packet.c - see packet.h */
#include <sys/socket.h>

#include "base/io.h"
#include "sys/packet.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PACKET_FDS * sizeof(int))];
};

int packet_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	bug_on(n_fds > PACKET_FDS);
	if (n_fds > 0) {
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = (socklen_t)CMSG_SPACE(n_fds * sizeof(int));
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = (socklen_t)CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, n_fds * sizeof(int));
	}
	for (size_t before = 0;;) {
		if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0)
			return 0;
		/* The user has as many descriptors in flight as we may have open: a sandbox can bring that about, but
		 * gets no more than half of our hard limit. */
		if (errno == ETOOMANYREFS && before == 0 && (before = io_most_files(SIZE_MAX)) > 0)
			continue;
		if (errno != EINTR)
			return -errno;
	}
}

/* Descriptors that came along, whatever the rest looks like: they are ours to close. */
static void take_fds(struct msghdr *msg, int fds[PACKET_FDS])
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		size_t bytes = h->cmsg_len - CMSG_LEN(0);

		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
		    bytes <= PACKET_FDS * sizeof(int))
			memcpy(fds, CMSG_DATA(h), bytes);
	}
}

int packet_recv(int fd, void *p, size_t n, int fds[PACKET_FDS])
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	bool was_reset = false;
	ssize_t got;

	for (int i = 0; i < PACKET_FDS; i++)
		fds[i] = FD_NONE;
	/* A peer that closed the connection with packets of ours unread makes the kernel report that once, before the packets
	 * that the peer sent. */
	for (;;) {
		got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
		if (got >= 0 || (errno != EINTR && (errno != ECONNRESET || was_reset)))
			break;
		was_reset = was_reset || errno == ECONNRESET;
	}
	if (got < 0)
		return errno == ECONNRESET ? 0 : -errno;
	take_fds(&msg, fds);
	if (got == (ssize_t)n && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	for (int i = 0; i < PACKET_FDS; i++) {
		fd_close(fds[i]);
		fds[i] = FD_NONE;
	}
	return got == 0 ? 0 : -EBADMSG;
}
