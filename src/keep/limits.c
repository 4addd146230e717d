/* SPDX-License-Identifier: Apache-2.0 */
/* keep/limits.c - limits while the sandbox runs
 *
 * What a control group or an rlimit enforces needs nothing here but the reason at the end. The rest is watched: a
 * timer for wall time, and a sample every 50 ms of the sandbox's own /proc where memory, CPU time or idleness must
 * be seen. The sandbox's /proc comes as a descriptor from init, sent before the first command runs.
 */
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/sabotage.h"
#include "keep/keeper.h"

#define SAMPLE_NS (50 * NS_PER_MS)
#define TOOL_START_NS (60 * NS_PER_SEC)

static const struct plan_limit *limit(const struct keeper *k, enum limit_id id)
{
	return &k->in->plan->limits[id];
}

/* ---- control groups ---- */

int limits_open(struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	struct cgroup_limits l = { 0 };
	_free_ char *name = mem_fmt("vitrine-%s-%d", p->name, (int)getpid());

	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct plan_limit *pl = &p->limits[id];

		if (!pl->is_set || pl->by != BY_KERNEL || !str_eq(pl->how, "cgroup"))
			continue;
		if (id == LIMIT_MEMORY && !sabotaged("memory"))
			l.memory = pl->max;
		else if (id == LIMIT_CPUS)
			l.cpus_milli = pl->max;
		else if (id == LIMIT_IO_READ)
			l.io_read = pl->max;
		else if (id == LIMIT_IO_WRITE)
			l.io_write = pl->max;
	}
	l.io_dev = (dev_t)p->ws_dev;
	return cgroup_open(&k->cgroup, k->in->cgroups, name, &l, e);
}

int limits_attach(struct keeper *k, struct err *e)
{
	struct init_msg go = { .type = INIT_GO };
	int r = k->cgroup.version == CGROUP_V2 ? 0 : cgroup_attach(&k->cgroup, k->native.pid, e);

	if (r < 0)
		return r;
	r = init_send(k->native.ctl, &go, NULL, 0);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "init is gone") : 0;
}

/* ---- samples ---- */

static bool is_over(const struct keeper *k, enum limit_id id, uint64_t now)
{
	return limit(k, id)->is_set && now > limit(k, id)->max;
}

static void over(struct keeper *k, enum limit_id id, uint64_t value, enum end_reason why)
{
	tell_limit(k, id, value);
	keeper_end(k, why);
}

static void check_idle(struct keeper *k)
{
	uint64_t now = clock_now();

	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && session_last_ns(&k->sessions[i]) > k->idle_since_ns)
			k->idle_since_ns = session_last_ns(&k->sessions[i]);
	/* A sleeping program wakes now and then; a tenth of a second of work is none. */
	if (k->usage.cpu_ns > k->cpu_ns + 100 * NS_PER_MS) {
		k->cpu_ns = k->usage.cpu_ns;
		k->idle_since_ns = now;
	}
	if (is_over(k, LIMIT_IDLE, now - k->idle_since_ns))
		over(k, LIMIT_IDLE, now - k->idle_since_ns, END_IDLE);
}

static void end_pids(struct keeper *k)
{
	err_put_(&k->err, ERR_DENIED, EAGAIN,
		 "ended: it started more processes than it may (limit %llu)",
		 (unsigned long long)limit(k, LIMIT_PIDS)->max);
	keeper_end(k, END_ERROR);
}

void limits_look(struct keeper *k)
{
	if (limit(k, LIMIT_MEMORY)->by == BY_WATCHED && is_over(k, LIMIT_MEMORY, k->usage.memory) &&
	    !sabotaged("memory"))
		over(k, LIMIT_MEMORY, k->usage.memory, END_MEMORY);
	else if (limit(k, LIMIT_PIDS)->by == BY_WATCHED &&
		 is_over(k, LIMIT_PIDS, k->usage.processes))
		end_pids(k);
	else if (is_over(k, LIMIT_CPU_TIME, k->usage.cpu_ns))
		over(k, LIMIT_CPU_TIME, k->usage.cpu_ns, END_CPU_TIME);
	else if (limit(k, LIMIT_IDLE)->is_set)
		check_idle(k);
}

static void on_sample(void *arg)
{
	usage_take(arg);
	limits_look(arg);
}

static void on_time(void *arg)
{
	struct keeper *k = arg;

	over(k, LIMIT_TIME, clock_now() - k->timed_ns, END_TIME);
}

static void count_from_now(struct keeper *k, uint64_t more)
{
	k->timed_ns = k->idle_since_ns = clock_now();
	watch_free(k->on_time);
	k->on_time = NULL;
	if (limit(k, LIMIT_TIME)->is_set && !sabotaged("time"))
		k->on_time =
			watch_timer(k->loop, limit(k, LIMIT_TIME)->max + more, false, on_time, k);
}

/* The time that another engine's tool takes is not the command's, which has not begun then; but it has an end too. */
void limits_start(struct keeper *k)
{
	k->started_ns = clock_now();
	count_from_now(k, k->native.tool > 0 && k->sessions[0].is_used ? TOOL_START_NS : 0);
}

void limits_begin(struct keeper *k)
{
	if (k->native.tool > 0)
		count_from_now(k, 0);
}

void limits_proc(struct keeper *k, int take_proc)
{
	struct statfs fs;

	/* Only once, only before anything foreign runs or when we asked, and only if it is what it claims to be. */
	if (k->proc >= 0 || (k->sessions[0].has_begun && !k->wants_proc) ||
	    fstatfs(take_proc, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC) {
		fd_close(take_proc);
		return;
	}
	k->proc = take_proc;
	if (plan_needs_samples(k->in->plan))
		k->on_sample = watch_timer(k->loop, SAMPLE_NS, true, on_sample, k);
}

void limits_check_output(struct keeper *k)
{
	uint64_t sum = 0;

	if (!limit(k, LIMIT_OUTPUT)->is_set)
		return;
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			sum += session_output(&k->sessions[i]);
	if (!is_over(k, LIMIT_OUTPUT, sum))
		return;
	over(k, LIMIT_OUTPUT, sum, END_OUTPUT);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			session_mute(&k->sessions[i]);
}

enum end_reason limits_reason(struct keeper *k, int status, enum end_reason why)
{
	if (k->in->plan->has_cgroup && limit(k, LIMIT_MEMORY)->is_set && status == 137) {
		uint64_t kills = cgroup_oom_kills(&k->cgroup), before = k->oom_kills;

		k->oom_kills = kills;
		if (kills > before) {
			tell_limit(k, LIMIT_MEMORY, limit(k, LIMIT_MEMORY)->max);
			return END_MEMORY;
		}
	}
	/* RLIMIT_CPU ends one process; the reason is the same limit. */
	if (limit(k, LIMIT_CPU_TIME)->is_set && status == 128 + 24 /* SIGXCPU */)
		return END_CPU_TIME;
	return why;
}
