/* SPDX-License-Identifier: Apache-2.0 */
/* gate/inspect.c - connections to inspected hosts go to seal
 *
 * Both descriptors are handed over and closed here; what the client has sent already goes before them. The connection
 * stays in our books until seal says that it is through, so that dial counts it and can have it ended.
 */
#include "gate/front.h"

enum { EARLY = sizeof(((struct gate_msg *)0)->path) };

static int send_early(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;

	for (size_t at = 0; at < in->n; at += EARLY) {
		struct gate_msg m = { .type = GATE_EARLY, .id = c->id };
		int r;

		m.up = in->n - at < EARLY ? in->n - at : EARLY;
		memcpy(m.path, in->p + at, (size_t)m.up);
		r = gate_send(c->f->seal.fd, &m, NULL, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

/* True when the bytes that wait for the client are out: seal writes to it from now on. */
static bool is_flushed(struct conn *c)
{
	conn_flush(c);
	return !c->is_dead && c->half[SERVER].out.n == 0;
}

bool inspect_take(struct conn *c)
{
	struct gate_msg m = { .type = GATE_INSPECT, .id = c->id, .via = c->via, .port = c->port };
	int fds[2] = { c->end[CLIENT].fd, c->end[SERVER].fd };

	if (!c->is_inspected || c->is_dead)
		return false;
	memcpy(m.host, c->host, sizeof(m.host));
	if (!is_flushed(c) || c->f->seal.fd < 0 || send_early(c) < 0 ||
	    gate_send(c->f->seal.fd, &m, fds, 2) < 0) {
		if (!c->is_dead)
			conn_alert(c, "the host is to be inspected, and vitrine-seal is not there");
		conn_close(c);
		return true;
	}
	c->is_sealed = true;
	c->due = 0;
	c->half[CLIENT].mode = c->half[SERVER].mode = MODE_WAIT;
	source_close(&c->f->turn, &c->end[CLIENT]);
	source_close(&c->f->turn, &c->end[SERVER]);
	return true;
}

void inspect_end(struct conn *c)
{
	struct gate_msg m = { .type = GATE_CLOSE, .id = c->id };

	if (c->is_sealed && c->f->seal.fd >= 0)
		(void)gate_send(c->f->seal.fd, &m, NULL, 0); /* gone: then so is the connection */
}

/* false: there is no more for now. */
static bool take_message(struct front *f)
{
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r = gate_recv(f->seal.fd, &m, fds);
	struct conn *c;

	if (r == -EAGAIN)
		return false;
	for (int i = 0; i < PACKET_FDS && r == 1; i++)
		fd_close(fds[i]);
	if (r == 1 && (m.type == GATE_DONE || m.type == GATE_COUNT)) {
		f->moved[CLIENT] += m.all_up;
		f->moved[SERVER] += m.all_down;
	}
	if (r == 1 && m.type == GATE_COUNT)
		return true;
	if (r != 1 || m.type != GATE_DONE) {
		source_close(&f->turn, &f->seal);
		for (c = f->conns; c; c = c->next)
			if (c->is_sealed)
				conn_close(c);
		return false;
	}
	c = front_find(f, m.id);
	if (c && c->is_sealed) {
		c->half[CLIENT].bytes = m.up;
		c->half[SERVER].bytes = m.down;
		c->is_sealed = false;
		conn_close(c);
	}
	return true;
}

static void on_seal(struct source *s, unsigned ready)
{
	(void)ready;
	(void)take_message(holder_of(s, struct front, seal));
}

void inspect_hear(struct front *f)
{
	while (f->seal.fd >= 0 && take_message(f))
		;
}

void inspect_open(struct front *f, int take_fd)
{
	if (f->seal.fd >= 0)
		source_close(&f->turn, &f->seal);
	if (take_fd < 0 || source_open(&f->turn, &f->seal, take_fd, on_seal, POLLER_READ) < 0)
		_exit(125);
}
