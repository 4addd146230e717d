/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/files.c - who serves the files of a machine that can be saved
 *
 * One vitrine-files for each share, started by the process that has built the view and is about to become QEMU: so it lives in
 * the same mount namespace, with the same id, and dies with it. Its stream is a port of the machine; the keeper keeps a
 * connection, to have its table written down.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/loop.h"
#include "base/program.h"
#include "engine/vm/vm.h"
#include "files/wire.h"
#include "sys/packet.h"

#define SAVE_MS 30000

int vm_files_open(const struct plan *p, struct vm_files *f, struct err *e)
{
	int r = p->is_live ? program_find("vitrine-files", &f->program, e) : 0;

	if (r < 0 || !p->is_live)
		return r;
	f->n = vm_has_system(p) ? 2 : 1;
	for (size_t i = 0; i < f->n; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->guest[i]) < 0 ||
		    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->ctl[i]) < 0)
			return err_sys(e, "a connection for the machine's files");
	return 0;
}

void vm_files_done(struct vm_files *f)
{
	for (size_t i = 0; i < ARRAY_LEN(f->guest); i++) {
		for (int k = 0; k < 2; k++) {
			fd_close(f->guest[i][k]);
			fd_close(f->ctl[i][k]);
		}
		fd_close(f->table[i]);
	}
	free(f->program);
}

/* In the new process: nothing of the tool's but its complaints. */
static _Noreturn void become(const char *program, size_t i, const int at[3], const char *dir,
			     char *const *env)
{
	char root[4200];
	char *argv[] = { (char *)(uintptr_t) "vitrine-files", root,
			 at[2] >= 0 ? (char *)(uintptr_t)FILES_AGAIN : NULL, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[3];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(root, sizeof(root), "%s/view%s", dir, i == 0 ? "" : "/usr");
	for (int k = 0; k < 3; k++)
		high[k] = at[k] < 0 ? FD_NONE : fcntl(at[k], F_DUPFD_CLOEXEC, 32);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(125);
	for (int k = 0; k < 3; k++)
		if (high[k] >= 0 && dup2(high[k], FILES_FD_GUEST + k) < 0)
			_exit(125);
	(void)syscall(SYS_close_range, FILES_FD_GUEST + (at[2] >= 0 ? 3 : 2), ~0U, 0);
	(void)execve(program, argv, env);
	(void)fprintf(stderr, "cannot run '%s': %s\n", program, strerror(errno));
	_exit(127);
}

int vm_files_spawn(const struct vm_files *f, const char *program, const char *dir, char *const *env)
{
	for (size_t i = 0; i < f->n; i++) {
		int base = VM_FD_END_ + 3 * (int)i;
		int at[3] = { base, base + 1, f->table[i] >= 0 ? base + 2 : FD_NONE };
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (pid == 0)
			become(program, i, at, dir, env);
	}
	return syscall(SYS_close_range, VM_FD_END_, ~0U, 0) < 0 ? -errno : 0;
}

int vm_files_save(int ctl, int to, uint64_t *ret_lost, struct err *e)
{
	struct files_msg m = { .is_save = 1 };
	struct pollfd p = { .fd = ctl, .events = POLLIN };
	int fds[PACKET_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	int r = packet_send(ctl, &m, sizeof(m), &to, 1);

	if (r == 0 && poll(&p, 1, SAVE_MS) <= 0)
		r = -ETIMEDOUT;
	if (r == 0)
		r = packet_recv(ctl, &m, sizeof(m), fds) == 1 ? 0 : -EPIPE;
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "vitrine-files: %s", strerrordesc_np(-r));
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	*ret_lost += m.lost;
	return m.error ? err_set(e, ERR_SYSTEM, m.error, "%.199s", m.why) : 0;
}
