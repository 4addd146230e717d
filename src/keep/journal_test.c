/* SPDX-License-Identifier: Apache-2.0 */
#include "keep/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"

struct place {
	char dir[64];
};

static void place_init(struct place *p)
{
	*p = (struct place){ .dir = "/tmp/vitrine-journal-XXXXXX" };
	bug_on(mkdtemp(p->dir) == NULL);
}

static void place_done(struct place *p)
{
	(void)path_remove(AT_FDCWD, p->dir);
}

/* All frames of the run's part; how many, or a negative number when one is not right. */
static int count(const struct place *p, const char *run, unsigned part, unsigned type)
{
	_free_ char *path = mem_fmt("%s/journal/%s.%06u", p->dir, run, part);
	_cleanup_(buf_done) struct buf b = BUF(64 * MIB);
	struct err e = ERR_INIT;
	struct event ev;
	ssize_t used;
	int n = 0;

	if (io_read_file(path, &b, &e) < 0)
		return -ENOENT;
	for (size_t at = 0; at < b.n; at += (size_t)used) {
		used = event_decode(b.p + at, b.n - at, &ev);
		if (used <= 0)
			return -EBADMSG;
		n += type == 0 || ev.head.type == type;
	}
	return n;
}

static int files(const struct place *p)
{
	_free_ char *path = mem_fmt("%s/journal", p->dir);
	DIR *d = opendir(path);
	struct dirent *en;
	int n = 0;

	while (d && (en = readdir(d)) != NULL)
		n += !str_eq(en->d_name, ".") && !str_eq(en->d_name, "..");
	if (d)
		(void)closedir(d);
	return n;
}

static void say(struct journal *j, const char *text)
{
	journal_event(j, 0, EV_NOTE, &EVENT_STR(MESSAGE, text), 1);
}

TEST(nothing_is_opened_before_it_is_due)
{
	_cleanup_(place_done) struct place p;
	struct journal *j;

	place_init(&p);
	j = journal_new(p.dir, "box", false, NULL);
	CHECK_INT(strlen(journal_run(j)), 18);
	say(j, "one");
	CHECK_INT(files(&p), 0);
	CHECK_INT(journal_flush(j), 0);
	CHECK_INT(files(&p), 1);
	CHECK_INT(count(&p, journal_run(j), 0, 0), 2);
	journal_end(j);
}

TEST(without_events_there_is_no_journal)
{
	_cleanup_(place_done) struct place p;

	place_init(&p);
	journal_end(journal_new(p.dir, "box", false, NULL));
	CHECK_INT(files(&p), 0);
	journal_end(NULL);
}

TEST(a_verdict_is_there_when_it_returns)
{
	_cleanup_(place_done) struct place p;
	struct event_field f[] = { EVENT_STR(VERDICT, "deny"), EVENT_STR(HOST, "h") };
	struct err e = ERR_INIT;
	struct journal *j;
	_free_ char *run = NULL;

	place_init(&p);
	j = journal_new(p.dir, "box", false, NULL);
	run = mem_str(journal_run(j));
	say(j, "before");
	CHECK_INT(journal_verdict(j, 0, EV_NET_VERDICT, f, 2, &e), 0);
	CHECK_INT(count(&p, run, 0, 0), 3);
	journal_end(j);
	CHECK_INT(count(&p, run, 0, EV_JOURNAL_ENDED), 1);
}

TEST(the_timer_writes_a_batch)
{
	_cleanup_(place_done) struct place p;
	struct loop *l = loop_new();
	struct watch *stop;
	struct journal *j;

	place_init(&p);
	j = journal_new(p.dir, "box", false, l);
	say(j, "one");
	say(j, "two");
	stop = watch_timer(l, 3 * JOURNAL_BATCH_NS, false, (watch_fn *)loop_stop, l);
	loop_run(l);
	CHECK_INT(count(&p, journal_run(j), 0, EV_NOTE), 2);
	watch_free(stop);
	journal_end(j);
	loop_free(l);
}

static bool is_locked(const struct place *p, const char *run, unsigned part)
{
	_free_ char *path = mem_fmt("%s/journal/%s.%06u", p->dir, run, part);
	_close_ int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

TEST(it_goes_on_in_a_new_part)
{
	_cleanup_(place_done) struct place p;
	char text[1001] = "";
	struct journal *j;
	_free_ char *run = NULL;

	place_init(&p);
	memset(text, 'x', sizeof(text) - 1);
	j = journal_new(p.dir, "box", false, NULL);
	run = mem_str(journal_run(j));
	for (int i = 0; i < 9000; i++)
		say(j, text);
	CHECK_INT(files(&p), 3);
	CHECK(!is_locked(&p, run, 0) && !is_locked(&p, run, 1) && is_locked(&p, run, 2));
	journal_end(j);
	CHECK(!is_locked(&p, run, 2));
	CHECK_INT(count(&p, run, 0, EV_JOURNAL_NEXT), 1);
	CHECK_INT(count(&p, run, 2, EV_JOURNAL_OPENED), 1);
	CHECK_INT(count(&p, run, 0, EV_NOTE) + count(&p, run, 1, EV_NOTE) +
			  count(&p, run, 2, EV_NOTE),
		  9000);
}

TEST(a_full_disk_loses_nothing_in_silence)
{
	struct rlimit old, low = { .rlim_cur = 70 * KIB, .rlim_max = RLIM_INFINITY };
	_cleanup_(place_done) struct place p;
	struct event_field f[] = { EVENT_STR(VERDICT, "deny"), EVENT_STR(HOST, "h") };
	struct err e = ERR_INIT;
	char text[1001] = "";
	struct journal *j;
	_free_ char *run = NULL;
	int before;

	place_init(&p);
	memset(text, 'x', sizeof(text) - 1);
	j = journal_new(p.dir, "box", false, NULL);
	run = mem_str(journal_run(j));
	(void)signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
	low.rlim_max = old.rlim_max;
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &low), 0);
	say(j, "first");
	CHECK_INT(journal_flush(j), 0);
	for (int i = 0; i < 3000; i++)
		say(j, text);
	CHECK(journal_verdict(j, 0, EV_NET_VERDICT, f, 2, &e) < 0);
	CHECK(strstr(e.msg, "cannot be written") != NULL);
	before = count(&p, run, 0, 0);
	CHECK(before >= 2); /* what was there is whole, and no torn byte behind it */
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
	say(j, "again");
	CHECK_INT(journal_verdict(j, 0, EV_NET_VERDICT, f, 2, &e), 0);
	journal_end(j);
	CHECK_INT(count(&p, run, 0, EV_NET_VERDICT), 1);
	CHECK_INT(count(&p, run, 0, EV_JOURNAL_LOST), 1);
	CHECK(count(&p, run, 0, EV_NOTE) > 900);
}

TEST(what_was_written_survives_the_writer)
{
	_cleanup_(place_done) struct place p;
	int pipe_fd[2];
	char run[19] = "";
	pid_t pid;

	place_init(&p);
	CHECK_INT(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct journal *j = journal_new(p.dir, "box", true, NULL);

		say(j, "acknowledged");
		if (journal_flush(j) == 0)
			(void)io_write_all(pipe_fd[1], journal_run(j), 18);
		say(j, "not yet");
		(void)pause();
		_exit(1);
	}
	CHECK_INT(io_read(pipe_fd[0], run, 18), 18);
	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(count(&p, run, 0, EV_NOTE), 1);
	CHECK(!is_locked(&p, run, 0));
	fd_close(pipe_fd[0]);
	fd_close(pipe_fd[1]);
}

TEST(frames_of_others_are_stamped_anew)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES);
	_cleanup_(place_done) struct place p;
	struct event_head lie = { .type = EV_JOURNAL_ENDED, .session = 5 };
	struct err e = ERR_INIT;
	struct journal *j;

	place_init(&p);
	j = journal_new(p.dir, "box", false, NULL);
	event_encode(&lie, &EVENT_STR(RUN, journal_run(j)), 1, &b);
	CHECK_INT(journal_frame(j, 0, b.p, b.n, &e), -EBADMSG);
	b.n = 0;
	lie.type = EV_NOTE;
	event_encode(&lie, &EVENT_STR(MESSAGE, "hello"), 1, &b);
	CHECK_INT(journal_frame(j, 0, b.p, b.n, &e), 0);
	CHECK_INT(journal_flush(j), 0);
	CHECK_INT(count(&p, journal_run(j), 0, EV_NOTE), 1);
	journal_end(j);
}

TEST_MAIN()
