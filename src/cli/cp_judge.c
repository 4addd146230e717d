/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cp_judge.c - see cp_judge.h
 *
 * What comes lies in a directory of ours (on its way out) or of the host (on its way in); the tree that is judged is that
 * one, laid over what is at the destination. Only the workspace is walked: a destination elsewhere may be a whole home
 * directory, and what its own repository names is found in one file.
 */
#include "cli/cp_judge.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/spot.h"

/* The path of rel in `from`, or NULL: rel does not lie where the copy goes. */
static char *coming(const struct cp_judge *j, const char *rel)
{
	size_t n = strlen(j->at);

	if (strncmp(rel, j->at, n) != 0 || (rel[n] != '\0' && rel[n] != '/'))
		return NULL;
	return mem_fmt("%s%s", j->name, rel + n);
}

static int open_in(int dir, const char *rel, int flags)
{
	return path_openat2(dir, rel[0] ? rel : ".", flags,
			    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* What would be at rel: what comes, else what is there. */
static int open_after(const struct cp_judge *j, const char *rel, int flags)
{
	_free_ char *path = coming(j, rel);
	int fd = path ? open_in(j->from, path, flags) : -ENOENT;

	return fd == -ENOENT || fd == -ENOTDIR ? open_in(j->root, rel, flags) : fd;
}

static unsigned char type_of(void *arg, const char *rel, mode_t *ret_mode)
{
	_close_ int fd = open_after(arg, rel, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd == -ELOOP)
		return DT_LNK;
	if (fd < 0 || fstat(fd, &st) < 0)
		return DT_UNKNOWN;
	*ret_mode = st.st_mode;
	return IFTODT(st.st_mode);
}

static int read_after(void *arg, const char *rel, struct buf *out)
{
	_close_ int fd = open_after(arg, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return io_read_regular(fd, out);
}

static bool is_old(void *arg, const char *rel)
{
	const struct cp_judge *j = arg;
	_free_ char *path = coming(j, rel);
	_close_ int comes = path ? open_in(j->from, path, O_PATH | O_NOFOLLOW) : -ENOENT;
	_close_ int there = open_in(j->root, rel, O_PATH | O_NOFOLLOW);

	return comes < 0 && there >= 0;
}

static bool is_bare(const char *path)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		_free_ char *part = path_join(path, parts[i]);

		if (lstat(part, &st) < 0)
			return false;
	}
	return !str_eq(path_name(path), ".git");
}

/* The top of the git work tree, or the bare repository, that holds `path`; NULL: none. */
static char *find_top(const char *path)
{
	_free_ char *at = mem_str(path);

	for (;;) {
		_free_ char *git = path_join(at, ".git");
		char *up;
		struct stat st;

		if (lstat(git, &st) == 0 || is_bare(at))
			return take(at);
		if (str_eq(at, "/"))
			return NULL;
		up = path_parent(at);
		free(at);
		at = up;
	}
}

static int find_root(struct cp_judge *j, const struct cp_judged *in, const char *dest,
		     struct err *e)
{
	bool is_ws = path_is_beneath(dest, in->def->workspace);
	_free_ char *top = is_ws ? mem_str(in->def->workspace) : find_top(dest);
	_free_ char *at = NULL;

	j->root_path = top ? take(top) : mem_str(dest);
	at = path_join(dest, in->to);
	j->at = mem_str(path_below(at, j->root_path));
	j->root = open(j->root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->root < 0)
		return err_sys(e, "'%s'", j->root_path);
	return is_ws ? outcome_host_load(j->root, &j->policy, &j->host, e)
		     : outcome_host_top(j->root, &j->host, e);
}

int cp_judge_begin(struct cp_judge *j, const struct cp_judged *in, struct err *e)
{
	_free_ char *dest = NULL;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", in->dest);
	r = path_real(path, &dest, e);
	if (r == 0)
		r = spot_policy(in->host, in->def, &j->policy, e);
	j->has_policy = true;
	j->from = in->from;
	j->name = in->name;
	if (r == 0)
		r = find_root(j, in, dest, e);
	j->tree = (struct outcome_tree){ .p = &j->policy,
					 .host = &j->host,
					 .type = type_of,
					 .read = read_after,
					 .is_old = is_old,
					 .arg = j };
	return r;
}

void cp_judge_done(struct cp_judge *j)
{
	outcome_done(&j->tree);
	outcome_host_done(&j->host);
	if (j->has_policy)
		policy_done(&j->policy);
	fd_close(j->root);
	free(j->root_path);
	free(j->at);
}

char *cp_judge_why(struct cp_judge *j, const char *below)
{
	_free_ char *rel = below[0] ? mem_fmt("%s/%s", j->at, below) : mem_str(j->at);

	return outcome_why(&j->tree, rel);
}
