/* SPDX-License-Identifier: Apache-2.0 */
/* cli/known.c - the names that a completion offers: `vitrine completion --words KIND...` prints them, a line each
 *
 * Shells ask while somebody types, so nothing is started or connected to: directories and definitions are read, and what
 * cannot be read is left out.
 */
#include <dirent.h>

#include "agent/preset.h"
#include "cli/cli.h"
#include "cli/image.h"
#include "core/def.h"
#include "core/facts.h"
#include "core/netfile.h"
#include "engine/engine.h"
#include "policy/rules.h"
#include "secret/secret.h"

static void put_line(struct buf *out, const char *word)
{
	buf_esc(out, word, strlen(word));
	buf_putc(out, '\n');
}

static void put_sandboxes(const struct host *h, struct buf *out)
{
	struct err ignored = ERR_INIT;
	char **names = NULL;

	if (def_list(h->state_dir, true, &names, &ignored) < 0)
		return;
	for (char **p = names; *p; p++)
		put_line(out, *p);
	def_list_free(names);
}

static void put_agents(const struct host *h, struct buf *out)
{
	struct err ignored = ERR_INIT;
	char **names = NULL;

	if (preset_names(h->config_dir, &names, &ignored) < 0)
		return;
	for (char **p = names; *p; p++)
		put_line(out, *p);
	preset_names_free(names);
}

static void put_engines(const struct host *h, struct buf *out)
{
	(void)h;
	put_line(out, "auto");
	for (const struct engine *en = engines; en->name; en++)
		put_line(out, en->name);
}

static void put_modes(const struct host *h, struct buf *out)
{
	(void)h;
	buf_puts(out, "direct\nreview\nclone\n");
}

static void put_presets(const struct host *h, struct buf *out)
{
	(void)h;
	for (const struct net_preset *p = net_presets; p->name; p++)
		put_line(out, p->name);
}

static void put_groups(const struct host *h, struct buf *out)
{
	(void)h;
	for (const struct net_preset *g = net_groups; g->name; g++)
		put_line(out, g->name);
}

static void put_rule(struct buf *out, const char *flag)
{
	if (str_starts(flag, "--allow=") || str_starts(flag, "--deny="))
		put_line(out, strchr(flag, '=') + 1);
}

/* Those that some sandbox here has a rule for. */
static void put_hosts(const struct host *h, struct buf *out)
{
	struct err ignored = ERR_INIT;
	char **names = NULL;

	if (def_list(h->state_dir, false, &names, &ignored) < 0)
		return;
	for (char **p = names; *p; p++) {
		_cleanup_(def_done) struct def d = { 0 };
		_cleanup_(netfile_done) struct netfile f = { 0 };

		if (def_read(h->state_dir, *p, &d, &ignored) == 0)
			for (size_t i = 0; i < d.n_flags; i++)
				put_rule(out, d.flags[i]);
		if (netfile_read(h->state_dir, *p, &f, &ignored) == 0)
			for (size_t i = 0; i < f.n; i++)
				put_rule(out, f.lines[i]);
	}
	def_list_free(names);
}

static void put_tags(const struct host *h, const char *dir, struct buf *out)
{
	_free_ char *path = mem_fmt("%s/%s", h->state_dir, dir);
	DIR *d = opendir(path);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (image_is_tag(en->d_name))
			put_line(out, en->d_name);
	if (d)
		(void)closedir(d);
}

static void put_templates(const struct host *h, struct buf *out)
{
	put_tags(h, "templates", out);
	put_tags(h, "images", out);
}

static void put_secrets(const struct host *h, struct buf *out)
{
	struct secret_list names = { 0 };
	struct err ignored = ERR_INIT;

	if (secret_names(h->state_dir, &names, &ignored) == 0)
		for (size_t i = 0; i < names.n; i++)
			put_line(out, names.v[i]);
	secret_list_done(&names);
}

static const struct {
	const char *kind;
	void (*put)(const struct host *h, struct buf *out);
} kinds[] = {
	{ "sandboxes", put_sandboxes }, { "agents", put_agents },       { "engines", put_engines },
	{ "modes", put_modes },         { "presets", put_presets },     { "groups", put_groups },
	{ "hosts", put_hosts },         { "templates", put_templates }, { "secrets", put_secrets },
};

int cli_known_words(char *const *words, struct buf *out, struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	int r = host_init(&h, NULL, e);

	for (; r == 0 && *words; words++) {
		size_t i = 0;

		while (i < ARRAY_LEN(kinds) && !str_eq(kinds[i].kind, *words))
			i++;
		if (i == ARRAY_LEN(kinds))
			return err_set(e, ERR_USAGE, EINVAL,
				       "there are no words of the kind '%.40s'", *words);
		kinds[i].put(&h, out);
	}
	return r;
}
