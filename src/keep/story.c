/* SPDX-License-Identifier: Apache-2.0 */
/* keep/story.c - what is written down of a session: sessions/N/session.json beside its output
 *
 * Written a moment after the command began to run (nothing of this is on the way to its start, and most commands are
 * over before) and again, whole, when it has ended. A file that tells of no end while nobody holds the sandbox's lock tells of a session that was lost. Only
 * sessions whose output is kept have one; the oldest go when there are too many.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/num.h"
#include "base/path.h"
#include "keep/keeper.h"

#define SESSIONS_KEPT 64
#define PRUNE_EVERY 64 /* sessions of a sandbox that stays */
#define SOON_NS (20 * NS_PER_MS)
#define LEFT_KEPT (7 * 24 * 3600) /* seconds */

static bool number_of(const char *name, uint32_t *ret)
{
	struct err ignored;
	uint64_t n;

	if (num_parse(name, 1, UINT32_MAX, &n, &ignored) < 0)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static int sessions_dir(struct keeper *k)
{
	if (k->sessions_dir >= 0)
		return k->sessions_dir;
	(void)mkdirat(k->dir, "sessions", 0700); /* it may be there */
	k->sessions_dir =
		openat(k->dir, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return k->sessions_dir;
}

/* Numbers go on where the last run ended; the folders know. */
void story_numbers(struct keeper *k)
{
	int at = openat(k->dir, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = at < 0 ? NULL : fdopendir(at);
	struct dirent *en;
	uint32_t n;

	while (d && (en = readdir(d)) != NULL)
		if (number_of(en->d_name, &n) && n > k->last_number)
			k->last_number = n;
	if (d)
		(void)closedir(d);
	else
		fd_close(at);
	k->first_number = k->last_number + 1;
	if (k->sessions[0].is_used)
		k->sessions[0].number = ++k->last_number;
	(void)futimens(k->lock, NULL); /* when it was last used, for `prune` */
}

static bool is_live(const struct keeper *k, uint32_t number)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].number == number)
			return true;
	return false;
}

void story_prune(struct keeper *k)
{
	int at = openat(k->dir, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = at < 0 ? NULL : fdopendir(at);
	uint32_t n, least = UINT32_MAX, most = 0, count = 0;
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (number_of(en->d_name, &n)) {
			most = n > most ? n : most;
			least = n < least ? n : least;
			count++;
		}
	for (; d && count > SESSIONS_KEPT && least < most; least++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", least);
		if (!is_live(k, least) && faccessat(at, name, F_OK, 0) == 0 &&
		    path_remove(at, name) == 0)
			count--;
	}
	if (d)
		(void)closedir(d);
	else
		fd_close(at);
}

static void put_head(const struct keeper *k, const struct session *s, struct buf *b)
{
	buf_printf(b, "{\n  \"id\": %u,\n  \"command\": ", s->number);
	buf_json(b, s->command);
	buf_printf(b, ",\n  \"first\": %u,\n  \"tty\": %s,\n  \"started\": %llu", k->first_number,
		   s->pty ? "true" : "false", (unsigned long long)s->started);
}

/* Beside and over the old one; a disk that is full leaves the old one. */
static void put_file(const struct session *s, const struct buf *b)
{
	int dir = s->feed->record.dir;
	_close_ int fd =
		dir < 0 ? FD_NONE
			: openat(dir, "session.new",
				 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && io_write_all(fd, b->p, b->n) == 0)
		(void)renameat(dir, "session.new", dir, "session.json");
}

static bool is_recorded(const struct keeper *k, const struct session *s)
{
	return keeper_is_named(k) && s->feed && (s->pty || s->flags & KEEP_RECORD);
}

void story_begin(struct keeper *k, struct session *s)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	if (!is_recorded(k, s) || s->feed->record.dir >= 0 || s->feed->record.has_failed ||
	    sessions_dir(k) < 0)
		return;
	feed_record(s->feed, k->sessions_dir, s->number);
	put_head(k, s, &b);
	buf_puts(&b, "\n}\n");
	put_file(s, &b);
}

static void on_story(void *arg)
{
	struct keeper *k = arg;

	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].has_begun)
			story_begin(k, &k->sessions[i]);
	watch_free(k->on_story);
	k->on_story = NULL;
}

void story_soon(struct keeper *k)
{
	if (keeper_is_named(k) && k->on_story == NULL)
		k->on_story = watch_timer(k->loop, SOON_NS, false, on_story, k);
}

void story_end(struct keeper *k, struct session *s, int status, enum end_reason why)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	if (!s->has_begun || !is_recorded(k, s) || k->in->is_rm)
		return;
	story_begin(k, s);
	put_head(k, s, &b);
	buf_printf(&b,
		   ",\n  \"ended\": %llu,\n  \"exit\": %d,\n  \"reason\": \"%s\",\n  \"cpu_ns\": "
		   "%llu,\n  \"max_rss\": %llu,\n  \"output\": %llu\n}\n",
		   (unsigned long long)time(NULL), status, end_reason_name(why),
		   (unsigned long long)(s->cpu_ns ? s->cpu_ns : s->live_cpu_ns),
		   (unsigned long long)s->max_rss, (unsigned long long)session_output(s));
	put_file(s, &b);
	record_close(&s->feed->record);
	if (s->number % PRUNE_EVERY == 0)
		story_prune(k);
}

/* ---- of a sandbox whose folder goes with it ---- */

static void drop_old(int dir)
{
	int again = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	time_t now = time(NULL);
	struct dirent *en;
	struct stat st;

	if (d == NULL)
		fd_close(again);
	while (d && (en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' &&
		    fstatat(dir, en->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime + LEFT_KEPT < now)
			(void)unlinkat(dir, en->d_name, 0); /* the next one tries again */
	if (d)
		(void)closedir(d);
}

void story_leave(struct keeper *k)
{
	const struct plan *p = k->in->plan;
	_free_ char *path = mem_fmt("%s/" STORY_LEFT_DIR, p->state_dir);
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	_close_ int dir = FD_NONE, fd = FD_NONE;
	struct session *s = &k->sessions[0];

	if ((keeper_is_named(k) && !k->in->is_rm) || !s->is_used ||
	    !(k->was_left || k->in->flags & KEEP_BEHIND) || path_make(path, 0700) < 0)
		return;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = dir < 0 ? FD_NONE
		     : openat(dir, p->name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			      0600);
	if (fd < 0)
		return; /* `wait` then finds no such run */
	put_head(k, s, &b);
	buf_printf(&b, ",\n  \"ended\": %llu,\n  \"exit\": %d,\n  \"reason\": \"%s\"\n}\n",
		   (unsigned long long)time(NULL), s->status, end_reason_name(s->why));
	(void)io_write_all(fd, b.p, b.n);
	drop_old(dir);
}
