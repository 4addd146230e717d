/* SPDX-License-Identifier: Apache-2.0 */
/* keep/machine.c - a machine is saved while it works, and goes on: the same one, or what was saved of it
 *
 * The keeper only makes it still and lets it go on: the link to init is parted from, and whoever asked gets the machine's monitor
 * and those who serve its files, to have all of it written down. It goes on when that connection ends, whatever came of it.
 *
 * A keeper that is started for a saved machine finds its commands running: each becomes a session of its own that nobody sits in,
 * on a terminal or recorded.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/io.h"
#include "engine/engine.h"
#include "keep/keeper.h"

bool machine_is_parked(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state & (CLIENT_PARKING | CLIENT_PARKED))
			return true;
	return false;
}

void client_park(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keeper *k = c->k;
	struct init_msg park = { .type = INIT_PARK };

	(void)m;
	(void)fds;
	if (k->is_ending) {
		client_refuse(c, END_CLOSING, "the sandbox is ending");
	} else if (!k->in->plan->is_live || k->native.monitor < 0) {
		client_refuse(c, END_ERROR,
			      "it is no machine that can be saved while it works; one that was "
			      "made with "
			      "'--engine vm --live' is");
	} else if (machine_is_parked(k)) {
		client_refuse(c, END_ERROR, "it is being saved already");
	} else {
		c->state = CLIENT_PARKING;
		if (init_send(k->native.ctl, &park, NULL, 0) < 0)
			keeper_end(k, END_ERROR);
	}
}

/* ---- still ---- */

static void tell_saved(struct client *c, const struct session *s)
{
	struct keep_msg m = { .type = KEEP_SAVED,
			      .session = s->number,
			      .a = s->pid,
			      .b = (int32_t)s->id,
			      .flags = s->pty,
			      .rows = s->rows,
			      .cols = s->cols };

	m.v[VALUE_STARTED] = s->started;
	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", s->command);
	client_say(c, &m);
}

static void tell_parked(struct client *c)
{
	struct keeper *k = c->k;
	struct keep_msg m = { .type = KEEP_PARKED };
	struct err e = ERR_INIT;
	_close_ int key = engine_key(k->in->plan, &e);
	const int *files = k->native.files;
	int fds[PACKET_FDS] = { k->native.monitor, files[0], files[1] >= 0 ? files[1] : files[0],
				key };

	m.a = files[1] >= 0 ? 2 : 1;
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].has_begun && !k->sessions[i].has_ended)
			tell_saved(c, &k->sessions[i]);
	if (key < 0 || keep_send(c->fd, &m, fds, PACKET_FDS) < 0)
		client_refuse(c, END_ERROR, key < 0 ? e.msg : "it does not listen");
}

void clients_on_parked(struct keeper *k, int error)
{
	struct client *c = NULL;

	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state == CLIENT_PARKING)
			c = &k->clients[i];
	if (error) {
		if (c)
			client_refuse(c, END_ERROR,
				      "init does not let itself be saved now; ask again");
		return;
	}
	if (c == NULL) { /* whoever asked has gone */
		machine_go_on(k);
		return;
	}
	c->state = CLIENT_PARKED;
	tell_parked(c);
}

void machine_go_on(struct keeper *k)
{
	struct err e = ERR_INIT;

	if (engine_go_on(&k->native, &e) < 0)
		keeper_fail(k, &e);
}

/* ---- who serves its files ---- */

/* Its answers are for whoever has asked; its end is for us. A machine whose files are gone would wait for ever. */
static void on_files(void *arg)
{
	struct keeper *k = arg;
	struct err e = ERR_INIT;
	char byte;

	for (int i = 0; i < 2; i++) {
		if (k->native.files[i] < 0 ||
		    recv(k->native.files[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
			continue;
		watch_set(k->on_files[i], false);
		err_put_(&e, ERR_SYSTEM, EPIPE, "who served the machine's files has ended");
		keeper_fail(k, &e);
		return;
	}
}

void machine_watch(struct keeper *k)
{
	for (int i = 0; i < 2; i++)
		if (k->native.files[i] >= 0)
			k->on_files[i] =
				watch_fd(k->loop, k->native.files[i], WATCH_READ, on_files, k);
}

/* ---- and again ---- */

static int adopt(struct keeper *k, const struct engine_saved *saved, struct err *e)
{
	struct session *s = saved->id < INIT_SESSIONS ? &k->sessions[saved->id] : NULL;
	unsigned flags =
		KEEP_BEHIND | KEEP_RECORD | KEEP_SEE_OUTPUT | (saved->pty ? KEEP_WANT_TTY : 0U);
	struct init_msg m = { .type = INIT_ADOPT, .session = saved->id };
	_close_ int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stdio io = { 0 };
	int r;

	for (size_t i = 0; (s == NULL || s->is_used) && i < INIT_SESSIONS; i++)
		s = k->sessions[i].is_used ? NULL : &k->sessions[i];
	if (s == NULL || nothing < 0)
		return err_set(e, ERR_SYSTEM, EMFILE, "more commands than there is room for");
	*s = SESSION_NONE;
	s->is_used = true;
	s->id = saved->id;
	s->number = ++k->last_number;
	k->last_id = saved->id > k->last_id ? saved->id : k->last_id;
	(void)snprintf(s->command, sizeof(s->command), "%s", saved->command);
	r = session_open(s, NULL, flags, &io, e);
	s->rows = saved->rows;
	s->cols = saved->cols;
	m.flags = io.flags;
	m.rows = saved->rows;
	m.cols = saved->cols;
	if (r == 0 && engine_exec(&k->native, &m, nothing, io.fd) < 0)
		r = err_set(e, ERR_SYSTEM, EPIPE, "vitrine-link does not answer");
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
	return r;
}

int machine_adopt(struct keeper *k, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	_free_ char *path = mem_fmt("%s/sessions", k->in->again);
	int r = io_read_file(path, &b, e);

	for (size_t at = 0; r == 0 && at + sizeof(struct engine_saved) <= b.n;
	     at += sizeof(struct engine_saved)) {
		struct engine_saved s;

		memcpy(&s, b.p + at, sizeof(s));
		s.command[sizeof(s.command) - 1] = '\0';
		r = adopt(k, &s, e);
	}
	return r;
}
