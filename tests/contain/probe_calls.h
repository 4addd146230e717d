/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_calls.h - system calls: by number, by the 32-bit door, one by one */
#ifndef PROBE_CALLS_H
#define PROBE_CALLS_H

#include "probe.h"

/* ---- Plain system calls ---------------------------------------------------------------------- */

struct call {
	const char *word;
	long nr;
	long a[6];
};

#define UFFD_USER_ONLY 1
#define CLONE_BAD (CLONE_THREAD) /* without CLONE_SIGHAND: EINVAL before anything is made */
#define UNSHARE_BAD CLONE_VFORK  /* not an unshare flag: EINVAL before anything is made */
#define NEWTIME 0x80L

static const struct call calls[] = {
	{ "io_uring_setup", 425, { 1, BAD } },
	{ "io_uring_enter", 426, { -1 } },
	{ "io_uring_register", 427, { -1 } },
	{ "bpf", __NR_bpf, { 0, BAD, 64 } },
	{ "userfaultfd", __NR_userfaultfd, { UFFD_USER_ONLY | 4 } },
	{ "perf_event_open", __NR_perf_event_open, { BAD, 0, -1, -1, 0 } },
	{ "mount", __NR_mount, { BAD, BAD, BAD, 0, BAD } },
	{ "umount2", __NR_umount2, { BAD, 0 } },
	{ "fsopen", 430, { BAD, 0 } },
	{ "fsconfig", 431, { -1, 0, BAD, BAD, 0 } },
	{ "fsmount", 432, { -1, 0, 0 } },
	{ "fspick", 433, { -1, BAD, 0 } },
	{ "open_tree", 428, { -1, BAD, 0 } },
	{ "move_mount", 429, { -1, BAD, -1, BAD, 0 } },
	{ "mount_setattr", 442, { -1, BAD, 0, BAD, 0 } },
	{ "pivot_root", __NR_pivot_root, { BAD, BAD } },
	{ "setns", __NR_setns, { -1, 0 } },
	{ "clone_newuser", __NR_clone, { CLONE_NEWUSER | CLONE_BAD } },
	{ "clone_newns", __NR_clone, { CLONE_NEWNS | CLONE_BAD } },
	{ "clone_newpid", __NR_clone, { CLONE_NEWPID | CLONE_BAD } },
	{ "clone_newipc", __NR_clone, { CLONE_NEWIPC | CLONE_BAD } },
	{ "clone_newuts", __NR_clone, { CLONE_NEWUTS | CLONE_BAD } },
	{ "clone_newnet", __NR_clone, { CLONE_NEWNET | CLONE_BAD } },
	{ "clone_newcgroup", __NR_clone, { CLONE_NEWCGROUP | CLONE_BAD } },
	{ "unshare_newuser", __NR_unshare, { CLONE_NEWUSER | UNSHARE_BAD } },
	{ "unshare_newns", __NR_unshare, { CLONE_NEWNS | UNSHARE_BAD } },
	{ "unshare_newpid", __NR_unshare, { CLONE_NEWPID | UNSHARE_BAD } },
	{ "unshare_newipc", __NR_unshare, { CLONE_NEWIPC | UNSHARE_BAD } },
	{ "unshare_newuts", __NR_unshare, { CLONE_NEWUTS | UNSHARE_BAD } },
	{ "unshare_newnet", __NR_unshare, { CLONE_NEWNET | UNSHARE_BAD } },
	{ "unshare_newcgroup", __NR_unshare, { CLONE_NEWCGROUP | UNSHARE_BAD } },
	{ "unshare_newtime", __NR_unshare, { NEWTIME | UNSHARE_BAD } },
	{ "clone3", 435, { BAD, 0 } },
	{ "kexec_load", __NR_kexec_load, { 0, 99, BAD, 0 } },
	{ "kexec_file_load", __NR_kexec_file_load, { -1, -1, 0, BAD, ~0L } },
	{ "init_module", __NR_init_module, { BAD, 0, BAD } },
	{ "finit_module", __NR_finit_module, { -1, BAD, ~0L } },
	{ "delete_module", __NR_delete_module, { BAD, 0 } },
	{ "keyctl", __NR_keyctl, { KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0 } },
	{ "add_key", __NR_add_key, { BAD, BAD, BAD, 1, 0 } },
	{ "request_key", __NR_request_key, { BAD, BAD, BAD, 0 } },
	{ "open_by_handle_at", __NR_open_by_handle_at, { -1, BAD, 0 } },
	{ "reboot", __NR_reboot, { 0, 0, 0, BAD } },
	{ "swapon", __NR_swapon, { BAD, 0 } },
	{ "swapoff", __NR_swapoff, { BAD } },
	{ "sethostname", __NR_sethostname, { BAD, -1 } },
	{ "setdomainname", __NR_setdomainname, { BAD, -1 } },
	{ "clock_settime", __NR_clock_settime, { CLOCK_REALTIME, BAD } },
	{ "settimeofday", __NR_settimeofday, { BAD, BAD } },
	{ "syslog", __NR_syslog, { 10, 0, 0 } },
	{ "acct", __NR_acct, { BAD } },
	{ "quotactl", __NR_quotactl, { 0xff, BAD, 0, BAD } },
#ifdef __x86_64__
	{ "iopl", __NR_iopl, { 4 } },
	{ "ioperm", __NR_ioperm, { -1, 1, 1 } },
#endif
	{ "lookup_dcookie", __NR_lookup_dcookie, { 0, BAD, 1 } },
	{ "statmount", 457, { BAD, BAD, 0, 0 } },
	{ "listmount", 458, { BAD, BAD, 0, 0 } },
	{ "lsm_set_self_attr", 460, { 0, BAD, 1, 0 } },
	{ "open_tree_attr", 467, { -1, BAD, 0, BAD, 0 } },
	{ "file_setattr", 469, { -1, BAD, BAD, 0, 0 } },
	{ "nr_470", 470, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_471", 471, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_472", 472, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_473", 473, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_474", 474, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_475", 475, { BAD, BAD, BAD, BAD, BAD, BAD } },
	{ "nr_1000", 1000, { BAD, BAD, BAD, BAD, BAD, BAD } },
	/* The descriptor is bad, so only a filter that looks at the request can answer anything
	 * but EBADF. */
	{ "ioctl_tiocsti", __NR_ioctl, { -1, TIOCSTI, BAD } },
	{ "ioctl_tiocsti_high", __NR_ioctl, { -1, TIOCSTI | (1L << 32), BAD } },
	{ "ioctl_tioclinux", __NR_ioctl, { -1, 0x541C, BAD } },
	{ "ioctl_tioclinux_high", __NR_ioctl, { -1, 0x541C | (1L << 32), BAD } },
	{ "ioctl_tioccons", __NR_ioctl, { -1, TIOCCONS, 0 } },
	{ "ioctl_tiocsetd", __NR_ioctl, { -1, TIOCSETD, BAD } },
	{ "ioctl_kdskbent", __NR_ioctl, { -1, 0x4B47, BAD } },
	{ "x32_getpid", 0x40000000 | __NR_getpid, { 0 } },
	{ "x32_mount", 0x40000000 | __NR_mount, { BAD, BAD, BAD, 0, BAD } },
	{ "x32_ptrace", 0x40000000 | 521, { 99, 0, BAD, BAD } },
};

static int do_call(const struct call *c)
{
	long r = syscall(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);

	return say(c->word, res(r), by_filter);
}

/* ---- The 32-bit door ------------------------------------------------------------------------- */

#ifdef __x86_64__
/* Numbers are those of i386. The same acts as above: a filter that forgets to look at the
 * architecture sees other calls behind these numbers and lets them pass. */
static const struct call calls32[] = {
	{ "int80_getpid", 20, { 0 } },
	{ "int80_mount", 21, { BAD, BAD, BAD, 0, BAD } },
	{ "int80_umount2", 52, { BAD, 0 } },
	{ "int80_ptrace", 26, { 99, 0, BAD, BAD } },
	{ "int80_clone_newuser", 120, { CLONE_NEWUSER | CLONE_BAD } },
	{ "int80_unshare", 310, { CLONE_NEWUSER | UNSHARE_BAD } },
	{ "int80_setns", 346, { -1, 0 } },
	{ "int80_pivot_root", 217, { BAD, BAD } },
	{ "int80_open_tree", 428, { -1, BAD, 0 } },
	{ "int80_keyctl", 288, { 0, -3, 0 } },
	{ "int80_add_key", 286, { BAD, BAD, BAD, 1, 0 } },
	{ "int80_bpf", 357, { 0, BAD, 64 } },
	{ "int80_userfaultfd", 374, { UFFD_USER_ONLY | 4 } },
	{ "int80_perf_event_open", 336, { BAD, 0, -1, -1, 0 } },
	{ "int80_io_uring_setup", 425, { 1, BAD } },
	{ "int80_open_by_handle_at", 342, { -1, BAD, 0 } },
	{ "int80_tiocsti", 54, { -1, TIOCSTI, BAD } },
	{ "int80_clock_settime", 264, { 0, BAD } },
};

static long enter32(long nr, const long *a)
{
	long r;

	/* ebp would carry the sixth argument; no call here has one. */
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "0"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
			 : "memory", "r8", "r9", "r10", "r11");
	return (long)(int)r;
}

static int w_int80_socket_vsock(int argc, char **argv)
{
	const long a[6] = { AF_VSOCK, SOCK_STREAM, 0 };

	(void)argc;
	return say(argv[0], enter32(359, a), by_family);
}

static int do_call32(const struct call *c)
{
	return say(c->word, enter32(c->nr, c->a), by_filter);
}

static int socketcall(const char *word, unsigned int family)
{
	unsigned int *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long a[6] = { 1 /* SYS_SOCKET */ };

	if (args == MAP_FAILED)
		return UNSURE;
	args[0] = family;
	args[1] = family == 38 ? SOCK_SEQPACKET : SOCK_STREAM;
	args[2] = 0;
	a[1] = (long)args;
	return say(word, enter32(102, a), by_family);
}

static int w_socketcall_inet(int argc, char **argv)
{
	(void)argc;
	return socketcall(argv[0], AF_INET);
}

static int w_socketcall_vsock(int argc, char **argv)
{
	(void)argc;
	return socketcall(argv[0], AF_VSOCK);
}

static int w_socketcall_alg(int argc, char **argv)
{
	(void)argc;
	return socketcall(argv[0], AF_ALG);
}
#endif

/* ---- Single calls that need a little more ---------------------------------------------------- */

static int w_adjtimex(int argc, char **argv)
{
	/* A tick of 0 is refused with EINVAL, after the question of privilege. */
	struct timex t = { .modes = ADJ_TICK };

	(void)argc;
	return say(argv[0], res(syscall(__NR_adjtimex, &t)), by_filter);
}

static int w_vhangup(int argc, char **argv)
{
	(void)argc;
	(void)setsid(); /* No terminal, so that a success hangs up nothing. */
	return say(argv[0], res(syscall(__NR_vhangup)), by_filter);
}

static int w_personality(int argc, char **argv)
{
	return say(argv[0], res(syscall(__NR_personality, num(argc, argv, 1, 0x0400000))),
		   by_filter);
}

static int w_chroot(int argc, char **argv)
{
	return say(argv[0], res(chroot(arg(argc, argv, 1, "/"))), by_filter);
}

/* The classic: a new root below, while a descriptor of an older directory is still held; then up
 * and up. */
static int w_chroot_walk(int argc, char **argv)
{
	const char *want = arg(argc, argv, 1, "/etc/hostname");
	char text[PATH_ROOM];
	int old = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (chroot("/tmp") < 0)
		return say(argv[0], -(long)errno, by_filter);
	if (old < 0 || fchdir(old) < 0)
		return say(argv[0], -(long)errno, by_file);
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			break;
	if (chroot(".") < 0)
		return say(argv[0], -(long)errno, by_filter);
	if (slurp(want, text, sizeof(text)))
		printf("%s\n", text);
	put(argv[0], "ok");
	return GOT_THROUGH;
}

static int w_sethostname_real(int argc, char **argv)
{
	const char *name = arg(argc, argv, 1, "probe");

	return say(argv[0], res(sethostname(name, strlen(name))), by_filter);
}

static int w_newuser(int argc, char **argv)
{
	(void)argc;
	return say(argv[0], res(unshare(CLONE_NEWUSER)),
		   (const int[]){ EPERM, ENOSYS, ENOSPC, EUSERS, 0 });
}

static int w_newuser_clone(int argc, char **argv)
{
	long pid = syscall(__NR_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	int status;

	(void)argc;
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, &status, 0);
	return say(argv[0], res(pid), (const int[]){ EPERM, ENOSYS, ENOSPC, EUSERS, 0 });
}

static int w_newuser_clone3(int argc, char **argv)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} a = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(435, &a, sizeof(a));
	int status;

	(void)argc;
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, &status, 0);
	return say(argv[0], res(pid), (const int[]){ EPERM, ENOSYS, ENOSPC, EUSERS, 0 });
}

/* write FILE TEXT - one open and one write, nothing is created. */
static int w_write(int argc, char **argv)
{
	const char *text = arg(argc, argv, 2, "1");
	int fd =
		open(arg(argc, argv, 1, "/dev/null"), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	long r = fd < 0 ? -(long)errno : res(write(fd, text, strlen(text)));

	return say(argv[0], r,
		   (const int[]){ EPERM, ENOSYS, EACCES, EROFS, ENOENT, EINVAL, ENXIO, ENOTDIR,
				  ENODEV, 0 });
}

/* open PATH [rw] - can it be opened at all? */
static int w_open(int argc, char **argv)
{
	int flags = argc > 2 ? O_RDWR : O_RDONLY;
	int fd = open(arg(argc, argv, 1, "/dev/null"), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return say(argv[0], res(fd), by_file);
}

static int w_setids(int argc, char **argv)
{
	static const int refusals[] = { EPERM, EINVAL, ENOSYS, 0 };
	gid_t zero = 0;
	long r = res(setresuid(0, 0, 0));

	(void)argc;
	if (r < 0)
		r = res(setresgid(0, 0, 0));
	if (r < 0)
		r = res(setgroups(1, &zero));
	return say(argv[0], r, refusals);
}

#endif
