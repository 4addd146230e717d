/* SPDX-License-Identifier: Apache-2.0 */
/* keep/setid.c - takes set-user-id and set-group-id bits off what the sandbox leaves on the host
 *
 * Where: every directory of the host that was mounted for writing, the workspace among them. Not the state directory, which
 * only its owner can enter. When: nothing inside lives any more. Which: files that were changed since the start. A file that
 * has had such a bit for longer is the host's own and keeps it, unless nothing proves that: the clock was set meanwhile, or
 * the file system does not show stores through a mapping (tree_times_hold), which leave the bits of a file on.
 *
 * The last sweep of a directory looks for them on its way (setid_begin, setid_end); what is not swept, or was not swept to
 * its end, is walked here.
 *
 * A look at every file grows with the tree. It can be left out where two things are known: no call that makes such a bit was
 * made inside (notice.c), and which files had one before (the list of the tree, view/index.h). The latter are looked at in
 * any case, because a store through a mapping changes a file and leaves its bits on, and no call tells.
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

static bool do_times_hold(struct keeper *k)
{
	if (k->setid.times == TIMES_UNKNOWN)
		k->setid.times = tree_times_hold(k->setid.look.root_fd) ? TIMES_HOLD : TIMES_DO_NOT;
	return k->setid.times == TIMES_HOLD;
}

static bool on_found(void *keeper, const char *rel, mode_t bits, bool is_old)
{
	struct keeper *k = keeper;
	const char *which = bits == S_ISGID   ? "set-group-id bit"
			    : bits == S_ISUID ? "set-user-id bit"
					      : "set-user-id and set-group-id bits";
	_free_ char *path = mem_fmt("%s%s%s", k->setid.root, rel[0] ? "/" : "", rel);
	_free_ char *why = mem_fmt("the %s made inside was taken off", which);

	if (is_old && do_times_hold(k))
		return false;
	tell_set_id(k, path, why);
	if (k->setid.told++ < NOTES_MAX) {
		_cleanup_(buf_done) struct buf note = BUF(16 * KIB);

		buf_puts(&note, "unprivileged ");
		buf_puts(&note, path);
		buf_printf(&note, " (%s)", which);
		keeper_note(k, buf_cstr(&note));
	}
	return true;
}

static int64_t since(const struct keeper *k)
{
	int64_t real = real_now() - k->setid.real_ns;
	int64_t drift = real - (int64_t)(clock_now() - k->setid.mono_ns);

	return drift > SLACK_NS / 2 || drift < -SLACK_NS / 2 ? 0 : k->setid.real_ns - SLACK_NS;
}

static bool is_shown_for_writing(const struct plan *p, const struct mount *m)
{
	return m->kind == MOUNT_BIND && !(m->flags & MOUNT_RO) && m->src && m->src[0] == '/' &&
	       !path_is_beneath(m->src, p->state_dir);
}

static bool is_writable(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (is_shown_for_writing(p, &p->mounts[i]) && str_eq(p->mounts[i].src, path))
			return true;
	return false;
}

/* Where such files may be made (plan/plan.c says when), they are what was asked for: a template's sudo. */
static bool is_wanted(const struct keeper *k)
{
	return !sabotaged("set-id") && !k->in->plan->may_suid;
}

static struct setid *look_at(struct keeper *k, const char *path, int fd)
{
	struct setid *s = &k->setid.look;

	*s = (struct setid){ .root_fd = fd, .since = since(k), .on_found = on_found, .arg = k };
	k->setid.root = path;
	k->setid.times = TIMES_UNKNOWN;
	return s;
}

static void tell_left(struct keeper *k, const char *why)
{
	_free_ char *note = mem_fmt("set-user-id and set-group-id bits may be left in '%.300s': "
				    "%.200s",
				    k->setid.root, why);

	keeper_note(k, note);
}

void setid_end(struct keeper *k, struct setid *s, bool is_whole)
{
	if (s == NULL)
		return;
	if (s->failed > 0)
		tell_left(k, "a mode could not be looked at or changed");
	if (!is_whole)
		return;
	vec_reserve(k->setid.swept, k->setid.n_swept, k->setid.cap_swept);
	k->setid.swept[k->setid.n_swept++] = k->setid.root;
}

struct setid *setid_begin(struct keeper *k, const char *path, int fd, const struct index *list)
{
	struct setid *s;

	if (!is_wanted(k) || !is_writable(k->in->plan, path))
		return NULL;
	s = look_at(k, path, fd);
	s->is_listed = list && notice_saw_none(k) && setid_look_listed(s, list);
	return s;
}

static bool is_swept(const struct keeper *k, const char *path)
{
	for (size_t i = 0; i < k->setid.n_swept; i++)
		if (str_eq(k->setid.swept[i], path))
			return true;
	return false;
}

static void strip(struct keeper *k, const char *path, int fd)
{
	struct setid *s = setid_begin(k, path, fd, NULL);
	struct err e = ERR_INIT;

	if (s && setid_strip(s, &e) < 0)
		tell_left(k, e.msg);
	setid_end(k, s, false);
}

void setid_finish(struct keeper *k)
{
	const struct plan *p = k->in->plan;

	if (!is_wanted(k))
		return;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_ws = str_eq(m->src ? m->src : "", p->workspace);
		_close_ int fd = FD_NONE;
		struct stat st;

		if (!is_shown_for_writing(p, m) || is_swept(k, m->src))
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
