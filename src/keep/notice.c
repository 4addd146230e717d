/* SPDX-License-Identifier: Apache-2.0 */
/* keep/notice.c - knows whether the inside made a call that can make a set-user-id or set-group-id file
 *
 * The system call filter holds such a call back (RULE_FIRST_NOTICE and others in sys/filter/emit.c) until the keeper has
 * answered. The answer is always "go on": nothing is decided here, so it does not matter that a notice shows numbers only and
 * that memory behind them may change. What counts is the order: the mark below is set before the bit can exist. When no
 * mark is there at the end, no such bit was made, and the files need not be looked at (setid.c).
 *
 * A notice that was read is answered in the same function. So no call waits for an answer while the keeper does anything else,
 * and one that was not read yet can be stopped, traced and killed like every call that waits. When the keeper dies, all
 * such calls fail; everything inside ends then anyway.
 *
 * A flood of notices costs the inside as much as the keeper. A turn of the loop answers a few, so that clients, limits and
 * protections get their turn in between.
 */
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/sabotage.h"
#include "keep/keeper.h"

#define EACH_TURN 16

struct notice {
	int listener;
	bool has_seen;
	struct watch *watch;
};

/* The kernel would let us wait for the next one where none is there any more; POLLHUP: nobody is left who could send one. */
static bool is_there(const struct notice *n, short *ret_events)
{
	struct pollfd p = { .fd = n->listener, .events = POLLIN };

	if (poll(&p, 1, 0) < 0)
		p.revents = 0;
	*ret_events = p.revents;
	return p.revents & POLLIN;
}

static void answer(struct notice *n)
{
	struct seccomp_notif got = { 0 };
	struct seccomp_notif_resp back = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	if (ioctl(n->listener, SECCOMP_IOCTL_NOTIF_RECV, &got) < 0) {
		/* The process that made the call was killed meanwhile. Any other failure: it is no listener that can be relied on. */
		if (errno != ENOENT && errno != EINTR) {
			n->has_seen = true;
			watch_set(n->watch, false);
		}
		return;
	}
	n->has_seen = !sabotaged("notice");
	back.id = got.id;
	/* It fails when that happens now. */
	(void)ioctl(n->listener, SECCOMP_IOCTL_NOTIF_SEND, &back);
}

static void on_notice(void *arg)
{
	struct notice *n = arg;
	short events = 0;

	for (int i = 0; i < EACH_TURN && is_there(n, &events); i++)
		answer(n);
	if (!(events & POLLIN) && events & (POLLHUP | POLLERR | POLLNVAL))
		watch_set(n->watch, false);
}

void notice_take(struct keeper *k, int take_listener)
{
	struct notice *n;

	if (k->notice || take_listener < 0) {
		fd_close(take_listener);
		return;
	}
	n = k->notice = mem_new(1, sizeof(*n));
	*n = (struct notice){ .listener = take_listener };
	n->watch = watch_fd(k->loop, n->listener, WATCH_READ, on_notice, n);
}

bool notice_saw_none(const struct keeper *k)
{
	return k->notice && !k->notice->has_seen;
}

void notice_finish(struct keeper *k)
{
	if (k->notice == NULL)
		return;
	watch_free(k->notice->watch);
	fd_close(k->notice->listener);
	free(k->notice);
	k->notice = NULL;
}
