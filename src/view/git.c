/* SPDX-License-Identifier: Apache-2.0 */
/* view/git.c - see git.h
 *
 * Whether a directory is a repository is git's own question, so the answer is that of git's is_git_directory(): first
 * HEAD by its content, then commondir, then objects and refs by the right to pass through them. Where git's answer
 * depends on what can change without a trace in the directory (where a link leads, who asks) the answer is yes.
 * git_test.c compares it with git itself on generated directories.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"
#include "view/git.h"
#include "view/match.h"
#include "view/view.h"
#include "view/walk.h"
#include "view/ws.h"

const struct git_name git_names[] = {
	/* The first four make a git dir. */
	{ "HEAD", MATCH_GIT_HEAD | MATCH_GIT_PART },
	{ "objects", MATCH_GIT_OBJECTS | MATCH_GIT_PART },
	{ "refs", MATCH_GIT_REFS | MATCH_GIT_PART },
	{ "commondir", MATCH_GIT_COMMONDIR | MATCH_GIT_PART },
	{ ".git", MATCH_GIT_PART },
	{ "config", MATCH_GIT_PART },
	{ "config.worktree", MATCH_GIT_PART },
	{ "hooks", MATCH_GIT_PART },
	{ "info", MATCH_GIT_PART },
	{ "attributes", MATCH_GIT_PART },
	{ "grafts", MATCH_GIT_PART },
	{ "gitdir", MATCH_GIT_PART },
	{ "alternates", MATCH_GIT_PART },
};
const size_t git_names_n = ARRAY_LEN(git_names);

const char *const git_hook_names[] = {
	"applypatch-msg",
	"pre-applypatch",
	"post-applypatch",
	"pre-commit",
	"pre-merge-commit",
	"prepare-commit-msg",
	"commit-msg",
	"post-commit",
	"pre-rebase",
	"post-checkout",
	"post-merge",
	"pre-push",
	"pre-receive",
	"update",
	"proc-receive",
	"post-receive",
	"post-update",
	"reference-transaction",
	"push-to-checkout",
	"pre-auto-gc",
	"post-rewrite",
	"sendemail-validate",
	"fsmonitor-watchman",
	"p4-changelist",
	"p4-prepare-changelist",
	"p4-post-changelist",
	"p4-pre-submit",
	"post-index-change",
	NULL,
};

static const struct part {
	const char *name;
	enum git_what what;
} parts[] = {
	{ "config", GIT_CONFIG },
	{ "config.worktree", GIT_CONFIG },
	{ "hooks", GIT_HOOKS },
	{ "commondir", GIT_COMMONDIR },
	{ "gitdir", GIT_GITDIR },
	{ "info/attributes", GIT_ATTRIBUTES },
	{ "info/grafts", GIT_GRAFTS },
	{ "objects/info/alternates", GIT_ALTERNATES },
	{ "rebase-merge/git-rebase-todo", GIT_TODO },
};

const char *git_part_name(size_t i, enum git_what *ret)
{
	if (i >= ARRAY_LEN(parts))
		return NULL;
	*ret = parts[i].what;
	return parts[i].name;
}

bool git_is_rule(const char *rule)
{
	return str_eq(rule, ".git") || str_eq(rule, "**/.git");
}

unsigned git_bits_of_type(unsigned bits, unsigned char type)
{
	if (type == DT_DIR)
		bits &= ~(unsigned)(MATCH_GIT_HEAD | MATCH_GIT_COMMONDIR);
	return bits;
}

bool git_bits_are_repo(unsigned bits)
{
	const unsigned own = MATCH_GIT_OBJECTS | MATCH_GIT_REFS;

	return (bits & MATCH_GIT_HEAD) && ((bits & own) == own || (bits & MATCH_GIT_COMMONDIR));
}

/* "ref: refs/..." or an object's name, as git's validate_headref() reads it. */
static bool is_head_text(const char *text, size_t n)
{
	size_t at = 4;

	if (n > 4 && memcmp(text, "ref:", 4) == 0) {
		while (at < n && memchr(" \t\n\r", text[at], 4))
			at++;
		if (n - at >= 5 && memcmp(text + at, "refs/", 5) == 0)
			return true;
	}
	return n >= 40 && strspn(text, "0123456789abcdefABCDEF") >= 40;
}

/* What cannot be read now can be made readable: it counts. */
static bool is_head(int dir_fd)
{
	char text[256];
	struct stat st;
	ssize_t n;
	_close_ int fd = FD_NONE;

	if (fstatat(dir_fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EACCES;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(dir_fd, "HEAD", text, sizeof(text) - 1);
		return n >= 5 && memcmp(text, "refs/", 5) == 0;
	}
	if (!S_ISREG(st.st_mode))
		return S_ISFIFO(st.st_mode); /* git would wait for what somebody writes into it */
	fd = openat(dir_fd, "HEAD", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	n = io_read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return true;
	text[n] = '\0';
	return is_head_text(text, (size_t)n);
}

/* Where git asks access(X_OK). For root that is every directory and every file with any x bit; a link counts whatever
 * it leads to, because where it leads can change. */
static bool is_passable(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EACCES;
	return S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) || (st.st_mode & 0111);
}

bool git_is_repo(int dir_fd)
{
	unsigned char common = walk_type(dir_fd, "commondir");

	if (!is_head(dir_fd))
		return false;
	/* Objects and refs then lie where it says; git fails on a directory of that name. */
	if (common != DT_UNKNOWN)
		return common != DT_DIR;
	return is_passable(dir_fd, "objects") && is_passable(dir_fd, "refs");
}

bool scan_is_gitdir(int dir_fd)
{
	return git_is_repo(dir_fd);
}

bool git_is_hook_name(const char *name)
{
	for (size_t i = 0; git_hook_names[i]; i++)
		if (str_eq(name, git_hook_names[i]))
			return true;
	return false;
}

/* The first directory on the way to name that is a link, or that cannot be passed. */
static int report_obstacle(int dir_fd, const char *name, enum git_what what, git_part_fn fn,
			   void *arg, struct err *e)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		_free_ char *head = mem_strn(name, (size_t)(slash - name));
		struct stat st;

		if (ws_lstat(dir_fd, head, &st) < 0)
			continue;
		if (what == GIT_VIA_LINK ? S_ISLNK(st.st_mode) : (st.st_mode & 0100) == 0)
			return fn(arg, head, what, &st, e);
	}
	return 0;
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

int git_parts(int dir_fd, git_part_fn fn, void *arg, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *name = parts[i].name;
		struct stat st;
		int r;

		if (strchr(name, '/'))
			r = ws_lstat(dir_fd, name, &st);
		else
			r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
		if (r == 0)
			r = fn(arg, name, parts[i].what, &st, e);
		else if (!is_absent(r))
			r = report_obstacle(dir_fd, name,
					    r == -ELOOP ? GIT_VIA_LINK : GIT_UNREADABLE, fn, arg,
					    e);
		else
			r = 0;
		if (r < 0)
			return r;
	}
	return 0;
}

char *git_pointer_any(const char *text, size_t n, const char *prefix)
{
	size_t skip = strlen(prefix);

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	n = strnlen(text, n);
	if (n <= skip || memcmp(text, prefix, skip) != 0)
		return NULL;
	return mem_strn(text + skip, n - skip);
}

char *git_pointer(const char *text, size_t n, const char *prefix)
{
	_free_ char *path = memchr(text, '\0', n) ? NULL : git_pointer_any(text, n, prefix);

	for (const char *p = path ? path : ""; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return NULL;
	return take(path);
}
