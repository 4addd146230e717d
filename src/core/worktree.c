/* SPDX-License-Identifier: Apache-2.0 */
/* core/worktree.c - see worktree.h
 *
 * Every file of the place may have been written inside: it is opened beneath the place, following no link, and read only
 * when it is regular and small. A ref is taken over when it is one object name, and when the host still has the value
 * that was copied at the start; the host's file is replaced under git's own lock (REF.lock, made with O_EXCL).
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/def.h"
#include "core/worktree.h"

#define TEXT_MAX (64 * KIB)
#define LOG_MAX (16 * MIB)
#define PACKED_MAX (64 * MIB)
#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define STASH "refs/stash"
#define REFS_MAX 20000
#define REFS_DEPTH 32

void worktree_done(struct worktree *w)
{
	free(w->common);
	free(w->own);
	free(w->branch);
	*w = (struct worktree){ 0 };
}

/* ---- small reads ---- */

/* A regular file below dir: its text, or -errno. */
static int read_at(int dir, const char *rel, struct buf *out)
{
	_close_ int fd = path_openat2(dir, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY, SAFE);

	return io_read_regular(fd, out);
}

/* One line, without its end; NULL: it is not there or is something else. */
static char *line_at(int dir, const char *rel)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	size_t n;

	if (read_at(dir, rel, &b) < 0 || b.n == 0 || memchr(b.p, '\0', b.n))
		return NULL;
	n = strcspn(b.p, "\n");
	return n + 1 >= b.n ? mem_strn(b.p, n) : NULL;
}

static int open_dir(const char *path)
{
	return path_openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY,
			    RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static bool is_object(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return s[n] == '\0' && (n == 40 || n == 64);
}

bool worktree_is_branch(const char *ref)
{
	size_t n = strlen(ref);

	if (!str_starts(ref, "refs/heads/") || n > 240 || ref[n - 1] == '/' || strstr(ref, "..") ||
	    strstr(ref, "/.") || strstr(ref, "//") || strstr(ref, ".lock") || strstr(ref, "@{"))
		return false;
	for (const char *p = ref; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || strchr("~^:?*[\\", *p))
			return false;
	return true;
}

/* The value of a ref, loose or packed; NULL: there is none. */
static char *ref_at(int git, const char *ref)
{
	_cleanup_(buf_done) struct buf b = BUF(PACKED_MAX);
	_free_ char *loose = line_at(git, ref);
	size_t len = strlen(ref);

	if (loose)
		return is_object(loose) ? take(loose) : NULL;
	if (read_at(git, "packed-refs", &b) < 0)
		return NULL;
	for (const char *p = buf_cstr(&b); *p;) {
		size_t n = strcspn(p, "\n"), hex = strcspn(p, " \n");

		if ((hex == 40 || hex == 64) && n == hex + 1 + len &&
		    memcmp(p + hex + 1, ref, len) == 0)
			return mem_strn(p, hex);
		p += n + (p[n] == '\n');
	}
	return NULL;
}

/* ---- is it one, and may it be opened ---- */

static bool is_mine(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_IWOTH);
}

static const char *check(struct worktree *w, const char *workspace)
{
	_close_ int common = open_dir(w->common), own = open_dir(w->own);
	_close_ int back = FD_NONE, ws = open_dir(workspace), info = FD_NONE;
	_free_ char *gitdir = NULL, *up = NULL, *head = NULL;
	_free_ char *self = mem_fmt("%s/.git", workspace);

	if (common < 0 || own < 0 || ws < 0)
		return "it is not there, or a link leads to it";
	if (path_is_beneath(workspace, w->common) || path_is_beneath(w->common, workspace))
		return "workspace and repository lie in each other";
	back = path_openat2(own, "gitdir", O_RDONLY, SAFE);
	info = path_openat2(common, "objects/info", O_RDONLY | O_DIRECTORY, SAFE);
	gitdir = line_at(own, "gitdir");
	up = line_at(own, "commondir");
	head = line_at(own, "HEAD");
	if (!sabotaged("worktree") && (gitdir == NULL || !str_eq(gitdir, self)))
		return "it does not point back to this workspace";
	if (up == NULL || !str_eq(up, "../..") || head == NULL || info < 0)
		return "it is not a repository as git makes them";
	if (!sabotaged("worktree") && (!is_mine(common) || !is_mine(own) || !is_mine(ws) ||
				       back < 0 || !is_mine(back) || !is_mine(info)))
		return "it belongs to, or can be written by, somebody else";
	if (str_starts(head, "ref: ") && worktree_is_branch(head + 5))
		w->branch = mem_str(head + 5);
	else if (!is_object(head))
		return "its HEAD is not what git writes";
	return NULL;
}

int worktree_find(const char *workspace, const char *state_dir, struct worktree *ret,
		  char **ret_why)
{
	_cleanup_(worktree_done) struct worktree w = { 0 };
	_close_ int ws = open_dir(workspace);
	_free_ char *text = ws < 0 ? NULL : line_at(ws, ".git");
	_free_ char *all = NULL, *who = NULL;
	const char *why;

	*ret_why = NULL;
	/* Submodules and relative pointers lead into the workspace or to what is no worktree. */
	if (text == NULL || !str_starts(text, "gitdir: /") || !path_is_clean(text + 8))
		return 0;
	w.own = mem_str(text + 8);
	all = path_parent(w.own);
	w.common = path_parent(all);
	if (!str_eq(path_name(all), "worktrees") || str_eq(w.common, "/"))
		return 0;
	why = check(&w, workspace);
	who = why || sabotaged("worktree") ? NULL : def_may_write(state_dir, w.own);
	if (why)
		*ret_why = mem_str(why);
	else if (who)
		*ret_why = mem_fmt("the sandbox '%.64s' may write there", who);
	if (*ret_why)
		return 0;
	*ret = w;
	w = (struct worktree){ 0 };
	return 1;
}

/* ---- the place ---- */

static int put_at(int dir, const char *rel, const char *text, size_t n)
{
	_close_ int fd = FD_NONE;
	_free_ char *parent = path_parent(rel);
	int r = parent[0] ? path_mkdirs(dir, parent, 0700) : 0;

	if (r < 0)
		return r;
	fd = openat(dir, rel, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return io_write_all(fd, text, n) < 0 ? -EIO : 0;
}

static int copy_at(int from, int to, const char *rel, size_t most)
{
	_cleanup_(buf_done) struct buf b = BUF(most);
	int r = read_at(from, rel, &b);

	return r < 0 ? (r == -ENOENT ? 0 : r) : put_at(to, rel, buf_cstr(&b), b.n);
}

static int copy_refs(int from, int to, const char *rel, size_t *left, int depth)
{
	_close_ int fd = path_openat2(from, rel, O_RDONLY | O_DIRECTORY, SAFE);
	int r = fd < 0 ? fd : path_mkdirs(to, rel, 0700);
	struct dirent *en;
	DIR *d;

	if (r < 0 || depth > REFS_DEPTH)
		return r == -ENOENT ? 0 : r;
	d = fdopendir(fd);
	if (d == NULL)
		return -errno;
	(void)take_fd(fd);
	while (r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *path = mem_fmt("%s/%s", rel, en->d_name);

		if (en->d_name[0] == '.')
			continue;
		if ((*left)-- == 0)
			r = -E2BIG;
		else if (en->d_type == DT_DIR)
			r = copy_refs(from, to, path, left, depth + 1);
		else if (en->d_type == DT_REG && !str_ends(path, ".lock"))
			r = copy_at(from, to, path, TEXT_MAX);
	}
	(void)closedir(d);
	return r;
}

static uint64_t size_at(int dir, const char *rel)
{
	struct stat st;

	return fstatat(dir, rel, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* What the host had when the copies were made: read again when they are taken over. */
static int write_base(int place, int common, const struct worktree *w)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	const char *refs[] = { w->branch ? w->branch : "-", STASH };

	buf_printf(&b, "%s\n%s\n", w->common, w->own);
	for (size_t i = 0; i < ARRAY_LEN(refs); i++) {
		_free_ char *value = ref_at(common, refs[i]);
		_free_ char *log = mem_fmt("logs/%s", refs[i]);

		buf_printf(&b, "%s\n%s\n%llu\n", refs[i], value ? value : "-",
			   (unsigned long long)size_at(common, log));
	}
	return put_at(place, "base", buf_cstr(&b), b.n);
}

static int fill(const struct worktree *w, int place, int common)
{
	static const char *const dirs[] = { "objects", "objects/info", "objects/pack", "hooks",
					    "info",    "logs/refs",    "worktrees" };
	_close_ int git = FD_NONE;
	_free_ char *own = mem_fmt("worktrees/%s", path_name(w->own));
	_free_ char *log = w->branch ? mem_fmt("logs/%s", w->branch) : NULL;
	size_t left = REFS_MAX;
	int r = path_mkdirs(place, "git", 0700);

	git = r < 0 ? r : openat(place, "git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (git < 0)
		return r < 0 ? r : -errno;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
		r = path_mkdirs(git, dirs[i], 0700);
	if (r == 0)
		r = path_mkdirs(git, own, 0700);
	if (r == 0)
		r = put_at(git, "config", "", 0);
	if (r == 0)
		r = copy_at(common, git, "HEAD", TEXT_MAX);
	if (r == 0)
		r = copy_at(common, git, "packed-refs", PACKED_MAX);
	if (r == 0)
		r = copy_refs(common, git, "refs", &left, 0);
	if (r == 0 && log)
		r = copy_at(common, git, log, LOG_MAX);
	if (r == 0)
		r = copy_at(common, git, "logs/" STASH, LOG_MAX);
	return r < 0 ? r : write_base(place, common, w);
}

int worktree_prepare(const struct worktree *w, const char *place, struct err *e)
{
	_cleanup_(buf_done) struct buf ignored = BUF(TEXT_MAX);
	_close_ int dir = FD_NONE, common = open_dir(w->common);
	int r;

	worktree_carry(place, &ignored);
	r = path_make(place, 0700);
	if (r == 0)
		dir = open_dir(place);
	if (r == 0 && dir >= 0 && common >= 0)
		r = fill(w, dir, common);
	if (r < 0 || dir < 0 || common < 0)
		return err_set(e, ERR_SYSTEM, r < 0 ? -r : EIO,
			       "the refs of '%.200s' could not be copied for this worktree: %s",
			       w->common, strerrordesc_np(r < 0 ? -r : EIO));
	return 0;
}

/* ---- taking over ---- */

struct base {
	char *line[8]; /* common, own, then for branch and stash: ref, value, size of the log */
};

static void base_done(struct base *b)
{
	for (size_t i = 0; i < ARRAY_LEN(b->line); i++)
		free(b->line[i]);
}

static bool read_base(int place, struct base *b)
{
	_cleanup_(buf_done) struct buf t = BUF(TEXT_MAX);
	const char *p;

	if (read_at(place, "base", &t) < 0)
		return false;
	p = buf_cstr(&t);
	for (size_t i = 0; i < ARRAY_LEN(b->line); i++) {
		size_t n = strcspn(p, "\n");

		if (p[n] != '\n')
			return false;
		b->line[i] = mem_strn(p, n);
		p += n + 1;
	}
	return true;
}

static bool is_same(const char *a, const char *b)
{
	return str_eq(a ? a : "-", b ? b : "-");
}

/* Under git's own lock, and only while the host has the value that was copied. */
static int replace_ref(int common, const char *ref, const char *was, const char *new)
{
	_free_ char *lock = mem_fmt("%s.lock", ref), *parent = path_parent(ref), *now = NULL;
	_close_ int fd = FD_NONE, dir = FD_NONE;
	int r = path_mkdirs(common, parent, 0777);

	if (r < 0)
		return r;
	dir = path_openat2(common, parent, O_PATH | O_DIRECTORY, SAFE);
	if (dir < 0)
		return dir;
	fd = openat(dir, path_name(lock), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	if (fd < 0)
		return -errno;
	now = ref_at(common, ref);
	if (!is_same(now, was))
		r = -ESTALE;
	else if (new && (io_write_all(fd, new, strlen(new)) < 0 || io_write_all(fd, "\n", 1) < 0 ||
			 fsync(fd) < 0))
		r = -EIO;
	else if (new &&renameat(dir, path_name(lock), dir, path_name(ref)) == 0)
		return 0;
	else if (new || unlinkat(dir, path_name(ref), 0) < 0)
		r = -errno;
	(void)unlinkat(dir, path_name(lock), 0);
	return r;
}

static void carry_log(int git, int common, const char *ref, const char *size)
{
	_cleanup_(buf_done) struct buf log = BUF(LOG_MAX);
	_free_ char *path = mem_fmt("logs/%s", ref), *new = mem_fmt("logs/%s.lock", ref);
	_free_ char *now = mem_fmt("%llu", (unsigned long long)size_at(common, path));
	_free_ char *parent = path_parent(path);
	_close_ int dir = FD_NONE;

	/* The host wrote there meanwhile, or it keeps none. */
	if (!str_eq(now, size) || read_at(git, path, &log) < 0 || log.n == 0)
		return;
	if (path_mkdirs(common, parent, 0777) < 0)
		return;
	dir = path_openat2(common, parent, O_PATH | O_DIRECTORY, SAFE);
	if (dir < 0 || put_at(dir, path_name(new), buf_cstr(&log), log.n) < 0)
		return;
	/* With the mode git gives it. A reflog that cannot be put in place is not worth more than that. */
	if (fchmodat(dir, path_name(new), 0644, 0) == 0)
		(void)renameat(dir, path_name(new), dir, path_name(path));
}

static void carry_ref(int git, int common, char *const *base, struct buf *notes)
{
	const char *ref = base[0], *was = base[1];
	_free_ char *new = ref_at(git, ref);
	int r;

	/* A branch that was deleted inside stays; a stash that was emptied is gone. */
	if (is_same(new, was) || (new == NULL && !str_eq(ref, STASH)))
		return;
	r = replace_ref(common, ref, was, new);
	if (r == 0)
		carry_log(git, common, ref, base[2]);
	else
		buf_printf(notes, "%s was not taken over (%s); inside it is %s\n", ref,
			   r == -ESTALE ? "it was changed on the host meanwhile"
					: strerrordesc_np(-r),
			   new ? new : "deleted");
}

/* A branch that was begun inside and that HEAD of the worktree names now, where the host has none of that name. */
static void carry_new(int git, int common, const char *own, const char *known, struct buf *notes)
{
	_close_ int dir = open_dir(own);
	_free_ char *head = dir < 0 ? NULL : line_at(dir, "HEAD"), *there = NULL;
	char none[] = "-", zero[] = "0";

	if (head == NULL || !str_starts(head, "ref: ") || !worktree_is_branch(head + 5) ||
	    str_eq(head + 5, known))
		return;
	there = ref_at(common, head + 5);
	if (there == NULL)
		carry_ref(git, common, (char *[]){ head + 5, none, zero }, notes);
}

void worktree_carry(const char *place, struct buf *notes)
{
	_cleanup_(base_done) struct base b = { 0 };
	_close_ int dir = open_dir(place), git = FD_NONE, common = FD_NONE;

	if (dir < 0)
		return;
	git = path_openat2(dir, "git", O_PATH | O_DIRECTORY, SAFE);
	if (git >= 0 && read_base(dir, &b))
		common = open_dir(b.line[0]);
	if (common >= 0) {
		if (worktree_is_branch(b.line[2]))
			carry_ref(git, common, &b.line[2], notes);
		carry_ref(git, common, &b.line[5], notes);
		carry_new(git, common, b.line[1], b.line[2], notes);
	}
	(void)path_remove(AT_FDCWD, place); /* the next one of this name tries again */
}
