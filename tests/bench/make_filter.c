/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/make_filter.c - a system call filter of realistic size for the programs we are
 * compared with
 *
 * bubblewrap installs a filter only if it is given one, and a sandbox without a filter starts and
 * runs faster than one that has it. So that like is compared with like, this writes an allowlist of
 * every call libseccomp knows for this machine except those below, as a binary tree (the fastest
 * form libseccomp makes).
 *
 * make_filter FILE writes the BPF program; the names of the allowed calls go to standard output,
 * for runtimes that take names.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAST_CALL 512

static const char *const refused[] = {
	"_sysctl",
	"acct",
	"add_key",
	"afs_syscall",
	"bpf",
	"chroot",
	"clock_adjtime",
	"clock_settime",
	"create_module",
	"delete_module",
	"fanotify_init",
	"finit_module",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"get_kernel_syms",
	"getpmsg",
	"init_module",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"ioperm",
	"iopl",
	"kcmp",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"lookup_dcookie",
	"mount",
	"mount_setattr",
	"move_mount",
	"name_to_handle_at",
	"nfsservctl",
	"open_by_handle_at",
	"open_tree",
	"perf_event_open",
	"pivot_root",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
	"putpmsg",
	"query_module",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"request_key",
	"security",
	"setdomainname",
	"sethostname",
	"setns",
	"settimeofday",
	"swapoff",
	"swapon",
	"sysfs",
	"syslog",
	"tuxcall",
	"umount2",
	"unshare",
	"uselib",
	"userfaultfd",
	"ustat",
	"vhangup",
	"vserver",
};

static bool is_refused(const char *name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (!strcmp(refused[i], name))
			return true;
	return false;
}

static int fail(const char *what, int r)
{
	(void)fprintf(stderr, "make_filter: %s: %s\n", what, strerror(-r));
	return 1;
}

static int allow_calls(scmp_filter_ctx ctx)
{
	for (int nr = 0; nr < LAST_CALL; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
		int r = 0;

		if (name && !is_refused(name)) {
			r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
			if (!r)
				(void)puts(name);
		}
		free(name);
		if (r)
			return r;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: make_filter FILE\n");
		return 2;
	}

	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (!ctx)
		return fail("seccomp_init", -ENOMEM);

	int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	if (r)
		return fail("optimize", r);
	r = allow_calls(ctx);
	if (r)
		return fail("rule", r);

	int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return fail(argv[1], -errno);
	r = seccomp_export_bpf(ctx, fd);
	if (r)
		return fail("export", r);
	close(fd);
	seccomp_release(ctx);
	return 0;
}
