/* SPDX-License-Identifier: Apache-2.0 */
/* sys/host_try.h - attempts, each made in a child of its own that cannot outlive its deadline; for host.c alone */
#ifndef VITRINE_SYS_HOST_TRY_H
#define VITRINE_SYS_HOST_TRY_H

#include "base/base.h"

struct attempt {
	int num; /* 0: it worked; else an errno, ETIMEDOUT, or ECHILD when a signal ended it */
	char step[64];  /* what did not work */
	uint64_t value; /* whatever the attempt found out */
};

typedef void (*try_fn)(struct attempt *a);

/* Runs fn in a child; with is_walled in new user, mount, pid, ipc, uts, cgroup and net namespaces, as root there. */
struct attempt try_in_child(try_fn fn, bool is_walled);

void try_nothing(struct attempt *a); /* plain child or, walled, the namespaces themselves */
void try_private_mounts(
	struct attempt *a);       /* walled: cut off the host's tree, mount a tmpfs, loopback up */
void try_proc(struct attempt *a); /* walled: a fresh /proc */
void try_mount_api(struct attempt *a); /* walled: open_tree, mount_setattr, move_mount, fsopen */
void try_overlay(struct attempt *a); /* walled: overlay on tmpfs, with copy-up and a removed name */
void try_fuse(struct attempt *a);    /* walled: /dev/fuse can be opened and mounted */
void try_pid_max(struct attempt *a); /* walled: kernel.pid_max of our own */
void try_redirect(struct attempt *a); /* walled: all TCP comes to one listener; value: with IPv6 */
void try_landlock(struct attempt *a); /* value: ABI */
void try_seccomp(struct attempt *a);
void try_seccomp_notify(struct attempt *a);
void try_openat2(struct attempt *a);
void try_clone3(struct attempt *a);
void try_pidfd(struct attempt *a);
void try_idmap(struct attempt *a); /* needs root */

#endif
