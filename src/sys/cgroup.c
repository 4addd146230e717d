/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup.c - making control groups where cgroup_find.c found a place, limiting, reading, removing them
 *
 * Alive or left over
 *
 * A group is empty between being made and its first process, and looks then like one that a dead keeper left. A
 * lock (flock) on its directory tells them apart: cgroup_reap() removes only what it can lock itself.
 *
 * Block I/O: v1 throttles direct and synchronous I/O only, because write-back happens in nobody's group.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "sys/cgroup_file.h"

#define OUTSIDE CGROUP_PREFIX "outside"

/* --- making --- */

static unsigned wanted(const struct cgroup_limits *l)
{
	return (l->memory ? BIT(CG_MEMORY) : 0) | (l->cpus_milli ? BIT(CG_CPU) : 0) |
	       (l->pids ? BIT(CG_PIDS) : 0) | (l->io_read || l->io_write ? BIT(CG_IO) : 0) |
	       (l->freezer ? BIT(CG_FREEZER) : 0);
}

/* The first controller whose group lies in the same directory; v2 has but one, v1 mounts some together. */
static enum cgroup_ctl first_in_dir(const struct cgroup *c, enum cgroup_ctl i)
{
	for (enum cgroup_ctl k = 0; k < i; k++)
		if ((c->made & BIT(k)) && str_eq(c->dir[k], c->dir[i]))
			return k;
	return i;
}

/* Removes an empty group that nobody holds a lock on. A group with processes in it the kernel keeps by itself. */
static bool remove_left_over(int at, const char *name)
{
	_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	       unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Made and locked, and still there once it is locked: cgroup_reap() may have come in between. Fd or -errno. */
static int make_locked(const char *dir)
{
	for (int tries = 0; tries < 8; tries++) {
		_close_ int fd = FD_NONE;
		struct stat by_fd, by_name;

		if (mkdir(dir, 0755) < 0) {
			if (errno != EEXIST)
				return -errno;
			if (!remove_left_over(AT_FDCWD, dir))
				return -EEXIST;
			continue;
		}
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
			return -errno;
		if (fstat(fd, &by_fd) == 0 && lstat(dir, &by_name) == 0 &&
		    by_fd.st_ino == by_name.st_ino)
			return take_fd(fd);
	}
	return -EAGAIN;
}

static int make_group(struct cgroup *c, const struct cgroup_host *h, enum cgroup_ctl i,
		      const char *name, struct err *e)
{
	int n = snprintf(c->dir[i], sizeof(c->dir[i]), "%s/%s%s", h->base[i],
			 str_starts(name, CGROUP_PREFIX) ? "" : CGROUP_PREFIX, name);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(c->dir[i]))
		return err_set(e, ERR_SYSTEM, ENAMETOOLONG,
			       "control group name '%.64s' is too long", name);
	c->lock[i] = FD_NONE;
	if (first_in_dir(c, i) == i) {
		fd = make_locked(c->dir[i]);
		if (fd == -EEXIST)
			return err_set(e, ERR_CONFLICT, EEXIST, "control group '%s' is in use",
				       c->dir[i]);
		if (fd < 0) {
			errno = -fd;
			return err_sys(e, "make control group '%s'", c->dir[i]);
		}
		c->lock[i] = fd;
	}
	c->made |= BIT(i);
	return 0;
}

/* Moves every process of our own group to a child, so that it may hand on controllers. */
static int move_outside(const char *dir, struct err *e)
{
	_free_ char *child = mem_fmt("%s/" OUTSIDE, dir);
	_free_ char *list = mem_fmt("%s/cgroup.procs", dir);
	_cleanup_(buf_done) struct buf procs = BUF(CGROUP_FILE_MAX);
	int r;

	if (mkdir(child, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make control group '%s'", child);
	r = io_read_file(list, &procs, e);
	if (r < 0)
		return r;
	for (const char *s = buf_cstr(&procs); *s;) {
		size_t n = strcspn(s, "\n");
		_free_ char *pid = mem_strn(s, n);

		r = cgroup_write(child, "cgroup.procs", pid, e);

		/* One that ended meanwhile need not be moved. */
		if (r < 0 && r != -ESRCH)
			return r;
		s += n + (s[n] == '\n');
	}
	return 0;
}

/* Children of the base get the controllers they need. */
static int hand_on(const struct cgroup_host *h, unsigned want, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		_free_ char *word = NULL;
		int r;

		if (!(want & BIT(i)) || cgroup_names[i].v2 == NULL ||
		    cgroup_file_has(h->base[i], "cgroup.subtree_control", cgroup_names[i].v2))
			continue;
		word = mem_fmt("+%s", cgroup_names[i].v2);
		r = cgroup_write(h->base[i], "cgroup.subtree_control", word, e);
		if (r == -EBUSY) {
			r = move_outside(h->base[i], e);
			if (r >= 0)
				r = cgroup_write(h->base[i], "cgroup.subtree_control", word, e);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- limits, as text for files --- */

/* Throttling works on whole disks; st_dev may be a partition. */
static int whole_disk(dev_t dev, char *ret, size_t size, struct err *e)
{
	_free_ char *dir = mem_fmt("/sys/dev/block/%u:%u", major(dev), minor(dev));
	_free_ char *part = mem_fmt("%s/partition", dir);
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	if (access(dir, F_OK) < 0)
		return err_set(e, ERR_UNSUPPORTED, ENODEV,
			       "the workspace's file system (%u:%u) is on no block device that "
			       "could be limited",
			       major(dev), minor(dev));
	if (access(part, F_OK) < 0) {
		(void)snprintf(ret, size, "%u:%u", major(dev), minor(dev));
		return 0;
	}
	if (!cgroup_read(dir, "../dev", &b))
		return err_set(e, ERR_SYSTEM, ENODEV, "cannot find the disk of partition %u:%u",
			       major(dev), minor(dev));
	(void)snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&b), "\n"), buf_cstr(&b));
	return 0;
}

/* Quotas below a millisecond are refused by the kernel, so a tiny share gets a longer period. */
static unsigned cpu_period_us(uint64_t cpus_milli)
{
	return cpus_milli < 10 ? 1000000 : 100000;
}

static int put_number(const char *dir, const char *file, uint64_t v, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return cgroup_write(dir, file, text, e);
}

/* Memory and swap together, so that a limit on memory is one on what is stored anywhere. */
static int limit_memory_v1(const char *dir, uint64_t max, struct err *e)
{
	struct err ignored = ERR_INIT;
	int r;

	/* Kernels before 5.11 count children only when told to; later ones always do and may refuse the word. */
	(void)put_number(dir, "memory.use_hierarchy", 1, &ignored);
	r = put_number(dir, "memory.limit_in_bytes", max, e);
	if (r < 0)
		return r;
	if (cgroup_may_write(dir, "memory.memsw.limit_in_bytes"))
		return put_number(dir, "memory.memsw.limit_in_bytes", max, e);
	/* Without swap accounting the next best: do not swap these. */
	(void)put_number(dir, "memory.swappiness", 0, &ignored);
	return 0;
}

static int limit_memory_v2(const char *dir, uint64_t max, struct err *e)
{
	int r = put_number(dir, "memory.max", max, e);

	/* memory.oom.group stays off: one greedy command must not take a sandbox's other sessions with it. Version 1 knows
	 * nothing else. */
	if (r >= 0 && cgroup_may_write(dir, "memory.swap.max"))
		r = put_number(dir, "memory.swap.max", 0, e);
	return r;
}

static int limit_cpu(const struct cgroup *c, uint64_t milli, struct err *e)
{
	const char *dir = c->dir[CG_CPU];
	unsigned period = cpu_period_us(milli);
	uint64_t quota = milli * period / 1000;
	char text[48];
	int r;

	if (c->version == CGROUP_V2) {
		(void)snprintf(text, sizeof(text), "%llu %u", (unsigned long long)quota, period);
		return cgroup_write(dir, "cpu.max", text, e);
	}
	r = put_number(dir, "cpu.cfs_period_us", period, e);
	return r < 0 ? r : put_number(dir, "cpu.cfs_quota_us", quota, e);
}

static int limit_io(const struct cgroup *c, const struct cgroup_limits *l, struct err *e)
{
	const uint64_t bps[2] = { l->io_read, l->io_write };
	static const char *const files[2] = { "blkio.throttle.read_bps_device", "blkio.throttle."
										"write_bps_"
										"device" };
	static const char *const keys[2] = { "rbps", "wbps" };
	char disk[32], text[80];
	int r = whole_disk(l->io_dev, disk, sizeof(disk), e);

	for (int i = 0; i < 2 && r >= 0; i++) {
		bool is_v2 = c->version == CGROUP_V2;

		if (bps[i] == 0)
			continue;
		(void)snprintf(text, sizeof(text), "%s %s%s%llu", disk, is_v2 ? keys[i] : "",
			       is_v2 ? "=" : "", (unsigned long long)bps[i]);
		r = cgroup_write(c->dir[CG_IO], is_v2 ? "io.max" : files[i], text, e);
	}
	return r;
}

static int write_limits(const struct cgroup *c, const struct cgroup_limits *l, struct err *e)
{
	int r = 0;

	if (l->memory && c->version == CGROUP_V2)
		r = limit_memory_v2(c->dir[CG_MEMORY], l->memory, e);
	else if (l->memory)
		r = limit_memory_v1(c->dir[CG_MEMORY], l->memory, e);
	if (r >= 0 && l->cpus_milli)
		r = limit_cpu(c, l->cpus_milli, e);
	if (r >= 0 && l->pids)
		r = put_number(c->dir[CG_PIDS], "pids.max", l->pids, e);
	if (r >= 0 && (l->io_read || l->io_write))
		r = limit_io(c, l, e);
	return r < 0 ? err_wrap(e, r, "control group limit") : 0;
}

static int check_usable(const struct cgroup_host *h, unsigned want, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if ((want & BIT(i)) && !(h->usable & BIT(i)))
			return err_set(e, ERR_UNSUPPORTED, EOPNOTSUPP,
				       "no control group for %s: %s", cgroup_names[i].people,
				       *h->why ? h->why
					       : "this kernel or its mounts lack the controller");
	return 0;
}

int cgroup_open(struct cgroup *c, const struct cgroup_host *h, const char *name,
		const struct cgroup_limits *l, struct err *e)
{
	unsigned want = wanted(l);
	int r = check_usable(h, want, e);

	*c = (struct cgroup){ .version = h->version };
	bug_on(*name == '\0' || strchr(name, '/') || str_eq(name, OUTSIDE));
	if (r < 0 || want == 0)
		return r;
	/* Once there is a group at all, freezing and counting come nearly free. */
	want |= h->usable & (BIT(CG_FREEZER) | BIT(CG_CPUACCT));
	if (h->version == CGROUP_V2)
		r = hand_on(h, want, e);
	for (enum cgroup_ctl i = 0; i < CG_COUNT_ && r >= 0; i++)
		if (want & BIT(i))
			r = make_group(c, h, i, name, e);
	if (r >= 0)
		r = write_limits(c, l, e);
	if (r < 0)
		cgroup_remove(c);
	return r;
}

/* --- using --- */

/* The directory of the first group made; for v2 the only one. */
static const char *any_dir(const struct cgroup *c)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if (c->made & BIT(i))
			return c->dir[i];
	return NULL;
}

int cgroup_fd(const struct cgroup *c)
{
	const char *dir = any_dir(c);
	int fd;

	if (c->version != CGROUP_V2 || dir == NULL)
		return -EBADF;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int cgroup_attach(const struct cgroup *c, pid_t pid, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		int r;

		if (!(c->made & BIT(i)) || first_in_dir(c, i) != i)
			continue;
		r = put_number(c->dir[i], "cgroup.procs", (uint64_t)pid, e);
		if (r < 0)
			return err_wrap(e, r, "join control group");
	}
	return 0;
}

static bool is_in_state(const struct cgroup *c, bool is_frozen)
{
	const char *dir = c->dir[CG_FREEZER];

	if (c->version == CGROUP_V2)
		return (cgroup_number(dir, "cgroup.events", "frozen") != 0) == is_frozen;
	return cgroup_file_has(dir, "freezer.state", is_frozen ? "FROZEN" : "THAWED");
}

int cgroup_freeze(const struct cgroup *c, bool is_frozen)
{
	const struct timespec step = { .tv_nsec = 500000 };
	struct err ignored = ERR_INIT;
	int r;

	if (!(c->made & BIT(CG_FREEZER)))
		return -EOPNOTSUPP;
	if (c->version == CGROUP_V2)
		r = put_number(c->dir[CG_FREEZER], "cgroup.freeze", is_frozen, &ignored);
	else
		r = cgroup_write(c->dir[CG_FREEZER], "freezer.state",
				 is_frozen ? "FROZEN" : "THAWED", &ignored);
	if (r < 0)
		return r;
	for (int i = 0; i < 1000; i++) {
		if (is_in_state(c, is_frozen))
			return 0;
		(void)nanosleep(&step, NULL);
	}
	return -ETIMEDOUT;
}

uint64_t cgroup_oom_kills(const struct cgroup *c)
{
	if (!(c->made & BIT(CG_MEMORY)))
		return 0;
	return cgroup_number(c->dir[CG_MEMORY],
			     c->version == CGROUP_V2 ? "memory.events" : "memory.oom_control",
			     "oom_kill");
}

void cgroup_use(const struct cgroup *c, struct cgroup_use *ret)
{
	const char *any = any_dir(c);
	bool is_v2 = c->version == CGROUP_V2;

	*ret = (struct cgroup_use){ 0 };
	if (c->made & BIT(CG_MEMORY)) {
		const char *dir = c->dir[CG_MEMORY];

		ret->memory_now = cgroup_number(
			dir, is_v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
		ret->memory_peak = cgroup_number(
			dir, is_v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
	}
	if (c->made & BIT(CG_PIDS))
		ret->pids_now = cgroup_number(c->dir[CG_PIDS], "pids.current", NULL);
	if (is_v2 && any)
		ret->cpu_ns = cgroup_number(any, "cpu.stat", "usage_usec") * 1000;
	else if (c->made & BIT(CG_CPUACCT))
		ret->cpu_ns = cgroup_number(c->dir[CG_CPUACCT], "cpuacct.usage", NULL);
}

/* --- the end --- */

/* The last process may be dying still; a group can be removed some moments after its parent saw it end. */
static void remove_dir(const char *dir)
{
	const struct timespec step = { .tv_nsec = 1000000 };

	for (int i = 0; i < 200 && rmdir(dir) < 0 && errno == EBUSY; i++)
		(void)nanosleep(&step, NULL);
}

void cgroup_remove(struct cgroup *c)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		if (!(c->made & BIT(i)) || first_in_dir(c, i) != i)
			continue;
		remove_dir(c->dir[i]);
		fd_close(c->lock[i]);
	}
	c->made = 0;
}

static void reap_base(const char *base)
{
	DIR *d = opendir(base);
	const struct dirent *entry;

	if (d == NULL)
		return;
	while ((entry = readdir(d)) != NULL)
		if (str_starts(entry->d_name, CGROUP_PREFIX) && !str_eq(entry->d_name, OUTSIDE))
			(void)remove_left_over(dirfd(d), entry->d_name);
	(void)closedir(d);
}

void cgroup_reap(const struct cgroup_host *h)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		bool is_seen = false;

		for (enum cgroup_ctl k = 0; k < i; k++)
			is_seen |= (h->usable & BIT(k)) && str_eq(h->base[k], h->base[i]);
		if ((h->usable & BIT(i)) && !is_seen)
			reap_base(h->base[i]);
	}
}
