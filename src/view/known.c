/* SPDX-License-Identifier: Apache-2.0 */
/* view/known.c - see known.h
 *
 * What is known of a file are its bytes, read while the mask lay on it. The old file itself is not good enough: when the
 * host replaces it the kernel takes the mask off a moment before the name goes, and in that moment it can be opened inside
 * by that name. By then it has one name less, so bytes that were read *before* its links are counted, and found complete,
 * were read under the mask. The host may also write to it in place: that is watched, and the bytes are read again.
 *
 * A copy is made beside the name and the two are exchanged in one step. What comes out at the other side must be what was
 * looked at: if it is not, the host has saved once more in between, so they are exchanged back and it begins anew. No
 * save of the host's is lost by our own.
 *
 * Those inside stand still meanwhile, but nothing rests on that alone. Once the mask is on the copy, known_verify() asks
 * whether it is still what was put there and whether anybody has it open for writing (the kernel gives out a lease on a
 * file only if nobody has); after that nobody inside can get at it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "view/known_own.h"
#include "view/quarantine.h"
#include "view/replica.h"
#include "view/sweep.h"
#include "view/walk.h"

#define TRIES 16
#define FILES_MAX 4096
#define FEW 256 /* so many descriptors everybody may have */
#define TEXT_MAX (256 * KIB)
#define TEXTS_MAX (16 * MIB)

/* ---- the table ---- */

static void drop(struct known *k, struct known_one *o)
{
	if (o->wd >= 0)
		(void)inotify_rm_watch(k->watch, o->wd); /* gone with its file: fine */
	fd_close(o->fd);
	fd_close(o->was);
	o->fd = o->was = FD_NONE;
	o->wd = -1;
	o->is_put = false;
}

static void drop_text(struct known *k, struct known_one *o)
{
	k->bytes -= o->text.n;
	buf_done(&o->text);
	o->has_text = false;
}

struct known *known_new(int ws_fd, const struct scan *s)
{
	struct known *k = mem_new(1, sizeof(*k));

	*k = (struct known){ .ws_fd = ws_fd,
			     .watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
			     .record = FD_NONE,
			     .is_dirty = true };
	if (s->n > FEW)
		(void)io_most_files(FILES_MAX + 1024); /* what cannot be opened is not known */
	for (size_t i = 0; i < s->n; i++) {
		const struct hit *h = &s->v[i];

		if (h->kind == HIT_PIN || h->is_link)
			continue;
		vec_reserve(k->v, k->n, k->cap);
		k->v[k->n++] = (struct known_one){ .rel = mem_str(h->rel),
						   .kind = h->kind,
						   .fd = FD_NONE,
						   .was = FD_NONE,
						   .wd = -1,
						   .dev = h->dev,
						   .ino = h->ino };
	}
	return k;
}

void known_free(struct known *k)
{
	if (k == NULL)
		return;
	for (size_t i = 0; i < k->n; i++) {
		drop(k, &k->v[i]);
		drop_text(k, &k->v[i]);
		free(k->v[i].rel);
	}
	fd_close(k->watch);
	fd_close(k->record);
	free(k->v);
	free(k);
}

/* Only files and directories: to open a pipe or a device can do things. A file that somebody holds with a lease is not
 * waited for: it is not known then. */
static int reopen(int at)
{
	char proc[40];
	struct stat st;
	int fd;

	if (fstat(at, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -EINVAL;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", at);
	fd = open(proc, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void known_set_text(struct known *k, struct known_one *o, struct buf *text, const struct stat *like)
{
	drop_text(k, o);
	k->is_dirty = true;
	if (k->bytes + text->n > TEXTS_MAX)
		return;
	o->text = *text;
	*text = BUF(TEXT_MAX);
	o->like = *like;
	o->has_text = true;
	k->bytes += o->text.n;
}

/* Reads what is under the mask. False: the mask may have gone meanwhile, and what was known stays known. */
static bool read_text(struct known *k, struct known_one *o)
{
	_cleanup_(buf_done) struct buf text = BUF(TEXT_MAX);
	struct stat before, after;

	if (fstat(o->fd, &before) < 0 || before.st_nlink == 0 || !S_ISREG(before.st_mode))
		return false;
	if (o->has_text && before.st_nlink != o->like.st_nlink)
		return false;
	if (replica_read(o->fd, &text) < 0 || fstat(o->fd, &after) < 0 ||
	    after.st_nlink != before.st_nlink)
		return false;
	known_set_text(k, o, &text, &after);
	return true;
}

static void watch_one(struct known *k, struct known_one *o)
{
	char proc[40];

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", o->fd);
	o->wd = inotify_add_watch(k->watch, proc, IN_MODIFY | IN_CLOSE_WRITE);
}

/* The file that was there when the masks were decided on, or none. */
static void open_one(struct known *k, struct known_one *o)
{
	_close_ int at = walk_open(k->ws_fd, o->rel, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0 || st.st_dev != o->dev || st.st_ino != o->ino)
		return;
	o->fd = reopen(at);
	o->fd = o->fd < 0 ? FD_NONE : o->fd;
	if (o->fd < 0 || S_ISDIR(st.st_mode))
		return;
	watch_one(k, o);
	(void)read_text(k, o);
}

int known_fd(const struct known *k)
{
	return k->watch;
}

void known_read(struct known *k)
{
	_Alignas(struct inotify_event) char events[4096];
	ssize_t n;

	while ((n = io_read(k->watch, events, sizeof(events))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *ev = (const void *)(events + at);

			at += (ssize_t)(sizeof(*ev) + ev->len);
			for (size_t i = 0; i < k->n; i++)
				if ((ev->mask & IN_Q_OVERFLOW || k->v[i].wd == ev->wd) &&
				    k->v[i].fd >= 0 && !k->v[i].is_put)
					(void)read_text(k, &k->v[i]);
		}
	}
}

bool known_step(struct known *k, size_t most)
{
	for (; most > 0 && k->at < k->n && k->at < FILES_MAX; most--)
		open_one(k, &k->v[k->at++]);
	return k->at < k->n && k->at < FILES_MAX;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_at_or_below(const char *path, const char *dir)
{
	return dir[0] == '\0' || path_is_beneath(path, dir);
}

static struct known_one *find(const struct known *k, const char *rel)
{
	size_t lo = 0, hi = k->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = path_cmp(k->v[mid].rel, rel);

		if (c == 0)
			return &k->v[mid];
		if (c > 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool known_is_own(const struct known *k, const char *rel)
{
	const struct known_one *o = find(k, rel);
	struct stat st, held;

	return o && o->fd >= 0 && o->changed.tv_sec && ws_lstat(k->ws_fd, rel, &st) == 0 &&
	       fstat(o->fd, &held) == 0 && is_same_file(&st, &held) &&
	       st.st_ctim.tv_sec == o->changed.tv_sec && st.st_ctim.tv_nsec == o->changed.tv_nsec;
}

bool known_renew(struct known *k, const char *rel)
{
	struct stat st;
	bool is_there = false;

	for (size_t i = 0; i < k->n; i++) {
		struct known_one *o = &k->v[i];

		if (o->is_gone || !is_at_or_below(o->rel, rel))
			continue;
		drop(k, o);
		drop_text(k, o);
		k->is_dirty = true;
		o->dev = o->ino = 0;
		if (ws_lstat(k->ws_fd, o->rel, &st) < 0)
			continue;
		is_there = true;
		o->dev = st.st_dev;
		o->ino = st.st_ino;
		open_one(k, o);
	}
	return is_there;
}

void known_forget(struct known *k, const char *rel)
{
	for (size_t i = 0; i < k->n; i++) {
		if (!is_at_or_below(k->v[i].rel, rel))
			continue;
		drop(k, &k->v[i]);
		drop_text(k, &k->v[i]);
		k->v[i].is_gone = k->is_dirty = true;
	}
}

/* ---- putting right ---- */

struct scene {
	struct known_one *o;
	int dir;          /* where the name is */
	const char *name; /* in it */
	int at;           /* what is there now, O_PATH */
	struct stat now;
	char temp[REPLICA_TEMP_MAX];
	struct buf text; /* of a file: what is there */
	struct buf cut;  /* of a config: what of that may stay */
	bool is_cut;
	enum known_act act;
	struct sweep *out;
};

static bool is_config(const struct known_one *o)
{
	const char *name = path_name(o->rel);

	return str_eq(name, "config") || str_eq(name, "config.worktree");
}

static enum known_act look_file(struct scene *s, int fd)
{
	const struct known_one *o = s->o;
	struct known_text last = { buf_cstr(&o->text), o->text.n }, now;

	if (replica_read(fd, &s->text) < 0)
		return KNOWN_PUT_BACK;
	if (o->has_text && (o->like.st_mode & 0111) != (s->now.st_mode & 0111))
		return KNOWN_PUT_BACK;
	now = (struct known_text){ buf_cstr(&s->text), s->text.n };
	if (known_judge(is_config(o), o->has_text ? &last : NULL, &now) == KNOWN_STAYS)
		return KNOWN_STAYS;
	s->is_cut = is_config(o) && o->has_text && known_cut(&last, &now, &s->cut);
	return KNOWN_PUT_BACK;
}

bool known_is_dir(const struct known_one *o)
{
	struct stat st;

	return o->fd >= 0 && fstat(o->fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum known_act look(struct scene *s)
{
	_close_ int fd = reopen(s->at);

	if (fd < 0)
		return KNOWN_PUT_BACK;
	if (S_ISREG(s->now.st_mode))
		return look_file(s, fd);
	return known_is_dir(s->o) && replica_is_same(s->o->fd, fd, KNOWN_BYTES_MAX)
		       ? KNOWN_STAYS
		       : KNOWN_PUT_BACK;
}

/* Our own file, beside the name. 1: there is one; 0: nothing to put there. */
static int make_copy(struct scene *s)
{
	const struct known_one *o = s->o;
	int r = replica_temp(s->temp);

	if (r < 0)
		return r;
	if (s->act == KNOWN_STAYS && S_ISREG(s->now.st_mode)) {
		r = replica_write(s->dir, s->temp, buf_cstr(&s->text), s->text.n,
				  o->has_text ? &o->like : &s->now);
	} else if (s->is_cut) {
		r = replica_write(s->dir, s->temp, buf_cstr(&s->cut), s->cut.n, &o->like);
	} else if (o->has_text) {
		r = replica_write(s->dir, s->temp, buf_cstr(&o->text), o->text.n, &o->like);
	} else if (known_is_dir(o)) {
		r = replica_make(o->fd, s->dir, s->temp, KNOWN_BYTES_MAX);
	} else {
		return 0;
	}
	if (r == 0)
		return 1;
	if (r != -EEXIST)
		(void)quarantine_remove(s->dir, s->temp);
	return r == -E2BIG ? 0 : r;
}

static bool is_at(const struct scene *s, const char *name, const struct stat *want)
{
	struct stat st;

	return fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(&st, want);
}

/* Somebody inside may have it open. What is kept are the bytes that were read, in a file of ours. */
static void part(const struct scene *s)
{
	const struct sweep *out = s->out;
	const char *saved = out->v[out->n - 1].saved;
	_free_ char *temp = saved ? mem_fmt(".%s", saved) : NULL;

	if (temp == NULL || s->text.is_over)
		return;
	if (replica_write(out->dir_fd, temp, buf_cstr(&s->text), s->text.n, &s->now) == 0)
		(void)renameat(out->dir_fd, temp, out->dir_fd, saved);
}

static int take_as(struct scene *s, const char *name, const char *rule)
{
	int r;

	/* An empty directory is worth no word. */
	if (S_ISDIR(s->now.st_mode) && unlinkat(s->dir, name, AT_REMOVEDIR) == 0)
		return 0;
	r = sweep_put_away(s->out, s->dir, name, s->o->rel, rule);
	if (r == 0 && S_ISREG(s->now.st_mode))
		part(s);
	return r;
}

static const char *rule_of(const struct scene *s)
{
	return s->is_cut ? KNOWN_RULE_CUT : KNOWN_RULE;
}

/* The copy is in the name's place, and what was there goes. -EAGAIN: it was not what was looked at. */
static int swap(struct scene *s)
{
	/* A directory's content was not taken over, so it need not be what was judged. */
	int r = replica_swap(s->dir, s->temp, s->name, &s->now,
			     s->act == KNOWN_STAYS && S_ISREG(s->now.st_mode));

	if (r == -EINVAL || r == -ENOSYS) { /* a file system without it: one after the other */
		if (!is_at(s, s->name, &s->now))
			return -EAGAIN;
		r = s->act == KNOWN_PUT_BACK ? take_as(s, s->name, rule_of(s)) : 0;
		if (r == 0 && renameat(s->dir, s->temp, s->dir, s->name) < 0)
			r = -errno;
		return r;
	}
	if (r < 0)
		return r == -ESTALE
			       ? -EAGAIN
			       : r; /* put() removes the temporary name only while it is ours */
	return s->act == KNOWN_STAYS ? quarantine_remove(s->dir, s->temp)
				     : take_as(s, s->temp, rule_of(s));
}

/* From here on it is this file that is known. */
static void adopt(struct known *k, struct scene *s, int copy)
{
	struct known_one *o = s->o;
	struct stat st;
	bool is_dir = known_is_dir(o);

	if (is_dir && o->was < 0) {
		o->was = o->fd;
		o->fd = FD_NONE;
	}
	if (o->wd >= 0)
		(void)inotify_rm_watch(k->watch, o->wd);
	o->wd = -1;
	fd_close(o->fd);
	o->fd = copy;
	o->is_put = k->is_dirty = true;
	if (fstat(copy, &st) == 0) {
		o->changed = st.st_ctim;
		o->dev = st.st_dev;
		o->ino = st.st_ino;
		if (!is_dir && (s->act == KNOWN_STAYS || s->is_cut))
			known_set_text(k, o, s->is_cut ? &s->cut : &s->text, &st);
	}
	if (!is_dir)
		watch_one(k, o);
}

static int put(struct known *k, struct scene *s)
{
	_close_ int copy = FD_NONE;
	struct stat ours;
	int r = make_copy(s);

	if (r < 0)
		return r;
	if (r == 0) {
		if (s->o->kind == HIT_HIDE && !known_is_dir(s->o))
			return 0; /* nothing is known of it: it is hidden again, and that is all */
		return take_as(s, s->name, KNOWN_RULE_LOST);
	}
	copy = openat(s->dir, s->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	r = copy < 0 || fstat(copy, &ours) < 0 ? -errno : swap(s);
	if (r == 0)
		adopt(k, s, take_fd(copy));
	else if (copy >= 0 && is_at(s, s->temp, &ours))
		(void)quarantine_remove(s->dir, s->temp);
	return r == 0 ? 1 : r;
}

static int settle_once(struct known *k, struct known_one *o, struct sweep *out)
{
	_free_ char *up = path_parent(o->rel);
	_close_ int dir = walk_open(k->ws_fd, up, O_PATH | O_DIRECTORY | O_NOFOLLOW), at = FD_NONE;
	struct scene s = { .o = o, .dir = dir, .name = path_name(o->rel), .out = out };
	struct stat held;
	int r;

	at = dir < 0 ? dir : walk_open(dir, s.name, O_PATH | O_NOFOLLOW);
	if (at == -ENOENT || at == -ENOTDIR || at == -ELOOP)
		return 0; /* the host's doing; whoever keeps the list of names says when it is for good */
	if (at < 0 || fstat(at, &s.now) < 0)
		return at < 0 ? at : -errno;
	if (o->fd >= 0 && fstat(o->fd, &held) == 0 && is_same_file(&held, &s.now))
		return 0;
	if (o->fd < 0 && s.now.st_dev == o->dev && s.now.st_ino == o->ino)
		return 0; /* not opened, and not replaced */
	s.at = at;
	s.text = s.cut = BUF(TEXT_MAX);
	s.act = look(&s);
	if (sabotaged("inode") && s.act == KNOWN_STAYS && S_ISREG(s.now.st_mode)) {
		adopt(k, &s, reopen(at));
		r = 0;
	} else {
		r = put(k, &s);
	}
	buf_done(&s.text);
	buf_done(&s.cut);
	return r;
}

int known_settle(struct known *k, const char *rel, struct sweep *out, struct err *e)
{
	int count = 0, failed = 0;

	for (size_t i = 0; i < k->n; i++) {
		struct known_one *o = &k->v[i];
		int r = -EAGAIN;

		if (o->is_gone || !is_at_or_below(o->rel, rel) || sabotaged("known"))
			continue;
		for (int t = 0; t < TRIES && r == -EAGAIN; t++)
			r = settle_once(k, o, out);
		if (r >= 0) {
			count += r;
			continue;
		}
		errno = -r;
		if (failed == 0)
			failed = err_sys(e, "'%.200s' was replaced and could not be put right",
					 o->rel);
	}
	return failed < 0 ? failed : count;
}

/* ---- afterwards ---- */

static bool has_writer(int fd)
{
	/* Whoever opens it in that moment makes the kernel send us a signal: one that says nothing. */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno ==
		       EAGAIN; /* where there are no leases it must do that all stood still */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static enum known_state state_of(const struct known *k, const struct known_one *o)
{
	_cleanup_(buf_done) struct buf now = BUF(TEXT_MAX);
	struct stat st, held;
	bool is;

	if (ws_lstat(k->ws_fd, o->rel, &st) < 0)
		return KNOWN_WHOLE; /* gone: the host's doing, and the next event's */
	if (fstat(o->fd, &held) < 0)
		return KNOWN_BROKEN;
	if (!is_same_file(&st, &held))
		return KNOWN_AGAIN;
	if (S_ISDIR(held.st_mode))
		is = o->was < 0 || replica_is_same(o->was, o->fd, KNOWN_BYTES_MAX);
	else
		is = held.st_nlink == 1 && !has_writer(o->fd) && replica_read(o->fd, &now) == 0 &&
		     now.n == o->text.n && (now.n == 0 || memcmp(now.p, o->text.p, now.n) == 0);
	if (is)
		return KNOWN_WHOLE;
	/* Without a name it is nobody's file: the host replaced it once more while it was looked at. */
	return fstat(o->fd, &held) == 0 && held.st_nlink == 0 ? KNOWN_AGAIN : KNOWN_BROKEN;
}

enum known_state known_verify(struct known *k)
{
	enum known_state worst = KNOWN_WHOLE;

	for (size_t i = 0; i < k->n; i++) {
		struct known_one *o = &k->v[i];
		enum known_state state;
		int was = o->was;

		if (!o->is_put)
			continue;
		state = sabotaged("inode") ? KNOWN_WHOLE : state_of(k, o);
		worst = state > worst ? state : worst;
		o->is_put = false;
		if (state == KNOWN_WHOLE) {
			fd_close(was);
			o->was = FD_NONE;
			continue;
		}
		/* The copy is worth nothing; what it was made from is what is known. */
		o->was = FD_NONE;
		drop(k, o);
		o->fd = was;
		o->ino = 0;
	}
	return worst;
}
