/* SPDX-License-Identifier: Apache-2.0 */
/* cli/spot.c - see spot.h */
#include "cli/spot.h"

#include <fcntl.h>

#include "base/path.h"
#include "core/settings.h"
#include "engine/engine.h"
#include "git/git.h"

static bool is_review_of(const struct spot *s, const char *name)
{
	_cleanup_(def_done) struct def d = { 0 };
	struct layers l;
	struct err ignored;
	bool is;

	if (git_clone_exists(s->host.state_dir, name) ||
	    def_read(s->host.state_dir, name, &d, &ignored) < 0 ||
	    !str_eq(d.workspace, s->host.workspace) ||
	    layers_read(s->host.state_dir, name, &l, &ignored) < 0)
		return false;
	is = l.ws.n > 0;
	layers_done(&l);
	return is;
}

/* The one sandbox whose changes to this workspace wait. */
static int find_review(struct spot *s, struct err *e)
{
	char **names = NULL;
	int r = def_list(s->host.state_dir, false, &names, e);

	for (char **n = names; r == 0 && n && *n; n++) {
		if (!is_review_of(s, *n))
			continue;
		if (s->sandbox)
			r = err_set(e, ERR_USAGE, EINVAL,
				    "the changes of several sandboxes wait for review here: '%s', "
				    "'%s'; name one",
				    s->sandbox, *n);
		else
			s->sandbox = mem_str(*n);
	}
	def_list_free(names);
	return r;
}

static int load_policy(const struct host *h, const char *workspace, const struct def *d,
		       bool use_project, struct policy *ret, struct err *e)
{
	struct settings_in in = { .config_dir = h->config_dir,
				  .workspace = workspace,
				  .policy_file = d ? def_flag(d, "--policy=") : NULL,
				  .use_project = use_project };
	int r;

	policy_init(ret);
	r = settings_load(ret, &in, e);
	for (size_t i = 0; r == 0 && d && i < d->n_flags; i++)
		if (str_starts(d->flags[i], "--protect="))
			r = policy_add(ret, LIST_PROTECT, d->flags[i] + strlen("--protect="),
				       LAYER_FLAGS, e);
	return r;
}

int spot_policy(const struct host *h, const struct def *d, struct policy *ret, struct err *e)
{
	return load_policy(h, d->workspace, d, true, ret, e);
}

/* Of a directory, without a sandbox. A project's file can only tighten, and going back may be how a broken one is mended. */
static int load_of_directory(struct spot *s, struct err *e)
{
	if (load_policy(&s->host, s->host.workspace, NULL, true, &s->policy, e) == 0)
		return 0;
	*e = ERR_INIT;
	policy_done(&s->policy);
	return load_policy(&s->host, s->host.workspace, NULL, false, &s->policy, e);
}

int spot_needs_layers(const struct host *h, const struct def *d, struct err *e)
{
	_cleanup_(policy_done) struct policy p;
	struct settings_in in = { .config_dir = h->config_dir,
				  .workspace = d->workspace,
				  .use_project = true };
	const struct engine *en = NULL;
	int r;

	policy_init(&p);
	r = settings_load(&p, &in, e);
	for (size_t i = 0; r == 0 && i < d->n_flags; i++)
		if (str_starts(d->flags[i], "--engine="))
			r = policy_set(&p, SETTING_ENGINE, d->flags[i] + strlen("--engine="),
				       LAYER_FLAGS, e);
	if (r == 0)
		r = engine_pick(p.engine, (enum engine_strength)p.isolation, 0, &en, e);
	return r < 0 ? r : engine_needs(en, BIT(STEP_LAYERS), e);
}

static int open_sandbox(struct spot *s, struct err *e)
{
	int r = spot_policy(&s->host, &s->def, &s->policy, e);

	s->is_clone = git_clone_exists(s->host.state_dir, s->sandbox);
	if (s->is_clone) { /* nothing lies below its layers */
		_free_ char *empty =
			mem_fmt("%s/sandboxes/%s/" GIT_CLONE_EMPTY, s->host.state_dir, s->sandbox);

		fd_close(s->host.ws_fd);
		s->host.ws_fd = open(empty, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r == 0 && s->host.ws_fd < 0)
			r = err_sys(e, "'%s'", empty);
	}
	if (r == 0)
		r = review_open(&s->review, s->host.state_dir, s->sandbox, s->host.ws_fd,
				&s->policy, e);
	s->is_review = r == 0 && s->review.layers.ws.n > 0;
	return r;
}

int spot_open(struct spot *s, const char *workspace, bool wants_review, char *const **words,
	      struct err *e)
{
	struct err ignored;
	int r = host_become(&s->host, NULL, e);

	if (r == 0)
		r = host_locate(&s->host, e);
	if (r < 0)
		return r;
	if (**words && def_is_name(**words) &&
	    def_read(s->host.state_dir, **words, &s->def, &ignored) == 0)
		s->sandbox = mem_str(*(*words)++);
	if (s->sandbox && workspace)
		return err_set(e, ERR_USAGE, EINVAL,
			       "either the name of a sandbox or --workspace, not both");
	r = host_workspace(&s->host, s->sandbox ? s->def.workspace : workspace, e);
	if (r == 0 && s->sandbox)
		r = places_check_workspace(s->host.state_dir, s->sandbox, s->def.workspace, e);
	if (r == 0)
		r = plan_check_workspace(&s->host.facts, e);
	if (r == 0 && wants_review && s->sandbox == NULL)
		r = find_review(s, e);
	if (r == 0 && s->sandbox)
		r = open_sandbox(s, e);
	else if (r == 0)
		r = load_of_directory(s, e);
	if (r < 0 || s->is_review)
		return r;
	r = undo_open(&s->undo, s->host.state_dir, s->host.workspace, s->host.ws_fd, true, e);
	s->undo.policy = &s->policy;
	return r;
}

int spot_own(struct spot *s, struct err *e)
{
	return s->owned.lock >= 0 ? 0 : def_own(s->host.state_dir, s->sandbox, &s->owned, e);
}

void spot_close(struct spot *s)
{
	undo_close(&s->undo);
	review_close(&s->review);
	policy_done(&s->policy);
	def_let_go(&s->owned);
	def_done(&s->def);
	host_done(&s->host);
	free(s->sandbox);
}

int spot_paths(const struct spot *s, char *const *words, char ***ret, struct err *e)
{
	char **v = NULL;
	size_t n = 0;

	while (words && words[n])
		n++;
	if (n == 0)
		return 0;
	v = mem_new(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		/* Where the caller stands outside the workspace, names are meant from its top. */
		bool is_in = path_is_beneath(s->host.cwd, s->host.workspace);
		_free_ char *full = path_join(is_in ? s->host.cwd : s->host.workspace, words[i]);

		if (!path_is_beneath(full, s->host.workspace)) {
			spot_paths_free(v);
			return err_set(e, ERR_USAGE, EINVAL, "'%.200s' is not in '%.200s'",
				       words[i], s->host.workspace);
		}
		v[i] = mem_str(path_below(full, s->host.workspace));
	}
	*ret = v;
	return 0;
}

void spot_paths_free(char **paths)
{
	for (char **p = paths; p && *p; p++)
		free(*p);
	free(paths);
}
