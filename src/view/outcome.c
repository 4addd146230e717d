/* SPDX-License-Identifier: Apache-2.0 */
/* view/outcome.c - see outcome.h
 *
 * Three things make a path more than data:
 *   a protect pattern matches the path or a directory above it;
 *   the path is a part of a git dir that makes git run or read something (the table in git.c), by its content;
 *   a git configuration of the host names the path as hooks, filter, include or the like.
 * A fourth is the host's own: what a protect pattern already covers there was never the sandbox's to change.
 *
 * A directory becomes a git dir by the last of a few names. Parts that lie on the host already, in a directory that was
 * no git dir, were judged as data then; so the name that completes a git dir is held to all the parts it brings to life.
 */
#include <dirent.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "view/find.h"
#include "view/gitcfg.h"
#include "view/outcome.h"
#include "view/ws.h"

#define POINTER_MAX (16 * KIB)
#define TODO_MAX (1 * MIB)
#define FOLLOW_MAX 3

/* ---- one file of a repository ---- */

size_t outcome_part_max(enum git_what what)
{
	return what == GIT_CONFIG ? GITCFG_NEW_MAX + 1 : what == GIT_TODO ? TODO_MAX : POINTER_MAX;
}

/* git writes in two steps: what is empty or gone does no harm. */
static bool is_fine_for_now(const struct outcome_part *p)
{
	return p->status == -ENOENT || (p->status == 0 && p->n == 0);
}

static bool stays_beneath(void *arg, const char *path)
{
	const struct outcome_part *p = arg;
	_free_ char *from = path_join(p->abs, p->dir);
	_free_ char *abs = path_join(from, path);
	_free_ char *rel = NULL;

	if (str_eq(abs, p->abs))
		return true;
	return path_is_beneath(abs, p->abs) && p->target(p->arg, p->dir, path, &rel) != -ELOOP;
}

static char *judge_config(const struct outcome_part *p)
{
	struct outcome_part copy = *p;

	if (p->status == -ENOENT)
		return NULL;
	if (p->status == -EMSGSIZE)
		return mem_str("git config larger than 64 KiB");
	if (p->status < 0)
		return mem_str("git config that cannot be read");
	return gitcfg_objection(p->text, p->n, stays_beneath, &copy);
}

bool outcome_part_rest(const struct outcome_part *p, struct buf *ret)
{
	struct outcome_part copy = *p;

	return p->what == GIT_CONFIG && p->status == 0 &&
	       gitcfg_rest(p->text, p->n, stays_beneath, &copy, ret);
}

static char *pointer(const struct outcome_part *p, const char *prefix)
{
	return p->status < 0 ? NULL : git_pointer(p->text, p->n, prefix);
}

static char *judge_commondir(const struct outcome_part *p, char **ret_follow)
{
	_free_ char *up = path_parent(p->dir), *text = NULL;

	if (is_fine_for_now(p))
		return NULL;
	text = pointer(p, "");
	if (text == NULL || !str_eq(text, "../..") || !str_eq(path_name(up), "worktrees"))
		return mem_str("git commondir that is not of a worktree");
	*ret_follow = path_parent(up);
	return NULL;
}

static char *judge_gitdir(const struct outcome_part *p)
{
	_free_ char *text = NULL, *target = NULL;
	int r = -EINVAL;

	if (is_fine_for_now(p))
		return NULL;
	text = pointer(p, "");
	if (text && str_ends(text, "/.git"))
		r = p->target(p->arg, p->dir, text, &target);
	return r < 0 && r != -ENOENT ? mem_str("git worktree outside the workspace") : NULL;
}

static char *judge_alternates(const struct outcome_part *p)
{
	_free_ char *base = ws_rel(p->dir, "objects");
	int r = p->status;

	if (is_fine_for_now(p))
		return NULL;
	if (r == 0 && memchr(p->text, '\0', p->n))
		r = -EINVAL;
	for (const char *at = p->text; r >= 0 && *at;) {
		size_t n = strcspn(at, "\n");
		_free_ char *line = mem_strn(at, n), *target = NULL;

		if (n && line[0] != '#')
			r = line[0] == '"' ? -EINVAL : p->target(p->arg, base, line, &target);
		r = r == -ENOENT ? 0 : r;
		at += n;
		at += *at == '\n';
	}
	return r < 0 ? mem_str("git objects from outside the workspace") : NULL;
}

/* `git rebase --continue` on the host would go through these steps; of git's commands for them one runs a shell. */
static char *judge_todo(const struct outcome_part *p)
{
	static const char blank[] = " \t\r";

	if (is_fine_for_now(p))
		return NULL;
	if (p->status < 0 || memchr(p->text, '\0', p->n))
		return mem_str("git rebase whose steps cannot be read");
	for (const char *at = p->text; *at; at += *at == '\n') {
		const char *word = at + strspn(at, blank);
		size_t n = strcspn(word, " \t\r\n");

		if ((n == 1 && word[0] == 'x') || (n == 4 && memcmp(word, "exec", 4) == 0))
			return mem_str("git rebase with commands to run");
		at = word + strcspn(word, "\n");
	}
	return NULL;
}

char *outcome_part(const struct outcome_part *p, char **ret_follow)
{
	switch (p->what) {
	case GIT_CONFIG:
		return judge_config(p);
	case GIT_COMMONDIR:
		return judge_commondir(p, ret_follow);
	case GIT_GITDIR:
		return judge_gitdir(p);
	case GIT_ALTERNATES:
		return judge_alternates(p);
	case GIT_TODO:
		return judge_todo(p);
	case GIT_ATTRIBUTES:
		return mem_str("git attributes outside version control");
	case GIT_GRAFTS:
		return mem_str("git grafts");
	case GIT_HOOKS: /* a file where a directory should be */
		return mem_str("git hook");
	case GIT_VIA_LINK:
	case GIT_UNREADABLE:
		return mem_str("git part behind a link");
	case GIT_WHAT_COUNT_:
		break;
	}
	return NULL;
}

char *outcome_gitfile(const struct outcome_part *p, char **ret_follow)
{
	_free_ char *text = NULL, *target = NULL;
	int r;

	if (is_fine_for_now(p))
		return NULL;
	text = pointer(p, "gitdir: ");
	r = text ? p->target(p->arg, p->dir, text, &target) : -EINVAL;
	if (r == 0)
		*ret_follow = take(target);
	return r < 0 && r != -ENOENT ? mem_str("git repository outside the workspace") : NULL;
}

bool outcome_is_hook(const char *name, unsigned char type, mode_t mode)
{
	if (type == DT_DIR || (type == DT_REG && strlen(name) > 7 && str_ends(name, ".sample")))
		return false;
	return type != DT_REG || git_is_hook_name(name) || mode & 0111;
}

/* ---- the tree as it would be ---- */

static unsigned char type_of(const struct outcome_tree *o, const char *rel)
{
	mode_t mode = 0;

	return o->type(o->arg, rel, &mode);
}

/* As ws_target(), in a tree that does not exist yet: a link anywhere on the way is an objection. */
static int target_in(void *arg, const char *base, const char *text, char **ret_rel)
{
	const struct outcome_tree *o = arg;
	const char *abs = o->host->abs;
	_free_ char *from = path_join(abs, base);
	_free_ char *full = path_join(from, text);
	const char *rel;
	unsigned char type = DT_UNKNOWN;

	if (!path_is_beneath(full, abs) || str_eq(full, abs))
		return -EXDEV;
	rel = path_below(full, abs);
	for (const char *p = rel; *p;) {
		size_t n = (size_t)(strchrnul(p, '/') - rel);
		_free_ char *head = mem_strn(rel, n);

		type = type_of(o, head);
		if (type == DT_LNK)
			return -ELOOP;
		if (type == DT_UNKNOWN)
			break;
		p = rel + n;
		p += *p == '/';
	}
	*ret_rel = mem_str(rel);
	return type == DT_UNKNOWN ? -ENOENT : 0;
}

static char *gitdir_why(struct outcome_tree *o, const char *dir, bool only_old, unsigned depth);

/* Reads a part and judges it, and where it leads. */
static char *file_why(struct outcome_tree *o, const char *dir, const char *rel, enum git_what what,
		      unsigned depth)
{
	_cleanup_(buf_done) struct buf b = BUF(outcome_part_max(what));
	struct outcome_part p = { .what = what,
				  .dir = dir,
				  .abs = o->host->abs,
				  .status = o->read(o->arg, rel, &b),
				  .target = target_in,
				  .arg = o };
	_free_ char *follow = NULL;
	char *why;

	p.text = buf_cstr(&b);
	p.n = b.n;
	why = what == GIT_WHAT_COUNT_ ? outcome_gitfile(&p, &follow) : outcome_part(&p, &follow);
	return why || follow == NULL || depth >= FOLLOW_MAX
		       ? why
		       : gitdir_why(o, follow, false, depth + 1);
}

static char *part_why(struct outcome_tree *o, const char *dir, const char *rel, enum git_what what,
		      unsigned depth)
{
	unsigned char type = type_of(o, rel);

	if (type == DT_UNKNOWN || (what == GIT_HOOKS && type == DT_DIR))
		return NULL;
	if (type == DT_LNK)
		what = GIT_VIA_LINK;
	return file_why(o, dir, rel, what, depth);
}

/* Something in a git dir, by its name there. */
static char *inner_why(struct outcome_tree *o, const char *dir, const char *name, const char *rel)
{
	size_t n = strlen(name);
	enum git_what what;
	const char *part;
	mode_t mode = 0;
	unsigned char type = o->type(o->arg, rel, &mode);

	if (type == DT_UNKNOWN)
		return NULL;
	if (str_starts(name, "hooks/") && strchr(name + 6, '/') == NULL)
		return outcome_is_hook(name + 6, type, mode) ? mem_str("git hook") : NULL;
	for (size_t i = 0; (part = git_part_name(i, &what)) != NULL; i++) {
		if (str_eq(part, name))
			return part_why(o, dir, rel, what, 0);
		if (type == DT_LNK && strncmp(part, name, n) == 0 && part[n] == '/')
			return mem_str("git part behind a link");
	}
	return NULL;
}

static char *hooks_why(struct outcome_tree *o, const char *dir, bool only_old)
{
	for (size_t i = 0; git_hook_names[i]; i++) {
		_free_ char *name = mem_fmt("hooks/%s", git_hook_names[i]);
		_free_ char *rel = ws_rel(dir, name);

		if (type_of(o, rel) == DT_UNKNOWN || scan_covers(&o->host->scan, rel) ||
		    (only_old && !o->is_old(o->arg, rel)))
			continue;
		return mem_fmt("a repository with the git hook '%.200s'", rel);
	}
	return NULL;
}

/* All parts of a git dir that are not the host's own; only_old: those that lie on the host already. */
static char *gitdir_why(struct outcome_tree *o, const char *dir, bool only_old, unsigned depth)
{
	enum git_what what;
	const char *part;

	for (size_t i = 0; (part = git_part_name(i, &what)) != NULL; i++) {
		_free_ char *rel = ws_rel(dir, part), *why = NULL;

		if (scan_covers(&o->host->scan, rel) || (only_old && !o->is_old(o->arg, rel)))
			continue;
		why = part_why(o, dir, rel, what, depth);
		if (why)
			return mem_fmt("a repository with '%.200s': %s", rel, why);
	}
	return hooks_why(o, dir, only_old);
}

/* ---- directories ---- */

static bool is_marker(const char *name)
{
	for (size_t i = 0; i < 4; i++)
		if (str_eq(name, git_names[i].text))
			return true;
	return false;
}

static bool has_markers(const struct outcome_tree *o, const char *dir)
{
	unsigned bits = 0;

	for (size_t i = 0; i < 4; i++) {
		_free_ char *rel = ws_rel(dir, git_names[i].text);
		unsigned char type = type_of(o, rel);

		if (type != DT_UNKNOWN)
			bits |= git_bits_of_type(git_names[i].bits, type);
	}
	return git_bits_are_repo(bits);
}

/* A git dir that the scan of the host found, wherever its markers are. */
static bool is_hosts_gitdir(const struct outcome_tree *o, const char *dir)
{
	const struct hit *h = scan_find(&o->host->scan, dir);

	return h && h->is_dir && h->kind == HIT_PIN && str_eq(h->rule, FIND_GIT_RULE);
}

static void look_at_dir(const struct outcome_tree *o, const struct outcome_dir *up,
			struct outcome_dir *d)
{
	const char *name = path_name(d->rel);
	const char *rule = d->rel[0] ? matcher_rule(&o->p->protect, d->rel) : NULL;
	bool is_dotgit = rule && git_is_rule(rule);

	d->is_nogit = (up && up->is_nogit) || (rule == NULL && str_eq(name, ".git"));
	d->rule = up && up->rule ? up->rule : is_dotgit ? NULL : rule;
	d->is_git = !d->is_nogit && (is_dotgit || is_hosts_gitdir(o, d->rel) ||
				     (has_markers(o, d->rel) && find_git_wanted(o->p, d->rel)));
}

/* The directories above rel, from the top: those of the path before are known. */
static int enter(struct outcome_tree *o, const char *rel)
{
	size_t at = 0;

	for (size_t depth = 0;; depth++) {
		_free_ char *dir = mem_strn(rel, at);
		size_t n = strcspn(rel + at + (depth > 0), "/");

		if (depth >= OUTCOME_DEPTH_MAX)
			return -ENAMETOOLONG;
		if (depth >= o->depth || !str_eq(o->dirs[depth].rel, dir)) {
			while (o->depth > depth)
				free(o->dirs[--o->depth].rel);
			o->dirs[depth] = (struct outcome_dir){ .rel = take(dir) };
			look_at_dir(o, depth ? &o->dirs[depth - 1] : NULL, &o->dirs[depth]);
			o->depth = depth + 1;
		}
		at += (depth > 0) + n;
		if (rel[at] == '\0') {
			while (o->depth > depth + 1)
				free(o->dirs[--o->depth].rel);
			return 0;
		}
	}
}

void outcome_done(struct outcome_tree *o)
{
	while (o->depth > 0)
		free(o->dirs[--o->depth].rel);
}

/* ---- a path ---- */

static char *git_why(struct outcome_tree *o, const char *rel)
{
	for (size_t i = 0; i < o->depth; i++) {
		const char *dir = o->dirs[i].rel;
		const char *name = dir[0] ? rel + strlen(dir) + 1 : rel;
		char *why;

		if (!o->dirs[i].is_git)
			continue;
		why = inner_why(o, dir, name, rel);
		if (why == NULL && is_marker(name))
			why = gitdir_why(o, dir, true, 0);
		if (why)
			return why;
	}
	return NULL;
}

/* Below a path that the host's configuration names, or a link on the way there. */
static char *named_why(const struct outcome_tree *o, const char *rel)
{
	size_t n = strlen(rel);

	for (size_t i = 0; i < o->host->n; i++) {
		const char *named = o->host->named[i];
		size_t len = strlen(named);
		bool is_in = strncmp(rel, named, len) == 0 && (rel[len] == '\0' || rel[len] == '/');
		bool is_above = strncmp(rel, named, n) == 0 && named[n] == '/';

		if (is_in || (is_above && type_of(o, rel) == DT_LNK))
			return mem_str("named in the git config");
	}
	return NULL;
}

/* A .git that is no directory. */
static char *dotgit_why(struct outcome_tree *o, const char *rel)
{
	_free_ char *base = path_parent(rel);
	unsigned char type = type_of(o, rel);

	if (type == DT_DIR || type == DT_UNKNOWN)
		return NULL;
	if (type != DT_REG)
		return mem_str("git repository behind a link");
	return file_why(o, base, rel, GIT_WHAT_COUNT_, 0);
}

/* ".GIT" is ".git" where a file system takes no notice of case; git itself refuses to store such a name. */
static bool has_folded_git(const char *rel)
{
	for (const char *p = rel; p; p = strchr(p, '/'), p = p ? p + 1 : NULL) {
		size_t n = strcspn(p, "/");

		if (n == 4 && strncasecmp(p, ".git", 4) == 0 && strncmp(p, ".git", 4) != 0)
			return true;
	}
	return false;
}

char *outcome_why(struct outcome_tree *o, const char *rel)
{
	const char *rule = matcher_rule(&o->p->protect, rel);
	bool is_nogit;
	char *why = NULL;

	if (sabotaged("outcome"))
		return NULL;
	if (has_folded_git(rel))
		return mem_str("'.git' in another case");
	if (enter(o, rel) < 0)
		return mem_str("deeper than can be judged");
	if (o->dirs[o->depth - 1].rule)
		rule = o->dirs[o->depth - 1].rule;
	is_nogit = o->dirs[o->depth - 1].is_nogit;
	if (rule && !git_is_rule(rule))
		return mem_fmt("protected by '%.200s'", rule);
	if (scan_covers(&o->host->scan, rel))
		return mem_str("protected on the host");
	if (rule && !is_nogit)
		why = dotgit_why(o, rel);
	if (why == NULL && !is_nogit)
		why = git_why(o, rel);
	return why ? why : named_why(o, rel);
}
