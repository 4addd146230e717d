/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine_program.c - walls for a child that is about to become somebody else's program
 *
 * Three of them, in this order: a Landlock domain (files by place, TCP by port where the kernel knows ports, and no signal
 * or abstract socket to anybody outside), the system calls that a sandbox may use (sys/filter), and a second, short filter
 * for the network. That one exists because Landlock knows TCP alone: datagrams, unix sockets and listeners are its
 * business. Everything the program starts inherits all three. Between fork and exec nothing is allocated.
 */
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "sys/confine.h"
#include "sys/confine_put.h"
#include "sys/filter/filter.h"

/* ---- places and ports ---- */

#define ALL_FS_1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define FS_REFER (1ULL << 13)
#define FS_TRUNCATE (1ULL << 14)
#define FS_LOOK                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_OF_FILES                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
/* Newer than the headers of the hosts we build on. */
#define ABI_NET 4
#define ABI_SCOPE 6
#define NET_BIND_TCP 1ULL
#define NET_CONNECT_TCP 2ULL
#define RULE_NET_PORT 2
#define SCOPE_ALL 3ULL
#define PORT_DNS 53

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct port_attr {
	uint64_t access, port;
};

static int allow_beneath(int ruleset, const char *path, uint64_t access)
{
	_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

static int allow_port(int ruleset, uint16_t port)
{
	struct port_attr rule = { .access = NET_CONNECT_TCP, .port = port };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

/* Which ports TCP may go to; CONFINE_ONLINE leaves that to the program. */
static int allow_ports(int ruleset, const struct confine_program *c)
{
	int r = c->net == CONFINE_WEB ? allow_port(ruleset, PORT_DNS) : 0;

	for (size_t i = 0; r == 0 && c->net == CONFINE_WEB && i < CONFINE_PORTS && c->ports[i]; i++)
		r = allow_port(ruleset, c->ports[i]);
	return r;
}

static int make_ruleset(const struct confine_program *c, int abi, uint64_t all)
{
	struct ruleset_attr attr = { .fs = all };
	size_t size = abi >= ABI_SCOPE ? sizeof(attr)
		      : abi >= ABI_NET ? offsetof(struct ruleset_attr, scoped)
				       : offsetof(struct ruleset_attr, net);

	if (abi >= ABI_NET && c->net < CONFINE_ONLINE && !sabotaged("broker-net"))
		attr.net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (abi >= ABI_SCOPE && (c->net != CONFINE_FREE || c->is_alone))
		attr.scoped = SCOPE_ALL;
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

static int restrict_places(const struct confine_program *c, struct err *e)
{
	int abi =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t all = ALL_FS_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0);
	_close_ int fd = FD_NONE;
	int r = 0;

	if (sabotaged("broker-confine"))
		return 0;
	if (abi < 1)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "this kernel has no Landlock, so nothing is run in a confined "
			       "child");
	fd = make_ruleset(c, abi, all);
	if (fd < 0)
		return err_sys(e, "landlock");
	for (const char *const *v = c->read; r == 0 && *v; v++)
		r = allow_beneath(fd, *v, FS_LOOK);
	for (const char *const *v = c->write; r == 0 && *v; v++)
		r = allow_beneath(fd, *v, all);
	if (r == 0 && abi >= ABI_NET && !sabotaged("broker-net"))
		r = allow_ports(fd, c);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "landlock: %s", strerrordesc_np(-r)) : 0;
}

/* ---- the network ---- */

static void put_deny(struct prog *p, int nr)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
	put_return(p, DENY);
}

/* The families a program may have sockets of. Netlink is how the C library asks which addresses this host has. */
static size_t families(enum confine_net net, int v[static 4])
{
	size_t n = 0;

	if (net == CONFINE_OFFLINE)
		return 0;
	v[n++] = AF_INET;
	v[n++] = AF_INET6;
	v[n++] = AF_NETLINK;
	if (net == CONFINE_ONLINE)
		v[n++] = AF_UNIX; /* the ssh agent */
	return n;
}

static void put_sockets(struct prog *p, enum confine_net net)
{
	int v[4];
	size_t n = families(net, v);

	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(2 * n + 2), SYS_socket);
	put_load(p, offsetof(struct seccomp_data, args[0]));
	for (size_t i = 0; i < n; i++) {
		put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)v[i]);
		put_return(p, SECCOMP_RET_ALLOW);
	}
	put_return(p, DENY);
}

/* Nobody waits for connections; who is offline makes none either. One calling convention, or its numbers mean nothing. */
static int filter_network(enum confine_net net)
{
	struct prog p = { .n = 0 };

	put_load(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
	put_return(&p, DENY);
	put_load(&p, offsetof(struct seccomp_data, nr));
	put_deny(&p, SYS_listen);
	put_deny(&p, SYS_accept4);
#ifdef SYS_accept
	put_deny(&p, SYS_accept);
#endif
	if (net == CONFINE_OFFLINE) {
		put_deny(&p, SYS_connect);
		put_deny(&p, SYS_bind);
	}
	put_sockets(&p, net);
	put_return(&p, SECCOMP_RET_ALLOW);
	return put_on(&p);
}

static int restrict_calls(enum confine_net net)
{
	if (net == CONFINE_FREE || sabotaged("broker-net"))
		return 0;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter_get(FILTER_BASE)) < 0)
		return -errno;
	return filter_network(net);
}

int confine_program(const struct confine_program *c, struct err *e)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "prctl");
	r = restrict_places(c, e);
	if (r < 0)
		return r;
	r = restrict_calls(c->net);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "seccomp: %s", strerrordesc_np(-r)) : 0;
}
