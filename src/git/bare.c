/* SPDX-License-Identifier: Apache-2.0 */
/* git/bare.c - a bare repository of ours: made by hand, looked at with distrust
 *
 * It is made without git, so that nothing of a template or of anybody's configuration is in it. What writes into it
 * later sees only objects/ and refs/. Whoever relies on it (the user's own git, a push) reads those two, so both are
 * walked: a link or a device among them, a ref that points elsewhere, or `alternates`, which would make another
 * repository's objects part of this one, is refused.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "git/git.h"

#define DEPTH_MAX 32
#define REFS_MAX 100000

static int put_file(const char *dir, const char *name, const char *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text, strlen(text));

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* Built beside its place and renamed: it is there as a whole or not at all. */
int git_bare_make(const char *path, struct err *e)
{
	static const char *const dirs[] = { "objects/pack", "objects/info", "refs/heads" };
	_free_ char *part = mem_fmt("%s.part", path), *parent = path_parent(path);
	_close_ int dir = FD_NONE;
	struct stat st;
	int r = 0;

	if (lstat(path, &st) == 0)
		return 0;
	dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "'%s'", parent);
	(void)path_remove(
		dir,
		path_name(part)); /* somebody was killed at it; if it stays, the rest says so */
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
		_free_ char *sub = mem_fmt("%s/%s", part, dirs[i]);

		r = path_make(sub, 0700);
	}
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", part, strerrordesc_np(-r));
	r = put_file(part, "config",
		     "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
		     "[gc]\n\tauto = 0\n[receive]\n\tdenyNonFastForwards = true\n",
		     e);
	if (r == 0)
		r = put_file(part, "HEAD", "ref: refs/vitrine/none\n", e);
	if (r == 0 && rename(part, path) < 0)
		r = err_sys(e, "'%s'", path);
	return r;
}

/* A file of that name beside it is git's own way to write a ref as a whole. */
static int ref_write(int dir, const char *name, const char *oid)
{
	_free_ char *lock = mem_fmt("%s.lock", name), *text = mem_fmt("%s\n", oid);
	_close_ int fd = FD_NONE;
	int r;

	(void)unlinkat(dir, lock, 0); /* of one that was killed */
	fd = openat(dir, lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, strlen(text));
	if (r == 0 && renameat(dir, lock, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, lock, 0); /* r says what failed */
	return r;
}

/* Directories that hold no ref any more stand in the way of a ref of their name. */
static void drop_empty(int top, const char *rel)
{
	_free_ char *up = path_parent(rel);

	while (!str_eq(up, "refs/heads") && strchr(up, '/') &&
	       unlinkat(top, up, AT_REMOVEDIR) == 0) {
		char *next = path_parent(up);

		free(up);
		up = next;
	}
}

int git_ref_put(const char *path, const char *name, const char *oid, struct err *e)
{
	_close_ int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_free_ char *up = path_parent(name);
	_close_ int dir = FD_NONE;
	int r = top < 0 ? -errno : 0;

	if (r == 0 && oid) {
		(void)unlinkat(top, name, AT_REMOVEDIR); /* empty, of refs that are gone */
		r = path_mkdirs(top, up, 0700);
	}
	if (r == 0)
		r = dir = path_openat2(top, up, O_RDONLY | O_DIRECTORY,
				       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (r >= 0 && oid)
		r = ref_write(dir, path_name(name), oid);
	else if (r >= 0)
		r = unlinkat(dir, path_name(name), 0) < 0 && errno != ENOENT ? -errno : 0;
	if (r >= 0 && oid == NULL)
		drop_empty(top, name);
	return r < 0 && (oid || r != -ENOENT)
		       ? err_set(e, ERR_SYSTEM, -r, "'%.200s' in '%.200s': %s", name, path,
				 strerrordesc_np(-r))
		       : 0;
}

/* ---- looking ---- */

struct look {
	const char *path;
	struct git_refs refs;
	struct err *e;
};

static int refuse(const struct look *l, const char *rel, const char *why)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	buf_esc(&b, rel, strlen(rel));
	return err_set(l->e, ERR_DENIED, EPERM, "repository '%.160s': '%.200s' %s", l->path,
		       buf_cstr(&b), why);
}

static bool is_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	return true;
}

static int add_ref(struct look *l, int dir, const char *name, const char *rel)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[GIT_OID_BYTES + 2] = "";
	ssize_t n = fd < 0 ? -errno : io_read(fd, text, sizeof(text));
	struct git_ref *r;

	if (n < 0)
		return refuse(l, rel, "cannot be read");
	if (str_ends(rel, ".lock"))
		return 0; /* of one that was killed */
	if ((n != 41 && n != 65) || text[n - 1] != '\n' || !is_hex(text, (size_t)n - 1))
		return refuse(l, rel, "is not the name of one object");
	if (l->refs.n == REFS_MAX)
		return refuse(l, rel, "is one ref too many");
	l->refs.v = mem_grow(l->refs.v, l->refs.n + 1, sizeof(*l->refs.v));
	r = &l->refs.v[l->refs.n++];
	r->name = mem_str(rel);
	memcpy(r->oid, text, (size_t)n - 1);
	r->oid[n - 1] = '\0';
	return 0;
}

static int look_dir(struct look *l, int take_fd, const char *rel, bool is_refs, int depth);

static int look_at(struct look *l, int dir, const char *name, const char *rel, bool is_refs,
		   int depth)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse(l, rel, "vanished");
	if (S_ISREG(st.st_mode)) {
		if (!is_refs && (str_eq(name, "alternates") || str_eq(name, "http-alternates")))
			return refuse(l, rel, "would lend it another repository's objects");
		return is_refs ? add_ref(l, dir, name, rel) : 0;
	}
	if (!S_ISDIR(st.st_mode))
		return refuse(l, rel, "is neither a plain file nor a directory");
	if (depth == DEPTH_MAX)
		return refuse(l, rel, "is too deep");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? refuse(l, rel, "cannot be opened")
		      : look_dir(l, fd, rel, is_refs, depth + 1);
}

static int look_dir(struct look *l, int take_fd, const char *rel, bool is_refs, int depth)
{
	DIR *d = fdopendir(take_fd);
	struct dirent *en;
	int r = 0;

	if (d == NULL) {
		fd_close(take_fd);
		return refuse(l, rel, "cannot be read");
	}
	while (r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *below = mem_fmt("%s/%s", rel, en->d_name);

		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			r = look_at(l, dirfd(d), en->d_name, below, is_refs, depth);
	}
	(void)closedir(d);
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct git_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int git_bare_look(const char *path, struct git_refs *ret, struct err *e)
{
	static const char *const known[] = { "HEAD", "config", "objects", "refs" };
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct look l = { .path = path, .e = e };
	DIR *d = dir < 0 ? NULL : fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 3));
	struct dirent *en;
	int r = 0;

	if (d == NULL)
		return err_sys(e, "repository '%s'", path);
	while (r == 0 && (en = readdir(d)) != NULL) {
		bool is_known = en->d_name[0] == '.' && (!en->d_name[1] || str_eq(en->d_name, "."
											      "."));

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			is_known |= str_eq(en->d_name, known[i]);
		if (!is_known)
			r = refuse(&l, en->d_name, "does not belong into it");
	}
	(void)closedir(d);
	if (r == 0)
		r = look_at(&l, dir, "objects", "objects", false, 0);
	if (r == 0)
		r = look_at(&l, dir, "refs", "refs", true, 0);
	if (r < 0) {
		git_refs_done(&l.refs);
		return r;
	}
	if (l.refs.n > 0)
		qsort(l.refs.v, l.refs.n, sizeof(*l.refs.v), by_name);
	*ret = l.refs;
	return 0;
}

void git_refs_done(struct git_refs *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].name);
	free(r->v);
	*r = (struct git_refs){ 0 };
}

const struct git_ref *git_refs_find(const struct git_refs *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->v[i].name, name))
			return &r->v[i];
	return NULL;
}
