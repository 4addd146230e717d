/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay_join.c - see overlay.h: many layers become one that shows the same
 *
 * Nothing is copied and nothing is lost: a file of the new layer is one more name of the old one, which never changes again,
 * with its owner, mode, attributes and links; so is the mark of a name that is gone. Only directories are made, each like the
 * topmost that shows, and opaque where one of them hides what lies below. The tree below all layers need not be known for this.
 *
 * Like overlay.c it walks by a stack of paths and believes nothing that lies in a layer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "tree/content.h"
#include "tree/overlay_own.h"

#define OPAQUE "user.overlay.opaque"

/* A directory that both have: its layers, from the first that shows it to the last that is not hidden. */
struct level {
	char *path;
	size_t first, end;
};

struct join {
	const struct overlay *o;
	int to;
	struct level *v;
	size_t n, cap;
	struct level *made; /* in the order of making; their times are set at the end */
	size_t n_made, cap_made;
	struct err *e;
};

static int failed(const struct join *j, const char *path)
{
	return err_sys(j->e, "layer: '%.200s'", path);
}

/* ---- one name ---- */

static int open_parent(const struct join *j, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	_free_ char *dir = mem_strn(path, slash ? (size_t)(slash - path) : 0);

	*ret_name = slash ? slash + 1 : path;
	return tree_open(j->to, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

static int link_one(const struct join *j, const char *path, size_t layer)
{
	_close_ int from = tree_open(j->o->layers[layer], path, O_PATH | O_NOFOLLOW);
	const char *name;
	_close_ int dir = open_parent(j, path, &name);
	char proc[64];

	if (from < 0 || dir < 0) {
		errno = from < 0 ? -from : -dir;
		return failed(j, path);
	}
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", from);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW) < 0 ? failed(j, path) : 0;
}

/* All attributes but the overlay's own. One that cannot be had is not worth the tree. */
static void copy_xattrs(int from, int to)
{
	char names[4096], value[65536];
	ssize_t n = flistxattr(from, names, sizeof(names));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t size = str_starts(names + at, "user.overlay.")
				       ? -1
				       : fgetxattr(from, names + at, value, sizeof(value));

		if (size >= 0)
			(void)fsetxattr(to, names + at, value, (size_t)size, 0);
	}
}

static int make_dir(struct join *j, const struct level *l, bool is_opaque)
{
	const char *name;
	_close_ int dir = open_parent(j, l->path, &name);
	_close_ int from =
		tree_open(j->o->layers[l->first], l->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	_close_ int to = FD_NONE;
	struct stat st;

	if (dir < 0 || from < 0) {
		errno = dir < 0 ? -dir : -from;
		return failed(j, l->path);
	}
	if (mkdirat(dir, name, 0700) < 0)
		return failed(j, l->path);
	to = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || fstat(from, &st) < 0 ||
	    (geteuid() == 0 && fchown(to, st.st_uid, st.st_gid) < 0) ||
	    (is_opaque && fsetxattr(to, OPAQUE, "y", 1, 0) < 0))
		return failed(j, l->path);
	copy_xattrs(from, to);
	vec_reserve(j->made, j->n_made, j->cap_made);
	j->made[j->n_made++] = (struct level){ .path = mem_str(l->path), .first = l->first };
	return 0;
}

/* ---- the walk ---- */

static int visit(struct join *j, const struct level *l)
{
	struct overlay_shown s = overlay_ask(j->o, l->path, l->first, l->end);
	struct level below = { .first = s.first, .end = s.end };
	int r;

	if (s.says == SAYS_NOTHING)
		return 0;
	if (s.says == SAYS_FILE || s.says == SAYS_GONE)
		return link_one(j, l->path, s.first);
	below.path = mem_str(l->path);
	r = make_dir(j, &below, !s.base_shows);
	if (r < 0) {
		free(below.path);
		return r;
	}
	vec_reserve(j->v, j->n, j->cap);
	j->v[j->n++] = below;
	return 0;
}

/* All names of a directory, each once. */
static int visit_below(struct join *j, const struct level *l)
{
	_cleanup_(overlay_list_done) struct overlay_list names = { 0 };
	int r = 0;

	for (size_t k = l->first; r == 0 && k < l->end; k++) {
		int x = overlay_list(j->o->layers[k], l->path, &names);

		if (x < 0) {
			errno = -x;
			r = failed(j, l->path);
		}
	}
	overlay_list_sort(&names);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct level next = { .first = l->first, .end = l->end };

		if (i > 0 && str_eq(names.v[i], names.v[i - 1]))
			continue;
		next.path =
			l->path[0] ? mem_fmt("%s/%s", l->path, names.v[i]) : mem_str(names.v[i]);
		r = visit(j, &next);
		free(next.path);
	}
	return r;
}

/* Modes and times come last: what is closed could not be filled, and filling changes the time. */
static int settle(const struct join *j)
{
	for (size_t i = j->n_made; i-- > 0;) {
		const struct level *l = &j->made[i];
		_close_ int from = tree_open(j->o->layers[l->first], l->path, O_PATH | O_NOFOLLOW);
		_close_ int to = tree_open(j->to, l->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		struct timespec times[2];
		struct stat st;

		if (from < 0 || to < 0 || fstat(from, &st) < 0)
			return failed(j, l->path);
		times[0] = st.st_atim;
		times[1] = st.st_mtim;
		if (futimens(to, times) < 0 || fchmod(to, st.st_mode & 07777) < 0)
			return failed(j, l->path);
	}
	return 0;
}

int overlay_join(const struct overlay *o, int to, struct err *e)
{
	struct join j = { .o = o, .to = to, .e = e };
	struct stat st;
	int r = 0;

	if (geteuid() == 0 && o->n > 0 &&
	    (fstat(o->layers[0], &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0))
		return failed(&j, "");
	vec_reserve(j.v, j.n, j.cap);
	j.v[j.n++] = (struct level){ .path = mem_str(""), .end = o->n };
	while (j.n > 0) {
		struct level l = j.v[--j.n];

		if (r == 0)
			r = visit_below(&j, &l);
		free(l.path);
	}
	if (r == 0)
		r = settle(&j);
	for (size_t i = 0; i < j.n_made; i++)
		free(j.made[i].path);
	free(j.made);
	free(j.v);
	return r;
}
