/* SPDX-License-Identifier: Apache-2.0 */
/* cli/fetch.c - vitrine fetch: the commits of a sandbox that works in a clone
 *
 * Commits are taken into a repository of ours, where nothing runs, and first as no branch of it. What a checkout of them
 * would bring is held to the rules of view/outcome. Branches that bring nothing of that kind become branches of the
 * repository, from where the user's git fetches; the others are held back, and each path is named with its reason. Which
 * commits came, and which did not, is printed by their whole ids: --commit BRANCH=ID takes that very commit, whatever the
 * branch is at by then, because the user has seen what it brings.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "cli/cli.h"
#include "cli/spot.h"
#include "core/def.h"
#include "core/facts.h"
#include "git/git.h"
#include "view/outcome.h"

#define NAMED_MAX 100
#define LOOKS_MAX 32 /* at sets of branches; what is not looked at then is held back */
#define HEADS "refs/heads/"

enum { OPT_QUIET = 1, OPT_JSON, OPT_COMMIT };

const struct opt fetch_opts[] = {
	{ "quiet", 'q', NULL, "say only what is wrong", OPT_QUIET },
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "commit", 0, "BRANCH=ID",
	  "take this very commit as BRANCH, and nothing else, whatever it brings", OPT_COMMIT },
	{ NULL, 0, NULL, NULL, 0 },
};

/* A branch that was taken, under its name in refs/heads/. */
struct branch {
	struct git_ref ref;
	bool is_changed, is_held;
};

struct fetch {
	struct host host;
	struct def def;
	struct git_refs before;
	struct git_taken taken;
	bool is_quiet, as_json;
	const char *commit; /* BRANCH=ID; NULL: all branches as they are */
	struct branch *branches;
	size_t n_branches;
	unsigned looks;
	struct git_paths paths; /* of the branches that are being looked at */
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

/* Adds to what is objected to; the number of paths. */
static size_t judge_paths(struct fetch *f, struct outcome_tree *o)
{
	size_t before = f->n;

	for (size_t i = 0; i < f->paths.n; i++) {
		const char *path = f->paths.v[i].path;
		_free_ char *why = outcome_why(o, path);

		if (why == NULL || (i > 0 && str_eq(path, f->paths.v[i - 1].path)))
			continue;
		vec_reserve(f->objected, f->n, f->cap);
		f->objected[f->n++] = mem_fmt("%s: %s", path, why);
	}
	outcome_done(o);
	return f->n - before;
}

static void forget_objected(struct fetch *f, size_t n)
{
	while (f->n > n)
		free(f->objected[--f->n]);
}

static void hold(struct branch *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i]->is_held = true;
}

/* Which of these branches bring something that is objected to. */
static int judge_some(struct fetch *f, const char *bare, struct outcome_tree *o,
		      struct branch *const *v, size_t n, struct err *e)
{
	struct git_ref refs[GIT_BRINGS_MAX];
	size_t before = f->n, half = n / 2;
	int r;

	if (n == 0)
		return 0;
	if (n <= GIT_BRINGS_MAX) {
		if (f->looks++ >= LOOKS_MAX) {
			hold(v, n);
			return 0;
		}
		for (size_t i = 0; i < n; i++)
			refs[i] = v[i]->ref;
		git_paths_done(&f->paths);
		r = git_brings(f->host.state_dir, bare, refs, n, &f->paths, e);
		if (r < 0 || judge_paths(f, o) == 0)
			return r;
		if (n == 1) {
			hold(v, 1);
			return 0;
		}
		forget_objected(f, before);
	}
	r = judge_some(f, bare, o, v, half, e);
	return r < 0 ? r : judge_some(f, bare, o, v + half, n - half, e);
}

static int judge_with(struct fetch *f, const char *bare, struct branch *const *v, size_t n,
		      struct err *e)
{
	_cleanup_(policy_done) struct policy p;
	_cleanup_(outcome_host_done) struct outcome_host h = { 0 };
	struct outcome_tree o = {
		.p = &p, .host = &h, .type = type_of, .read = read_none, .is_old = is_old, .arg = f
	};
	int r;

	policy_init(&p);
	f->ws = open(f->def.workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->ws < 0)
		return err_sys(e, "'%s'", f->def.workspace);
	policy_done(&p);
	r = spot_policy(&f->host, &f->def, &p, e);
	if (r == 0)
		r = outcome_host_load(f->ws, &p, &h, e);
	return r < 0 ? r : judge_some(f, bare, &o, v, n, e);
}

/* What could not be judged is held back as well. */
static void judge(struct fetch *f, const char *bare)
{
	_free_ struct branch **v = mem_new(f->n_branches, sizeof(struct branch *));
	struct err e = ERR_INIT;
	size_t n = 0;

	for (size_t i = 0; i < f->n_branches; i++)
		if (f->branches[i].is_changed)
			v[n++] = &f->branches[i];
	if (n > 0 && judge_with(f, bare, v, n, &e) < 0) {
		_free_ char *text =
			mem_fmt("what the commits bring could not be judged: %s", e.msg);

		cli_complain(text);
		hold(v, n);
	}
	for (size_t i = 0; i < n; i++)
		v[i]->is_held = v[i]->is_held && f->commit == NULL && !sabotaged("fetch-hold");
}

static const char *short_name(const struct git_ref *r)
{
	return r->name + strlen(HEADS);
}

/* Can the name stand in a command that people copy? It comes from inside. */
static bool is_plain_name(const char *name)
{
	return name[0] != '-' && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
						   "VWXYZ"
						   "0123456789._/-")] == '\0';
}

static void tell_held(const struct fetch *f, const struct branch *b)
{
	const char *name = short_name(&b->ref);
	bool is_plain = is_plain_name(name);
	_cleanup_(buf_done) struct buf text = BUF(16 * KIB);

	buf_puts(&text, "branch '");
	buf_esc(&text, name, strlen(name));
	buf_printf(&text,
		   "' is held back; when you have seen what it brings, 'vitrine fetch --commit "
		   "%s=%s %s' takes exactly this commit",
		   is_plain ? name : "BRANCH", b->ref.oid, f->def.name);
	cli_complain(buf_cstr(&text));
}

static size_t tell_objected(const struct fetch *f)
{
	_free_ char *sum = mem_fmt("%zu paths in these commits are read or run by programs on the "
				   "host once they are checked out; look at them first%s",
				   f->n, f->n > NAMED_MAX ? " (not all are named)" : "");
	size_t held = 0;

	for (size_t i = 0; i < f->n && i < NAMED_MAX; i++)
		cli_complain(f->objected[i]);
	if (f->n > 0)
		cli_complain(sum);
	if (f->looks > LOOKS_MAX) {
		_free_ char *cut = mem_fmt("only %d groups of branches were checked; all unchecked "
					   "branches are held back",
					   LOOKS_MAX);

		cli_complain(cut);
	}
	for (size_t i = 0; i < f->n_branches; i++)
		if (f->branches[i].is_held && held++ < NAMED_MAX)
			tell_held(f, &f->branches[i]);
	return held;
}

/* ---- what was taken becomes branches ---- */

static bool is_same(const struct git_refs *before, const struct git_ref *r)
{
	const struct git_ref *old = git_refs_find(before, r->name);

	return old && str_eq(old->oid, r->oid);
}

static void list_branches(struct fetch *f, const char *only)
{
	f->branches = mem_new(f->taken.refs.n, sizeof(*f->branches));
	for (size_t i = 0; i < f->taken.refs.n; i++) {
		const struct git_ref *r = &f->taken.refs.v[i];
		struct branch *b = &f->branches[f->n_branches];

		if (!str_starts(r->name, GIT_REFS_WAITING) ||
		    (only && !str_eq(r->name + strlen(GIT_REFS_WAITING), only)))
			continue;
		b->ref = *r;
		b->ref.name = mem_fmt(HEADS "%s", r->name + strlen(GIT_REFS_WAITING));
		b->is_changed = !is_same(&f->before, &b->ref);
		f->n_branches++;
	}
}

static bool is_taken(const struct fetch *f, const char *name)
{
	for (size_t i = 0; i < f->n_branches; i++)
		if (str_eq(f->branches[i].ref.name, name))
			return true;
	return false;
}

/* Branches that are gone inside go first: one of them may have the name of a directory that is needed now. */
static int accept_branches(const struct fetch *f, const char *bare, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->before.n; i++)
		if (f->commit == NULL && str_starts(f->before.v[i].name, HEADS) &&
		    !is_taken(f, f->before.v[i].name))
			r = git_ref_put(bare, f->before.v[i].name, NULL, e);
	for (size_t i = 0; r == 0 && i < f->n_branches; i++)
		if (f->branches[i].is_changed && !f->branches[i].is_held)
			r = git_ref_put(bare, f->branches[i].ref.name, f->branches[i].ref.oid, e);
	for (size_t i = 0; r == 0 && i < f->taken.refs.n; i++)
		if (str_starts(f->taken.refs.v[i].name, GIT_REFS_WAITING))
			r = git_ref_put(bare, f->taken.refs.v[i].name, NULL, e);
	return r;
}

static void print_json(const struct fetch *f, struct buf *out)
{
	buf_puts(out, "{\"name\":");
	buf_json(out, f->def.name);
	buf_printf(out, ",\"bytes\":%llu,\"branches\":[", (unsigned long long)f->taken.bytes);
	for (size_t i = 0; i < f->n_branches; i++) {
		const struct branch *b = &f->branches[i];

		buf_printf(out, "%s{\"branch\":", i ? "," : "");
		buf_json(out, short_name(&b->ref));
		buf_printf(out, ",\"commit\":\"%s\",\"changed\":%s,\"held\":%s}", b->ref.oid,
			   b->is_changed ? "true" : "false", b->is_held ? "true" : "false");
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

	for (size_t i = 0; i < f->n_branches; i++) {
		const struct branch *b = &f->branches[i];
		const struct git_ref *old = git_refs_find(&f->before, b->ref.name);

		if (!b->is_changed || b->is_held)
			continue;
		n++;
		buf_printf(out, "%-9.9s..%s  ", old ? old->oid : "new", b->ref.oid);
		buf_esc(out, short_name(&b->ref), strlen(short_name(&b->ref)));
		buf_putc(out, '\n');
	}
	return n;
}

static int tell(const struct fetch *f, size_t held, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB);
	size_t n;

	if (f->as_json) {
		print_json(f, &out);
		return cli_print(&out, e);
	}
	n = print_people(f, &out);
	if (f->is_quiet)
		return 0;
	if (n == 0 && held > 0)
		buf_printf(&out, "no commits were taken; %zu branch%s held back\n", held,
			   held == 1 ? " is" : "es are");
	else if (n == 0)
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
static char *one_refspec(const char *commit, char **ret_branch, struct err *e)
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
	*ret_branch = take(branch);
	return mem_fmt("+%s:" GIT_REFS_WAITING "%s", id + 1, *ret_branch);
}

static int fetch(struct fetch *f, const char *name, struct err *e)
{
	const char *refspecs[] = { "+refs/heads/*:" GIT_REFS_WAITING "*", NULL };
	_free_ char *bare = NULL, *one = NULL, *only = NULL;
	struct git_take t = { .refspecs = refspecs, .prune = true };
	struct err second = ERR_INIT;
	size_t held;
	int r = def_read(f->host.state_dir, name, &f->def, e);

	if (r < 0)
		return r;
	if (!git_clone_exists(f->host.state_dir, name))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%s' does not work in a clone of its own; 'vitrine run --mode "
			       "clone' makes one that does",
			       name);
	if (f->commit) {
		refspecs[0] = one = one_refspec(f->commit, &only, e);
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
	list_branches(f, only);
	judge(f, bare);
	r = accept_branches(f, bare, e);
	if (r < 0)
		return r;
	held = tell_objected(f);
	r = tell(f, held, e);
	return r < 0 ? r : held > 0;
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
	for (size_t i = 0; i < f.n_branches; i++)
		free(f.branches[i].ref.name);
	free(f.branches);
	git_paths_done(&f.paths);
	fd_close(f.ws);
	git_refs_done(&f.before);
	git_refs_done(&f.taken.refs);
	def_done(&f.def);
	host_done(&f.host);
	return r;
}
