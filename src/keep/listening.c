/* SPDX-License-Identifier: Apache-2.0 */
/* keep/listening.c - when something inside starts to listen, a hint names the flag that publishes it
 *
 * Looked for now and then in the sandbox's own /proc. Ports that programs are given by the kernel are their private
 * affair and not worth a word.
 *
 * For its tables of sockets the kernel walks through those of the whole host, a millisecond or more each time, and there
 * may be hundreds of sandboxes that do nothing. How many sockets a namespace has it knows at once: only where that
 * number is another than at the last look are the tables read.
 */
#include <fcntl.h>

#include "base/io.h"
#include "keep/keeper.h"
#include "sys/netns.h"

#define FIRST_NS (NS_PER_SEC / 2)
#define LOOK_NS (3 * NS_PER_SEC)
#define EPHEMERAL 32768
#define HINTS 4

struct listening {
	struct watch *on_look;
	uint16_t told[HINTS];
	size_t n, n_looks;
	uint64_t n_sockets; /* at the last look */
};

static bool is_published(const struct plan_net *p, uint16_t port)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%u", port);
	for (char *const *v = p->ports; v && *v; v++) {
		const char *colon = strrchr(*v, ':');

		if (str_eq(colon ? colon + 1 : *v, text))
			return true;
	}
	for (char *const *v = p->host_ports; v && *v; v++)
		if (str_eq(*v, text))
			return true;
	return port == 53 || port == NETNS_PROXY_PORT || port == NETNS_TELEMETRY_PORT;
}

static void hint(struct keeper *k, uint16_t port)
{
	struct listening *l = k->listening;
	_free_ char *line = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (l->told[i] == port)
			return;
	if (l->n == HINTS || is_published(&k->in->plan->net, port))
		return;
	l->told[l->n++] = port;
	line = mem_fmt("network: something inside listens on port %u; -p %u would publish it to "
		       "this machine",
		       port, port);
	keeper_note_now(k, line);
	tell_note(k, "listening", line);
}

/* "  sl  local_address rem_address   st ...": the local port behind the first colon of the address, 0A is LISTEN. */
static void read_line(struct keeper *k, const char *line)
{
	const char *colon = strchr(line, ':');
	const char *local = colon ? strchr(colon + 1, ':') : NULL;
	const char *rem = local ? strchr(local + 1, ':') : NULL;
	uint32_t port = 0;

	if (rem == NULL || strncmp(rem + 5, " 0A ", 4) != 0)
		return;
	for (int i = 1; i <= 4; i++) {
		char c = local[i];

		if ((c < '0' || c > '9') && (c < 'A' || c > 'F'))
			return;
		port = port * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'A' + 10);
	}
	if (port > 0 && port < EPHEMERAL)
		hint(k, (uint16_t)port);
}

static void look(void *arg);

/* Servers are started at the beginning; later on there is no hurry. */
static void look_again(struct keeper *k)
{
	struct listening *l = k->listening;
	uint64_t next = l->n_looks++ < 4 ? FIRST_NS : LOOK_NS;

	watch_free(l->on_look);
	l->on_look = l->n < HINTS ? watch_timer(k->loop, next, false, look, k) : NULL;
}

static int read_table(const struct keeper *k, const char *name, struct buf *ret)
{
	_close_ int fd = openat(k->proc, name, O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;

	/* Listeners come first; of a table that is longer the rest is connections. */
	return fd < 0 || (io_read_fd(fd, ret, &e) < 0 && ret->n == 0) ? -EIO : 0;
}

/* "TCP: inuse 3 orphan 0 ...", "TCP6: inuse 1". */
static uint64_t in_use(const struct keeper *k, const char *name, const char *head)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
	const char *at = read_table(k, name, &b) < 0 ? NULL : strstr(buf_cstr(&b), head);
	uint64_t n = 0;

	for (at = at ? at + strlen(head) : ""; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	return n;
}

static void read_listeners(struct keeper *k, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF(256 * KIB);
	char *at = read_table(k, name, &b) < 0 ? NULL : b.p;

	for (char *end; at && (end = strchr(at, '\n')) != NULL; at = end + 1) {
		*end = '\0';
		read_line(k, at);
	}
}

static void look(void *arg)
{
	struct keeper *k = arg;
	uint64_t n;

	look_again(k);
	if (k->proc < 0) {
		usage_take(k); /* asks for it; the next look has it */
		return;
	}
	n = in_use(k, "1/net/sockstat", "TCP: inuse ") +
	    in_use(k, "1/net/sockstat6", "TCP6: inuse ");
	if (n == k->listening->n_sockets)
		return;
	k->listening->n_sockets = n;
	read_listeners(k, "1/net/tcp");
	read_listeners(k, "1/net/tcp6");
}

void listening_start(struct keeper *k)
{
	/* Another engine's init is not where its network is. */
	if (!str_eq(k->in->plan->engine, "native"))
		return;
	k->listening = mem_new(1, sizeof(*k->listening));
	look_again(k);
}
