/* SPDX-License-Identifier: Apache-2.0 */
/* store/ingest.c - from journals to event databases
 *
 * One ingest at a time (journal/.lock). Journals are taken in the order of their names, that is of run and part; those
 * for the same database go in one transaction. The order is what makes a crash harmless:
 *
 *     the registry is told that it may be behind
 *     events and the number of the next part are committed together
 *     then the registry follows
 *     then the journal is removed
 *     at last the registry is told that it is not behind
 *
 * A journal found again after a crash has a part number the database already passed: only the last two steps are
 * repeated. After a power cut it may not be found again, because nobody syncs journals: then the first line
 * helps. Bytes are foreign: a keeper may have died in the middle of a write, and somebody may have put a file here.
 * What is no frame ends the journal; that is said in an event, and the file is kept in journal/damaged.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "store/registry.h"
#include "store/retain.h"
#include "store/store.h"

#define CLOSING_TRIES 500
#define CLOSING_STEP_US 2000
#define BATCH_FILES ((size_t)64)
#define BATCH_BYTES (16 * MIB)
#define FILE_MAX_BYTES ((size_t)GIB)
/* A part still hidden after this long was left by a keeper that died while making it. */
#define HIDDEN_NS (60 * NS_PER_SEC)

#define RUNS "runs/events.db" /* of runs without a name, and of sandboxes that are gone */

struct file {
	char *name;
	int fd; /* locked */
	bool is_damaged;
};

struct ingest {
	const char *state_dir;
	const struct store_bounds *bounds;
	struct ingest_done *done;
	int dir;
	char boot[64];
	char **names;
	size_t n_names, cap;
	struct db registry;
	/* the batch */
	char *source; /* NULL: none is open */
	struct eventdb db;
	struct file files[BATCH_FILES];
	size_t n_files;
	uint64_t bytes, events;
	struct buf notes; /* frames that say something about a sandbox as such */
};

/* ---- the batch ---- */

static void drop_batch(struct ingest *in)
{
	db_rollback(&in->db.db);
	eventdb_close(&in->db);
	for (size_t i = 0; i < in->n_files; i++) {
		fd_close(in->files[i].fd);
		free(in->files[i].name);
	}
	free(in->source);
	in->source = NULL;
	in->n_files = 0;
	in->bytes = 0;
	in->events = 0;
	in->notes.n = 0;
}

static int open_batch(struct ingest *in, const char *source, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", in->state_dir, source);
	_free_ char *dir = path_parent(path);
	bool is_common = str_eq(source, RUNS);
	int r = is_common ? path_make(dir, 0700) : 0;

	/* A sandbox that was removed just now must not come back as a folder with nothing but its record. */
	if (!is_common && access(dir, F_OK) < 0)
		return open_batch(in, RUNS, e);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerrordesc_np(-r));
	r = eventdb_open(&in->db, path, DB_CREATE, e);
	if (r < 0)
		return r;
	in->source = mem_str(source);
	r = eventdb_begin(&in->db, e);
	if (r < 0)
		drop_batch(in);
	return r;
}

static int tell_registry(struct ingest *in, struct err *e)
{
	struct event ev;
	int r = registry_sync(&in->registry, &in->db, in->source, e);

	for (size_t at = 0; r == 0 && at < in->notes.n;) {
		ssize_t used = event_decode(in->notes.p + at, in->notes.n - at, &ev);

		bug_on(used <= 0);
		at += (size_t)used;
		r = registry_note(&in->registry, &ev, e);
	}
	return r;
}

/* What could not be read whole is kept for people to look at. */
static void dispose(struct ingest *in, const struct file *f)
{
	_free_ char *to = mem_fmt("damaged/%s", f->name);

	if (f->is_damaged && (mkdirat(in->dir, "damaged", 0700) == 0 || errno == EEXIST) &&
	    renameat(in->dir, f->name, in->dir, to) == 0)
		return;
	/* One that stays is found taken up already, next time. */
	(void)unlinkat(in->dir, f->name, 0);
}

static int close_batch(struct ingest *in, struct err *e)
{
	int r;

	if (in->source == NULL)
		return 0;
	r = registry_unsettle(&in->registry, in->source, e);
	if (r == 0)
		r = eventdb_commit(&in->db, e);
	if (r == 0)
		r = tell_registry(in, e);
	if (r == 0) {
		for (size_t i = 0; i < in->n_files; i++)
			dispose(in, &in->files[i]);
		in->done->events += in->events;
		in->done->files += in->n_files;
		r = retain(&in->db, in->bounds, &in->done->dropped, e);
		if (r > 0)
			r = registry_sync(&in->registry, &in->db, in->source, e);
	}
	if (r == 0)
		r = registry_settle(&in->registry, in->source, e);
	drop_batch(in);
	return r;
}

/* ---- one journal ---- */

struct journal_in {
	struct event_part name;
	struct buf text;
	struct event opened;
	size_t at; /* behind the opening frame */
	bool has_end, has_next;
};

bool store_name_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > 200 || name[0] == '.' || strchr(name, '/'))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	return true;
}

/* The opening frame must be there and must agree with the file's name. */
static bool read_opening(struct journal_in *j)
{
	ssize_t used = event_decode(j->text.p, j->text.n, &j->opened);
	_free_ char *run = NULL, *sandbox = NULL;

	if (used <= 0 || j->opened.head.type != EV_JOURNAL_OPENED)
		return false;
	run = event_get_text(&j->opened, EK_RUN);
	sandbox = event_get_text(&j->opened, EK_NAME);
	j->at = (size_t)used;
	return run && str_eq(run, j->name.run) && sandbox && store_name_ok(sandbox) &&
	       event_get_num(&j->opened, EK_PART) == j->name.part;
}

/* The sandbox's own database, or the common one for runs without a name and for sandboxes that are gone. */
static char *source_for(const struct ingest *in, const struct event *opened)
{
	_free_ char *sandbox = event_get_text(opened, EK_NAME);
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", in->state_dir, sandbox);
	struct stat st;

	if (event_get_num(opened, EK_IS_NAMED) && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode))
		return mem_fmt("sandboxes/%s/events.db", sandbox);
	return mem_str(RUNS);
}

static bool is_about_sandbox(unsigned type)
{
	return type >= EV_SANDBOX_CREATED && type <= EV_SANDBOX_LOST;
}

/* All frames behind the opening one; `run` is NULL when they have been taken up before. */
static int take_frames(struct ingest *in, struct journal_in *j, struct run *run, struct err *e)
{
	bool is_named = event_get_num(&j->opened, EK_IS_NAMED) != 0;
	struct event ev;
	ssize_t used;
	int r = 0;

	for (; j->at < j->text.n && r == 0; j->at += (size_t)used) {
		const char *frame = j->text.p + j->at;
		const struct event_type_def *d;

		used = event_decode(frame, j->text.n - j->at, &ev);
		if (used <= 0)
			break;
		d = event_type_def(ev.head.type);
		j->has_end |= ev.head.type == EV_JOURNAL_ENDED;
		j->has_next |= ev.head.type == EV_JOURNAL_NEXT;
		if (d && d->flags & EVENT_INTERNAL)
			continue;
		if (is_named && is_about_sandbox(ev.head.type))
			buf_add(&in->notes, frame, (size_t)used);
		if (run == NULL)
			continue;
		r = run_append(run, &ev, frame, (size_t)used, e);
		in->events++;
	}
	return r;
}

static int say_damaged(struct ingest *in, struct journal_in *j, struct run *run, struct err *e)
{
	_free_ char *text = mem_fmt("the last %zu bytes of part %u of the journal are not whole; "
				    "kept in journal/damaged",
				    j->text.n - j->at, j->name.part);
	struct event_field f[] = { EVENT_STR(MESSAGE, text), EVENT_STR(REASON, "damaged") };

	return run_say(run, EVENT_NO_SESSION, EV_NOTE, f, 2, e);
}

/* The keeper died: its open sessions end here, with what is known. */
static int say_lost(struct ingest *in, struct run *run, struct err *e)
{
	const char *reason = str_eq(run->boot, in->boot) ? "keeper died" : "host went down";
	struct event_field f[] = { EVENT_STR(NAME, run->sandbox), EVENT_STR(REASON, reason),
				   EVENT_STR(BOOT, run->boot) };
	size_t n = run->n;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (run->streams[i]->state == STATE_OPEN &&
		    run->streams[i]->session != CHAIN_NO_SESSION)
			r = run_say(run, (uint32_t)run->streams[i]->session, EV_SESSION_LOST, &f[1],
				    1, e);
	if (r == 0)
		r = run_say(run, EVENT_NO_SESSION, EV_SANDBOX_LOST, f, 3, e);
	run->state = STATE_LOST;
	in->done->lost_runs++;
	return r;
}

static bool has_next_part(const struct ingest *in, const struct event_part *name)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct event_part next = *name;

	next.part++;
	event_part_name(&next, &b);
	return faccessat(in->dir, buf_cstr(&b), F_OK, 0) == 0;
}

static int take_run(struct ingest *in, struct journal_in *j, struct run *run, struct err *e)
{
	int r = 0;

	if (j->name.part > run->name.part) {
		_free_ char *text = mem_fmt("parts %u to %u of the journal are missing",
					    run->name.part, j->name.part - 1);
		struct event_field f[] = { EVENT_STR(MESSAGE, text), EVENT_STR(REASON, "missing") };

		r = run_say(run, EVENT_NO_SESSION, EV_NOTE, f, 2, e);
	}
	if (r == 0)
		r = take_frames(in, j, run, e);
	if (r == 0 && j->at < j->text.n)
		r = say_damaged(in, j, run, e);
	if (r < 0)
		return r;
	if (j->has_end)
		run->state = STATE_ENDED;
	else if (!j->has_next && !has_next_part(in, &j->name))
		r = say_lost(in, run, e);
	run->name.part = j->name.part + 1;
	return r < 0 ? r : run_save(run, e);
}

static int take_journal(struct ingest *in, struct journal_in *j, struct err *e)
{
	_free_ char *sandbox = event_get_text(&j->opened, EK_NAME);
	_free_ char *boot = event_get_text(&j->opened, EK_BOOT);
	struct run_facts facts = { .sandbox = sandbox,
				   .boot = boot,
				   .is_named = event_get_num(&j->opened, EK_IS_NAMED) != 0,
				   .started_ns = j->opened.head.time_ns };
	_cleanup_(run_done) struct run run = { 0 };
	int r = run_load(&run, &in->db, j->name.run, &facts, e);

	if (r < 0)
		return r;
	if (j->name.part < run.name.part)
		return take_frames(in, j, NULL, e);
	return take_run(in, j, &run, e);
}

/* ---- one file ---- */

/* 1: ours now; 0: still being written, or just being made. */
static int lock_file(const struct ingest *in, const char *name, bool is_hidden, int *ret,
		     struct err *e)
{
	_close_ int fd = openat(in->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "journal '%s'", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "journal '%s'", name);
	if (is_hidden && (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + HIDDEN_NS > clock_real())
		return 0;
	*ret = take_fd(fd);
	return 1;
}

/* Makes room in the batch, or opens another one when this file belongs elsewhere. */
static int choose_batch(struct ingest *in, const char *source, struct err *e)
{
	int r = 0;

	if (in->source &&
	    (!str_eq(in->source, source) || in->n_files == BATCH_FILES || in->bytes >= BATCH_BYTES))
		r = close_batch(in, e);
	if (r == 0 && in->source == NULL)
		r = open_batch(in, source, e);
	return r;
}

static int take_file(struct ingest *in, const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(FILE_MAX_BYTES);
	struct journal_in j = { 0 };
	_free_ char *source = NULL;
	_close_ int fd = FD_NONE;
	struct file f;
	int r;

	if (!event_part_parse(name, &j.name))
		return 0;
	r = lock_file(in, name, j.name.is_hidden, &fd, e);
	if (r == 1)
		r = io_read_fd(fd, &text, e);
	else
		return r;
	if (r < 0)
		return r;
	j.text = text;
	f = (struct file){ .name = mem_str(name), .is_damaged = !read_opening(&j) };
	if (f.is_damaged) {
		if (text.n > 0)
			dispose(in, &f);
		else
			(void)unlinkat(in->dir, name, 0); /* an empty one says nothing */
		free(f.name);
		return 0;
	}
	source = source_for(in, &j.opened);
	r = choose_batch(in, source, e);
	if (r == 0)
		r = take_journal(in, &j, e);
	if (r < 0) {
		free(f.name);
		drop_batch(in);
		return r;
	}
	f.is_damaged = j.at < j.text.n;
	f.fd = take_fd(fd);
	in->files[in->n_files++] = f;
	in->bytes += text.n;
	return 0;
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	/* Hidden ones sort as if they were not. */
	return strcmp(*x + (**x == '.'), *y + (**y == '.'));
}

static int list_names(struct ingest *in, struct err *e)
{
	int fd = openat(in->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct event_part part;
	struct dirent *en;

	if (d == NULL) {
		int r = err_sys(e, "the folder of journals");

		fd_close(fd);
		return r;
	}
	while ((en = readdir(d)) != NULL)
		if (event_part_parse(en->d_name, &part)) {
			/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
			vec_reserve(in->names, in->n_names, in->cap);
			in->names[in->n_names++] = mem_str(en->d_name);
		}
	(void)closedir(d);
	if (in->n_names > 1)
		qsort(in->names, in->n_names, sizeof(*in->names), by_name);
	return 0;
}

/* One damaged database must not hold up the others; a full disk holds up all. */
static int take_all(struct ingest *in, struct err *e)
{
	struct err first = ERR_INIT;
	int r = 0;

	for (size_t i = 0; i < in->n_names; i++) {
		struct err why = ERR_INIT;
		int rc = take_file(in, in->names[i], &why);

		if (rc < 0 && r == 0) {
			r = rc;
			first = why;
		}
		if (rc == -ENOSPC || rc == -EROFS || rc == -EDQUOT)
			break;
	}
	if (r < 0)
		*e = first;
	else
		r = close_batch(in, e);
	if (r < 0 && in->source) {
		struct err ignored = ERR_INIT;

		(void)close_batch(in, &ignored); /* the first failure is the one to tell */
	}
	return r;
}

static void read_boot(struct ingest *in)
{
	_cleanup_(buf_done) struct buf b = BUF(64);
	struct err ignored = ERR_INIT;

	if (io_read_file("/proc/sys/kernel/random/boot_id", &b, &ignored) == 0)
		(void)snprintf(in->boot, sizeof(in->boot), "%.*s", (int)strcspn(buf_cstr(&b), "\n"),
			       buf_cstr(&b));
}

/* 1: alone; 0: somebody else is at work. */
static int lock_ingest(int dir, bool is_waiting, int *ret, struct err *e)
{
	_close_ int fd = openat(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "lock of the journals");
	while (flock(fd, is_waiting ? LOCK_EX : LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock of the journals");
	*ret = take_fd(fd);
	return 1;
}

int store_lock(const char *state_dir, int *ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/journal", state_dir);
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return err_sys(e, "'%s'", path);
	return lock_ingest(dir, true, ret, e);
}

static int ingest(struct ingest *in, struct err *e)
{
	int r = list_names(in, e);

	if (r < 0 || in->n_names == 0)
		return r;
	read_boot(in);
	r = registry_open(&in->registry, in->state_dir, DB_CREATE, e);
	if (r == 0)
		r = registry_catch_up(&in->registry, in->state_dir, true, e);
	if (r == 0)
		r = take_all(in, e);
	return r;
}

/* Keepers that have told their clients of the end and still write it down hold the folder (keep/journal.h). */
static void await_closing(int dir)
{
	for (int i = 0; i < CLOSING_TRIES; i++) {
		if (flock(dir, LOCK_EX | LOCK_NB) == 0) {
			(void)flock(dir, LOCK_UN);
			return;
		}
		(void)usleep(CLOSING_STEP_US);
	}
}

int store_ingest(const char *state_dir, const struct store_bounds *bounds, bool is_waiting,
		 struct ingest_done *ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/journal", state_dir);
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int lock = FD_NONE;
	struct ingest in = { .state_dir = state_dir,
			     .bounds = bounds,
			     .done = ret,
			     .dir = dir,
			     .notes = BUF(64 * MIB) };
	int r;

	*ret = (struct ingest_done){ 0 };
	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	if (is_waiting)
		await_closing(dir);
	r = lock_ingest(dir, is_waiting, &lock, e);
	ret->is_busy = r == 0;
	if (r == 1) {
		sha256_expect_much(); /* one for each event */
		r = ingest(&in, e);
	}
	db_close(&in.registry);
	for (size_t i = 0; i < in.n_names; i++)
		free(in.names[i]);
	free(in.names);
	buf_done(&in.notes);
	return r;
}
