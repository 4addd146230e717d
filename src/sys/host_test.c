/* SPDX-License-Identifier: Apache-2.0 */
/* sys/host_test.c - does a check notice what is missing?
 *
 * Hosts that lack something are imitated: a seccomp filter makes one system call fail, kill or hang, and the
 * checks run behind it. A check that says "works" there is the bug this file is for.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/test.h"
#include "sys/host.c" /* NOLINT(bugprone-suspicious-include): the pure parts have no header */

/* Shared with the child that runs behind a filter. */
struct seen {
	struct host_check v[HOST_CHECKS_MAX];
	size_t n;
};

static int forbid(unsigned nr, unsigned action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* All checks, run where system call `nr` has been taken away (0: nothing was). */
static struct seen *look(unsigned nr, unsigned action, unsigned flags)
{
	struct seen *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t pid;

	bug_on(s == MAP_FAILED);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (nr && forbid(nr, action, flags) < 0)
			_exit(1);
		s->n = host_checks(s->v, HOST_CHECKS_MAX);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return s;
}

static const struct host_check *row(const struct seen *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->v[i].id, id))
			return &s->v[i];
	bug_at(__FILE__, __LINE__, id);
}

static void ends(struct seen *s)
{
	(void)munmap(s, sizeof(*s));
}

/* Without `nr` the row `id` must be missing and say how to get it; needed ones stop us from running. */
static void notices(unsigned nr, const char *id, bool is_fatal)
{
	struct seen *s = look(nr, SECCOMP_RET_ERRNO | ENOSYS, 0);
	const struct host_check *c = row(s, id);

	CHECK_STR(host_state_name(c->state), "missing");
	CHECK(*c->detail && *c->fix);
	if (is_fatal)
		CHECK(!host_can_run(s->v, s->n));
	ends(s);
}

TEST(missing_calls_are_noticed)
{
	notices(SYS_landlock_create_ruleset, "landlock", true);
	notices(SYS_landlock_restrict_self, "landlock", true);
	notices(SYS_openat2, "openat2", true);
	notices(SYS_clone3, "clone3", true);
	notices(SYS_clone3, "namespaces", true);
	notices(SYS_pidfd_open, "pidfd", true);
	notices(SYS_pidfd_send_signal, "pidfd", true);
	notices(SYS_open_tree, "mount_api", true);
	notices(SYS_mount_setattr, "mount_api", true);
	notices(SYS_fsopen, "mount_api", true);
	notices(SYS_mount, "namespaces", true);
	notices(SYS_mount, "proc", true);
	notices(SYS_mount, "overlay", false);
	notices(SYS_seccomp, "seccomp", true);
	notices(SYS_seccomp, "seccomp_notify", false);
}

TEST(a_killing_filter_is_noticed)
{
	struct seen *s = look(SYS_openat2, SECCOMP_RET_KILL_PROCESS, 0);

	CHECK_STR(host_state_name(row(s, "openat2")->state), "missing");
	CHECK_STR(row(s, "openat2")->detail, "ended by signal 31");
	CHECK(!host_can_run(s->v, s->n));
	ends(s);
}

/* Nobody answers the notification, so the call never returns. */
TEST(a_hanging_call_is_noticed)
{
	struct seen *s = look(SYS_landlock_restrict_self, SECCOMP_RET_USER_NOTIF,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER);

	CHECK_STR(host_state_name(row(s, "landlock")->state), "missing");
	CHECK_STR(row(s, "landlock")->detail, "no end within 3 s");
	CHECK_STR(host_state_name(row(s, "seccomp_notify")->state), "missing");
	CHECK(strstr(row(s, "seccomp_notify")->fix, "listens already") != NULL);
	ends(s);
}

/* What holds here must hold when tried by hand, whatever this host is like. */
TEST(rows_agree_with_the_kernel)
{
	struct seen *s = look(0, 0, 0);
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	struct cgroup_host h;

	CHECK(s->n == ARRAY_LEN(checks));
	CHECK_INT(row(s, "landlock")->state == HOST_MISSING, abi < 1);
	cgroup_probe(&h);
	CHECK_INT(row(s, "cgroup")->state == HOST_WORKS,
		  (h.usable & 7U) == (BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS)));
	for (size_t i = 0; i < s->n; i++) {
		CHECK(*s->v[i].detail != '\0');
		CHECK(s->v[i].state == HOST_WORKS || s->v[i].is_tool || *s->v[i].fix != '\0');
	}
	ends(s);
}

TEST(nothing_is_left_behind)
{
	struct seen *s = look(0, 0, 0);

	ends(s);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

TEST(remote_file_systems)
{
	struct statfs nfs = { .f_type = 0x6969 }, ext4 = { .f_type = 0xef53 }, cifs = { 0 };

	/* Magic numbers with the top bit set arrive sign-extended on some machines. */
	cifs.f_type = (__typeof__(cifs.f_type))(int)0xff534d42;
	CHECK_STR(remote_fs(&nfs), "NFS");
	CHECK_STR(remote_fs(&cifs), "CIFS");
	CHECK(remote_fs(&ext4) == NULL);
}

TEST(a_tool_is_found_by_path)
{
	_free_ char *sh = find_program("sh"), *none = find_program("vitrine-there-is-no-such-"
								   "program");

	CHECK(sh && *sh == '/');
	CHECK(none == NULL);
}

TEST_MAIN()
