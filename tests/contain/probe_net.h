/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_net.h - sockets of every family and what can be reached with them */
#ifndef PROBE_NET_H
#define PROBE_NET_H

#include "probe.h"

/* ---- Sockets --------------------------------------------------------------------------------- */

struct family {
	const char *word;
	int family, type, protocol;
};

static const struct family families[] = {
	{ "sock_vsock", 40, SOCK_STREAM, 0 },
	{ "sock_alg", 38, SOCK_SEQPACKET, 0 },
	{ "sock_tipc", 30, SOCK_SEQPACKET, 0 },
	{ "sock_rds", 21, SOCK_SEQPACKET, 0 },
	{ "sock_can", 29, SOCK_RAW, 1 },
	{ "sock_xdp", 44, SOCK_RAW, 0 },
	{ "sock_smc", 43, SOCK_STREAM, 0 },
	{ "sock_bluetooth", 31, SOCK_RAW, 1 },
	{ "sock_qipcrtr", 42, SOCK_DGRAM, 0 },
	{ "sock_kcm", 41, SOCK_SEQPACKET, 0 },
	{ "sock_key", 15, SOCK_RAW, 2 },
	{ "sock_ax25", 3, SOCK_SEQPACKET, 0 },
	{ "sock_x25", 9, SOCK_SEQPACKET, 0 },
	{ "sock_llc", 26, SOCK_STREAM, 0 },
	{ "sock_ieee802154", 36, SOCK_DGRAM, 0 },
	{ "sock_nfc", 39, SOCK_SEQPACKET, 0 },
	{ "sock_phonet", 35, SOCK_DGRAM, 0 },
	{ "sock_caif", 37, SOCK_SEQPACKET, 0 },
	{ "sock_rxrpc", 33, SOCK_DGRAM, 2 },
	{ "sock_pppox", 24, SOCK_STREAM, 0 },
	{ "sock_mctp", 45, SOCK_DGRAM, 0 },
	{ "sock_appletalk", 5, SOCK_DGRAM, 0 },
	{ "sock_packet", AF_PACKET, SOCK_RAW, 0 },
	{ "sock_packet_dgram", AF_PACKET, SOCK_DGRAM, 0 },
	{ "sock_packet_old", AF_INET, 10, 0 },
	{ "sock_raw4", AF_INET, SOCK_RAW, IPPROTO_ICMP },
	{ "sock_raw4_any", AF_INET, SOCK_RAW, IPPROTO_RAW },
	{ "sock_raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
	{ "sock_ping4", AF_INET, SOCK_DGRAM, IPPROTO_ICMP },
	{ "sock_ping6", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 },
	{ "sock_sctp", AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP },
	{ "sock_dccp", AF_INET, SOCK_DCCP, IPPROTO_DCCP },
	{ "sock_udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE },
	{ "sock_nl_uevent", AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT },
	{ "sock_nl_audit", AF_NETLINK, SOCK_DGRAM, NETLINK_AUDIT },
	{ "sock_nl_xfrm", AF_NETLINK, SOCK_DGRAM, NETLINK_XFRM },
	{ "sock_nl_netfilter", AF_NETLINK, SOCK_DGRAM, NETLINK_NETFILTER },
	{ "sock_nl_generic", AF_NETLINK, SOCK_DGRAM, NETLINK_GENERIC },
	{ "sock_nl_connector", AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR },
	{ "sock_nl_crypto", AF_NETLINK, SOCK_DGRAM, NETLINK_CRYPTO },
	{ "sock_nl_route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE },
};

static int do_family(const struct family *f)
{
	int fd = socket(f->family, f->type | SOCK_CLOEXEC, f->protocol);
	long r = res(fd);

	if (fd >= 0)
		(void)close(fd);
	return say(f->word, r, by_family);
}

/* Connect with a short patience, say who we are, show the answer. */
static long reach(int fd, const struct sockaddr *to, socklen_t n, const char *text)
{
	struct timeval patience = { .tv_usec = 700 * 1000 };
	char buf[256];
	ssize_t got;

	if (fd < 0)
		return -(long)errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, to, n) < 0)
		return -(long)errno;
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return -(long)errno;
	got = recv(fd, buf, sizeof(buf), 0);
	if (got > 0)
		show(buf, (size_t)got);
	return 0;
}

/* unix PATH TEXT, abstract NAME TEXT: to a listener of stream type. */
static int unix_connect(int argc, char **argv, size_t lead)
{
	const char *name = arg(argc, argv, 1, "s");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (lead + n >= sizeof(to.sun_path))
		return UNSURE;
	memcpy(to.sun_path + lead, name, n);
	n += offsetof(struct sockaddr_un, sun_path) + lead;
	return say(argv[0],
		   reach(fd, (struct sockaddr *)&to, (socklen_t)n, arg(argc, argv, 2, "hello")),
		   by_net);
}

static int w_unix(int argc, char **argv)
{
	return unix_connect(argc, argv, 0);
}

static int w_abstract(int argc, char **argv)
{
	return unix_connect(argc, argv, 1);
}

struct where {
	struct sockaddr_storage a;
	socklen_t n;
};

static bool address(const char *host, long port, struct where *w)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&w->a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&w->a;
	char name[64];
	char *scope;

	*w = (struct where){ 0 };
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		w->n = sizeof(*v4);
		return true;
	}
	(void)snprintf(name, sizeof(name), "%s", host);
	scope = strchr(name, '%');
	if (scope) {
		*scope = 0;
		v6->sin6_scope_id = if_nametoindex(scope + 1);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	w->n = sizeof(*v6);
	return inet_pton(AF_INET6, name, &v6->sin6_addr) == 1;
}

/* tcp HOST PORT TEXT, udp HOST PORT TEXT: numeric addresses of both families. */
static int w_tcp(int argc, char **argv)
{
	struct where w;

	if (!address(arg(argc, argv, 1, "127.0.0.1"), num(argc, argv, 2, 1), &w))
		return UNSURE;
	return say(argv[0],
		   reach(socket(w.a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0),
			 (struct sockaddr *)&w.a, w.n, arg(argc, argv, 3, "hello")),
		   by_net);
}

/* Datagrams by sendto and sendmmsg: one leaves although nothing answers, so only an error is a
 * refusal. */
static int w_udp(int argc, char **argv)
{
	const char *text = arg(argc, argv, 3, "hello");
	struct iovec v = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };
	struct where w;
	int fd;
	long r, r2;

	if (!address(arg(argc, argv, 1, "127.0.0.1"), num(argc, argv, 2, 1), &w))
		return UNSURE;
	fd = socket(w.a.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return say(argv[0], -(long)errno, by_family);
	r = res(sendto(fd, text, v.iov_len, MSG_NOSIGNAL, (struct sockaddr *)&w.a, w.n));
	m.msg_hdr.msg_name = &w.a;
	m.msg_hdr.msg_namelen = w.n;
	r2 = res(sendmmsg(fd, &m, 1, MSG_NOSIGNAL));
	return say(argv[0], r > r2 ? r : r2, by_net);
}

/* fastopen HOST PORT TEXT - data in the SYN, and no connect(2) for a filter to see. */
static int w_fastopen(int argc, char **argv)
{
	const char *text = arg(argc, argv, 3, "hello");
	struct where w;
	int fd;

	if (!address(arg(argc, argv, 1, "127.0.0.1"), num(argc, argv, 2, 1), &w))
		return UNSURE;
	fd = socket(w.a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return say(argv[0], -(long)errno, by_family);
	return say(argv[0],
		   res(sendto(fd, text, strlen(text), MSG_FASTOPEN | MSG_NOSIGNAL,
			      (struct sockaddr *)&w.a, w.n)),
		   by_net);
}

static int w_mptcp(int argc, char **argv)
{
	struct where w;

	if (!address(arg(argc, argv, 1, "127.0.0.1"), num(argc, argv, 2, 1), &w))
		return UNSURE;
	return say(argv[0],
		   reach(socket(w.a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 262),
			 (struct sockaddr *)&w.a, w.n, arg(argc, argv, 3, "hello")),
		   by_net);
}

/* ping HOST - one echo request by the unprivileged ICMP socket, then by a raw one. */
static int w_ping(int argc, char **argv)
{
	unsigned char echo[16] = { 8, 0, 0xf7, 0xff, 0, 0, 0, 0 };
	struct where w;
	long best = -EPERM;
	static const int types[] = { SOCK_DGRAM, SOCK_RAW };

	if (!address(arg(argc, argv, 1, "127.0.0.1"), 0, &w))
		return UNSURE;
	if (w.a.ss_family == AF_INET6)
		echo[0] = 128;
	for (size_t i = 0; i < COUNT(types); i++) {
		int fd = socket(w.a.ss_family, types[i] | SOCK_CLOEXEC,
				w.a.ss_family == AF_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

		if (fd < 0)
			continue;
		best = res(sendto(fd, echo, sizeof(echo), 0, (struct sockaddr *)&w.a, w.n));
		(void)close(fd);
		if (best >= 0)
			break;
	}
	return say(argv[0], best, by_net);
}

/* unspec PORT - take every socket we were handed, break its connection and point it at the
 * host's loopback. */
static int w_unspec(int argc, char **argv)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	long best = -ENOENT;

	to.sin_port = htons((uint16_t)num(argc, argv, 1, 1));
	for (int fd = 0; fd < 1024; fd++) {
		int type, domain;
		socklen_t n = sizeof(type);
		long r;

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
			continue;
		n = sizeof(domain);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
			continue;
		printf("socket fd=%d domain=%d type=%d\n", fd, domain, type);
		if (domain != AF_INET && domain != AF_INET6)
			continue;
		(void)connect(fd, &none, sizeof(none));
		r = reach(fd, (struct sockaddr *)&to, sizeof(to), "unspec");
		if (r == 0 || best == -ENOENT)
			best = r;
	}
	return say(argv[0], best, by_net);
}

/* nladdr - give lo another address: changes state, so the control must be "asroot". */
static int w_nladdr(int argc, char **argv)
{
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg a;
		struct rtattr t;
		struct in_addr ip;
	} ask = { .h = { .nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_NEWADDR,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		  .a = { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1 },
		  .t = { .rta_len = sizeof(struct rtattr) + 4, .rta_type = IFA_LOCAL } };
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char rest[512];
	} answer = { 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return say(argv[0], -(long)errno, by_family);
	(void)inet_pton(AF_INET, arg(argc, argv, 1, "10.9.8.7"), &ask.ip);
	if (send(fd, &ask, sizeof(ask), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return say(argv[0], -(long)errno, by_family);
	return say(argv[0], answer.e.error, by_family);
}

/* ifup NAME - the older way to change an interface. */
static int w_ifup(int argc, char **argv)
{
	struct ifreq q = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", arg(argc, argv, 1, "lo"));
	q.ifr_mtu = (int)num(argc, argv, 2, 1400);
	return say(argv[0], res(ioctl(fd, SIOCSIFMTU, &q)), by_family);
}

#endif
