/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_park.c - the link ends in order and begins anew; the keeper's side of its sessions stays as it is
 *
 * Whoever wants to save a machine asks for this first. What was said before has arrived on both sides, and what was read from a
 * command's input or is not yet written to whoever reads its output lies here. Connections to the gate end. When the machine goes
 * on, its init hears a seed and the time, and each command's streams are asked for again.
 */
#include "base/io.h"
#include "engine/vm/wake.h"
#include "remote/outer_flow.h"

#define LATER_MAX 64

static void tell_parked(struct outer *o, int error)
{
	struct init_msg m = { .type = INIT_PARKED, .a = error };

	outer_tell(o, &m, NULL, 0);
}

void park_begin(struct outer *o)
{
	struct head h = outer_request("POST", "/park");

	if (!o->is_started || o->is_parking || o->is_down) {
		tell_parked(o, EBUSY);
		return;
	}
	o->is_parking = true;
	outer_ask_short(o, ROLE_PARK, &h);
}

void park_answer(struct outer *o, const struct head *h)
{
	if (h->status == 204) {
		link_part(o->link);
		return;
	}
	o->is_parking = false;
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		for (int k = 0; k < 4; k++)
			if (o->sessions[i].is_used && o->sessions[i].stdio[k])
				stream_wake(o->sessions[i].stdio[k]->stream);
	tell_parked(o, ENOTSUP);
}

void park_parted(void *outer)
{
	struct outer *o = outer;

	o->is_parting = true;
	link_release(o->link, &o->in, &o->out);
	o->link = NULL;
	tell_parked(o, 0);
}

bool park_keep(struct flow *f)
{
	struct session *s = f->session;

	if (!f->outer->is_parting || s == NULL || (f->role != ROLE_STDIO && f->role != ROLE_MAIN))
		return false;
	f->stream = NULL;
	port_join(f->from, NULL);
	port_join(f->to, NULL);
	return true;
}

/* ---- while there is none ---- */

static void put_later(struct outer *o, const struct head *h)
{
	if (o->n_later == LATER_MAX)
		return; /* it repeats itself, or is a person at a key: the last ones do not matter more */
	if (o->later == NULL)
		o->later = mem_new(LATER_MAX, sizeof(*o->later));
	o->later[o->n_later++] = *h;
}

void park_message(struct outer *o, const struct init_msg *m)
{
	struct init_msg done = { .type = INIT_FILE_DONE, .session = m->session, .a = EAGAIN };
	struct head h;

	if (m->type == INIT_SIGNAL) {
		h = outer_request("POST", "/session/%u/signal/%d", m->session, m->a);
		put_later(o, &h);
	} else if (m->type == INIT_RESIZE) {
		h = outer_request("POST", "/session/%u/size/%ux%u", m->session, m->rows, m->cols);
		put_later(o, &h);
	} else if (m->type == INIT_START || m->type == INIT_ADOPT) {
		outer_refuse(o, m->session, EAGAIN);
	} else if (m->type == INIT_FILE) {
		outer_tell(o, &done, NULL, 0);
	} else if (m->type == INIT_FREEZE) {
		done = (struct init_msg){ .type = INIT_FROZEN }; /* nothing moves */
		outer_tell(o, &done, NULL, 0);
	}
}

/* ---- and again ---- */

static bool ask_again(struct flow *f, const char *method, const char *what, bool has_body)
{
	struct head h = outer_request(method, "/session/%u%s", f->session->id, what);

	head_add(&h, "again", "1");
	f->is_wide = false;
	f->stream = link_request(f->outer->link, &h, has_body ? outer_pull : NULL, f);
	port_join(f->from, f->stream);
	port_join(f->to, f->stream);
	return f->stream != NULL;
}

static bool rejoin(struct session *s)
{
	static const char *const names[] = { "/0", "/1", "/2", "/tty" };

	for (int i = 0; i < 4; i++)
		if (s->stdio[i] &&
		    !ask_again(s->stdio[i], i % 3 ? "GET" : "POST", names[i], i % 3 == 0))
			return false;
	s->is_again = true;
	return s->main == NULL || ask_again(s->main, "POST", "", false);
}

static void ask_later(struct outer *o)
{
	for (size_t i = 0; i < o->n_later; i++)
		outer_ask_short(o, ROLE_NONE, &o->later[i]);
	o->n_later = 0;
}

static void reconnect(struct outer *o, const struct init_msg *m)
{
	if (io_write_all(o->out, m->err.msg, sizeof(struct link_again)) < 0) {
		outer_fail(o, "the machine does not go on");
		return;
	}
	o->link = link_new(LINK_OUTER, o->loop, o->in, o->out, &outer_ops, o);
	o->is_parking = o->is_parting = false;
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (o->sessions[i].is_used && !rejoin(&o->sessions[i])) {
			outer_fail(o, "too many requests at once");
			return;
		}
	ask_later(o);
	if (o->asked_ms)
		outer_ask_samples(o, o->asked_ms);
	gate_refill(o);
}

void park_again(struct outer *o, const struct init_msg *m)
{
	struct head h = outer_request("POST", "/again");

	_Static_assert(sizeof(struct link_again) <= sizeof(m->err.msg), "it fits");
	if (o->link == NULL) {
		reconnect(o, m);
		return;
	}
	/* A link of our own to an init that stands for long: another told it the plan. */
	o->is_named = o->is_idle = true;
	o->sample_ms = m->a > 0 ? (unsigned)m->a : 0;
	watch_set(o->on_ctl, false); /* as behind a plan: nothing else before it has answered */
	outer_ask_short(o, ROLE_START, &h);
}
