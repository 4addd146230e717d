/* SPDX-License-Identifier: Apache-2.0 */
/* sys/shared.c - see shared.h
 *
 * What the kernel would count for a control group, put together from what it shows without one:
 *
 *     named     file systems in memory by statfs; System V segments by their table; memfds, which all lie in one file system of
 *               the kernel's own, by the descriptors of every process, each inode once
 *     mapped    the proportional share of shared memory of every process, so that a segment of many is counted once
 *
 * Most of what is mapped is named too, and the two cannot be told apart: the greater of them counts. So at most half of it is
 * overlooked, and nothing is counted twice. A memfd that lies only in the queue of a socket, in no process, is overlooked too.
 */
#include "sys/shared.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "sys/sample.h"

#define SHARE 20
#define INODES_MAX 65536

static uint64_t tmpfs_bytes(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_blocks > fs.f_bfree
		       ? (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize
		       : 0;
}

/* Field `want` of a line, counted from 1. */
static uint64_t field(const char *line, size_t n, int want)
{
	const char *end = line + n;
	uint64_t v = 0;

	for (int at = 0; line < end && at < want; at++) {
		while (line < end && *line == ' ')
			line++;
		for (v = 0; line < end && *line != ' '; line++)
			v = *line >= '0' && *line <= '9' ? v * 10 + (uint64_t)(*line - '0') : 0;
	}
	return v;
}

/* key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap */
static uint64_t sysv_bytes(int fd)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);
	struct err ignored = ERR_INIT;
	uint64_t sum = 0;
	const char *p;

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || io_read_fd(fd, &b, &ignored) < 0)
		return 0;
	for (p = strchr(buf_cstr(&b), '\n'); p && *++p; p = strchr(p, '\n')) {
		size_t n = strcspn(p, "\n");

		sum += field(p, n, 15) + field(p, n, 16);
	}
	return sum;
}

/* ---- memfds ---- */

struct look {
	int proc;
	dev_t dev; /* of all memfds; 0: not known */
	ino_t *seen;
	size_t n_seen, cap;
	uint64_t named, mapped;
};

static dev_t memfd_dev(void)
{
	static dev_t dev;
	struct stat st;

	if (dev == 0) {
		_close_ int fd = memfd_create("look", MFD_CLOEXEC);

		dev = fd >= 0 && fstat(fd, &st) == 0 ? st.st_dev : 0;
	}
	return dev;
}

/* Is it new? Open addressing, half full at most. */
static bool see(struct look *l, ino_t ino)
{
	size_t i = (size_t)ino & (l->cap - 1);

	while (l->seen[i] != 0 && l->seen[i] != ino)
		i = (i + 1) & (l->cap - 1);
	if (l->seen[i] == ino || 2 * l->n_seen >= l->cap)
		return false;
	l->seen[i] = ino;
	l->n_seen++;
	return true;
}

static void look_at_files(struct look *l, const char *pid)
{
	char name[32];
	DIR *d;
	const struct dirent *en;
	struct stat st;
	int fd;

	(void)snprintf(name, sizeof(name), "%.16s/fd", pid);
	fd = openat(l->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (d == NULL) {
		fd_close(fd);
		return;
	}
	while ((en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' && fstatat(fd, en->d_name, &st, 0) == 0 &&
		    st.st_dev == l->dev && see(l, st.st_ino))
			l->named += (uint64_t)st.st_blocks * 512;
	(void)closedir(d);
}

/* The number of kilobytes behind `key`, in a file of the process. */
static uint64_t kilobytes(int proc, const char *pid, const char *file, const char *key)
{
	char name[48], text[4096];
	_close_ int fd = FD_NONE;
	const char *p;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%.16s/%s", pid, file);
	fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : io_read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	p = strstr(text, key);
	if (p == NULL)
		return 0;
	p += strcspn(p, "\t ");
	return field(p + strspn(p, "\t "), strcspn(p, "\n"), 1);
}

static bool look_at(void *arg, const char *pid, const struct process *p)
{
	struct look *l = arg;

	(void)p;
	if (l->dev)
		look_at_files(l, pid);
	/* To ask for the share makes the kernel walk all pages: only where there is something. */
	if (kilobytes(l->proc, pid, "status", "\nRssShmem:") > 0)
		l->mapped += kilobytes(l->proc, pid, "smaps_rollup", "\nPss_Shmem:") * KIB;
	return true;
}

static uint64_t look_now(const struct shared *s, int proc)
{
	struct look l = { .proc = proc, .dev = memfd_dev(), .cap = (size_t)2 * INODES_MAX };

	l.seen = mem_new(l.cap, sizeof(*l.seen));
	processes_each(proc, look_at, &l);
	free(l.seen);
	l.named += sysv_bytes(s->sysv);
	for (size_t i = 0; i < ARRAY_LEN(s->tmpfs); i++)
		l.named += tmpfs_bytes(s->tmpfs[i]);
	return l.named > l.mapped ? l.named : l.mapped;
}

/* By a child that is in the sandbox's user namespace for that long. 0: it could not. */
static uint64_t look_from_there(const struct shared *s, int proc)
{
	uint64_t bytes = 0;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		if (setns(s->user_ns, CLONE_NEWUSER) == 0)
			bytes = look_now(s, proc);
		_exit(io_write_all(p[1], &bytes, sizeof(bytes)) < 0);
	}
	fd_close(p[1]);
	if (pid > 0 && io_read(p[0], &bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
		bytes = 0;
	fd_close(p[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return bytes;
}

uint64_t shared_take(struct shared *s, int proc)
{
	uint64_t began = clock_now();

	if (began < s->next_ns)
		return s->bytes;
	s->bytes = s->user_ns < 0 ? look_now(s, proc) : look_from_there(s, proc);
	s->next_ns = clock_now() + SHARE * (clock_now() - began);
	return s->bytes;
}

void shared_add(struct shared *s, int take_fd)
{
	struct statfs fs;
	bool is_known = fstatfs(take_fd, &fs) == 0;
	struct stat st, first;
	int *to = NULL;

	if (s->tmpfs[0] >= 0 && fstat(take_fd, &st) == 0 && fstat(s->tmpfs[0], &first) == 0 &&
	    st.st_dev == first.st_dev)
		is_known = false; /* the same one */
	if (is_known && fs.f_type == PROC_SUPER_MAGIC)
		to = &s->sysv;
	else if (is_known && fs.f_type == TMPFS_MAGIC)
		to = s->tmpfs[0] < 0 ? &s->tmpfs[0] : &s->tmpfs[1];
	if (to == NULL || *to >= 0)
		fd_close(take_fd);
	else
		*to = take_fd;
}

void shared_done(struct shared *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->tmpfs); i++)
		fd_close(s->tmpfs[i]);
	fd_close(s->sysv);
	*s = SHARED_NONE;
}
