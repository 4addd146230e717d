/* SPDX-License-Identifier: Apache-2.0 */
/* gate/turn.c - see turn.h */
#include "gate/turn.h"

int source_open(struct turn *t, struct source *s, int take_fd,
		void (*fn)(struct source *s, unsigned ready), unsigned what)
{
	int r = poller_add(t->poller, take_fd, what, s);

	*s = (struct source){ .fd = take_fd, .what = what, .is_added = r == 0, .fn = fn };
	return r;
}

void source_want(struct turn *t, struct source *s, unsigned what)
{
	if (s->fd < 0 || !s->is_added || s->what == what)
		return;
	s->what = what;
	(void)poller_change(t->poller, s->fd, what, s); /* it is in there, so this cannot fail */
}

int source_take(struct turn *t, struct source *s)
{
	int fd = s->fd;

	if (fd >= 0 && s->is_added)
		poller_remove(t->poller, fd);
	*s = SOURCE_NONE;
	return fd;
}

void source_close(struct turn *t, struct source *s)
{
	fd_close(source_take(t, s));
}

_Noreturn void turn_run(struct turn *t)
{
	struct poller_hit hits[POLLER_HITS];

	for (;;) {
		int n = poller_wait(t->poller, hits, t->tick(t->arg));

		if (n < 0)
			_exit(125);
		for (int i = 0; i < n; i++) {
			struct source *s = hits[i].p;

			if (s->fd >= 0) /* taken out earlier in this turn otherwise */
				s->fn(s, hits[i].ready);
		}
	}
}
