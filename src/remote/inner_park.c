/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_park.c - the link ends in order and begins anew, and commands do not notice
 *
 * For a machine that is to be saved. The steward stops between two requests for files, the link is parted from, and then there
 * is nothing of us outside: pipes and terminals of commands stay, full when somebody writes on, and the machine may be stopped,
 * copied and go on anywhere. We wait on the port for whoever comes next, as we did when the machine was new, and take up a seed
 * and the time from it. What was connected to the gate is closed: its other end lies outside.
 */
#include "base/io.h"
#include "engine/vm/wake.h"
#include "remote/inner.h"
#include "remote/inner_steward.h"

static int ask_steward(const struct server *sv, const struct steward_msg *m)
{
	char said;

	if (io_write_all(sv->steward, m, sizeof(*m)) < 0 || io_read(sv->steward, &said, 1) != 1)
		return -EIO;
	return said == (char)m->op ? 0 : -EBADMSG;
}

int park_ask(struct part *part)
{
	struct server *sv = part->server;
	struct steward_msg m = { .op = STEWARD_STOP };

	part->kind = PART_DONE;
	if (!sv->is_locked || sv->steward < 0 || sv->is_parting)
		return stream_respond(part->stream, &(struct head){ .status = 503 }, NULL, false);
	if (ask_steward(sv, &m) < 0)
		return -EIO;
	sv->is_parting = true;
	link_may_part(sv->link);
	return stream_respond(part->stream, &(struct head){ .status = 204 }, NULL, false);
}

bool park_keep(struct part *part)
{
	struct command_session *s = part->session;

	if (!part->server->is_parting || s == NULL || s->pid <= 0)
		return false;
	if (s->main == part) {
		s->main = NULL;
		part->session = NULL; /* nothing of it is left but the session */
		return false;
	}
	part->stream = NULL;
	port_join(part->from, NULL);
	port_join(part->to, NULL);
	return true;
}

int park_again(struct command_session *s, struct part *part, int which)
{
	struct part *old = s->part[which];

	if (old == NULL)
		return -ENOENT;
	if (old->stream)
		return -EBADMSG;
	part->from = old->from;
	part->to = old->to;
	part->session = s;
	s->part[which] = part;
	port_join(part->from, part->stream);
	port_join(part->to, part->stream);
	buf_done(&old->body);
	free(old);
	return 0;
}

void park_parted(void *server)
{
	struct server *sv = server;
	struct link_again again;
	struct steward_msg m = { .op = STEWARD_GO };
	int in, out;

	for (size_t i = 0; i < INIT_SESSIONS; i++)
		sv->sessions[i].is_parked = sv->sessions[i].is_used && sv->sessions[i].pid > 0;
	link_release(sv->link, &in, &out);
	if (!vm_read(in, &again, sizeof(again)) || again.magic != LINK_AGAIN_MAGIC)
		_exit(0);
	m.clock_ns = again.clock_ns;
	memcpy(m.seed, again.seed, sizeof(m.seed));
	if (ask_steward(sv, &m) < 0)
		_exit(0);
	explicit_bzero(&again, sizeof(again));
	explicit_bzero(&m, sizeof(m));
	sv->is_parting = false;
	sv->link = link_new(LINK_INNER, sv->loop, in, out, &server_ops, sv);
}
