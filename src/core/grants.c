/* SPDX-License-Identifier: Apache-2.0 */
/* core/grants.c - what the policy shows of the host: each path resolved, known by its inode, and looked through
 *
 * A directory that can be written is looked through as the workspace is, for names that hide and protect speak of; in one
 * that can only be read sockets are looked for. On the start path, once for each grant; the cost is that of a walk.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "core/facts.h"
#include "core/settings.h"

struct cover *host_covers(const struct scan *s, bool only_hidden, size_t *ret_n)
{
	struct cover *v = mem_new(s->n, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct hit *hit = &s->v[i];

		if (hit->is_alias && sabotaged("aliases"))
			continue;
		if (only_hidden && hit->kind != HIT_HIDE && hit->shown == NULL)
			continue;
		v[n++] = (struct cover){
			.rel = hit->rel,
			.rule = hit->rule,
			.is_dir = hit->is_dir,
			.is_alias = hit->is_alias,
			.shown = hit->shown,
			.kind = hit->kind == HIT_HIDE      ? COVER_HIDE
				: hit->kind == HIT_PROTECT ? COVER_PROTECT
							   : COVER_PIN,
		};
	}
	*ret_n = n;
	return v;
}

struct wanted {
	const char *flag;
	const char *path;   /* as it was said */
	const char *inside; /* where it is seen; NULL: where it is */
	bool is_write;
};

static int look_sockets(struct entry *en, int fd, struct err *e)
{
	_cleanup_(scan_done) struct scan s = { 0 };
	int r = scan_sockets(fd, &s, e);

	en->sockets = mem_new(s.n, sizeof(*en->sockets));
	for (; en->n_sockets < s.n; en->n_sockets++)
		en->sockets[en->n_sockets] = mem_str(s.v[en->n_sockets].rel);
	return r;
}

/* The nearest directory above it that is a repository's, or NULL. */
static char *gitdir_above(const char *path)
{
	_free_ char *up = path_parent(path);

	while (!str_eq(up, "/")) {
		_close_ int fd = open(up, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char *next;

		if (fd >= 0 && scan_is_gitdir(fd))
			return take(up);
		next = path_parent(up);
		free(up);
		up = next;
	}
	return NULL;
}

/* Nothing is hidden or protected: all of it was taken back. */
static bool guards_nothing(const struct policy *p)
{
	return p->hide.n > 0 && str_eq(p->hide.v[p->hide.n - 1].text, "!**") && p->protect.n > 0 &&
	       str_eq(p->protect.v[p->protect.n - 1].text, "!**");
}

static int look_ground(struct host *h, const struct policy *p, const struct wanted *w, int fd,
		       struct err *e)
{
	struct entry *en = &h->facts.extra.v[h->facts.extra.n - 1];
	struct ground g = { .dev = en->dev, .ino = en->ino };
	_cleanup_(made_done) struct made made = { 0 };
	int r = host_mend(h, en->path, fd, e);

	made_load(h->state_dir, en->path, &made);
	if (r == 0)
		r = scan_run_made(fd, p, &made, h->state_dir, &g.scan, e);
	if (r < 0)
		return err_wrap(e, r, "%s '%s'", w->flag, en->path);
	h->facts.n_files += g.scan.files;
	en->covers = host_covers(&g.scan, false, &en->n_covers);
	g.real = mem_str(en->path);
	g.inside = mem_str(w->inside ? w->inside : en->path);
	h->grounds = mem_grow(h->grounds, h->n_grounds + 1, sizeof(*h->grounds));
	h->grounds[h->n_grounds++] = g;
	return 0;
}

static int look_through(struct host *h, const struct policy *p, const struct wanted *w,
			struct entry *en, struct err *e)
{
	_close_ int fd = FD_NONE;
	struct stat st;

	if (w->is_write)
		en->gitdir = gitdir_above(en->path);
	if (en->kind != ENTRY_DIR)
		return 0;
	fd = open(en->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", en->path);
	if (st.st_ino != en->ino || st.st_dev != en->dev)
		return err_set(e, ERR_CONFLICT, ESTALE,
			       "%s '%s' was replaced while we looked at it", w->flag, en->path);
	return w->is_write && !guards_nothing(p) ? look_ground(h, p, w, fd, e)
						 : look_sockets(en, fd, e);
}

static int look(struct host *h, const struct policy *p, const struct wanted *w, struct err *e)
{
	_free_ char *full = str_starts(w->path, "~/") ? path_join(h->home, w->path + 2)
						      : path_join(h->cwd, w->path);
	char *real = NULL;
	int r = path_real(full, &real, e);

	if (r == 0)
		r = places_add(&h->places, full, real, FD_NONE, e);
	if (r < 0) {
		free(real);
		e->kind = ERR_USAGE;
		return err_wrap(e, r, "%s", w->flag);
	}
	return look_through(h, p, w, host_look_at(&h->facts.extra, real, true), e);
}

/* HOST:INSIDE:mode */
static int look_mount(struct host *h, const struct policy *p, const char *text, struct err *e)
{
	_free_ char *path = mem_strn(text, strcspn(text, ":")), *inside = NULL;
	const char *mode = strrchr(text, ':'), *at = text + strlen(path) + 1;

	bug_on(mode == NULL || mode < at);
	inside = mem_strn(at, (size_t)(mode - at));
	return look(h, p, &(struct wanted){ "-v", path, inside, str_eq(mode, ":rw") }, e);
}

int host_grants(struct host *h, const struct policy *p, struct err *e)
{
	_free_ char *policy =
		p->write.n + p->mount.n > 0 ? path_join(h->config_dir, SETTINGS_USER_NAME) : NULL;
	int r = 0;

	if (policy) {
		h->facts.config_real = h->config_real = realpath(h->config_dir, NULL);
		h->facts.policy_real = h->policy_real = realpath(policy, NULL);
	}
	for (size_t i = 0; r == 0 && i < p->read.n; i++)
		r = look(h, p, &(struct wanted){ "--read", p->read.v[i].text, NULL, false }, e);
	for (size_t i = 0; r == 0 && i < p->write.n; i++)
		r = look(h, p, &(struct wanted){ "--write", p->write.v[i].text, NULL, true }, e);
	for (size_t i = 0; r == 0 && i < p->mount.n; i++)
		r = look_mount(h, p, p->mount.v[i].text, e);
	return r;
}

/* A linked worktree needs no flag. Its own directory is protected as the workspace is. */
int host_worktree(struct host *h, const struct policy *p, struct err *e)
{
	struct plan_worktree *f = &h->facts.worktree;
	_close_ int fd = FD_NONE;
	struct ground g = { 0 };
	struct stat st;
	int r;

	if (p->mode != WS_DIRECT ||
	    worktree_find(h->workspace, h->state_dir, &h->worktree, &h->worktree_why) == 0)
		return 0;
	fd = open(h->worktree.own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", h->worktree.own);
	g.dev = st.st_dev;
	g.ino = st.st_ino;
	r = scan_run(fd, p, &g.scan, e);
	if (r < 0)
		return err_wrap(e, r, "'%s'", h->worktree.own);
	f->common = h->worktree.common;
	f->own = h->worktree.own;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	for (size_t i = 0; plan_worktree_parts[i]; i++) {
		_free_ char *part = mem_fmt("%s/%s", f->common, plan_worktree_parts[i]);

		/* A link there would lead elsewhere: it is not shown. */
		if (lstat(part, &st) < 0 ||
		    !(S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && str_ends(part, "/config"))))
			f->missing |= BIT(i);
	}
	f->covers = host_covers(&g.scan, false, &f->n_covers);
	g.real = mem_str(f->own);
	g.inside = mem_str(f->own);
	h->grounds = mem_grow(h->grounds, h->n_grounds + 1, sizeof(*h->grounds));
	h->grounds[h->n_grounds++] = g;
	return 0;
}
