/* SPDX-License-Identifier: Apache-2.0 */
/* core/def_own.c - folders of sandboxes that do not run: owning, removing, renaming, and what crashes left
 *
 * Whoever holds the lock of a folder that still stands at its name owns it. Both are looked at, in this order: a
 * folder may be renamed away between opening and locking.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/path.h"
#include "core/def.h"

#define TRASH ".rm-"

static int open_all(const char *state_dir)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_still(int all, const char *name, int dir)
{
	struct stat a, b;

	return fstat(dir, &a) == 0 && fstatat(all, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A keeper that is coming or going holds the lock and has no control socket: it is waited for, for two seconds. */
static bool try_lock(int dir, int lock)
{
	for (int i = 0; i < 2000; i++) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (faccessat(dir, "control", F_OK, 0) == 0)
			return false;
		(void)usleep(1000);
	}
	return false;
}

int def_own(const char *state_dir, const char *name, struct owned *ret, struct err *e)
{
	_close_ int all = open_all(state_dir);
	_close_ int dir =
		all < 0 ? FD_NONE
			: openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int lock = FD_NONE;

	if (dir < 0)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no sandbox '%.64s'; 'vitrine ls' lists them", name);
	lock = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return err_sys(e, "lock of '%s'", name);
	if (!try_lock(dir, lock))
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "the sandbox '%s' is running; 'vitrine stop %s' ends it", name,
			       name);
	if (!is_still(all, name, dir))
		return err_set(e, ERR_NOTFOUND, ENOENT, "the sandbox '%s' was just removed", name);
	(void)unlinkat(dir, "control", 0); /* a dead keeper's: who holds the lock is the only one */
	*ret = (struct owned){ .dir = take_fd(dir), .lock = take_fd(lock) };
	return 0;
}

void def_let_go(struct owned *o)
{
	fd_close(o->dir);
	fd_close(o->lock);
	*o = OWNED_NONE;
}

int def_remove(const char *state_dir, const char *name, struct owned *o, struct err *e)
{
	_close_ int all = open_all(state_dir);
	char trash[32];
	uint64_t n;
	int r;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return err_sys(e, "getrandom");
	(void)snprintf(trash, sizeof(trash), TRASH "%016llx", (unsigned long long)n);
	/* Synced before the first file goes: after a power cut it is there whole, or gone. */
	if (all < 0 || renameat(all, name, all, trash) < 0 || fsync(all) < 0)
		return err_sys(e, "remove '%s'", name);
	r = path_remove(all, trash);
	def_let_go(o);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r,
			       "'%s' is removed, but something of it could not be deleted and "
			       "lies in '%s/sandboxes/%s'",
			       name, state_dir, trash)
		     : 0;
}

#define NEW_FILE ".new-name"

/* What the file will say, beside it. Nothing has happened when there is no room for it. */
static int write_new(int dir, const struct def *d, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(DEF_MAX_BYTES);
	_close_ int fd = FD_NONE;
	int r;

	def_print(d, &text);
	fd = openat(dir, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && io_write_all(fd, text.p, text.n) == 0 && fsync(fd) == 0)
		return 0;
	r = err_sys(e, "write " DEF_FILE);
	(void)unlinkat(dir, NEW_FILE, 0); /* it may not be there */
	return r;
}

/* The folder's name is the sandbox's; what the file says follows, and nobody relies on it. */
static int move(int all, const char *from, const char *to, const struct owned *o, struct err *e)
{
	if (all < 0 || renameat2(all, from, all, to, RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? err_set(e, ERR_CONFLICT, EEXIST,
						 "there is a sandbox '%s' already; remove or "
						 "rename it first",
						 to)
				       : err_sys(e, "rename '%s'", from);
	/* The other one stays, for the way back. Not every file system can exchange. */
	if (renameat2(o->dir, NEW_FILE, o->dir, DEF_FILE, RENAME_EXCHANGE) < 0)
		(void)renameat(o->dir, NEW_FILE, o->dir, DEF_FILE);
	return fsync(all) < 0 ? err_sys(e, "rename '%s'", from) : 0;
}

int def_rename(const char *state_dir, const char *from, const char *to, struct owned *o,
	       struct err *e)
{
	_close_ int all = open_all(state_dir);
	_cleanup_(def_done) struct def d = { 0 };
	int r = def_read(state_dir, from, &d, e);

	if (r < 0)
		return r;
	free(d.name);
	d.name = mem_str(to);
	r = write_new(o->dir, &d, e);
	if (r < 0)
		return r;
	r = move(all, from, to, o, e);
	if (r < 0)
		(void)unlinkat(o->dir, NEW_FILE, 0); /* of no use to anybody */
	return r;
}

int def_rename_back(const char *state_dir, const char *from, const char *to, struct owned *o,
		    struct err *e)
{
	_close_ int all = open_all(state_dir);

	return move(all, from, to, o, e);
}

void def_rename_done(struct owned *o)
{
	(void)unlinkat(o->dir, NEW_FILE, 0); /* left behind it does no harm */
}

/* ---- what runs ---- */

/* The socket of a keeper that died refuses; one that is alive is of another type than ours, and does not notice. */
static bool is_running(int all, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_close_ int dir = FD_NONE, fd = FD_NONE;
	char control[NAME_MAX + 16];

	/* Most do not run, and this is asked at each start: one system call for those. */
	(void)snprintf(control, sizeof(control), "%s/control", name);
	if (faccessat(all, control, F_OK, 0) < 0)
		return false;
	dir = openat(all, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/control", dir);
	return fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 ||
	       (errno != ECONNREFUSED && errno != ENOENT);
}

/* The workspace of a sandbox that runs; NULL: it cannot be read. */
static char *workspace_of(const char *state_dir, int all, const char *name)
{
	_cleanup_(def_done) struct def d = { 0 };
	struct err ignored = ERR_INIT;
	char link[NAME_MAX + 32], to[PATH_MAX];
	ssize_t n;

	if (def_read(state_dir, name, &d, &ignored) == 0)
		return take(d.workspace);
	/* A run without a name has no definition. */
	(void)snprintf(link, sizeof(link), "%s/" DEF_RUN_WORKSPACE, name);
	n = readlinkat(all, link, to, sizeof(to));
	return n > 0 && n < (ssize_t)sizeof(to) ? mem_strn(to, (size_t)n) : NULL;
}

/* A sandbox whose workspace is not known may work anywhere. */
static bool works_in(const char *state_dir, int all, const char *name, const char *workspace)
{
	_free_ char *its = workspace_of(state_dir, all, name);

	return its == NULL || path_is_beneath(its, workspace) || path_is_beneath(workspace, its);
}

char *def_runs_in(const char *state_dir, const char *workspace)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	DIR *d = opendir(path);
	struct dirent *en;
	char *name = NULL;

	while (d && name == NULL && (en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' && is_running(dirfd(d), en->d_name) &&
		    works_in(state_dir, dirfd(d), en->d_name, workspace))
			name = mem_str(en->d_name);
	if (d)
		(void)closedir(d);
	return name;
}

bool def_none_runs(const char *state_dir, const char *workspace)
{
	_free_ char *name = def_runs_in(state_dir, workspace);

	return name == NULL;
}

/* ---- what crashes left ---- */

/* Of a run without a name: its lock is free when its keeper is dead. */
static void remove_run(int all, const char *name)
{
	_close_ int dir = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int lock = dir < 0 ? FD_NONE : openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 || (lock < 0 && errno != ENOENT) ||
	    (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0))
		return;
	/* Without a lock it may be just being made, and only an empty directory may go. */
	if (lock >= 0)
		(void)path_remove(all, name); /* the next one tries again */
	else
		(void)unlinkat(all, name, AT_REMOVEDIR);
}

void def_clean(const char *state_dir, const char *except)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	DIR *d = opendir(path);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL) {
		if (str_starts(en->d_name, TRASH))
			(void)path_remove(dirfd(d), en->d_name); /* the next one tries again */
		else if (str_starts(en->d_name, "run-") &&
			 (except == NULL || !str_eq(en->d_name, except)))
			remove_run(dirfd(d), en->d_name);
	}
	if (d)
		(void)closedir(d);
}
