/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_confine.c - what vitrine-link may still ask of the kernel once it reads from inside
 *
 * Reading, writing, waiting, memory, passing descriptors to the keeper and the gate, and socket pairs to pass. Nothing that
 * opens, connects, starts or signals: taken over by what it decodes, it can lie to its keeper about its own sandbox
 * and nothing else.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "remote/outer.h"
#include "sys/confine.h"

static const int allowed[] = {
	SYS_read,          SYS_write,        SYS_close,
	SYS_ppoll,         SYS_recvmsg,      SYS_sendmsg,
	SYS_mmap,          SYS_munmap,       SYS_mremap,
	SYS_brk,           SYS_madvise,      SYS_fcntl,
	SYS_fstat,         SYS_newfstatat,   SYS_pread64,
	SYS_clock_gettime, SYS_socketpair,   SYS_exit_group,
	SYS_exit,          SYS_rt_sigreturn, SYS_restart_syscall,
	SYS_getpid,        SYS_futex,        SYS_shutdown,
#ifdef SYS_poll
	SYS_poll,
#endif
};

int link_confine(void)
{
	if (sabotaged("link") || sabotaged("link-gate"))
		return 0;
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return confine_calls(allowed, ARRAY_LEN(allowed));
}
