/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/lock.c - the last doors, closed from the widest to the last, and then tried
 *
 * First what needs nothing but ourselves: the bounding set, no_new_privs (which the other two need) and the system call
 * filter, which is dear and is put on while somebody else still builds the view. The filter lets pass what is needed
 * after it, since every program may restrict itself further. Then, in the view, Landlock, and the capabilities go.
 * After that init can do no more than the commands it will start: they inherit all of it. Where the plan has a root inside
 * (enum root_kind) some of this is different, and every difference stands in a function of its own below.
 *
 * All calls are raw but the proof's: see mate.c.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"
#include "sys/filter/filter.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

/* ---- capabilities ---- */

static bool has_no_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	if (raw_call(SYS_capget, (long)&head, (long)d, 0, 0) < 0)
		return false;
	return !(d[0].effective | d[0].permitted | d[0].inheritable | d[1].effective |
		 d[1].permitted | d[1].inheritable);
}

static int set_self(int option, unsigned long value)
{
	return (int)raw_call5(SYS_prctl, option, (long)value, 0, 0, 0);
}

/* What a root inside may do, with files and processes whose ids are mapped: what a package manager needs. */
static const int root_caps[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
				 CAP_KILL,  CAP_SETGID,       CAP_SETUID };

/* What programs can get at most. */
static uint64_t caps_of(const struct plan *p)
{
	uint64_t set = 0;

	for (size_t i = 0; p->ids.root != ROOT_NONE && i < ARRAY_LEN(root_caps); i++)
		set |= BIT64(root_caps[i]);
	return set;
}

/* What init keeps: in a job all of it, which is handed on; else what it needs to signal processes of other ids. */
static uint64_t caps_of_init(const struct plan *p)
{
	if (p->ids.root == ROOT_SETUID)
		return BIT64(CAP_KILL);
	return caps_of(p);
}

static bool has_caps(uint64_t want)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	return raw_call(SYS_capget, (long)&head, (long)d, 0, 0) == 0 &&
	       (d[0].permitted | (uint64_t)d[1].permitted << 32) == want &&
	       (d[0].effective | (uint64_t)d[1].effective << 32) == want &&
	       (d[0].inheritable | d[1].inheritable) == 0;
}

/* Changing ids must give and take capabilities where there is a root inside, as it does everywhere else. */
static unsigned secure_bits(const struct plan *p)
{
	unsigned always = SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
			  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	return p->ids.root != ROOT_NONE
		       ? always
		       : always | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				 SECBIT_NO_SETUID_FIXUP_LOCKED;
}

/* What we have stays, but no program can get more than the plan says: none. */
static int bound_caps(const struct child *c)
{
	uint64_t kept = caps_of(c->plan);
	int r;

	/* Behind another engine's walls init may have none from the start, and then none to do this with. The next
	 * step, no_new_privs, sees to it that none comes back. */
	if (has_no_caps())
		return 0;
	/* No later change of ids may ever bring one back. */
	r = set_self(PR_SET_SECUREBITS, secure_bits(c->plan));
	if (r < 0 && !(c->has_own_kernel && r == -EINVAL))
		return r;
	for (int cap = 0; cap < 64; cap++) {
		r = kept & BIT64(cap) ? 0 : set_self(PR_CAPBSET_DROP, cap);
		if (r == -EINVAL && cap > 0)
			break; /* the kernel's last one is behind us */
		if (r < 0)
			return r;
	}
	return 0;
}

static int drop_caps(const struct child *c)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint64_t kept = caps_of_init(c->plan);
	struct __user_cap_data_struct set[2] = {
		{ .effective = (uint32_t)kept, .permitted = (uint32_t)kept },
		{ .effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32) }
	};
	int r;

	if (has_no_caps())
		return 0;
	r = set_self(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
	if (r < 0 && !(c->has_own_kernel && r == -EINVAL))
		return r;
	return (int)raw_call(SYS_capset, (long)&head, (long)set, 0, 0);
}

/* ---- Landlock ---- */

struct ruleset_attr { /* as of ABI 6; the kernel takes what it knows */
	uint64_t fs, net, scoped;
};

static const uint64_t access_read =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t access_file = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
				    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
				    LANDLOCK_ACCESS_FS_IOCTL_DEV;

/* What Landlock is asked about costs a walk from the file up to a rule, each time. Reading is asked at every open, which
 * makes an open half as dear again; truncation is looked up at every open as well; and making a file is asked once more
 * although the opening for writing, which is how files are made, is judged anyway. So unless the policy wants it
 * (features.check_reads), this second wall judges what puts something into a file, moves, removes or links one, makes
 * anything else, or runs a program. What can be read is what the view shows; a file is truncated only through a descriptor or
 * a mount that may be written; and all that could be made where nothing may be written is an empty file, were the
 * mounts not there to forbid it. */
static const uint64_t access_dear = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				    LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG;

static uint64_t handled_fs(unsigned abi, bool check_reads)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

	if (abi >= 2)
		all |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		all |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		all |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return check_reads ? all : all & ~access_dear;
}

static uint64_t rights_of(enum access_kind kind)
{
	switch (kind) {
	case ACCESS_READ:
		return access_read;
	case ACCESS_WRITE:
		return ~(uint64_t)(LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				   LANDLOCK_ACCESS_FS_IOCTL_DEV);
	case ACCESS_DEVICE:
		return LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		       LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_TRUNCATE |
		       LANDLOCK_ACCESS_FS_IOCTL_DEV;
	case ACCESS_PROC:
		return access_read | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
	case ACCESS_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return 0;
}

static int add_rule(int ruleset, const struct access *a, uint64_t handled)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights_of(a->kind) & handled };
	struct stat st = { 0 };
	long fd, r;

	if (rule.allowed_access == 0)
		return 0; /* nothing of it is judged, so nothing need be allowed */
	fd = raw_call(SYS_openat, AT_FDCWD, (long)a->path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return (int)fd;
	r = raw_call(SYS_fstat, fd, (long)&st, 0, 0); /* libc's struct is the kernel's */
	if (r == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= access_file;
	rule.parent_fd = (int)fd;
	if (r == 0 && rule.allowed_access != 0)
		r = raw_call(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
			     (long)&rule, 0);
	(void)raw_call(SYS_close, fd, 0, 0, 0);
	return (int)r;
}

static int restrict_files(struct child *c)
{
	const struct plan *p = c->plan;
	struct ruleset_attr attr = { .fs = handled_fs(p->landlock_abi, p->check_reads) };
	size_t size = p->landlock_abi >= 6 ? sizeof(attr) : p->landlock_abi >= 4 ? 16 : 8;
	long ruleset, r = 0;

	if (p->landlock_abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	ruleset = raw_call(SYS_landlock_create_ruleset, (long)&attr, (long)size, 0, 0);
	if (ruleset < 0)
		return (int)ruleset;
	for (size_t i = 0; r == 0 && i < p->n_access; i++) {
		(void)snprintf(c->where, sizeof(c->where), "landlock '%.120s'", p->access[i].path);
		r = add_rule((int)ruleset, &p->access[i], attr.fs);
	}
	if (r == 0)
		r = raw_call(SYS_landlock_restrict_self, ruleset, 0, 0, 0);
	(void)raw_call(SYS_close, ruleset, 0, 0, 0);
	return (int)r;
}

/* ---- system calls ---- */

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* With a listener, for the keeper (keep/notice.c). A kernel that does not know the second flag would let a signal take a
 * notice back that the keeper has read already: it gets the filter without one. So does a sandbox inside something that
 * has a listener of its own, of which there can be one only. */
static bool filter_with_notices(struct child *c)
{
	long fd = raw_call(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		(long)filter_get(c->plan->debug ? FILTER_DEBUG_NOTICE : FILTER_BASE_NOTICE), 0);

	if (fd < 0)
		return false;
	c->notices = (int)fd;
	return true;
}

static int filter_calls(struct child *c)
{
	const struct plan *p = c->plan;
	enum filter_kind kind = p->debug ? FILTER_DEBUG : p->may_suid ? FILTER_ROOT : FILTER_BASE;

#ifdef VITRINE_SABOTAGE
	if (sabotaged("seccomp"))
		return 0;
	if (sabotaged("seccomp-arch"))
		kind = FILTER_NOARCH;
	if (sabotaged("seccomp-args"))
		kind = FILTER_NOARGS;
	if (sabotaged("seccomp-arch") || sabotaged("seccomp-args"))
		c->wants_notices = false;
#endif
	if (c->wants_notices && filter_with_notices(c))
		return 0;
	return (int)raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)filter_get(kind), 0);
}

/* Set-user-id programs do nothing under no_new_privs. So where there is a root inside that they lead to, and nowhere else,
 * it is off; the bounding set is then what holds, and the filter and Landlock, which without it are for those only who
 * may administer the namespace, are put on before that is given up. */
static bool wants_nnp(const struct plan *p)
{
	return p->ids.root != ROOT_SETUID;
}

int lock_begin(struct child *c)
{
	int r = 0;

	if (!sabotaged("caps"))
		r = bound_caps(c);
	if (r == 0 && wants_nnp(c->plan) && !sabotaged("nnp"))
		r = set_self(PR_SET_NO_NEW_PRIVS, 1);
	return r < 0 ? r : filter_calls(c);
}

int lock_files(struct child *c)
{
	return c->plan->landlock_abi > 0 && !sabotaged("landlock") ? restrict_files(c) : 0;
}

int lock_end(struct child *c)
{
	int r = 0;

	if (!sabotaged("caps"))
		r = drop_caps(c);
	/* Changing credentials resets both of these, so they come last. Not dumpable: nothing inside may look into
	 * init or into a command that has not yet become itself. */
	if (r == 0 && !sabotaged("dumpable"))
		r = set_self(PR_SET_DUMPABLE, 0);
	if (r == 0 && !sabotaged("pdeathsig"))
		r = set_self(PR_SET_PDEATHSIG, 9 /* SIGKILL */);
	return r;
}

/* ---- the proof ---- */

/* Each attempt must be refused. EFAULT, EINVAL or success would mean that it reached the kernel proper. */
static bool is_refused(long r)
{
	return r < 0 &&
	       (errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EAFNOSUPPORT);
}

/* A file that must not come to be: of the root directory where /usr is the sandbox's own. */
static const char *forbidden_file(const struct plan *p)
{
	if (p->ids.root != ROOT_NONE)
		return "/.vitrine/proof";
	for (size_t i = 0; i < p->n_access; i++)
		if (p->access[i].kind == ACCESS_WRITE && str_eq(p->access[i].path, "/usr"))
			return "/etc/.vitrine-proof";
	return "/usr/.vitrine-proof";
}

/* Nothing inside can ever have a capability that the plan does not name. */
static bool is_bounded(const struct plan *p)
{
	uint64_t kept = caps_of(p);

	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (has < 0)
			return cap > 0; /* the kernel's last one is behind us */
		if (has && !(kept & BIT64(cap)))
			return false;
	}
	return true;
}

int lock_prove(const struct plan *p, char *where, size_t size)
{
	const char *open_door = NULL;
	int fd;

	if (p->ids.root == ROOT_NONE ? !has_no_caps() : !has_caps(caps_of_init(p)))
		open_door = "capabilities are left";
	else if (p->ids.root != ROOT_NONE && !is_bounded(p))
		open_door = "capabilities can be had";
	else if (wants_nnp(p) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		open_door = "no_new_privs is off";
	else if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		open_door = "no system call filter";
	else if (!is_refused(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		open_door = "mount works";
	else if (!is_refused(syscall(SYS_unshare, CLONE_NEWUSER)))
		open_door = "a new user namespace can be made";
	else if (!is_refused(syscall(SYS_bpf, 0, 0, 0)))
		open_door = "bpf works";
	else if (!is_refused(syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0)))
		open_door = "vsock works";
	else if (!is_refused(syscall(SYS_ioctl, -1, (1UL << 32) | TIOCSTI, 0)))
		open_door = "TIOCSTI works";
	if (open_door == NULL) {
		fd = open(forbidden_file(p), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0 || (errno != EROFS && errno != EACCES && errno != EPERM))
			open_door = "the system can be written";
		fd_close(fd);
	}
	if (open_door == NULL)
		return 0;
	(void)snprintf(where, size, "%s", open_door);
	return -EPERM;
}
