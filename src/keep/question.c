/* SPDX-License-Identifier: Apache-2.0 */
/* keep/question.c - see question.h
 *
 * One question is open at a time. Keys typed before it, or in its first moments, were meant for the program below it and
 * are dropped: what runs inside may have printed a question of its own to make them come.
 * An answer for the session is a rule in the keeper's memory, one for always is kept with the sandbox, if that lasts.
 */
#include "keep/question.h"

#include <termios.h>

#include "base/sabotage.h"
#include "core/netfile.h"
#include "keep/keeper.h"
#include "policy/rules.h"

#define WAITING_MAX 16
#define DEAF_NS (400 * NS_PER_MS)
#define OPEN_NS (58 * NS_PER_SEC) /* a little less than dial waits */

struct waiting {
	uint32_t id;
	uint16_t port;
	uint64_t since;
	char host[HOST_TEXT];
};

struct questions {
	struct keeper *k;
	struct waiting v[WAITING_MAX]; /* the first is the one on the screen */
	size_t n;
	struct client *who; /* asked; NULL: nobody */
	bool is_listening; /* what is typed now was typed by somebody who could have read the question */
	struct watch *on_time, *on_ears;
};

static void show(struct questions *q);

static void name_of(const struct waiting *w, char *to, size_t size)
{
	bool has_colon = strchr(w->host, ':') != NULL;

	(void)snprintf(to, size, has_colon ? "[%s]:%u" : "%s:%u", w->host, w->port);
}

static struct client *find_seat(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (c->is_used && c->state == CLIENT_SESSION && c->view && c->input &&
		    !c->view->is_broken && !c->is_suspended)
			return c;
	}
	return NULL;
}

/* ---- the screen ---- */

static void put(const struct client *c, const char *text)
{
	/* A terminal that takes nothing now is no place for a question; it times out. */
	(void)relay_write_some(c->view->out, text, strlen(text));
}

static void hide(struct questions *q, const char *last)
{
	if (q->who == NULL)
		return;
	put(q->who, last);
	put(q->who, "\r\n");
	viewer_hold(q->who->view, HOLD_QUESTION, false);
	session_repaint(q->who->s);
	q->who = NULL;
}

static void on_time(void *arg)
{
	struct questions *q = arg;
	uint64_t now = clock_now();

	while (q->n > 0 && now - q->v[0].since >= OPEN_NS) {
		hide(q, "no answer: refused");
		memmove(q->v, q->v + 1, --q->n * sizeof(q->v[0]));
	}
	show(q);
}

/* Not by the clock when keys are read: a keeper that was kept waiting would take old keys for new ones. */
static void listen_now(void *arg)
{
	struct questions *q = arg;

	if (q->who == NULL)
		return;
	(void)tcflush(q->who->input->from, TCIFLUSH); /* no terminal, nothing to drop */
	q->is_listening = true;
}

static void show(struct questions *q)
{
	char name[HOST_TEXT + 16], line[HOST_TEXT + 320];

	watch_free(q->on_time);
	q->on_time = NULL;
	if (q->n == 0)
		return;
	q->on_time = watch_timer(q->k->loop, q->v[0].since + OPEN_NS - clock_now() + NS_PER_MS,
				 false, on_time, q);
	if (q->who)
		return;
	q->who = find_seat(q->k);
	if (q->who == NULL)
		return;
	name_of(&q->v[0], name, sizeof(name));
	viewer_hold(q->who->view, HOLD_QUESTION, true);
	(void)snprintf(line, sizeof(line),
		       "\r\n\033[0m\033[7m vitrine %s \033[0m may it reach %s?  o once  s this "
		       "session  "
		       "a always  n no  ",
		       q->k->in->plan->name, name);
	put(q->who, line);
	q->is_listening = sabotaged("deaf");
	watch_free(q->on_ears);
	q->on_ears = watch_timer(q->k->loop, DEAF_NS, false, listen_now, q);
}

bool question_ask(struct keeper *k, const struct gate_msg *m)
{
	struct questions *q = k->questions;
	struct waiting *w;

	if (q == NULL) {
		q = k->questions = mem_new(1, sizeof(*q));
		q->k = k;
	}
	if (find_seat(k) == NULL || q->n == WAITING_MAX)
		return false;
	w = &q->v[q->n++];
	*w = (struct waiting){ .id = m->id, .port = m->port, .since = clock_now() };
	for (size_t i = 0; m->host[i] && i + 1 < sizeof(w->host); i++)
		w->host[i] = (char)(m->host[i] > ' ' && m->host[i] < 0x7f ? m->host[i] : '?');
	show(q);
	return true;
}

/* ---- answers ---- */

static int keep_always(struct keeper *k, const char *rule, struct err *e)
{
	_cleanup_(netfile_done) struct netfile f = { 0 };
	const struct plan *p = k->in->plan;
	int r = netfile_read(p->state_dir, p->name, &f, e);

	if (r < 0)
		return r;
	netfile_set(&f, false, rule);
	return netfile_write(p->state_dir, p->name, &f, e);
}

static const char *answer(struct questions *q, char key)
{
	struct keeper *k = q->k;
	struct waiting w = q->v[0];
	char rule[HOST_TEXT + 16];
	struct err e = ERR_INIT;
	int r = 0;

	name_of(&w, rule, sizeof(rule));
	memmove(q->v, q->v + 1, --q->n * sizeof(q->v[0]));
	if (key == 'o' || key == 'n') {
		gate_said(k, w.id, key == 'o');
		return key == 'o' ? "once" : "no";
	}
	if (key == 'a' && keeper_is_named(k))
		r = keep_always(k, rule, &e);
	if (r >= 0)
		r = gate_change(k, rule, false, &e); /* which settles what waits for it */
	if (r < 0) {
		keeper_note(k, e.msg);
		gate_said(k, w.id, false);
		return "could not be kept: refused";
	}
	return key == 's'           ? "this session"
	       : keeper_is_named(k) ? "always"
				    : "this session, and no longer: the sandbox has no name";
}

bool question_typed(struct client *c, const char *p, size_t n)
{
	struct questions *q = c->k->questions;

	if (q == NULL || q->who != c || q->n == 0)
		return false;
	for (size_t i = 0; i < n && q->is_listening; i++) {
		if (!strchr("osan", p[i]) || p[i] == '\0')
			continue;
		hide(q, answer(q, p[i]));
		show(q);
		break; /* the rest was typed before the next question was seen */
	}
	return true;
}

void questions_settle(struct keeper *k, const char *rule)
{
	struct questions *q = k->questions;
	size_t left = 0;
	bool is_first = true;

	for (size_t i = 0; q && i < q->n; i++) {
		char name[HOST_TEXT + 16];

		name_of(&q->v[i], name, sizeof(name));
		/* What a wider rule decides is seen by dial, which needs no answer then; here it only times out. */
		if (!str_eq(name, rule) && !str_eq(q->v[i].host, rule))
			q->v[left++] = q->v[i];
		else if (i == 0)
			is_first = false;
	}
	if (q == NULL || left == q->n)
		return;
	q->n = left;
	if (!is_first) {
		hide(q, "answered elsewhere");
		show(q);
	}
}

void question_leave(struct client *c)
{
	struct questions *q = c->k->questions;

	if (q == NULL || q->who != c)
		return;
	q->who = NULL; /* its terminal is gone, or will be */
	show(q);
}

void question_suspend(struct client *c)
{
	struct questions *q = c->k->questions;

	if (q == NULL || q->who != c)
		return;
	question_leave(c);
	viewer_hold(c->view, HOLD_QUESTION, false);
}

void question_resume(struct keeper *k)
{
	if (k->questions)
		show(k->questions);
}
