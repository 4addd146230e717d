/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_ipc.h - the terminal; keys, shared memory and queues of the host */
#ifndef PROBE_IPC_H
#define PROBE_IPC_H

#include "probe.h"

/* ---- Terminal -------------------------------------------------------------------------------- */

/* Push one character into the input of whatever terminal can be reached. */
static int push(const char *word, char c, long extra)
{
	int fds[] = { 0, 1, 2, open("/dev/tty", O_RDWR | O_CLOEXEC) };
	long best = -ENOTTY;

	for (size_t i = 0; i < COUNT(fds); i++) {
		long r;

		if (fds[i] < 0)
			continue;
		r = res(syscall(__NR_ioctl, fds[i], TIOCSTI | extra, &c));
		if (r == 0) {
			best = 0;
			break;
		}
		if (r != -ENOTTY)
			best = r;
	}
	return say(word, best, by_tty);
}

static int w_tiocsti(int argc, char **argv)
{
	return push(argv[0], *arg(argc, argv, 1, "Z"), 0);
}

static int w_tiocsti_high(int argc, char **argv)
{
	return push(argv[0], *arg(argc, argv, 1, "Z"), 1L << 32);
}

/* Take the terminal on 0 for a session of our own: a child, because a group leader may not
 * setsid(). */
static int w_steal_tty(int argc, char **argv)
{
	long r;

	(void)argc;
	(void)setsid();
	r = res(ioctl(0, TIOCSCTTY, 1));
	if (r >= 0)
		r = res(tcsetpgrp(0, getpid()));
	return say(argv[0], r, by_tty);
}

/* ttymess SECONDS - leave the terminal as bad as a crashed editor would. */
static int w_ttymess(int argc, char **argv)
{
	static const char modes[] = "\033[?1049h\033[?1000h\033[?1006h\033[?2004h\033[?25l\033[?"
				    "1h\033=";
	struct termios t;
	long r = res(tcgetattr(0, &t));

	if (r == 0) {
		cfmakeraw(&t);
		r = res(tcsetattr(0, TCSANOW, &t));
	}
	if (write(1, modes, sizeof(modes) - 1) < 0)
		r = -(long)errno;
	(void)say(argv[0], r, by_tty);
	nap(num(argc, argv, 1, 10));
	return r < 0 ? UNSURE : GOT_THROUGH;
}

/* ctty FD CMD... - a session leader with the terminal on 0, as a shell is: CMD is in front.
 * What is left of the terminal afterwards goes to FD, which CMD never sees: its status,
 * the keys waiting in the input queue, whether the modes and the foreground group are as before. */
static void queued(int to)
{
	struct termios raw;
	struct pollfd p = { .fd = 0, .events = POLLIN };
	unsigned char c;

	if (tcgetattr(0, &raw) == 0) {
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		(void)tcsetattr(0, TCSANOW, &raw);
	}
	(void)dprintf(to, "queued ");
	while (poll(&p, 1, 100) == 1 && read(0, &c, 1) == 1)
		(void)dprintf(to, "%02x", c);
	(void)dprintf(to, "\n");
}

static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

static int w_ctty(int argc, char **argv)
{
	struct termios before, after;
	int status = 0, to = (int)num(argc, argv, 1, 3);
	pid_t pid, front;

	if (argc < 3)
		return UNSURE;
	(void)signal(SIGTTOU, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)fcntl(to, F_SETFD, FD_CLOEXEC);
	if (ioctl(0, TIOCSCTTY, 0) < 0 || tcgetattr(0, &before) < 0)
		return UNSURE;
	pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)tcsetpgrp(0, getpid());
		(void)signal(SIGTTOU, SIG_DFL);
		(void)signal(SIGHUP, SIG_DFL);
		(void)execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return UNSURE;
	(void)dprintf(to, "status %d\n",
		      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	front = tcgetpgrp(0);
	(void)dprintf(to, "foreground %s\n", front == pid ? "kept" : front > 0 ? "moved" : "gone");
	if (tcgetattr(0, &after) == 0)
		(void)dprintf(to, "modes %s\n", same_modes(&before, &after) ? "same" : "changed");
	/* A shell would take the terminal back now, and must be able to. */
	(void)dprintf(to, "regained %s\n", tcsetpgrp(0, getpgrp()) == 0 ? "yes" : "no");
	queued(to);
	(void)dprintf(to, "end\n");
	return GOT_THROUGH;
}

/* fgsteal - make ourselves the foreground group of whatever terminal is on 0, and storm its
 * window size. */
static int w_fgsteal(int argc, char **argv)
{
	struct winsize w = { .ws_row = 24, .ws_col = 80 };
	long r;

	(void)signal(SIGTTOU, SIG_IGN);
	(void)setpgid(0, 0);
	r = res(tcsetpgrp(0, getpid()));
	for (long i = 0; i < num(argc, argv, 1, 1000); i++) {
		w.ws_col = (unsigned short)(80 + i % 2);
		(void)ioctl(0, TIOCSWINSZ, &w);
	}
	return say(argv[0], r, by_tty);
}

/* ---- Keys, shared memory, queues ------------------------------------------------------------- */

static int w_key_add(int argc, char **argv)
{
	const char *text = arg(argc, argv, 2, "text");
	long serial = res(syscall(__NR_add_key, "user", arg(argc, argv, 1, "probe"), text,
				  strlen(text), KEY_SPEC_USER_KEYRING));

	/* An account may have 200, and without one to spare no container starts: none outlives its check for long. */
	if (serial > 0)
		(void)syscall(__NR_keyctl, KEYCTL_SET_TIMEOUT, serial, 300);
	return say(argv[0], serial, by_filter);
}

/* key_read DESC [SERIAL] - search the usual rings, or take the serial; prints the payload. */
static int w_key_read(int argc, char **argv)
{
	static const int refusals[] = { EPERM, ENOSYS, ENOKEY, EACCES, 0 };
	static const long rings[] = { KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING,
				      KEY_SPEC_USER_SESSION_KEYRING };
	char buf[512];
	long serial = num(argc, argv, 2, -1), r = -ENOKEY;

	for (size_t i = 0; serial < 0 && i < COUNT(rings); i++) {
		r = res(syscall(__NR_keyctl, KEYCTL_SEARCH, rings[i], "user",
				arg(argc, argv, 1, "probe"), 0));
		if (r > 0)
			serial = r;
	}
	if (serial < 0)
		serial = syscall(__NR_request_key, "user", arg(argc, argv, 1, "probe"), NULL, 0);
	if (serial < 0)
		return say(argv[0], r, refusals);
	r = res(syscall(__NR_keyctl, KEYCTL_READ, serial, buf, sizeof(buf)));
	if (r > 0)
		show(buf, (size_t)r);
	return say(argv[0], r, refusals);
}

static int w_shm_read(int argc, char **argv)
{
	int id = shmget((key_t)num(argc, argv, 1, 0x7672), 0, 0);
	const char *p;

	if (id < 0)
		return say(argv[0], -(long)errno, by_file);
	p = shmat(id, NULL, SHM_RDONLY);
	if ((long)p == -1L)
		return say(argv[0], -(long)errno, by_file);
	show(p, strnlen(p, 4096));
	return say(argv[0], 0, by_file);
}

/* shm_hold KEY TEXT SECONDS - the other side of shm_read, with an end of its own. */
static int w_shm_hold(int argc, char **argv)
{
	int id = shmget((key_t)num(argc, argv, 1, 0x7672), 4096, IPC_CREAT | IPC_EXCL | 0666);
	char *p;

	if (id < 0)
		return say(argv[0], -(long)errno, by_file);
	p = shmat(id, NULL, 0);
	if ((long)p != -1L)
		(void)snprintf(p, 4096, "%s", arg(argc, argv, 2, "text"));
	put(argv[0], "ok");
	while (getchar() != EOF)
		;
	(void)shmctl(id, IPC_RMID, NULL);
	return GOT_THROUGH;
}

static int w_mq_read(int argc, char **argv)
{
	mqd_t q = mq_open(arg(argc, argv, 1, "/probe"), O_RDWR | O_NONBLOCK);
	char buf[8192];
	ssize_t n;

	if (q < 0)
		return say(argv[0], -(long)errno, by_file);
	n = mq_receive(q, buf, sizeof(buf), NULL);
	if (n > 0)
		show(buf, (size_t)n);
	return say(argv[0], 0, by_file);
}

static int w_mq_hold(int argc, char **argv)
{
	const char *name = arg(argc, argv, 1, "/probe"), *text = arg(argc, argv, 2, "text");
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0666, NULL);

	if (q < 0 || mq_send(q, text, strlen(text), 0) < 0)
		return say(argv[0], -(long)errno, by_file);
	put(argv[0], "ok");
	while (getchar() != EOF)
		;
	(void)mq_unlink(name);
	return GOT_THROUGH;
}

/* handle PATH [REL] - open the root inode of the file system that PATH lies on by its number,
 * then REL below it. */
static int w_handle(int argc, char **argv)
{
	struct {
		struct file_handle h;
		uint32_t id[2];
	} root = { .h = { .handle_bytes = 8, .handle_type = 1 }, .id = { 2, 0 } };
	char text[PATH_ROOM];
	ssize_t n;
	int base = open(arg(argc, argv, 1, "."), O_RDONLY | O_CLOEXEC);
	int top = open_by_handle_at(base, &root.h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (top < 0)
		return say(argv[0], -(long)errno, by_filter);
	fd = openat(top, arg(argc, argv, 2, "."), O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	if (n > 0)
		show(text, (size_t)n);
	return say(argv[0], 0, by_filter);
}

#endif
