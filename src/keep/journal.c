/* SPDX-License-Identifier: Apache-2.0 */
/* keep/journal.c - see journal.h
 *
 * A part is made under a hidden name, locked, filled with its first frames and only then renamed, so that nobody ever
 * sees an unlocked or empty one. Frames are written at an offset we keep; what a full disk left half written is cut off
 * before anything else is written, so no text of an event can ever come to stand where a frame is expected.
 * At JOURNAL_PART_BYTES the next part is opened and locked before the old one is let go: a run whose last part is
 * unlocked and has no end frame is a keeper that died.
 */
#include "keep/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/program.h"

/* What waits for the disk at most; behind it observations are counted, not kept. */
#define PENDING_MAX ((size_t)MIB)
/* A batch this large does not wait for the timer. */
#define BATCH_BYTES ((size_t)64 * KIB)
/* More journals of ended runs than this, and somebody must take them up. */
#define LYING_MAX 64
/* A named sandbox that ran for so long, or has so much to tell, is taken up when it ends. */
#define WORTH_NS (2 * NS_PER_SEC)
#define WORTH_BYTES (64 * KIB)

struct journal {
	char *state_dir, *sandbox;
	bool is_named;
	uint64_t born_ns;
	bool is_short; /* one event: not worth a process */
	struct loop *loop;
	struct watch *timer;
	struct buf pending;
	int fd;
	uint32_t part, number;
	uint64_t size;    /* on record in this part */
	uint64_t next_at; /* when size reaches this, go on in a new part */
	uint64_t lost;
	bool is_stuck; /* the last write failed */
	bool is_torn;  /* bytes behind `size` must be cut off first */
	pid_t ingest;  /* the last one we started, 0: none */
	int dir;       /* the folder of journals; see journal_closing() */
	char run[EVENT_RUN_CHARS + 1];
};

static void on_timer(void *arg)
{
	struct journal *j = arg;

	/* What cannot be written stays pending and is tried again. */
	if (journal_flush(j) < 0)
		watch_set(j->timer, true);
}

struct journal *journal_new(const char *state_dir, const char *sandbox, bool is_named,
			    struct loop *l)
{
	struct journal *j = mem_new(1, sizeof(*j));
	uint16_t salt = (uint16_t)getpid();

	if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) < 0)
		salt ^= (uint16_t)clock_now(); /* only makes equal names less likely */
	*j = (struct journal){ .state_dir = mem_str(state_dir),
			       .sandbox = mem_str(sandbox),
			       .is_named = is_named,
			       .born_ns = clock_now(),
			       .loop = l,
			       .pending = BUF(PENDING_MAX + 2 * EVENT_MAX_BYTES),
			       .fd = FD_NONE,
			       .dir = FD_NONE };
	(void)snprintf(j->run, sizeof(j->run), "%014llx%04x",
		       (unsigned long long)(clock_real() >> 8), salt);
	if (l) {
		j->timer = watch_timer(l, JOURNAL_BATCH_NS, false, on_timer, j);
		watch_set(j->timer, false);
	}
	return j;
}

void journal_ready(struct journal *j)
{
	_free_ char *path = mem_fmt("%s/journal", j->state_dir);

	j->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->dir < 0 && errno == ENOENT && path_make(path, 0700) == 0)
		j->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void journal_closing(struct journal *j)
{
	/* A reader holds it for a moment; then it has just begun to wait for others, and may miss us. */
	if (j && j->dir >= 0)
		(void)flock(j->dir, LOCK_SH | LOCK_NB);
}

const char *journal_run(const struct journal *j)
{
	return j->run;
}

/* ---- frames ---- */

static void put(struct journal *j, struct buf *out, uint32_t session, enum event_type t,
		const struct event_field *f, size_t n)
{
	const struct event_type_def *d = event_type_def(t);
	struct event_head h = { .type = (uint16_t)t,
				.flags = d ? d->flags : 0,
				.session = session,
				.time_ns = clock_real(),
				.number = j->number };

	/* Frames of the journal itself are no events and leave no gap. */
	if (!(h.flags & EVENT_INTERNAL))
		j->number++;
	event_encode(&h, f, n, out);
}

static void put_opened(struct journal *j, uint32_t part, struct buf *out)
{
	_cleanup_(buf_done) struct buf boot = BUF(64);
	struct err e = ERR_INIT;
	struct event_field f[7];

	if (io_read_file("/proc/sys/kernel/random/boot_id", &boot, &e) < 0)
		buf_done(&boot); /* an unknown boot is a different one */
	f[0] = EVENT_STR(RUN, j->run);
	f[1] = EVENT_NUM(PART, part);
	f[2] = EVENT_STR(NAME, j->sandbox);
	f[3] = EVENT_IS(IS_NAMED, j->is_named);
	f[4] = event_text(EK_BOOT, buf_cstr(&boot), strcspn(buf_cstr(&boot), "\n"));
	f[5] = EVENT_STR(VERSION, VITRINE_VERSION);
	f[6] = EVENT_NUM(PID, getpid());
	put(j, out, EVENT_NO_SESSION, EV_JOURNAL_OPENED, f, ARRAY_LEN(f));
}

/* ---- the file ---- */

static int write_at(int fd, const struct buf *b, uint64_t at)
{
	size_t done = 0;

	while (done < b->n) {
		ssize_t n = pwrite(fd, b->p + done, b->n - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static char *part_name(const struct journal *j, uint32_t part, bool is_hidden)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct event_part p = { .part = part, .is_hidden = is_hidden };

	memcpy(p.run, j->run, EVENT_RUN_CHARS);
	event_part_name(&p, &b);
	return mem_fmt("%s/journal/%s", j->state_dir, buf_cstr(&b));
}

static int make_file(const struct journal *j, const char *path)
{
	_free_ char *dir = path_parent(path);
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags, 0600);

	if (fd < 0 && errno == ENOENT && path_make(dir, 0700) == 0)
		fd = open(path, flags, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		fd_close(fd);
		fd = -1;
	}
	return fd < 0 ? -errno : fd;
}

/* A new part with its opening frame and `first` behind it, locked and under its name. The descriptor or -errno. */
static int open_part(struct journal *j, uint32_t part, const struct buf *first, uint64_t *ret_size)
{
	_cleanup_(buf_done) struct buf head = BUF(PENDING_MAX + 3 * EVENT_MAX_BYTES);
	_free_ char *hidden = part_name(j, part, true), *path = part_name(j, part, false);
	_close_ int fd = make_file(j, hidden);
	int r;

	if (fd < 0)
		return fd;
	put_opened(j, part, &head);
	if (first)
		buf_add(&head, first->p, first->n);
	r = write_at(fd, &head, 0);
	if (r == 0 && renameat2(AT_FDCWD, hidden, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(hidden);
		return r;
	}
	*ret_size = head.n;
	return take_fd(fd);
}

/* The pid of an ingest, or < 0. Without the program the journals wait for it. */
static pid_t spawn_ingest(char *state_dir, bool is_waiting)
{
	_free_ char *path = NULL;
	struct err ignored = ERR_INIT;
	pid_t pid;

	if (program_find("vitrine-store", &path, &ignored) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		char *argv[] = { (char[]){ "vitrine-store" }, (char[]){ "ingest" },
				 (char[]){ "--state" },       state_dir,
				 (char[]){ "--wait" },        NULL };

		if (!is_waiting)
			argv[4] = NULL;
		(void)signal(SIGHUP, SIG_IGN);
		(void)execv(path, argv);
		_exit(127);
	}
	return pid;
}

/* One at a time, never waited for; one that ended is reaped when the next is due. */
static void start_ingest(struct journal *j)
{
	if (j->ingest <= 0 || waitpid(j->ingest, NULL, WNOHANG) != 0)
		j->ingest = spawn_ingest(j->state_dir, false);
}

/* When the next part cannot be made, the old one grows and it is tried again a quarter of a part later. */
static void go_on(struct journal *j)
{
	_cleanup_(buf_done) struct buf last = BUF(EVENT_MAX_BYTES);
	uint64_t size = 0;
	int fd = open_part(j, j->part + 1, NULL, &size);

	if (fd < 0) {
		j->next_at = j->size + JOURNAL_PART_BYTES / 4;
		return;
	}
	put(j, &last, EVENT_NO_SESSION, EV_JOURNAL_NEXT, &EVENT_NUM(PART, j->part + 1), 1);
	/* Only says early what the next part says anyhow. */
	(void)write_at(j->fd, &last, j->size);
	fd_close(j->fd);
	j->fd = fd;
	j->part++;
	j->size = size;
	j->next_at = JOURNAL_PART_BYTES;
	start_ingest(j);
}

static int write_pending(struct journal *j)
{
	int r;

	if (j->fd >= 0) {
		if (j->is_torn && ftruncate(j->fd, (off_t)j->size) < 0)
			return -errno;
		r = write_at(j->fd, &j->pending, j->size);
		j->is_torn = r < 0 && ftruncate(j->fd, (off_t)j->size) < 0;
		if (r == 0)
			j->size += j->pending.n;
		return r;
	}
	r = open_part(j, 0, &j->pending, &j->size);
	if (r < 0)
		return r;
	j->fd = r;
	j->next_at = JOURNAL_PART_BYTES;
	return 0;
}

int journal_flush(struct journal *j)
{
	int r;

	watch_set(j->timer, false);
	if (j->pending.n == 0)
		return 0;
	r = write_pending(j);
	j->is_stuck = r < 0;
	if (r < 0) {
		watch_set(j->timer, true);
		return r;
	}
	/* An idle keeper holds no buffer. */
	if (j->pending.cap > 2 * BATCH_BYTES)
		buf_done(&j->pending);
	j->pending.n = 0;
	if (j->size >= j->next_at)
		go_on(j);
	return 0;
}

/* ---- what callers say ---- */

static void say_lost(struct journal *j)
{
	struct event_field count = EVENT_NUM(COUNT, j->lost);

	if (j->lost == 0)
		return;
	j->lost = 0;
	put(j, &j->pending, EVENT_NO_SESSION, EV_JOURNAL_LOST, &count, 1);
}

/* A full disk is tried again by the timer, not by each event. */
static bool has_room(struct journal *j, bool is_urgent)
{
	bool may_try = is_urgent || j->timer == NULL || !j->is_stuck;

	if (j->pending.n < PENDING_MAX || (may_try && journal_flush(j) == 0)) {
		say_lost(j);
		return true;
	}
	j->lost++;
	j->number++; /* the gap shows as well */
	return false;
}

static void batch(struct journal *j)
{
	watch_set(j->timer, true);
	if (j->pending.n >= BATCH_BYTES && !j->is_stuck)
		(void)journal_flush(j); /* kept, and tried again */
}

void journal_event(struct journal *j, uint32_t session, enum event_type t,
		   const struct event_field *f, size_t n)
{
	if (!has_room(j, false))
		return;
	put(j, &j->pending, session, t, f, n);
	batch(j);
}

/* All that is pending, with the verdict last; a verdict that cannot be written is taken back. */
static int commit(struct journal *j, size_t before, struct err *e)
{
	int r = journal_flush(j);

	if (r == 0)
		return 0;
	j->pending.n = before;
	errno = -r;
	return err_sys(e, "the journal in '%s' cannot be written, so nothing is allowed",
		       j->state_dir);
}

int journal_verdict(struct journal *j, uint32_t session, enum event_type t,
		    const struct event_field *f, size_t n, struct err *e)
{
	size_t before;

	if (!has_room(j, true))
		return err_set(e, ERR_SYSTEM, ENOSPC,
			       "the journal in '%s' cannot be written, so nothing is allowed",
			       j->state_dir);
	before = j->pending.n;
	put(j, &j->pending, session, t, f, n);
	return commit(j, before, e);
}

int journal_frame(struct journal *j, uint32_t session, const void *frame, size_t n, struct err *e)
{
	struct event_head h = { .session = session, .time_ns = clock_real() };
	size_t before;
	int flags;

	if (!has_room(j, false))
		return err_set(e, ERR_SYSTEM, ENOSPC, "the journal in '%s' cannot be written",
			       j->state_dir);
	before = j->pending.n;
	h.number = j->number;
	flags = event_restamp(frame, n, &h, &j->pending);
	if (flags < 0)
		return err_set(e, ERR_SYSTEM, EBADMSG, "not an event that may be sent");
	j->number++;
	if (flags & EVENT_VERDICT)
		return commit(j, before, e);
	batch(j);
	return 0;
}

/* ---- the end ---- */

static int count_lying(const struct journal *j)
{
	_free_ char *path = mem_fmt("%s/journal", j->state_dir);
	DIR *d = opendir(path);
	int n = 0;

	while (d && n <= LYING_MAX && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* Counting is left to one run in sixteen, whose random part says so: what a run costs does not grow with how many ran
 * before it. */
static bool many_lie_about(const struct journal *j)
{
	if (j->run[EVENT_RUN_CHARS - 1] != '0')
		return false;
	return count_lying(j) > LYING_MAX;
}

/* A process with a database costs more than a short command did, and would be in the way of the next one; whoever reads
 * events takes up what lies there first. */
static bool is_worth_it(const struct journal *j)
{
	return j->is_named && !j->is_short &&
	       (clock_now() - j->born_ns > WORTH_NS || j->size > WORTH_BYTES);
}

void journal_end(struct journal *j)
{
	if (j == NULL)
		return;
	if (j->fd >= 0 || j->pending.n > 0) {
		say_lost(j);
		put(j, &j->pending, EVENT_NO_SESSION, EV_JOURNAL_ENDED, &EVENT_STR(RUN, j->run), 1);
		j->next_at = UINT64_MAX; /* no new part for the end */
		(void)journal_flush(j);  /* a full disk: the run will be found without its end */
		/* One that tells of a sandbox as such must not be younger on the disk than what it tells of. */
		if (j->is_short && j->fd >= 0)
			(void)fdatasync(j->fd);
	}
	fd_close(j->fd);
	if (j->size > 0 && (is_worth_it(j) || many_lie_about(j)))
		start_ingest(j);
	fd_close(j->dir);
	watch_free(j->timer);
	buf_done(&j->pending);
	free(j->state_dir);
	free(j->sandbox);
	free(j);
}

int journal_once(const char *state_dir, const char *sandbox, enum event_type t,
		 const struct event_field *f, size_t n)
{
	struct journal *j = journal_new(state_dir, sandbox, true, NULL);
	int r;

	j->is_short = true;
	journal_event(j, EVENT_NO_SESSION, t, f, n);
	r = journal_flush(j);
	journal_end(j);
	return r;
}

void journal_settle(const char *state_dir)
{
	_free_ char *copy = mem_str(state_dir);
	pid_t pid = spawn_ingest(copy, true);

	if (pid > 0)
		(void)waitpid(pid, NULL, 0); /* what it could not do waits for the next one */
}
