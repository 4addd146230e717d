/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup.h - memory, cpu, pids and block I/O limits by control groups, version 2 or 1
 *
 * cgroup_probe() looks at what this process may use; cgroup_open() makes one group per controller (v1) or one
 * (v2) with the limits written; nothing in the kernel is touched when no limit needs it. The group is owned by
 * the keeper and removed when the sandbox ends; a crashed keeper's group is removed by cgroup_reap().
 */
#ifndef VITRINE_SYS_CGROUP_H
#define VITRINE_SYS_CGROUP_H

#include <sys/types.h>

#include "base/err.h"

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2, CGROUP_VERSION_COUNT_ };

/* CG_CPUACCT only counts, and only on v1: v2 counts CPU time in every group. */
enum cgroup_ctl { CG_MEMORY, CG_CPU, CG_PIDS, CG_IO, CG_FREEZER, CG_CPUACCT, CG_COUNT_ };

struct cgroup_host {
	enum cgroup_version version;
	unsigned usable; /* BIT(CG_x): a group with this controller can be made by us, now */
	char base[CG_COUNT_][256]; /* directory below which ours are made; for v2 all the same */
	char why[256];             /* when not usable: the reason and the remedy, one line */
};

struct cgroup_limits {
	uint64_t memory, cpus_milli, pids, io_read, io_write; /* 0: none; I/O in bytes per second */
	dev_t io_dev; /* st_dev of the workspace: the device that io_read and io_write are about */
	bool freezer; /* make groups even without a limit, so that cgroup_freeze() works */
};

struct cgroup {
	enum cgroup_version version;
	unsigned made; /* BIT(CG_x) */
	char dir[CG_COUNT_][320];
	int lock[CG_COUNT_]; /* says to cgroup_reap() that we are alive; meaningful for `made` only */
};

/* "memory", "cpu", ... as people say it. */
const char *cgroup_ctl_name(enum cgroup_ctl ctl);

void cgroup_probe(struct cgroup_host *ret);
/* ERR_UNSUPPORTED when a limit is asked for whose controller is not usable. `name` is one path component. */
int cgroup_open(struct cgroup *c, const struct cgroup_host *h, const char *name,
		const struct cgroup_limits *l, struct err *e);
/* For clone3(CLONE_INTO_CGROUP) on v2: directory fd, owned by the caller; -EBADF on v1 or when nothing was made. */
int cgroup_fd(const struct cgroup *c);
int cgroup_attach(const struct cgroup *c, pid_t pid, struct err *e);
/* Waits up to half a second until all processes stand still; -ETIMEDOUT, or -EOPNOTSUPP without a freezer. */
int cgroup_freeze(const struct cgroup *c, bool is_frozen);
/* How often the memory limit killed something here. */
uint64_t cgroup_oom_kills(const struct cgroup *c);
struct cgroup_use {
	uint64_t memory_now, memory_peak, cpu_ns, pids_now;
};
void cgroup_use(const struct cgroup *c, struct cgroup_use *ret);
void cgroup_remove(struct cgroup *c);
/* Removes empty groups left by keepers that died: every child of the bases whose name begins with "vitrine-". */
void cgroup_reap(const struct cgroup_host *h);

#endif
