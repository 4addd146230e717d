/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/filter.h - the seccomp allowlist of the native engine, ready to install */
#ifndef SYS_FILTER_FILTER_H
#define SYS_FILTER_FILTER_H

#include <linux/filter.h>

enum filter_kind {
	FILTER_BASE,  /* the default */
	FILTER_DEBUG, /* the same plus ptrace and its kin, for gdb and strace inside */
	FILTER_ROOT, /* the base plus set-user-ID files: a root inside, and nothing of the host's that it could write */
	/* The first two with a notice before each call that can make a set-user-ID or set-group-ID file: they are installed with
	 * SECCOMP_FILTER_FLAG_NEW_LISTENER, and whoever holds the listener answers (keep/notice.c). */
	FILTER_BASE_NOTICE,
	FILTER_DEBUG_NOTICE,
#if defined(VITRINE_SABOTAGE) && VITRINE_SABOTAGE
	FILTER_NOARCH, /* lets the 32-bit convention pass unseen */
	FILTER_NOARGS, /* looks at numbers only */
#endif
	FILTER_COUNT_
};

/*
 * The program of that kind: constant data, valid for ever, nothing to free. Async-signal-safe; may
 * be called between clone and exec. Installing it is the caller's: seccomp(SECCOMP_SET_MODE_FILTER,
 * 0, prog) after no_new_privs, or before CAP_SYS_ADMIN is given up. Docs of what it allows: docs/SYSCALLS.md. Aborts on a value outside
 * the enum: no filter must never look like success.
 */
const struct sock_fprog *filter_get(enum filter_kind kind);

#endif
