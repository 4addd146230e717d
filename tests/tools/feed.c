/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - a keeper that does nothing but write its journal, for the tests of the store
 *
 *     feed STATE NAME [option...]
 *
 *     named        the sandbox lasts            die          no end: kill -9 of itself
 *     sessions=N   commands, one after another  hold         wait for a line on stdin before the end
 *     events=N     of each session              rate=N       so many a second, in bursts of a millisecond
 *     text=STRING  what the events say          bytes=N      length of the text instead
 *     open         the last session does not end ack         flush and say "ok N" after each event
 *
 * Prints the run's id first, and at the end "acknowledged N" with the processor time it used. An event counts as
 * acknowledged when the flush behind it returned 0.
 */
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "base/num.h"
#include "keep/journal.h"

struct feed {
	bool is_named, dies, holds, leaves_open, acks;
	uint64_t sessions, events, rate, bytes;
	const char *text;
};

static uint64_t number(const char *arg, const char *name, uint64_t old)
{
	size_t n = strlen(name);
	struct err e = ERR_INIT;
	uint64_t v;

	if (strncmp(arg, name, n) != 0 || arg[n] != '=')
		return old;
	if (num_parse(arg + n + 1, 0, UINT64_MAX, &v, &e) < 0) {
		(void)fprintf(stderr, "feed: %s: %s\n", arg, e.msg);
		exit(2);
	}
	return v;
}

static void parse(struct feed *f, int argc, char **argv)
{
	*f = (struct feed){ .sessions = 1, .events = 10, .text = "hello" };
	for (int i = 3; i < argc; i++) {
		f->is_named |= str_eq(argv[i], "named");
		f->dies |= str_eq(argv[i], "die");
		f->holds |= str_eq(argv[i], "hold");
		f->acks |= str_eq(argv[i], "ack");
		f->leaves_open |= str_eq(argv[i], "open");
		f->sessions = number(argv[i], "sessions", f->sessions);
		f->events = number(argv[i], "events", f->events);
		f->rate = number(argv[i], "rate", f->rate);
		f->bytes = number(argv[i], "bytes", f->bytes);
		if (str_starts(argv[i], "text="))
			f->text = argv[i] + 5;
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Sleeps until event i is due. */
static void pace(uint64_t begun, uint64_t i, uint64_t rate)
{
	uint64_t due = begun + (uint64_t)((double)i * (double)NS_PER_SEC / (double)rate);
	uint64_t now = clock_now();
	struct timespec t = { .tv_nsec = (int64_t)NS_PER_MS };

	while (now < due) {
		(void)nanosleep(&t, NULL);
		now = clock_now();
	}
}

static void start_session(struct journal *j, uint32_t s)
{
	static const char *const argv[] = { "make", "test", NULL };
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct event_field f[] = { event_list(EK_ARGV, argv, &b), EVENT_STR(CWD, "/w") };

	journal_event(j, s, EV_SESSION_STARTED, f, ARRAY_LEN(f));
}

static void end_session(struct journal *j, uint32_t s)
{
	struct event_field f[] = { EVENT_NUM(STATUS, 0), EVENT_STR(REASON, "exit"),
				   EVENT_NUM(CPU, 5000000), EVENT_NUM(MEMORY_PEAK, 4096) };

	journal_event(j, s, EV_SESSION_ENDED, f, ARRAY_LEN(f));
}

static void some_events(struct journal *j, const struct feed *fd, uint32_t s, const char *text)
{
	uint64_t begun = clock_now();

	for (uint64_t i = 0; i < fd->events; i++) {
		struct event_field f[] = { EVENT_NUM(PID, i), EVENT_STR(EXE, text) };

		if (fd->rate > 0 && i % (fd->rate / 1000 + 1) == 0)
			pace(begun, i, fd->rate);
		journal_event(j, s, EV_PROCESS_EXEC, f, ARRAY_LEN(f));
		if (fd->acks && journal_flush(j) == 0) {
			(void)printf("ok %llu\n", (unsigned long long)i);
			(void)fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	struct feed f;
	_free_ char *filler = NULL;
	struct journal *j;
	uint64_t total, begun = clock_now();
	int r;

	if (argc < 3)
		return 2;
	parse(&f, argc, argv);
	filler = mem_new(f.bytes + 1, 1);
	for (uint64_t i = 0; i < f.bytes; i++)
		filler[i] = 'x';
	j = journal_new(argv[1], argv[2], f.is_named, NULL);
	(void)printf("%s\n", journal_run(j));
	(void)fflush(stdout);
	journal_event(j, EVENT_NO_SESSION, EV_SANDBOX_STARTED, &EVENT_STR(NAME, argv[2]), 1);
	for (uint32_t s = 0; s < f.sessions; s++) {
		start_session(j, s);
		some_events(j, &f, s, f.bytes ? filler : f.text);
		if (!f.leaves_open || s + 1 < f.sessions)
			end_session(j, s);
	}
	r = journal_flush(j);
	total = 1 + f.sessions * (f.events + 2) - (f.leaves_open ? 1 : 0);
	(void)printf("acknowledged %llu cpu_ns %llu wall_ns %llu\n",
		     r == 0 ? (unsigned long long)total : 0ULL, (unsigned long long)cpu_ns(),
		     (unsigned long long)(clock_now() - begun));
	(void)fflush(stdout);
	if (f.holds)
		(void)getchar();
	if (f.dies)
		(void)raise(SIGKILL);
	journal_end(j);
	return r < 0;
}
