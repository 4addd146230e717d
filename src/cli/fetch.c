/* SPDX-License-Identifier: Apache-2.0 */
/* cli/fetch.c - vitrine fetch: the commits of a sandbox that works in a clone
 *
 * Commits are taken into a repository of ours, where nothing runs. What a checkout of them would bring is held to the rules
 * of view/outcome, and named with its reason; which commits came is said by their whole ids, so that these and no others
 * can be merged, or taken once more with --commit, whatever the branches are at by then.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/cli.h"
#include "cli/spot.h"
#include "core/def.h"
#include "core/facts.h"
#include "git/git.h"
#include "view/outcome.h"

#define NAMED_MAX 100

enum { OPT_QUIET = 1, OPT_JSON, OPT_COMMIT };

const struct opt fetch_opts[] = {
	{ "quiet", 'q', NULL, "say only what changed, in one line", OPT_QUIET },
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "commit", 0, "BRANCH=ID", "take this very commit as BRANCH, and nothing else",
	  OPT_COMMIT },
	{ NULL, 0, NULL, NULL, 0 },
};

struct fetch {
	struct host host;
	struct def def;
	struct git_refs before;
	struct git_taken taken;
	bool is_quiet, as_json;
	const char *commit; /* BRANCH=ID; NULL: all branches as they are */
	struct git_paths paths;
	int ws;
	char **objected; /* "PATH: why" */
	size_t n, cap;
};

/* ---- what a checkout would bring ---- */

/* The first path that is not before rel. */
static size_t find_path(const struct git_paths *p, const char *rel)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(p->v[mid].path, rel) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct git_path *coming(const struct fetch *f, const char *rel)
{
	size_t i = find_path(&f->paths, rel);

	return i < f->paths.n && str_eq(f->paths.v[i].path, rel) ? &f->paths.v[i] : NULL;
}

static unsigned char type_of(void *arg, const char *rel, mode_t *ret_mode)
{
	const struct fetch *f = arg;
	const struct git_path *p = coming(f, rel);
	_free_ char *dir = mem_fmt("%s/", rel);
	size_t i = find_path(&f->paths, dir);
	_close_ int fd = FD_NONE;
	struct stat st;

	if (p) {
		*ret_mode = (mode_t)p->mode;
		return p->mode == 0120000 ? DT_LNK : p->mode == 0160000 ? DT_DIR : DT_REG;
	}
	if (i < f->paths.n && str_starts(f->paths.v[i].path, dir))
		return DT_DIR;
	fd = tree_open(f->ws, rel, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return DT_UNKNOWN;
	*ret_mode = st.st_mode;
	return IFTODT(st.st_mode);
}

/* Contents are not looked at: a part of a repository in a commit is worth a word whatever it says. */
static int read_none(void *arg, const char *rel, struct buf *out)
{
	(void)arg;
	(void)rel;
	(void)out;
	return -EACCES;
}

static bool is_old(void *arg, const char *rel)
{
	mode_t mode = 0;

	return coming(arg, rel) == NULL && type_of(arg, rel, &mode) != DT_UNKNOWN;
}

static void judge_paths(struct fetch *f, struct outcome_tree *o)
{
	for (size_t i = 0; i < f->paths.n; i++) {
		const char *path = f->paths.v[i].path;
		_free_ char *why = outcome_why(o, path);

		if (why == NULL || (i > 0 && str_eq(path, f->paths.v[i - 1].path)))
			continue;
		vec_reserve(f->objected, f->n, f->cap);
		f->objected[f->n++] = mem_fmt("%s: %s", path, why);
	}
	outcome_done(o);
}

static int judge(struct fetch *f, const char *bare, struct err *e)
{
	_cleanup_(policy_done) struct policy p;
	_cleanup_(outcome_host_done) struct outcome_host h = { 0 };
	struct outcome_tree o = {
		.p = &p, .host = &h, .type = type_of, .read = read_none, .is_old = is_old, .arg = f
	};
	int r;

	policy_init(&p);
	r = git_brings(f->host.state_dir, bare, &f->before, &f->taken.refs, &f->paths, e);
	if (r < 0 || f->paths.n == 0)
		return r;
	f->ws = open(f->def.workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->ws < 0)
		return err_sys(e, "'%s'", f->def.workspace);
	policy_done(&p);
	r = spot_policy(&f->host, &f->def, &p, e);
	if (r == 0)
		r = outcome_host_load(f->ws, &p, &h, e);
	if (r == 0)
		judge_paths(f, &o);
	return r;
}

static void tell_objected(const struct fetch *f)
{
	_free_ char *sum = mem_fmt("%zu paths in these commits are read or run by programs on the "
				   "host once they are checked out; look at them first%s",
				   f->n, f->n > NAMED_MAX ? " (not all are named)" : "");

	for (size_t i = 0; i < f->n && i < NAMED_MAX; i++)
		cli_complain(f->objected[i]);
	if (f->n > 0)
		cli_complain(sum);
}

static bool is_branch(const struct git_ref *r)
{
	return str_starts(r->name, "refs/heads/");
}

static const char *short_name(const struct git_ref *r)
{
	return r->name + strlen("refs/heads/");
}

static bool is_same(const struct git_refs *before, const struct git_ref *r)
{
	const struct git_ref *old = git_refs_find(before, r->name);

	return old && str_eq(old->oid, r->oid);
}

static void print_json(const struct fetch *f, struct buf *out)
{
	const char *comma = "";

	buf_puts(out, "{\"name\":");
	buf_json(out, f->def.name);
	buf_printf(out, ",\"bytes\":%llu,\"branches\":[", (unsigned long long)f->taken.bytes);
	for (size_t i = 0; i < f->taken.refs.n; i++) {
		const struct git_ref *r = &f->taken.refs.v[i];

		if (!is_branch(r))
			continue;
		buf_printf(out, "%s{\"branch\":", comma);
		buf_json(out, short_name(r));
		buf_printf(out, ",\"commit\":\"%s\",\"changed\":%s}", r->oid,
			   is_same(&f->before, r) ? "false" : "true");
		comma = ",";
	}
	buf_puts(out, "],\"objected\":[");
	for (size_t i = 0; i < f->n; i++) {
		buf_puts(out, i ? "," : "");
		buf_json(out, f->objected[i]);
	}
	buf_puts(out, "]}\n");
}

/* Names come from inside. */
static size_t print_people(const struct fetch *f, struct buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < f->taken.refs.n; i++) {
		const struct git_ref *r = &f->taken.refs.v[i];
		const struct git_ref *old = git_refs_find(&f->before, r->name);

		if (!is_branch(r) || is_same(&f->before, r))
			continue;
		n++;
		buf_printf(out, "%-9.9s..%s  ", old ? old->oid : "new", r->oid);
		buf_esc(out, short_name(r), strlen(short_name(r)));
		buf_putc(out, '\n');
	}
	return n;
}

static int tell(const struct fetch *f, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB);
	size_t n;

	if (f->as_json) {
		print_json(f, &out);
		return cli_print(&out, e);
	}
	n = print_people(f, &out);
	if (f->is_quiet) {
		_free_ char *text = mem_fmt("%zu branches with new commits; 'git fetch vitrine/%s' "
					    "brings them into your repository",
					    n, f->def.name);

		if (n > 0)
			cli_complain(text);
		return 0;
	}
	if (n == 0)
		buf_puts(&out, "no new commits\n");
	else
		buf_printf(&out,
			   "'git fetch vitrine/%s' brings them into your repository; 'git merge "
			   "ID' "
			   "takes exactly what is named here\n",
			   f->def.name);
	return cli_print(&out, e);
}

/* A commit is known by its id alone: whatever the branch is at by now, this one comes or none. */
static char *one_refspec(const char *commit, struct err *e)
{
	const char *id = strrchr(commit, '=');
	size_t n = id ? (size_t)(id - commit) : 0;
	_free_ char *branch = mem_strn(commit, n);

	if (n == 0 || strspn(id + 1, "0123456789abcdef") != strlen(id + 1) ||
	    (strlen(id + 1) != 40 && strlen(id + 1) != 64) || strpbrk(branch, " :*+^~?[\\")) {
		(void)err_set(e, ERR_USAGE, EINVAL,
			      "--commit wants BRANCH=ID, with the whole id that 'fetch' printed");
		return NULL;
	}
	return mem_fmt("+%s:refs/heads/%s", id + 1, branch);
}

static int fetch(struct fetch *f, const char *name, struct err *e)
{
	const char *refspecs[] = { "+refs/heads/*:refs/heads/*", NULL };
	_free_ char *bare = NULL, *one = NULL;
	struct git_take t = { .refspecs = refspecs, .prune = true };
	struct err second = ERR_INIT;
	int r = def_read(f->host.state_dir, name, &f->def, e);

	if (r < 0)
		return r;
	if (!git_clone_exists(f->host.state_dir, name))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%s' does not work in a clone of its own; 'vitrine run --mode "
			       "clone' makes one that does",
			       name);
	if (f->commit) {
		refspecs[0] = one = one_refspec(f->commit, e);
		t.prune = false;
		if (one == NULL)
			return -EINVAL;
	}
	r = places_check_workspace(f->host.state_dir, name, f->def.workspace, e);
	if (r < 0)
		return r;
	bare = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_REPO, f->host.state_dir, name);
	t.state_dir = f->host.state_dir;
	t.bare = bare;
	r = git_bare_look(bare, &f->before, e);
	if (r == 0)
		r = git_take_from(&t, name, f->def.workspace, &f->taken, e);
	if (r < 0)
		return r;
	if (git_remote_put(f->host.state_dir, name, f->def.workspace, &second) < 0)
		cli_complain(second.msg);
	/* What cannot be looked through is said: the commits are taken, and nothing of them runs yet. */
	if (judge(f, bare, &second) < 0) {
		_free_ char *text =
			mem_fmt("what the commits bring could not be judged: %s", second.msg);

		cli_complain(text);
	}
	tell_objected(f);
	r = tell(f, e);
	return r < 0 ? r : f->n > 0;
}

int cmd_fetch(int argc, char **argv, struct err *e)
{
	struct fetch f = { .ws = FD_NONE };
	struct opts o;
	int id, r;

	opts_init(&o, fetch_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		f.is_quiet |= id == OPT_QUIET;
		f.as_json |= id == OPT_JSON;
		if (id == OPT_COMMIT)
			f.commit = o.value;
	}
	if (id < 0)
		return id;
	if (argc - o.at != 1)
		return err_set(e, ERR_USAGE, EINVAL, "fetch: which sandbox? 'vitrine fetch NAME'");
	r = host_init(&f.host, NULL, e);
	if (r == 0)
		r = fetch(&f, argv[o.at], e);
	for (size_t i = 0; i < f.n; i++)
		free(f.objected[i]);
	free(f.objected);
	git_paths_done(&f.paths);
	fd_close(f.ws);
	git_refs_done(&f.before);
	git_refs_done(&f.taken.refs);
	def_done(&f.def);
	host_done(&f.host);
	return r;
}
