/* SPDX-License-Identifier: Apache-2.0 */
/* cli/guard.c - the verb `guard`: install and remove the hook, try a command, explain a verdict, add up decisions */
#include <limits.h>

#include "cli/cli.h"
#include "guard/install.h"
#include "guard/record.h"

enum { OPT_JSON = 1, OPT_DRY, OPT_CWD };

const struct opt guard_opts[] = {
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "dry-run", 0, NULL, "install, uninstall: print the file and write nothing", OPT_DRY },
	{ "cwd", 0, "PATH", "test, explain: judge as if the agent worked there", OPT_CWD },
	{ NULL, 0, NULL, NULL, 0 },
};

struct guard_args {
	bool is_json, is_dry;
	const char *cwd;
};

static void put_found(const struct found *f, struct buf *out)
{
	buf_puts(out, "{\"rule\":");
	buf_json(out, f->rule->id);
	buf_printf(out, ",\"verdict\":\"%s\",\"command\":", verdict_name(f->verdict));
	buf_json(out, f->command);
	buf_puts(out, "}");
}

static void put_effect_json(const struct effect *f, struct buf *out)
{
	buf_printf(out, "{\"effect\":\"%s\",\"what\":", effect_name(f->kind));
	buf_json(out, f->what);
	buf_puts(out, ",\"by\":");
	buf_json(out, f->command);
	buf_puts(out, ",\"rule\":");
	buf_json(out, f->rule ? f->rule->id : "");
	buf_printf(out, ",\"verdict\":\"%s\"}", verdict_name(f->verdict));
}

/* What was read out of the command, and which rule minds it. */
static void put_effect(const struct effect *f, struct buf *out)
{
	buf_printf(out, "  %-7s ", effect_name(f->kind));
	if (strpbrk(f->what, VALUE_MARKS))
		buf_puts(out, "(made at run time)");
	else
		buf_esc(out, f->what, strlen(f->what));
	buf_puts(out, "  by ");
	buf_esc(out, f->command, strlen(f->command));
	if (f->rule)
		buf_printf(out, ": %s, %s", verdict_name(f->verdict), f->rule->id);
	buf_putc(out, '\n');
}

static void put_judgement_json(const struct judgement *j, struct buf *out)
{
	buf_printf(out, "{\"verdict\":\"%s\",\"rule\":", verdict_name(j->verdict));
	buf_json(out, j->rule);
	buf_printf(out, ",\"intent\":\"%s\",\"say\":",
		   j->verdict == VERDICT_ALLOW ? "" : intent_name(j->intent));
	buf_json(out, j->say);
	buf_printf(out, ",\"proved_safe\":%s,\"findings\":[", j->is_proved ? "true" : "false");
	for (size_t i = 0; i < j->n_all; i++) {
		buf_puts(out, i ? "," : "");
		put_found(&j->all[i], out);
	}
	buf_puts(out, "],\"effects\":[");
	for (size_t i = 0; i < j->n_effects; i++) {
		buf_puts(out, i ? "," : "");
		put_effect_json(&j->effects[i], out);
	}
	buf_puts(out, "]}\n");
}

/* A command, with "..." for what is known only when it runs. */
static void put_line(const char *command, struct buf *out)
{
	for (size_t n; *command; command += n) {
		n = strcspn(command, VALUE_MARKS);
		buf_esc(out, command, n);
		if (command[n] == '\0')
			break;
		buf_puts(out, "...");
		n += strspn(command + n, VALUE_MARKS);
	}
}

static void put_judgement(const struct judgement *j, bool is_explained, struct buf *out)
{
	if (j->verdict == VERDICT_ALLOW)
		buf_printf(out, "allow%s\n", j->is_proved ? " (proved: it only looks)" : "");
	else
		buf_printf(out, "%s  %s (%s)\n%s\n", verdict_name(j->verdict), j->rule,
			   intent_name(j->intent), j->say);
	if (!is_explained)
		return;
	for (size_t i = 0; i < j->n_all; i++) {
		buf_printf(out, "  %-5s %-26s ", verdict_name(j->all[i].verdict),
			   j->all[i].rule->id);
		put_line(j->all[i].command, out);
		buf_putc(out, '\n');
	}
	if (j->n_all == 0)
		buf_puts(out, "  no rule fits anything that it runs\n");
	if (j->n_effects)
		buf_puts(out, "what it does\n");
	for (size_t i = 0; i < j->n_effects; i++)
		put_effect(&j->effects[i], out);
	if (j->n_effects == WALK_MAX_EFFECTS)
		buf_puts(out, "  ... and perhaps more, judged all the same\n");
}

struct listing {
	struct buf *out;
	size_t n;
};

static void put_command(void *to, const char *name)
{
	struct listing *l = to;

	if (l->n++ < 64) {
		buf_puts(l->out, "  runs  ");
		if (name[0])
			buf_esc(l->out, name, strlen(name));
		else
			buf_puts(l->out, "(a name made at run time)");
		buf_putc(l->out, '\n');
	}
}

/* Everything that would run, in its order. */
static void put_commands(const struct guard *g, const char *command, struct buf *out)
{
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	struct listing l = { .out = out };
	struct shell_error error;
	struct node *script = shell_parse(&mem, command, strlen(command), &error);
	struct walk w;

	if (script == NULL) {
		buf_printf(out, "  cannot be read: %s, at byte %zu\n", error.what, error.at);
		return;
	}
	guard_walk_begin(g, &mem, &w);
	w.on_command = put_command;
	w.to = &l;
	walk_script(&w, script);
}

/* The exit status is the verdict: 0 allow, 1 ask, 3 deny (2 is a wrong call). */
static int judge(const char *command, const struct guard_args *a, bool is_explained, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	_cleanup_(arena_done) struct arena mem = ARENA(64 * MIB);
	_cleanup_(guard_done) struct guard g = { 0 };
	char here[PATH_MAX];
	struct judgement j;
	int r;

	if (a->cwd == NULL && getcwd(here, sizeof(here)) == NULL)
		return err_sys(e, "the working directory");
	if (a->cwd && a->cwd[0] != '/')
		return err_set(e, ERR_USAGE, EINVAL, "--cwd needs an absolute path");
	r = guard_init(&g, a->cwd ? a->cwd : here, e);
	if (r < 0)
		return r;
	guard_command(&g, &mem, command, strlen(command), &j);
	if (a->is_json) {
		put_judgement_json(&j, &out);
	} else {
		put_judgement(&j, is_explained, &out);
		if (is_explained)
			put_commands(&g, command, &out);
	}
	r = cli_print(&out, e);
	if (r < 0)
		return r;
	return j.verdict == VERDICT_ALLOW ? 0 : j.verdict == VERDICT_ASK ? 1 : 3;
}

static int change(const char *word, const char *agent, const struct guard_args *a, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(2 * MIB);
	enum agent which = agent_find(agent);
	char self[PATH_MAX];
	ssize_t n;
	int r;

	if (which == AGENT_UNKNOWN)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "'%.40s' is no agent whose hooks the guard speaks: " AGENT_NAMES,
			       agent);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_sys(e, "where this program lies");
	self[n] = '\0';
	r = str_eq(word, "install") ? guard_install(which, self, a->is_dry, &out, e)
				    : guard_uninstall(which, a->is_dry, &out, e);
	return r < 0 ? r : cli_print(&out, e);
}

static int stats(const struct guard_args *a, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	int r = guard_stats(a->is_json, &out, e);

	return r < 0 ? r : cli_print(&out, e);
}

static int dispatch(const char *word, int argc, char **argv, const struct guard_args *a,
		    struct err *e)
{
	bool is_judged = str_eq(word, "test") || str_eq(word, "explain");
	bool is_change = str_eq(word, "install") || str_eq(word, "uninstall");

	if (str_eq(word, "stats"))
		return argc == 0 ? stats(a, e)
				 : err_set(e, ERR_USAGE, EINVAL, "guard stats takes no arguments");
	if (!is_judged && !is_change)
		return err_set(e, ERR_USAGE, EINVAL,
			       "guard has no '%.40s': install, uninstall, test, explain or stats",
			       word);
	if (argc != 1)
		return err_set(e, ERR_USAGE, EINVAL, "guard %s needs one %s", word,
			       is_judged ? "command, in quotes" : "agent");
	return is_judged ? judge(argv[0], a, str_eq(word, "explain"), e)
			 : change(word, argv[0], a, e);
}

int cmd_guard(int argc, char **argv, struct err *e)
{
	struct guard_args a = { 0 };
	const char *words[2] = { NULL };
	size_t n = 0;
	struct opts o;
	int r;

	/* Options may stand before and behind the words. */
	opts_init(&o, guard_opts, argc, argv);
	for (;;) {
		while ((r = opts_next(&o, e)) > 0) {
			if (r == OPT_JSON)
				a.is_json = true;
			else if (r == OPT_DRY)
				a.is_dry = true;
			else
				a.cwd = o.value;
		}
		if (r < 0 && n == 2) {
			/* 'guard test rm -rf x': an option of the command's, not of ours. */
			_free_ char *what = mem_str(e->msg);

			return err_set(e, ERR_USAGE, EINVAL,
				       "%s; a command is one argument, in quotes", what);
		}
		if (r < 0)
			return r;
		if (o.at >= argc)
			break;
		if (n == ARRAY_LEN(words))
			return err_set(e, ERR_USAGE, EINVAL,
				       "too many arguments; a command is one, in quotes");
		words[n++] = argv[o.at++];
	}
	if (n == 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "guard install, uninstall, test, explain or stats");
	return dispatch(words[0], (int)n - 1, (char **)(uintptr_t)(words + 1), &a, e);
}
