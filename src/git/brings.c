/* SPDX-License-Identifier: Apache-2.0 */
/* git/brings.c - see git.h: the paths that commits would bring to a checkout of the host
 *
 * git itself compares the trees, in the workshop: the repository is one that the inside fills. A commit cannot hold a
 * directory called .git (fsckObjects refuses it), but it can hold every part of a bare repository.
 */
#include "base/num.h"
#include "core/workshop.h"
#include "git/git.h"

#define SECONDS 60

/* Against what the host has checked out, or against nothing. */
static const char script[] =
	"set -e; mkdir /tmp/git; cd /tmp/git; ln -s /repo/objects objects; ln -s /repo/refs refs\n"
	"echo 'ref: refs/vitrine/none' >HEAD\n"
	"printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = true\\n' >config\n"
	"base=$(git rev-parse -q --verify 'refs/host/HEAD^{tree}') || "
	"base=$(git hash-object -t tree --stdin </dev/null)\n"
	"for oid; do git diff-tree -r -z --raw --no-renames --diff-filter=d \"$base\" "
	"\"$oid^{tree}\"; done\n";

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct git_path *)a)->path, ((const struct git_path *)b)->path);
}

void git_paths_done(struct git_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	free(p->v);
	*p = (struct git_paths){ 0 };
}

/* ":OLDMODE NEWMODE OLD NEW STATUS" NUL path NUL, again and again. */
static int parse(const struct buf *b, struct git_paths *ret, struct err *e)
{
	for (size_t at = 0; at < b->n;) {
		const char *head = b->p + at, *path;
		size_t n = strnlen(head, b->n - at);
		unsigned mode = 0;

		path = head + n + 1;
		if (n < 15 || head[0] != ':' || at + n + 1 >= b->n)
			return err_set(e, ERR_SYSTEM, EBADMSG, "git listed no paths");
		for (size_t i = 8; i < 14; i++)
			mode = mode * 8 + (unsigned)(head[i] - '0');
		vec_reserve(ret->v, ret->n, ret->cap);
		ret->v[ret->n++] = (struct git_path){
			.path = mem_strn(path, strnlen(path, b->n - at - n - 1)),
			.mode = mode,
		};
		at += n + 1 + strlen(ret->v[ret->n - 1].path) + 1;
	}
	if (ret->n > 0)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
	return 0;
}

int git_brings(const char *state_dir, const char *bare, const struct git_ref *refs, size_t n_refs,
	       struct git_paths *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB);
	_free_ char *objects = mem_fmt("%s/objects:/repo/objects:ro", bare);
	_free_ char *names = mem_fmt("%s/refs:/repo/refs:ro", bare);
	const char *argv[GIT_BRINGS_MAX + 5] = { "sh", "-c", script, "sh" };
	struct job j = { .state_dir = state_dir,
			 .views = { objects, names },
			 .env = { "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
				  "GIT_DIR=/tmp/git", "LC_ALL=C" },
			 .argv = argv,
			 .seconds = SECONDS,
			 .in = FD_NONE,
			 .out = FD_NONE,
			 .err = FD_NONE };
	int r;

	bug_on(n_refs > GIT_BRINGS_MAX);
	*ret = (struct git_paths){ 0 };
	for (size_t i = 0; i < n_refs; i++)
		argv[4 + i] = refs[i].oid;
	r = workshop_run(&j, &out, e);
	return r < 0 ? r : parse(&out, ret, e);
}
