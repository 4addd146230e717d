/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_samples.c - how much is used inside, and by whom
 *
 * The keeper cannot have our /proc, so we look for it: the sandbox as a whole, each session (whose command leads a session of
 * the kernel's, so a process says whose it is), and what runs now that did not run at the look before. A look that the other
 * side has not taken yet is not made again: nothing piles up.
 */
#include <fcntl.h>

#include "base/num.h"
#include "remote/inner.h"
#include "sys/sample.h"
#include "sys/shared.h"

#define SEEN_MAX 256
#define TOLD_MAX 32
#define PROCESSES_MAX 20000
#define SEE_NS NS_PER_SEC /* programs are looked for no more often */
#define FIRST_NS                                                                                   \
	(50 *                                                                                      \
	 NS_PER_MS) /* until the first look: many a command has ended by then, and need not have waited for it */

struct seen {
	uint64_t born;
	uint32_t pid;
	char name[16];
};

struct samples {
	struct server *server;
	struct part *part;
	struct watch *watch;
	struct link_sample all, of[INIT_SESSIONS];
	struct seen was[SEEN_MAX], now[SEEN_MAX];
	size_t n_was, n_now, n_looked, n_told;
	uint64_t every_ns, seen_ns;
	bool sees, has_shared;
	struct shared shared;
	struct buf out;
	size_t at;
};

static void put(struct samples *s, const struct link_sample *one)
{
	buf_add(&s->out, one, sizeof(*one));
}

static bool was_there(const struct samples *s, const struct seen *p)
{
	for (size_t i = 0; i < s->n_was; i++)
		if (s->was[i].born == p->born && s->was[i].pid == p->pid &&
		    str_eq(s->was[i].name, p->name))
			return true;
	return false;
}

static void see(struct samples *s, const char *pid, const struct process *p,
		const struct command_session *of)
{
	struct link_sample one = { .kind = SAMPLE_PROCESS,
				   .session = of ? of->id : SAMPLE_NO_SESSION };
	struct seen *now = &s->now[s->n_now];
	struct err ignored;
	uint64_t n;

	/* The first one is ourselves. */
	if (s->n_now == SEEN_MAX || num_parse(pid, 2, INT32_MAX, &n, &ignored) < 0)
		return;
	*now = (struct seen){ .born = p->born, .pid = (uint32_t)n };
	memcpy(now->name, p->name, sizeof(now->name));
	s->n_now++;
	if (was_there(s, now) || s->n_told++ >= TOLD_MAX)
		return;
	one.pid = now->pid;
	one.ppid = (uint32_t)p->ppid;
	memcpy(one.name, p->name, sizeof(one.name));
	one.n_words = (uint32_t)process_words(s->server->proc, pid, one.words, sizeof(one.words));
	put(s, &one);
}

static void count(struct link_sample *to, const struct process *p)
{
	to->memory += p->memory;
	to->cpu_ns += p->cpu_ns;
	to->pids++;
}

static bool is_pid(const char *text, pid_t pid)
{
	struct err ignored;
	uint64_t n;

	return pid > 0 && num_parse(text, 1, INT32_MAX, &n, &ignored) == 0 && n == (uint64_t)pid;
}

static bool look(void *arg, const char *pid, const struct process *p)
{
	struct samples *s = arg;
	const struct command_session *of = session_led(s->server, p->sid);

	if (of && is_pid(pid, of->keys_pid))
		return true; /* of ours, as we are */
	count(&s->all, p);
	if (of)
		count(&s->of[of - s->server->sessions], p);
	if (s->sees)
		see(s, pid, p, of);
	return ++s->n_looked < PROCESSES_MAX;
}

/* A limit on memory may be the keeper's to watch. */
static uint64_t shared_bytes(struct samples *s)
{
	static const char *const places[] = { "/dev/shm", "/tmp", "/proc/sysvipc/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places) && !s->has_shared; i++) {
		int fd = open(places[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			shared_add(&s->shared, fd);
	}
	s->has_shared = true;
	return shared_take(&s->shared, s->server->proc);
}

static void look_again(struct samples *s)
{
	struct server *sv = s->server;
	uint64_t now = clock_now();

	s->all = (struct link_sample){ .kind = SAMPLE_ALL, .session = SAMPLE_NO_SESSION };
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		s->of[i] = (struct link_sample){ .kind = SAMPLE_SESSION,
						 .session = sv->sessions[i].id };
	s->n_looked = s->n_now = s->n_told = 0;
	s->sees = now - s->seen_ns >= SEE_NS;
	processes_each(sv->proc, look, s);
	if (sv->plan.limits[LIMIT_MEMORY].is_set)
		s->all.memory += shared_bytes(s);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (sv->sessions[i].is_used && s->of[i].pids > 0)
			put(s, &s->of[i]);
	put(s, &s->all); /* at last: whoever waits for a look knows then that it has come */
	if (s->sees) {
		s->seen_ns = now;
		memcpy(s->was, s->now, sizeof(s->was));
		s->n_was = s->n_now;
	}
}

static void on_time(void *arg)
{
	struct samples *s = arg;

	if (s->part == NULL || s->out.n != s->at)
		return;
	s->out.n = s->at = 0;
	look_again(s);
	stream_wake(s->part->stream);
}

static void on_first(void *arg)
{
	struct samples *s = arg;

	watch_free(s->watch);
	s->watch = watch_timer(s->server->loop, s->every_ns, true, on_time, s);
	on_time(s);
}

static ssize_t pull(void *arg, void *p, size_t n)
{
	struct samples *s = ((struct part *)arg)->server->samples;
	size_t left = s->out.n - s->at;

	n = n < left ? n : left;
	if (n > 0)
		memcpy(p, s->out.p + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

int samples_ask(struct part *part, const char *path)
{
	struct server *sv = part->server;
	struct samples *s;
	struct err ignored;
	uint64_t ms;

	if (sv->samples || !sv->is_locked || num_parse(path, 10, 60000, &ms, &ignored) < 0)
		return -EBADMSG;
	part->kind = PART_SAMPLES;
	(void)server_proc(sv); /* without it there is nothing to see */
	s = sv->samples = mem_new(1, sizeof(*s));
	s->server = sv;
	s->shared = SHARED_NONE;
	s->part = part;
	s->out = BUF((1 + INIT_SESSIONS + TOLD_MAX) * sizeof(struct link_sample));
	s->every_ns = ms * NS_PER_MS;
	s->watch = watch_timer(sv->loop, FIRST_NS, false, on_first, s);
	return stream_respond(part->stream, &(struct head){ .status = 200 }, pull, false);
}

/* Somebody wants to know now. One that is on its way does as well. */
void samples_look(struct server *sv)
{
	if (sv->samples)
		on_time(sv->samples);
}

/* It is not asked for twice. */
void samples_gone(struct part *part)
{
	struct server *sv = part->server;

	if (sv->samples == NULL || sv->samples->part != part)
		return;
	sv->samples->part = NULL;
	if (sv->is_parting) { /* but by whoever comes next */
		samples_free(sv->samples);
		sv->samples = NULL;
	}
}

void samples_free(struct samples *s)
{
	if (s == NULL)
		return;
	watch_free(s->watch);
	buf_done(&s->out);
	shared_done(&s->shared);
	free(s);
}
