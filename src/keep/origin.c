/* SPDX-License-Identifier: Apache-2.0 */
/* keep/origin.c - see origin.h
 *
 * The kernel is asked, through a socket of the sandbox's network namespace, which inode a connection has, and the
 * sandbox's own /proc whose descriptor that is. Who made a connection usually makes the next one too, so those are
 * looked at first. All of it is bounded: a sandbox that connects without pause gets its events without a process
 * rather than a keeper without time for anything else.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/sabotage.h"
#include "keep/keeper.h"
#include "keep/origin.h"
#include "sys/sample.h"

#define WINDOW_NS (100 * NS_PER_MS)
#define SPEND_NS (4 * NS_PER_MS) /* of each window */
#define PROCESSES_MAX 4096
#define FILES_MAX 4096

struct known {
	uint32_t id; /* of the connection; 0: none */
	struct origin o;
};

struct origins {
	int diag;
	uint64_t window, spent;
	uint32_t recent[8]; /* processes */
	struct known by_id[1024];
};

/* ---- which socket ---- */

static void put_address(uint32_t to[4], const struct addr *a, bool is_v4)
{
	memcpy(to, is_v4 ? a->b + 12 : a->b, is_v4 ? 4 : 16);
}

/* 0: nobody's; -1: the kernel did not say. */
static int64_t inode_of(int diag, const struct gate_msg *m)
{
	bool is_v4 = addr_is_v4(&m->from) && addr_is_v4(&m->to);
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
	put_address(ask.q.id.idiag_src, &m->from, is_v4);
	put_address(ask.q.id.idiag_dst, &m->to, is_v4);
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

static uint32_t process_of(struct origins *w, int proc, uint32_t inode)
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

static const struct session *session_of(const struct keeper *k, uint32_t pid)
{
	const struct session *only = NULL;
	struct process p = { 0 };
	char name[16];
	size_t n = 0;

	(void)snprintf(name, sizeof(name), "%u", pid);
	if (pid == 0 || !process_look(k->proc, name, &p))
		p.sid = 0;
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		const struct session *s = &k->sessions[i];

		if (!s->is_used || !s->has_begun || s->has_ended)
			continue;
		if (p.sid && s->pid > 0 && (uint64_t)s->pid == p.sid)
			return s;
		only = s;
		n++;
	}
	return n == 1 ? only : NULL; /* nobody else can have been it */
}

static void read_exe(int proc, uint32_t pid, char *to, size_t size)
{
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%u/exe", pid);
	n = readlinkat(proc, path, to, size - 1);
	to[n > 0 ? n : 0] = '\0';
}

/* ---- */

void origins_open(struct keeper *k, int take_diag)
{
	struct init_msg m = { .type = INIT_WANT_PROC };

	if (k->origins == NULL)
		k->origins = mem_new(1, sizeof(*k->origins));
	else
		fd_close(k->origins->diag);
	k->origins->diag = take_diag;
	if (k->proc < 0 && !k->wants_proc && init_send(k->native.ctl, &m, NULL, 0) >= 0)
		k->wants_proc = true;
}

static struct origin look(struct keeper *k, const struct gate_msg *m)
{
	struct origins *w = k->origins;
	struct origin o = { .session = NULL };
	uint64_t now = clock_now();
	int64_t inode = 0;

	if (now - w->window > WINDOW_NS) {
		w->window = now;
		w->spent = 0;
	}
	if (w->diag >= 0 && k->proc >= 0 && m->from_port && w->spent < SPEND_NS)
		inode = inode_of(w->diag, m);
	if (inode > 0)
		o.pid = process_of(w, k->proc, (uint32_t)inode);
	if (o.pid)
		read_exe(k->proc, o.pid, o.exe, sizeof(o.exe));
	o.session = session_of(k, o.pid);
	w->spent += clock_now() - now;
	return o;
}

struct origin origin_of(struct keeper *k, const struct gate_msg *m)
{
	struct known *at;

	if (k->origins == NULL)
		return (struct origin){ .session = NULL };
	at = &k->origins->by_id[m->id % ARRAY_LEN(k->origins->by_id)];
	if (m->id == 0 || at->id != m->id || m->event == EVENT_CONNECT)
		*at = (struct known){ .id = m->id, .o = look(k, m) };
	if (at->o.session && (!at->o.session->is_used || at->o.session->has_ended))
		at->o.session = NULL;
	return at->o;
}

bool origin_is_gone(struct keeper *k, const struct gate_msg *m)
{
	return k->origins && k->origins->diag >= 0 && m->from_port &&
	       inode_of(k->origins->diag, m) == 0 && !sabotaged("keep-gone");
}
