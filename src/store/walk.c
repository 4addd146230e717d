/* SPDX-License-Identifier: Apache-2.0 */
/* store/walk.c - all events of all sources in the order of time, and those that are still to come
 *
 * First it is noted which runs have a journal and from which number on it is needed; then the databases show what
 * comes before. When following, the folder of journals is watched: a directory's watch also tells of writes to the
 * files in it, so one descriptor serves all sandboxes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>

#include "base/io.h"
#include "base/loop.h"
#include "store/source.h"

struct walk {
	const char *state_dir;
	const struct store_filter *filter;
	struct source **v;
	size_t n, cap;
	struct open_runs open;
	store_event_fn *fn;
	void *arg;
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		source_free(w->v[i]);
	free(w->v);
	free(w->open.v);
}

static void add(struct walk *w, struct source *s)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
	vec_reserve(w->v, w->n, w->cap);
	s->is_at_end = true; /* not yet moved to its first event */
	w->v[w->n++] = s;
}

/* ---- which sources ---- */

/* Reads the opening frame: sandbox and whether it is named. False when this is no journal we can read now. */
static bool read_opening(const char *path, char **ret_sandbox, bool *ret_named)
{
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : io_read(fd, text, sizeof(text));
	struct event ev;

	if (n <= 0 || event_decode(text, (size_t)n, &ev) <= 0 || ev.head.type != EV_JOURNAL_OPENED)
		return false;
	*ret_sandbox = event_get_text(&ev, EK_NAME);
	*ret_named = event_get_num(&ev, EK_IS_NAMED) != 0;
	return *ret_sandbox && store_name_ok(*ret_sandbox);
}

static char *database_of(const struct walk *w, const char *sandbox, bool is_named)
{
	_free_ char *own = mem_fmt("%s/sandboxes/%s/events.db", w->state_dir, sandbox);
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", w->state_dir, sandbox);

	if (is_named && access(dir, F_OK) == 0)
		return take(own);
	return mem_fmt("%s/runs/events.db", w->state_dir);
}

/* The number from which on the database does not have this run, and the part that has it. */
static uint32_t start_of(const char *database, struct event_part *part)
{
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	_cleanup_(run_done) struct run run = { 0 };
	struct err ignored = ERR_INIT;

	if (eventdb_open(&d, database, DB_READ, &ignored) < 0 ||
	    run_load(&run, &d, part->run, NULL, &ignored) < 0)
		return 0;
	if (run.name.part > part->part)
		part->part = run.name.part;
	return run.number;
}

static bool is_known(const struct walk *w, const char *run)
{
	for (size_t i = 0; i < w->open.n; i++)
		if (str_eq(w->open.v[i].run, run))
			return true;
	return false;
}

static void add_journal(struct walk *w, const char *path, struct event_part *part)
{
	_free_ char *sandbox = NULL, *database = NULL;
	bool is_named = false;
	struct open_run *o;

	if (is_known(w, part->run) || !read_opening(path, &sandbox, &is_named))
		return;
	vec_reserve(w->open.v, w->open.n, w->open.cap);
	o = &w->open.v[w->open.n++];
	database = database_of(w, sandbox, is_named);
	memcpy(o->run, part->run, sizeof(o->run));
	o->start = start_of(database, part);
	if (w->filter->sandbox && !str_eq(w->filter->sandbox, sandbox))
		return; /* known, and not asked for */
	add(w, source_journal(w->state_dir, part, sandbox, database, o->start, w->filter));
}

static int by_part(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_journals(struct walk *w)
{
	_free_ char *dir = mem_fmt("%s/journal", w->state_dir);
	struct dirent **v = NULL;
	int n = scandir(dir, &v, NULL, by_part);

	/* In the order of names, so that the first part met of a run is the oldest. */
	for (int i = 0; i < n; i++) {
		_free_ char *path = mem_fmt("%s/%s", dir, v[i]->d_name);
		struct event_part part;

		if (event_part_parse(v[i]->d_name, &part) && !part.is_hidden)
			add_journal(w, path, &part);
		free(v[i]);
	}
	free(v);
}

static bool has_database(const struct walk *w, const char *path)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i]->is_journal && str_eq(w->v[i]->path, path))
			return true;
	return false;
}

static void add_database(struct walk *w, const char *path)
{
	if (!has_database(w, path) && access(path, F_OK) == 0)
		add(w, source_database(path, w->filter, &w->open));
}

static void add_databases(struct walk *w)
{
	_free_ char *dir = mem_fmt("%s/sandboxes", w->state_dir);
	_free_ char *runs = mem_fmt("%s/runs/events.db", w->state_dir);
	DIR *d = w->filter->sandbox ? NULL : opendir(dir);
	struct dirent *en;

	if (w->filter->sandbox) {
		_free_ char *path = mem_fmt("%s/%s/events.db", dir, w->filter->sandbox);

		add_database(w, path);
		return;
	}
	add_database(w, runs);
	while (d && (en = readdir(d)) != NULL) {
		_free_ char *path = mem_fmt("%s/%s/events.db", dir, en->d_name);

		if (store_name_ok(en->d_name))
			add_database(w, path);
	}
	if (d)
		(void)closedir(d);
}

/* ---- in order ---- */

static struct source *earliest(const struct walk *w)
{
	struct source *best = NULL;

	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i]->is_at_end &&
		    (best == NULL || w->v[i]->event.head.time_ns < best->event.head.time_ns))
			best = w->v[i];
	return best;
}

/* Runs that are over, read to their end. */
static void drop_done(struct walk *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i]->is_done && w->v[i]->is_at_end)
			source_free(w->v[i]);
		else
			w->v[kept++] = w->v[i];
	}
	w->n = kept;
}

/* Everything there is now. */
static int show(struct walk *w, struct err *e)
{
	struct source *s;
	int r;

	for (size_t i = 0; i < w->n; i++) {
		r = w->v[i]->is_at_end ? source_next(w->v[i], e) : 0;
		if (r < 0)
			return r;
	}
	while ((s = earliest(w)) != NULL) {
		r = w->fn(w->arg, &s->event, &s->from);
		if (r != 0)
			return r;
		r = source_next(s, e);
		if (r < 0)
			return r;
	}
	drop_done(w);
	return 0;
}

/* ---- the last N ---- */

struct kept {
	struct buf frame;
	char *run, *sandbox;
};

struct tail {
	struct kept *v;
	size_t n, at; /* ring */
	bool is_full;
};

static void tail_done(struct tail *t)
{
	for (size_t i = 0; t->v && i < t->n; i++) {
		buf_done(&t->v[i].frame);
		free(t->v[i].run);
		free(t->v[i].sandbox);
	}
	free(t->v);
}

static int keep(void *arg, const struct event *ev, const struct event_origin *from)
{
	struct tail *t = arg;
	struct kept *k = &t->v[t->at];

	buf_done(&k->frame);
	k->frame.max = 2 * EVENT_MAX_BYTES;
	event_encode(&ev->head, ev->fields, ev->n, &k->frame);
	free(k->run);
	free(k->sandbox);
	k->run = mem_str(from->run);
	k->sandbox = mem_str(from->sandbox);
	t->at = (t->at + 1) % t->n;
	t->is_full |= t->at == 0;
	return 0;
}

static int show_tail(struct walk *w, struct err *e)
{
	_cleanup_(tail_done) struct tail t = { .n = w->filter->tail };
	store_event_fn *fn = w->fn;
	void *arg = w->arg;
	int r;

	t.v = mem_new(t.n, sizeof(*t.v));
	w->fn = keep;
	w->arg = &t;
	r = show(w, e);
	w->fn = fn;
	w->arg = arg;
	for (size_t i = 0; i < t.n && r == 0; i++) {
		struct kept *k = &t.v[((t.is_full ? t.at : 0) + i) % t.n];
		struct event_origin from = { .run = k->run, .sandbox = k->sandbox };
		struct event ev;

		if (k->frame.n > 0 && event_decode(k->frame.p, k->frame.n, &ev) > 0)
			r = fn(arg, &ev, &from);
	}
	return r;
}

/* ---- following ---- */

/* Drained, not read: what changed is found by looking. */
static void wait_for_news(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[4096];

	/* Without a watch (too many) it is looked every 200 ms. */
	(void)poll(&p, 1, fd < 0 ? 200 : 1000);
	while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
		;
}

static int follow(struct walk *w, int (*idle)(void *arg), struct err *e)
{
	_free_ char *dir = mem_fmt("%s/journal", w->state_dir);
	_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	uint64_t looked_ns = 0;
	int r = 0;

	if (fd >= 0 && inotify_add_watch(fd, dir, IN_MODIFY | IN_MOVED_TO | IN_DELETE) < 0)
		fd_close(take_fd(fd));
	while (r == 0) {
		add_journals(w);
		/* A run can come and be taken up between two looks; then only its database is new. */
		if (clock_now() - looked_ns > NS_PER_SEC / 2) {
			add_databases(w);
			looked_ns = clock_now();
		}
		r = show(w, e);
		if (r == 0 && idle)
			r = idle(w->arg);
		if (r == 0)
			wait_for_news(fd);
	}
	return r;
}

int store_events(const char *state_dir, const struct store_filter *f, store_event_fn *fn,
		 int (*idle)(void *arg), void *arg, struct err *e)
{
	_cleanup_(walk_done) struct walk w = {
		.state_dir = state_dir, .filter = f, .fn = fn, .arg = arg
	};
	int r;

	if (f->file) {
		add_database(&w, f->file);
		return f->tail ? show_tail(&w, e) : show(&w, e);
	}
	add_journals(&w);
	add_databases(&w);
	r = f->tail ? show_tail(&w, e) : show(&w, e);
	return r != 0 || !f->is_following ? r : follow(&w, idle, e);
}
