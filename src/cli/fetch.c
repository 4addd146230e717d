/* SPDX-License-Identifier: Apache-2.0 */
/* cli/fetch.c - vitrine fetch: the commits of a sandbox that works in a clone */
#include "cli/cli.h"
#include "core/def.h"
#include "core/facts.h"
#include "git/git.h"

enum { OPT_QUIET = 1, OPT_JSON };

const struct opt fetch_opts[] = {
	{ "quiet", 'q', NULL, "say only what changed, in one line", OPT_QUIET },
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

struct fetch {
	struct host host;
	struct def def;
	struct git_refs before;
	struct git_taken taken;
	bool is_quiet, as_json;
};

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
		buf_printf(out, "%-9.9s..%-9.9s  ", old ? old->oid : "new", r->oid);
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
		buf_printf(&out, "'git fetch vitrine/%s' brings them into your repository\n",
			   f->def.name);
	return cli_print(&out, e);
}

static int fetch(struct fetch *f, const char *name, struct err *e)
{
	static const char *const refspecs[] = { "+refs/heads/*:refs/heads/*", NULL };
	_free_ char *bare = NULL;
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
	return tell(f, e);
}

int cmd_fetch(int argc, char **argv, struct err *e)
{
	struct fetch f = { 0 };
	struct opts o;
	int id, r;

	opts_init(&o, fetch_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		f.is_quiet |= id == OPT_QUIET;
		f.as_json |= id == OPT_JSON;
	}
	if (id < 0)
		return id;
	if (argc - o.at != 1)
		return err_set(e, ERR_USAGE, EINVAL, "fetch: which sandbox? 'vitrine fetch NAME'");
	r = host_init(&f.host, NULL, e);
	if (r == 0)
		r = fetch(&f, argv[o.at], e);
	git_refs_done(&f.before);
	git_refs_done(&f.taken.refs);
	def_done(&f.def);
	host_done(&f.host);
	return r;
}
