/* SPDX-License-Identifier: Apache-2.0 */
/* cli/policy.c - the verbs `policy` and `trust`
 *
 * `trust` reads the project file once and pins what it read, after it has shown what that content opens: a person
 * who types the word has the list on the screen. Nothing is ever asked, so that it can be used in scripts.
 */
#include "policy/policy.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/table.h"
#include "core/facts.h"
#include "core/settings.h"
#include "core/trust.h"

enum { OPT_JSON = 1, OPT_REMOVE, OPT_LIST };

const struct opt policy_opts[] = {
	{ "json", 0, NULL, "with 'show': print one JSON object", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt trust_opts[] = {
	{ "remove", 0, NULL, "end the trust", OPT_REMOVE },
	{ "list", 0, NULL, "list what is trusted", OPT_LIST },
	TABLE_OPTS("with --list: print JSON", "with --list: print the paths only"),
	{ NULL, 0, NULL, NULL, 0 },
};

static void print_path(struct buf *out, const char *path)
{
	buf_esc(out, path, strlen(path));
}

/* policy check */

static bool is_project_name(const char *path)
{
	return str_eq(path_name(path), SETTINGS_PROJECT_NAME);
}

/* The text on top of the built-in layer, as the file it is. */
static int merge_alone(const char *path, const struct buf *text, bool may_widen, struct policy *p,
		       struct err *e)
{
	int r;

	policy_init(p);
	r = policy_merge_text(p, path, buf_cstr(text), text->n,
			      is_project_name(path) ? LAYER_PROJECT : LAYER_USER, may_widen, e);
	if (r < 0)
		return r;
	r = policy_validate(p, e);
	if (r < 0) {
		e->kind = ERR_CONFIG;
		return err_wrap(e, r, "%s", path);
	}
	return 0;
}

static int check_file(const char *path, struct buf *out, struct err *e)
{
	_cleanup_(policy_done) struct policy wide = { 0 }, tight = { 0 };
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	struct err why = ERR_INIT;
	int r = io_read_file(path, &text, e);

	if (r < 0) {
		e->kind = ERR_USAGE;
		return r;
	}
	r = merge_alone(path, &text, true, &wide, e);
	if (r < 0)
		return r;
	print_path(out, path);
	buf_puts(out, ": ok\n");
	if (is_project_name(path) && merge_alone(path, &text, false, &tight, &why) < 0)
		buf_printf(out, "note: %s\n", why.msg);
	return 0;
}

static int policy_check(char *const *paths, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	int r = 0;

	if (*paths == NULL)
		return err_set(e, ERR_USAGE, EINVAL, "policy check needs a file");
	for (; *paths && r == 0; paths++)
		r = check_file(*paths, &out, e);
	/* What was fine is said even when a later file is not. */
	if (r < 0) {
		(void)io_write_all(STDOUT_FILENO, buf_cstr(&out), out.n);
		return r;
	}
	return cli_print(&out, e);
}

/* policy show */

static int policy_show(bool as_json, struct err *e)
{
	_cleanup_(host_done) struct host host = { .ws_fd = FD_NONE };
	_cleanup_(policy_done) struct policy p = { 0 };
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	struct settings_in in = { .use_project = true };
	_free_ char *here = NULL;
	int r = host_init(&host, NULL, e);

	if (r < 0)
		return r;
	r = path_real(".", &here, e);
	if (r < 0)
		return r;
	in.config_dir = host.config_dir;
	/* The home directory cannot be a workspace, but it is a fine place to ask from. */
	if (!path_is_beneath(host.config_dir, here))
		in.workspace = here;
	policy_init(&p);
	r = settings_load(&p, &in, e);
	if (r < 0)
		return r;
	policy_print(&p, as_json, &out);
	return cli_print(&out, e);
}

int cmd_policy(int argc, char **argv, struct err *e)
{
	static const char *const words[] = { "check", "show", NULL };
	bool as_json = false;
	struct opts o;
	const char *word, *near;
	int id;

	opts_init(&o, policy_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0)
		as_json = true;
	if (id < 0)
		return id;
	if (o.at >= argc)
		return err_set(e, ERR_USAGE, EINVAL, "policy needs 'check FILE' or 'show'");
	word = argv[o.at++];
	near = cli_nearest(word, words);
	if (!str_eq(word, "check") && !str_eq(word, "show"))
		return err_set(e, ERR_USAGE, EINVAL, "unknown word '%.40s' behind policy%s%s%s",
			       word,
			       near ? "; did you mean '" : "; it takes 'check FILE' or 'show'",
			       near ? near : "", near ? "'?" : "");
	if (str_eq(word, "check"))
		return as_json ? err_set(e, ERR_USAGE, EINVAL, "--json belongs to 'policy show'")
			       : policy_check(argv + o.at, e);
	if (o.at < argc)
		return err_set(e, ERR_USAGE, EINVAL, "policy show takes no arguments");
	return policy_show(as_json, e);
}

/* trust */

/* The directory of the project file that PATH (a file of that name, or a directory) means. */
static int project_dir(const char *path, char **ret, struct err *e)
{
	_free_ char *parent = NULL;
	int r;

	if (is_project_name(path)) {
		parent = path_parent(path);
		path = parent[0] ? parent : ".";
	}
	r = path_real(path, ret, e);
	if (r < 0)
		e->kind = ERR_USAGE;
	return r;
}

static const struct column trust_columns[] = {
	{ "path", "Path", "PATH", COLUMN_TEXT },
	{ "sha256", "Sha256", "SHA256", COLUMN_TEXT },
};

static int trust_list(const char *config_dir, struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = trust_columns,
						 .n_columns = ARRAY_LEN(trust_columns) };
	_cleanup_(buf_done) struct buf list = BUF(MIB);
	int r = trust_read(config_dir, &list, e);

	if (r < 0)
		return r;
	for (const char *p = buf_cstr(&list); *p;) {
		size_t n = strcspn(p, "\n"), hash = strcspn(p, " \n");
		size_t blanks = strspn(p + hash, " ");
		struct cell *c = table_row(&t);

		c[0].text = mem_strn(p + hash + blanks, n - hash - blanks);
		c[1].text = mem_strn(p, hash);
		p += n + (p[n] == '\n');
	}
	/* For people as it stands in the file. */
	if (!how->as_json && !table_is_asked(how))
		how->format = "{{.Sha256}}  {{.Path}}";
	return table_show(&t, how, e);
}

static int trust_end(const char *config_dir, const char *dir, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB);
	_free_ char *path = path_join(dir, SETTINGS_PROJECT_NAME);
	int r = trust_remove(config_dir, path, e);

	if (r < 0)
		return r;
	print_path(&out, path);
	buf_puts(&out, r ? ": no longer trusted\n" : ": was not trusted\n");
	return cli_print(&out, e);
}

static int trust_pin(const char *config_dir, const char *dir, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES), out = BUF(16 * MIB);
	_cleanup_(policy_done) struct policy p = { 0 };
	_free_ char *path = NULL;
	int r = settings_read_project(dir, &text, &path, e);

	if (r == -ENOENT)
		return err_set(e, ERR_USAGE, ENOENT, "there is no %s in '%.300s'",
			       SETTINGS_PROJECT_NAME, dir);
	if (r < 0)
		return r;
	r = merge_alone(path, &text, true, &p, e);
	if (r < 0)
		return r;
	r = trust_add(config_dir, path, buf_cstr(&text), text.n, e);
	if (r < 0)
		return r;
	print_path(&out, path);
	buf_puts(&out, ": trusted as it is now\n");
	policy_print_widenings(&p, &out);
	return cli_print(&out, e);
}

int cmd_trust(int argc, char **argv, struct err *e)
{
	_cleanup_(host_done) struct host host = { .ws_fd = FD_NONE };
	struct table_how how = { 0 };
	_free_ char *dir = NULL;
	struct opts o;
	int id, what = 0, r;

	opts_init(&o, trust_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		if (table_opt(&how, &o, id))
			continue;
		if (what && what != id)
			return err_set(e, ERR_USAGE, EINVAL,
				       "--remove and --list do not go together");
		what = id;
	}
	if (id < 0)
		return id;
	if (argc - o.at > (what == OPT_LIST ? 0 : 1))
		return err_set(e, ERR_USAGE, EINVAL,
			       what == OPT_LIST ? "trust --list takes no arguments"
						: "trust takes one path");
	if (what != OPT_LIST && (how.as_json || table_is_asked(&how)))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--json, --quiet and --format belong to 'trust --list'");
	r = host_init(&host, NULL, e);
	if (r < 0)
		return r;
	if (what == OPT_LIST)
		return trust_list(host.config_dir, &how, e);
	r = project_dir(o.at < argc ? argv[o.at] : ".", &dir, e);
	if (r < 0)
		return r;
	return what == OPT_REMOVE ? trust_end(host.config_dir, dir, e)
				  : trust_pin(host.config_dir, dir, e);
}
