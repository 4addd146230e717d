/* SPDX-License-Identifier: Apache-2.0 */
/* sys/host.c - the list of checks, and what each failure means to the person before the screen
 *
 * Two kinds: attempts (host_try.c), where the kernel itself answers, and looks at files and the environment, for
 * what cannot be tried. checks[] is the order of the output. A fix is a command or a setting, not advice.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/path.h"
#include "sys/cgroup.h"
#include "sys/host.h"
#include "sys/host_try.h"
#include "sys/lasting.h"
#include "sys/scope.h"

#define SET(field, ...) ((void)snprintf((field), sizeof(field), __VA_ARGS__))

static const char *const state_names[HOST_STATE_COUNT_] = {
	[HOST_WORKS] = "works",
	[HOST_WEAKER] = "weaker",
	[HOST_MISSING] = "missing",
};

const char *host_state_name(enum host_state state)
{
	bug_on(state >= HOST_STATE_COUNT_);
	return state_names[state];
}

unsigned host_kernel(void)
{
	struct utsname u;
	unsigned part[2] = { 0, 0 };
	const char *s = u.release;

	if (uname(&u) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		for (; *s >= '0' && *s <= '9' && part[i] < 10000; s++)
			part[i] = part[i] * 10 + (unsigned)(*s - '0');
		s += *s == '.';
	}
	return HOST_KERNEL(part[0], part[1]);
}

/* --- small looks --- */

/* The first line of a file without its end, or `otherwise`. */
static char *first_line(const char *path, const char *otherwise)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err ignored = ERR_INIT;

	if (io_read_file(path, &b, &ignored) < 0)
		return mem_str(otherwise);
	return mem_strn(buf_cstr(&b), strcspn(buf_cstr(&b), "\n"));
}

static bool file_says(const char *path, const char *line)
{
	_free_ char *got = first_line(path, "");

	return str_eq(got, line);
}

/* Where a program is, as the shell would find it; NULL when nowhere. */
static char *find_program(const char *name)
{
	const char *s = getenv("PATH");

	if (s == NULL)
		s = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
	while (*s) {
		size_t n = strcspn(s, ":");
		_free_ char *dir = mem_strn(s, n);
		_free_ char *path = mem_fmt("%s/%s", dir, name);
		struct stat st;

		if (*dir == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0)
			return take(path);
		s += n + (s[n] == ':');
	}
	return NULL;
}

/* Fills a check from an attempt; true when it worked. */
static bool judge(struct host_check *c, const struct attempt *a, const char *good)
{
	if (a->num == 0) {
		SET(c->detail, "%s", good);
		return true;
	}
	c->state = HOST_MISSING;
	if (a->num == ETIMEDOUT || a->num == ECHILD)
		SET(c->detail, "%s", a->step);
	else
		SET(c->detail, "%s: %s", a->step,
		    strerrordesc_np(a->num) ? strerrordesc_np(a->num) : "unknown error");
	return false;
}

static void fix_kernel(struct host_check *c, const struct attempt *a, const char *since)
{
	if (a->num == ENOSYS || a->num == EINVAL)
		SET(c->fix,
		    "a kernel of version %s or later, and a container runtime that lets the call "
		    "through",
		    since);
	else
		SET(c->fix, "allow it in the filter of the container or service that this runs in");
}

/* --- the kernel --- */

static void check_kernel(struct host_check *c)
{
	struct utsname u = { 0 };

	(void)uname(&u);
	SET(c->detail, "%.64s %.64s on %.32s", u.sysname, u.release, u.machine);
	if (host_kernel() >= HOST_KERNEL(5, 13))
		return;
	c->state = HOST_WEAKER;
	SET(c->fix, "Linux 5.13 or later");
}

static const char apparmor_knob[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
static const char debian_knob[] = "/proc/sys/kernel/unprivileged_userns_clone";
static const char max_knob[] = "/proc/sys/user/max_user_namespaces";

/* "NAME (enforce)" is a profile that somebody wrote for us. */
static bool is_in_profile(char *ret, size_t size)
{
	_free_ char *label = first_line("/proc/self/attr/apparmor/current", "");
	char *mode = strstr(label, " (enforce)");

	if (mode == NULL)
		return false;
	(void)snprintf(ret, size, "%.*s", (int)(mode - label), label);
	return true;
}

/* Which of the known switches keeps us from a user namespace. */
static void fix_namespaces(struct host_check *c)
{
	char profile[80];

	if (is_in_profile(profile, sizeof(profile)))
		SET(c->fix, "the AppArmor profile '%s' around this program must allow 'userns,'",
		    profile);
	else if (file_says(max_knob, "0"))
		SET(c->fix, "sudo sysctl -w user.max_user_namespaces=15000");
	else if (geteuid() != 0 && file_says(debian_knob, "0"))
		SET(c->fix, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	else if (geteuid() != 0 && file_says(apparmor_knob, "1"))
		SET(c->fix, "load the AppArmor profile: sudo make install && sudo apparmor_parser "
			    "-r "
			    "/etc/apparmor.d/vitrine (in a source tree: tools/deps --yes)");
	else
		SET(c->fix, "allow user namespaces; in a container: --security-opt "
			    "seccomp=unconfined "
			    "--security-opt apparmor=unconfined");
}

static void check_namespaces(struct host_check *c)
{
	struct attempt a = try_in_child(try_private_mounts, true);

	if (!judge(c, &a, "user, mount, pid, ipc, uts, cgroup and net, made and used"))
		fix_namespaces(c);
}

static void check_proc(struct host_check *c)
{
	struct attempt a = try_in_child(try_proc, true);

	if (!judge(c, &a, "a fresh one, showing only what is inside"))
		SET(c->fix, "in a container: --security-opt systempaths=unconfined (parts of the "
			    "outer /proc are masked)");
}

static void check_mount_api(struct host_check *c)
{
	struct attempt a = try_in_child(try_mount_api, true);

	if (!judge(c, &a, "open_tree, mount_setattr, move_mount, fsopen"))
		fix_kernel(c, &a, "5.12");
}

static void check_landlock(struct host_check *c)
{
	struct attempt a = try_in_child(try_landlock, false);

	if (!judge(c, &a, "")) {
		SET(c->fix, "boot with \"landlock\" in lsm= (see /sys/kernel/security/lsm), Linux "
			    "5.13 or later");
		return;
	}
	SET(c->detail, "ABI %llu", (unsigned long long)a.value);
	if (a.value < 3) {
		c->state = HOST_WEAKER;
		SET(c->detail,
		    "ABI %llu: truncating is not covered by this second wall (it is by the first)",
		    (unsigned long long)a.value);
		SET(c->fix, "Linux 6.2 or later");
	}
}

static void check_seccomp(struct host_check *c)
{
	struct attempt a = try_in_child(try_seccomp, false);

	if (!judge(c, &a, "a filter was installed and obeyed"))
		fix_kernel(c, &a, "3.17");
}

static void check_notify(struct host_check *c)
{
	struct attempt a = try_in_child(try_seccomp_notify, false);

	if (judge(c, &a, "calls can be watched from outside"))
		return;
	if (a.num == EBUSY)
		SET(c->fix, "run outside of the container whose runtime listens already");
	else
		fix_kernel(c, &a, "5.0");
}

static void check_redirect(struct host_check *c)
{
	struct attempt a = try_in_child(try_redirect, true);

	if (judge(c, &a,
		  a.value ? "programs that know no proxy reach the gate too"
			  : "programs that know no proxy reach the gate too (IPv4 only)"))
		return;
	/* Proxy variables and SOCKS still lead to the gate. */
	c->state = HOST_WEAKER;
	SET(c->fix, "a kernel with nf_tables and nft_tproxy; until then programs that do not use "
		    "the "
		    "proxy variables get through the gate at listed ports only");
}

static void check_openat2(struct host_check *c)
{
	struct attempt a = try_in_child(try_openat2, false);

	if (!judge(c, &a, "paths can be opened without following links"))
		fix_kernel(c, &a, "5.6");
}

static void check_clone3(struct host_check *c)
{
	struct attempt a = try_in_child(try_clone3, false);

	if (!judge(c, &a, "processes can be started straight into their walls"))
		fix_kernel(c, &a, "5.5");
}

static void check_pidfd(struct host_check *c)
{
	struct attempt a = try_in_child(try_pidfd, false);

	if (!judge(c, &a, "processes can be held, signalled and awaited without races"))
		fix_kernel(c, &a, "5.4");
}

static void check_overlay(struct host_check *c)
{
	struct attempt a = try_in_child(try_overlay, true);

	if (!judge(c, &a, "layers can be stacked in a user namespace"))
		fix_kernel(c, &a, "5.11");
}

static void check_fuse(struct host_check *c)
{
	struct attempt a = try_in_child(try_fuse, true);

	if (judge(c, &a,
		  "the workspace's .git is served by name: no moment in which what the host "
		  "replaces lies bare"))
		return;
	c->state = HOST_WEAKER;
	SET(c->detail,
	    "%.24s: %.40s; .git is masked: what the host replaces lies bare for a moment, then it "
	    "is put right",
	    a.step, strerrordesc_np(a.num));
	SET(c->fix, a.num == EACCES ? "let this account open /dev/fuse (most distributions do: "
				      "chmod 666)"
				    : "a kernel with FUSE (modprobe fuse)");
}

/* An ordinary user's files keep their owner and need no mapping. */
static void check_idmap(struct host_check *c)
{
	struct attempt a;

	if (geteuid() != 0) {
		c->is_needed = false;
		SET(c->detail, "not needed: files keep your own id");
		return;
	}
	a = try_in_child(try_idmap, false);
	if (!judge(c, &a, "owners of files can be mapped on this file system"))
		SET(c->fix, "a file system that can do it (ext4, xfs, btrfs, tmpfs, ...), or run "
			    "as an ordinary user");
}

static void check_cgroup(struct host_check *c)
{
	_cleanup_(buf_done) struct buf have = BUF(KIB), lack = BUF(KIB);
	struct cgroup_host h;
	bool asks;

	cgroup_probe(&h);
	asks = h.version == CGROUP_V2 && !(h.usable & BIT(CG_IO)) && scope_can_ask();
	if (asks)
		scope_probe(&h);
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		struct buf *list = h.usable & BIT(i) ? &have : &lack;

		/* v2 counts CPU time without a controller. */
		if (!(i == CG_CPUACCT && h.version == CGROUP_V2))
			buf_printf(list, "%s%s", list->n ? ", " : "", cgroup_ctl_name(i));
	}
	SET(c->detail, "version %d%s: %s%s%s", (int)h.version,
	    asks && h.usable ? ", asked of systemd" : "", have.n ? buf_cstr(&have) : "none usable",
	    have.n && lack.n ? "; not " : "", have.n ? buf_cstr(&lack) : "");
	if (h.version == CGROUP_NONE)
		SET(c->detail, "none in view");
	if ((h.usable & BIT(CG_MEMORY)) && (h.usable & BIT(CG_CPU)) && (h.usable & BIT(CG_PIDS)))
		return;
	c->state = HOST_WEAKER;
	SET(c->fix, "%s", *h.why ? h.why : "a kernel with the memory, cpu and pids controllers");
}

static void check_pid_max(struct host_check *c)
{
	struct attempt a = try_in_child(try_pid_max, true);

	if (judge(c, &a, "each sandbox has its own"))
		return;
	/* There is RLIMIT_NPROC still, so a limit is enforced, though per user and not per sandbox. */
	c->state = HOST_WEAKER;
	SET(c->fix, "Linux 6.14 or later, or control groups");
}

static void limit_text(char *out, size_t size, rlim_t v)
{
	if (v == RLIM_INFINITY)
		(void)snprintf(out, size, "unlimited");
	else
		(void)snprintf(out, size, "%llu", (unsigned long long)v);
}

static void check_rlimits(struct host_check *c)
{
	struct rlimit files = { 0 }, procs = { 0 };
	char files_text[24], procs_text[24];

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || getrlimit(RLIMIT_NPROC, &procs) < 0)
		c->state = HOST_WEAKER;
	limit_text(files_text, sizeof(files_text), files.rlim_max);
	limit_text(procs_text, sizeof(procs_text), procs.rlim_max);
	SET(c->detail, "hard limits: %s open files, %s processes", files_text, procs_text);
	if (files.rlim_max < 4096) {
		c->state = HOST_WEAKER;
		SET(c->fix, "raise LimitNOFILE or /etc/security/limits.conf: nofile hard 65536");
	}
}

/* --- the system around --- */

static void check_userns_limits(struct host_check *c)
{
	_free_ char *max = first_line(max_knob, "not known"),
		    *debian = first_line(debian_knob, "not there"),
		    *apparmor = first_line(apparmor_knob, "not there");
	struct attempt a = try_in_child(try_private_mounts, true);

	SET(c->detail,
	    "user.max_user_namespaces %.20s; unprivileged_userns_clone %.20s; AppArmor's "
	    "restriction %.20s",
	    max, debian, apparmor);
	/* A restriction that a profile of ours lifts is none. */
	if (a.num != 0 && (str_eq(max, "0") || str_eq(debian, "0") || str_eq(apparmor, "1"))) {
		c->state = HOST_MISSING;
		fix_namespaces(c);
	}
}

static void check_container(struct host_check *c)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/.dockerenv", "Docker" },
		{ "/run/.containerenv", "Podman" },
		{ "/run/systemd/container", "a container" },
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (access(marks[i].path, F_OK) == 0) {
			SET(c->detail, "inside %s, and all of this is about in here",
			    marks[i].name);
			return;
		}
	SET(c->detail, "none seen around us");
}

static const char *remote_fs(const struct statfs *fs)
{
	static const struct {
		unsigned magic;
		const char *name;
	} remote[] = {
		{ NFS_SUPER_MAGIC, "NFS" }, { SMB_SUPER_MAGIC, "SMB" },
		{ 0xff534d42, "CIFS" },     { 0xfe534d42, "SMB2" },
		{ AFS_SUPER_MAGIC, "AFS" }, { CODA_SUPER_MAGIC, "Coda" },
		{ V9FS_MAGIC, "9p" },       { 0x00c36400, "Ceph" },
		{ 0x0bd00bd0, "Lustre" },   { 0x47504653, "GPFS" },
		{ 0x013111a8, "IBRIX" },    { 0x65735546, "FUSE" },
	};

	for (size_t i = 0; i < ARRAY_LEN(remote); i++)
		if ((unsigned)fs->f_type == remote[i].magic)
			return remote[i].name;
	return NULL;
}

char *host_passwd_field(size_t i)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	_free_ char *id = mem_fmt("%u", geteuid());
	struct err ignored = ERR_INIT;

	if (io_read_file("/etc/passwd", &b, &ignored) < 0)
		return NULL;
	for (const char *line = buf_cstr(&b); *line;) {
		const char *part[7] = { line };
		size_t len[7] = { 0 }, n = 0, line_n = strcspn(line, "\n");

		for (const char *s = line; n < ARRAY_LEN(part) && s <= line + line_n;
		     s += len[n++] + 1) {
			part[n] = s;
			len[n] = strcspn(s, ":\n");
		}
		if (n == 7 && strlen(id) == len[2] && memcmp(part[2], id, len[2]) == 0)
			return mem_strn(part[i], len[i]);
		line += line_n + (line[line_n] == '\n');
	}
	return NULL;
}

/* The state directory, or the nearest ancestor of it that exists. */
static char *state_place(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	_free_ char *known = home && *home == '/' ? mem_str(home) : host_passwd_field(5);
	char *path;

	if (state && *state == '/')
		path = path_join(state, "vitrine");
	else
		path = path_join(known ? known : "/", ".local/state/vitrine");
	while (access(path, F_OK) < 0 && !str_eq(path, "/")) {
		char *up = path_parent(path);

		free(path);
		path = up;
	}
	return path;
}

static void check_state_dir(struct host_check *c)
{
	_free_ char *place = state_place();
	struct statfs fs;
	const char *remote;

	if (statfs(place, &fs) < 0) {
		c->state = HOST_MISSING;
		SET(c->detail, "'%.120s' cannot be looked at", place);
		SET(c->fix, "set XDG_STATE_HOME to a directory of yours");
		return;
	}
	remote = remote_fs(&fs);
	SET(c->detail, "%.120s on a %s file system", place, remote ? remote : "local");
	if (access(place, W_OK | X_OK) < 0) {
		c->state = HOST_MISSING;
		SET(c->detail, "%.120s is not writable", place);
	} else if (remote) {
		c->state = HOST_WEAKER;
	}
	if (c->state != HOST_WORKS)
		SET(c->fix, "set XDG_STATE_HOME to a local directory of yours");
}

static void check_disk(struct host_check *c)
{
	_free_ char *place = state_place();
	struct statfs fs;
	uint64_t room = 0;

	if (statfs(place, &fs) == 0)
		room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	SET(c->detail, "%llu MiB free for state", (unsigned long long)(room / MIB));
	if (room >= GIB)
		return;
	c->state = room < 64 * MIB ? HOST_MISSING : HOST_WEAKER;
	SET(c->fix, "make room, or set XDG_STATE_HOME to another disk");
}

static void check_logind(struct host_check *c)
{
	static const char *const says[LASTING_COUNT_] = {
		[LASTING_SESSION] = "what runs detached (-d) has a session of its own, which no "
				    "logout ends",
		[LASTING_UNIT] = "what runs detached (-d) is a transient systemd unit, which no "
				 "logout ends",
		[LASTING_LINGER] = "what runs detached (-d) is a transient systemd unit; lingering "
				   "is off and "
				   "is switched on for it",
		[LASTING_NOT] = "KillUserProcesses=yes, and no systemd manager of yours: what runs "
				"detached "
				"(-d) ends when you log out",
	};
	struct login l;
	enum lasting how;

	lasting_look(&l);
	how = lasting_decide(&l, true);
	SET(c->detail, "%s%s", says[how], l.has_systemd ? "" : "; no systemd here");
	if (how == LASTING_NOT || (how == LASTING_LINGER && l.kills)) {
		c->state = HOST_WEAKER;
		SET(c->fix, "sudo loginctl enable-linger $USER, then log in again");
	}
}

static void check_kvm(struct host_check *c)
{
	_close_ int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int version = fd < 0 ? -1 : ioctl(fd, KVM_GET_API_VERSION, 0);

	if (version == KVM_API_VERSION) {
		SET(c->detail, "usable, for the vm engine");
		return;
	}
	c->state = HOST_MISSING;
	SET(c->detail, "/dev/kvm: %s", fd < 0 ? strerrordesc_np(errno) : "unknown version");
	if (fd < 0 && errno == EACCES)
		SET(c->fix, "sudo usermod -aG kvm $USER, then log in again");
	else
		SET(c->fix, "hardware virtualisation; only the vm engine needs it");
}

/* "name:100000:65536" for our name or number. */
static bool has_subids(const char *file)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	_free_ char *name = host_passwd_field(0), *by_name = mem_fmt("%s:", name ? name : "");
	_free_ char *by_id = mem_fmt("%u:", geteuid());
	struct err ignored = ERR_INIT;

	if (io_read_file(file, &b, &ignored) < 0)
		return false;
	for (const char *s = buf_cstr(&b); *s;) {
		size_t n = strcspn(s, "\n");

		if ((name && str_starts(s, by_name)) || str_starts(s, by_id))
			return true;
		s += n + (s[n] == '\n');
	}
	return false;
}

static void check_subids(struct host_check *c)
{
	_free_ char *tool = find_program("newuidmap");
	bool has_ranges = has_subids("/etc/subuid") && has_subids("/etc/subgid");

	SET(c->detail, "newuidmap %s, ranges in /etc/subuid and /etc/subgid %s",
	    tool ? "found" : "not found", has_ranges ? "found" : "not found");
	if (tool && has_ranges)
		return;
	c->state = HOST_MISSING;
	SET(c->fix, "%s%s%s; only templates need them",
	    tool ? "" : "install newuidmap (Debian: uidmap)", tool || has_ranges ? "" : ", then ",
	    has_ranges ? ""
		       : "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
			 "$USER");
}

static void check_tool(struct host_check *c)
{
	_free_ char *path = find_program(c->what);

	c->state = path ? HOST_WORKS : HOST_MISSING;
	SET(c->detail, "%.180s", path ? path : "not found");
}

/* --- the list --- */

enum { NEEDED = 1, TOOL = 2 };

static const struct {
	const char *id, *what;
	unsigned flags;
	void (*fn)(struct host_check *c);
} checks[] = {
	{ "kernel", "kernel", 0, check_kernel },
	{ "namespaces", "namespaces", NEEDED, check_namespaces },
	{ "proc", "own /proc", NEEDED, check_proc },
	{ "mount_api", "mount calls", NEEDED, check_mount_api },
	{ "landlock", "Landlock", NEEDED, check_landlock },
	{ "seccomp", "seccomp filter", NEEDED, check_seccomp },
	{ "seccomp_notify", "seccomp notification", 0, check_notify },
	{ "openat2", "openat2", NEEDED, check_openat2 },
	{ "clone3", "clone3", NEEDED, check_clone3 },
	{ "pidfd", "process handles", NEEDED, check_pidfd },
	{ "idmap", "id-mapped mounts", NEEDED, check_idmap },
	{ "overlay", "overlay", 0, check_overlay },
	{ "served_git", "served .git", 0, check_fuse },
	{ "cgroup", "control groups", 0, check_cgroup },
	{ "redirect", "TCP redirect", 0, check_redirect },
	{ "pid_max", "own pid_max", 0, check_pid_max },
	{ "rlimits", "resource limits", 0, check_rlimits },
	{ "userns_limits", "user namespace limits", 0, check_userns_limits },
	{ "container", "container", 0, check_container },
	{ "state_dir", "state directory", NEEDED, check_state_dir },
	{ "disk", "disk space", 0, check_disk },
	{ "logind", "end of login", 0, check_logind },
	{ "subids", "subordinate ids", 0, check_subids },
	{ "kvm", "KVM", 0, check_kvm },
	{ "tool_bwrap", "bwrap", TOOL, check_tool },
	{ "tool_crun", "crun", TOOL, check_tool },
	{ "tool_runc", "runc", TOOL, check_tool },
	{ "tool_runsc", "runsc", TOOL, check_tool },
	{ "tool_podman", "podman", TOOL, check_tool },
	{ "tool_docker", "docker", TOOL, check_tool },
	{ "tool_nsjail", "nsjail", TOOL, check_tool },
	{ "tool_firejail", "firejail", TOOL, check_tool },
	{ "tool_qemu", "qemu-system-x86_64", TOOL, check_tool },
};
_Static_assert(ARRAY_LEN(checks) <= HOST_CHECKS_MAX, "HOST_CHECKS_MAX is too small");

size_t host_checks(struct host_check *v, size_t max)
{
	size_t n = ARRAY_LEN(checks) < max ? ARRAY_LEN(checks) : max;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct host_check){ .id = checks[i].id,
					    .what = checks[i].what,
					    .is_needed = (checks[i].flags & NEEDED) != 0,
					    .is_tool = (checks[i].flags & TOOL) != 0 };
		checks[i].fn(&v[i]);
	}
	return n;
}

bool host_can_run(const struct host_check *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].is_needed && v[i].state == HOST_MISSING)
			return false;
	return true;
}
