/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/skel.c - the skeleton: the read-only root directory, made once and kept
 *
 * state/skel/KEY/root is the tree; KEY is a hash of all that it is made from, so what is found under a key is what is
 * wanted. A new one is made beside and renamed into place. Users hold a shared lock on the directory; pruning takes an
 * exclusive one, so a tree is never removed below a running sandbox.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/native/native.h"

#define COPY_MAX (8 * MIB)
#define KEEP_SKELETONS 64

static int write_new(int dir, const char *name, const void *p, size_t n, mode_t mode, struct err *e)
{
	_close_ int fd =
		openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return err_sys(e, "create '%s'", name);
	r = io_write_all(fd, p, n);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write '%s'", name);
	}
	return 0;
}

static int make_entry(int root, const struct skel *s, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(COPY_MAX);
	_free_ char *parent = path_parent(s->path);
	int r = path_mkdirs(root, parent, 0755);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "skeleton '%s': %s", s->path,
			       strerrordesc_np(-r));
	switch (s->kind) {
	case SKEL_DIR:
		r = path_mkdirs(root, s->path, 0755);
		if (r == 0 && s->mode != 0755 && fchmodat(root, s->path, s->mode, 0) < 0)
			r = -errno;
		return r < 0 ? err_set(e, ERR_SYSTEM, -r, "skeleton '%s': %s", s->path,
				       strerrordesc_np(-r))
			     : 0;
	case SKEL_LINK:
		return symlinkat(s->text, root, s->path) < 0 ? err_sys(e, "link '%s'", s->path) : 0;
	case SKEL_FILE:
		return write_new(root, s->path, s->text, strlen(s->text), s->mode, e);
	case SKEL_COPY:
		r = io_read_file(s->text, &b, e);
		return r < 0 ? r : write_new(root, s->path, buf_cstr(&b), b.n, s->mode, e);
	case SKEL_TREE: /* make_tree() */
	case SKEL_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return 0;
}

/* ---- trees ---- */

static bool has_path(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_skel; i++)
		if (str_eq(p->skel[i].path, path) && p->skel[i].kind != SKEL_DIR)
			return true;
	return false;
}

/* "f MODE PATH" or "l PATH TARGET", of a list that is ours. */
static int tree_line(const struct plan *p, const char *tree, char *line, skel_fn fn, void *arg,
		     struct err *e)
{
	char *second = strlen(line) > 2 ? strchr(line + 2, ' ') : NULL;
	_free_ char *path = NULL, *text = NULL;
	struct skel s = { .mode = 0644 };

	if (second == NULL || (line[0] != 'f' && line[0] != 'l'))
		return err_set(e, ERR_BUG, EINVAL, "'%s/index' is not whole; remove it", tree);
	*second++ = '\0';
	path = mem_fmt("etc/%s", line[0] == 'f' ? second : line + 2);
	text = line[0] == 'f' ? mem_fmt("%s/files/%s", tree, second) : mem_str(second);
	s.kind = line[0] == 'f' ? SKEL_COPY : SKEL_LINK;
	s.mode = str_eq(line + 2, "755") ? 0755 : 0644;
	s.path = path;
	s.text = text;
	return has_path(p, path) ? 0 : fn(arg, &s, e);
}

int skel_tree_each(const struct plan *p, const struct skel *tree, skel_fn fn, void *arg,
		   struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(COPY_MAX);
	_free_ char *index = mem_fmt("%s/index", tree->text);
	int r = io_read_file(index, &b, e);

	for (char *at = b.p; r >= 0 && at && *at;) {
		size_t n = strcspn(at, "\n");
		bool is_end = at[n] == '\0';

		at[n] = '\0';
		r = tree_line(p, tree->text, at, fn, arg, e);
		at += is_end ? n : n + 1;
	}
	return r < 0 ? r : 0;
}

struct making {
	int root;
};

/* A file of the tree gets another name: the tree is ours, has the right modes and is never written to again, and a new file
 * costs twenty times as much. */
static bool link_file(int root, const struct skel *s)
{
	_free_ char *parent = path_parent(s->path);

	return s->kind == SKEL_COPY && path_mkdirs(root, parent, 0755) == 0 &&
	       linkat(AT_FDCWD, s->text, root, s->path, 0) == 0;
}

/* What does not fit what is there already, a link in the place of a directory for example, is left out. */
static int make_in_tree(void *arg, const struct skel *s, struct err *e)
{
	const struct making *m = arg;
	struct err ignored = ERR_INIT;
	int r = link_file(m->root, s) ? 0 : make_entry(m->root, s, &ignored);

	if (r < 0 && r != -EEXIST && r != -ENOTDIR && r != -ELOOP && r != -EISDIR) {
		*e = ignored;
		return r;
	}
	return 0;
}

static int make_part(int root, const struct plan *p, const struct skel *s, struct err *e)
{
	struct making m = { .root = root };

	return s->kind == SKEL_TREE ? skel_tree_each(p, s, make_in_tree, &m, e)
				    : make_entry(root, s, e);
}

/* Drops skeletons that nobody uses when there are many. */
static void prune(int dir, const char *keep)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *en;
	int n = 0;

	while (d && (en = readdir(d)) != NULL) {
		_close_ int fd = FD_NONE;

		if (en->d_name[0] == '.' || str_eq(en->d_name, keep) || ++n < KEEP_SKELETONS)
			continue;
		fd = openat(dir, en->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			path_remove(dir, en->d_name);
	}
	if (d)
		(void)closedir(d);
}

static int make_skeleton(int dir, const struct plan *p, struct err *e)
{
	_close_ int tmp = FD_NONE, root = FD_NONE;
	uint64_t random = 0;
	char name[40];
	mode_t mask;
	int r = 0;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(e, "getrandom");
	(void)snprintf(name, sizeof(name), ".new-%016llx", (unsigned long long)random);
	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(e, "create skeleton");
	tmp = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tmp < 0 || mkdirat(tmp, "root", 0755) < 0 || fchmodat(tmp, "root", 0755, 0) < 0)
		return err_sys(e, "create skeleton");
	root = openat(tmp, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_sys(e, "create skeleton");
	/* Whoever is inside must get through it, root's sandboxes as somebody else, whatever the caller is used to. */
	mask = umask(022);
	for (size_t i = 0; r == 0 && i < p->n_skel; i++)
		r = make_part(root, p, &p->skel[i], e);
	(void)umask(mask);
	if (r == 0 && renameat(dir, name, dir, p->skel_key) < 0 && errno != EEXIST &&
	    errno != ENOTEMPTY)
		r = err_sys(e, "skeleton");
	path_remove(dir, name); /* gone already when it was renamed */
	prune(dir, p->skel_key);
	return r;
}

int skel_path(const struct plan *p, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/skel/%s/root", p->state_dir, p->skel_key);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int skel_open(const struct plan *p, struct err *e)
{
	_free_ char *path = mem_fmt("%s/skel", p->state_dir);
	_close_ int dir = FD_NONE;

	for (int attempt = 0; attempt < 4; attempt++) {
		_close_ int fd = FD_NONE;
		int r;

		if (dir < 0)
			dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0) {
			r = path_make(path, 0700);
			if (r < 0)
				return err_set(e, ERR_SYSTEM, -r, "state directory '%s': %s", path,
					       strerrordesc_np(-r));
			continue;
		}
		fd = openat(dir, p->skel_key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && faccessat(fd, "root", F_OK, 0) == 0)
			return take_fd(fd);
		r = make_skeleton(dir, p, e);
		if (r < 0)
			return r;
	}
	return err_set(e, ERR_SYSTEM, EAGAIN, "the skeleton in '%s' changes under our hands", path);
}
