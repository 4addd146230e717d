/* SPDX-License-Identifier: Apache-2.0 */
/* keep/disk.c - what a sandbox that lasts keeps on the disk, while it runs
 *
 * Its home and its layers are directories of the host, which no kernel bounds for us. So the keeper looks: often and
 * cheaply at the room that is left on their file system, which says how much they can have grown at most; and seldom at
 * themselves, in a child, for a walk takes as long as it takes. A walk is due when the room has gone down by half of what
 * is left of the limit, and now and then in any case, because others may have made room meanwhile.
 *
 * The walk is made in a user namespace of its own: there a directory that was closed to everybody is open to its owner. Where
 * there is a root inside, that namespace has the ids of the sandbox.
 */
#include "keep/disk.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "keep/keeper.h"
#include "sys/userns.h"

#define FIRST_NS NS_PER_SEC
#define SOONEST_NS (200 * NS_PER_MS)
#define LATEST_NS (5 * NS_PER_SEC)
#define FILL_RATE GIB /* bytes a second that a quick disk takes */
#define ANYWAY_NS (5 * NS_PER_SEC)
#define SHORT_NS (100 * NS_PER_MS) /* a run in which not much can be written */
#define SHARE_ANYWAY 100           /* of a processor at most, when nothing speaks for a walk */
#define SHARE_DUE 5                /* and when something does */

/* ---- decisions ---- */

/* Has it gone down by half of what may still be taken? */
static bool has_shrunk(uint64_t before, uint64_t now, uint64_t used, uint64_t max)
{
	uint64_t left = max > used ? max - used : 0;

	return now < before && before - now >= left / 2;
}

bool disk_is_due(const struct disk_seen *s, uint64_t max, const struct disk_room *room,
		 uint64_t now_ns)
{
	uint64_t since = now_ns - s->ended_ns;

	if (!s->is_known)
		return true;
	if (since >= ANYWAY_NS && since >= s->cost_ns * SHARE_ANYWAY)
		return true;
	return since >= s->cost_ns * SHARE_DUE &&
	       (has_shrunk(s->room.bytes, room->bytes, s->used, max) ||
		has_shrunk(s->room.files, room->files, s->names, disk_names(max)));
}

uint64_t disk_next(const struct disk_seen *s, uint64_t max)
{
	uint64_t left = max > s->used ? max - s->used : 0;
	uint64_t ns = left / FILL_RATE >= LATEST_NS / NS_PER_SEC
			      ? LATEST_NS
			      : left / (FILL_RATE / MIB) * (NS_PER_SEC / MIB);

	return ns < SOONEST_NS ? SOONEST_NS : ns > LATEST_NS ? LATEST_NS : ns;
}

uint64_t disk_names(uint64_t max)
{
	uint64_t names = max / 4096 + 1024;

	return names < DISK_NAMES_ALL ? names : DISK_NAMES_ALL;
}

bool disk_is_over(const struct disk_use *u, uint64_t max)
{
	return u->bytes > max || u->is_cut;
}

/* ---- looking ---- */

struct disk {
	struct disk_seen seen;
	struct disk_room room; /* of the walk that is under way */
	uint64_t began_ns, born_ns;
	pid_t walker;
	int said;
	struct watch *on_time, *on_said;
};

static uint64_t max_of(const struct keeper *k)
{
	return k->in->plan->limits[LIMIT_DISK].max;
}

static _Noreturn void walk(const struct keeper *k, int to)
{
	const struct plan *p = k->in->plan;
	struct disk_use u;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)io_most_files(SIZE_MAX); /* one is open on each level */
	/* Where that cannot be, closed directories are not counted; root can look into them anyway. */
	if (geteuid() != 0 && p->ids.root == ROOT_NONE)
		(void)userns_enter(geteuid(), getegid(), 0);
	u = p->ids.root == ROOT_SETUID
		    ? layers_disk_rooted(p->state_dir, p->name, disk_names(max_of(k)), &p->ids.uids,
					 &p->ids.gids)
		    : layers_disk(p->state_dir, p->name, disk_names(max_of(k)));
	(void)io_write_all(to, &u, sizeof(u)); /* nobody there: nobody asks */
	_exit(0);
}

static void forget_walker(struct disk *d)
{
	watch_free(d->on_said);
	d->on_said = NULL;
	fd_close(take_fd(d->said));
	if (d->walker > 0) {
		(void)kill(d->walker, SIGKILL);
		(void)waitpid(d->walker, NULL, 0);
	}
	d->walker = 0;
}

static void look_again(struct keeper *k);

static void on_said(void *arg)
{
	struct keeper *k = arg;
	struct disk *d = k->disk;
	struct disk_use u;
	bool is_whole = io_read(d->said, &u, sizeof(u)) == (ssize_t)sizeof(u);
	uint64_t now = clock_now();

	forget_walker(d);
	if (is_whole)
		d->seen = (struct disk_seen){ .is_known = true,
					      .used = u.bytes,
					      .names = u.names,
					      .room = d->room,
					      .ended_ns = now,
					      .cost_ns = now - d->began_ns };
	if (is_whole && disk_is_over(&u, max_of(k)) && !sabotaged("disk")) {
		if (u.bytes <= max_of(k))
			keeper_note(k, "it keeps more files than a disk of that size has room for, "
				       "or "
				       "nests them too deep to be counted");
		tell_limit(k, LIMIT_DISK, u.bytes);
		keeper_end(k, END_DISK);
		return;
	}
	look_again(k);
}

static void start_walk(struct keeper *k, const struct disk_room *room)
{
	struct disk *d = k->disk;
	int end[2];

	if (pipe2(end, O_CLOEXEC) < 0)
		return; /* at the next look */
	d->room = *room;
	d->began_ns = clock_now();
	d->walker = fork();
	if (d->walker == 0)
		walk(k, end[1]);
	fd_close(end[1]);
	d->said = end[0];
	d->on_said = watch_fd(k->loop, d->said, WATCH_READ, on_said, k);
}

static void on_time(void *arg)
{
	struct keeper *k = arg;
	struct disk *d = k->disk;
	struct disk_room room;

	watch_free(d->on_time);
	d->on_time = NULL;
	if (disk_room_find(k->dir, &room) && disk_is_due(&d->seen, max_of(k), &room, clock_now()))
		start_walk(k, &room);
	if (d->walker <= 0)
		look_again(k);
}

static void look_again(struct keeper *k)
{
	struct disk *d = k->disk;
	/* Without a session there may still be somebody who writes, but hardly in a hurry. */
	uint64_t ns = sessions_live(k) > 0 ? disk_next(&d->seen, max_of(k)) : LATEST_NS;

	d->on_time = watch_timer(k->loop, ns, false, on_time, k);
}

void disk_start(struct keeper *k)
{
	const struct plan_limit *l = &k->in->plan->limits[LIMIT_DISK];

	if (!l->is_set || l->by != BY_WATCHED || !keeper_is_named(k) || k->dir < 0)
		return;
	if (k->disk == NULL) {
		k->disk = mem_new(1, sizeof(*k->disk));
		*k->disk = (struct disk){ .said = FD_NONE, .born_ns = clock_now() };
	}
	if (k->disk->on_time == NULL && k->disk->walker <= 0)
		k->disk->on_time = watch_timer(k->loop, FIRST_NS, false, on_time, k);
}

/* For the next start: what was counted last, or that it must count because nobody has (core/disk_note.h). */
static void leave_note(const struct keeper *k)
{
	const struct disk_seen *s = &k->disk->seen;
	uint64_t now = clock_now();

	if (s->is_known)
		disk_note_write(k->dir,
				&(struct disk_note){ .when = clock_real() / NS_PER_SEC -
							     (now - s->ended_ns) / NS_PER_SEC,
						     .used = s->used,
						     .room = s->room.bytes });
	else if (now - k->disk->born_ns > SHORT_NS)
		(void)unlinkat(k->dir, DISK_NOTE_FILE, 0); /* there may be none */
}

void disk_finish(struct keeper *k)
{
	if (k->disk == NULL)
		return;
	leave_note(k);
	forget_walker(k->disk);
	watch_free(k->disk->on_time);
	free(k->disk);
	k->disk = NULL;
}
