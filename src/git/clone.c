/* SPDX-License-Identifier: Apache-2.0 */
/* git/clone.c - workspace mode `clone`: a private clone, made without ever running git on the host
 *
 * The workspace's git directory is read by a git in the workshop, which may write the sandbox's bare repository and
 * nothing else; a second one, which does not see the workspace at all, makes the clone from that. The clone borrows the
 * bare repository's objects, which are shown read-only in the sandbox at the same place, so making it copies nothing
 * but the files that are checked out. The host's branches lie in refs/host/, apart from the sandbox's own in refs/heads/.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "core/workshop.h"
#include "git/git.h"

static char *repo_path(const char *state_dir, const char *name)
{
	return mem_fmt("%s/sandboxes/%s/" GIT_CLONE_REPO, state_dir, name);
}

bool git_clone_exists(const char *state_dir, const char *name)
{
	_free_ char *path = repo_path(state_dir, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static const char *branch_or(const struct git_place *p)
{
	return p->branch ? p->branch : "work";
}

int git_clone_refresh(const char *state_dir, const char *name, const char *workspace, struct err *e)
{
	static const char *const refspecs[] = { "+refs/heads/*:refs/host/heads/*",
						"+refs/tags/*:refs/tags/*", "+HEAD:refs/host/HEAD",
						NULL };
	static const char *const unborn[] = { "+refs/heads/*:refs/host/heads/*", NULL };
	_cleanup_(git_place_done) struct git_place place = { 0 };
	_free_ char *bare = repo_path(state_dir, name);
	struct git_take t = {
		.state_dir = state_dir, .bare = bare, .refspecs = refspecs, .prune = true
	};
	struct git_taken taken = { 0 };
	struct err second = ERR_INIT;
	int r = git_place_find(workspace, &place, e);

	if (r == 0)
		r = git_bare_make(bare, e);
	if (r == 0)
		r = git_take_host(&t, place.dir, &taken, e);
	if (r < 0 && r != -EPERM) { /* a repository without a commit has no HEAD to take */
		t.refspecs = unborn;
		if (git_take_host(&t, place.dir, &taken, &second) == 0 && taken.refs.n == 0)
			r = 0;
	}
	git_refs_done(&taken.refs);
	return r;
}

/* The words: branch, bare repository. */
static const char make_clone[] =
	"set -e; cd /clone; git init -q; git symbolic-ref HEAD \"refs/heads/$1\"\n"
	"echo \"$2/objects\" > .git/objects/info/alternates\n"
	"git config remote.host.url \"$2\"\n"
	"git config remote.host.fetch '+refs/host/heads/*:refs/remotes/host/*'\n"
	"git fetch -q host '+refs/host/heads/*:refs/remotes/host/*' '+refs/tags/*:refs/tags/*'\n"
	"tip=$(git -C \"$2\" rev-parse -q --verify refs/host/HEAD) || exit 0\n"
	"git checkout -q -B \"$1\" \"$tip\"\n"
	"git rev-parse -q --verify \"refs/remotes/host/$1\" >/dev/null || exit 0\n"
	"git branch -q -u \"host/$1\"\n";

int git_clone_fill(const char *state_dir, const char *name, const char *workspace, const char *to,
		   struct err *e)
{
	_cleanup_(git_place_done) struct git_place place = { 0 };
	_free_ char *bare = repo_path(state_dir, name);
	_free_ char *bare_view = mem_fmt("%s:" GIT_CLONE_INSIDE ":ro", bare);
	_free_ char *to_view = mem_fmt("%s:/clone:rw", to);
	int r = git_place_find(workspace, &place, e);
	const char *argv[] = { "sh", "-c", make_clone, "sh", branch_or(&place), GIT_CLONE_INSIDE,
			       NULL };
	struct job j = { .state_dir = state_dir,
			 .views = { bare_view, to_view },
			 .env = { "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
				  "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
				  "GIT_CONFIG_VALUE_0=*" },
			 .argv = argv,
			 .seconds = GIT_TAKE_SECONDS };

	if (r == 0)
		r = workshop_run(&j, NULL, e);
	return r < 0 ? err_wrap(e, r, "the clone") : 0;
}

/* ---- fork ---- */

static int link_tree(int from, int to)
{
	DIR *d = fdopendir(fcntl(from, F_DUPFD_CLOEXEC, 3));
	struct dirent *en;
	int r = 0;

	if (d == NULL)
		return -errno;
	while (r == 0 && (en = readdir(d)) != NULL) {
		_close_ int sub = FD_NONE, made = FD_NONE;

		if (en->d_name[0] == '.')
			continue;
		sub = openat(from, en->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0) {
			r = linkat(from, en->d_name, to, en->d_name, 0) < 0 && errno != EEXIST
				    ? -errno
				    : 0;
			continue;
		}
		if (mkdirat(to, en->d_name, 0700) < 0 && errno != EEXIST)
			r = -errno;
		made = openat(to, en->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (r == 0)
			r = made < 0 ? -errno : link_tree(sub, made);
	}
	(void)closedir(d);
	return r;
}

int git_clone_fork(const char *state_dir, const char *from, const char *to, struct err *e)
{
	_free_ char *old = repo_path(state_dir, from), *new = repo_path(state_dir, to);
	_free_ char *old_objects = mem_fmt("%s/objects", old),
		    *new_objects = mem_fmt("%s/objects", new);
	_free_ char *empty = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_EMPTY, state_dir, to);
	_close_ int a = FD_NONE, b = FD_NONE;
	struct git_refs refs = { 0 };
	int r;

	if (!git_clone_exists(state_dir, from))
		return 0;
	r = git_bare_look(old, &refs,
			  e); /* only plain files and directories, or we do not touch it */
	git_refs_done(&refs);
	if (r == 0)
		r = path_make(empty, 0700) < 0 ? err_sys(e, "'%s'", empty) : 0;
	if (r == 0)
		r = git_bare_make(new, e);
	if (r < 0)
		return r;
	a = open(old_objects, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	b = open(new_objects, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = a < 0 || b < 0 ? -errno : link_tree(a, b);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", new, strerrordesc_np(-r)) : 0;
}
