/* SPDX-License-Identifier: Apache-2.0 */
/* cli/image_left.c - what save, load and template leave half-made when they are killed; see image.h
 *
 * Everything half-made lies in STATE/images below names that begin with ".part-", and the command that makes it holds
 * STATE/images/.lock. A small child of the command waits for its end, however it comes, and removes what is left then:
 * gigabytes must not wait for the next command. What the child could not remove (the machine went down) is counted by
 * `doctor` and removed by `prune` and by the next command that opens the place.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/path.h"
#include "cli/image.h"

#define PART ".part-"
#define DEPTH_MAX 64
#define LOCK_TRIES                                                                                 \
	100 /* of 100 ms: processes of the killed command may hold the lock a little longer */

void bench_clean(const char *state_dir, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL) {
		_free_ char *path = mem_fmt("%s/%s", dir, en->d_name);
		struct err ignored;

		/* A link is not followed. What stays is tried again the next time. */
		if (str_starts(en->d_name, PART) && unlink(path) < 0)
			(void)workshop_remove(state_dir, path, &ignored);
	}
	if (d)
		(void)closedir(d);
}

/* Blocks of all files below; directories that are closed to us count as nothing. */
static uint64_t bytes_below(int at, const char *name, int depth)
{
	struct stat st;
	uint64_t sum;
	struct dirent *en;
	int fd;
	DIR *d;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	sum = (uint64_t)st.st_blocks * 512;
	fd = S_ISDIR(st.st_mode) && depth < DEPTH_MAX
		     ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		     : FD_NONE;
	d = fd >= 0 ? fdopendir(fd) : NULL;
	while (d && (en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			sum += bytes_below(dirfd(d), en->d_name, depth + 1);
	if (d)
		(void)closedir(d);
	return sum;
}

/* The lock without waiting: FD_NONE where a command works there, or there is no such place. */
static int try_lock(const char *dir)
{
	_free_ char *path = mem_fmt("%s/.lock", dir);
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		fd_close(fd);
		return FD_NONE;
	}
	return fd >= 0 ? fd : FD_NONE;
}

size_t bench_left(const char *state_dir, bool is_to_go, uint64_t *ret_bytes)
{
	_free_ char *dir = mem_fmt("%s/images", state_dir);
	_close_ int lock = try_lock(dir);
	DIR *d = lock >= 0 ? opendir(dir) : NULL;
	struct dirent *en;
	size_t n = 0;

	*ret_bytes = 0;
	while (d && (en = readdir(d)) != NULL)
		if (str_starts(en->d_name, PART)) {
			n++;
			*ret_bytes += bytes_below(dirfd(d), en->d_name, 0);
		}
	if (d)
		(void)closedir(d);
	if (n && is_to_go)
		bench_clean(state_dir, dir);
	return n;
}

/* What the command sends to its child, one packet each. */
#define SAYS_DONE 'd' /* the command has cleaned up by itself */
#define SAYS_FILE                                                                                  \
	'f' /* behind it: the path of a half-made file outside the state directory; empty: none any more */

/* Waits for the end of the command, however it comes, and removes what the command left. */
static _Noreturn void wait_and_clean(const char *state_dir, const char *dir, int fd)
{
	char said[PATH_MAX + 2], file[PATH_MAX + 2] = "";
	ssize_t n;

	/* The terminal's signals are for the command. */
	(void)setsid();
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	while ((n = recv(fd, said, sizeof(said) - 1, 0)) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		if (said[0] == SAYS_DONE)
			_exit(0);
		memcpy(file, said + 1, (size_t)n - 1);
		file[n - 1] = '\0';
	}
	if (file[0])
		(void)unlink(file); /* it may never have been made */
	for (int i = 0; i < LOCK_TRIES; i++) {
		int lock = try_lock(dir);

		if (lock >= 0) {
			bench_clean(state_dir, dir);
			break;
		}
		(void)usleep(100000);
	}
	_exit(0);
}

void bench_watch(struct bench *b)
{
	int ends[2], null;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return; /* then the next command cleans up */
	pid = fork();
	if (pid == 0) {
		/* Nobody may wait for our copies of the command's own descriptors, the lock above all. */
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int i = 0; i < 3 && null >= 0; i++)
			(void)dup2(null, i);
		if (dup2(ends[0], 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0) < 0)
			_exit(1);
		wait_and_clean(b->state_dir, b->dir, 3);
	}
	fd_close(ends[0]);
	if (pid < 0) {
		fd_close(ends[1]);
		return;
	}
	b->watcher = pid;
	b->watched = ends[1];
}

/* A child that is gone removes nothing; then the next command does. */
static void say(const struct bench *b, char what, const char *path)
{
	_free_ char *text = mem_fmt("%c%.*s", what, PATH_MAX, path);

	if (b->watcher > 0)
		(void)send(b->watched, text, strlen(text), MSG_NOSIGNAL);
}

void bench_file(const struct bench *b, const char *path)
{
	say(b, SAYS_FILE, path);
}

void bench_unwatch(struct bench *b)
{
	if (b->watcher <= 0)
		return;
	say(b, SAYS_DONE, "");
	fd_close(b->watched);
	while (waitpid(b->watcher, NULL, 0) < 0 && errno == EINTR)
		;
	b->watcher = 0;
}
