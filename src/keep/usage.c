/* SPDX-License-Identifier: Apache-2.0 */
/* keep/usage.c - how much the sandbox uses, and each of its sessions
 *
 * One walk over the sandbox's own /proc gives both: every session's command leads a session of the kernel's (setsid),
 * so field 6 of /proc/N/stat says whose a process is. What has ended and was waited for is in its parent's sums, at
 * last in init's, so nothing is lost. A control group, where there is one, knows memory and time better.
 *
 * A walk costs about 20 us for each process. While sessions run one is made every five seconds, and less often where
 * it takes longer: never more than a hundredth of a processor. A sandbox that only stands there is not looked at.
 */
#include <dirent.h>
#include <fcntl.h>

#include "keep/keeper.h"
#include "sys/sample.h"

#define EVERY_NS (5 * NS_PER_SEC)
#define SHARE 100
#define PROCESSES_MAX 20000

static void add(struct keeper *k, const struct process *p)
{
	k->usage.cpu_ns += p->cpu_ns;
	k->usage.memory += p->memory;
	k->usage.processes++;
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used || s->pid <= 0 || (uint64_t)s->pid != p->sid)
			continue;
		s->live_cpu_ns += p->cpu_ns;
		s->live_memory += p->memory;
		s->live_processes++;
	}
}

static void walk(struct keeper *k)
{
	int fd = openat(k->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;
	size_t n = 0;

	while (d && n < PROCESSES_MAX && (en = readdir(d)) != NULL) {
		struct process p;

		if (en->d_name[0] < '1' || en->d_name[0] > '9')
			continue;
		n++;
		if (process_look(k->proc, en->d_name, &p))
			add(k, &p);
	}
	if (d)
		(void)closedir(d);
	else
		fd_close(fd);
}

void usage_take(struct keeper *k)
{
	uint64_t peak = k->usage.memory_peak;

	if (k->proc < 0) {
		struct init_msg m = { .type = INIT_WANT_PROC };

		/* Comes with the next message of init's; a limit that needs it has asked long before. */
		if (!k->wants_proc)
			(void)init_send(k->native.ctl, &m, NULL, 0);
		k->wants_proc = true;
		return;
	}
	k->usage = (struct usage){ 0 };
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		s->live_cpu_ns = s->live_memory = s->live_processes = 0;
	}
	walk(k);
	if (k->in->plan->has_cgroup) {
		struct cgroup_use u = { 0 };

		cgroup_use(&k->cgroup, &u);
		k->usage.memory = u.memory_now ? u.memory_now : k->usage.memory;
		k->usage.cpu_ns = u.cpu_ns ? u.cpu_ns : k->usage.cpu_ns;
		peak = u.memory_peak > peak ? u.memory_peak : peak;
	}
	k->usage.memory_peak = k->usage.memory > peak ? k->usage.memory : peak;
}

void usage_told(struct keeper *k, const struct init_msg *m)
{
	uint64_t peak = k->usage.memory_peak;

	k->usage = (struct usage){ .cpu_ns = m->cpu_ns,
				   .memory = m->max_rss,
				   .memory_peak = m->max_rss > peak ? m->max_rss : peak,
				   .processes = (uint64_t)m->a };
	limits_look(k);
}

void usage_fill(const struct keeper *k, uint64_t v[KEEP_VALUES])
{
	v[VALUE_STARTED] = k->started;
	v[VALUE_CPU_NS] = k->usage.cpu_ns;
	v[VALUE_MEMORY] = k->usage.memory;
	v[VALUE_PEAK] = k->usage.memory_peak;
	v[VALUE_PROCESSES] = k->usage.processes;
	v[VALUE_WALL_NS] = k->started_ns ? clock_now() - k->started_ns : 0;
}

static void on_usage(void *arg)
{
	struct keeper *k = arg;
	uint64_t before = clock_now(), cost;

	usage_take(k);
	cost = clock_now() - before;
	if (k->usage.processes > 0)
		tell_sample(k);
	watch_free(k->on_usage);
	k->on_usage = NULL;
	if (sessions_live(k) > 0)
		k->on_usage =
			watch_timer(k->loop, cost * SHARE > EVERY_NS ? cost * SHARE : EVERY_NS,
				    false, on_usage, k);
}

void usage_start(struct keeper *k)
{
	if (k->on_usage == NULL)
		k->on_usage = watch_timer(k->loop, EVERY_NS, false, on_usage, k);
}
