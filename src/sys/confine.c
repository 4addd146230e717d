/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine.c - see confine.h
 *
 * The filter is a list of numbers laid out at run time: load the number, compare with each, allow; the kernel caches
 * the outcome for numbers that need no look at arguments, so the length of the list costs nothing. Arguments are
 * looked at for three calls: mmap and mprotect (nothing executable) and socket (TCP and UDP only).
 */
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "sys/confine.h"
#include "sys/confine_put.h"

static const int always[] = {
	SYS_read,         SYS_write,          SYS_readv,           SYS_writev,      SYS_recvfrom,
	SYS_sendto,       SYS_recvmsg,        SYS_sendmsg,         SYS_close,       SYS_shutdown,
	SYS_epoll_ctl,    SYS_epoll_pwait,    SYS_ppoll,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
	SYS_getsockname,  SYS_getpeername,    SYS_getsockopt,      SYS_setsockopt,  SYS_pread64,
	SYS_lseek,        SYS_fstat,          SYS_clock_gettime,   SYS_getrandom,   SYS_brk,
	SYS_munmap,       SYS_mremap,         SYS_madvise,         SYS_mlock,       SYS_futex,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction,    SYS_sigaltstack, SYS_getpid,
	SYS_gettid,       SYS_tgkill,         SYS_restart_syscall, SYS_exit,        SYS_exit_group,
};

static void put_allow(struct prog *p, int nr)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
	put_return(p, SECCOMP_RET_ALLOW);
}

/* Memory, but nothing in it that could be run. */
static void put_memory(struct prog *p, int nr)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)nr);
	put_load(p, offsetof(struct seccomp_data, args[2]));
	put(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC);
	put_return(p, DENY);
	put_return(p, SECCOMP_RET_ALLOW);
}

/* socket(): AF_INET and AF_INET6, stream and datagram. */
static void put_socket(struct prog *p)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 9, SYS_socket);
	put_load(p, offsetof(struct seccomp_data, args[0]));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, AF_INET6);
	put_load(p, offsetof(struct seccomp_data, args[1]));
	put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xff);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOCK_STREAM);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SOCK_DGRAM);
	put_return(p, SECCOMP_RET_ALLOW);
	put_return(p, DENY);
}

static int filter_calls(unsigned promises)
{
	struct prog p = { .n = 0 };

	put_load(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
	put_return(&p, SECCOMP_RET_KILL_PROCESS);
	put_load(&p, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		put_allow(&p, always[i]);
	put_memory(&p, SYS_mmap);
	put_load(&p, offsetof(struct seccomp_data, nr));
	put_memory(&p, SYS_mprotect);
	put_load(&p, offsetof(struct seccomp_data, nr));
	if (promises & CONFINE_ACCEPT)
		put_allow(&p, SYS_accept4);
	if (promises & CONFINE_LISTEN) {
		put_allow(&p, SYS_bind);
		put_allow(&p, SYS_listen);
	}
	if (promises & CONFINE_CONNECT) {
		put_allow(&p, SYS_connect);
		put_socket(&p);
	}
	put_return(&p, DENY);
	return put_on(&p);
}

/* Nothing of the file system, nobody else to signal. A kernel without Landlock leaves this to the filter, which knows
 * no open() either. */
static int restrict_files(void)
{
	struct {
		uint64_t fs, net, scoped;
	} attr = { .fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1 };
	int abi =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	size_t size = abi >= 6 ? sizeof(attr) : sizeof(attr.fs);
	_close_ int fd = FD_NONE;

	if (abi < 1)
		return 0;
	if (abi >= 6)
		attr.scoped = 3;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return -errno;
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

int confine(unsigned promises, struct err *e)
{
	int r = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "prctl");
	r = restrict_files();
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "landlock: %s", strerrordesc_np(-r));
	if (sabotaged("gate-confine"))
		return 0;
	r = filter_calls(promises);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "seccomp: %s", strerrordesc_np(-r)) : 0;
}

/* ---- the proof ---- */

static bool is_refused(long r)
{
	if (r >= 0 && r != FD_NONE)
		fd_close((int)r);
	return r < 0 && (errno == EPERM || errno == EACCES);
}

/* What only some promises allow. */
static const char *socket_door(unsigned promises)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };

	if (!(promises & CONFINE_CONNECT) &&
	    !is_refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)))
		return "socket";
	if (!(promises & CONFINE_CONNECT) &&
	    !is_refused(connect(-1, (const struct sockaddr *)&sa, sizeof(sa))))
		return "connect";
	if (!(promises & CONFINE_LISTEN) &&
	    !is_refused(bind(-1, (const struct sockaddr *)&sa, sizeof(sa))))
		return "bind";
	if (!(promises & CONFINE_LISTEN) && !is_refused(listen(-1, 1)))
		return "listen";
	if (!(promises & CONFINE_ACCEPT) &&
	    !is_refused(syscall(SYS_accept4, -1, NULL, NULL, SOCK_CLOEXEC)))
		return "accept";
	return NULL;
}

int confine_prove(unsigned promises, struct err *e)
{
	const char *door = NULL;
	char *const none[] = { NULL };

	if (sabotaged("gate-confine"))
		return 0;
	if (!is_refused(open("/", O_RDONLY | O_CLOEXEC)))
		door = "open";
	else if (!is_refused(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0)))
		door = "openat2";
	else if (!is_refused(execve("/nonexistent", none, none)))
		door = "execve";
	/* A thread without its like: no kernel makes one. */
	else if (!is_refused(syscall(SYS_clone, 0x00010000UL, 0, 0, 0, 0)))
		door = "clone";
	else if (!is_refused(syscall(SYS_kill, 1, 0)))
		door = "kill";
	else if (!is_refused(syscall(SYS_ptrace, 0, 0, 0, 0)))
		door = "ptrace";
	else if (!is_refused(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)))
		door = "unix sockets";
	else if (!is_refused(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)))
		door = "netlink";
	else if (!is_refused(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1)))
		door = "raw sockets";
	else if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		 MAP_FAILED)
		door = "executable memory";
	else
		door = socket_door(promises);
	return door ? err_set(e, ERR_BUG, EPERM, "%s works where it must not", door) : 0;
}
