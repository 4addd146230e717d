/* SPDX-License-Identifier: Apache-2.0 */
/* view/outcome_host.c - what the host has, as facts for outcome.c
 *
 * The scan finds what is protected and exists. What a git configuration names and does not exist yet is found by reading
 * the configurations once more; each is known twice where a link lies on the way, by its name and by where it leads.
 */
#include "view/outcome.h"

#include "base/path.h"
#include "view/scan.h"

static void add_name(struct outcome_host *h, char *take_rel)
{
	vec_reserve(h->named, h->n, h->cap);
	h->named[h->n++] = take_rel;
}

struct naming {
	struct outcome_host *h;
	const struct ws *ws;
};

static int on_ref(void *arg, char *rel, unsigned flags, struct err *e)
{
	struct naming *n = arg;
	char *target = NULL;

	(void)e;
	if (flags & REF_UNSURE)
		return 0; /* protected where it exists, and else any name */
	add_name(n->h, mem_str(rel));
	if (ws_resolve(n->ws, "", rel, &target) == 0)
		add_name(n->h, target);
	return 0;
}

static int read_config(struct outcome_host *h, const struct ws *ws, const char *dir,
		       const char *name, struct err *e)
{
	const struct scan_config c = { .ws = ws, .scan = &h->scan, .gitdir = dir, .name = name };
	struct naming n = { .h = h, .ws = ws };

	return scan_config_refs(&c, on_ref, &n, e);
}

static int read_names(struct outcome_host *h, const struct ws *ws, struct err *e)
{
	struct naming n = { .h = h, .ws = ws };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < h->scan.n; i++) {
		const char *rel = h->scan.v[i].rel, *name = path_name(rel);
		_free_ char *dir = path_parent(rel);
		bool is_config = str_eq(name, "config") || str_eq(name, "config.worktree");

		if (h->scan.v[i].kind != HIT_PIN && is_config)
			r = read_config(h, ws, dir, name, e);
	}
	return r < 0 ? r : refs_outside(&h->scan, ws, on_ref, &n, e);
}

int outcome_host_load(int ws_fd, const struct policy *p, struct outcome_host *ret, struct err *e)
{
	struct outcome_host h = { 0 };
	struct ws ws = { .fd = FD_NONE };
	int r = ws_init(&ws, ws_fd, e);

	if (r == 0)
		r = scan_run(ws_fd, p, &h.scan, e);
	if (r == 0)
		r = read_names(&h, &ws, e);
	if (r < 0) {
		outcome_host_done(&h);
		ws_done(&ws);
		return err_wrap(e, r, "what the workspace protects cannot be found out");
	}
	h.abs = take(ws.abs);
	*ret = h;
	return 0;
}

int outcome_host_top(int fd, struct outcome_host *ret, struct err *e)
{
	struct outcome_host h = { 0 };
	struct ws ws = { .fd = FD_NONE };
	int r = ws_init(&ws, fd, e);

	if (r == 0)
		r = refs_load(&h.scan, &ws, e);
	if (r >= 0)
		r = read_config(&h, &ws, ".git", "config", e);
	if (r >= 0)
		r = read_config(&h, &ws, ".git", "config.worktree", e);
	h.abs = take(ws.abs);
	if (r < 0)
		outcome_host_done(&h);
	else
		*ret = h;
	return r < 0 ? r : 0;
}

void outcome_host_done(struct outcome_host *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->named[i]);
	free(h->named);
	free(h->abs);
	scan_done(&h->scan);
	*h = (struct outcome_host){ 0 };
}
