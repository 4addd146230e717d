/* SPDX-License-Identifier: Apache-2.0 */
/* keep/setid.c - takes set-user-id and set-group-id bits off what the sandbox leaves on the host
 *
 * Where: every directory of the host that was mounted for writing, the workspace among them. Not the state directory, which
 * only its owner can enter. When: nothing inside lives any more. Which: files that were changed since the start. A file that
 * has had such a bit for longer is the host's own and keeps it, unless nothing proves that: the clock was set meanwhile, or
 * the file system does not show stores through a mapping (tree_times_hold), which leave the bits of a file on.
 */
#include <fcntl.h>
#include <time.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "keep/keeper.h"
#include "tree/tree.h"
#include "view/setid.h"

#define SLACK_NS ((int64_t)NS_PER_SEC) /* the command may run before the keeper reads the clock */
#define NOTES_MAX 100

static int64_t real_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * (int64_t)NS_PER_SEC + t.tv_nsec;
}

void setid_start(struct keeper *k)
{
	k->setid.real_ns = real_now();
	k->setid.mono_ns = clock_now();
}

static void on_found(void *keeper, const char *rel, mode_t bits)
{
	struct keeper *k = keeper;
	const char *which = bits == S_ISGID   ? "set-group-id bit"
			    : bits == S_ISUID ? "set-user-id bit"
					      : "set-user-id and set-group-id bits";
	_free_ char *path = mem_fmt("%s%s%s", k->setid.root, rel[0] ? "/" : "", rel);
	_free_ char *why = mem_fmt("the %s made inside was taken off", which);

	tell_set_id(k, path, why);
	if (k->setid.told++ < NOTES_MAX) {
		_cleanup_(buf_done) struct buf note = BUF(16 * KIB);

		buf_puts(&note, "unprivileged ");
		buf_puts(&note, path);
		buf_printf(&note, " (%s)", which);
		keeper_note(k, buf_cstr(&note));
	}
}

static int64_t since(const struct keeper *k)
{
	int64_t real = real_now() - k->setid.real_ns;
	int64_t drift = real - (int64_t)(clock_now() - k->setid.mono_ns);

	return drift > SLACK_NS / 2 || drift < -SLACK_NS / 2 ? 0 : k->setid.real_ns - SLACK_NS;
}

static void strip(struct keeper *k, const char *path, int fd)
{
	struct setid s = { .since = since(k), .on_found = on_found, .arg = k };
	struct err e = ERR_INIT;
	int r;

	k->setid.root = path;
	r = setid_strip(fd, &s, &e);
	if (r == 0 && s.spared > 0 && !tree_times_hold(fd)) {
		s.since = 0;
		r = setid_strip(fd, &s, &e);
	}
	if (r < 0 || s.failed > 0) {
		_free_ char *note = mem_fmt("set-user-id and set-group-id bits may be left in "
					    "'%.300s': "
					    "%.200s",
					    path, r < 0 ? e.msg : "a mode could not be changed");

		keeper_note(k, note);
	}
}

static bool is_shown_for_writing(const struct plan *p, const struct mount *m)
{
	return m->kind == MOUNT_BIND && !(m->flags & MOUNT_RO) && m->src && m->src[0] == '/' &&
	       !path_is_beneath(m->src, p->state_dir);
}

void setid_finish(struct keeper *k)
{
	const struct plan *p = k->in->plan;

	if (sabotaged("set-id"))
		return;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_ws = str_eq(m->src ? m->src : "", p->workspace);
		_close_ int fd = FD_NONE;
		struct stat st;

		if (!is_shown_for_writing(p, m))
			continue;
		fd = is_ws ? fcntl(k->in->ws_fd, F_DUPFD_CLOEXEC, 3)
			   : open(m->src, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		/* Another thing has that name now: what the inside wrote is not there. */
		if (fd < 0 || fstat(fd, &st) < 0 ||
		    (m->ino && (m->ino != st.st_ino || m->dev != st.st_dev)))
			continue;
		strip(k, m->src, fd);
	}
}
