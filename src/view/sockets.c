/* SPDX-License-Identifier: Apache-2.0 */
/* view/sockets.c - unix sockets in a directory that is shown inside
 *
 * A read-only mount does not stop connect(), and pathname sockets know no network namespace: a socket that can be
 * seen can be talked to. So those that are there are hidden.
 */
#include "view/view.h"
#include "view/walk.h"

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	struct scan *s = arg;

	(void)len;
	if (type == DT_UNKNOWN)
		type = walk_type(d->fd, name);
	if (type == DT_SOCK && s->n < SCAN_HITS_MAX) {
		vec_reserve(s->v, s->n, s->cap);
		s->v[s->n++] = (struct hit){ .rel = d->rel_len ? mem_fmt("%s/%s", d->rel, name)
							       : mem_str(name),
					     .kind = HIT_HIDE,
					     .rule = VIEW_SOCKET_RULE };
	}
	return 1;
}

int scan_sockets(int root_fd, struct scan *ret, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry };
	struct walk_stats stats = { 0 };

	*ret = (struct scan){ 0 };
	return walk_run(root_fd, 1, &ops, ret, &stats, e);
}
