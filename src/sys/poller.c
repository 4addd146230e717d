/* SPDX-License-Identifier: Apache-2.0 */
/* sys/poller.c - see poller.h; epoll */
#include <sys/epoll.h>

#include "sys/poller.h"

int poller_open(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int control(int poller, int op, int fd, unsigned what, void *p)
{
	struct epoll_event ev = { .events = (what & POLLER_READ ? EPOLLIN | EPOLLRDHUP : 0U) |
					    (what & POLLER_WRITE ? EPOLLOUT : 0U),
				  .data.ptr = p };

	return epoll_ctl(poller, op, fd, &ev) < 0 ? -errno : 0;
}

int poller_add(int poller, int fd, unsigned what, void *p)
{
	return control(poller, EPOLL_CTL_ADD, fd, what, p);
}

int poller_change(int poller, int fd, unsigned what, void *p)
{
	return control(poller, EPOLL_CTL_MOD, fd, what, p);
}

void poller_remove(int poller, int fd)
{
	(void)epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL); /* it may never have been added */
}

int poller_wait(int poller, struct poller_hit hits[POLLER_HITS], int timeout_ms)
{
	struct epoll_event ev[POLLER_HITS];
	int n = epoll_wait(poller, ev, POLLER_HITS, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		uint32_t e = ev[i].events;

		hits[i] = (struct poller_hit){
			.p = ev[i].data.ptr,
			.ready = (e & (EPOLLIN | EPOLLRDHUP) ? POLLER_READ : 0U) |
				 (e & EPOLLOUT ? POLLER_WRITE : 0U) |
				 (e & (EPOLLHUP | EPOLLERR) ? POLLER_GONE : 0U),
		};
	}
	return n;
}
