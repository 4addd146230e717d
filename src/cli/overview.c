/* SPDX-License-Identifier: Apache-2.0 */
/* cli/overview.c - `vitrine` alone: the agents that are here, what runs, what waits, and three commands to go on with
 *
 * It prints and ends; nothing is started, no credential is read beyond finding out that it is there.
 */
#include "agent/preset.h"
#include "cli/cli.h"
#include "cli/live.h"
#include "cli/waits.h"
#include "core/facts.h"
#include "secret/secret.h"

/* Which of its secrets are there: "the login of this host", "the key in VARIABLE", "the secret 'name'". */
static char *credential_of(const struct preset *p, const char *state_dir)
{
	const struct json *list = p->secrets;

	for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
		const struct secret_service *service = secret_service_find(v->text);
		_cleanup_(secret_done) struct secret s = { 0 };
		struct err ignored = ERR_INIT;

		if (secret_load(state_dir, v->text, &s, &ignored) == 0)
			return s.source == SECRET_LOGIN ? mem_str("the login of this host")
							: mem_fmt("the secret '%s'", v->text);
		for (size_t i = 0; service && i < ARRAY_LEN(service->env) && service->env[i]; i++)
			if (getenv(service->env[i]))
				return mem_fmt("the key in %s", service->env[i]);
	}
	return NULL;
}

/* True: `ret_best` is the first agent with a credential, else the first of all. */
static int put_agents(const struct host *h, struct buf *out, char **ret_best, struct err *e)
{
	char **names = NULL;
	int n = 0, r = preset_names(h->config_dir, &names, e);
	bool has_key = false;

	buf_puts(out, "Agents that are installed here\n");
	for (size_t i = 0; r == 0 && names[i]; i++) {
		_cleanup_(preset_done) struct preset p = { 0 };
		_free_ char *key = NULL;
		struct err ignored = ERR_INIT;

		/* `vitrine agents` says what is wrong with one that cannot be read. */
		if (preset_load(h->config_dir, names[i], &p, &ignored) < 0 || p.free == NULL ||
		    !cli_agent_is_here(&p, h->home))
			continue;
		key = credential_of(&p, h->state_dir);
		buf_printf(out, "  %-14s  %s%s\n", names[i],
			   key         ? "has "
			   : p.secrets ? "no key or login yet"
				       : "ready",
			   key ? key : "");
		if (*ret_best == NULL || (key && !has_key)) {
			free(*ret_best);
			*ret_best = mem_str(names[i]);
			has_key = key != NULL;
		}
		n++;
	}
	if (r == 0 && n == 0)
		buf_puts(out, "  none; 'vitrine agents' lists those that are known\n");
	preset_names_free(names);
	return r;
}

static void put_running(const struct host *h, char *const *names, struct buf *out)
{
	size_t n = 0;

	for (; *names; names++) {
		_cleanup_(live_done) struct live live = { 0 };
		_cleanup_(def_done) struct def d = { 0 };
		struct err ignored = ERR_INIT;

		if (live_ask(h->state_dir, *names, &live, &ignored) < 0 || !live.is_running)
			continue;
		buf_puts(out, n++ ? "" : "\nRunning\n");
		buf_printf(out, "  %-14s  %zu session%s", *names, live.n, live.n == 1 ? "" : "s");
		if (def_read(h->state_dir, *names, &d, &ignored) == 0) {
			buf_puts(out, ", ");
			buf_esc(out, d.workspace, strlen(d.workspace));
		}
		buf_putc(out, '\n');
	}
}

static void put_waiting(const struct host *h, char *const *names, struct buf *out)
{
	size_t n = 0;

	for (; *names; names++) {
		_cleanup_(waits_done) struct waits w = { 0 };
		_cleanup_(def_done) struct def d = { 0 };
		_free_ char *text = NULL, *how = NULL;
		struct err ignored = ERR_INIT;

		if (str_starts(*names, "run-"))
			continue; /* has no definition, and nothing in it lasts */
		(void)def_read(h->state_dir, *names, &d,
			       &ignored); /* else nobody knows what waits */
		waits_find(h->state_dir, *names, d.workspace, &w);
		text = waits_text(&w);
		if (text == NULL)
			continue;
		how = waits_how(&w, *names);
		buf_puts(out, n++ ? "" : "\nWaiting for you\n");
		buf_printf(out, "  %-14s  %s: %s\n", *names, text, how);
	}
}

static void put_next(const char *agent, struct buf *out)
{
	_free_ char *run = agent ? mem_fmt("vitrine run %s .", agent) : NULL;

	buf_puts(out, "\nNext\n");
	if (agent)
		buf_printf(out, "  %-30s%s\n", run,
			   "the agent, with every permission, in this directory");
	else
		buf_printf(out, "  %-30s%s\n", "vitrine shell", "a shell behind walls, here");
	buf_printf(out, "  %-30s%s\n", "vitrine run -- COMMAND",
		   "any command, and nothing is kept");
	buf_printf(out, "  %-30s%s\n", "vitrine help", "everything else");
}

int cmd_overview(struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	_free_ char *best = NULL;
	char **names = NULL;
	int r = host_init(&h, NULL, e);

	if (r == 0)
		r = put_agents(&h, &out, &best, e);
	if (r == 0)
		r = def_list(h.state_dir, true, &names, e);
	if (r < 0 || names == NULL)
		return r;
	put_running(&h, names, &out);
	put_waiting(&h, names, &out);
	def_list_free(names);
	put_next(best, &out);
	return cli_print(&out, e);
}
