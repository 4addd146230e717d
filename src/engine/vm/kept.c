/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/kept.c - machines that were booted once
 *
 * A machine boots into our init, which loads its modules, opens the link's port and waits. At that moment nothing of
 * any sandbox is in it: no view, no plan, no secret. There it is kept: its memory as a file, its devices as another.
 * Every later start maps that memory for itself (what it writes is its own) and goes on from there, in a tenth of the
 * time; the first thing it hears is a seed of its own.
 *
 *     STATE/vm/KEY/{initrd,ram,state}
 *
 * The key is a hash of all that decides what a booted machine is: QEMU, kernel, modules, our own programs (by name, size
 * and time), and the words of the machine. Another key, another machine: nothing is ever changed in place. A folder appears
 * whole or not at all; the four that were used last are kept.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/sha256.h"
#include "engine/vm/vm.h"
#include "engine/vm/wake.h"

#define KEEP_AT_MOST 4
#define BOOT_SECONDS 120 /* in software, on a machine that has other things to do */
#define SAVE_SECONDS 60

/* ---- which one ---- */

static void add_file(struct buf *b, const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) < 0)
		st = (struct stat){ 0 };
	buf_printf(b, "%s %llu %llu %lld.%09ld\n", path, (unsigned long long)st.st_ino,
		   (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
		   st.st_mtim.tv_nsec);
}

/* As it is kept: where it lies is all that one of a kind has of its own. */
static void words_of(const struct vm_kind *kind, const char *dir, struct args *out)
{
	struct render_in in = { .plan = kind->plan,
				.tool = kind->tool,
				.dir = dir,
				.kernel = kind->kernel->image,
				.kept = dir,
				.is_virtiofs = kind->is_virtiofs };

	vm_words(&in, VM_KEEP, kind->is_emulated, out);
}

void vm_key_text(const struct vm_kind *kind, struct buf *b)
{
	_cleanup_(args_done) struct args words = { 0 };
	_free_ char *dep = mem_fmt("%s/modules.dep", kind->kernel->modules);

	words_of(kind, "", &words);
	args_print(&words, b);
	add_file(b, kind->tool);
	add_file(b, kind->kernel->image);
	add_file(b, dep);
	add_file(b, vm_init_of(kind->plan));
	add_file(b, "/proc/self/exe"); /* we lay out the archive it starts from */
}

char *vm_key(const struct vm_kind *kind)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	char hex[SHA256_HEX_BYTES];

	vm_key_text(kind, &b);
	sha256_hex(b.p, b.n, hex);
	hex[32] = '\0';
	return mem_str(hex);
}

/* ---- boot it ---- */

struct boot {
	pid_t pid;
	int link[2]; /* into its port and out of it; a port that nobody holds is a closed one */
	int monitor; /* ours */
};

/* `from`: input, output, complaints, monitor. */
static _Noreturn void become(const struct args *words, char *const *env, int from[4])
{
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setsid();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < 4; i++) {
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 16);
		if (from[i] < 0)
			_exit(125);
	}
	for (int i = 0; i < 4; i++)
		if (dup2(from[i], i) < 0) /* NOLINT(android-cloexec-dup): for the program */
			_exit(125);
	(void)syscall(SYS_close_range, 4, ~0U, 0);
	(void)execve(words->v[0], words->v, env);
	_exit(127);
}

static int boot(const struct args *words, char *const *env, const char *part, struct boot *ret,
		struct err *e)
{
	_free_ char *said = mem_fmt("%s/words", part);
	_close_ int complaints = open(said, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int in[2] = { FD_NONE, FD_NONE }, out[2] = { FD_NONE, FD_NONE },
	    monitor[2] = { FD_NONE, FD_NONE };

	if (complaints < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, monitor) < 0)
		return err_sys(e, "start a machine");
	*ret = (struct boot){ fork(), { in[1], out[0] }, monitor[0] };
	if (ret->pid == 0)
		become(words, env, (int[4]){ in[0], out[1], complaints, monitor[1] });
	fd_close(in[0]);
	fd_close(out[1]);
	fd_close(monitor[1]);
	return ret->pid < 0 ? err_sys(e, "fork") : 0;
}

static void boot_end(struct boot *b)
{
	if (b->pid > 0) {
		(void)kill(b->pid, SIGKILL); /* all of it is in the files, or it has failed */
		(void)waitpid(b->pid, NULL, 0);
	}
	fd_close(b->link[0]);
	fd_close(b->link[1]);
	fd_close(b->monitor);
}

static int wait_awake(const struct boot *b, const char *part, struct err *e)
{
	_cleanup_(buf_done) struct buf words = BUF(64 * KIB), shown = BUF(KIB);
	_free_ char *said = mem_fmt("%s/words", part);
	struct pollfd p = { .fd = b->link[1], .events = POLLIN };
	uint64_t deadline = clock_now() + BOOT_SECONDS * NS_PER_SEC;
	struct err ignored = ERR_INIT;
	char c = 0;

	while (clock_now() < deadline) {
		if (poll(&p, 1, 1000) <= 0)
			continue;
		if (io_read(b->link[1], &c, 1) == 1 && c == LINK_AWAKE)
			return 0;
		break;
	}
	if (io_read_file(said, &words, &ignored) == 0 && words.n > 0)
		buf_esc(&shown, words.p, strcspn(words.p, "\n"));
	return err_set(e, ERR_SYSTEM, EIO, "the guest's kernel did not come up%s%s",
		       shown.n ? ": " : "", buf_cstr(&shown));
}

static int save(const struct boot *b, const char *part, struct err *e)
{
	_cleanup_(qmp_done) struct qmp q = QMP(b->monitor);
	_free_ char *path = mem_fmt("%s/state", part);
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint64_t deadline = clock_now() + SAVE_SECONDS * NS_PER_SEC;
	int r;

	if (fd < 0)
		return err_sys(e, "'%s'", path);
	r = qmp_command(&q, "{\"execute\":\"qmp_capabilities\"}\n", FD_NONE, deadline, NULL, e);
	return r < 0 ? r : qmp_save(&q, fd, true, deadline, e);
}

/* Whoever copies it copies less. Where holes cannot be made it is as good without. */
static void thin(const char *part)
{
	_free_ char *path = mem_fmt("%s/ram", part);
	_close_ int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		(void)vm_ram_thin(fd);
}

static int make(const struct vm_kind *kind, const char *part, struct err *e)
{
	_cleanup_(args_done) struct args words = { 0 };
	_cleanup_(boot_end) struct boot b = { 0, { FD_NONE, FD_NONE }, FD_NONE };
	_free_ char *view = mem_fmt("%s/view/usr", part);
	int r = path_make(view, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", view, strerrordesc_np(-r));
	r = vm_initrd_write(kind->plan, kind->kernel, kind->is_virtiofs, part, e);
	words_of(kind, part, &words);
	if (r == 0)
		r = boot(&words, kind->plan->engine_env, part, &b, e);
	if (r == 0)
		r = wait_awake(&b, part, e);
	if (r == 0)
		r = save(&b, part, e);
	if (r == 0)
		thin(part);
	return r;
}

/* ---- keep it ---- */

static bool is_whole(const char *dir)
{
	_free_ char *state = mem_fmt("%s/state", dir);

	if (access(state, R_OK) < 0)
		return false;
	(void)utimensat(AT_FDCWD, dir, NULL, 0); /* used now: not the one to go */
	return true;
}

/* The one that was used longest ago, when there are more than enough; a machine that runs has its files still. */
static bool drop_oldest(int at)
{
	DIR *d = fdopendir(fcntl(at, F_DUPFD_CLOEXEC, 3));
	_free_ char *oldest = NULL;
	struct timespec when = { 0 };
	struct dirent *en;
	size_t n = 0;

	if (d == NULL)
		return false;
	rewinddir(d);
	while ((en = readdir(d)) != NULL) {
		struct stat st;

		if (en->d_name[0] == '.' || fstatat(at, en->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		n++;
		if (oldest == NULL || st.st_mtim.tv_sec < when.tv_sec) {
			free(oldest);
			oldest = mem_str(en->d_name);
			when = st.st_mtim;
		}
	}
	(void)closedir(d);
	return n > KEEP_AT_MOST && path_remove(at, oldest) == 0;
}

static int make_in_place(const struct vm_kind *kind, const char *dir, struct err *e)
{
	_free_ char *parent = path_parent(dir);
	_free_ char *part = mem_fmt("%s/.part", parent);
	_free_ char *lock_path = mem_fmt("%s/.lock", parent);
	_close_ int at = FD_NONE;
	_close_ int lock = FD_NONE;
	int r = path_make(parent, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", parent, strerrordesc_np(-r));
	at = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (at < 0 || lock < 0 || flock(lock, LOCK_EX) < 0)
		return err_sys(e, "'%s'", lock_path);
	if (is_whole(dir))
		return 0;               /* somebody else has, while we waited */
	(void)path_remove(at, ".part"); /* of one that was cut off; it holds no lock */
	r = make(kind, part, e);
	if (r == 0 && rename(part, dir) < 0)
		r = err_sys(e, "'%s'", dir);
	if (r < 0) {
		(void)path_remove(at, ".part");
		return err_wrap(e, r, "a machine to be kept");
	}
	for (int i = 0; i < 16 && drop_oldest(at); i++)
		;
	return 0;
}

int vm_keep(const struct vm_kind *kind, char **ret, struct err *e)
{
	const struct plan *p = kind->plan;
	const char *place = vm_word(p, "DIR");
	_free_ char *key = vm_key(kind);
	_free_ char *dir =
		place ? mem_fmt("%s/%s", place, key) : mem_fmt("%s/vm/%s", p->state_dir, key);
	int r = is_whole(dir) ? 0 : make_in_place(kind, dir, e);

	if (r == 0)
		*ret = take(dir);
	return r;
}
