/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_keys.c - the signals of a terminal's keys, where the kernel does not send them
 *
 * gVisor's terminals know the modes, but to them ctrl-C is a byte like any other. So the bytes for such a terminal are
 * looked at on their way. Which processes a key is meant for only somebody of the terminal's own session may ask there:
 * that is a child of ours which is made between setsid() and the command, and does nothing else.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>

#include "remote/inner.h"

static const struct {
	int key, signo;
} keys[] = { { VINTR, SIGINT }, { VQUIT, SIGQUIT }, { VSUSP, SIGTSTP } };

/* A kernel that lets us ask here whom the keys are meant for tells them itself. */
bool keys_are_missing(int master)
{
	pid_t group;

	return ioctl(master, TIOCGPGRP, &group) < 0 && errno == ENOTTY;
}

/* ---- the child ---- */

static void keep_only(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if (low > 0)
		(void)syscall(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		(void)syscall(SYS_close_range, low + 1, high - 1, 0);
	(void)syscall(SYS_close_range, high + 1, ~0U, 0);
}

/* As a kernel does it: shown as "^C" where what is typed is shown, and what was typed before is forgotten. */
static void press(int tty, const struct termios *t, unsigned char key, int signo)
{
	char shown[2] = { '^', (char)(key ^ 0x40) };
	pid_t group = tcgetpgrp(tty);

	if (!(t->c_lflag & NOFLSH))
		(void)tcflush(tty, TCIFLUSH); /* not every kernel can */
	if ((t->c_lflag & ECHO) && write(tty, shown, sizeof(shown)) < 0)
		return; /* it has gone */
	if (group > 1)
		(void)kill(-group, signo); /* they may just have ended */
}

_Noreturn void keys_sit(const struct command *c)
{
	unsigned char pressed;
	struct termios t;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setpgid(0, 0); /* what is sent to the command's group is not for us */
	(void)prctl(PR_SET_NAME, "keys");
	keep_only(c->beside_fd, c->pty);
	while (read(c->beside_fd, &pressed, 1) == 1) {
		if (tcgetattr(c->pty, &t) < 0)
			break;
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (t.c_cc[keys[i].key] == pressed)
				press(c->pty, &t, pressed, keys[i].signo);
	}
	_exit(0);
}

/* ---- what is typed ---- */

static bool is_key(const struct termios *t, unsigned char byte)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (byte != _POSIX_VDISABLE && t->c_cc[keys[i].key] == byte)
			return true;
	return false;
}

int keys_put(struct part *part, const void *p, size_t n)
{
	const struct command_session *s = part->session;
	const unsigned char *bytes = p;
	struct termios t;
	size_t at = 0;

	if (s == NULL || s->keys < 0 || tcgetattr(s->master, &t) < 0 || !(t.c_lflag & ISIG))
		return sink_put(part->to, p, n);
	for (size_t i = 0; i < n; i++) {
		if (!is_key(&t, bytes[i]))
			continue;
		if (i > at)
			(void)sink_put(part->to, bytes + at, i - at);
		at = i;
		/* A pipe that is full holds more of them than anybody waits for. */
		if (write(s->keys, &bytes[i], 1) < 0 && errno != EAGAIN)
			break;
		stream_consumed(part->stream, 1);
		at = i + 1;
	}
	return at < n ? sink_put(part->to, bytes + at, n - at) : 0;
}
