/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/acts.c - acts on files and descriptors that no shell can do
 *
 * One act per word. Each prints what happened as "NAME ok" or "NAME ERRNO"; the exit status says only whether
 * the act could be tried. What it meant is decided outside, by looking at the files themselves. The same word
 * is run without a sandbox first, so an act that fails everywhere is noticed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif

/* 0 or more is success, as system calls have it. */
static int said(const char *what, long r)
{
	if (r >= 0)
		printf("%s ok\n", what);
	else
		printf("%s %s\n", what, strerrorname_np(errno) ? strerrorname_np(errno) : "?");
	fflush(stdout);
	return r >= 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void dump(const char *label, int fd)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n <= 0)
		return;
	printf("%s: ", label);
	fwrite(buf, 1, (size_t)n, stdout);
	printf("\n");
	fflush(stdout);
}

static void dump_at(const char *label, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return;
	dump(label, fd);
	close(fd);
}

/* --- descriptors */

/* Every descriptor above 2: its number, what it is, and what can be read from it or below it. */
static int act_fds(char **a)
{
	char link[64], target[PATH_MAX];
	struct stat st;

	(void)a;
	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		if (fstat(fd, &st) < 0)
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		printf("fd %d %o %s\n", fd, st.st_mode & S_IFMT, target);
		if (fd < 3)
			continue;
		if (S_ISDIR(st.st_mode)) {
			dump_at("below", fd, "secret");
			dump_at("above", fd, "../out/secret");
		} else {
			lseek(fd, 0, SEEK_SET);
			fcntl(fd, F_SETFL, O_NONBLOCK);
			dump("content", fd);
		}
	}
	return 0;
}

/* Take what descriptors wait in any socket that we hold. */
static int act_recvfds(char **a)
{
	(void)a;
	for (int fd = 0; fd < 1024; fd++) {
		char byte[64], control[CMSG_SPACE(16 * sizeof(int))];
		struct iovec iov = { byte, sizeof(byte) };
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
			continue;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			int got;

			if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
				continue;
			memcpy(&got, CMSG_DATA(c), sizeof(got));
			printf("received a descriptor through %d\n", fd);
			dump("content", got);
			dump_at("below", got, "secret");
		}
	}
	return 0;
}

/* reopen FD r|w|rw TEXT: open what the descriptor stands for once more, with other rights. */
static int act_reopen(char **a)
{
	char link[64];
	int flags = strcmp(a[1], "r") == 0 ? O_RDONLY : strcmp(a[1], "w") == 0 ? O_WRONLY : O_RDWR;
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%s", a[0]);
	fd = open(link, flags | O_NONBLOCK | O_CLOEXEC);
	if (!said("reopen", fd))
		return 0;
	if (flags != O_WRONLY)
		dump("content", fd);
	if (flags != O_RDONLY)
		said("write", write(fd, a[2], strlen(a[2])));
	close(fd);
	return 0;
}

/* rewind FD TEXT: no reopening, just what the descriptor itself allows. */
static int act_rewind(char **a)
{
	int fd = (int)strtol(a[0], NULL, 10);

	said("lseek", lseek(fd, 0, SEEK_SET));
	dump("content", fd);
	said("pread", pread(fd, (char[16]){ 0 }, 16, 0));
	said("ftruncate", ftruncate(fd, 0));
	return 0;
}

/* open r|w PATH...: which of them can be opened? Nothing is written. */
static int act_open(char **a)
{
	int flags =
		(strcmp(a[0], "w") == 0 ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

	for (a++; *a; a++) {
		char byte[512];
		int fd = open(*a, flags);

		if (fd < 0)
			continue;
		printf("opened %s\n", *a);
		if ((flags & O_ACCMODE) == O_RDONLY && read(fd, byte, sizeof(byte)) > 0)
			printf("readable %s\n", *a);
		close(fd);
	}
	return 0;
}

/* --- names */

static int act_rename(char **a)
{
	said("rename", rename(a[0], a[1]));
	return 0;
}

static int act_exchange(char **a)
{
	said("exchange", renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_EXCHANGE));
	return 0;
}

/* tmplink FROM DIR NAME: a nameless file made in FROM is given a name in DIR. */
static int act_tmplink(char **a)
{
	char link[64], path[PATH_MAX];
	int fd = open(a[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0755);

	if (!said("tmpfile", fd))
		return 0;
	said("write", write(fd, "x\n", 2));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(path, sizeof(path), "%s/%s", a[1], a[2]);
	said("linkat", linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW));
	said("linkat-empty", linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH));
	close(fd);
	return 0;
}

/* link OLD NEW, by name and by descriptor */
static int act_link(char **a)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);

	said("link", link(a[0], a[1]));
	if (fd >= 0)
		said("linkat-empty", linkat(fd, "", AT_FDCWD, a[1], AT_EMPTY_PATH));
	return 0;
}

static int act_mknod(char **a)
{
	char path[PATH_MAX];
	int fd;
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	snprintf(path, sizeof(path), "%s/node-char", a[0]);
	said("mknod-char", mknod(path, S_IFCHR | 0666, makedev(1, 3)));
	snprintf(path, sizeof(path), "%s/node-block", a[0]);
	said("mknod-block", mknod(path, S_IFBLK | 0666, makedev(7, 0)));
	snprintf(path, sizeof(path), "%s/node-fifo", a[0]);
	said("mkfifo", mkfifo(path, 0644));
	/* Relative, because a socket's path has little room. */
	if (chdir(a[0]) < 0)
		return 3;
	strcpy(un.sun_path, "node-socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	said("bind", bind(fd, (struct sockaddr *)&un, sizeof(un)));
	return 0;
}

/* --- handles */

static int act_handle(char **a)
{
	struct {
		struct file_handle h;
		unsigned char room[MAX_HANDLE_SZ];
	} f = { .h.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;

	if (name_to_handle_at(AT_FDCWD, a[0], &f.h, &mount_id, 0) < 0) {
		said("handle", -1);
		return 3;
	}
	printf("%d:", f.h.handle_type);
	for (unsigned int i = 0; i < f.h.handle_bytes; i++)
		printf("%02x", f.room[i]);
	printf("\n");
	return 0;
}

/* openhandle PLACE TYPE:HEX: any file of PLACE's file system, by number instead of by name */
static int act_openhandle(char **a)
{
	struct {
		struct file_handle h;
		unsigned char room[MAX_HANDLE_SZ];
	} f = { 0 };
	char *hex = NULL;
	int dir, fd;

	f.h.handle_type = (int)strtol(a[1], &hex, 10);
	for (hex++; hex[0] && hex[1] && f.h.handle_bytes < MAX_HANDLE_SZ; hex += 2) {
		char two[3] = { hex[0], hex[1], 0 };

		f.room[f.h.handle_bytes++] = (unsigned char)strtoul(two, NULL, 16);
	}
	dir = open(a[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = open_by_handle_at(dir, &f.h, O_RDONLY | O_CLOEXEC);
	if (said("openhandle", fd)) {
		dump("content", fd);
		dump_at("below", fd, "secret");
	}
	return 0;
}

/* --- contents and attributes of one file that must not change */

static int act_meta(char **a)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	int flags = 0, fd;

	said("chmod", chmod(a[0], 0777));
	said("fchmodat", fchmodat(AT_FDCWD, a[0], 0776, 0));
	said("chown", chown(a[0], getuid(), getgid()));
	said("utimens", utimensat(AT_FDCWD, a[0], old, 0));
	said("setxattr", setxattr(a[0], "user.vcontain", "x", 1, 0));
	said("setacl", setxattr(a[0], "system.posix_acl_access",
				"\2\0\0\0\1\0\7\0\377\377\377\377\2\0\7\0\0\0\0\0\4\0\7\0\377\377"
				"\377"
				"\377\20\0\7\0\377\377\377\377\40\0\7\0\377\377\377\377",
				44, 0));
	fd = open(a[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (!said("open", fd))
		return 0;
	said("fchmod", fchmod(fd, 0775));
	said("futimens", futimens(fd, old));
	said("fsetxattr", fsetxattr(fd, "user.vcontain2", "x", 1, 0));
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags ^= FS_NODUMP_FL;
		said("setflags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
	}
	close(fd);
	return 0;
}

static int act_trunc(char **a)
{
	int rw, ro, src;

	said("truncate", truncate(a[0], 1));
	rw = open(a[0], O_RDONLY | O_TRUNC | O_CLOEXEC);
	said("open-trunc", rw);
	ro = open(a[0], O_RDONLY | O_CLOEXEC);
	src = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	said("ftruncate", ftruncate(ro, 1));
	said("punch", fallocate(ro, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	said("copy_file_range", copy_file_range(src, NULL, ro, NULL, 16, 0));
	said("ficlone", ioctl(ro, FICLONE, src));
	rw = open(a[0], O_WRONLY | O_APPEND | O_CLOEXEC);
	if (said("append", rw))
		said("write", write(rw, "x", 1));
	return 0;
}

static int act_map(char **a)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC), mem;
	char *p;

	if (!said("open", fd))
		return 0;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	said("mmap-write", p == MAP_FAILED ? -1 : 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (!said("mmap-read", p == MAP_FAILED ? -1 : 0))
		return 0;
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (said("open-mem", mem))
		said("write-mem", pwrite(mem, "X", 1, (off_t)(uintptr_t)p));
	if (said("mprotect", mprotect(p, 4096, PROT_READ | PROT_WRITE)))
		p[0] = 'X';
	fd = open(a[0], O_RDWR | O_CLOEXEC);
	if (said("open-rw", fd)) {
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (said("mmap-rw", p == MAP_FAILED ? -1 : 0))
			p[0] = 'X';
	}
	return 0;
}

/* --- mounts: PATH is a mask, DIR a directory to mount things on */

static void mount_tries(const char *path, const char *dir, const char *when)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
	int fd;

	printf("[%s]\n", when);
	said("remount", mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL));
	said("remount-usr", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	said("umount", umount2(path, 0));
	said("umount-detach", umount2(path, MNT_DETACH));
	said("umount-ws", umount2(dir, MNT_DETACH));
	said("setattr", (int)syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &attr, sizeof(attr)));
	said("setattr-usr",
	     (int)syscall(SYS_mount_setattr, AT_FDCWD, "/usr", AT_RECURSIVE, &attr, sizeof(attr)));
	fd = (int)syscall(SYS_open_tree, AT_FDCWD, dir, 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
	if (said("open_tree", fd))
		said("move_mount", (int)syscall(SYS_move_mount, fd, "", AT_FDCWD, "/tmp", 4));
	said("fsopen", (int)syscall(SYS_fsopen, "tmpfs", 0));
	said("bind", mount(dir, "/tmp", NULL, MS_BIND | MS_REC, NULL));
	said("tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
	said("pivot_root", (int)syscall(SYS_pivot_root, dir, dir));
	said("chroot", chroot(dir));
}

static int act_mounts(char **a)
{
	pid_t pid;

	mount_tries(a[0], a[1], "as we are");
	dump_at("content", AT_FDCWD, a[0]);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (said("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS)))
			mount_tries(a[0], a[1], "in a user namespace of our own");
		dump_at("content", AT_FDCWD, a[0]);
		exit(0);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

/* --- watching the others */

static void watch_process(const char *pid, int self)
{
	static const char *const files[] = { "environ", "cmdline", "cwd/secret", "cwd/../secret",
					     NULL };
	static const char *const links[] = { "cwd", "exe", "root", NULL };
	char path[512], target[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	if (strtol(pid, NULL, 10) == self)
		return;
	for (int i = 0; files[i]; i++) {
		snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, files[i]);
		dump_at(files[i], AT_FDCWD, path);
	}
	for (int i = 0; links[i]; i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, links[i]);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0)
			printf("%s -> %.*s\n", path, (int)n, target);
	}
	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid, d->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		printf("%s -> %.*s\n", path, (int)n, target);
		snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s/secret", pid, d->d_name);
		dump_at("below", AT_FDCWD, path);
		snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid, d->d_name);
		if (target[0] == '/' && strncmp(target, "/dev/", 5) != 0)
			dump_at("content", AT_FDCWD, path);
	}
	if (dir)
		closedir(dir);
}

/* watch SECONDS: look at every other process as often as we can, and stop newcomers if we may. */
static int act_watch(char **a)
{
	double end = now() + strtod(a[0], NULL);
	unsigned long rounds = 0, attached = 0;
	int self = getpid(), seen[4096] = { 0 };

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	printf("watching\n");
	fflush(stdout);
	for (; now() < end; rounds++) {
		DIR *proc = opendir("/proc");
		struct dirent *d;

		while (proc && (d = readdir(proc))) {
			long pid = strtol(d->d_name, NULL, 10);

			if (pid <= 0)
				continue;
			watch_process(d->d_name, self);
			if (pid == 1 || pid == self || pid >= 4096 || seen[pid]++)
				continue;
			if (ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL) == 0) {
				attached++;
				watch_process(d->d_name, self);
				ptrace(PTRACE_INTERRUPT, (pid_t)pid, NULL, NULL);
				waitpid((pid_t)pid, NULL, __WALL | WNOHANG);
				ptrace(PTRACE_DETACH, (pid_t)pid, NULL, NULL);
			}
		}
		if (proc)
			closedir(proc);
	}
	printf("rounds=%lu attached=%lu\n", rounds, attached);
	return 0;
}

/* --- sockets: KIND is tcp (a port of 127.0.0.1), abstract or path */

static socklen_t address(const char *kind, const char *where, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_un *un = (struct sockaddr_un *)ss;

	memset(ss, 0, sizeof(*ss));
	if (strcmp(kind, "tcp") == 0) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)strtoul(where, NULL, 10));
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	}
	un->sun_family = AF_UNIX;
	if (strcmp(kind, "abstract") == 0) {
		snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "%s", where);
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(where));
	}
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", where);
	return sizeof(*un);
}

/* serve SECONDS KIND WHERE [KIND WHERE]...: say who was reached */
static int act_serve(char **a)
{
	double end = now() + strtod(a[0], NULL);
	struct pollfd p[8];
	char **what[8];
	nfds_t n = 0;

	for (a++; a[0] && a[1] && n < 8; a += 2) {
		struct sockaddr_storage ss;
		socklen_t len = address(a[0], a[1], &ss);
		int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, 8) < 0) {
			said(a[0], -1);
			return 3;
		}
		p[n] = (struct pollfd){ .fd = fd, .events = POLLIN };
		what[n++] = a;
	}
	printf("serving\n");
	fflush(stdout);
	while (now() < end && poll(p, n, 100) >= 0) {
		for (nfds_t i = 0; i < n; i++) {
			int fd = p[i].revents ? accept(p[i].fd, NULL, NULL) : -1;

			if (fd < 0)
				continue;
			printf("reached %s\n", what[i][0]);
			fflush(stdout);
			close(fd);
		}
	}
	return 0;
}

static int act_connect(char **a)
{
	for (; a[0] && a[1]; a += 2) {
		struct sockaddr_storage ss;
		socklen_t len = address(a[0], a[1], &ss);
		int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		said(a[0], fd < 0 ? -1 : connect(fd, (struct sockaddr *)&ss, len));
		close(fd);
	}
	return 0;
}

/* --- what outlives its maker in an ipc namespace */

static int shm_each(const char *text, int remove)
{
	struct shmid_ds ds;
	int max = shmctl(0, IPC_STAT, &ds), found = 0;

	(void)max;
	for (int i = 0; i < 4096; i++) {
		int id = shmctl(i, SHM_STAT_ANY, &ds);
		char *p;

		if (id < 0 || ds.shm_segsz < strlen(text))
			continue;
		p = shmat(id, NULL, SHM_RDONLY);
		if (p == (void *)-1)
			continue;
		if (memcmp(p, text, strlen(text)) == 0) {
			found++;
			printf("shm %s\n", p);
			if (remove)
				shmctl(id, IPC_RMID, NULL);
		}
		shmdt(p);
	}
	return found;
}

/* shm put|find|remove TEXT */
static int act_shm(char **a)
{
	int id;
	char *p;

	if (strcmp(a[0], "put") != 0) {
		shm_each(a[1], strcmp(a[0], "remove") == 0);
		return 0;
	}
	id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
	if (!said("shmget", id))
		return 0;
	p = shmat(id, NULL, 0);
	if (p != (void *)-1)
		snprintf(p, 4096, "%s", a[1]);
	return 0;
}

/* mq put|get|remove NAME TEXT */
static int act_mq(char **a)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 128 };
	char buf[128] = { 0 };
	mqd_t q;

	if (strcmp(a[0], "remove") == 0)
		return mq_unlink(a[1]) < 0 ? 0 : said("mq_unlink", 0);
	q = mq_open(a[1], (strcmp(a[0], "put") == 0 ? O_CREAT : 0) | O_RDWR | O_NONBLOCK, 0666,
		    &attr);
	if (!said("mq_open", q))
		return 0;
	if (strcmp(a[0], "put") == 0)
		said("mq_send", mq_send(q, a[2], strlen(a[2]), 0));
	else if (mq_receive(q, buf, sizeof(buf), NULL) > 0)
		printf("mq %s\n", buf);
	return 0;
}

/* --- arguments, byte for byte */

static int act_argv(char **a)
{
	for (; *a; a++) {
		printf("arg ");
		for (const char *p = *a; *p; p++)
			printf("%02x", (unsigned char)*p);
		printf("\n");
	}
	return 0;
}

/* --- how long is a window? */

/* poll PATH SECONDS: read it without pause; a line, with the time in ms, each time that the answer changes */
static int act_poll(char **a)
{
	double begin = now(), end = begin + strtod(a[1], NULL);
	char last[256] = "", text[256];
	unsigned long rounds = 0;

	for (; now() < end; rounds++) {
		int fd = open(a[0], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (n < 0)
			snprintf(text, sizeof(text), "%s", strerrorname_np(errno));
		else
			text[n && text[n - 1] == '\n' ? n - 1 : n] = '\0';
		if (fd >= 0)
			close(fd);
		if (strcmp(text, last) == 0)
			continue;
		strcpy(last, text);
		printf("at %.1f: %s\n", (now() - begin) * 1000, text);
		fflush(stdout);
	}
	printf("rounds=%lu\n", rounds);
	return 0;
}

static const struct {
	const char *name;
	int min;
	int (*fn)(char **);
	const char *args;
} acts[] = {
	{ "fds", 0, act_fds, "" },
	{ "recvfds", 0, act_recvfds, "" },
	{ "reopen", 3, act_reopen, "FD r|w|rw TEXT" },
	{ "rewind", 1, act_rewind, "FD" },
	{ "open", 2, act_open, "r|w PATH..." },
	{ "rename", 2, act_rename, "OLD NEW" },
	{ "exchange", 2, act_exchange, "A B" },
	{ "tmplink", 3, act_tmplink, "FROM DIR NAME" },
	{ "link", 2, act_link, "OLD NEW" },
	{ "mknod", 1, act_mknod, "DIR" },
	{ "handle", 1, act_handle, "PATH" },
	{ "openhandle", 2, act_openhandle, "PLACE TYPE:HEX" },
	{ "meta", 1, act_meta, "PATH" },
	{ "trunc", 1, act_trunc, "PATH" },
	{ "map", 1, act_map, "PATH" },
	{ "mounts", 2, act_mounts, "MASK DIR" },
	{ "watch", 1, act_watch, "SECONDS" },
	{ "serve", 3, act_serve, "SECONDS KIND WHERE..." },
	{ "connect", 2, act_connect, "KIND WHERE..." },
	{ "shm", 2, act_shm, "put|find|remove TEXT" },
	{ "mq", 3, act_mq, "put|get|remove NAME TEXT" },
	{ "argv", 0, act_argv, "ARG..." },
	{ "poll", 2, act_poll, "PATH SECONDS" },
};

int main(int argc, char **argv)
{
	const size_t count = sizeof(acts) / sizeof(acts[0]);

	for (size_t i = 0; argc >= 2 && i < count; i++) {
		if (strcmp(argv[1], acts[i].name) == 0 && argc - 2 >= acts[i].min)
			return acts[i].fn(argv + 2);
	}
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "acts %s %s\n", acts[i].name, acts[i].args);
	return 2;
}
