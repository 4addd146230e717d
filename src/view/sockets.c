/* SPDX-License-Identifier: Apache-2.0 */
/* view/sockets.c - unix sockets in a directory that is shown inside
 *
 * A read-only mount does not stop connect(), and pathname sockets know no network namespace: a socket that can be
 * seen can be talked to. So those that are there are hidden.
 */
#include <fcntl.h>

#include "view/view.h"
#include "view/walk.h"
#include "view/ws.h"

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	struct scan *s = arg;

	(void)len;
	if (type == DT_SOCK && s->n <= SCAN_HITS_MAX) {
		vec_reserve(s->v, s->n, s->cap);
		s->v[s->n++] = (struct hit){ .rel = ws_rel(d->rel, name),
					     .kind = HIT_HIDE,
					     .rule = VIEW_SOCKET_RULE };
	}
	return 1;
}

/* Names cannot be listed there, but whoever knows one can use it. What is closed altogether is closed inside as well: the
 * directory is shown read-only, or scan_run() hides it. */
static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	struct scan *s = arg;
	struct stat st;

	if (num == EACCES && parent_fd >= 0 && s->unlisted == NULL &&
	    fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & 0100))
		s->unlisted = ws_rel(rel, name);
	return FD_NONE;
}

int scan_sockets(int root_fd, struct scan *ret, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry, .refused = on_refused };
	struct walk_stats stats = { 0 };
	int r;

	*ret = (struct scan){ 0 };
	r = walk_run(root_fd, 1, &ops, ret, &stats, e);
	if (r == 0 && ret->unlisted)
		r = err_set(e, ERR_UNSUPPORTED, EACCES,
			    "'%.300s' can be passed but not listed, so sockets in it cannot be "
			    "found; make it readable, or grant less",
			    ret->unlisted);
	if (r == 0 && ret->n > SCAN_HITS_MAX)
		r = err_set(e, ERR_UNSUPPORTED, E2BIG,
			    "more than %d sockets to hide, for example '%.200s'", SCAN_HITS_MAX,
			    ret->v[0].rel);
	return r;
}
