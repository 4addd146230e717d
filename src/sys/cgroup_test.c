/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup_test.c - the parsers on texts from many hosts; the limits on real processes where we may set any
 *
 * Includes the source, so that what is pure can be asked without a kernel that looks like that. Where this user
 * may not make groups, the refusal is what is tested. Everything that eats memory, processes or time is
 * bounded by the test itself as well: 32 MiB, 20 processes, half a second.
 */
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/test.h"
#include "sys/cgroup.c"      /* NOLINT(bugprone-suspicious-include): see above */
#include "sys/cgroup_find.c" /* NOLINT(bugprone-suspicious-include) */

static const char hybrid_mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char hybrid_groups[] = "4:memory:/a/b\n2:cpu,cpuacct:/c\n1:name=systemd:/x\n0::/u\n";

static void dir_is(const char *mounts, const char *groups, const char *controller, const char *want)
{
	_free_ char *dir = own_dir(mounts, groups, controller);

	CHECK_STR(dir ? dir : "(none)", want);
}

TEST(own_directory)
{
	static const char container[] = "50 40 0:32 /docker/1f /sys/fs/cgroup ro,nosuid - cgroup2 "
					"cgroup rw,nsdelegate\n";
	static const char odd[] = "50 40 0:32 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n";
	static const char outside[] = "50 40 0:32 /../.. /sys/fs/cgroup rw - cgroup2 none rw\n";

	dir_is(hybrid_mounts, hybrid_groups, "memory", "/sys/fs/cgroup/memory/a/b");
	dir_is(hybrid_mounts, hybrid_groups, "cpu", "/sys/fs/cgroup/cpu,cpuacct/c");
	dir_is(hybrid_mounts, hybrid_groups, "cpuacct", "/sys/fs/cgroup/cpu,cpuacct/c");
	dir_is(hybrid_mounts, hybrid_groups, "acct", "(none)");
	dir_is(hybrid_mounts, hybrid_groups, NULL, "/sys/fs/cgroup/unified/u");
	dir_is(container, "0::/docker/1f/x\n", NULL, "/sys/fs/cgroup/x");
	dir_is(container, "0::/docker/1f\n", NULL, "/sys/fs/cgroup");
	dir_is(container, "0::/docker/1f2\n", NULL, "(none)");
	dir_is(container, "0::/\n", NULL, "(none)");
	dir_is(container, "0::/../x\n", NULL, "(none)");
	dir_is(outside, "0::/\n", NULL, "(none)");
	dir_is(odd, "0::/u", NULL, "/mnt/a b\\c/u");
	dir_is("", "", NULL, "(none)");
	dir_is("garbage\n - \n - cgroup2\n1 - cgroup", "::\n:\n0::", NULL, "(none)");
}

TEST(nothing_mounted)
{
	struct cgroup_host h;
	struct cgroup c;
	struct err e = ERR_INIT;

	probe_texts(&h, "", "");
	CHECK_INT(h.version, CGROUP_NONE);
	CHECK_INT(h.usable, 0);
	CHECK(*h.why != '\0');
	CHECK_INT(cgroup_open(&c, &h, "x", &(struct cgroup_limits){ .pids = 5 }, &e), -EOPNOTSUPP);
	CHECK_INT(e.kind, ERR_UNSUPPORTED);
	CHECK(strstr(e.msg, h.why) != NULL);
	CHECK_INT(cgroup_open(&c, &h, "x", &(struct cgroup_limits){ 0 }, &e), 0);
	CHECK_INT(c.made, 0);
	CHECK_INT(cgroup_fd(&c), -EBADF);
	CHECK_INT(cgroup_freeze(&c, true), -EOPNOTSUPP);
	CHECK_INT(cgroup_oom_kills(&c), 0);
	cgroup_remove(&c);
}

TEST(words)
{
	CHECK(cgroup_has_word("cpu memory pids\n", "pids", " \n"));
	CHECK(!cgroup_has_word("cpu memory pids\n", "pid", " \n"));
	CHECK(!cgroup_has_word("", "pid", " \n"));
	CHECK_INT(cpu_period_us(9), 1000000);
	CHECK_INT(cpu_period_us(500), 100000);
}

/* --- version 2 as a tree of plain files: what would be written, and where we would go --- */

struct fake {
	char top[64];
};

static void fake_file(const struct fake *f, const char *name, const char *text)
{
	_free_ char *path = mem_fmt("%s/%s", f->top, name);
	FILE *out = fopen(path, "we");

	CHECK(out && fputs(text, out) >= 0);
	if (out)
		(void)fclose(out);
}

static void fake_dir(const struct fake *f, const char *name)
{
	_free_ char *path = mem_fmt("%s/%s", f->top, name);

	CHECK(mkdir(path, 0755) == 0);
}

static void fake_is(const struct fake *f, const char *name, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	CHECK(cgroup_read(f->top, name, &b));
	CHECK_STR(buf_cstr(&b), want);
}

static void fake_new(struct fake *f)
{
	(void)snprintf(f->top, sizeof(f->top), "/tmp/vitrine-cgroup-test-XXXXXX");
	CHECK(mkdtemp(f->top) != NULL);
}

static void fake_end(struct fake *f)
{
	_free_ char *cmd = mem_fmt("rm -rf '%s'", f->top);

	CHECK_INT(system(cmd), 0); /* NOLINT(cert-env33-c): our own temporary folder */
}

TEST(v2_limits_are_written)
{
	struct cgroup c = { .version = CGROUP_V2,
			    .made = BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS) };
	struct cgroup_limits l = { .memory = 64 * MIB, .cpus_milli = 1500, .pids = 200 };
	struct err e = ERR_INIT;
	struct cgroup_use use;
	struct fake f;

	fake_new(&f);
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		(void)snprintf(c.dir[i], sizeof(c.dir[i]), "%s", f.top);
	fake_file(&f, "memory.max", "");
	fake_file(&f, "memory.swap.max", "");
	fake_file(&f, "memory.oom.group", "");
	fake_file(&f, "cpu.max", "");
	CHECK_INT(write_limits(&c, &l, &e),
		  -ENOENT); /* pids.max is not there: no limit, no start */
	fake_file(&f, "pids.max", "");
	CHECK_INT(write_limits(&c, &l, &e), 0);
	fake_is(&f, "memory.max", "67108864");
	fake_is(&f, "memory.swap.max", "0");
	fake_is(&f, "memory.oom.group", "");
	fake_is(&f, "cpu.max", "150000 100000");
	fake_is(&f, "pids.max", "200");
	fake_file(&f, "memory.events", "low 0\noom 7\noom_kill 3\noom_group_kill 1\n");
	fake_file(&f, "memory.current", "4096\n");
	fake_file(&f, "memory.peak", "8192\n");
	fake_file(&f, "cpu.stat", "usage_usec 12\nuser_usec 4\n");
	fake_file(&f, "pids.current", "2\n");
	CHECK_INT(cgroup_oom_kills(&c), 3);
	cgroup_use(&c, &use);
	CHECK_INT(use.memory_now, 4096);
	CHECK_INT(use.memory_peak, 8192);
	CHECK_INT(use.cpu_ns, 12000);
	CHECK_INT(use.pids_now, 2);
	fake_end(&f);
}

TEST(v2_controllers_are_handed_on)
{
	struct cgroup_host h = { .version = CGROUP_V2 };
	struct err e = ERR_INIT;
	struct fake f;

	fake_new(&f);
	fake_file(&f, "cgroup.controllers", "cpu io memory pids\n");
	fake_file(&f, "cgroup.subtree_control", "pids\n");
	fake_file(&f, "cgroup.type", "domain\n");
	fake_file(&f, "cgroup.procs", "");
	CHECK(can_hand_on(f.top, "pids", false));
	CHECK(can_hand_on(f.top, "memory", false));
	CHECK(!can_hand_on(f.top, "cpuset", true));
	fake_file(&f, "cgroup.procs", "123\n");
	CHECK(can_hand_on(f.top, "pids", false));
	CHECK(!can_hand_on(f.top, "memory", false));
	CHECK(can_hand_on(f.top, "memory", true));
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		(void)snprintf(h.base[i], sizeof(h.base[i]), "%s", f.top);
	CHECK_INT(hand_on(&h, BIT(CG_PIDS), &e), 0);
	fake_is(&f, "cgroup.subtree_control", "pids\n");
	CHECK_INT(hand_on(&h, BIT(CG_MEMORY), &e), 0);
	fake_is(&f, "cgroup.subtree_control", "+memory");
	fake_dir(&f, OUTSIDE);
	fake_file(&f, OUTSIDE "/cgroup.procs", "");
	CHECK_INT(move_outside(f.top, &e), 0);
	fake_is(&f, OUTSIDE "/cgroup.procs", "123");
	fake_end(&f);
}

/* --- the real thing, where we may --- */

static int forks_until_refused(void)
{
	int n = 0;

	while (n < 20) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		n++;
	}
	return n;
}

static void eat_memory(void)
{
	volatile char *p =
		mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; p != MAP_FAILED && i < 32 * MIB; i += 4096)
		p[i] = 1;
	_exit(0);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Exit status: the percentage of one CPU we got in half a second. */
static void spin(void)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), now;

	do {
		now = clock_ns(CLOCK_MONOTONIC);
	} while (now - start < 500 * NS_PER_MS);
	_exit((int)((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 100 / (now - start)));
}

static void fork_much(void)
{
	_exit(forks_until_refused());
}

/* Forks a child that waits until it is in the group, then does `work`; all it started ends with it. */
static int work_in(const struct cgroup *c, void (*work)(void))
{
	struct err e = ERR_INIT;
	int go[2], status = -1;
	pid_t pid;
	char byte = 0;

	CHECK(pipe2(go, O_CLOEXEC) == 0);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)close(go[1]);
		if (io_read(go[0], &byte, 1) == 1)
			work();
		_exit(99);
	}
	(void)close(go[0]);
	CHECK_INT(cgroup_attach(c, pid, &e), 0);
	CHECK(write(go[1], &byte, 1) == 1);
	(void)close(go[1]);
	CHECK(waitpid(pid, &status, 0) == pid);
	(void)kill(-pid, SIGKILL);
	return status;
}

static bool open_real(struct cgroup *c, const struct cgroup_limits *l, const char *name)
{
	struct cgroup_host h;
	struct err e = ERR_INIT;
	unsigned want = wanted(l);
	int r;

	cgroup_probe(&h);
	r = cgroup_open(c, &h, name, l, &e);
	if ((h.usable & want) == want) {
		CHECK_INT(r, 0);
		if (r < 0)
			(void)fprintf(stderr, "%s\n", e.msg);
		return r >= 0;
	}
	CHECK_INT(r, -EOPNOTSUPP);
	CHECK_INT(e.kind, ERR_UNSUPPORTED);
	CHECK(*h.why != '\0' || h.usable != 0);
	(void)printf("     refused: %s\n", e.msg);
	return false;
}

static char *unique(const char *what)
{
	return mem_fmt("test-%s-%d", what, (int)getpid());
}

static void is_gone(const struct cgroup *c)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		CHECK(c->dir[i][0] == '\0' || access(c->dir[i], F_OK) < 0);
}

TEST(memory_is_limited)
{
	_free_ char *name = unique("memory");
	struct cgroup_use use;
	struct cgroup c;
	int status;

	if (!open_real(&c, &(struct cgroup_limits){ .memory = 64 * MIB }, name))
		return;
	status = work_in(&c, eat_memory);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_INT(cgroup_oom_kills(&c), 0);
	cgroup_use(&c, &use);
	CHECK(use.memory_peak >= 32 * MIB && use.memory_peak <= 64 * MIB);
	cgroup_remove(&c);
	is_gone(&c);

	if (!open_real(&c, &(struct cgroup_limits){ .memory = 16 * MIB }, name))
		return;
	status = work_in(&c, eat_memory);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(cgroup_oom_kills(&c) >= 1);
	cgroup_remove(&c);
	is_gone(&c);
}

TEST(pids_are_limited)
{
	_free_ char *name = unique("pids");
	struct cgroup c;
	int status;

	if (!open_real(&c, &(struct cgroup_limits){ .pids = 5 }, name))
		return;
	status = work_in(&c, fork_much);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 4);
	cgroup_remove(&c);
	is_gone(&c);
}

TEST(cpu_is_limited)
{
	_free_ char *name = unique("cpu");
	struct cgroup_use use;
	struct cgroup c;
	int status;

	if (!open_real(&c, &(struct cgroup_limits){ .cpus_milli = 200 }, name))
		return;
	status = work_in(&c, spin);
	CHECK(WIFEXITED(status));
	CHECK(WEXITSTATUS(status) <= 45);
	cgroup_use(&c, &use);
	CHECK(use.cpu_ns > 0 && use.cpu_ns < 300 * NS_PER_MS);
	cgroup_remove(&c);
	is_gone(&c);
}

TEST(frozen_means_still)
{
	_free_ char *name = unique("freeze");
	struct cgroup_use before, after;
	struct err e = ERR_INIT;
	struct cgroup c;
	pid_t pid;

	if (!open_real(&c, &(struct cgroup_limits){ .freezer = true }, name))
		return;
	pid = fork();
	if (pid == 0) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC);

		while (clock_ns(CLOCK_MONOTONIC) - start < 2 * NS_PER_SEC)
			;
		_exit(0);
	}
	CHECK_INT(cgroup_attach(&c, pid, &e), 0);
	CHECK_INT(cgroup_freeze(&c, true), 0);
	cgroup_use(&c, &before);
	(void)usleep(50000);
	cgroup_use(&c, &after);
	CHECK_INT(after.cpu_ns, before.cpu_ns);
	CHECK_INT(cgroup_freeze(&c, false), 0);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	cgroup_remove(&c);
	is_gone(&c);
}

/* clone3 straight into the group, as the native engine does. Returns the child's pid. */
static pid_t clone_into(int fd)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)fd };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0) {
		for (int i = 0; i < 50; i++)
			(void)usleep(100000);
		_exit(0);
	}
	return pid;
}

/* A hybrid host has no controllers in its v2 tree, but groups, freezing and cloning into them are real there. */
TEST(v2_groups_are_real)
{
	_cleanup_(buf_done) struct buf mounts = BUF(4 * MIB), groups = BUF(CGROUP_FILE_MAX),
				       procs = BUF(KIB);
	_free_ char *own = NULL, *name = unique("v2"), *want = NULL;
	struct cgroup_host h = { .version = CGROUP_V2 };
	struct err e = ERR_INIT;
	struct cgroup c;
	pid_t pid;

	CHECK(cgroup_read("/proc/self", "mountinfo", &mounts) &&
	      cgroup_read("/proc/self", "cgroup", &groups));
	own = own_dir(buf_cstr(&mounts), buf_cstr(&groups), NULL);
	if (own == NULL || !cgroup_may_write(own, NULL) || !set_base(&h, CG_FREEZER, own))
		return;
	CHECK_INT(cgroup_open(&c, &h, name, &(struct cgroup_limits){ .freezer = true }, &e), 0);
	{
		_close_ int fd = cgroup_fd(&c);

		CHECK(fd >= 0);
		pid = clone_into(fd);
	}
	CHECK(pid > 0);
	want = mem_fmt("%d\n", (int)pid);
	CHECK(cgroup_read(c.dir[CG_FREEZER], "cgroup.procs", &procs));
	CHECK_STR(buf_cstr(&procs), want);
	CHECK_INT(cgroup_freeze(&c, true), 0);
	CHECK_INT(cgroup_number(c.dir[CG_FREEZER], "cgroup.events", "frozen"), 1);
	CHECK_INT(cgroup_freeze(&c, false), 0);
	cgroup_reap(&h);
	CHECK(access(c.dir[CG_FREEZER], F_OK) == 0);
	CHECK(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	cgroup_remove(&c);
	is_gone(&c);
}

TEST(only_left_overs_are_reaped)
{
	_free_ char *mine = unique("alive"), *theirs = unique("dead");
	struct cgroup_limits l = { .freezer = true };
	struct cgroup_host h;
	struct cgroup alive, dead;
	pid_t pid;
	int status;

	if (!open_real(&alive, &l, mine))
		return;
	cgroup_probe(&h);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(open_real(&dead, &l, theirs)
			      ? 0
			      : 1); /* ends without removing it, as a crash would */
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	dead = alive;
	(void)snprintf(dead.dir[CG_FREEZER], sizeof(dead.dir[0]), "%s/" CGROUP_PREFIX "%s",
		       h.base[CG_FREEZER], theirs);
	CHECK(access(dead.dir[CG_FREEZER], F_OK) == 0);
	cgroup_reap(&h);
	CHECK(access(dead.dir[CG_FREEZER], F_OK) < 0);
	CHECK(access(alive.dir[CG_FREEZER], F_OK) == 0);
	{
		struct err e = ERR_INIT;

		CHECK_INT(cgroup_open(&dead, &h, mine, &l, &e), -EEXIST);
		CHECK_INT(e.kind, ERR_CONFLICT);
	}
	cgroup_remove(&alive);
	is_gone(&alive);
}

TEST(io_of_a_device_that_is_none)
{
	_free_ char *name = unique("io");
	struct cgroup_host h;
	struct cgroup c;
	struct err e = ERR_INIT;

	cgroup_probe(&h);
	CHECK_INT(cgroup_open(&c, &h, name,
			      &(struct cgroup_limits){ .io_read = MIB, .io_dev = makedev(0, 99) },
			      &e),
		  h.usable & BIT(CG_IO) ? -ENODEV : -EOPNOTSUPP);
	CHECK_INT(e.kind, ERR_UNSUPPORTED);
	CHECK_INT(c.made, 0);
	is_gone(&c);
}

/* Two megabytes past the cache at one megabyte a second; needs a disk below /var/tmp that can do it. */
static void write_direct(void)
{
	void *block = NULL;
	int fd = open("/var/tmp", O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0 || posix_memalign(&block, 4096, 256 * KIB) != 0)
		_exit(1);
	memset(block, 1, 256 * KIB);
	for (int i = 0; i < 8; i++)
		if (write(fd, block, 256 * KIB) != (ssize_t)(256 * KIB))
			_exit(2);
	_exit(0);
}

TEST(io_is_limited)
{
	_free_ char *name = unique("io"), *sys = NULL;
	struct cgroup_limits l = { .io_write = MIB };
	struct cgroup c;
	struct stat st;
	uint64_t start;
	int status;

	CHECK(stat("/var/tmp", &st) == 0);
	sys = mem_fmt("/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	l.io_dev = st.st_dev;
	if (access(sys, F_OK) < 0 || !open_real(&c, &l, name))
		return;
	start = clock_ns(CLOCK_MONOTONIC);
	status = work_in(&c, write_direct);
	CHECK(WIFEXITED(status));
	/* Status 1: this file system knows no direct I/O, and there is nothing to measure. */
	if (WIFEXITED(status) && WEXITSTATUS(status) != 1)
		CHECK(clock_ns(CLOCK_MONOTONIC) - start > 1200 * NS_PER_MS);
	cgroup_remove(&c);
	is_gone(&c);
}

TEST_MAIN()
