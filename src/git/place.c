/* SPDX-License-Identifier: Apache-2.0 */
/* git/place.c - where a workspace keeps its repository; and one remote in its configuration
 *
 * Read and written by hand: running git there would run what its configuration says.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "git/git.h"

#define TEXT_MAX (64 * KIB)
#define CONFIG_MAX MIB

/* A small text file, one line, without its end; NULL when it is anything else. */
static char *read_line(const char *path)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct err ignored;

	if (fd < 0 || io_read_fd(fd, &b, &ignored) < 0 || b.n < 2 || b.p[b.n - 1] != '\n')
		return NULL;
	b.p[--b.n] = '\0';
	return strlen(b.p) != b.n || strchr(b.p, '\n') ? NULL : mem_str(b.p);
}

static char *branch_of(const char *gitdir)
{
	_free_ char *path = mem_fmt("%s/HEAD", gitdir);
	_free_ char *line = read_line(path);

	return line && str_starts(line, "ref: refs/heads/") ? mem_str(line + strlen("ref: "
										    "refs/heads/"))
							    : NULL;
}

/* A linked worktree: the file names a directory of the repository, and that directory names the file. */
static int find_linked(const char *workspace, const char *file, struct git_place *ret,
		       struct err *e)
{
	_free_ char *line = read_line(file);
	_free_ char *own = NULL, *back_file = NULL, *back = NULL, *common_file = NULL,
		    *common = NULL;

	if (line && str_starts(line, "gitdir: "))
		own = path_join(workspace, line + strlen("gitdir: "));
	if (own) {
		back_file = mem_fmt("%s/gitdir", own);
		common_file = mem_fmt("%s/commondir", own);
		back = read_line(back_file);
		common = read_line(common_file);
	}
	if (back == NULL || common == NULL || !str_eq(back, file))
		return err_set(e, ERR_DENIED, EPERM,
			       "'%.200s' leads to a repository that does not know this worktree",
			       file);
	ret->dir = path_join(own, common);
	ret->branch = branch_of(own);
	return 0;
}

int git_place_find(const char *workspace, struct git_place *ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/.git", workspace);
	struct stat st;

	*ret = (struct git_place){ 0 };
	if (lstat(path, &st) < 0)
		return err_set(e, ERR_USAGE, ENOENT,
			       "workspace mode 'clone' needs a git repository: '%.200s' is not "
			       "the top of one",
			       workspace);
	if (S_ISREG(st.st_mode))
		return find_linked(workspace, path, ret, e);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_DENIED, EPERM, "'%.200s' is a link", path);
	ret->branch = branch_of(path);
	ret->dir = take(path);
	return 0;
}

void git_place_done(struct git_place *p)
{
	free(p->dir);
	free(p->branch);
	*p = (struct git_place){ 0 };
}

/* ---- the remote ---- */

/* The text without the section of this name. */
static bool without_section(const char *text, const char *header, struct buf *out)
{
	bool is_ours = false, found = false;

	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *p = text;

		n += text[n] == '\n';
		p += strspn(p, " \t");
		if (*p == '[') {
			is_ours = strncmp(p, header, strlen(header)) == 0;
			found |= is_ours;
		}
		if (!is_ours)
			buf_add(out, text, n);
		text += n;
	}
	return found;
}

static void put_quoted(struct buf *out, const char *s)
{
	buf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *s);
	}
	buf_putc(out, '"');
}

/* As git does it: the lock file is the new file. */
static int replace(const char *path, const struct buf *text, mode_t mode, struct err *e)
{
	_free_ char *lock = mem_fmt("%s.lock", path);
	_close_ int fd =
		open(lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
	int r;

	if (fd < 0)
		return err_sys(e, "'%s'", lock);
	r = io_write_all(fd, text->p, text->n);
	if (r == 0 && (fchmod(fd, mode & 0777) < 0 || rename(lock, path) < 0))
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlink(lock);
	return err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r));
}

/* With `url` the remote is put there, else taken away. 1: it was not there before. */
static int edit_remote(const char *workspace, const char *name, const char *url, struct err *e)
{
	_cleanup_(buf_done) struct buf old = BUF(CONFIG_MAX), new = BUF(2 * CONFIG_MAX);
	_cleanup_(git_place_done) struct git_place place = { 0 };
	_free_ char *header = mem_fmt("[remote \"vitrine/%s\"]", name);
	_free_ char *path = NULL;
	_close_ int fd = FD_NONE;
	struct stat st;
	bool was_there;
	int r = git_place_find(workspace, &place, e);

	if (r < 0)
		return r;
	path = mem_fmt("%s/config", place.dir);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", path);
	r = io_read_fd(fd, &old, e);
	if (r < 0)
		return r;
	if (strlen(buf_cstr(&old)) != old.n)
		return err_set(e, ERR_DENIED, EINVAL, "'%s' is not text", path);
	was_there = without_section(buf_cstr(&old), header, &new);
	if (url) {
		if (new.n > 0 && new.p[new.n - 1] != '\n')
			buf_putc(&new, '\n');
		buf_printf(&new, "%s\n\turl = ", header);
		put_quoted(&new, url);
		buf_printf(&new,
			   "\n\tfetch = +refs/heads/*:refs/remotes/vitrine/%s/*\n\ttagOpt = "
			   "--no-tags\n",
			   name);
	}
	if (new.n == old.n && memcmp(new.p, old.p, new.n) == 0)
		return 0;
	r = replace(path, &new, st.st_mode, e);
	return r < 0 ? r : !was_there;
}

int git_remote_put(const char *state_dir, const char *name, const char *workspace, struct err *e)
{
	_free_ char *url = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_REPO, state_dir, name);

	return edit_remote(workspace, name, url, e);
}

void git_remote_drop(const char *name, const char *workspace)
{
	struct err ignored;

	(void)edit_remote(workspace, name, NULL,
			  &ignored); /* a remote that leads nowhere does no harm */
}
