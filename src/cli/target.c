/* SPDX-License-Identifier: Apache-2.0 */
/* cli/target.c - which sandbox is meant: `run [AGENT|NAME] [PATH]` and --name
 *
 * The first word is an agent, else a sandbox, else a directory, else a program: then it and all behind it are a command,
 * as if "--" stood in front of it. An agent's word and a directory stand for one sandbox, today and tomorrow: "shell-proj", or with a piece of a hash
 * where another directory of the same name has that one. A name given with --name is that sandbox and no other.
 */
#include <sys/stat.h>

#include "agent/preset.h"
#include "base/path.h"
#include "cli/image.h"
#include "cli/run.h"
#include "keep/journal.h"

#define DEFAULT_AGENT "shell"

/* What the caller said. */
struct wish {
	const char *agent; /* NULL: none */
	const char *path;  /* NULL: none */
	const char *name;
};

static bool is_path(const char *word)
{
	return strchr(word, '/') || word[0] == '.' || word[0] == '~';
}

static int no_such(const char *word, struct err *e)
{
	return err_set(e, ERR_NOTFOUND, ENOENT,
		       "'%.64s' is no agent, no sandbox and no program here; 'vitrine agents' and "
		       "'vitrine ls' list them, 'vitrine run -- %.64s' runs a command that only "
		       "the sandbox has",
		       word, word);
}

bool run_is_command(const struct run *r)
{
	const char *word = r->words[0];
	_cleanup_(def_done) struct def d = { 0 };
	_free_ char *program = NULL;
	struct err ignored = ERR_INIT;
	struct stat st;

	if (preset_is_there(r->host.config_dir, word))
		return false;
	if (is_path(word))
		return stat(word, &st) == 0 && S_ISREG(st.st_mode);
	/* One that cannot be read is a sandbox too. */
	if (r->name == NULL && def_is_name(word) &&
	    def_read(r->host.state_dir, word, &d, &ignored) != -ENOENT)
		return false;
	program = cli_find_program(word);
	return program != NULL;
}

/* `create NAME PATH` makes a sandbox of that name, as `create --name NAME shell PATH` does. */
static bool is_new_name(const struct run *r, const char *first)
{
	return str_eq(r->argv[0], "create") && r->n_words > 1 && def_is_name(first);
}

static int read_words(struct run *r, struct wish *w, struct err *e)
{
	const char *first = r->n_words > 0 ? r->words[0] : NULL;

	*w = (struct wish){ .name = r->name, .path = r->n_words > 1 ? r->words[1] : r->workspace };
	if (first == NULL)
		return 0;
	if (preset_is_there(r->host.config_dir, first)) {
		w->agent = first;
	} else if (is_path(first)) {
		if (r->n_words > 1)
			return no_such(first, e);
		w->path = first;
	} else if (r->name) {
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.64s' is no agent, and --name gives another name already", first);
	} else if (!def_is_name(first)) {
		return no_such(first, e);
	} else {
		w->name = first;
		if (is_new_name(r, first))
			r->name = first;
	}
	return 0;
}

static int real_path(const struct run *r, const char *path, char **ret, struct err *e)
{
	_free_ char *home =
		path && str_starts(path, "~/") ? path_join(r->host.home, path + 2) : NULL;
	int x = path_real(home ? home : path ? path : ".", ret, e);

	if (x < 0) {
		e->kind = ERR_USAGE;
		/* `run claude "fix it"`, `run box make` */
		return r->n_words > 1 && path == r->words[1] && x == -ENOENT
			       ? err_set(e, ERR_USAGE, EINVAL,
					 "'%.80s' is no directory; a command or a prompt stands "
					 "behind '--': vitrine run %.40s -- '%.80s'",
					 path, r->words[0], path)
			       : err_wrap(e, x, "workspace");
	}
	return 0;
}

static int check_same(const struct run *r, const struct wish *w, struct err *e)
{
	_free_ char *path = NULL;
	int x;

	if (w->agent && !str_eq(w->agent, r->def.agent))
		return err_set(e, ERR_CONFLICT, EEXIST,
			       "the sandbox '%s' is one of '%s', not of '%s'; give another --name",
			       r->def.name, r->def.agent, w->agent);
	if (w->path == NULL)
		return 0;
	x = real_path(r, w->path, &path, e);
	if (x == 0 && !str_eq(path, r->def.workspace))
		x = err_set(e, ERR_CONFLICT, EEXIST,
			    "the sandbox '%s' is for '%.200s'; give another --name for '%.200s'",
			    r->def.name, r->def.workspace, path);
	return x;
}

static void begin_new(struct run *r, const char *name, const char *agent, char *take_workspace)
{
	r->is_new = true;
	r->def = (struct def){ .name = mem_str(name),
			       .agent = mem_str(agent),
			       .workspace = take_workspace };
}

static int find_named(struct run *r, const struct wish *w, struct err *e)
{
	char *path = NULL;
	int x = def_read(r->host.state_dir, w->name, &r->def, e);

	if (x == 0)
		return check_same(r, w, e);
	if (x != -ENOENT)
		return x;
	if (r->name == NULL)
		return no_such(w->name, e);
	*e = ERR_INIT;
	x = real_path(r, w->path, &path, e);
	if (x == 0)
		begin_new(r, w->name, w->agent ? w->agent : DEFAULT_AGENT, path);
	return x;
}

static int find_default(struct run *r, const struct wish *w, struct err *e)
{
	const char *agent = w->agent ? w->agent : DEFAULT_AGENT;
	_free_ char *path = NULL;
	int x = real_path(r, w->path, &path, e);

	for (int is_long = 0; x == 0 && is_long < 2; is_long++) {
		_free_ char *name = def_default_name(agent, path, is_long);

		x = def_read(r->host.state_dir, name, &r->def, e);
		if (x == -ENOENT) {
			*e = ERR_INIT;
			begin_new(r, name, agent, take(path));
			return 0;
		}
		if (x == 0 && str_eq(r->def.workspace, path) && str_eq(r->def.agent, agent))
			return 0;
		if (x == 0)
			def_done(&r->def);
	}
	return x < 0 ? x
		     : err_set(e, ERR_CONFLICT, EEXIST,
			       "other sandboxes have the names that '%.200s' would get; choose one "
			       "with --name",
			       path);
}

/* `run claude . -- "Refactor the auth module"`: no program has such a name. */
static bool is_prompt(const struct run *r)
{
	const char *word = r->command[0];

	return word && word[0] != '-' && strpbrk(word, " \t\n") && access(word, F_OK) < 0;
}

static bool has_terminal(const struct run *r)
{
	return r->flags & KEEP_WANT_TTY || (!(r->flags & KEEP_BEHIND) && isatty(0) && isatty(1));
}

/* `-t TAG` of what `save` kept: a new sandbox begins as that one was. */
static int begin_saved(struct run *r, struct err *e)
{
	struct saved s = { 0 };
	_free_ char *root = NULL;
	struct err ignored = ERR_INIT;
	int x;

	if (!r->is_new || r->template == NULL || str_eq(r->argv[0], "explain") ||
	    template_find(r->host.state_dir, r->template, &root, &ignored) == 0 ||
	    !image_is_saved(r->host.state_dir, r->template))
		return 0;
	x = saved_begin(&r->host, r->template, r->def.workspace, r->def.name, &s, e);
	if (x < 0)
		return err_wrap(e, x, "--template '%.64s'", r->template);
	if (s.is_review)
		def_add_flag(&r->def, "--mode=review");
	if (!s.has_system)
		r->template = NULL;
	return 0;
}

int run_target(struct run *r, struct err *e)
{
	struct wish w;
	int x = read_words(r, &w, e);

	if (x == 0)
		x = w.name ? find_named(r, &w, e) : find_default(r, &w, e);
	if (x == 0)
		x = begin_saved(r, e);
	if (x < 0)
		return x;
	r->has_def = true;
	x = preset_load(r->host.config_dir, r->def.agent, &r->preset, e);
	if (x == -ENOENT)
		return err_set(e, ERR_CONFIG, ENOENT,
			       "the sandbox '%s' is one of '%.64s', an agent that is not known "
			       "here",
			       r->def.name, r->def.agent);
	if (x < 0)
		return x;
	/* argv wants char *; nobody writes to it. */
	r->made_command =
		(char **)(uintptr_t)(is_prompt(r)
					     ? preset_begin(&r->preset, r->command, has_terminal(r))
					     : preset_command(&r->preset, r->command));
	r->command = r->made_command;
	return r->is_free ? preset_check_free(&r->preset, e) : 0;
}

static int keep_flag(struct run *r, const char *text, struct err *e)
{
	(void)e;
	def_add_flag(&r->def, text);
	return 0;
}

/* Said once, when the sandbox is made, to a person. */
static void tell_own_sandbox(const struct run *r)
{
	if (r->preset.own_sandbox && !r->is_quiet && !r->as_json && isatty(2))
		(void)fprintf(stderr,
			      "vitrine: '%s' runs without its own sandbox (%s), because Vitrine "
			      "already isolates it\n",
			      r->preset.name, r->preset.own_sandbox);
}

void run_uncreate(const struct run *r)
{
	const char *state_dir = r->host.state_dir, *name = r->def.name;
	struct owned o = OWNED_NONE;
	struct err ignored = ERR_INIT;
	uint64_t n;

	if (!r->is_made)
		return;
	/* Who joined it meanwhile holds it: then it stays. */
	if (def_own(state_dir, name, &o, &ignored) == 0 &&
	    journal_once(state_dir, name, EV_SANDBOX_REMOVED, &EVENT_STR(NAME, name), 1) == 0 &&
	    def_remove(state_dir, name, &o, &ignored) == 0)
		(void)layers_collect(state_dir, &n, &ignored); /* prune finds what is left */
	def_let_go(&o);
}

int run_create(struct run *r, struct err *e)
{
	int x = run_each_flag(r, r->argc, r->argv, keep_flag, e);

	if (x == 0)
		x = def_create(r->host.state_dir, &r->def, e);
	r->is_made = x == 0;
	if (x == 0)
		x = places_keep(r->host.state_dir, r->def.name, &r->was, &r->host.places, e);
	if (x == 0)
		tell_own_sandbox(r);
	if (x == -EEXIST) {
		def_done(&r->def);
		x = def_read(r->host.state_dir, r->plan.name, &r->def, e);
		if (x == 0 && !str_eq(r->def.workspace, r->host.workspace))
			x = err_set(e, ERR_CONFLICT, EEXIST,
				    "somebody has just made the sandbox '%s' for '%.200s'",
				    r->def.name, r->def.workspace);
	}
	r->is_new = false;
	return x;
}
