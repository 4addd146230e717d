/* SPDX-License-Identifier: Apache-2.0 */
/* sys/datagram.c - see datagram.h */
#include <sys/socket.h>

#include "sys/datagram.h"

static void take_where(struct msghdr *msg, struct datagram *d)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
			memcpy(&d->at6, CMSG_DATA(h), sizeof(d->at6));
			d->has_at = true;
		} else if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
			memcpy(&d->at4, CMSG_DATA(h), sizeof(d->at4));
			d->at4.ipi_spec_dst = d->at4.ipi_addr;
			d->is_v4 = d->has_at = true;
		}
	}
	/* Sent by the address, not by the interface. */
	d->at6.ipi6_ifindex = 0;
	d->at4.ipi_ifindex = 0;
}

ssize_t datagram_recv(int fd, void *p, size_t n, struct datagram *ret)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct iovec iov = { .iov_base = p, .iov_len = n };
	struct msghdr msg = { .msg_name = &ret->from,
			      .msg_namelen = sizeof(ret->from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t got;

	*ret = (struct datagram){ 0 };
	got = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	ret->from_n = msg.msg_namelen;
	take_where(&msg, ret);
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : got;
}

void datagram_answer(int fd, const struct datagram *d, const void *p, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct sockaddr_in6 to = d->from;
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = d->from_n, .msg_iov = &iov, .msg_iovlen = 1
	};
	size_t size = d->is_v4 ? sizeof(d->at4) : sizeof(d->at6);

	if (d->has_at) {
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = (socklen_t)CMSG_SPACE(size);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = d->is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
		h->cmsg_type = d->is_v4 ? IP_PKTINFO : IPV6_PKTINFO;
		h->cmsg_len = (socklen_t)CMSG_LEN(size);
		memcpy(CMSG_DATA(h), d->is_v4 ? (const void *)&d->at4 : (const void *)&d->at6,
		       size);
	}
	(void)sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL); /* who lost it asks again */
}
