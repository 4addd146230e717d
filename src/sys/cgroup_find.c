/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup_find.c - finding a place for our control groups
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
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/path.h"
#include "sys/cgroup_file.h"

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
			if (controller ? !m.is_v2 && cgroup_has_word(m.options, controller, ",")
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

			if (controller ? cgroup_has_word(list, controller, ",") : *list == '\0')
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
	if (file && !cgroup_may_write(path, file))
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
		_free_ char *dir = own_dir(mountinfo, groups, cgroup_names[i].v1);
		int r;

		if (dir == NULL)
			continue;
		r = try_group(dir, cgroup_names[i].v1_file);
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
	_cleanup_(buf_done) struct buf b = BUF(CGROUP_FILE_MAX);

	/* Too many to read are processes too. */
	return !cgroup_read(dir, "cgroup.procs", &b) || b.n > 0;
}

/* Could children of `dir` have this controller? `may_empty`: we may move the processes in it away. */
static bool can_hand_on(const char *dir, const char *controller, bool may_empty)
{
	if (cgroup_file_has(dir, "cgroup.subtree_control", controller))
		return true;
	return cgroup_file_has(dir, "cgroup.controllers", controller) &&
	       cgroup_may_write(dir, "cgroup.subtree_control") &&
	       (may_empty || is_root_group(dir) || !has_processes(dir));
}

static bool use_v2(struct cgroup_host *h, const char *dir, bool may_empty)
{
	if (!cgroup_may_write(dir, NULL) || !cgroup_may_write(dir, "cgroup.procs"))
		return false;
	if (try_group(dir, "cgroup.procs") < 0)
		return false;
	for (enum cgroup_ctl i = 0; i < CG_COUNT_; i++)
		if (cgroup_names[i].v2 && can_hand_on(dir, cgroup_names[i].v2, may_empty))
			(void)set_base(h, i, dir);
	/* Freezing needs no controller. */
	(void)set_base(h, CG_FREEZER, dir);
	return (h->usable & ~BIT(CG_FREEZER)) != 0;
}

static void probe_v2(struct cgroup_host *h, const char *own)
{
	_free_ char *parent = path_parent(own);
	bool may_empty = cgroup_may_write(own, NULL) && cgroup_may_write(own, "cgroup.procs");

	h->version = CGROUP_V2;
	if (is_root_group(own)
		    ? use_v2(h, own, false)
		    : (may_empty && is_delegated(own) && use_v2(h, own, true)) ||
			      use_v2(h, parent, false) || (may_empty && use_v2(h, own, true)))
		return;
	if (!cgroup_may_write(own, NULL))
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
		if (cgroup_names[i].v2 &&
		    cgroup_file_has(own, "cgroup.controllers", cgroup_names[i].v2))
			return true;
	return false;
}

static void probe_texts(struct cgroup_host *h, const char *mountinfo, const char *groups)
{
	_free_ char *own = own_dir(mountinfo, groups, NULL);
	bool has_v1 = false;

	for (enum cgroup_ctl i = 0; i < CG_COUNT_ && !has_v1; i++) {
		_free_ char *dir = own_dir(mountinfo, groups, cgroup_names[i].v1);

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
	_cleanup_(buf_done) struct buf mounts = BUF(4 * MIB), groups = BUF(CGROUP_FILE_MAX);

	/* What cannot be read is not there: an empty text gives CGROUP_NONE and its reason. */
	(void)cgroup_read("/proc/self", "mountinfo", &mounts);
	(void)cgroup_read("/proc/self", "cgroup", &groups);
	probe_texts(ret, buf_cstr(&mounts), buf_cstr(&groups));
}
