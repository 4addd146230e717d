/* SPDX-License-Identifier: Apache-2.0 */
/* cli/quarantine.c - the verb `quarantine`: what was taken out of a workspace, and how to have it back
 *
 * `quarantine/NAME/` below the state directory holds what was taken, under a number, and QUARANTINE_LIST, one line each.
 * Names and contents were made inside: they are shown escaped, and nothing in them is followed. What comes back is what
 * the user asked for by name; it never replaces anything, and never goes through a link.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/quarantine.h"
#include "cli/review.h"
#include "cli/run.h"
#include "cli/table.h"
#include "keep/keep.h"

#define LIST_MAX (64 * MIB)
#define FILE_MAX (64 * MIB) /* more is never taken */

enum { OPT_WORKSPACE = 1 };

const struct opt quarantine_opts[] = {
	TABLE_OPTS("ls: print JSON", "ls: print the sandboxes only"),
	{ "workspace", 0, "DIR",
	  "restore: where the path begins (default: the sandbox's workspace)", OPT_WORKSPACE },
	{ NULL, 0, NULL, NULL, 0 },
};

static const struct column columns[] = {
	{ "name", "Name", "SANDBOX", COLUMN_TEXT }, { "id", "Id", "ID", COLUMN_TEXT },
	{ "taken", "Taken", "TAKEN", COLUMN_AGO },  { "rule", "Rule", "RULE", COLUMN_TEXT },
	{ "path", "Path", "PATH", COLUMN_TEXT },
};

struct taken {
	char *saved, *path,
		*rule; /* saved: the name it has now; the number in front of '-' is its id */
	uint64_t when;
};

struct taken_list {
	struct taken *v;
	size_t n;
};

static void list_done(struct taken_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].saved);
		free(l->v[i].path);
		free(l->v[i].rule);
	}
	free(l->v);
	*l = (struct taken_list){ 0 };
}

static bool is_one_name(const char *s)
{
	return s[0] && s[0] != '.' && strchr(s, '/') == NULL && !str_eq(s, QUARANTINE_LIST);
}

static int open_place(const char *state_dir, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/quarantine/%s", state_dir, name);
	int fd = is_one_name(name) ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				   : -1;

	return fd >= 0 ? fd
		       : err_set(e, ERR_NOTFOUND, ENOENT,
				 "nothing of '%.64s' is in the quarantine; 'vitrine quarantine ls' "
				 "lists what is",
				 name);
}

/* What was restored or removed since is still in the list, and no longer in the folder. */
static void add(int dir, const struct json *v, struct taken_list *l)
{
	const char *saved = json_text(v, "saved", "");
	struct stat st;

	if (!is_one_name(saved) || fstatat(dir, saved, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	l->v = mem_grow(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = (struct taken){ .saved = mem_str(saved),
				       .path = mem_str(json_text(v, "path", "")),
				       .rule = mem_str(json_text(v, "rule", "")),
				       .when = (uint64_t)st.st_ctime };
}

static int read_list(int dir, struct taken_list *l, struct err *e)
{
	_close_ int fd =
		openat(dir, QUARANTINE_LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF(LIST_MAX);
	int r = fd < 0 ? 0 : io_read_fd(fd, &text, e);

	for (const char *p = r < 0 ? "" : buf_cstr(&text); *p;) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		size_t n = strcspn(p, "\n");
		struct err broken = ERR_INIT;

		if (json_parse_foreign(p, n, &doc, &broken) == 0)
			add(dir, doc.root, l);
		p += n + (p[n] == '\n');
	}
	return r;
}

size_t quarantine_count(const char *state_dir, const char *name, uint64_t since)
{
	_cleanup_(list_done) struct taken_list l = { 0 };
	struct err ignored = ERR_INIT;
	_close_ int dir = open_place(state_dir, name, &ignored);
	size_t n = 0;

	if (dir < 0 || read_list(dir, &l, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < l.n; i++)
		n += l.v[i].when >= since;
	return n;
}

static char *id_of(const struct taken *t)
{
	return mem_strn(t->saved, strcspn(t->saved, "-"));
}

/* The newest of a path, or the one with this number or name. */
static const struct taken *find(const struct taken_list *l, const char *word)
{
	for (size_t i = l->n; i-- > 0;) {
		_free_ char *id = id_of(&l->v[i]);

		if (str_eq(id, word) || str_eq(l->v[i].saved, word) || str_eq(l->v[i].path, word))
			return &l->v[i];
	}
	return NULL;
}

/* ---- ls, show ---- */

static int list_one(const char *state_dir, const char *name, struct table *t, struct err *e)
{
	_cleanup_(list_done) struct taken_list l = { 0 };
	_close_ int dir = open_place(state_dir, name, e);
	int r = dir < 0 ? dir : read_list(dir, &l, e);

	for (size_t i = 0; r == 0 && i < l.n; i++) {
		struct cell *c = table_row(t);

		c[0].text = mem_str(name);
		c[1].text = id_of(&l.v[i]);
		c[2].num = l.v[i].when;
		c[3].text = mem_str(l.v[i].rule);
		c[4].text = mem_str(l.v[i].path);
	}
	return r;
}

static int list(const struct host *h, const char *name, const struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_free_ char *path = mem_fmt("%s/quarantine", h->state_dir);
	DIR *d = name ? NULL : opendir(path);
	struct dirent *en;
	int r = name ? list_one(h->state_dir, name, &t, e) : 0;

	while (d && r == 0 && (en = readdir(d)) != NULL)
		if (is_one_name(en->d_name))
			r = list_one(h->state_dir, en->d_name, &t, e);
	if (d)
		(void)closedir(d);
	return r < 0 ? r : table_show(&t, how, e);
}

static int show_dir(int dir, const char *name, const char *rel, struct buf *out, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;

	if (d == NULL) {
		fd_close(fd);
		return -errno;
	}
	while ((en = readdir(d)) != NULL) {
		_free_ char *below = mem_fmt("%s/%s", rel, en->d_name);

		if (str_eq(en->d_name, ".") || str_eq(en->d_name, ".."))
			continue;
		buf_printf(out, "%s\n", below);
		if (depth < 32)
			(void)show_dir(dirfd(d), en->d_name, below, out, depth + 1);
	}
	(void)closedir(d);
	return 0;
}

static int show(int dir, const struct taken *t, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(FILE_MAX + MIB);
	_close_ int fd = FD_NONE;
	struct stat st;
	int r = 0;

	if (fstatat(dir, t->saved, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "'%s'", t->saved);
	if (S_ISDIR(st.st_mode)) {
		(void)show_dir(dir, t->saved, t->path, &out, 0); /* what is closed is not shown */
		return cli_print_foreign(&out, e);
	}
	fd = openat(dir, t->saved, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	r = fd < 0 ? err_sys(e, "'%s'", t->saved) : io_read_fd(fd, &out, e);
	return r < 0 ? r : cli_print_foreign(&out, e);
}

/* ---- restore, rm ---- */

/* On another file system: a file is copied, a directory is left where it lies. */
static int copy_file(const char *place, int dir, const struct taken *t, int to, const char *name,
		     struct err *e)
{
	_close_ int in = openat(dir, t->saved, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);
	_close_ int out = FD_NONE;
	struct stat st = { 0 };
	int r = in < 0 || fstat(in, &st) < 0 ? err_sys(e, "'%s'", t->saved) : 0;

	if (r == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_UNSUPPORTED, EXDEV,
			       "it is a directory on another file system; copy it from '%.300s/%s'",
			       place, t->saved);
	if (r == 0)
		r = io_read_fd(in, &b, e);
	if (r < 0)
		return r;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		     st.st_mode & 0777);
	if (out < 0)
		return err_sys(e, "'%s'", name);
	if (io_write_all(out, b.p, b.n) < 0 || fsync(out) < 0) {
		r = err_sys(e, "'%s'", name);
		(void)unlinkat(to, name, 0); /* half of it is of no use */
		return r;
	}
	(void)unlinkat(dir, t->saved, 0); /* it is there twice then */
	return 0;
}

/* `workspace`: a real path; `place`: that of `dir`. */
static int restore(const struct host *h, const char *place, int dir, const struct taken *t,
		   const char *workspace, struct err *e)
{
	_free_ char *parent = mem_str(t->path), *runs = def_runs_in(h->state_dir, workspace);
	_close_ int ws = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = FD_NONE;
	char *slash = strrchr(parent, '/');
	const char *name = slash ? slash + 1 : t->path;
	struct err why = ERR_INIT;
	int r = ws < 0 ? err_sys(e, "'%s'", workspace) : 0;

	if (slash)
		*slash = '\0';
	if (r == 0 && runs)
		r = err_set(e, ERR_CONFLICT, EBUSY,
			    "sandbox '%s' is running in '%.200s' and would quarantine the file "
			    "again; 'vitrine stop %s' first",
			    runs, workspace, runs);
	if (r < 0)
		return r;
	to = slash ? path_open_beneath(ws, parent, O_RDONLY | O_DIRECTORY, &why)
		   : fcntl(ws, F_DUPFD_CLOEXEC, 3);
	if (to == -ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "'%.120s' cannot be restored: its directory '%.120s' does not exist "
			       "any more (%.150s); create it first",
			       t->path, parent, why.msg);
	if (to < 0)
		return err_set(e, ERR_SYSTEM, -to, "'%.120s' cannot be restored: %.300s", t->path,
			       why.msg);
	if (renameat2(dir, t->saved, to, name, RENAME_NOREPLACE) < 0)
		r = errno == EXDEV    ? copy_file(place, dir, t, to, name, e)
		    : errno == EEXIST ? err_set(e, ERR_CONFLICT, EEXIST,
						"there is something at '%.200s' again; move it "
						"away "
						"first",
						t->path)
				      : err_sys(e, "'%s'", t->path);
	if (r == 0) {
		_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

		buf_printf(&b, "restored %s/%s; programs on this host can now execute it\n",
			   workspace, t->path);
		r = cli_print_foreign(&b, e);
	}
	return r;
}

/* Where a restored file goes: `given`, else the workspace of the sandbox. */
static int find_workspace(const struct host *h, const char *name, const char *given, char **ret,
			  struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };

	if (given)
		return path_real(given, ret, e);
	/* Of a run without a name, and of what a later start found, no workspace is recorded: the current directory is meant. */
	if (str_starts(name, "run-") || str_eq(name, "found-later"))
		return path_real(".", ret, e);
	if (def_read(h->state_dir, name, &d, e) < 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "the workspace of '%.64s' is not known, since the sandbox was "
			       "removed; name it: 'vitrine quarantine restore --workspace DIR "
			       "%.64s ...'",
			       name, name);
	return path_real(d.workspace, ret, e);
}

static int on_each(const struct host *h, const char *const *words, size_t n, const char *given,
		   struct err *e)
{
	_cleanup_(list_done) struct taken_list l = { 0 };
	_free_ char *place = mem_fmt("%s/quarantine/%s", h->state_dir, words[1]), *workspace = NULL;
	_close_ int dir = open_place(h->state_dir, words[1], e);
	bool is_rm = str_eq(words[0], "rm"), is_show = str_eq(words[0], "show");
	int r = dir < 0 ? dir : read_list(dir, &l, e);

	if (r == 0 && n == 2 && !is_rm)
		r = err_set(e, ERR_USAGE, EINVAL,
			    "quarantine %s: which? 'vitrine quarantine ls %.64s'", words[0],
			    words[1]);
	if (r == 0 && !is_rm && !is_show)
		r = find_workspace(h, words[1], given, &workspace, e);
	for (size_t i = 2; r == 0 && i < n; i++) {
		const struct taken *t = find(&l, words[i]);

		if (t == NULL)
			r = err_set(e, ERR_NOTFOUND, ENOENT,
				    "'%.100s' of '%.64s' is not in the quarantine; 'vitrine "
				    "quarantine ls %.64s' lists what is",
				    words[i], words[1], words[1]);
		else if (is_show)
			r = show(dir, t, e);
		else if (is_rm)
			r = path_remove(dir, t->saved) < 0 ? err_sys(e, "'%s'", t->saved) : 0;
		else
			r = restore(h, place, dir, t, workspace, e);
	}
	for (size_t i = 0; r == 0 && is_rm && n == 2 && i < l.n; i++)
		r = path_remove(dir, l.v[i].saved) < 0 ? err_sys(e, "'%s'", l.v[i].saved) : 0;
	return r;
}

int cmd_quarantine(int argc, char **argv, struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	_free_ const char **words = mem_new((size_t)argc + 1, sizeof(*words));
	const char *workspace = NULL;
	struct table_how how = { 0 };
	struct opts o;
	size_t n = 0;
	int r;

	for (opts_init(&o, quarantine_opts, argc, argv);;) {
		r = opts_next(&o, e);
		if (r < 0)
			return r;
		if (r > 0 && !table_opt(&how, &o, r))
			workspace = o.value;
		else if (r == 0 && o.at >= argc)
			break;
		else if (r == 0)
			words[n++] = argv[o.at++];
	}
	r = host_init(&h, NULL, e);
	if (r < 0)
		return r;
	if (n == 0 || (str_eq(words[0], "ls") && n < 3))
		return list(&h, n > 1 ? words[1] : NULL, &how, e);
	if (n > 1 &&
	    (str_eq(words[0], "show") || str_eq(words[0], "restore") || str_eq(words[0], "rm")))
		return on_each(&h, words, n, workspace, e);
	return err_set(e, ERR_USAGE, EINVAL,
		       "quarantine: 'vitrine quarantine ls [NAME]', 'show|restore NAME ID|PATH...' "
		       "or "
		       "'rm NAME [ID|PATH...]'");
}
