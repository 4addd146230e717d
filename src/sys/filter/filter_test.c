/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/filter_test.c - the filter does what the table says, in simulation and in the kernel
 *
 * 1. expectations written by hand, with numbers and not names, and a list of calls that must never
 *    be open: these hold even if table and oracle are wrong together;
 * 2. program against oracle (tests/tools/filter/direct.c) for every number, and for arguments around every constant of
 *    every check, for both machine families and all variants; each instruction and both sides of
 *    each jump must have been used;
 * 3. the tree builder alone with 600 ranges, which needs far jumps;
 * 4. the compiled-in arrays are what the emitter makes;
 * 5. children that install the real filter and try.
 *
 * No framework: prints what failed, exit status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/filter/emit.h"
#include "sys/filter/filter.h"
#include "tests/tools/filter/bpf_sim.h"
#include "tests/tools/filter/direct.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GARBAGE 0xdeadbeef00000000ULL

static int failures;

#define FAIL(...)                                                                                  \
	do {                                                                                       \
		failures++;                                                                        \
		printf("FAIL %s:%d: ", __func__, __LINE__);                                        \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
	} while (0)

/* ---- 1. by hand ---- */

#define X64 AUDIT_ARCH_X86_64
#define X86 AUDIT_ARCH_I386
#define A64 AUDIT_ARCH_AARCH64
#define ARM AUDIT_ARCH_ARM
#define OK SECCOMP_RET_ALLOW
#define ERR(e) (SECCOMP_RET_ERRNO | (e))

static const struct {
	const char *what;
	uint32_t arch;
	uint32_t nr;
	uint64_t arg[3];
	uint32_t base, debug;
} by_hand[] = {
	{ "read", X64, 0, { 0 }, OK, OK },
	{ "openat", X64, 257, { 0 }, OK, OK },
	{ "i386 read", X86, 3, { 0 }, OK, OK },
	{ "aarch64 read", A64, 63, { 0 }, OK, OK },
	{ "arm read", ARM, 3, { 0 }, OK, OK },
	{ "arm set_tls", ARM, 0xf0005, { 0 }, OK, OK },
	{ "mount", X64, 165, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 mount", X86, 21, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 umount", X86, 22, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "aarch64 mount", A64, 40, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "arm mount", ARM, 21, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 number 165 (getresuid) is not x86-64 mount", X86, 165, { 0 }, OK, OK },
	{ "ptrace", X64, 101, { 0 }, ERR(EPERM), OK },
	{ "i386 ptrace", X86, 26, { 0 }, ERR(EPERM), OK },
	{ "process_vm_readv", X64, 310, { 0 }, ERR(EPERM), OK },
	{ "pidfd_getfd", X64, 438, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "bpf", X64, 321, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 bpf", X86, 357, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "perf_event_open", X64, 298, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 perf_event_open has uprobe's number", X86, 336, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "uprobe", X64, 336, { 0 }, OK, OK },
	{ "aarch64 has no uretprobe", A64, 335, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "userfaultfd", X64, 323, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "keyctl", X64, 250, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "io_uring_setup", X64, 425, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "open_tree", X64, 428, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "clone3", X64, 435, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "i386 clone3", X86, 435, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "statmount", X64, 457, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "mseal", X64, 462, { 0 }, OK, OK },
	{ "open_tree_attr", X64, 467, { 0 }, ERR(EPERM), ERR(EPERM) },
	{ "newest", X64, 475, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "unknown", X64, 1000, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "x32 read", X64, 0x40000000, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "x32 ptrace", X64, 0x40000000 + 521, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "-1", X64, 0xffffffff, { 0 }, ERR(ENOSYS), ERR(ENOSYS) },
	{ "i386 socketcall", X86, 102, { 1 }, ERR(EPERM), ERR(EPERM) },
	{ "clone thread", X64, 56, { 0x3d0f00 }, OK, OK },
	{ "clone SIGCHLD", X64, 56, { 17 }, OK, OK },
	{ "clone NEWUSER", X64, 56, { 0x10000000 | 17 }, ERR(EPERM), ERR(EPERM) },
	{ "clone NEWUSER, garbage", X64, 56, { GARBAGE | 0x10000000 }, ERR(EPERM), ERR(EPERM) },
	{ "clone, garbage", X64, 56, { GARBAGE | 17 }, OK, OK },
	{ "i386 clone NEWNS", X86, 120, { 0x20000 }, ERR(EPERM), ERR(EPERM) },
	{ "aarch64 clone NEWNET", A64, 220, { 0x40000000 }, ERR(EPERM), ERR(EPERM) },
	{ "clone NEWCGROUP", X64, 56, { 0x02000000 }, ERR(EPERM), ERR(EPERM) },
	{ "clone exit signal 0x80", X64, 56, { 0x80 }, OK, OK },
	{ "unshare FILES", X64, 272, { 0x400 }, OK, OK },
	{ "unshare NEWTIME", X64, 272, { 0x80 }, ERR(EPERM), ERR(EPERM) },
	{ "unshare upper half", X64, 272, { GARBAGE }, ERR(EPERM), ERR(EPERM) },
	{ "i386 unshare NEWUSER", X86, 310, { 0x10000000 }, ERR(EPERM), ERR(EPERM) },
	{ "TIOCSTI", X64, 16, { 0, 0x5412 }, ERR(EPERM), ERR(EPERM) },
	{ "TIOCSTI, bit 32", X64, 16, { 0, 0x100005412 }, ERR(EPERM), ERR(EPERM) },
	{ "i386 TIOCSTI", X86, 54, { 0, 0x5412 }, ERR(EPERM), ERR(EPERM) },
	{ "TCGETS", X64, 16, { 0, 0x5401 }, OK, OK },
	{ "TIOCSCTTY", X64, 16, { 0, 0x540e }, OK, OK },
	{ "TIOCSWINSZ", X64, 16, { 0, 0x5414 }, OK, OK },
	{ "TIOCLINUX", X64, 16, { 0, 0x541c }, ERR(EPERM), ERR(EPERM) },
	{ "TIOCCONS", X64, 16, { 0, 0x541d }, ERR(EPERM), ERR(EPERM) },
	{ "TIOCSETD", X64, 16, { 0, 0x5423 }, ERR(EPERM), ERR(EPERM) },
	{ "KDSKBENT", X64, 16, { 0, 0x4b47 }, ERR(EPERM), ERR(EPERM) },
	{ "VT_ACTIVATE", X64, 16, { 0, 0x5606 }, ERR(EPERM), ERR(EPERM) },
	{ "FICLONE", X64, 16, { 0, 0x40049409 }, OK, OK },
	{ "BTRFS_IOC_SNAP_CREATE_V2", X64, 16, { 0, 0x50009417 }, ERR(EPERM), ERR(EPERM) },
	{ "NS_GET_PARENT", X64, 16, { 0, 0xb702 }, ERR(EPERM), ERR(EPERM) },
	{ "FIFREEZE", X64, 16, { 0, 0xc0045877 }, ERR(EPERM), ERR(EPERM) },
	{ "SIOCBRADDBR", X64, 16, { 0, 0x89a0 }, ERR(EPERM), ERR(EPERM) },
	{ "SIOCGIFCONF", X64, 16, { 0, 0x8912 }, OK, OK },
	{ "unix stream", X64, 41, { 1, 1 | 02000000 | 04000, 0 }, OK, OK },
	{ "unix raw", X64, 41, { 1, 3, 0 }, ERR(EPERM), ERR(EPERM) },
	{ "tcp", X64, 41, { 2, 1, 6 }, OK, OK },
	{ "tcp6, garbage", X64, 41, { GARBAGE | 10, GARBAGE | 1, GARBAGE }, OK, OK },
	{ "udp", X64, 41, { 2, 2, 17 }, OK, OK },
	{ "ping", X64, 41, { 2, 2, 1 }, ERR(EPROTONOSUPPORT), ERR(EPROTONOSUPPORT) },
	{ "udp-lite", X64, 41, { 2, 2, 136 }, ERR(EPROTONOSUPPORT), ERR(EPROTONOSUPPORT) },
	{ "mptcp", X64, 41, { 2, 1, 262 }, ERR(EPROTONOSUPPORT), ERR(EPROTONOSUPPORT) },
	{ "sctp", X64, 41, { 2, 1, 132 }, ERR(EPROTONOSUPPORT), ERR(EPROTONOSUPPORT) },
	{ "raw", X64, 41, { 2, 3, 255 }, ERR(EPERM), ERR(EPERM) },
	{ "dccp", X64, 41, { 2, 6, 33 }, ERR(EPERM), ERR(EPERM) },
	{ "inet SOCK_PACKET", X64, 41, { 2, 10, 768 }, ERR(EPERM), ERR(EPERM) },
	{ "packet", X64, 41, { 17, 3, 768 }, ERR(EPERM), ERR(EPERM) },
	{ "route", X64, 41, { 16, 3, 0 }, OK, OK },
	{ "netfilter", X64, 41, { 16, 3, 12 }, ERR(EPROTONOSUPPORT), ERR(EPROTONOSUPPORT) },
	{ "alg", X64, 41, { 38, 5, 0 }, ERR(EAFNOSUPPORT), ERR(EAFNOSUPPORT) },
	{ "vsock, garbage", X64, 41, { GARBAGE | 40, 1, 0 }, ERR(EAFNOSUPPORT), ERR(EAFNOSUPPORT) },
	{ "i386 vsock", X86, 359, { 40, 1, 0 }, ERR(EAFNOSUPPORT), ERR(EAFNOSUPPORT) },
	{ "i386 tcp", X86, 359, { 2, 1, 0 }, OK, OK },
	{ "socketpair unix", X64, 53, { 1, 5, 0 }, OK, OK },
	{ "socketpair tipc", X64, 53, { 30, 5, 0 }, ERR(EAFNOSUPPORT), ERR(EAFNOSUPPORT) },
	{ "personality query", X64, 135, { 0xffffffff }, OK, OK },
	{ "READ_IMPLIES_EXEC", X64, 135, { 0x400000 }, ERR(EPERM), ERR(EPERM) },
	{ "ADDR_NO_RANDOMIZE", X64, 135, { 0x40000 }, ERR(EPERM), OK },
	{ "fcntl F_DUPFD_CLOEXEC", X64, 72, { 3, 1030 }, OK, OK },
	{ "fcntl F_OFD_SETLK", X64, 72, { 3, 37 }, OK, OK },
	{ "fcntl F_SETOWN", X64, 72, { 3, 8 }, OK, OK },
	{ "fcntl F_SETLEASE", X64, 72, { 3, 1024 }, ERR(EPERM), ERR(EPERM) },
	{ "fcntl F_SETLEASE, bit 32", X64, 72, { 3, 0x100000400 }, ERR(EPERM), ERR(EPERM) },
	{ "fcntl F_NOTIFY", X64, 72, { 3, 1026 }, ERR(EPERM), ERR(EPERM) },
	{ "fcntl F_SETDELEG (6.19)", X64, 72, { 3, 1040 }, ERR(EPERM), ERR(EPERM) },
	{ "fcntl F_SETLEASE, 32-bit", X86, 55, { 3, 1024 }, ERR(EPERM), ERR(EPERM) },
	{ "fcntl64 F_SETLEASE, 32-bit", X86, 221, { 3, 1024 }, ERR(EPERM), ERR(EPERM) },
	{ "prctl PR_SET_NAME", X64, 157, { 15 }, OK, OK },
	{ "prctl PR_SET_SECCOMP", X64, 157, { 22 }, OK, OK },
	{ "prctl PR_SET_MM", X64, 157, { 35 }, ERR(EPERM), ERR(EPERM) },
	{ "prctl PR_SET_MM, bit 32", X64, 157, { 0x100000023 }, ERR(EPERM), ERR(EPERM) },
	{ "mknod fifo", X64, 133, { 0, 0010644 }, OK, OK },
	{ "mknod char", X64, 133, { 0, 0020644 }, ERR(EPERM), ERR(EPERM) },
	{ "mknod char, bit 16", X64, 133, { 0, 0x10000 | 0020644 }, ERR(EPERM), ERR(EPERM) },
	{ "mknodat block", X64, 259, { 0, 0, 0060644 }, ERR(EPERM), ERR(EPERM) },
	{ "mknodat plain", X64, 259, { 0, 0, 0644 }, OK, OK },
	{ "chmod", X64, 90, { 0, 02755 }, OK, OK },
	{ "chmod set-user-ID", X64, 90, { 0, 04755 }, ERR(EPERM), ERR(EPERM) },
	{ "fchmodat2 set-user-ID", X64, 452, { 0, 0, 04755 }, ERR(EPERM), ERR(EPERM) },
	{ "kill on a foreign arch",
	  AUDIT_ARCH_S390X,
	  0,
	  { 0 },
	  SECCOMP_RET_KILL_PROCESS,
	  SECCOMP_RET_KILL_PROCESS },
};

static const struct family *family_native(void)
{
#if defined(__x86_64__)
	return family_find("x86_64");
#else
	return family_find("aarch64");
#endif
}

/* Refused whatever the arguments, by the numbers of the C library: a row of the table that is
 * opened by mistake is opened for the oracle as well, and only this list notices. */
static const struct {
	const char *what;
	long nr;
} never[] = {
#define NEVER(name)                                                                                \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}
	NEVER(mount),
	NEVER(umount2),
	NEVER(pivot_root),
	NEVER(chroot),
	NEVER(open_tree),
	NEVER(move_mount),
	NEVER(fsopen),
	NEVER(fsconfig),
	NEVER(fsmount),
	NEVER(fspick),
	NEVER(mount_setattr),
	NEVER(setns),
	NEVER(name_to_handle_at),
	NEVER(open_by_handle_at),
	NEVER(fanotify_init),
	NEVER(fanotify_mark),
	NEVER(acct),
	NEVER(adjtimex),
	NEVER(clock_adjtime),
	NEVER(clock_settime),
	NEVER(settimeofday),
	NEVER(init_module),
	NEVER(finit_module),
	NEVER(delete_module),
	NEVER(kexec_load),
	NEVER(kexec_file_load),
	NEVER(reboot),
	NEVER(swapon),
	NEVER(swapoff),
	NEVER(sethostname),
	NEVER(setdomainname),
	NEVER(syslog),
	NEVER(quotactl),
	NEVER(quotactl_fd),
	NEVER(lookup_dcookie),
	NEVER(vhangup),
	NEVER(bpf),
	NEVER(perf_event_open),
	NEVER(userfaultfd),
	NEVER(add_key),
	NEVER(keyctl),
	NEVER(request_key),
	NEVER(pidfd_getfd),
	NEVER(clone3),
	NEVER(io_uring_setup),
	NEVER(io_uring_enter),
	NEVER(io_uring_register),
	NEVER(memfd_secret),
	NEVER(ptrace),
	NEVER(process_vm_readv),
	NEVER(process_vm_writev),
	NEVER(process_madvise),
	NEVER(kcmp),
#if defined(__x86_64__)
	NEVER(iopl),
	NEVER(ioperm),
	NEVER(modify_ldt),
	NEVER(uselib),
	NEVER(create_module),
	NEVER(_sysctl),
#endif
#undef NEVER
};

static void test_never(void)
{
	const struct sock_fprog *p = filter_get(FILTER_BASE);
	uint32_t arch = family_native()->native.audit_arch;

	for (size_t i = 0; i < COUNT(never); i++)
		for (int j = 0; j < 2; j++) {
			uint64_t a = j == 0 ? 0 : ~0ULL;
			struct seccomp_data d = { .nr = (int)never[i].nr,
						  .arch = arch,
						  .args = { a, a, a, a, a, a } };
			uint32_t got = sim_run(p->filter, p->len, &d, NULL, NULL);

			if (got != ERR(EPERM) && got != ERR(ENOSYS))
				FAIL("%s gives %x", never[i].what, got);
		}
}

/* What a filter with a listener sends a notice for; the others allow all of it. */
#define NOTE SECCOMP_RET_USER_NOTIF
static const struct {
	const char *what;
	uint32_t arch;
	uint32_t nr;
	uint64_t arg[4];
	uint32_t want, plain;
} noticed[] = {
	{ "read", X64, 0, { 0 }, OK, OK },
	{ "open, reading", X64, 2, { 0, 0, 06777 }, OK, OK },
	{ "open O_CREAT", X64, 2, { 0, 0x241, 0666 }, OK, OK },
	{ "open O_CREAT set-group-ID", X64, 2, { 0, 0x241, 02755 }, NOTE, OK },
	{ "open O_CREAT set-user-ID, garbage",
	  X64,
	  2,
	  { 0, GARBAGE | 0x40, GARBAGE | 04755 },
	  NOTE,
	  OK },
	{ "openat O_CREAT", X64, 257, { 0, 0, 0x80041, 0644 }, OK, OK },
	{ "openat O_CREAT, mode above 16 bits", X64, 257, { 0, 0, 0x40, 0x10000 | 0644 }, OK, OK },
	{ "openat O_CREAT set-group-ID", X64, 257, { 0, 0, 0x40, 02644 }, NOTE, OK },
	{ "openat O_TMPFILE set-group-ID", X64, 257, { 0, 0, 0x410002, 02644 }, NOTE, OK },
	{ "openat O_DIRECTORY, garbage", X64, 257, { 0, 0, 0x10000, ~0ULL }, OK, OK },
	{ "openat2", X64, 437, { 0 }, NOTE, OK },
	{ "creat", X64, 85, { 0, 0644 }, OK, OK },
	{ "creat set-group-ID", X64, 85, { 0, 02644 }, NOTE, OK },
	{ "mknod plain", X64, 133, { 0, 0644 }, OK, OK },
	{ "mknod plain set-group-ID", X64, 133, { 0, 02755 }, NOTE, OK },
	{ "mknod file set-user-ID", X64, 133, { 0, 0104755 }, NOTE, OK },
	{ "mknod fifo set-group-ID", X64, 133, { 0, 0012755 }, OK, OK },
	{ "mknod device set-group-ID", X64, 133, { 0, 0022755 }, ERR(EPERM), ERR(EPERM) },
	{ "mknodat file set-group-ID", X64, 259, { 0, 0, 0102755 }, NOTE, OK },
	{ "chmod", X64, 90, { 0, 01777 }, OK, OK },
	{ "chmod set-group-ID", X64, 90, { 0, 02755 }, NOTE, OK },
	{ "chmod both", X64, 90, { 0, 06755 }, ERR(EPERM), ERR(EPERM) },
	{ "fchmod set-group-ID", X64, 91, { 0, 02755 }, NOTE, OK },
	{ "fchmodat set-group-ID", X64, 268, { 0, 0, 02755 }, NOTE, OK },
	{ "fchmodat2 set-group-ID", X64, 452, { 0, 0, 02755 }, NOTE, OK },
	{ "i386 open O_CREAT set-group-ID", X86, 5, { 0, 0x41, 02755 }, NOTE, OK },
	{ "i386 creat set-group-ID", X86, 8, { 0, 02755 }, NOTE, OK },
	{ "i386 openat O_CREAT set-user-ID", X86, 295, { 0, 0, 0x41, 04755 }, NOTE, OK },
	{ "i386 chmod set-group-ID", X86, 15, { 0, 02755 }, NOTE, OK },
	{ "i386 mknod set-group-ID", X86, 14, { 0, 02755 }, NOTE, OK },
	{ "aarch64 openat O_CREAT set-group-ID", A64, 56, { 0, 0, 0x40, 02755 }, NOTE, OK },
	{ "aarch64 openat O_TMPFILE set-group-ID", A64, 56, { 0, 0, 0x400000, 02755 }, NOTE, OK },
	{ "arm open O_CREAT set-group-ID", ARM, 5, { 0, 0x40, 02755 }, NOTE, OK },
};

static const struct family *family_of(uint32_t arch)
{
	return family_find(arch == A64 || arch == ARM ? "aarch64" : "x86_64");
}

static void make(const struct family *f, const struct variant *v, struct emit_prog *ret_prog)
{
	char why[256];

	if (emit_filter(f, v, ret_prog, why, sizeof(why)) < 0 ||
	    sim_check(ret_prog->insn, ret_prog->n, why, sizeof(why)) < 0) {
		printf("FAIL %s %s: %s\n", f->name, v->name, why);
		exit(1);
	}
}

static void test_by_hand(void)
{
	static struct emit_prog prog[2];

	for (size_t i = 0; i < COUNT(by_hand); i++) {
		const struct family *f = family_of(by_hand[i].arch);
		struct seccomp_data d = {
			.nr = (int)by_hand[i].nr,
			.arch = by_hand[i].arch,
			.args = { by_hand[i].arg[0], by_hand[i].arg[1], by_hand[i].arg[2] },
		};

		for (int k = 0; k < 2; k++) {
			uint32_t want = k == 0 ? by_hand[i].base : by_hand[i].debug, got;

			make(f, &variants[k], &prog[k]);
			got = sim_run(prog[k].insn, prog[k].n, &d, NULL, NULL);
			if (got != want)
				FAIL("%s: %s gives %x, not %x", by_hand[i].what, variants[k].name,
				     got, want);
		}
	}
}

static uint32_t one_of(enum filter_kind kind, uint32_t arch, uint32_t nr, const uint64_t arg[4])
{
	static struct emit_prog prog;
	struct seccomp_data d = { .nr = (int)nr,
				  .arch = arch,
				  .args = { arg[0], arg[1], arg[2], arg[3] } };

	make(family_of(arch), &variants[kind], &prog);
	return sim_run(prog.insn, prog.n, &d, NULL, NULL);
}

static void test_notices(void)
{
	static const enum filter_kind with[] = { FILTER_BASE_NOTICE, FILTER_DEBUG_NOTICE },
				      without[] = { FILTER_BASE, FILTER_DEBUG };

	for (size_t i = 0; i < COUNT(noticed); i++)
		for (int k = 0; k < 2; k++) {
			uint32_t got =
				one_of(with[k], noticed[i].arch, noticed[i].nr, noticed[i].arg);
			uint32_t plain =
				one_of(without[k], noticed[i].arch, noticed[i].nr, noticed[i].arg);

			if (got != noticed[i].want || plain != noticed[i].plain)
				FAIL("%s gives %x, not %x, and without a listener %x, not %x",
				     noticed[i].what, got, noticed[i].want, plain,
				     noticed[i].plain);
		}
}

/* ---- 2. program against oracle ---- */

struct run {
	const struct family *f;
	const struct variant *v;
	struct emit_prog prog;
	uint8_t hits[EMIT_MAX];
	size_t runs;
	size_t worst; /* steps */
};

static void compare4(struct run *r, uint32_t arch, uint32_t nr, const uint64_t arg[static 4])
{
	uint64_t a = arg[0], b = arg[1], c = arg[2];
	struct seccomp_data d = { .nr = (int)nr, .arch = arch, .args = { a, b, c, arg[3] } };
	size_t steps;
	uint32_t got = sim_run(r->prog.insn, r->prog.n, &d, r->hits, &steps);
	uint32_t want = direct_eval(r->f, r->v, &d);

	r->runs++;
	if (steps > r->worst)
		r->worst = steps;
	if (got != want)
		FAIL("%s %s arch %x nr %u (%llx, %llx, %llx): program %x, table %x", r->f->name,
		     r->v->name, arch, nr, (unsigned long long)a, (unsigned long long)b,
		     (unsigned long long)c, got, want);
}

static void compare(struct run *r, uint32_t arch, uint32_t nr, uint64_t a, uint64_t b, uint64_t c)
{
	compare4(r, arch, nr, (const uint64_t[]){ a, b, c, 0 });
}

/* Flags and mode stand side by side, in open() one place before those of openat(). */
static void compare_opens(struct run *r, uint32_t arch, uint32_t nr)
{
	static const uint64_t high[] = { 0, 1ULL << 32, GARBAGE };

	for (uint64_t flag = 0; flag <= 0x1000000; flag = flag ? flag * 2 : 1)
		for (uint64_t mode = 0; mode < 0x20000; mode += 0x200)
			for (size_t i = 0; i < COUNT(high); i++) {
				uint64_t f = flag | high[i], m = mode | high[i];

				compare4(r, arch, nr, (const uint64_t[]){ 0, f, m, 0 });
				compare4(r, arch, nr, (const uint64_t[]){ 0, 0, f, m });
			}
}

/* The word itself, its neighbours, and all of them with something in the upper half. */
static void compare_around(struct run *r, uint32_t arch, uint32_t nr, uint64_t k)
{
	for (int step = -1; step <= 1; step++)
		for (int high = 0; high < 3; high++) {
			uint64_t word = (uint32_t)(k + (uint64_t)step);

			word |= high == 0 ? 0 : high == 1 ? 1ULL << 32 : GARBAGE;
			compare(r, arch, nr, word, word, word);
		}
}

static void compare_sockets(struct run *r, uint32_t arch, uint32_t nr)
{
	static const uint32_t protocols[] = { 0, 1, 6, 12, 17, 33, 132, 136, 255, 256, 262 };

	for (uint64_t family = 0; family < 50; family++)
		for (uint64_t type = 0; type < 20; type++)
			for (size_t p = 0; p < COUNT(protocols); p++) {
				compare(r, arch, nr, family, type, protocols[p]);
				compare(r, arch, nr, GARBAGE | family, GARBAGE | type | 02004000,
					GARBAGE | protocols[p]);
			}
}

static void compare_arguments(struct run *r, uint32_t arch, uint32_t nr)
{
	for (int bit = 0; bit < 64; bit++)
		compare(r, arch, nr, 1ULL << bit, 1ULL << bit, 1ULL << bit);
	for (uint64_t mode = 0; mode < 0x20000; mode += 0x200)
		compare(r, arch, nr, mode, mode, mode);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		compare_around(r, arch, nr, ioctl_rows[i].lo);
		compare_around(r, arch, nr, ioctl_rows[i].hi);
	}
	for (size_t i = 0; i < ioctl_type_row_count; i++)
		compare_around(r, arch, nr, 0x40080000 | ioctl_type_rows[i].type << 8);
	for (size_t i = 0; i < prctl_row_count; i++)
		compare_around(r, arch, nr, prctl_rows[i].option);
	for (size_t i = 0; i < fcntl_row_count; i++)
		compare_around(r, arch, nr, fcntl_rows[i].option);
	compare_around(r, arch, nr, fcntl_last.option);
	for (size_t i = 0; i < persona_row_count; i++)
		compare_around(r, arch, nr, persona_rows[i].value);
}

static void compare_abi(struct run *r, const struct abi *abi)
{
	static const uint32_t odd[] = { 0xf0000,    0x40000000, 0x40000200,
					0x7fffffff, 0x80000000, 0xffffffff };

	for (uint32_t nr = 0; nr <= 600; nr++) {
		const struct sys_row *row = direct_row(abi, nr);

		compare(r, abi->audit_arch, nr, 0, 0, 0);
		compare(r, abi->audit_arch, nr, ~0ULL, ~0ULL, ~0ULL);
		if (row == NULL || row->rule < RULE_FIRST_CHECK)
			continue;
		compare_arguments(r, abi->audit_arch, nr);
		if (row->rule == RULE_SOCKET || row->rule == RULE_SOCKETPAIR)
			compare_sockets(r, abi->audit_arch, nr);
		if (row->rule >= RULE_FIRST_NOTICE)
			compare_opens(r, abi->audit_arch, nr);
	}
	for (size_t i = 0; i < COUNT(odd); i++)
		for (uint32_t j = 0; j < 16; j++)
			compare(r, abi->audit_arch, odd[i] + j, 0, 0, 0);
}

static void check_coverage(const struct run *r)
{
	for (size_t i = 0; i < r->prog.n; i++) {
		uint16_t code = r->prog.insn[i].code;
		int want = SIM_RAN;

		if (BPF_CLASS(code) == BPF_JMP && BPF_OP(code) != BPF_JA)
			want |= SIM_TAKEN | SIM_NOT_TAKEN;
		if (r->hits[i] != want)
			FAIL("%s %s: instruction %zu used %x, not %x", r->f->name, r->v->name, i,
			     (unsigned int)r->hits[i], (unsigned int)want);
	}
}

/* The kernel's bitmap of always-allowed calls works only if arguments are not loaded on the way. */
static void check_constant(const struct run *r)
{
	for (uint32_t nr = 0; nr <= 600; nr++) {
		const struct sys_row *row = direct_row(&r->f->native, nr);
		struct seccomp_data d = { .nr = (int)nr, .arch = r->f->native.audit_arch };
		static uint8_t hits[EMIT_MAX];

		if (row == NULL || (row->rule != RULE_ALLOW &&
				    (row->rule < RULE_FIRST_NOTICE || r->v->has_notice)))
			continue;
		for (size_t i = 0; i < r->prog.n; i++)
			hits[i] = 0;
		sim_run(r->prog.insn, r->prog.n, &d, hits, NULL);
		for (size_t i = 0; i < r->prog.n; i++)
			if (hits[i] != 0 && BPF_CLASS(r->prog.insn[i].code) == BPF_LD &&
			    r->prog.insn[i].k >= offsetof(struct seccomp_data, args))
				FAIL("%s: %s loads an argument", r->f->name, row->name);
	}
}

static void test_against_table(void)
{
	static struct run r;

	for (size_t i = 0; i < family_count; i++)
		for (size_t j = 0; j < variant_count; j++) {
			r = (struct run){ .f = &families[i], .v = &variants[j] };
			make(r.f, r.v, &r.prog);
			compare_abi(&r, &r.f->native);
			compare_abi(&r, &r.f->compat);
			compare(&r, 0, 0, 0, 0, 0);
			compare(&r, families[(i + 1) % family_count].native.audit_arch, 0, 0, 0, 0);
			check_coverage(&r);
			check_constant(&r);
			printf("%s %s: %zu instructions, %zu runs, at most %zu steps\n", r.f->name,
			       r.v->name, r.prog.n, r.runs, r.worst);
		}
}

/* ---- 3. far jumps ---- */

static void test_far(void)
{
	static struct range ranges[600];
	static struct emit_prog prog;
	static const uint32_t ret[] = { 100, 101, 102, 103 };
	const struct emit_tree t = { ranges, COUNT(ranges), ret, COUNT(ret) };
	size_t far = 0;
	char why[256];

	for (uint32_t i = 0; i < COUNT(ranges); i++)
		ranges[i] = (struct range){ i * 7, i * 7 + 6, (int)(i * i % 4) };
	ranges[COUNT(ranges) - 1].hi = UINT32_MAX;
	if (emit_tree_only(&t, &prog, why, sizeof(why)) < 0 ||
	    sim_check(prog.insn, prog.n, why, sizeof(why)) < 0) {
		FAIL("%s", why);
		return;
	}
	for (uint32_t i = 0; i < COUNT(ranges); i++)
		for (uint32_t nr = i * 7; nr < i * 7 + 7; nr++) {
			struct seccomp_data d = { .nr = (int)nr };
			uint32_t got = sim_run(prog.insn, prog.n, &d, NULL, NULL);

			if (got != ret[i * i % 4])
				FAIL("number %u gives %u", nr, got);
		}
	for (size_t i = 0; i < prog.n; i++)
		far += prog.insn[i].code == (BPF_JMP | BPF_JA) && prog.insn[i].k > UINT8_MAX;
	if (far == 0)
		FAIL("600 ranges and no far jump");
}

static void test_too_long(void)
{
	static struct range ranges[5000];
	static struct emit_prog prog;
	static const uint32_t ret[] = { 1, 2 };
	const struct emit_tree t = { ranges, COUNT(ranges), ret, COUNT(ret) };
	char why[256];

	for (uint32_t i = 0; i < COUNT(ranges); i++)
		ranges[i] = (struct range){ 2 * i, 2 * i + 1, (int)(i % 2) };
	ranges[COUNT(ranges) - 1].hi = UINT32_MAX;
	if (emit_tree_only(&t, &prog, why, sizeof(why)) == 0)
		FAIL("a program of %zu instructions was accepted", prog.n);
}

/* ---- 4. the arrays ---- */

static void test_arrays(void)
{
	const struct family *f = family_native();
	static struct emit_prog prog;

	for (int kind = 0; kind < FILTER_COUNT_; kind++) {
		const struct sock_fprog *p = filter_get((enum filter_kind)kind);

		make(f, &variants[kind], &prog);
		if (p->len != prog.n ||
		    memcmp(p->filter, prog.insn, p->len * sizeof(prog.insn[0])) != 0)
			FAIL("%s in the binary is not what the table gives", variants[kind].name);
	}
}

/* ---- 5. in the kernel ---- */

static void install(enum filter_kind kind)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, filter_get(kind)) != 0) {
		perror("seccomp");
		_exit(99);
	}
}

/* Runs `body` in a child under the filter. Its result is the exit status: 0 or the line that
 * disagreed. */
static void in_child(const char *what, enum filter_kind kind, int (*body)(void))
{
	int status = 0;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid < 0) {
		FAIL("fork: %s", strerror(errno));
		return;
	}
	if (pid == 0) {
		install(kind);
		_exit(body());
	}
	if (waitpid(pid, &status, 0) != pid)
		FAIL("waitpid: %s", strerror(errno));
	else if (status != 0)
		FAIL("%s: status %x (step %d)", what, (unsigned int)status, WEXITSTATUS(status));
}

#define STEP(n, cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return n;                                                                  \
	} while (0)

static bool is_refused(long r, int want)
{
	return r == -1 && errno == want;
}

static int body_base(void)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	STEP(1, getpid() > 1 && syscall(SYS_getpid) == getpid());
	STEP(2, is_refused(syscall(SYS_mount, "a", "/", "tmpfs", 0, 0), EPERM));
	STEP(3, is_refused(syscall(SYS_clone3, 0, 0), ENOSYS));
	STEP(4, is_refused(syscall(SYS_ioctl, 0, 0x100005412UL, "x"), EPERM));
	STEP(5, is_refused(syscall(SYS_ioctl, 0, 0x5412UL, "x"), EPERM));
	STEP(6, is_refused(socket(40 /* AF_VSOCK */, SOCK_STREAM, 0), EAFNOSUPPORT));
	STEP(7, is_refused(socket(AF_PACKET, SOCK_RAW, 0), EPERM));
	STEP(8, is_refused(socket(AF_INET, SOCK_RAW, 255), EPERM));
	STEP(9, is_refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), EPROTONOSUPPORT));
	STEP(10, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) >= 0);
	STEP(11, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	STEP(12, is_refused(unshare(CLONE_NEWUSER), EPERM));
	STEP(13, unshare(CLONE_FILES) == 0);
	STEP(14, is_refused(syscall(SYS_io_uring_setup, 1, 0), ENOSYS));
	STEP(15, is_refused(syscall(SYS_bpf, 0, 0, 0), EPERM));
	STEP(16, is_refused(syscall(1000), ENOSYS));
	STEP(17, is_refused(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM));
	STEP(18, is_refused(process_vm_readv(getpid(), &iov, 1, &iov, 1, 0), EPERM));
	STEP(19, is_refused(syscall(SYS_userfaultfd, 0), EPERM));
	STEP(20, is_refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM));
	return 0;
}

static int body_debug(void)
{
	char from[8] = "vitrine", to[8] = "";
	struct iovec a = { to, sizeof(to) }, b = { from, sizeof(from) };

	STEP(1, process_vm_readv(getpid(), &a, 1, &b, 1, 0) == sizeof(to));
	STEP(2, memcmp(from, to, sizeof(to)) == 0);
	STEP(3, ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
	STEP(4, is_refused(syscall(SYS_mount, "a", "/", "tmpfs", 0, 0), EPERM));
	return 0;
}

/* Every way to fill an empty file; mapping it takes a change of size first. */
static bool fill(int fd, int how)
{
	if (how == 0)
		return write(fd, "x", 1) == 1;
	if (how == 1)
		return ftruncate(fd, 4096) == 0;
	return fallocate(fd, 0, 0, 4096) == 0;
}

/* SYSCALLS.md says the bit does not survive filling the file, so that only chmod needs watching. */
static int body_setuid(void)
{
	char path[] = "/tmp/filter_test.XXXXXX";
	struct stat st;
	int fd = mkstemp(path);

	STEP(1, fd >= 0);
	STEP(2, is_refused(fchmod(fd, 04700), EPERM) && is_refused(chmod(path, 04700), EPERM));
	STEP(3, unlink(path) == 0 && close(fd) == 0);
	/* Root keeps the bit on write; inside, nobody is root over the file. */
	STEP(4, geteuid() != 0 || syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
	for (int how = 0; how < 3; how++) {
		fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 04700);
		STEP(10 + how, fd >= 0 && unlink(path) == 0);
		STEP(20 + how, fstat(fd, &st) == 0 && (st.st_mode & S_ISUID) != 0);
		STEP(30 + how, fill(fd, how));
		STEP(40 + how, fstat(fd, &st) == 0 && (st.st_mode & S_ISUID) == 0);
		STEP(50 + how, close(fd) == 0);
	}
	return 0;
}

/* In the kernel: a child with a listener, whose calls the parent lets go on. The child's steps say which calls those are. */
#define LISTEN (SECCOMP_FILTER_FLAG_NEW_LISTENER | 1UL << 5 /* WAIT_KILLABLE_RECV */)

static int noticed_calls(const char *path, int *ret_n)
{
	struct open_how how = { .flags = O_RDONLY };
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	int n = 0;

	*ret_n = 0;
	STEP(1, fd >= 0 && chmod(path, 0755) == 0); /* none so far */
	STEP(2, fchmod(fd, 02755) == 0 && ++n);
	STEP(3, chmod(path, 02711) == 0 && ++n);
	STEP(4, is_refused(chmod(path, 06711), EPERM));
	STEP(5, unlink(path) == 0 && close(fd) == 0);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 02755);
	STEP(6, fd >= 0 && ++n && close(fd) == 0);
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	STEP(7, fd >= 0 && ++n && close(fd) == 0);
	STEP(8, unlink(path) == 0 && mknod(path, S_IFREG | 02755, 0) == 0 && ++n);
	STEP(9, unlink(path) == 0);
	*ret_n = n;
	return 0;
}

static _Noreturn void noticed_child(int to, const char *path)
{
	long fd;
	int n = 0, step;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		_exit(98);
	fd = syscall(SYS_seccomp, 1, LISTEN, filter_get(FILTER_BASE_NOTICE));
	if (fd < 0)
		_exit(errno == EINVAL ? 97 : 98);
	/* The parent takes it by its number. */
	if (write(to, &fd, sizeof(fd)) != (ssize_t)sizeof(fd))
		_exit(96);
	step = noticed_calls(path, &n);
	if (write(to, &n, sizeof(n)) != (ssize_t)sizeof(n))
		_exit(95);
	_exit(step);
}

/* How many notices came until the child ended. */
static int answer_all(int listener)
{
	int n = 0;

	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		struct seccomp_notif got = { 0 };
		struct seccomp_notif_resp back = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

		if (poll(&p, 1, 10000) <= 0 || !(p.revents & POLLIN) ||
		    ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got) != 0)
			return n;
		back.id = got.id;
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &back) == 0)
			n++;
	}
}

static void test_listener(void)
{
	char dir[] = "/tmp/filter_test.XXXXXX", path[64];
	int pipes[2], status = 0, said = -1, got = 0, pidfd, listener = -1;
	long fd = -1;
	pid_t pid;

	if (mkdtemp(dir) == NULL || pipe2(pipes, O_CLOEXEC) != 0) {
		FAIL("%s", strerror(errno));
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		noticed_child(pipes[1], path);
	(void)close(pipes[1]);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (read(pipes[0], &fd, sizeof(fd)) == (ssize_t)sizeof(fd))
		listener = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (listener >= 0)
		got = answer_all(listener);
	if (read(pipes[0], &said, sizeof(said)) < 0)
		said = -1;
	(void)close(listener);
	if (waitpid(pid, &status, 0) != pid)
		FAIL("waitpid: %s", strerror(errno));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 97)
		printf("no listener on this kernel: not tried\n");
	else if (status != 0 || got != said || got != 5)
		FAIL("status %x, %d notices, %d expected", (unsigned int)status, got, said);
	(void)close(pidfd);
	(void)close(pipes[0]);
	(void)rmdir(dir);
}

#if defined(__x86_64__)
static long int80(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

static int body_int80(void)
{
	STEP(1, int80(20, 0, 0, 0) == getpid());
	STEP(2, int80(21, 0, 0, 0) == -EPERM);              /* mount */
	STEP(3, int80(435, 0, 0, 0) == -ENOSYS);            /* clone3 */
	STEP(4, int80(310, CLONE_NEWUSER, 0, 0) == -EPERM); /* unshare */
	STEP(5, int80(359, 40, 1, 0) == -EAFNOSUPPORT);     /* socket */
	STEP(6, int80(102, 1, 0, 0) == -EPERM);             /* socketcall */
	STEP(7, int80(54, 0, 0x5412, 0) == -EPERM);         /* ioctl */
	STEP(8, int80(26, 0, 0, 0) == -EPERM);              /* ptrace */
	STEP(9, int80(359, AF_UNIX, SOCK_STREAM, 0) >= 0);
	return 0;
}

static int body_x32(void)
{
	STEP(1, is_refused(syscall(0x40000000 + 39), ENOSYS));
	return 0;
}
#endif

#if defined(VITRINE_SABOTAGE) && VITRINE_SABOTAGE
/* A hole that the sabotage tests rely on must really be open. */
static int body_noargs(void)
{
	STEP(1, syscall(SYS_ioctl, -1, 0x5412UL, "x") == -1 && errno == EBADF);
	STEP(2, is_refused(syscall(SYS_mount, "a", "/", "tmpfs", 0, 0), EPERM));
	return 0;
}

#if defined(__x86_64__)
static int body_noarch(void)
{
	STEP(1, int80(21, 0, 0, 0) == -EFAULT || int80(21, 0, 0, 0) == -EINVAL);
	STEP(2, is_refused(syscall(SYS_mount, "a", "/", "tmpfs", 0, 0), EPERM));
	return 0;
}
#endif
#endif

static void test_kernel(void)
{
	in_child("base", FILTER_BASE, body_base);
	in_child("debug", FILTER_DEBUG, body_debug);
	in_child("set-user-ID", FILTER_BASE, body_setuid);
#if defined(__x86_64__)
	in_child("int 0x80", FILTER_BASE, body_int80);
	in_child("x32", FILTER_BASE, body_x32);
#endif
#if defined(VITRINE_SABOTAGE) && VITRINE_SABOTAGE
	in_child("noargs", FILTER_NOARGS, body_noargs);
#if defined(__x86_64__)
	in_child("noarch", FILTER_NOARCH, body_noarch);
#endif
#endif
}

int main(void)
{
	test_by_hand();
	test_never();
	test_notices();
	test_against_table();
	test_far();
	test_too_long();
	test_arrays();
	test_kernel();
	test_listener();
	printf("%d failures\n", failures);
	return failures == 0 ? 0 : 1;
}
