/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid.c - see setid.h
 *
 * One stat for each regular file, also in what the policy protects and in git's own directories. A file is opened by its
 * path beneath the root before its mode is changed, so a name that is swapped meanwhile leads nowhere else. A directory that
 * cannot be read is opened up for the walk when the inside closed it: what is in it can be reached by its name all the same.
 *
 * A stat takes about a microsecond, which for twenty thousand files is as long as three starts, and the caller waits. So
 * where there are many, the directories whose names are known are divided among a few processes. They only look, and write
 * the path of what they find into a pipe; the keeper reports it and takes the bits off. What a process that failed had to do
 * the keeper does itself.
 */
#include "view/setid.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "view/quarantine.h"
#include "view/walk.h"
#include "view/ws.h"

#define BITS (S_ISUID | S_ISGID)
#define FILES_EACH ((size_t)2000) /* for fewer a process more is not worth its start */
#define PROCESSES_MAX 4

struct setid_later {
	char *dir; /* below the root */
	const char *files;
	size_t len;
};

void setid_init(struct setid *s, int root_fd)
{
	*s = (struct setid){ .root_fd = root_fd, .report = FD_NONE, .path = BUF(MIB) };
}

void setid_done(struct setid *s)
{
	for (size_t i = 0; i < s->n_later; i++)
		free(s->later[i].dir);
	free(s->later);
	buf_done(&s->path);
	s->later = NULL;
	s->n_later = s->cap_later = 0;
}

static bool has_changed(const struct setid *s, const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * (int64_t)NS_PER_SEC + st->st_ctim.tv_nsec >= s->since;
}

static bool has_bits(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & BITS);
}

static void strip(struct setid *s, int fd, const char *rel)
{
	struct stat st;
	char path[64];

	if (fstat(fd, &st) < 0 || !has_bits(&st))
		return;
	if (!s->on_found(s->arg, rel, st.st_mode & BITS, !has_changed(s, &st)))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->failed += chmod(path, st.st_mode & 07777 & ~(mode_t)BITS) < 0;
}

static void found(struct setid *s, const char *rel)
{
	_close_ int fd = FD_NONE;

	if (s->report >= 0) {
		s->failed += io_write_all(s->report, rel, strlen(rel) + 1) < 0;
		return;
	}
	fd = walk_open(s->root_fd, rel, O_PATH | O_NOFOLLOW);
	if (fd >= 0)
		strip(s, fd, rel);
	else
		s->failed += !walk_is_gone(-fd);
}

/* A directory that can be listed and not passed: others may have the right that the inside took from us. The host's own, and
 * another user's, holds nothing of the inside's. */
static bool is_closed_inside(const struct setid *s, int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) < 0 || (st.st_uid == geteuid() && has_changed(s, &st));
}

void setid_look(struct setid *s, int dir_fd, const char *rel, const char *name)
{
	_free_ char *path = NULL;
	struct stat st;
	int r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 && errno == EACCES) {
		if (!is_closed_inside(s, dir_fd))
			return;
		if (quarantine_loosen(dir_fd, ".") == 0)
			r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	}
	if (r < 0)
		s->failed += !walk_is_gone(errno);
	if (r < 0 || !has_bits(&st))
		return;
	path = ws_rel(rel, name);
	found(s, path);
}

bool setid_look_listed(struct setid *s, const struct setid_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_close_ int fd = walk_open(s->root_fd, files[i].rel, O_PATH | O_NOFOLLOW);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != files[i].ino ||
		    st.st_dev != files[i].dev)
			return false;
		strip(s, fd, files[i].rel);
	}
	return true;
}

/* ---- directories whose names are known ---- */

/* The directory is unchanged since before the start: what we may not look at in it nobody inside could reach either. */
static void look_at_names(struct setid *s, const struct setid_dir *d)
{
	size_t dir_len = strlen(d->name) + 1;

	s->path.n = 0;
	buf_puts(&s->path, d->name);
	buf_putc(&s->path, '/');
	for (const char *p = d->files; p < d->files + d->len; p += strlen(p) + 1) {
		struct stat st;

		s->path.n = dir_len;
		buf_puts(&s->path, p);
		if (fstatat(d->parent_fd, buf_cstr(&s->path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    has_bits(&st)) {
			_free_ char *rel = ws_rel(d->parent, buf_cstr(&s->path));

			found(s, rel);
		}
	}
}

void setid_look_all(struct setid *s, const struct setid_dir *d)
{
	if (d->len == 0)
		return;
	/* A path that does not fit into one write cannot be reported by another process. */
	if (s->n_files < 2 * FILES_EACH || strlen(d->parent) > PATH_MAX / 2) {
		look_at_names(s, d);
		return;
	}
	vec_reserve(s->later, s->n_later, s->cap_later);
	s->later[s->n_later++] = (struct setid_later){ .dir = ws_rel(d->parent, d->name),
						       .files = d->files,
						       .len = d->len };
}

/* Every n-th of them. */
static void look_at_share(struct setid *s, size_t first, size_t n)
{
	for (size_t i = first; i < s->n_later; i += n)
		look_at_names(s, &(struct setid_dir){ .parent_fd = s->root_fd,
						      .parent = "",
						      .name = s->later[i].dir,
						      .files = s->later[i].files,
						      .len = s->later[i].len });
}

static size_t processes(const struct setid *s)
{
	size_t most = s->n_files / FILES_EACH;
	cpu_set_t set;

	if (most > PROCESSES_MAX)
		most = PROCESSES_MAX;
	if (most < 2 || s->n_later < most || sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (size_t)CPU_COUNT(&set) < most ? (size_t)CPU_COUNT(&set) : most;
}

static pid_t begin_share(struct setid *s, size_t first, size_t n, const int report[2])
{
	pid_t keeper = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	fd_close(report[0]);
	s->report = report[1];
	s->failed = 0;
	look_at_share(s, first, n);
	_exit(s->failed ? 1 : 0);
}

static bool has_done_share(pid_t pid)
{
	int status = -1;

	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/* Paths, each with its NUL, to the end of the pipe. */
static void take_reports(struct setid *s, int fd)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	char chunk[16 * KIB];
	ssize_t n;

	while ((n = io_read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i]) {
				buf_putc(&b, chunk[i]);
				continue;
			}
			found(s, buf_cstr(&b));
			b.n = 0;
		}
}

void setid_settle(struct setid *s)
{
	size_t n = processes(s);
	pid_t pid[PROCESSES_MAX] = { 0 };
	int report[2] = { FD_NONE, FD_NONE };

	if (n > 1 && pipe2(report, O_CLOEXEC) < 0)
		n = 1;
	for (size_t i = 1; i < n; i++)
		pid[i] = begin_share(s, i, n, report);
	fd_close(report[1]);
	look_at_share(s, 0, n);
	if (n > 1)
		take_reports(s, report[0]);
	for (size_t i = 1; i < n; i++)
		if (!has_done_share(pid[i]))
			look_at_share(s, i, n);
	fd_close(report[0]);
	setid_done(s);
}

/* ---- a walk of our own ---- */

struct below {
	struct setid *s;
	const char *rel; /* where the walk begins */
};

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	const struct below *b = arg;
	_free_ char *rel = NULL;

	(void)len;
	if (type == DT_REG && b->rel[0] == '\0') {
		setid_look(b->s, d->fd, d->rel, name);
	} else if (type == DT_REG) {
		rel = d->rel[0] ? ws_rel(b->rel, d->rel) : mem_str(b->rel);
		setid_look(b->s, d->fd, rel, name);
	}
	return type == DT_DIR;
}

static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	const struct below *b = arg;
	struct stat st;
	int fd;

	(void)rel;
	if (num != EACCES || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !has_changed(b->s, &st) || quarantine_loosen(parent_fd, name) < 0)
		return FD_NONE; /* the host closed it, or it is another user's: nothing of the inside's is in it */
	fd = walk_opendir(parent_fd, name);
	return fd >= 0 ? fd : FD_NONE;
}

int setid_look_below(struct setid *s, int fd, const char *rel, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry, .refused = on_refused };
	struct below b = { .s = s, .rel = rel };
	struct walk_stats stats = { 0 };

	return walk_run(fd, 1, &ops, &b, &stats, e);
}

int setid_strip(struct setid *s, struct err *e)
{
	struct stat st;

	if (fstat(s->root_fd, &st) < 0)
		return err_sys(e, "stat");
	if (S_ISDIR(st.st_mode))
		return setid_look_below(s, s->root_fd, "", e);
	strip(s, s->root_fd, "");
	return 0;
}
