/* SPDX-License-Identifier: Apache-2.0 */
/* sys/owner.c - see owner.h
 *
 * The kernel is asked, through a socket of the network namespace, which inode a connection has, and /proc whose descriptor
 * that is; a kernel that has no such sockets (gVisor's) has a table in /proc, which is read instead. Who made a connection
 * usually makes the next one too, so those are looked at first. All of it is bounded: a sandbox that connects without pause
 * gets its events without a process rather than whoever looks no time for anything else.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/loop.h"
#include "sys/owner.h"

#define WINDOW_NS (100 * NS_PER_MS)
#define SPEND_NS (4 * NS_PER_MS) /* of each window */
#define PROCESSES_MAX 4096
#define FILES_MAX 4096
#define TABLE_MAX (256 * KIB)

/* ---- which socket ---- */

static bool is_mapped(const uint8_t a[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(a, prefix, sizeof(prefix)) == 0;
}

static void put_address(uint32_t to[4], const uint8_t a[16], bool is_v4)
{
	memcpy(to, is_v4 ? a + 12 : a, is_v4 ? 4 : 16);
}

int64_t owner_inode(int diag, const struct owner_key *m)
{
	bool is_v4 = is_mapped(m->from) && is_mapped(m->to);
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 q;
	} ask = { .head = { .nlmsg_len = sizeof(ask),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		  .q = { .sdiag_family = is_v4 ? AF_INET : AF_INET6,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0U } };
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg d;
		char rest[1024];
	} said = { 0 };
	ssize_t n;

	ask.q.id.idiag_sport = htons(m->from_port);
	ask.q.id.idiag_dport = htons(m->to_port);
	put_address(ask.q.id.idiag_src, m->from, is_v4);
	put_address(ask.q.id.idiag_dst, m->to, is_v4);
	ask.q.id.idiag_cookie[0] = ask.q.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (send(diag, &ask, sizeof(ask), MSG_DONTWAIT) < 0)
		return -1;
	n = recv(diag, &said, sizeof(said), MSG_DONTWAIT);
	if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
	    said.head.nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(&said.head))->error == -ENOENT ? 0 : -1;
	if (n < (ssize_t)(sizeof(said.head) + sizeof(said.d)) ||
	    said.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -1;
	return said.d.idiag_inode;
}

/* ---- the same from a table ---- */

/* As the tables of /proc have it: the address in words of this processor's order. */
static void print_end(char *to, size_t size, const uint8_t a[16], uint16_t port, bool is_v4)
{
	uint32_t w[4];

	memcpy(w, is_v4 ? a + 12 : a, is_v4 ? 4 : 16);
	if (is_v4)
		(void)snprintf(to, size, "%08X:%04X", w[0], port);
	else
		(void)snprintf(to, size, "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3], port);
}

/* The number in the seventh column behind the addresses: state, queues, timer, retransmits, uid, timeout, inode. */
static int64_t inode_in(const char *behind)
{
	int64_t n = 0;

	for (int i = 0; i < 6; i++) {
		behind += strspn(behind, " ");
		behind += strcspn(behind, " \n");
	}
	behind += strspn(behind, " ");
	for (; *behind >= '0' && *behind <= '9' && n <= UINT32_MAX; behind++)
		n = n * 10 + (*behind - '0');
	return n;
}

static int64_t table_inode(int proc, const char *table, const struct owner_key *m, bool is_v4)
{
	_cleanup_(buf_done) struct buf b = BUF(TABLE_MAX);
	char from[48], to[48], row[104];
	const char *at;
	struct err ignored;
	_close_ int fd = openat(proc, table, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || io_read_fd(fd, &b, &ignored) < 0)
		return -1;
	print_end(from, sizeof(from), m->from, m->from_port, is_v4);
	print_end(to, sizeof(to), m->to, m->to_port, is_v4);
	(void)snprintf(row, sizeof(row), ": %s %s ", from, to);
	at = strstr(buf_cstr(&b), row);
	return at ? inode_in(at + strlen(row)) : 0;
}

/* A socket of IPv6 may hold a connection of IPv4, so that one is looked for in both. */
static int64_t listed_inode(int proc, const struct owner_key *m)
{
	bool is_v4 = is_mapped(m->from) && is_mapped(m->to);
	int64_t inode = is_v4 ? table_inode(proc, "net/tcp", m, true) : 0;

	return inode > 0 ? inode : table_inode(proc, "net/tcp6", m, false);
}

/* ---- whose ---- */

static bool holds(int proc, uint32_t pid, uint32_t inode)
{
	char path[32], want[40], to[64];
	struct dirent *en;
	int fd;
	DIR *d;
	bool is_found = false;

	(void)snprintf(path, sizeof(path), "%u/fd", pid);
	(void)snprintf(want, sizeof(want), "socket:[%u]", inode);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (d == NULL) {
		fd_close(fd);
		return false;
	}
	for (size_t k = 0; k < FILES_MAX && !is_found && (en = readdir(d)) != NULL; k++) {
		ssize_t n = readlinkat(fd, en->d_name, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		is_found = n > 0 && str_eq(to, want);
	}
	(void)closedir(d);
	return is_found;
}

static uint32_t search(int proc, uint32_t inode)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;
	uint32_t found = 0;

	if (d == NULL) {
		fd_close(fd);
		return 0;
	}
	for (size_t n = 0; n < PROCESSES_MAX && found == 0 && (en = readdir(d)) != NULL; n++) {
		uint32_t pid = 0;

		for (const char *c = en->d_name; *c >= '0' && *c <= '9'; c++)
			pid = pid * 10 + (uint32_t)(*c - '0');
		if (pid > 1 && holds(proc, pid, inode))
			found = pid;
	}
	(void)closedir(d);
	return found;
}

static uint32_t process_of(struct owner *w, int proc, uint32_t inode)
{
	uint32_t pid = 0;

	for (size_t i = 0; i < ARRAY_LEN(w->recent) && pid == 0; i++)
		if (w->recent[i] && holds(proc, w->recent[i], inode))
			pid = w->recent[i];
	if (pid)
		return pid;
	pid = search(proc, inode);
	if (pid) {
		memmove(w->recent + 1, w->recent, sizeof(w->recent) - sizeof(w->recent[0]));
		w->recent[0] = pid;
	}
	return pid;
}

uint32_t owner_find(struct owner *w, int proc, const struct owner_key *q)
{
	uint64_t now = clock_now();
	uint32_t pid = 0;
	int64_t inode;

	/* One look at a thousand files on a slow machine takes more than a window: the next then waits as much longer. */
	if (now - w->window > WINDOW_NS && now - w->window > w->spent * (WINDOW_NS / SPEND_NS)) {
		w->window = now;
		w->spent = 0;
	}
	if ((w->diag < 0 && !w->has_table) || proc < 0 || q->from_port == 0 || w->spent >= SPEND_NS)
		return 0;
	inode = w->diag < 0 ? listed_inode(proc, q) : owner_inode(w->diag, q);
	if (inode > 0)
		pid = process_of(w, proc, (uint32_t)inode);
	w->spent += clock_now() - now;
	return pid;
}

void owner_program(int proc, uint32_t pid, char *to, size_t size)
{
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%u/exe", pid);
	n = readlinkat(proc, path, to, size - 1);
	to[n > 0 ? n : 0] = '\0';
}
