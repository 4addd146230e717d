/* SPDX-License-Identifier: Apache-2.0 */
/* keep/freeze.c - everything inside is stopped, for as long as somebody needs it
 *
 * Two need it: masks.c, while it covers names again, and clients that copy files (KEEP_PAUSE). First init is asked to start
 * nothing more; then sys/freeze.c stops every process but init; then both are called, and when neither needs it any
 * more, everything goes on.
 *
 *     OFF ── freeze_ask: INIT_FREEZE ──► ASKED ── INIT_FROZEN: helper ──► STOPPING ── its result ──► ON ── INIT_THAW ──► OFF
 *
 * A freeze that fails is reported to the clients that wait for it, and ends the sandbox where a protection waits for
 * it. Only where the host lets no process be traced, and behind other engines' walls, processes are stopped by SIGSTOP,
 * which they can end (SIGCONT by a timer): that is said to the user, and docs/SECURITY.md promises nothing for it.
 */
#include "keep/keeper.h"

#include "base/sabotage.h"

static bool is_needed(const struct keeper *k)
{
	return clients_pause(k) || masks_want_freeze(k);
}

static void tell_init(struct keeper *k, enum init_msg_type type)
{
	struct init_msg m = { .type = type, .a = k->freeze_is_weak };

	(void)init_send(k->native.ctl, &m, NULL, 0); /* init's end is seen elsewhere */
}

static void go_on(struct keeper *k)
{
	freeze_drop(k);
	tell_init(k, INIT_THAW);
}

void freeze_drop(struct keeper *k)
{
	watch_free(k->on_freeze);
	watch_free(k->on_frozen);
	k->on_freeze = k->on_frozen = NULL;
	freeze_end(&k->freeze);
	k->freeze_state = FREEZE_OFF;
}

void freeze_release(struct keeper *k)
{
	/* Init's answer is awaited: freeze_on_init() sees that nobody needs it. */
	if (k->freeze_state == FREEZE_OFF || k->freeze_state == FREEZE_ASKED || is_needed(k))
		return;
	go_on(k);
}

static void on_frozen(void *arg)
{
	struct keeper *k = arg;

	watch_set(k->on_frozen, false);
	if (k->freeze_state != FREEZE_ON)
		return;
	masks_on_frozen(k);
	clients_on_frozen(k);
	freeze_release(k);
}

static void freeze_fail(struct keeper *k, int error)
{
	bool is_for_masks = masks_want_freeze(k);
	char text[160];

	(void)snprintf(text, sizeof(text), "the processes inside could not be stopped: %s",
		       error ? strerrordesc_np(error) : "the helper that stops them died");
	freeze_drop(k);
	if (is_for_masks) { /* A bare name inside is worse than an ended command. */
		err_put_(&k->err, ERR_SYSTEM, error, "a protection could not be put back: %s",
			 text);
		keeper_end(k, END_ERROR);
		return;
	}
	tell_init(k, INIT_THAW);
	clients_not_frozen(k, text);
}

/* The host lets no process be traced: SIGSTOP is what is left. */
static void freeze_weakly(struct keeper *k, int error)
{
	_free_ char *note = mem_fmt("processes inside were stopped by SIGSTOP only, which they can "
				    "undo: this host "
				    "%s; hidden and protected files that the host replaces may be "
				    "read and written "
				    "while they are covered again",
				    error == EPERM ? "lets no process be traced (see "
						     "kernel.yama.ptrace_scope)"
						   : "does not list the children of a process "
						     "(CONFIG_PROC_CHILDREN)");

	freeze_drop(k);
	keeper_note(k, note);
	k->freeze_is_weak = true;
	k->freeze_state = FREEZE_ASKED;
	tell_init(k, INIT_FREEZE);
}

static void on_helper(void *arg)
{
	struct keeper *k = arg;
	struct freeze_result result = { 0 };

	/* After its result it has nothing to say: it died, and everything inside goes on. */
	if (k->freeze_state == FREEZE_ON || !freeze_result(&k->freeze, &result)) {
		err_put_(&k->err, ERR_SYSTEM, ECHILD,
			 "the helper that kept the processes inside stopped died");
		keeper_end(k, END_ERROR);
		return;
	}
	if (result.error == -EPERM || result.error == -ENOSYS) {
		freeze_weakly(k, -result.error);
		return;
	}
	if (result.error < 0) {
		freeze_fail(k, -result.error);
		return;
	}
	if (result.killed > 0)
		keeper_note(k, "a process inside that could not be stopped was killed");
	k->freeze_state = FREEZE_ON;
	on_frozen(k);
}

void freeze_on_init(struct keeper *k, int is_weak)
{
	struct err e = ERR_INIT;

	if (k->freeze_state != FREEZE_ASKED)
		return;
	if (!is_needed(k)) {
		go_on(k);
		return;
	}
	if (k->native.tool > 0 || is_weak) {
		k->freeze_state = FREEZE_ON;
		on_frozen(k);
		return;
	}
	if (freeze_begin(&k->freeze, k->native.pid, k->native.user_ns, k->native.mnt_ns, &e) < 0) {
		freeze_fail(k, e.num);
		return;
	}
	k->freeze_state = FREEZE_STOPPING;
	k->on_freeze = watch_fd(k->loop, k->freeze.fd, WATCH_READ, on_helper, k);
}

void freeze_ask(struct keeper *k)
{
	if (k->freeze_state == FREEZE_ON) {
		/* Not from here: who asks is in the middle of something. */
		if (k->on_frozen == NULL)
			k->on_frozen = watch_timer(k->loop, 1, false, on_frozen, k);
		watch_set(k->on_frozen, true);
		return;
	}
	if (k->freeze_state != FREEZE_OFF)
		return;
	k->freeze_is_weak = k->freeze_is_weak || sabotaged("freeze");
	k->freeze_state = FREEZE_ASKED;
	tell_init(k, INIT_FREEZE);
}
