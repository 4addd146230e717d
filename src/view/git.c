/* SPDX-License-Identifier: Apache-2.0 */
/* view/git.c - see git.h */
#include <dirent.h>
#include <fcntl.h>

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

const char *const git_data_dirs[] = { "objects", "refs", "logs", "lfs", NULL };

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
	else if (type != DT_LNK)
		bits &= ~(unsigned)(MATCH_GIT_OBJECTS | MATCH_GIT_REFS);
	return bits;
}

bool git_bits_are_repo(unsigned bits)
{
	const unsigned own = MATCH_GIT_OBJECTS | MATCH_GIT_REFS;

	return (bits & MATCH_GIT_HEAD) && ((bits & own) == own || (bits & MATCH_GIT_COMMONDIR));
}

bool git_is_repo(int dir_fd)
{
	unsigned bits = 0;

	for (size_t i = 0; i < 4; i++) {
		unsigned char type = walk_type(dir_fd, git_names[i].text);

		if (type != DT_UNKNOWN)
			bits |= git_bits_of_type(git_names[i].bits, type);
	}
	return git_bits_are_repo(bits);
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

/* A link on the way to a part of several components: report the first one. */
static int report_link(int dir_fd, const char *name, git_part_fn fn, void *arg, struct err *e)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		_free_ char *head = mem_strn(name, (size_t)(slash - name));
		struct stat st;

		if (ws_lstat(dir_fd, head, &st) == 0 && S_ISLNK(st.st_mode))
			return fn(arg, head, GIT_VIA_LINK, &st, e);
	}
	return 0;
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
		else
			r = r == -ELOOP ? report_link(dir_fd, name, fn, arg, e) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

char *git_pointer(const char *text, size_t n, const char *prefix)
{
	size_t skip = strlen(prefix);

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n <= skip || memcmp(text, prefix, skip) != 0)
		return NULL;
	for (size_t i = skip; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return NULL;
	return mem_strn(text + skip, n - skip);
}
