/* SPDX-License-Identifier: Apache-2.0 */
/* sys/netns.c - see netns.h
 *
 * Two kernel facilities do all of it. A local default route ("every address is mine") delivers each packet on lo
 * instead of refusing it, and one nftables chain hands every TCP connection that is not to loopback to the listener
 * (TPROXY: no connection tracking, no rewriting, the accepted socket's own address is the one that was asked for).
 * The netlink messages are laid out by hand in one buffer: two sendmsg calls on the start path, where running `nft`
 * would cost 6 ms and libnftnl cannot be linked statically.
 *
 * Runs between clone and exec: nothing here allocates or logs.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "sys/netns.h"

#ifndef IP_TRANSPARENT
#define IP_TRANSPARENT 19
#endif
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

#define LO_INDEX 1   /* the first interface of every network namespace */
#define BACKLOG 1024 /* more than wait here try again a second later, by the rules of TCP */

int netns_loopback(void)
{
	_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

void netns_low_ports(void)
{
	_close_ int fd = open(NETNS_LOW_PORTS, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)io_write_all(fd, "0", 1); /* else from 1024 on */
}

/* ---- netlink messages in one buffer ---- */

struct nl {
	_Alignas(8) char p[4096];
	size_t n;
	size_t msg;       /* where the current message begins */
	uint32_t n_acked; /* messages that ask for an answer */
};

static void nl_put(struct nl *b, const void *p, size_t n)
{
	size_t padded = NLMSG_ALIGN(n);

	bug_on(padded > sizeof(b->p) - b->n);
	memcpy(b->p + b->n, p, n);
	memset(b->p + b->n + n, 0, padded - n);
	b->n += padded;
}

static void nl_begin(struct nl *b, uint16_t type, uint16_t flags, const void *body, size_t n)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };

	b->msg = b->n;
	b->n_acked += (flags & NLM_F_ACK) != 0;
	nl_put(b, &h, sizeof(h));
	nl_put(b, body, n);
}

static void nl_end(struct nl *b)
{
	uint32_t len = (uint32_t)(b->n - b->msg);

	memcpy(b->p + b->msg, &len, sizeof(len)); /* nlmsg_len is the first member */
}

static void nl_attr(struct nl *b, uint16_t type, const void *p, size_t n)
{
	struct nlattr a = { .nla_len = (uint16_t)(sizeof(a) + n), .nla_type = type };

	nl_put(b, &a, sizeof(a));
	nl_put(b, p, n);
}

static void nl_text(struct nl *b, uint16_t type, const char *s)
{
	nl_attr(b, type, s, strlen(s) + 1);
}

static void nl_be32(struct nl *b, uint16_t type, uint32_t v)
{
	v = htonl(v);
	nl_attr(b, type, &v, sizeof(v));
}

static size_t nl_nest(struct nl *b, uint16_t type)
{
	struct nlattr a = { .nla_type = (uint16_t)(type | NLA_F_NESTED) };
	size_t at = b->n;

	nl_put(b, &a, sizeof(a));
	return at;
}

static void nl_close(struct nl *b, size_t at)
{
	uint16_t len = (uint16_t)(b->n - at);

	memcpy(b->p + at, &len, sizeof(len)); /* nla_len is the first member */
}

/* The verdicts in one packet from the kernel; the first failure in *ret. */
static uint32_t count_answers(const char *p, size_t n, int *ret)
{
	uint32_t found = 0;

	for (size_t at = 0; n - at >= sizeof(struct nlmsghdr);) {
		struct nlmsghdr h;
		int error;

		memcpy(&h, p + at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > n - at)
			break;
		if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= sizeof(h) + sizeof(error)) {
			memcpy(&error, p + at + sizeof(h), sizeof(error));
			if (error < 0 && *ret == 0)
				*ret = error;
			found++;
		}
		at += NLMSG_ALIGN(h.nlmsg_len) < n - at ? NLMSG_ALIGN(h.nlmsg_len) : n - at;
	}
	return found;
}

/* Sends all and reads an answer for each message that asked for one. The first failure, or 0. */
static int nl_send(const struct nl *b, int protocol)
{
	_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	uint32_t answers = 0;
	char in[4096];
	int r = 0;

	if (fd < 0 || send(fd, b->p, b->n, 0) < 0)
		return -errno;
	while (answers < b->n_acked) {
		/* The kernel has answered before send() returned: nothing to wait for. */
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);

		if (n <= 0)
			return r < 0 ? r : -EPROTO;
		answers += count_answers(in, (size_t)n, &r);
	}
	return r;
}

/* ---- addresses and routes ---- */

static void put_address(struct nl *b, int family, const void *addr, size_t n)
{
	struct ifaddrmsg m = { .ifa_family = (uint8_t)family,
			       .ifa_prefixlen = (uint8_t)(n * 8),
			       .ifa_flags = IFA_F_NODAD,
			       .ifa_scope = RT_SCOPE_UNIVERSE,
			       .ifa_index = LO_INDEX };

	nl_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &m, sizeof(m));
	nl_attr(b, IFA_LOCAL, addr, n);
	nl_attr(b, IFA_ADDRESS, addr, n);
	nl_end(b);
}

/* local default dev lo: every address that has no better route is ours. */
static void put_route(struct nl *b, int family, const void *source, size_t n)
{
	struct rtmsg m = { .rtm_family = (uint8_t)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_BOOT,
			   .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			   .rtm_type = RTN_LOCAL };
	uint32_t lo = LO_INDEX;

	nl_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &m, sizeof(m));
	nl_attr(b, RTA_OIF, &lo, sizeof(lo));
	nl_attr(b, RTA_PREFSRC, source, n);
	nl_end(b);
}

static int set_routes(bool has_v6)
{
	struct nl b = { .n = 0 };
	struct in_addr a4;
	struct in6_addr a6;

	bug_on(inet_pton(AF_INET, NETNS_V4, &a4) != 1 || inet_pton(AF_INET6, NETNS_V6, &a6) != 1);
	a4.s_addr |= htonl(1);
	a6.s6_addr[15] = 1;
	put_address(&b, AF_INET, &a4, sizeof(a4));
	put_route(&b, AF_INET, &a4, sizeof(a4));
	if (has_v6) {
		put_address(&b, AF_INET6, &a6, sizeof(a6));
		put_route(&b, AF_INET6, &a6, sizeof(a6));
	}
	return nl_send(&b, NETLINK_ROUTE);
}

/* ---- the redirect ---- */

#define TABLE "vitrine"
#define CHAIN "to-gate"

static void nft_begin(struct nl *b, unsigned type, unsigned flags, int family)
{
	struct nfgenmsg m = { .nfgen_family = (uint8_t)family };

	nl_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), (uint16_t)flags, &m, sizeof(m));
}

static void nft_batch(struct nl *b, uint16_t type)
{
	struct nfgenmsg m = { .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	nl_begin(b, type, 0, &m, sizeof(m));
	nl_end(b);
}

static void nft_chain(struct nl *b)
{
	size_t hook;

	nft_begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK, NFPROTO_INET);
	nl_text(b, NFTA_TABLE_NAME, TABLE);
	nl_end(b);
	nft_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_ACK, NFPROTO_INET);
	nl_text(b, NFTA_CHAIN_TABLE, TABLE);
	nl_text(b, NFTA_CHAIN_NAME, CHAIN);
	hook = nl_nest(b, NFTA_CHAIN_HOOK);
	nl_be32(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	nl_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)-150);
	nl_close(b, hook);
	nl_text(b, NFTA_CHAIN_TYPE, "filter");
	nl_end(b);
}

/* One expression: its name, then its attributes between the two calls. */
static size_t expr_open(struct nl *b, const char *name, size_t *ret_data)
{
	size_t at = nl_nest(b, NFTA_LIST_ELEM);

	nl_text(b, NFTA_EXPR_NAME, name);
	*ret_data = nl_nest(b, NFTA_EXPR_DATA);
	return at;
}

static void expr_close(struct nl *b, size_t at, size_t data)
{
	nl_close(b, data);
	nl_close(b, at);
}

static void expr_meta(struct nl *b, uint32_t key)
{
	size_t data, at = expr_open(b, "meta", &data);

	nl_be32(b, NFTA_META_DREG, NFT_REG_1);
	nl_be32(b, NFTA_META_KEY, key);
	expr_close(b, at, data);
}

static void put_value(struct nl *b, uint16_t type, const void *p, size_t n)
{
	size_t value = nl_nest(b, type);

	nl_attr(b, NFTA_DATA_VALUE, p, n);
	nl_close(b, value);
}

static void expr_cmp(struct nl *b, uint32_t op, const void *p, size_t n)
{
	size_t data, at = expr_open(b, "cmp", &data);

	nl_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	nl_be32(b, NFTA_CMP_OP, op);
	put_value(b, NFTA_CMP_DATA, p, n);
	expr_close(b, at, data);
}

static void expr_header(struct nl *b, uint32_t offset, uint32_t len)
{
	size_t data, at = expr_open(b, "payload", &data);

	nl_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	nl_be32(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	nl_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	nl_be32(b, NFTA_PAYLOAD_LEN, len);
	expr_close(b, at, data);
}

static void expr_tproxy(struct nl *b, uint32_t family)
{
	uint16_t port = htons(NETNS_PROXY_PORT);
	size_t data, at = expr_open(b, "immediate", &data);

	nl_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	put_value(b, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	expr_close(b, at, data);
	at = expr_open(b, "tproxy", &data);
	nl_be32(b, NFTA_TPROXY_FAMILY, family);
	nl_be32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	expr_close(b, at, data);
}

/* TCP of that family whose destination is not loopback: to the listener. */
static void put_redirect(struct nl *b, uint8_t family)
{
	static const uint8_t tcp = IPPROTO_TCP;
	static const uint8_t loop4 = 127;
	struct in6_addr loop6 = IN6ADDR_LOOPBACK_INIT;
	size_t list;

	nft_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, NFPROTO_INET);
	nl_text(b, NFTA_RULE_TABLE, TABLE);
	nl_text(b, NFTA_RULE_CHAIN, CHAIN);
	list = nl_nest(b, NFTA_RULE_EXPRESSIONS);
	expr_meta(b, NFT_META_NFPROTO);
	expr_cmp(b, NFT_CMP_EQ, &family, sizeof(family));
	expr_meta(b, NFT_META_L4PROTO);
	expr_cmp(b, NFT_CMP_EQ, &tcp, sizeof(tcp));
	if (family == NFPROTO_IPV4) {
		expr_header(b, 16, 1);
		expr_cmp(b, NFT_CMP_NEQ, &loop4, sizeof(loop4));
	} else {
		expr_header(b, 24, 16);
		expr_cmp(b, NFT_CMP_NEQ, &loop6, sizeof(loop6));
	}
	expr_tproxy(b, family);
	nl_close(b, list);
	nl_end(b);
}

static int set_redirect(bool has_v6)
{
	struct nl b = { .n = 0 };

	nft_batch(&b, NFNL_MSG_BATCH_BEGIN);
	nft_chain(&b);
	put_redirect(&b, NFPROTO_IPV4);
	if (has_v6)
		put_redirect(&b, NFPROTO_IPV6);
	nft_batch(&b, NFNL_MSG_BATCH_END);
	return nl_send(&b, NETLINK_NETFILTER);
}

/* ---- sockets ---- */

/* One socket for both families where there are both. */
static int make_socket(bool has_v6, int type)
{
	int one = 1, zero = 0;
	_close_ int fd =
		socket(has_v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (has_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
			 sizeof(one)); /* nothing is there yet */
	return take_fd(fd);
}

static int bind_any(int fd, bool has_v6, uint16_t port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (has_v6)
		return bind(fd, (const struct sockaddr *)&a6, sizeof(a6)) < 0 ? -errno : 0;
	return bind(fd, (const struct sockaddr *)&a4, sizeof(a4)) < 0 ? -errno : 0;
}

static int listen_tcp(bool has_v6, uint16_t port, bool is_transparent)
{
	_close_ int fd = make_socket(has_v6, SOCK_STREAM);
	int one = 1, r;

	if (fd < 0)
		return fd;
	/* Of a socket for both families the v4 option decides for v4, the v6 one for v6. */
	if (is_transparent &&
	    (setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one)) < 0 ||
	     (has_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof(one)) < 0)))
		return -errno;
	r = bind_any(fd, has_v6, port);
	if (r < 0)
		return r;
	return listen(fd, BACKLOG) < 0 ? -errno : take_fd(fd);
}

static int open_dns(bool has_v6)
{
	_close_ int fd = make_socket(has_v6, SOCK_DGRAM);
	int one = 1, r;

	if (fd < 0)
		return fd;
	/* Whatever server was asked, the answer comes from its address. */
	if (setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) < 0 ||
	    (has_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)) < 0))
		return -errno;
	r = bind_any(fd, has_v6, 53);
	return r < 0 ? r : take_fd(fd);
}

static bool knows_v6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;
}

static int open_diag(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	return fd < 0 ? FD_NONE : fd;
}

int netns_open(struct netns *ret)
{
	struct netns n = { .has_v6 = knows_v6() };
	int r = set_routes(n.has_v6);

	if (r < 0)
		return r;
	n.has_routes = true;
	n.has_redirect = !sabotaged("redirect") && set_redirect(n.has_v6) == 0;
	n.fd[NETNS_TCP] = listen_tcp(n.has_v6, NETNS_PROXY_PORT, n.has_redirect);
	n.fd[NETNS_DNS_UDP] = open_dns(n.has_v6);
	n.fd[NETNS_DNS_TCP] = listen_tcp(n.has_v6, 53, false);
	n.fd[NETNS_DIAG] = open_diag();
	for (int i = 0; i < NETNS_LISTENERS_; i++)
		if (n.fd[i] < 0)
			return n.fd[i];
	*ret = n;
	return 0;
}

static int or_none(int fd)
{
	return fd < 0 ? FD_NONE : fd;
}

/* The addresses that listen are those of loopback, whatever else there may be: nobody else is to reach them. */
int netns_open_plain(struct netns *ret)
{
	struct netns n = { .fd = { netns_listen(NETNS_PROXY_PORT), FD_NONE, FD_NONE, FD_NONE } };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(53),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int udp = make_socket(false, SOCK_DGRAM);

	if (n.fd[NETNS_TCP] < 0)
		return n.fd[NETNS_TCP];
	if (udp >= 0 && bind(udp, (const struct sockaddr *)&a, sizeof(a)) == 0) {
		n.fd[NETNS_DNS_UDP] = take_fd(udp);
		n.fd[NETNS_DNS_TCP] = or_none(netns_listen(53));
	}
	n.fd[NETNS_DIAG] = open_diag();
	*ret = n;
	return 0;
}

int netns_listen_any(bool has_v6, uint16_t port)
{
	return listen_tcp(has_v6, port, false);
}

int netns_socket(void)
{
	return make_socket(false, SOCK_STREAM);
}

int netns_listen(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int fd = make_socket(false, SOCK_STREAM);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(fd);
}
