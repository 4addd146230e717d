/* SPDX-License-Identifier: Apache-2.0 */
/* keep/suspend.c - Ctrl-Z: a command and its client stop as one job of the caller's shell
 *
 * The command's group is an orphan to the kernel: its parent is init, in another session. A terminal's SIGTSTP does not stop
 * such a group, so the keeper does, where the command has no handler of its own. A program that reads the key itself stops
 * itself (SIGSTOP); the keeper looks for that for half a second. Only where the terminal is the keeper's: behind other walls the key
 * is the command's alone. While the client is stopped the keeper neither reads nor writes its terminal, which is the shell's.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/io.h"
#include "keep/keeper.h"
#include "keep/question.h"

#define SUSPEND_LOOK_NS (50 * NS_PER_MS)
#define SUSPEND_LOOKS 10
#define CTRL_Z 0x1a

/* A line of /proc/PID/status, "SigIgn:", as a number. */
static uint64_t signals_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	uint64_t v = 0;

	if (at == NULL)
		return UINT64_MAX; /* then we keep our hands off */
	for (at += strlen(name); *at == '\t'; at++)
		;
	for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
		v = v << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	return v;
}

static bool read_status(pid_t pid, struct buf *out)
{
	_free_ char *path = mem_fmt("/proc/%d/status", pid);
	struct err ignored = ERR_INIT;

	return io_read_file(path, out, &ignored) >= 0;
}

static bool is_stopped(pid_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	return read_status(pid, &b) && strstr(buf_cstr(&b), "\nState:\tT ") != NULL;
}

/* The command itself has the terminal, and the kernel would stop it if it had a parent here. */
static bool would_stop(const struct session *s, pid_t leader)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);
	struct termios t;
	pid_t group = 0;

	return tcgetattr(s->master, &t) == 0 && t.c_lflag & ISIG && t.c_cc[VSUSP] == CTRL_Z &&
	       ioctl(s->master, TIOCGPGRP, &group) == 0 && group == leader &&
	       read_status(leader, &b) &&
	       !((signals_of(buf_cstr(&b), "\nSigIgn:") | signals_of(buf_cstr(&b), "\nSigCgt:") |
		  signals_of(buf_cstr(&b), "\nSigBlk:")) &
		 BIT64(SIGTSTP - 1));
}

static pid_t leader_of(const struct session *s)
{
	pid_t leader = 0;

	return s->master >= 0 && s->sizer < 0 && ioctl(s->master, TIOCGSID, &leader) == 0 ? leader
											  : 0;
}

static void on_suspend(void *arg)
{
	struct client *c = arg;
	struct keep_msg m = { .type = KEEP_SUSPENDED };
	pid_t leader = leader_of(c->s);
	bool is_now = leader > 1 && is_stopped(leader);

	if (!is_now && ++c->n_looks < SUSPEND_LOOKS)
		return;
	watch_free(c->on_suspend);
	c->on_suspend = NULL;
	if (!is_now || c->is_suspended)
		return;
	c->is_suspended = true;
	/* From here on the terminal is the shell's. */
	if (c->input) {
		c->input->is_paused = true;
		relay_kick(c->input);
	}
	if (c->view) {
		viewer_hold(c->view, HOLD_SUSPEND, true);
		question_suspend(c);
	}
	client_say(c, &m);
}

void suspend_typed(struct client *c, const char *p, size_t n)
{
	struct init_msg stop = { .type = INIT_SIGNAL, .session = c->s->id, .a = SIGSTOP };
	bool is_byte = memchr(p, CTRL_Z, n) != NULL;
	pid_t leader;

	if (!c->can_suspend || !keys_has(p, n, CTRL_Z))
		return;
	leader = leader_of(c->s);
	if (leader <= 1)
		return;
	if (is_byte && would_stop(c->s, leader))
		(void)init_send(c->k->native.ctl, &stop, NULL, 0);
	c->n_looks = 0;
	if (c->on_suspend == NULL)
		c->on_suspend = watch_timer(c->k->loop, SUSPEND_LOOK_NS, true, on_suspend, c);
}

static void let_go_on(struct client *c)
{
	struct init_msg go_on = { .type = INIT_SIGNAL, .session = c->s->id, .a = SIGCONT };

	c->is_suspended = false;
	(void)init_send(c->k->native.ctl, &go_on, NULL, 0); /* init's end is seen elsewhere */
}

void suspend_end(struct client *c)
{
	let_go_on(c);
	if (c->view)
		viewer_hold(c->view, HOLD_SUSPEND, false);
	if (c->input) {
		c->input->is_paused = false;
		relay_kick(c->input);
	}
	question_resume(c->k);
}

void suspend_leave(struct client *c)
{
	watch_free(c->on_suspend);
	c->on_suspend = NULL;
	/* The hold stays: what was kept back must not reach a terminal that is the shell's. */
	if (c->is_suspended)
		let_go_on(c);
}
