/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/syscalls.h - syscalls.def as C tables
 *
 * Used while building (emit.c, gen.c) and by the tests; nothing of it is linked into the product.
 */
#ifndef SYS_FILTER_SYSCALLS_H
#define SYS_FILTER_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* What happens to a call. The first four need no argument; the others are argument checks, see
 * emit.c. */
enum rule {
	RULE_ALLOW,
	RULE_EPERM,
	RULE_ENOSYS,
	RULE_DEBUG, /* EPERM, but allowed by FILTER_DEBUG */
	RULE_CLONE,
	RULE_UNSHARE,
	RULE_SOCKET,
	RULE_SOCKETPAIR,
	RULE_IOCTL,
	RULE_PERSONALITY,
	RULE_PRCTL,
	RULE_FCNTL,
	RULE_MKNOD,
	RULE_MKNODAT,
	RULE_CHMOD,
	RULE_CHMODAT,
	/* Allowed; filters with a listener send a notice first when the call can make a set-ID file. */
	RULE_CREAT,
	RULE_OPEN,
	RULE_OPENAT,
	RULE_OPENAT2,
	RULE_COUNT_
};

#define RULE_FIRST_CHECK RULE_CLONE
#define RULE_FIRST_NOTICE RULE_CREAT

/* Where a system call number comes from. */
enum nr_source { NR_FROM_LIB, NR_FROM_COMMON, NR_FROM_X86_64, NR_FROM_I386, NR_FROM_COUNT_ };

/* A heading (`group` set, `name` NULL) or a call (`name` set). An empty `why` means the reason of
 * the heading. */
struct sys_row {
	const char *group;
	const char *name;
	const char *why;
	enum rule rule;
	enum nr_source source;
	uint32_t nr; /* unless NR_FROM_LIB */
};

struct ioctl_row {
	uint32_t lo, hi;
	enum rule rule; /* RULE_ALLOW or RULE_EPERM */
	const char *name, *why;
};

struct ioctl_type_row {
	uint32_t type; /* second byte of the request */
	const char *name, *why;
};

/* An option of prctl() or a command of fcntl(). */
struct prctl_row {
	uint32_t option;
	const char *name, *why;
};

struct persona_row {
	uint32_t value;
	enum rule rule; /* RULE_ALLOW or RULE_DEBUG */
	const char *name;
};

extern const struct sys_row sys_rows[];
extern const size_t sys_row_count;
extern const struct ioctl_row ioctl_rows[];
extern const size_t ioctl_row_count;
extern const struct ioctl_type_row ioctl_type_rows[];
extern const size_t ioctl_type_row_count;
extern const struct prctl_row prctl_rows[];
extern const size_t prctl_row_count;
extern const struct prctl_row fcntl_rows[];
extern const size_t fcntl_row_count;
extern const struct prctl_row fcntl_last; /* what a later kernel adds is refused */
extern const struct persona_row persona_rows[];
extern const size_t persona_row_count;

#endif
