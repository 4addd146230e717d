/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/filter/direct.c - what syscalls.def means, said a second time and plainly
 *
 * The oracle of the unit test and of the fuzzer. It shares the table with the emitter and nothing
 * else: it looks up numbers itself, walks rows one by one, and takes arguments by C conversion to
 * the type the kernel declares (int, unsigned int, umode_t), where the emitter thinks in words and
 * masks.
 */
#include "tests/tools/filter/direct.h"

#include <errno.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ABI_MAX 8
#define ROW_MAX 1024
#define ABSENT (-1)

static uint32_t refuse(int number)
{
	return SECCOMP_RET_ERRNO | (uint32_t)number;
}

static uint32_t allow_if(bool is_fine)
{
	return is_fine ? SECCOMP_RET_ALLOW : refuse(EPERM);
}

static int64_t look_up(const struct abi *abi, const struct sys_row *row)
{
	int nr;

	if (row->name == NULL)
		return ABSENT;
	switch (row->source) {
	case NR_FROM_COMMON:
		return row->nr;
	case NR_FROM_X86_64:
		return abi->scmp_arch == SCMP_ARCH_X86_64 ? (int64_t)row->nr : ABSENT;
	case NR_FROM_I386:
		if (abi->scmp_arch == SCMP_ARCH_X86)
			return row->nr;
		break;
	case NR_FROM_LIB:
	case NR_FROM_COUNT_:
		break;
	}
	nr = seccomp_syscall_resolve_name_arch(abi->scmp_arch, row->name);
	return nr >= 0 ? nr : ABSENT;
}

/* Numbers of all rows under one convention; asked of libseccomp once, since the fuzzer comes here
 * often. */
static const int64_t *numbers(const struct abi *abi)
{
	static struct {
		const struct abi *abi;
		int64_t nr[ROW_MAX];
	} cache[ABI_MAX];

	for (size_t i = 0; i < ABI_MAX; i++) {
		if (cache[i].abi == abi)
			return cache[i].nr;
		if (cache[i].abi != NULL)
			continue;
		if (sys_row_count > ROW_MAX)
			abort();
		for (size_t j = 0; j < sys_row_count; j++)
			cache[i].nr[j] = look_up(abi, &sys_rows[j]);
		cache[i].abi = abi;
		return cache[i].nr;
	}
	abort();
}

const struct sys_row *direct_row(const struct abi *abi, uint32_t nr)
{
	const int64_t *known = numbers(abi);

	for (size_t i = 0; i < sys_row_count; i++)
		if (known[i] == (int64_t)nr)
			return &sys_rows[i];
	return NULL;
}

static uint32_t eval_socket(int family, int type, int protocol)
{
	bool has_protocol;

	type = (int)((unsigned int)type % 16); /* SOCK_CLOEXEC, SOCK_NONBLOCK and nonsense above */
	switch (family) {
	case AF_UNIX:
		return allow_if(type == SOCK_STREAM || type == SOCK_DGRAM ||
				type == SOCK_SEQPACKET);
	case AF_INET:
	case AF_INET6:
		if (type != SOCK_STREAM && type != SOCK_DGRAM)
			return refuse(EPERM);
		has_protocol = protocol == 0 ||
			       protocol == (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
		return has_protocol ? SECCOMP_RET_ALLOW : refuse(EPROTONOSUPPORT);
	case AF_NETLINK:
		if (type != SOCK_RAW && type != SOCK_DGRAM)
			return refuse(EPERM);
		return protocol == 0 ? SECCOMP_RET_ALLOW : refuse(EPROTONOSUPPORT);
	case AF_PACKET:
		return refuse(EPERM);
	default:
		return refuse(EAFNOSUPPORT);
	}
}

static uint32_t eval_ioctl(unsigned int request)
{
	for (size_t i = 0; i < ioctl_row_count; i++)
		if (request >= ioctl_rows[i].lo && request <= ioctl_rows[i].hi)
			return allow_if(ioctl_rows[i].rule == RULE_ALLOW);
	for (size_t i = 0; i < ioctl_type_row_count; i++)
		if ((request / 256) % 256 == ioctl_type_rows[i].type)
			return refuse(EPERM);
	return SECCOMP_RET_ALLOW;
}

static uint32_t eval_prctl(int option)
{
	for (size_t i = 0; i < prctl_row_count; i++)
		if (option == (int)prctl_rows[i].option)
			return refuse(EPERM);
	return SECCOMP_RET_ALLOW;
}

static uint32_t eval_fcntl(unsigned int command)
{
	for (size_t i = 0; i < fcntl_row_count; i++)
		if (command == fcntl_rows[i].option)
			return refuse(EPERM);
	return allow_if(command <= fcntl_last.option);
}

static uint32_t eval_personality(const struct variant *v, unsigned int value)
{
	for (size_t i = 0; i < persona_row_count; i++)
		if (value == persona_rows[i].value)
			return allow_if(persona_rows[i].rule == RULE_ALLOW || v->has_debug);
	return refuse(EPERM);
}

/* The two bits as a number; see eval_clone(). */
static uint32_t notice_if(const struct variant *v, bool is_set_id)
{
	return v->has_notice && is_set_id ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
}

static uint32_t eval_mknod(const struct variant *v, unsigned short mode)
{
	if ((mode & S_IFMT) == 0 || S_ISREG(mode))
		return notice_if(v, (mode & 06000) != 0);
	return allow_if(!S_ISCHR(mode) && !S_ISBLK(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) &&
			(S_ISFIFO(mode) || S_ISSOCK(mode)));
}

static uint32_t eval_chmod(const struct variant *v, unsigned short mode)
{
	if ((mode & 04000) != 0 && !v->has_setuid)
		return refuse(EPERM);
	return notice_if(v, (mode & 06000) != 0);
}

static uint32_t eval_open(const struct variant *v, int flags, unsigned short mode)
{
	bool is_creating = (flags & 0x40) != 0 || (flags & 0x400000) != 0;

	return notice_if(v, is_creating && (mode & 06000) != 0);
}

/* Bits as numbers, so that a wrong macro in the emitter does not repeat itself here. */
static uint32_t eval_clone(unsigned int flags)
{
	static const unsigned int namespaces[] = { 0x00020000, 0x02000000, 0x04000000, 0x08000000,
						   0x10000000, 0x20000000, 0x40000000 };

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		if (flags & namespaces[i])
			return refuse(EPERM);
	return SECCOMP_RET_ALLOW;
}

static uint32_t eval_unshare(uint64_t flags)
{
	static const unsigned int harmless[] = { 0x00000100, 0x00000200, 0x00000400,
						 0x00000800, 0x00010000, 0x00040000 };

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		flags &= ~(uint64_t)harmless[i];
	return allow_if(flags == 0);
}

static uint32_t eval_row(const struct variant *v, enum rule rule, const __u64 *arg)
{
	switch (rule) {
	case RULE_ALLOW:
		return SECCOMP_RET_ALLOW;
	case RULE_EPERM:
		return refuse(EPERM);
	case RULE_ENOSYS:
		return refuse(ENOSYS);
	case RULE_DEBUG:
		return allow_if(v->has_debug);
	case RULE_CLONE:
		return eval_clone((unsigned int)arg[0]);
	case RULE_UNSHARE:
		return eval_unshare(arg[0]);
	case RULE_SOCKET:
		return eval_socket((int)arg[0], (int)arg[1], (int)arg[2]);
	case RULE_SOCKETPAIR:
		if ((int)arg[0] != AF_UNIX)
			return refuse(EAFNOSUPPORT);
		return eval_socket(AF_UNIX, (int)arg[1], (int)arg[2]);
	case RULE_IOCTL:
		return eval_ioctl((unsigned int)arg[1]);
	case RULE_PERSONALITY:
		return eval_personality(v, (unsigned int)arg[0]);
	case RULE_PRCTL:
		return eval_prctl((int)arg[0]);
	case RULE_FCNTL:
		return eval_fcntl((unsigned int)arg[1]);
	case RULE_MKNOD:
		return eval_mknod(v, (unsigned short)arg[1]);
	case RULE_MKNODAT:
		return eval_mknod(v, (unsigned short)arg[2]);
	case RULE_CHMOD:
		return eval_chmod(v, (unsigned short)arg[1]);
	case RULE_CHMODAT:
		return eval_chmod(v, (unsigned short)arg[2]);
	case RULE_CREAT:
		return eval_open(v, 0x40, (unsigned short)arg[1]);
	case RULE_OPEN:
		return eval_open(v, (int)arg[1], (unsigned short)arg[2]);
	case RULE_OPENAT:
		return eval_open(v, (int)arg[2], (unsigned short)arg[3]);
	case RULE_OPENAT2:
		return notice_if(v, true);
	case RULE_COUNT_:
		break;
	}
	abort();
}

uint32_t direct_eval(const struct family *f, const struct variant *v,
		     const struct seccomp_data *data)
{
	const struct sys_row *row;
	bool is_native = data->arch == f->native.audit_arch;

	if (!is_native && data->arch != f->compat.audit_arch)
		return SECCOMP_RET_KILL_PROCESS;
	if (!is_native && v->is_any_compat)
		return SECCOMP_RET_ALLOW;
	row = direct_row(is_native ? &f->native : &f->compat, (uint32_t)data->nr);
	if (row == NULL)
		return refuse(ENOSYS);
	if (v->is_any_args && row->rule >= RULE_FIRST_CHECK)
		return SECCOMP_RET_ALLOW;
	return eval_row(v, row->rule, data->args);
}
