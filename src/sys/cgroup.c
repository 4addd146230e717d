/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup.c - finding a place for our control groups, making them, reading them, removing them
 *
 * Where groups are made
 *
 * v1  Each controller has a tree of its own. Ours are children of the group we are in, so that we never escape a
 *     limit somebody set for us. Usable means: we made a group there and found its limit file writable.
 * v2  A group with processes may not hand domain controllers (memory, io) to children, and we are a process in
 *     our own group. So there are three places, tried in this order:
 *       the root group, which is exempt from that rule;
 *       our own group, when it was delegated to us (systemd marks it with the attribute user.delegate): on the
 *       first use everything in it moves to its child "vitrine-outside", then controllers can be handed on;
 *       our parent, when we may write there: ours become siblings of our own group.
 *     An ordinary user has one of them only below a systemd user manager. Moving a process needs write access to
 *     the common ancestor's cgroup.procs, so a group elsewhere that happens to be writable is of no use.
 *
 * systemd owns the tree of v2. Groups we make as root below a slice of its own live on sufferance: a reload can
 * withdraw a controller that no unit needs. Memory and pids are always needed by some unit in practice.
 *
 * Alive or left over
 *
 * A group is empty between being made and its first process, and looks then like one that a dead keeper left. A
 * lock (flock) on its directory tells them apart: cgroup_reap() removes only what it can lock itself.
 *
 * Block I/O: v1 throttles direct and synchronous I/O only, because write-back happens in nobody's group.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/io.h"
#include "base/num.h"
#include "base/path.h"
#include "sys/cgroup.h"

#define PREFIX "vitrine-"
#define OUTSIDE PREFIX "outside"
#define FILE_MAX (256 * KIB)

/* What each controller is called and which file shows that it can do what we need. */
static const struct {
	const char *v1, *v1_file, *v2, *people;
} controllers[CG_COUNT_] = {
	[CG_MEMORY] = { "memory", "memory.limit_in_bytes", "memory", "memory" },
	[CG_CPU] = { "cpu", "cpu.cfs_quota_us", "cpu", "cpu" },
	[CG_PIDS] = { "pids", "pids.max", "pids", "pids" },
	[CG_IO] = { "blkio", "blkio.throttle.read_bps_device", "io", "io" },
	[CG_FREEZER] = { "freezer", "freezer.state", NULL, "freezer" },
	[CG_CPUACCT] = { "cpuacct", "cpuacct.usage", NULL, "cpu accounting" },
};

const char *cgroup_ctl_name(enum cgroup_ctl ctl)
{
	bug_on(ctl >= CG_COUNT_);
	return controllers[ctl].people;
}

/* --- small files --- */

static bool read_text(const char *dir, const char *file, struct buf *b)
{
	_free_ char *path = mem_fmt("%s/%s", dir, file);
	struct err ignored = ERR_INIT;

	return io_read_file(path, b, &ignored) >= 0;
}

static int write_text(const char *dir, const char *file, const char *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", dir, file);

	return io_write_file(path, text, e);
}

static bool may_write(const char *dir, const char *file)
{
	_free_ char *path = mem_fmt("%s%s%s", dir, file ? "/" : "", file ? file : "");

	return faccessat(AT_FDCWD, path, file ? W_OK : W_OK | X_OK, AT_EACCESS) == 0;
}

/* Is `word` one of the words of this list, which are parted by any of `seps`? */
static bool has_word(const char *list, const char *word, const char *seps)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, seps);

		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static bool file_has_word(const char *dir, const char *file, const char *word)
{
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);

	return read_text(dir, file, &b) && has_word(buf_cstr(&b), word, " \n");
}

/* A number that stands alone in its file, or behind `key` on a line of it. 0 when there is none. */
static uint64_t read_number(const char *dir, const char *file, const char *key)
{
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);
	struct err ignored = ERR_INIT;
	size_t key_len = key ? strlen(key) : 0;
	uint64_t v = 0;

	if (!read_text(dir, file, &b))
		return 0;
	for (const char *s = buf_cstr(&b); *s;) {
		size_t n = strcspn(s, "\n");
		_free_ char *line = mem_strn(s, n);

		if (key == NULL && num_parse(line, 0, UINT64_MAX, &v, &ignored) >= 0)
			return v;
		if (key && str_starts(line, key) && line[key_len] == ' ' &&
		    num_parse(line + key_len + 1, 0, UINT64_MAX, &v, &ignored) >= 0)
			return v;
		s += n + (s[n] == '\n');
	}
	return 0;
}

/* --- where we are --- */

struct cg_mount {
	char *root, *point, *options; /* root: which group the mount shows at its top */
	bool is_v2;
};

static void cg_mount_done(struct cg_mount *m)
{
	free(m->root);
	free(m->point);
	free(m->options);
	*m = (struct cg_mount){ 0 };
}

/* mountinfo writes blanks, tabs, newlines and backslashes as three octal digits. */
static char *unescape(const char *s, size_t n)
{
	char *out = mem_new(n + 1, 1);
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && n - i > 3) {
			out[len++] = (char)((s[i + 1] - '0') << 6 | (s[i + 2] - '0') << 3 |
					    (s[i + 3] - '0'));
			i += 3;
		} else {
			out[len++] = s[i];
		}
	}
	return out;
}

/* Field number `i` of a line, counted from 0; *ret_n is its length. Empty when the line is shorter. */
static const char *field(const char *line, size_t line_n, size_t i, size_t *ret_n)
{
	const char *end = line + line_n;

	for (;; i--) {
		size_t n = 0;

		while (line + n < end && line[n] != ' ')
			n++;
		if (i == 0 || line + n == end) {
			*ret_n = i == 0 ? n : 0;
			return line;
		}
		line += n + 1;
	}
}

/* "36 25 0:32 / /sys/fs/cgroup/memory rw,... shared:9 - cgroup cgroup rw,memory" */
static bool parse_mount(const char *line, size_t n, struct cg_mount *ret)
{
	const char *dash = memmem(line, n, " - ", 3), *type, *root, *point, *options;
	size_t type_n, root_n, point_n, options_n, tail;

	if (dash == NULL)
		return false;
	tail = n - (size_t)(dash + 3 - line);
	type = field(dash + 3, tail, 0, &type_n);
	options = field(dash + 3, tail, 2, &options_n);
	root = field(line, n, 3, &root_n);
	point = field(line, n, 4, &point_n);
	if (!(type_n == 6 && memcmp(type, "cgroup", 6) == 0) &&
	    !(type_n == 7 && memcmp(type, "cgroup2", 7) == 0))
		return false;
	*ret = (struct cg_mount){ .root = unescape(root, root_n),
				  .point = unescape(point, point_n),
				  .options = mem_strn(options, options_n),
				  .is_v2 = type_n == 7 };
	return true;
}

/* The mount that shows this controller (NULL: version 2), from the text of mountinfo. */
static bool find_mount(const char *mountinfo, const char *controller, struct cg_mount *ret)
{
	for (const char *s = mountinfo; *s;) {
		size_t n = strcspn(s, "\n");
		struct cg_mount m = { 0 };

		if (parse_mount(s, n, &m)) {
			if (controller ? !m.is_v2 && has_word(m.options, controller, ",")
				       : m.is_v2) {
				*ret = m;
				return true;
			}
			cg_mount_done(&m);
		}
		s += n + (s[n] == '\n');
	}
	return false;
}

/* Our group for this controller (NULL: version 2), from the text of /proc/self/cgroup: "4:memory:/a/b". */
static char *find_group(const char *text, const char *controller)
{
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");
		const char *names = memchr(s, ':', n);
		const char *path =
			names ? memchr(names + 1, ':', n - (size_t)(names + 1 - s)) : NULL;

		if (path) {
			_free_ char *list = mem_strn(names + 1, (size_t)(path - names - 1));

			if (controller ? has_word(list, controller, ",") : *list == '\0')
				return mem_strn(path + 1, n - (size_t)(path + 1 - s));
		}
		s += n + (s[n] == '\n');
	}
	return NULL;
}

/* The directory in which group `path` is seen through a mount, or NULL when it is not in view. */
static char *group_dir(const struct cg_mount *m, const char *path)
{
	/* "/.." stands at the front when group or mount lie outside our cgroup namespace. */
	if (!path_is_clean(path) || !path_is_clean(m->root) || !path_is_beneath(path, m->root))
		return NULL;
	path = path_below(path, m->root);
	return *path ? mem_fmt("%s/%s", m->point, path) : mem_str(m->point);
}

static char *own_dir(const char *mountinfo, const char *groups, const char *controller)
{
	_cleanup_(cg_mount_done) struct cg_mount m = { 0 };
	_free_ char *path = find_group(groups, controller);

	return path && find_mount(mountinfo, controller, &m) ? group_dir(&m, path) : NULL;
}

/* --- probing --- */

static bool set_base(struct cgroup_host *h, enum cgroup_ctl i, const char *dir)
{
	int n = snprintf(h->base[i], sizeof(h->base[i]), "%s", dir);

	if (n < 0 || (size_t)n >= sizeof(h->base[i]))
		return false;
	h->usable |= BIT(i);
	return true;
}

/* Makes a group, looks for a writable `file` (NULL: any group will do) and removes it. 0 or -errno. */
static int try_group(const char *dir, const char *file)
{
	/* Not our prefix: another Vitrine's cgroup_reap() must not take it for a left-over. */
	_free_ char *path = mem_fmt("%s/vitrine.probe-%d", dir, (int)getpid());
	int r = 0;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (file && !may_write(path, file))
		r = -ENOENT;
	return rmdir(path) < 0 && r == 0 ? -errno : r;
}

static const char *remedy(int num)
{
	if (num == EROFS)
		return "in a container: mount it writable, or run outside";
	if (access("/run/systemd/system", F_OK) == 0)
		return "run as root, or: systemd-run --user --scope -p Delegate=yes vitrine ...";
	return "run as root, or have a group delegated to this user";
}

static void set_why(struct cgroup_host *h, const char *dir, int num)
{
	const char *what = num == EROFS    ? "is read-only"
			   : num == ENOENT ? "lacks the limit files"
					   : "is not ours to write";

	if (h->version == CGROUP_V1)
		(void)snprintf(h->why, sizeof(h->why), "control group %.100s (version 1) %s: %s",
			       dir, what,
			       num == EROFS ? remedy(num) : "run as root, or boot with version 2");
	else
		(void)snprintf(h->why, sizeof(h->why), "control group %.100s %s: %s", dir, what,
			       remedy(num));
}

static void probe_v1(struct cgroup_host *h, const char *mountinfo, const char *groups)
{
	h->version = CGROUP_V1;
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		_free_ char *dir = own_dir(mountinfo, groups, controllers[i].v1);
		int r;

		if (dir == NULL)
			continue;
		r = try_group(dir, controllers[i].v1_file);
		if (r == 0)
			(void)set_base(h, i, dir);
		else if (*h->why == '\0')
			set_why(h, dir, -r);
	}
}

static bool is_root_group(const char *dir)
{
	_free_ char *path = mem_fmt("%s/cgroup.type", dir);

	return access(path, F_OK) < 0;
}

static bool is_delegated(const char *dir)
{
	char v[2];

	return getxattr(dir, "user.delegate", v, sizeof(v)) == 1 && v[0] == '1';
}

static bool has_processes(const char *dir)
{
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);

	/* Too many to read are processes too. */
	return !read_text(dir, "cgroup.procs", &b) || b.n > 0;
}

/* Could children of `dir` have this controller? `may_empty`: we may move the processes in it away. */
static bool can_hand_on(const char *dir, const char *controller, bool may_empty)
{
	if (file_has_word(dir, "cgroup.subtree_control", controller))
		return true;
	return file_has_word(dir, "cgroup.controllers", controller) &&
	       may_write(dir, "cgroup.subtree_control") &&
	       (may_empty || is_root_group(dir) || !has_processes(dir));
}

static bool use_v2(struct cgroup_host *h, const char *dir, bool may_empty)
{
	if (!may_write(dir, NULL) || !may_write(dir, "cgroup.procs"))
		return false;
	if (try_group(dir, "cgroup.procs") < 0)
		return false;
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if (controllers[i].v2 && can_hand_on(dir, controllers[i].v2, may_empty))
			(void)set_base(h, i, dir);
	/* Freezing needs no controller. */
	(void)set_base(h, CG_FREEZER, dir);
	return (h->usable & ~BIT(CG_FREEZER)) != 0;
}

static void probe_v2(struct cgroup_host *h, const char *own)
{
	_free_ char *parent = path_parent(own);
	bool may_empty = may_write(own, NULL) && may_write(own, "cgroup.procs");

	h->version = CGROUP_V2;
	if (is_root_group(own)
		    ? use_v2(h, own, false)
		    : (may_empty && is_delegated(own) && use_v2(h, own, true)) ||
			      use_v2(h, parent, false) || (may_empty && use_v2(h, own, true)))
		return;
	if (!may_write(own, NULL))
		set_why(h, own, errno);
	else
		(void)snprintf(h->why, sizeof(h->why),
			       "control group %.100s was given no controllers: %s", own,
			       remedy(EACCES));
}

/* A hybrid host shows version 2 for its processes' sake, with the controllers still bound to version 1. */
static bool v2_has_controllers(const char *own)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if (controllers[i].v2 &&
		    file_has_word(own, "cgroup.controllers", controllers[i].v2))
			return true;
	return false;
}

static void probe_texts(struct cgroup_host *h, const char *mountinfo, const char *groups)
{
	_free_ char *own = own_dir(mountinfo, groups, NULL);
	bool has_v1 = false;

	for (enum cgroup_ctl i = 0; i < CG_COUNT_ && !has_v1; i++) {
		_free_ char *dir = own_dir(mountinfo, groups, controllers[i].v1);

		has_v1 = dir != NULL;
	}
	*h = (struct cgroup_host){ .version = CGROUP_NONE };
	if (own && (!has_v1 || v2_has_controllers(own)))
		probe_v2(h, own);
	else if (has_v1)
		probe_v1(h, mountinfo, groups);
	else
		(void)snprintf(h->why, sizeof(h->why),
			       "our control group is not to be seen in any mounted tree: "
			       "mount cgroup2 at /sys/fs/cgroup");
}

void cgroup_probe(struct cgroup_host *ret)
{
	_cleanup_(buf_done) struct buf mounts = BUF(4 * MIB), groups = BUF(FILE_MAX);

	/* What cannot be read is not there: an empty text gives CGROUP_NONE and its reason. */
	(void)read_text("/proc/self", "mountinfo", &mounts);
	(void)read_text("/proc/self", "cgroup", &groups);
	probe_texts(ret, buf_cstr(&mounts), buf_cstr(&groups));
}

/* --- making --- */

static unsigned wanted(const struct cgroup_limits *l)
{
	return (l->memory ? BIT(CG_MEMORY) : 0) | (l->cpus_milli ? BIT(CG_CPU) : 0) |
	       (l->pids ? BIT(CG_PIDS) : 0) | (l->io_read || l->io_write ? BIT(CG_IO) : 0) |
	       (l->freezer ? BIT(CG_FREEZER) : 0);
}

/* The first controller whose group lies in the same directory; v2 has but one, v1 mounts some together. */
static enum cgroup_ctl first_in_dir(const struct cgroup *c, enum cgroup_ctl i)
{
	for (enum cgroup_ctl k = 0; k < i; k++)
		if ((c->made & BIT(k)) && str_eq(c->dir[k], c->dir[i]))
			return k;
	return i;
}

/* Removes an empty group that nobody holds a lock on. A group with processes in it the kernel keeps by itself. */
static bool remove_left_over(int at, const char *name)
{
	_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	       unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Made and locked, and still there once it is locked: cgroup_reap() may have come in between. Fd or -errno. */
static int make_locked(const char *dir)
{
	for (int tries = 0; tries < 8; tries++) {
		_close_ int fd = FD_NONE;
		struct stat by_fd, by_name;

		if (mkdir(dir, 0755) < 0) {
			if (errno != EEXIST)
				return -errno;
			if (!remove_left_over(AT_FDCWD, dir))
				return -EEXIST;
			continue;
		}
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
			return -errno;
		if (fstat(fd, &by_fd) == 0 && lstat(dir, &by_name) == 0 &&
		    by_fd.st_ino == by_name.st_ino)
			return take_fd(fd);
	}
	return -EAGAIN;
}

static int make_group(struct cgroup *c, const struct cgroup_host *h, enum cgroup_ctl i,
		      const char *name, struct err *e)
{
	int n = snprintf(c->dir[i], sizeof(c->dir[i]), "%s/%s%s", h->base[i],
			 str_starts(name, PREFIX) ? "" : PREFIX, name);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(c->dir[i]))
		return err_set(e, ERR_SYSTEM, ENAMETOOLONG,
			       "control group name '%.64s' is too long", name);
	c->lock[i] = FD_NONE;
	if (first_in_dir(c, i) == i) {
		fd = make_locked(c->dir[i]);
		if (fd == -EEXIST)
			return err_set(e, ERR_CONFLICT, EEXIST, "control group '%s' is in use",
				       c->dir[i]);
		if (fd < 0) {
			errno = -fd;
			return err_sys(e, "make control group '%s'", c->dir[i]);
		}
		c->lock[i] = fd;
	}
	c->made |= BIT(i);
	return 0;
}

/* Moves every process of our own group to a child, so that it may hand on controllers. */
static int move_outside(const char *dir, struct err *e)
{
	_free_ char *child = mem_fmt("%s/" OUTSIDE, dir);
	_free_ char *list = mem_fmt("%s/cgroup.procs", dir);
	_cleanup_(buf_done) struct buf procs = BUF(FILE_MAX);
	int r;

	if (mkdir(child, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make control group '%s'", child);
	r = io_read_file(list, &procs, e);
	if (r < 0)
		return r;
	for (const char *s = buf_cstr(&procs); *s;) {
		size_t n = strcspn(s, "\n");
		_free_ char *pid = mem_strn(s, n);

		r = write_text(child, "cgroup.procs", pid, e);

		/* One that ended meanwhile need not be moved. */
		if (r < 0 && r != -ESRCH)
			return r;
		s += n + (s[n] == '\n');
	}
	return 0;
}

/* Children of the base get the controllers they need. */
static int hand_on(const struct cgroup_host *h, unsigned want, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		_free_ char *word = NULL;
		int r;

		if (!(want & BIT(i)) || controllers[i].v2 == NULL ||
		    file_has_word(h->base[i], "cgroup.subtree_control", controllers[i].v2))
			continue;
		word = mem_fmt("+%s", controllers[i].v2);
		r = write_text(h->base[i], "cgroup.subtree_control", word, e);
		if (r == -EBUSY) {
			r = move_outside(h->base[i], e);
			if (r >= 0)
				r = write_text(h->base[i], "cgroup.subtree_control", word, e);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- limits, as text for files --- */

/* Throttling works on whole disks; st_dev may be a partition. */
static int whole_disk(dev_t dev, char *ret, size_t size, struct err *e)
{
	_free_ char *dir = mem_fmt("/sys/dev/block/%u:%u", major(dev), minor(dev));
	_free_ char *part = mem_fmt("%s/partition", dir);
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	if (access(dir, F_OK) < 0)
		return err_set(e, ERR_UNSUPPORTED, ENODEV,
			       "the workspace's file system (%u:%u) is on no block device that "
			       "could be limited",
			       major(dev), minor(dev));
	if (access(part, F_OK) < 0) {
		(void)snprintf(ret, size, "%u:%u", major(dev), minor(dev));
		return 0;
	}
	if (!read_text(dir, "../dev", &b))
		return err_set(e, ERR_SYSTEM, ENODEV, "cannot find the disk of partition %u:%u",
			       major(dev), minor(dev));
	(void)snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&b), "\n"), buf_cstr(&b));
	return 0;
}

/* Quotas below a millisecond are refused by the kernel, so a tiny share gets a longer period. */
static unsigned cpu_period_us(uint64_t cpus_milli)
{
	return cpus_milli < 10 ? 1000000 : 100000;
}

static int put_number(const char *dir, const char *file, uint64_t v, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return write_text(dir, file, text, e);
}

/* Memory and swap together, so that a limit on memory is one on what is stored anywhere. */
static int limit_memory_v1(const char *dir, uint64_t max, struct err *e)
{
	struct err ignored = ERR_INIT;
	int r;

	/* Kernels before 5.11 count children only when told to; later ones always do and may refuse the word. */
	(void)put_number(dir, "memory.use_hierarchy", 1, &ignored);
	r = put_number(dir, "memory.limit_in_bytes", max, e);
	if (r < 0)
		return r;
	if (may_write(dir, "memory.memsw.limit_in_bytes"))
		return put_number(dir, "memory.memsw.limit_in_bytes", max, e);
	/* Without swap accounting the next best: do not swap these. */
	(void)put_number(dir, "memory.swappiness", 0, &ignored);
	return 0;
}

static int limit_memory_v2(const char *dir, uint64_t max, struct err *e)
{
	struct err ignored = ERR_INIT;
	int r = put_number(dir, "memory.max", max, e);

	if (r >= 0 && may_write(dir, "memory.swap.max"))
		r = put_number(dir, "memory.swap.max", 0, e);
	/* Kernels before 4.19 kill one process at a time; the limit holds either way. */
	(void)put_number(dir, "memory.oom.group", 1, &ignored);
	return r;
}

static int limit_cpu(const struct cgroup *c, uint64_t milli, struct err *e)
{
	const char *dir = c->dir[CG_CPU];
	unsigned period = cpu_period_us(milli);
	uint64_t quota = milli * period / 1000;
	char text[48];
	int r;

	if (c->version == CGROUP_V2) {
		(void)snprintf(text, sizeof(text), "%llu %u", (unsigned long long)quota, period);
		return write_text(dir, "cpu.max", text, e);
	}
	r = put_number(dir, "cpu.cfs_period_us", period, e);
	return r < 0 ? r : put_number(dir, "cpu.cfs_quota_us", quota, e);
}

static int limit_io(const struct cgroup *c, const struct cgroup_limits *l, struct err *e)
{
	const uint64_t bps[2] = { l->io_read, l->io_write };
	static const char *const files[2] = { "blkio.throttle.read_bps_device", "blkio.throttle."
										"write_bps_"
										"device" };
	static const char *const keys[2] = { "rbps", "wbps" };
	char disk[32], text[80];
	int r = whole_disk(l->io_dev, disk, sizeof(disk), e);

	for (int i = 0; i < 2 && r >= 0; i++) {
		bool is_v2 = c->version == CGROUP_V2;

		if (bps[i] == 0)
			continue;
		(void)snprintf(text, sizeof(text), "%s %s%s%llu", disk, is_v2 ? keys[i] : "",
			       is_v2 ? "=" : "", (unsigned long long)bps[i]);
		r = write_text(c->dir[CG_IO], is_v2 ? "io.max" : files[i], text, e);
	}
	return r;
}

static int write_limits(const struct cgroup *c, const struct cgroup_limits *l, struct err *e)
{
	int r = 0;

	if (l->memory && c->version == CGROUP_V2)
		r = limit_memory_v2(c->dir[CG_MEMORY], l->memory, e);
	else if (l->memory)
		r = limit_memory_v1(c->dir[CG_MEMORY], l->memory, e);
	if (r >= 0 && l->cpus_milli)
		r = limit_cpu(c, l->cpus_milli, e);
	if (r >= 0 && l->pids)
		r = put_number(c->dir[CG_PIDS], "pids.max", l->pids, e);
	if (r >= 0 && (l->io_read || l->io_write))
		r = limit_io(c, l, e);
	return r < 0 ? err_wrap(e, r, "control group limit") : 0;
}

static int check_usable(const struct cgroup_host *h, unsigned want, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if ((want & BIT(i)) && !(h->usable & BIT(i)))
			return err_set(e, ERR_UNSUPPORTED, EOPNOTSUPP,
				       "no control group for %s: %s", controllers[i].people,
				       *h->why ? h->why
					       : "this kernel or its mounts lack the controller");
	return 0;
}

int cgroup_open(struct cgroup *c, const struct cgroup_host *h, const char *name,
		const struct cgroup_limits *l, struct err *e)
{
	unsigned want = wanted(l);
	int r = check_usable(h, want, e);

	*c = (struct cgroup){ .version = h->version };
	bug_on(*name == '\0' || strchr(name, '/') || str_eq(name, OUTSIDE));
	if (r < 0 || want == 0)
		return r;
	/* Once there is a group at all, freezing and counting come nearly free. */
	want |= h->usable & (BIT(CG_FREEZER) | BIT(CG_CPUACCT));
	if (h->version == CGROUP_V2)
		r = hand_on(h, want, e);
	for (enum cgroup_ctl i = 0; i < CG_COUNT_ && r >= 0; i++)
		if (want & BIT(i))
			r = make_group(c, h, i, name, e);
	if (r >= 0)
		r = write_limits(c, l, e);
	if (r < 0)
		cgroup_remove(c);
	return r;
}

/* --- using --- */

/* The directory of the first group made; for v2 the only one. */
static const char *any_dir(const struct cgroup *c)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if (c->made & BIT(i))
			return c->dir[i];
	return NULL;
}

int cgroup_fd(const struct cgroup *c)
{
	const char *dir = any_dir(c);
	int fd;

	if (c->version != CGROUP_V2 || dir == NULL)
		return -EBADF;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int cgroup_attach(const struct cgroup *c, pid_t pid, struct err *e)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		int r;

		if (!(c->made & BIT(i)) || first_in_dir(c, i) != i)
			continue;
		r = put_number(c->dir[i], "cgroup.procs", (uint64_t)pid, e);
		if (r < 0)
			return err_wrap(e, r, "join control group");
	}
	return 0;
}

static bool is_in_state(const struct cgroup *c, bool is_frozen)
{
	const char *dir = c->dir[CG_FREEZER];

	if (c->version == CGROUP_V2)
		return (read_number(dir, "cgroup.events", "frozen") != 0) == is_frozen;
	return file_has_word(dir, "freezer.state", is_frozen ? "FROZEN" : "THAWED");
}

int cgroup_freeze(const struct cgroup *c, bool is_frozen)
{
	const struct timespec step = { .tv_nsec = 500000 };
	struct err ignored = ERR_INIT;
	int r;

	if (!(c->made & BIT(CG_FREEZER)))
		return -EOPNOTSUPP;
	if (c->version == CGROUP_V2)
		r = put_number(c->dir[CG_FREEZER], "cgroup.freeze", is_frozen, &ignored);
	else
		r = write_text(c->dir[CG_FREEZER], "freezer.state", is_frozen ? "FROZEN" : "THAWED",
			       &ignored);
	if (r < 0)
		return r;
	for (int i = 0; i < 1000; i++) {
		if (is_in_state(c, is_frozen))
			return 0;
		(void)nanosleep(&step, NULL);
	}
	return -ETIMEDOUT;
}

uint64_t cgroup_oom_kills(const struct cgroup *c)
{
	if (!(c->made & BIT(CG_MEMORY)))
		return 0;
	return read_number(c->dir[CG_MEMORY],
			   c->version == CGROUP_V2 ? "memory.events" : "memory.oom_control",
			   "oom_kill");
}

void cgroup_use(const struct cgroup *c, struct cgroup_use *ret)
{
	const char *any = any_dir(c);
	bool is_v2 = c->version == CGROUP_V2;

	*ret = (struct cgroup_use){ 0 };
	if (c->made & BIT(CG_MEMORY)) {
		const char *dir = c->dir[CG_MEMORY];

		ret->memory_now =
			read_number(dir, is_v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
		ret->memory_peak =
			read_number(dir, is_v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
	}
	if (c->made & BIT(CG_PIDS))
		ret->pids_now = read_number(c->dir[CG_PIDS], "pids.current", NULL);
	if (is_v2 && any)
		ret->cpu_ns = read_number(any, "cpu.stat", "usage_usec") * 1000;
	else if (c->made & BIT(CG_CPUACCT))
		ret->cpu_ns = read_number(c->dir[CG_CPUACCT], "cpuacct.usage", NULL);
}

/* --- the end --- */

/* The last process may be dying still; a group can be removed some moments after its parent saw it end. */
static void remove_dir(const char *dir)
{
	const struct timespec step = { .tv_nsec = 1000000 };

	for (int i = 0; i < 200 && rmdir(dir) < 0 && errno == EBUSY; i++)
		(void)nanosleep(&step, NULL);
}

void cgroup_remove(struct cgroup *c)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		if (!(c->made & BIT(i)) || first_in_dir(c, i) != i)
			continue;
		remove_dir(c->dir[i]);
		fd_close(c->lock[i]);
	}
	c->made = 0;
}

static void reap_base(const char *base)
{
	DIR *d = opendir(base);
	const struct dirent *entry;

	if (d == NULL)
		return;
	while ((entry = readdir(d)) != NULL)
		if (str_starts(entry->d_name, PREFIX) && !str_eq(entry->d_name, OUTSIDE))
			(void)remove_left_over(dirfd(d), entry->d_name);
	(void)closedir(d);
}

void cgroup_reap(const struct cgroup_host *h)
{
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++) {
		bool is_seen = false;

		for (enum cgroup_ctl k = 0; k < i; k++)
			is_seen |= (h->usable & BIT(k)) && str_eq(h->base[k], h->base[i]);
		if ((h->usable & BIT(i)) && !is_seen)
			reap_base(h->base[i]);
	}
}
