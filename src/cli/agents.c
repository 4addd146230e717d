/* SPDX-License-Identifier: Apache-2.0 */
/* cli/agents.c - vitrine agents: the presets, and which of them could run here */
#include "agent/preset.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/facts.h"

const struct opt agents_opts[] = {
	TABLE_OPTS("print JSON", "print only the names of those that are installed"),
	{ NULL, 0, NULL, NULL, 0 },
};

static const struct column columns[] = {
	{ "name", "Name", "AGENT", COLUMN_TEXT },
	{ "installed", "Installed", "INSTALLED", COLUMN_TEXT },
	{ "program", "Program", NULL, COLUMN_TEXT },
	{ "path", "Path", NULL, COLUMN_TEXT },
	{ "guard", "Guard", "GUARD", COLUMN_BOOL },
	{ "secrets", "Secrets", "SECRETS", COLUMN_TEXT },
	{ "summary", "Summary", "SUMMARY", COLUMN_TEXT },
	{ "install", "Install", NULL, COLUMN_TEXT },
	{ "origin", "Origin", NULL, COLUMN_TEXT },
};

/* Will what lies there be seen inside? The same tables as the plan's. */
static bool is_seen(const char *path, const char *home)
{
	for (const char *const *v = plan_root_paths; *v; v++)
		if (path_is_beneath(path, *v))
			return true;
	for (const char *const *v = plan_tool_paths; *v; v++) {
		_free_ char *dir = path_join(home, *v);

		if (path_is_beneath(path, dir))
			return true;
	}
	return false;
}

static const char *installed(const char *path, const char *home)
{
	_free_ char *real = NULL;
	struct err e = ERR_INIT;

	if (path == NULL)
		return "no";
	if (path_real(path, &real, &e) < 0 || !is_seen(path, home) || !is_seen(real, home))
		return "not seen inside"; /* --read shows it */
	return "yes";
}

bool cli_agent_is_here(const struct preset *p, const char *home)
{
	_free_ char *path = cli_find_program(preset_program(p));

	return str_eq(installed(path, home), "yes");
}

bool cli_is_agent(const char *word)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	struct err ignored = ERR_INIT;

	/* Without a home the built-in ones are known all the same. */
	(void)host_init(&h, NULL, &ignored);
	return preset_is_there(h.config_dir, word);
}

static char *joined(const struct json *list)
{
	struct buf b = BUF(64 * KIB);

	for (const struct json *v = list ? list->first : NULL; v; v = v->next)
		buf_printf(&b, "%s%s", b.n ? " " : "", v->text);
	return b.n ? buf_take(&b) : NULL;
}

static int add_row(struct table *t, const char *config_dir, const char *name, const char *home,
		   bool is_quiet, struct err *e)
{
	_cleanup_(preset_done) struct preset p = { 0 };
	_free_ char *path = NULL;
	struct cell *c;
	int r = preset_load(config_dir, name, &p, e);

	/* One that is broken does not hide the others. */
	if (r < 0) {
		cli_complain(e->msg);
		*e = ERR_INIT;
		return 0;
	}
	path = cli_find_program(preset_program(&p));
	if (is_quiet && !str_eq(installed(path, home), "yes"))
		return 0;
	c = table_row(t);
	c[0].text = mem_str(name);
	c[1].text = mem_str(installed(path, home));
	c[2].text = mem_str(preset_program(&p));
	c[3].text = take(path);
	c[4].num = p.hook != NULL;
	c[5].text = joined(p.secrets);
	c[6].text = mem_str(p.summary);
	c[7].text = p.install ? mem_str(p.install) : NULL;
	c[8].text = mem_str(p.origin);
	return 0;
}

int cmd_agents(int argc, char **argv, struct err *e)
{
	_cleanup_(host_done) struct host host = { .ws_fd = FD_NONE };
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	struct table_how how = { 0 };
	char **names = NULL;
	struct opts o;
	int id, r;

	opts_init(&o, agents_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0)
		(void)table_opt(&how, &o, id);
	if (id < 0)
		return id;
	if (o.at < argc)
		return err_set(e, ERR_USAGE, EINVAL, "agents takes no arguments");
	r = host_init(&host, NULL, e);
	if (r == 0)
		r = preset_names(host.config_dir, &names, e);
	for (size_t i = 0; r == 0 && names[i]; i++)
		r = add_row(&t, host.config_dir, names[i], host.home, how.is_quiet, e);
	preset_names_free(names);
	return r < 0 ? r : table_show(&t, &how, e);
}
