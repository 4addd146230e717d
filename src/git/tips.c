/* SPDX-License-Identifier: Apache-2.0 */
/* git/tips.c - which commits of a clone nobody outside has yet
 *
 * Only names of objects are compared; no git is run. A branch of the clone waits when its commit is neither what a ref
 * of the workspace's repository names now nor what one named at the last start. The clone's own refs lie in layers that
 * the inside writes: nothing in them is followed, and what is not the name of an object is no ref. Every doubt counts
 * as waiting: a branch that was merged and has no ref any more, or whose directory was replaced inside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "base/path.h"
#include "git/git.h"

#define TIPS_MAX 2000
#define LOOK_MAX 200000 /* names of refs that are looked at */
#define DEPTH_MAX 12
#define PACKED_MAX (64 * MIB)

typedef void ref_fn(void *arg, const char *name, const char *oid);

struct walk {
	ref_fn *fn;
	void *arg;
	size_t n;
};

static size_t hex_length(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n == 40 || n == 64 ? n : 0;
}

/* "" for what is no name of an object. */
static void read_oid(int dir, const char *name, char oid[GIT_OID_BYTES])
{
	_close_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[GIT_OID_BYTES + 2] = "";
	ssize_t n = fd < 0 ? -1 : io_read(fd, text, sizeof(text) - 1);
	size_t len = n > 0 ? hex_length(text) : 0;

	oid[0] = '\0';
	if (len == 0 || (text[len] != '\n' && text[len] != '\0'))
		return;
	memcpy(oid, text, len);
	oid[len] = '\0';
}

static int walk_dir(struct walk *w, int dir, const char *rel, int depth);

static int walk_one(struct walk *w, int dir, const char *name, const char *rel, int depth)
{
	_close_ int sub = FD_NONE;
	char oid[GIT_OID_BYTES] = "";
	struct stat st;

	if (++w->n > LOOK_MAX)
		return -E2BIG;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode)) {
		if (depth == DEPTH_MAX)
			return -E2BIG;
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return sub < 0 ? -errno : walk_dir(w, sub, rel, depth + 1);
	}
	if (S_ISREG(st.st_mode))
		read_oid(dir, name, oid);
	/* A layer's mark of what was removed hides what lies below it. */
	if (oid[0] || (S_ISCHR(st.st_mode) && st.st_rdev == 0))
		w->fn(w->arg, rel, oid);
	return 0;
}

static int walk_dir(struct walk *w, int dir, const char *rel, int depth)
{
	int again = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct dirent *en;
	int r = 0;

	if (d == NULL) {
		fd_close(again);
		return -errno;
	}
	while (r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *below = mem_fmt("%s/%s", rel, en->d_name);

		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			r = walk_one(w, dir, en->d_name, below, depth);
	}
	(void)closedir(d);
	return r;
}

static int walk_loose(struct walk *w, int gitdir)
{
	_close_ int refs = openat(gitdir, "refs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (refs < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return walk_dir(w, refs, "refs", 0);
}

/* Lines "OID NAME"; those that begin with '#' or '^' say more about others. 1: there is such a file, or its removal. */
static int walk_packed(struct walk *w, int gitdir)
{
	_close_ int fd = openat(gitdir, "packed-refs",
				O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF(PACKED_MAX);
	struct err ignored;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno == ENXIO || errno == ELOOP ? 1 : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 1;
	if (io_read_fd(fd, &text, &ignored) < 0)
		return -E2BIG;
	for (char *p = text.p, *end; p && *p; p = end) {
		size_t n = strcspn(p, "\n"), len = hex_length(p);

		end = p + n + (p[n] == '\n');
		p[n] = '\0';
		if (len == 0 || p[len] != ' ')
			continue;
		if (++w->n > LOOK_MAX)
			return -E2BIG;
		p[len] = '\0';
		w->fn(w->arg, p + len + 1, p);
	}
	return 1;
}

/* ---- what the clone has ---- */

static bool has_oid(const struct git_refs *r, const char *oid)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->v[i].oid, oid))
			return true;
	return false;
}

static void add(struct git_refs *r, const char *name, const char *oid)
{
	r->v = mem_grow(r->v, r->n + 1, sizeof(*r->v));
	r->v[r->n].name = mem_str(name);
	(void)snprintf(r->v[r->n].oid, GIT_OID_BYTES, "%s", oid);
	r->n++;
}

/* The first that is seen of a name is the one on top. */
static void add_tip(void *arg, const char *name, const char *oid)
{
	struct git_refs *r = arg;

	if (str_starts(name, "refs/heads/") && r->n < TIPS_MAX && git_refs_find(r, name) == NULL)
		add(r, name, oid);
}

static void drop_if(struct git_refs *r, const char *oid)
{
	for (size_t i = 0; i < r->n;)
		if (str_eq(r->v[i].oid, oid)) {
			free(r->v[i].name);
			r->v[i] = r->v[--r->n];
		} else {
			i++;
		}
}

static int clone_tips(const int *layers, size_t n, struct git_refs *ret)
{
	struct walk w = { .fn = add_tip, .arg = ret };
	int git[GIT_LAYERS_MAX], r = n > GIT_LAYERS_MAX ? -E2BIG : 0;
	char head[GIT_OID_BYTES] = "";

	n = r < 0 ? 0 : n;
	for (size_t i = 0; i < n; i++) {
		git[i] = openat(layers[i], ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (git[i] < 0 && errno != ENOENT && errno != ENOTDIR)
			r = -errno;
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = git[i] < 0 ? 0 : walk_loose(&w, git[i]);
	/* Marks of removed files hide files, not what the names mean by then. */
	drop_if(ret, "");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = git[i] < 0 ? 0 : walk_packed(&w, git[i]);
	/* Commits on no branch. */
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (git[i] >= 0 && faccessat(git[i], "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			read_oid(git[i], "HEAD", head);
			break;
		}
	if (r >= 0 && head[0] && !has_oid(ret, head))
		add(ret, "HEAD", head);
	for (size_t i = 0; i < n; i++)
		fd_close(git[i]);
	return r < 0 || ret->n >= TIPS_MAX ? -E2BIG : 0;
}

/* ---- what is known outside ---- */

static void forget(void *arg, const char *name, const char *oid)
{
	(void)name;
	drop_if(arg, oid);
}

static int forget_known(const char *workspace, struct git_refs *tips)
{
	_cleanup_(git_place_done) struct git_place place = { 0 };
	struct walk w = { .fn = forget, .arg = tips };
	_close_ int dir = FD_NONE;
	struct err ignored = ERR_INIT;
	int r;

	if (tips->n == 0 || git_place_find(workspace, &place, &ignored) < 0)
		return 0; /* then nothing is known there */
	dir = open(place.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? -errno : walk_loose(&w, dir);
	if (r == 0)
		r = walk_packed(&w, dir);
	return r < 0 ? r : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct git_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int git_clone_waits(const char *bare, const char *workspace, const int *layers, size_t n,
		    struct git_refs *ret, struct err *e)
{
	_cleanup_(git_refs_done) struct git_refs tips = { 0 }, out = { 0 };
	int r = git_bare_look(bare, &out, e);

	if (r < 0)
		return r;
	r = clone_tips(layers, n, &tips);
	/* What came out and was removed inside since is waiting too. */
	for (size_t i = 0; i < out.n; i++)
		if (str_starts(out.v[i].name, "refs/heads/") && !has_oid(&tips, out.v[i].oid))
			add(&tips, out.v[i].name, out.v[i].oid);
	for (size_t i = 0; i < out.n; i++)
		if (!str_starts(out.v[i].name, "refs/heads/") &&
		    !str_starts(out.v[i].name, GIT_REFS_WAITING))
			drop_if(&tips, out.v[i].oid);
	if (r == 0)
		r = forget_known(workspace, &tips);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "the branches cannot be read: %s",
			       strerrordesc_np(-r));
	if (tips.n > 1)
		qsort(tips.v, tips.n, sizeof(*tips.v), by_name);
	*ret = tips;
	tips = (struct git_refs){ 0 };
	return 0;
}
