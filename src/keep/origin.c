/* SPDX-License-Identifier: Apache-2.0 */
/* keep/origin.c - see origin.h
 *
 * The native engine's init hands out what is asked (sys/owner.h): a socket of the sandbox's network namespace, and its /proc.
 * Behind other walls init looks itself, when it accepts a connection, and what it found comes ahead of the connection.
 */
#include "keep/origin.h"
#include "base/sabotage.h"
#include "keep/keeper.h"
#include "sys/owner.h"
#include "sys/sample.h"

struct known {
	uint32_t id; /* of the connection; 0: none */
	struct origin o;
};

struct told {
	uint16_t from_port, to_port; /* 0: nothing */
	uint32_t session, pid;
	bool is_over;
	char exe[256];
};

struct origins {
	struct owner owner;
	struct known by_id[1024];
	struct told told[512];
};

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

/* ---- told, where another init looks ---- */

void origin_told(struct keeper *k, const struct init_msg *m)
{
	struct told *at;

	if (k->origins == NULL || m->rows == 0 || m->a < 0)
		return;
	at = &k->origins->told[m->rows % ARRAY_LEN(k->origins->told)];
	if (m->flags) {
		at->is_over |= at->from_port == m->rows && at->to_port == m->cols;
		return;
	}
	*at = (struct told){ .from_port = m->rows,
			     .to_port = m->cols,
			     .session = m->session,
			     .pid = (uint32_t)m->a };
	(void)snprintf(at->exe, sizeof(at->exe), "%.*s", (int)sizeof(at->exe) - 1, m->err.msg);
}

static struct told *find_told(struct origins *w, const struct gate_msg *m)
{
	struct told *at = &w->told[m->from_port % ARRAY_LEN(w->told)];

	return m->from_port && at->from_port == m->from_port && at->to_port == m->to_port ? at
											  : NULL;
}

static struct origin look_told(struct keeper *k, const struct gate_msg *m)
{
	struct origin o = { .session = NULL };
	const struct told *at = find_told(k->origins, m);

	if (at == NULL) {
		/* It was said before the gate could say anything, but we may be about to read it. */
		inside_origins(k);
		at = find_told(k->origins, m);
	}
	if (at) {
		o.pid = at->pid;
		(void)snprintf(o.exe, sizeof(o.exe), "%s", at->exe);
		o.session = session_find(k, at->session);
	}
	if (o.session == NULL)
		o.session = session_of(k, 0);
	return o;
}

/* ---- */

void origins_open(struct keeper *k, int take_diag)
{
	struct init_msg m = { .type = INIT_WANT_PROC };

	if (k->origins == NULL)
		k->origins = mem_new(1, sizeof(*k->origins));
	else
		fd_close(k->origins->owner.diag);
	k->origins->owner.diag = take_diag;
	if (k->native.tool == 0 && k->proc < 0 && !k->wants_proc &&
	    init_send(k->native.ctl, &m, NULL, 0) >= 0)
		k->wants_proc = true;
}

static struct owner_key key_of(const struct gate_msg *m)
{
	struct owner_key q = { .from_port = m->from_port, .to_port = m->to_port };

	memcpy(q.from, m->from.b, sizeof(q.from));
	memcpy(q.to, m->to.b, sizeof(q.to));
	return q;
}

static struct origin look(struct keeper *k, const struct gate_msg *m)
{
	struct origin o = { .session = NULL };
	struct owner_key q = key_of(m);

	if (k->native.tool > 0)
		return look_told(k, m);
	o.pid = owner_find(&k->origins->owner, k->proc, &q);
	if (o.pid)
		owner_program(k->proc, o.pid, o.exe, sizeof(o.exe));
	o.session = session_of(k, o.pid);
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
	struct owner_key q = key_of(m);

	if (k->origins && k->native.tool > 0) {
		const struct told *at = find_told(k->origins, m);

		return at && at->is_over && !sabotaged("keep-gone");
	}
	return k->origins && k->origins->owner.diag >= 0 && m->from_port &&
	       owner_inode(k->origins->owner.diag, &q) == 0 && !sabotaged("keep-gone");
}
