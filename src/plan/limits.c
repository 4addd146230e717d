/* SPDX-License-Identifier: Apache-2.0 */
/* plan/limits.c - who enforces each limit on this host: the kernel, the keeper, or nobody */
#include "plan/parts.h"
#include "sys/cgroup.h"

const char *enforcer_name(enum enforcer by)
{
	static const char *const names[BY_COUNT_] = { "none", "watched", "kernel" };

	bug_on(by >= BY_COUNT_);
	return names[by];
}

bool plan_needs_samples(const struct plan *p)
{
	const struct plan_limit *l = p->limits;

	return plan_watches_memory(p) || (l[LIMIT_PIDS].is_set && l[LIMIT_PIDS].by == BY_WATCHED) ||
	       l[LIMIT_CPU_TIME].is_set || l[LIMIT_IDLE].is_set;
}

#define SAMPLED "keeper samples every 50 ms"
#define ENGINES_GROUP "the engine's control group"

/* By a control group where there is one that can, else as `l` says. */
static struct plan_limit by_group(const struct facts *f, unsigned controller, struct plan_limit l)
{
	if (f->engine_has_cgroups)
		return (struct plan_limit){ .by = BY_KERNEL, .how = ENGINES_GROUP };
	if (f->cgroup_usable & BIT(controller))
		return (struct plan_limit){ .by = BY_KERNEL, .how = "cgroup" };
	return l;
}

/* The kernel counts for each id; with many ids there are many counts. */
static struct plan_limit by_count(const struct facts *f)
{
	struct plan_limit l = { .by = BY_KERNEL, .how = "rlimit of the user namespace" };

	if (f->has_own_kernel || f->inner_root != ROOT_NONE)
		return (struct plan_limit){ .by = BY_WATCHED, .how = SAMPLED };
	if (f->engine_has_cgroups)
		l.how = ENGINES_GROUP;
	return l;
}

static struct plan_limit decide(enum limit_id id, const struct facts *f)
{
	struct plan_limit l = { 0 };
	unsigned cg = f->cgroup_usable;

	switch (id) {
	case LIMIT_MEMORY:
		l = by_group(f, CG_MEMORY, (struct plan_limit){ .by = BY_WATCHED, .how = SAMPLED });
		break;
	case LIMIT_CPUS:
		l = by_group(f, CG_CPU,
			     (struct plan_limit){ .by = BY_NONE, .how = "no cpu controller" });
		break;
	case LIMIT_PIDS:
		l = by_count(f);
		break;
	case LIMIT_DISK:
		l.by = f->engine_counts_no_files ? BY_NONE : BY_KERNEL;
		l.how = f->engine_counts_no_files ? "this engine bounds the bytes, but not the "
						    "number of files"
						  : "sized tmpfs";
		break;
	case LIMIT_IO_READ:
	case LIMIT_IO_WRITE:
		l.by = cg & BIT(CG_IO) && !f->engine_has_cgroups ? BY_KERNEL : BY_NONE;
		l.how = l.by == BY_KERNEL ? "cgroup" : "no block I/O controller";
		break;
	case LIMIT_OPEN_FILES:
		l.by = BY_KERNEL;
		l.how = "rlimit";
		break;
	case LIMIT_CPU_TIME:
		l.by = BY_KERNEL;
		l.how = "rlimit per process, keeper for the sum";
		break;
	case LIMIT_TIME:
	case LIMIT_OUTPUT:
		l.by = BY_KERNEL;
		l.how = "keeper ends the pid namespace";
		break;
	case LIMIT_IDLE:
		l.by = BY_WATCHED;
		l.how = "keeper";
		break;
	case LIMIT_EVENTS_AGE:
	case LIMIT_EVENTS_SIZE:
	case LIMIT_ALL_:
		bug_on(true);
	}
	return l;
}

/* Open files: descriptors in flight between sockets are counted for the user, and a process may send one as long as there are
 * fewer than its own limit on open files. What is inside gets half of ours, so that we can always send. */
int plan_limits(struct plan *p, const struct policy *pol, const struct facts *f, struct err *e)
{
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct limit *want = &pol->limits[id];
		struct plan_limit *l = &p->limits[id];

		if (!want->is_set && id != LIMIT_OPEN_FILES)
			continue;
		*l = decide(id, f);
		if (id == LIMIT_DISK && p->is_named && pol->home == HOME_PRIVATE) {
			l->by = BY_WATCHED;
			l->how = "what it keeps lies on the disk, where the keeper looks";
		}
		l->is_set = true;
		l->max = want->is_set ? want->max : UINT64_MAX;
		if (id == LIMIT_OPEN_FILES && l->max > f->hard_open_files / 2)
			l->max = f->hard_open_files / 2;
		if (l->by != BY_KERNEL && id != LIMIT_IDLE && !want->is_optional)
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
				       "limit %s: the kernel cannot enforce it here (%s; %s); add "
				       "',optional' to accept "
				       "'%s'",
				       limit_name(id), l->how,
				       f->cgroup_why ? f->cgroup_why : "no control group",
				       enforcer_name(l->by));
		if (l->by == BY_KERNEL && str_eq(l->how, "cgroup"))
			p->has_cgroup = true;
	}
	p->private_bytes = p->limits[LIMIT_DISK].is_set ? p->limits[LIMIT_DISK].max : 0;
	p->private_inodes = p->private_bytes ? p->private_bytes / 4096 + 1024 : 0;
	return 0;
}
