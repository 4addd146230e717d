/* SPDX-License-Identifier: Apache-2.0 */
/* sys/owner_test.c - a connection of our own is ours, whichever way the kernel is asked */
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/test.h"
#include "sys/owner.h"

static const uint8_t v4[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
static const uint8_t v6[16] = { [15] = 1 };

/* Connects from a socket of `family` to the loopback address; false: this kernel has no such. */
static bool connect_both(int family, const uint8_t to[16], int fd[3], struct owner_key *ret)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 }, own;
	struct sockaddr_in b = { .sin_family = AF_INET };
	void *dial = family == AF_INET ? (void *)&b : (void *)&a;
	socklen_t n = sizeof(a), n_dial = family == AF_INET ? sizeof(b) : sizeof(a);

	fd[0] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[1] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[2] = FD_NONE;
	if (fd[0] < 0 || bind(fd[0], (struct sockaddr *)&a, n) < 0 || listen(fd[0], 1) < 0 ||
	    getsockname(fd[0], (struct sockaddr *)&a, &n) < 0)
		return false;
	memcpy(&a.sin6_addr, to, 16);
	b.sin_port = a.sin6_port;
	b.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd[1], dial, n_dial) < 0)
		return false;
	n = sizeof(own);
	fd[2] = accept(fd[0], (struct sockaddr *)&own, &n);
	ret->from_port = ntohs(own.sin6_port);
	ret->to_port = ntohs(a.sin6_port);
	memcpy(ret->from, &own.sin6_addr, 16);
	memcpy(ret->to, to, 16);
	return fd[2] >= 0;
}

static void found_by(struct owner *w, int proc, const struct owner_key *q)
{
	struct owner_key other = *q;

	CHECK_INT(owner_find(w, proc, q), getpid());
	*w = (struct owner){ .diag = w->diag, .has_table = w->has_table };
	other.to_port ^= 1;
	CHECK_INT(owner_find(w, proc, &other), 0);
}

static void found(int family, const uint8_t to[16])
{
	_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct owner asks = { .diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
					     NETLINK_SOCK_DIAG) };
	struct owner reads = { .diag = FD_NONE, .has_table = true };
	struct owner neither = { .diag = FD_NONE };
	struct owner_key q = { 0 };
	int fd[3] = { FD_NONE, FD_NONE, FD_NONE };

	if (access("/proc/net/tcp6", R_OK) == 0) { /* else there is no IPv6 here to listen with */
		CHECK(connect_both(family, to, fd, &q));
		if (asks.diag >= 0)
			found_by(&asks, proc, &q);
		found_by(&reads, proc, &q);
		CHECK_INT(owner_find(&neither, proc, &q), 0);
	}
	for (int i = 0; i < 3; i++)
		fd_close(fd[i]);
	fd_close(asks.diag);
}

TEST(ipv4)
{
	found(AF_INET, v4);
}

TEST(ipv6)
{
	found(AF_INET6, v6);
}

TEST(ipv4_of_an_ipv6_socket)
{
	found(AF_INET6, v4);
}

TEST_MAIN()
