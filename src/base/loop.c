/* SPDX-License-Identifier: Apache-2.0 */
/* base/loop.c - see loop.h
 *
 * poll() over a small vector: a keeper waits for a dozen descriptors, and poll is everywhere. Signals arrive
 * through a pipe written by the handler. A watch freed inside a callback is only marked and goes when the round is
 * over, so that a callback may free any watch, its own included.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/sabotage.h"

enum watch_kind { WATCH_FD, WATCH_SIGNAL, WATCH_TIMER };

struct watch {
	struct loop *loop;
	enum watch_kind kind;
	watch_fn *fn;
	void *arg;
	int fd; /* or the signal */
	short events;
	bool is_on, is_freed, is_repeating;
	uint64_t every_ns, due_ns;
};

struct loop {
	struct watch **v;
	size_t n, cap;
	struct pollfd *p;
	size_t p_cap;
	bool is_stopped;
};

/* One loop a process; the handler can only reach a global. */
static int signal_pipe[2] = { FD_NONE, FD_NONE };

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t); /* cannot fail for these clocks */
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

bool wait_readable(int fd, uint64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now = clock_now();

	while (now < until) {
		int n = poll(&p, 1, (int)((until - now) / NS_PER_MS + 1));

		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
		now = clock_now();
	}
	return false;
}

/* A clock that somebody sets, for a test: an hour forth, an hour back, again and again. */
static uint64_t jump(uint64_t now)
{
	static unsigned n;
	uint64_t hour = 3600 * NS_PER_SEC;

	n++;
	return n % 3 == 1 ? now + hour : n % 3 == 2 ? now - hour : now;
}

uint64_t clock_real(void)
{
	uint64_t now = read_clock(CLOCK_REALTIME);

	return sabotaged("clock") ? jump(now) : now;
}

struct loop *loop_new(void)
{
	return mem_new(1, sizeof(struct loop));
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	free(l->p);
	free(l);
}

void loop_stop(struct loop *l)
{
	l->is_stopped = true;
}

static struct watch *watch_new(struct loop *l, enum watch_kind kind, int fd, watch_fn *fn,
			       void *arg)
{
	struct watch *w = mem_new(1, sizeof(*w));

	*w = (struct watch){
		.loop = l, .kind = kind, .fd = fd, .fn = fn, .arg = arg, .is_on = true
	};
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
	vec_reserve(l->v, l->n, l->cap);
	l->v[l->n++] = w;
	return w;
}

struct watch *watch_fd(struct loop *l, int fd, int what, watch_fn *fn, void *arg)
{
	struct watch *w = watch_new(l, WATCH_FD, fd, fn, arg);

	w->events = (short)((what & WATCH_READ ? POLLIN : 0) | (what & WATCH_WRITE ? POLLOUT : 0));
	return w;
}

static void on_signal(int signo)
{
	unsigned char c = (unsigned char)signo;
	int saved = errno;

	if (write(signal_pipe[1], &c, 1) < 0)
		(void)saved; /* a full pipe holds signals enough */
	errno = saved;
}

struct watch *watch_signal(struct loop *l, int signo, watch_fn *fn, void *arg)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	if (signal_pipe[0] < 0)
		bug_on(pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0);
	bug_on(sigaction(signo, &sa, NULL) < 0);
	return watch_new(l, WATCH_SIGNAL, signo, fn, arg);
}

struct watch *watch_timer(struct loop *l, uint64_t ns, bool is_repeating, watch_fn *fn, void *arg)
{
	struct watch *w = watch_new(l, WATCH_TIMER, FD_NONE, fn, arg);

	w->every_ns = ns;
	w->is_repeating = is_repeating;
	w->is_on = ns > 0;
	w->due_ns = clock_now() + ns;
	return w;
}

void watch_set(struct watch *w, bool is_on)
{
	if (w == NULL || w->is_on == is_on)
		return;
	w->is_on = is_on;
	if (w->kind == WATCH_TIMER)
		w->due_ns = clock_now() + w->every_ns;
}

void watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	w->is_on = false;
	w->is_freed = true;
}

static void sweep(struct loop *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i]->is_freed)
			free(l->v[i]);
		else
			l->v[kept++] = l->v[i];
	}
	l->n = kept;
}

/* Milliseconds until the next timer, rounded up; -1 when there is none, and then nobody need ask for the time, which in some
 * places is a dear call. */
static int timeout(const struct loop *l)
{
	uint64_t now, next = UINT64_MAX;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->kind == WATCH_TIMER && l->v[i]->is_on && l->v[i]->due_ns < next)
			next = l->v[i]->due_ns;
	if (next == UINT64_MAX)
		return -1;
	now = clock_now();
	if (next <= now)
		return 0;
	next = (next - now + NS_PER_MS - 1) / NS_PER_MS;
	return next > 3600000 ? 3600000 : (int)next;
}

static void run_timers(struct loop *l, size_t n)
{
	uint64_t now = 0;

	for (size_t i = 0; i < n; i++) {
		struct watch *w = l->v[i];

		if (w->kind != WATCH_TIMER || !w->is_on)
			continue;
		now = now ? now : clock_now();
		if (w->due_ns > now)
			continue;
		w->is_on = w->is_repeating;
		w->due_ns = now + w->every_ns;
		w->fn(w->arg);
	}
}

static void run_signals(struct loop *l, size_t n)
{
	unsigned char c[64];
	/* What comes meanwhile, or does not fit, wakes us again. */
	ssize_t got = signal_pipe[0] < 0 ? 0 : read(signal_pipe[0], c, sizeof(c));

	for (ssize_t k = 0; k < got; k++)
		for (size_t i = 0; i < n; i++)
			if (l->v[i]->kind == WATCH_SIGNAL && l->v[i]->fd == c[k] && l->v[i]->is_on)
				l->v[i]->fn(l->v[i]->arg);
}

static void run_once(struct loop *l)
{
	size_t n = l->n;

	if (l->p_cap < n + 1) {
		l->p_cap = n + 8;
		l->p = mem_grow(l->p, l->p_cap, sizeof(*l->p));
	}
	for (size_t i = 0; i < n; i++)
		l->p[i] = (struct pollfd){ .fd = l->v[i]->kind == WATCH_FD && l->v[i]->is_on
							 ? l->v[i]->fd
							 : -1,
					   .events = l->v[i]->events };
	l->p[n] = (struct pollfd){ .fd = signal_pipe[0], .events = POLLIN };
	if (poll(l->p, n + 1, timeout(l)) < 0)
		return; /* EINTR: look at everything again */
	run_timers(l, n);
	if (l->p[n].revents)
		run_signals(l, n);
	for (size_t i = 0; i < n && !l->is_stopped; i++)
		if (l->p[i].revents && l->v[i]->is_on)
			l->v[i]->fn(l->v[i]->arg);
}

void loop_run(struct loop *l)
{
	l->is_stopped = false;
	while (!l->is_stopped) {
		run_once(l);
		sweep(l);
	}
}
