/* SPDX-License-Identifier: Apache-2.0 */
/* keep/usage.c - how much the sandbox uses, and each of its sessions
 *
 * One walk over the sandbox's own /proc gives both: every session's command leads a session of the kernel's (setsid),
 * so field 6 of /proc/N/stat says whose a process is. What has ended and was waited for is in its parent's sums, at
 * last in init's, so nothing is lost. A control group, where there is one, knows memory and time better.
 *
 * A walk costs about 20 us for each process. While sessions run one is made after a second and then every five, and less often
 * where it takes longer: never more than a hundredth of a processor. A sandbox that only stands there is not looked at.
 *
 * A program that was not there at the look before is told of, with the arguments it shows: no more than a few at a look,
 * and of so many processes.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/sabotage.h"
#include "keep/keeper.h"
#include "remote/link.h"
#include "sys/sample.h"

#define FIRST_NS NS_PER_SEC
#define EVERY_NS (5 * NS_PER_SEC)
#define SOON_NS (50 * NS_PER_MS) /* init was asked for its /proc */
#define SHARE 100
#define PROCESSES_MAX 20000

#define SEEN_MAX 256 /* processes that are remembered */
#define TOLD_MAX 32  /* at one look */
#define WORDS_MAX 4096

struct seen {
	uint64_t born;
	char pid[12], name[16];
};

static bool was_there(const struct keeper *k, const struct seen *p)
{
	for (size_t i = 0; i < k->n_seen; i++)
		if (k->seen[i].born == p->born && str_eq(k->seen[i].pid, p->pid) &&
		    str_eq(k->seen[i].name, p->name))
			return true;
	return false;
}

/* One look: who is there, compared with who was. */
struct glance {
	struct seen now[SEEN_MAX];
	size_t n, n_told;
};

static void see(struct keeper *k, struct glance *g, const char *pid, const struct process *p)
{
	struct seen *s = &g->now[g->n];
	char words[WORDS_MAX];

	/* The first one is our own. */
	if (g->n == SEEN_MAX || str_eq(pid, "1"))
		return;
	*s = (struct seen){ .born = p->born };
	(void)snprintf(s->pid, sizeof(s->pid), "%.11s", pid);
	(void)snprintf(s->name, sizeof(s->name), "%s", p->name);
	g->n++;
	if (!was_there(k, s) && g->n_told++ < TOLD_MAX)
		tell_process(k, pid, p, words, process_words(k->proc, pid, words, sizeof(words)));
}

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

static void walk(struct keeper *k, struct glance *g)
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
		if (!process_look(k->proc, en->d_name, &p))
			continue;
		add(k, &p);
		if (g)
			see(k, g, en->d_name, &p);
	}
	if (d)
		(void)closedir(d);
	else
		fd_close(fd);
}

static void look(struct keeper *k, struct glance *g)
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
	walk(k, g);
	if (plan_watches_memory(k->in->plan) && !sabotaged("shared"))
		k->usage.memory += shared_take(&k->shared, k->proc);
	if (k->in->plan->has_cgroup) {
		struct cgroup_use u = { 0 };

		cgroup_use(&k->cgroup, &u);
		k->usage.memory = u.memory_now ? u.memory_now : k->usage.memory;
		k->usage.cpu_ns = u.cpu_ns ? u.cpu_ns : k->usage.cpu_ns;
		peak = u.memory_peak > peak ? u.memory_peak : peak;
	}
	k->usage.memory_peak = k->usage.memory > peak ? k->usage.memory : peak;
}

void usage_take(struct keeper *k)
{
	look(k, NULL);
}

static void remember(struct keeper *k, const struct glance *g)
{
	k->seen = mem_grow(k->seen, g->n + 1, sizeof(*k->seen));
	memcpy(k->seen, g->now, g->n * sizeof(*k->seen));
	k->n_seen = g->n;
}

/* ---- told by an init behind other walls: foreign ---- */

static void told_session(struct keeper *k, const struct init_msg *m)
{
	struct session *s = session_find(k, m->session);

	if (s == NULL)
		return;
	s->live_cpu_ns = m->cpu_ns;
	s->live_memory = m->max_rss;
	s->live_processes = (uint64_t)m->a;
}

/* As many as at looks of our own, and no more. */
static void told_process(struct keeper *k, const struct init_msg *m)
{
	const struct session *s = session_find(k, m->session);
	struct process p = { .ppid = (uint64_t)m->b,
			     .sid = s && s->pid > 0 ? (uint64_t)s->pid : 0 };
	const char *words = m->err.msg + sizeof(p.name);
	uint64_t now = clock_now();
	char pid[12];

	if (now - k->told_ns > NS_PER_SEC) {
		k->told_ns = now;
		k->n_told = 0;
	}
	if (m->a < 1 || m->rows > sizeof(m->err.msg) - sizeof(p.name) ||
	    (m->rows > 0 && words[m->rows - 1] != '\0') || k->n_told++ >= TOLD_MAX)
		return;
	memcpy(p.name, m->err.msg, sizeof(p.name));
	p.name[sizeof(p.name) - 1] = '\0';
	(void)snprintf(pid, sizeof(pid), "%d", m->a);
	tell_process(k, pid, &p, words, m->rows);
}

static void told_all(struct keeper *k, const struct init_msg *m)
{
	uint64_t peak = k->usage.memory_peak;

	k->usage = (struct usage){ .cpu_ns = m->cpu_ns,
				   .memory = m->max_rss,
				   .memory_peak = m->max_rss > peak ? m->max_rss : peak,
				   .processes = (uint64_t)m->a };
	limits_look(k);
	clients_on_look(k);
}

void usage_told(struct keeper *k, const struct init_msg *m)
{
	if (m->a < 0)
		return;
	if (m->flags == SAMPLE_ALL)
		told_all(k, m);
	else if (m->flags == SAMPLE_SESSION)
		told_session(k, m);
	else if (m->flags == SAMPLE_PROCESS)
		told_process(k, m);
}

void usage_fill(const struct keeper *k, uint64_t v[KEEP_VALUES])
{
	v[VALUE_STARTED] = k->started;
	v[VALUE_CPU_NS] = k->usage.cpu_ns;
	v[VALUE_MEMORY] = k->usage.memory;
	v[VALUE_PEAK] = k->usage.memory_peak;
	v[VALUE_PROCESSES] = k->usage.processes;
	gate_bytes(k, &v[VALUE_NET_IN], &v[VALUE_NET_OUT]);
	v[VALUE_WALL_NS] = k->started_ns ? clock_now() - k->started_ns : 0;
}

static uint64_t next_look(uint64_t cost)
{
	return cost * SHARE > EVERY_NS ? cost * SHARE : EVERY_NS;
}

/* Asked for and not come yet. */
static bool is_unknown(const struct keeper *k)
{
	return k->native.tool > 0 ? k->usage.processes == 0 : k->proc < 0;
}

static void on_usage(void *arg)
{
	struct keeper *k = arg;
	uint64_t before = clock_now(), cost;
	struct glance g;

	g.n = g.n_told = 0;
	look(k, &g);
	if (k->native.tool == 0)
		remember(k, &g);
	cost = clock_now() - before;
	if (k->usage.processes > 0)
		tell_sample(k);
	watch_free(k->on_usage);
	k->on_usage = NULL;
	if (sessions_live(k) > 0)
		k->on_usage = watch_timer(k->loop, is_unknown(k) ? SOON_NS : next_look(cost), false,
					  on_usage, k);
}

void usage_start(struct keeper *k)
{
	if (k->on_usage == NULL)
		k->on_usage = watch_timer(k->loop, FIRST_NS, false, on_usage, k);
}
