/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/seccomp.c - our table of system calls as a profile for container engines
 *
 * The engine's own profile would refuse calls that our lock is made of (Landlock), so it gets ours: what the table
 * allows, what it allows after a look at the arguments, and what init needs to close the lock. The arguments are
 * looked at by the filter that init installs over it. What is not in the table answers ENOSYS, as inside.
 */
#include "engine/container/container.h"

enum {
	ALLOW,
	EPERM_,
	ENOSYS_,
	DEBUG,
	CLONE,
	UNSHARE,
	SOCKET,
	SOCKETPAIR,
	IOCTL_,
	PERSONALITY,
	PRCTL_,
	FCNTL_,
	MKNOD,
	MKNODAT,
	CHMOD,
	CHMODAT
};

/* The table's words for refusal are also names of numbers. */
#define RULE_OF_ALLOW ALLOW
#define RULE_OF_EPERM EPERM_
#define RULE_OF_ENOSYS ENOSYS_
#define RULE_OF_DEBUG DEBUG
#define RULE_OF_CLONE CLONE
#define RULE_OF_UNSHARE UNSHARE
#define RULE_OF_SOCKET SOCKET
#define RULE_OF_SOCKETPAIR SOCKETPAIR
#define RULE_OF_IOCTL IOCTL_
#define RULE_OF_PERSONALITY PERSONALITY
#define RULE_OF_PRCTL PRCTL_
#define RULE_OF_FCNTL FCNTL_
#define RULE_OF_MKNOD MKNOD
#define RULE_OF_MKNODAT MKNODAT
#define RULE_OF_CHMOD CHMOD
#define RULE_OF_CHMODAT CHMODAT
/* Only the native engine has a listener. */
#define RULE_OF_CREAT ALLOW
#define RULE_OF_OPEN ALLOW
#define RULE_OF_OPENAT ALLOW
#define RULE_OF_OPENAT2 ALLOW

static const struct {
	char name[31]; /* no pointers: they would cost every start of the program */
	unsigned char rule;
} rows[] = {
#define GROUP(title, why)
#define SYS(name, rule, nr, why) { #name, RULE_OF_##rule },
#define IOCTL(lo, hi, verdict, name, why)
#define IOCTL_TYPE(byte, name, why)
#define PRCTL(value, name, why)
#define FCNTL(value, name, why)
#define FCNTL_LAST(value, name)
#define PERSONA(value, verdict, name)
#include "sys/filter/syscalls.def"
};

/* Before the lock is closed; afterwards the inner filter refuses those that are not in the table. */
static const char *const for_init[] = { "landlock_create_ruleset",
					"landlock_add_rule",
					"landlock_restrict_self",
					"seccomp",
					"capset",
					"setgroups",
					"setresuid",
					"setresgid" };

static void put_name(struct buf *out, const char *name, bool *has_one)
{
	buf_printf(out, "%s\"%s\"", *has_one ? "," : "", name);
	*has_one = true;
}

/* New namespaces are refused here as well: the flags that make one. */
#define NEW_NAMESPACES 0x7e020080U

void seccomp_profile(bool debug, struct buf *out)
{
	bool has_one = false;

	buf_puts(out, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\n\"syscalls\":"
		      "[\n"
		      "{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rule = rows[i].rule;

		if (rule == ALLOW || (rule == DEBUG && debug) || rule > UNSHARE)
			put_name(out, rows[i].name, &has_one);
	}
	for (size_t i = 0; i < ARRAY_LEN(for_init); i++)
		put_name(out, for_init[i], &has_one);
	buf_printf(out,
		   "]},\n{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[\"clone\"],\"args\":[{\"index\":"
		   "0,"
		   "\"value\":%u,\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}]},\n"
		   "{\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,\"names\":[",
		   NEW_NAMESPACES);
	has_one = false;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].rule == EPERM_ || (rows[i].rule == DEBUG && !debug) ||
		    rows[i].rule == UNSHARE)
			put_name(out, rows[i].name, &has_one);
	buf_puts(out, "]}\n]}\n");
}
