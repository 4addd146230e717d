/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/share.c - virtiofsd, where a machine's files are to be served by it and not by QEMU
 *
 * Started by the process that has built the view and is about to become QEMU, so it lives in the same namespaces, with the
 * same id. It locks itself in: namespaces of its own with the view for a root, its system call filter, and of the
 * capabilities that it needs for that (of a user namespace with one id in it) none are left afterwards.
 *
 *     QEMU ── watcher ── virtiofsd        for each share; each dies with the one before it, and the first with the last
 *
 * A machine whose files are gone would hang for ever, so when virtiofsd ends the watcher ends QEMU, and that is the end of the
 * sandbox as the keeper knows it.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "engine/vm/vm.h"

#define FD_LISTEN 3 /* virtiofsd's */

/* The system's places: QEMU's own of old, the one that has been on its own since. */
static const char *const places[] = { "/usr/local/libexec/virtiofsd", "/usr/libexec/virtiofsd",
				      "/usr/lib/virtiofsd",           "/usr/lib/qemu/virtiofsd",
				      "/usr/local/bin/virtiofsd",     "/usr/bin/virtiofsd" };

enum vm_share vm_share_said(const char *word)
{
	if (word == NULL || str_eq(word, "auto"))
		return VM_SHARE_AUTO;
	return str_eq(word, "virtiofs") ? VM_SHARE_VIRTIOFS
	       : str_eq(word, "9p")     ? VM_SHARE_9P
					: VM_SHARE_COUNT_;
}

static char *find(const struct plan *p)
{
	const char *named = vm_word(p, "VIRTIOFSD");

	if (named)
		return access(named, X_OK) == 0 ? mem_str(named) : NULL;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return mem_str(places[i]);
	return NULL;
}

int vm_share_find(const struct plan *p, const struct vm_kernel *k, char **ret, struct err *e)
{
	const char *word = vm_word(p, "SHARE");
	enum vm_share share = vm_share_said(word);
	_free_ char *program = NULL;

	if (share == VM_SHARE_COUNT_)
		return err_set(e, ERR_USAGE, EINVAL,
			       "VITRINE_VM_SHARE is '9p', 'virtiofs' or 'auto', not '%.40s'", word);
	/* What it makes has the guest's id for an owner, and a root's there is none here. */
	if (share == VM_SHARE_VIRTIOFS && p->has_containers)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "engine '%s' cannot honour: containers inside with files by "
			       "virtiofs; 9p can",
			       p->engine);
	if (share == VM_SHARE_VIRTIOFS && p->is_live)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "engine '%s' cannot honour: --live with files by virtiofs; without "
			       "it vitrine-files serves them",
			       p->engine);
	if (share == VM_SHARE_9P || p->has_containers || p->is_live)
		return 0;
	if (share == VM_SHARE_AUTO && !vm_kernel_has(k, "virtiofs"))
		return 0;
	program = find(p);
	if (program == NULL && share == VM_SHARE_VIRTIOFS)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "engine '%s': there is no virtiofsd here; VITRINE_VM_VIRTIOFSD may "
			       "name one, and VITRINE_VM_SHARE=9p does without",
			       p->engine);
	*ret = take(program);
	return 0;
}

/* ---- in the process that becomes the machine ---- */

/* One connection, made before anybody else could: the socket's place is ours alone, and then no more. */
static int connect_own(const char *dir, int *ret_listen)
{
	_close_ int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_close_ int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	/* A path of any length, where the address has room for a hundred bytes. */
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/files", at);
	if (at < 0 || listening < 0 || fd < 0 ||
	    bind(listening, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
	    listen(listening, 1) < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
	    unlinkat(at, "files", 0) < 0)
		return -errno;
	*ret_listen = take_fd(listening);
	return take_fd(fd);
}

/* Of our user namespace, in which there is one id: what its own sandbox is made with. Kept through the exec. */
static int keep_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[2] = { { 0 } };

	if (syscall(SYS_capget, &head, set) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		set[i].inheritable = set[i].permitted;
	if (syscall(SYS_capset, &head, set) < 0)
		return -errno;
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	return 0;
}

/* The one that comes with QEMU gives up its supplementary groups, which nobody may in a user namespace of one id, and does
 * not start when it cannot. It is told that it could: it keeps what QEMU has too when it serves the files itself. */
static int excuse_groups(void)
{
	struct sock_filter calls[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setgroups, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = { .len = ARRAY_LEN(calls), .filter = calls };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) < 0)
		return -errno;
	return 0;
}

/* Words that the virtiofsd of QEMU and the one after it both know. */
static _Noreturn void become(const char *program, const char *dir, size_t i, int listening,
			     char *const *env)
{
	/* As with 9p: of /usr, which is read-only, the guest may remember what it has read. */
	static const struct {
		const char *place, *cache;
	} shares[VM_SHARES] = { { "/view", "auto" }, { "/view/usr", "always" } };
	char options[4400], fd[16];
	char *const argv[] = { (char *)(uintptr_t) "virtiofsd",
			       fd,
			       (char *)(uintptr_t) "-f",
			       (char *)(uintptr_t) "--rlimit-nofile=0",
			       (char *)(uintptr_t) "-o",
			       options,
			       NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(fd, sizeof(fd), "--fd=%d", FD_LISTEN);
	(void)snprintf(options, sizeof(options),
		       "source=%s%s,cache=%s,sandbox=namespace,announce_submounts,xattr,log_level="
		       "err,"
		       "modcaps=-chown:-dac_override:-fowner:-fsetid:-setgid:-setuid:-mknod:-"
		       "setfcap",
		       dir, shares[i].place, shares[i].cache);
	/* Out of the way first: the three numbers may be anybody's. */
	listening = fcntl(listening, F_DUPFD_CLOEXEC, 32);
	if (null < 0 || listening < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(listening, FD_LISTEN) < 0 || syscall(SYS_close_range, FD_LISTEN + 1, ~0U, 0) < 0 ||
	    keep_caps() < 0 || excuse_groups() < 0)
		_exit(125);
	(void)execve(program, argv, env);
	(void)fprintf(stderr, "cannot run '%s': %s\n", program, strerror(errno));
	_exit(127);
}

static _Noreturn void watch(const char *program, const char *dir, size_t i, int listening,
			    char *const *env)
{
	int machine = (int)syscall(SYS_pidfd_open, getppid(), 0);
	pid_t pid;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid = machine < 0 ? -1 : fork();
	if (pid == 0)
		become(program, dir, i, listening, env);
	/* The link and the words are not ours to hold open. */
	if (pid > 0) {
		(void)dup2(machine, 0);
		(void)syscall(SYS_close_range, 1, ~0U, 0);
		machine = 0;
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)syscall(SYS_pidfd_send_signal, machine, SIGKILL, NULL, 0); /* or it is dead already */
	_exit(0);
}

static int spawn_one(const char *program, const char *dir, size_t i, char *const *env)
{
	_close_ int listening = FD_NONE;
	_close_ int fd = connect_own(dir, &listening);
	pid_t pid;

	if (fd < 0)
		return fd;
	pid = fork();
	if (pid == 0)
		watch(program, dir, i, listening, env);
	if (pid < 0 ||
	    dup2(fd, VM_FD_SHARE + (int)i) < 0) /* NOLINT(android-cloexec-dup): for the program */
		return -errno;
	return 0;
}

int vm_share_spawn(const char *program, const char *dir, size_t n_shares, char *const *env)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_shares; i++)
		r = spawn_one(program, dir, i, env);
	return r;
}
