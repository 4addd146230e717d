/* SPDX-License-Identifier: Apache-2.0 */
/* engine/mind.c - what a tool leaves when its keeper is killed, ended
 *
 * Podman's processes do not stay its children: the one that holds a container stands in a session of its own and knows
 * nothing of the keeper. Init ends when the link does, but one that is still being made, or stands still, does not. So
 * between the keeper and such a tool there is a process of ours: orphans of everything below come to it, and when
 * it hears that the keeper is dead, or that everything shall be, it ends them all. Runs between fork and exec: no
 * allocation.
 *
 *     keeper ── mind ── tool ... ── its helpers ── init
 *
 * Bubblewrap's first child waits for a word of it and does not yet die with it then: the same is done for it.
 *
 * What docker started is its daemon's, and what podman's client started its service's. They are told to end that by its name.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/title.h"
#include "engine/engine.h"

#define ROUNDS 150 /* the orphans of those that were ended come with the next one */
#define ROUND_NS (20 * NS_PER_MS)
#define TIMES 3
#define AGAIN_NS (300 * NS_PER_MS)
#define ANSWER_S 20 /* for a daemon to answer */

/* One process for each user, that holds the user namespace of all containers and nothing of any. */
static const char *const spared[] = { "podman pause", "catatonit" };

static size_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	fd_close(fd);
	n = n < 0 ? 0 : n;
	text[n] = '\0';
	return (size_t)n;
}

static bool is_spared(int pid)
{
	char path[40], name[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	(void)read_text(path, name, sizeof(name));
	name[strcspn(name, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(spared); i++)
		if (str_eq(name, spared[i]))
			return true;
	return false;
}

/* Ends every child; how many there were. */
static size_t end_children(void)
{
	char path[64], text[4096];
	const char *at = text;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	(void)read_text(path, text, sizeof(text));
	while (*at) {
		int pid = 0;

		for (; *at >= '0' && *at <= '9'; at++)
			pid = pid * 10 + (*at - '0');
		at += *at != '\0';
		if (pid > 1 && !is_spared(pid)) {
			(void)kill(pid, SIGKILL); /* it may be dead already */
			n++;
		}
	}
	return n;
}

static void end_all(void)
{
	struct timespec t = { .tv_nsec = ROUND_NS };

	for (int i = 0; i < ROUNDS && end_children() > 0; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)nanosleep(&t, NULL);
	}
}

/* Runs the daemon's own program; true: it did as it was told. */
static bool tell(const struct last_words *w, const char *verb, const char *option)
{
	const char *const words[] = { w->tool, w->first, verb, option, w->id };
	char *argv[ARRAY_LEN(words) + 1] = { NULL };
	int status = 0, null, n = 0;
	pid_t pid;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i])
			argv[n++] = (char *)(uintptr_t)words[i];
	pid = fork();
	if (pid == 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)alarm(ANSWER_S);
		(void)execve(w->tool, argv, w->env);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* More than once: what was being made when the tool died may be there a moment later. What never ran is only removed. */
static void say_last_words(const struct last_words *w)
{
	struct timespec t = { .tv_nsec = AGAIN_NS };

	for (int i = 0; i < TIMES; i++) {
		if (tell(w, "kill", "--signal=KILL"))
			return;
		(void)nanosleep(&t, NULL);
	}
	(void)tell(w, "rm", "--force");
}

static _Noreturn void mind(pid_t tool, const sigset_t *heard, const struct last_words *w)
{
	pid_t pid;

	title_set("vitrine mind");
	(void)prctl(PR_SET_NAME, "vitrine-mind");
	(void)syscall(SYS_close_range, 0, ~0U,
		      0); /* the end of what the tool was given is its end */
	for (;;) {
		if (sigwaitinfo(heard, NULL) == SIGTERM) {
			end_all();
			if (w->tool)
				say_last_words(w);
			_exit(0);
		}
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			if (pid == tool)
				_exit(0); /* its helpers tidy up, and end by themselves */
	}
}

int mind_tool(const struct last_words *w)
{
	sigset_t heard, before;
	pid_t pid;

	(void)sigemptyset(&heard);
	(void)sigaddset(&heard, SIGTERM);
	(void)sigaddset(&heard, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &heard, &before);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		mind(pid, &heard, w);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}
