/* SPDX-License-Identifier: Apache-2.0 */
/* guard/wrap_shell.c - commands that hand a text to a shell, or a command to another place */
#include "guard/wrap.h"

/* What a shell is told to run, put together from words. */
static void run_words(struct walk *w, const struct cmd *c, size_t from, const char *via)
{
	const char *text = walk_join(w, c, from);

	if (from < c->argc)
		walk_text(w, text, strlen(text), c, via);
}

/* Programs whose output is made to be run by the shell that calls them. */
static bool prints_setup(const struct value *v)
{
	static const char programs[] =
		"ssh-agent|brew|pyenv|rbenv|nodenv|jenv|goenv|direnv|conda|mamba|micromamba|fnm|"
		"mise|rtx|asdf|opam|dircolors|kubectl|gh|helm|zoxide|starship|keychain|minikube|"
		"docker-machine|thefuck|atuin|lesspipe|register-python-argcomplete|rustup|"
		"podman|docker|npm|pip|poetry|uv|just|hatch|pipx|gcloud|oc|flux|argocd";
	const struct part *p = v->word ? v->word->first : NULL;
	const struct node *n;

	while (p && p->kind == PART_TEXT && p->n == 0)
		p = p->next;
	if (p == NULL || (p->kind != PART_SCRIPT && p->kind != PART_PROC) || p->script == NULL)
		return false;
	while (p->next && p->next->kind == PART_TEXT && p->next->n == 0 && p->next->next == NULL)
		break;
	n = p->script->first;
	if (n == NULL || n->next || n->kind != NODE_SIMPLE || n->assigns || n->redirs ||
	    n->words == NULL)
		return false;
	for (const struct word *word = n->words; word; word = word->next)
		if (word->first == NULL || word->first->next || word->first->kind != PART_TEXT)
			return false;
	return rules_list_has(programs, n->words->first->text);
}

void wrap_eval(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t from = c->argc > 1 && str_eq(c->argv[1]->s, "--") ? 2 : 1;

	(void)t;
	if (c->argc == from + 1 && c->n_files == 0 && c->via[0] == '\0' &&
	    prints_setup(c->argv[from]))
		return;
	run_words(w, c, from, "eval");
}

void wrap_source(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, "-p");

	(void)t;
	if (at >= c->argc || (c->argc == at + 1 && c->n_files == 0 && prints_setup(c->argv[at])))
		return;
	for (size_t i = 1; i < at; i++)
		if (c->argv[i]->is_dynamic)
			walk_find(w, "unknown-source", c);
	wrap_run_file(w, c, c->argv[at]);
}

void wrap_trap(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, "");

	(void)t;
	if (at < c->argc && !str_eq(c->argv[at]->s, "-"))
		walk_text(w, c->argv[at]->s, c->argv[at]->n, c, "trap");
}

/* alias x='command': it runs when x is used, and x is used. */
void wrap_alias(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	(void)t;
	for (size_t i = 1; i < c->argc; i++) {
		const char *eq = strchr(c->argv[i]->s, '=');

		/* From now on the name stands for this text. */
		if (eq)
			vars_set(&w->vars,
				 arena_fmt(w->mem, "alias %.*s", (int)(eq - c->argv[i]->s),
					   c->argv[i]->s),
				 eq + 1);
		if (str_starts(c->argv[i]->s, "vitrine="))
			effect_text(w, EFFECT_CHANGES, "guard", c);
		if (eq)
			walk_text(w, eq + 1, strlen(eq + 1), c, "alias");
	}
}

/* command -v and -V only look a name up. */
void wrap_command(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, "");

	(void)t;
	for (size_t i = 1; i < at; i++)
		if (strpbrk(c->argv[i]->s, "vV") && !str_eq(c->argv[i]->s, "--"))
			return;
	walk_inner(w, c, at, "command");
}

/* poetry run CMD, bundle exec CMD, npm exec -- CMD, op run -- CMD, conda run -n x CMD */
void wrap_runner(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, t->values);

	if (at < c->argc &&
	    rules_list_has("run|exec|dlx|x|tool|develop|shell|enter", c->argv[at]->s)) {
		at = wrap_skip_options(c, at + 1, t->values);
		if (at < c->argc && str_eq(c->argv[at]->s, "run"))
			at = wrap_skip_options(c, at + 1, t->values);
		walk_inner(w, c, at + t->skip, t->name);
	}
	for (size_t i = 1; i + 1 < c->argc; i++)
		if (str_eq(c->argv[i]->s, "--")) {
			if (i + 1 != at + t->skip)
				walk_inner(w, c, i + 1, t->name);
			return;
		}
}

void wrap_stdin(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	(void)t;
	wrap_run_input(w, c);
}

/* The text behind -c, attached or in the next word. NULL when there is none. */
static const struct value *code_option(struct walk *w, const struct cmd *c, const char *word)
{
	for (size_t i = 1; i < c->argc; i++) {
		const char *s = c->argv[i]->s;

		if (str_eq(s, "-c") || str_eq(s, word))
			return i + 1 < c->argc ? c->argv[i + 1] : NULL;
		if (str_starts(s, word) && s[strlen(word)] == '=')
			return value_text(w->mem, s + strlen(word) + 1,
					  strlen(s + strlen(word) + 1));
		/* Letters bundled in front: script -qc 'x'. */
		if (s[0] == '-' && s[1] != '-' && s[1] && s[strlen(s) - 1] == 'c')
			return i + 1 < c->argc ? c->argv[i + 1] : NULL;
	}
	return NULL;
}

void wrap_su(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	const struct value *code = code_option(w, c, "--command");

	if (code)
		walk_text(w, code->s, code->n, c, t->name);
	else
		wrap_run_input(w, c);
	/* runuser -u name -- command */
	for (size_t i = 1; i + 1 < c->argc; i++)
		if (str_eq(c->argv[i]->s, "--")) {
			walk_inner(w, c, i + 1, t->name);
			return;
		}
}

void wrap_script(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	const struct value *code = code_option(w, c, "--command");
	size_t at = wrap_skip_options(c, 1, "-c|-t|-I|-O|-B|-E|-o");

	if (code)
		walk_text(w, code->s, code->n, c, t->name);
	else
		/* macOS: script file command */
		walk_inner(w, c, at + 1, t->name);
}

void wrap_flock(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	const struct value *code = code_option(w, c, "--command");

	if (code)
		walk_text(w, code->s, code->n, c, t->name);
	else
		walk_inner(w, c, wrap_skip_options(c, 1, "-w|-E|--timeout|--wait") + 1, t->name);
}

void wrap_watch(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, "-n|--interval|-q|--equexit");

	/* As one text for a shell, or with -x as it stands. */
	run_words(w, c, at, t->name);
	walk_inner(w, c, at, t->name);
}

/* sudo -i, sudo -s: a shell. */
static bool wrap_runs_shell(const struct cmd *c)
{
	for (size_t i = 1; i < c->argc; i++)
		if (rules_list_has("-i|-s|--login|--shell|-e|--edit", c->argv[i]->s))
			return true;
	return false;
}

/* Words from `at` on that are a call which only looks (rules/safe.json). */
static bool only_looks(struct walk *w, const struct cmd *c, size_t at)
{
	struct cmd in = *c;
	struct args a;

	if (at < c->argc && str_eq(c->argv[at]->s, "env"))
		for (at++; at < c->argc && wrap_is_assignment(c->argv[at]->s);)
			at++;
	if (at >= c->argc)
		return false;
	for (size_t i = 0; i < c->n_files; i++)
		if (!str_eq(c->files[i].path->s, "/dev/null"))
			return false;
	in.argv = c->argv + at;
	in.argc = c->argc - at;
	in.name = cmd_name(w->mem, in.argv[0]->s);
	args_read(w->mem, &in, &w->places, &a);
	for (size_t i = 0; i < w->n_sets; i++)
		for (size_t k = 0; k < w->sets[i]->n_safe; k++)
			if (cmd_fits(&in, &a, &w->places, &w->sets[i]->safe[k]) == FIT_YES)
				return true;
	return false;
}

void wrap_sudo(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	static const char values[] = "-u|--user|-g|--group|-h|--host|-p|--prompt|-C|--close-from|-"
				     "D|--chdir|-R|--chroot|"
				     "-r|--role|-t|--type|-T|--command-timeout|-U|--other-user";
	size_t at = wrap_skip_options(c, 1, values);

	while (at < c->argc && wrap_is_assignment(c->argv[at]->s))
		at++;
	if ((at < c->argc || wrap_runs_shell(c)) && !only_looks(w, c, at))
		walk_find(w, "privilege", c);
	walk_inner(w, c, at, t->name);
	if (at >= c->argc && c->is_fed)
		walk_find(w, "dynamic-command", c);
}

/* env -S 'one string' is split into words; the rest of the line follows them. */
static void env_split(struct walk *w, const struct cmd *c, const char *text, size_t rest)
{
	struct text t = { .mem = w->mem };

	text_add(&t, text, strlen(text));
	for (size_t i = rest; i < c->argc; i++) {
		text_putc(&t, ' ');
		/* Quoted, so that it stays one word. */
		text_putc(&t, '\'');
		for (const char *s = c->argv[i]->s; *s; s++)
			if (*s == '\'')
				text_add(&t, "'\\''", 4);
			else
				text_putc(&t, *s);
		text_putc(&t, '\'');
	}
	walk_text(w, t.p, t.n, c, "env");
}

static bool env_is_split(struct walk *w, const struct cmd *c, size_t at)
{
	const char *s = c->argv[at]->s;

	if (str_eq(s, "-S") || str_eq(s, "--split-string")) {
		if (at + 1 < c->argc)
			env_split(w, c, c->argv[at + 1]->s, at + 2);
		return true;
	}
	if (str_starts(s, "--split-string=")) {
		env_split(w, c, s + 15, at + 1);
		return true;
	}
	if (s[0] == '-' && s[1] != '-' && strchr(s, 'S')) {
		const char *text = strchr(s, 'S') + 1;

		if (*text)
			env_split(w, c, text, at + 1);
		else if (at + 1 < c->argc)
			env_split(w, c, c->argv[at + 1]->s, at + 2);
		return true;
	}
	return false;
}

/* env -C dir: where the command runs from then on; returns where it ran before. */
static const char *env_directory(struct walk *w, const struct cmd *c, size_t end)
{
	const char *cwd = w->places.cwd, *to = NULL;

	for (size_t i = 1; i < end && i < c->argc; i++) {
		if (rules_list_has("-C|--chdir", c->argv[i]->s) && i + 1 < c->argc)
			to = c->argv[i + 1]->s;
		else if (str_starts(c->argv[i]->s, "--chdir="))
			to = c->argv[i]->s + 8;
	}
	if (to)
		w->places.cwd = w->vars.cwd = to[0] == '/' && !strpbrk(to, VALUE_MARKS) ? to : NULL;
	return cwd;
}

void wrap_env(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	const char *cwd;
	struct cmd inner = *c;
	size_t at = wrap_skip_options(c, 1, "-u|--unset|-C|--chdir|-P|-S|--split-string");

	for (size_t i = 1; i < c->argc && i < at; i++)
		if (env_is_split(w, c, i))
			return;
	if (at < c->argc && str_eq(c->argv[at]->s, "-"))
		at++;
	for (; at < c->argc && (wrap_is_assignment(c->argv[at]->s) || strchr(c->argv[at]->s, '='));
	     at++) {
		const char *s = c->argv[at]->s;

		if (inner.n_env < ARRAY_LEN(inner.env))
			inner.env[inner.n_env++] = arena_strn(w->mem, s, strcspn(s, "="));
	}
	if (at >= c->argc && c->is_fed)
		walk_find(w, "dynamic-command", c);
	cwd = env_directory(w, c, at);
	walk_inner(w, &inner, at, t->name);
	w->places.cwd = w->vars.cwd = cwd;
}

void wrap_ssh(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	static const char values[] = "-b|-B|-c|-D|-E|-e|-F|-I|-i|-J|-L|-l|-m|-O|-o|-p|-Q|-R|-S|-W|-"
				     "w";
	size_t at = wrap_skip_options(c, 1, values);

	if (at + 1 < c->argc)
		run_words(w, c, at + 1, t->name);
	else if (at < c->argc)
		wrap_run_input(w, c);
}

/* Everything behind "--". */
void wrap_dashes(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	for (size_t i = 1; i + 1 < c->argc; i++)
		if (str_eq(c->argv[i]->s, "--")) {
			walk_inner(w, c, i + 1, t->name);
			return;
		}
}

/* docker run [options] IMAGE command, docker exec [options] CONTAINER command, with or without "compose". */
void wrap_container(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	static const char values[] = "-a|--add-host|--annotation|--attach|--blkio-weight|--cap-add|"
				     "--cap-drop|--cgroup-parent|--cidfile|-c|"
				     "--cpu-shares|--cpus|--cpuset-cpus|--detach-keys|--device|--"
				     "dns|--entrypoint|-e|--env|--env-file|"
				     "--expose|--gpus|--group-add|--health-cmd|-h|--hostname|--ip|-"
				     "-ipc|-l|--label|--link|--log-driver|"
				     "--log-opt|--mac-address|-m|--memory|--memory-swap|--mount|--"
				     "name|--network|--net|--pid|--platform|"
				     "-p|--publish|--pull|--restart|--runtime|--security-opt|--shm-"
				     "size|--stop-signal|--sysctl|--tmpfs|"
				     "--ulimit|-u|--user|--userns|--uts|-v|--volume|--volumes-from|"
				     "-w|--workdir|-H|--host|--context|-f|"
				     "--file|--profile|--project-name|--project-directory|--index";
	size_t at = wrap_skip_options(c, 1, values);

	while (at < c->argc && rules_list_has("compose|container", c->argv[at]->s))
		at = wrap_skip_options(c, at + 1, values);
	if (at < c->argc && rules_list_has("run|exec|create", c->argv[at]->s)) {
		at = wrap_skip_options(c, at + 1, values);
		walk_inner(w, c, at + 1, t->name);
	}
}
