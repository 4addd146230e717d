/* SPDX-License-Identifier: Apache-2.0 */
/* cli/begin.c - what a sandbox that lasts needs before it starts: its layers, and a way back
 *
 * Which layers make up its view is a fact for the plan. Directly before the start the workspace is saved (written in
 * place) or looked at (changes kept for review); a child does it, because it needs memory that the keeper, which
 * shares ours, shall not have.
 */
#include <sys/wait.h>

#include "base/io.h"
#include "cli/run.h"
#include "core/review.h"
#include "core/seed.h"
#include "core/undo.h"

/* What runs, or is just being started by somebody else, is not ours to freeze. */
int run_freeze(struct run *r, struct err *e)
{
	_free_ char *message = mem_fmt("before %s", r->def.name ? r->def.name : "");
	struct owned o = OWNED_NONE;
	struct layers l = { 0 };
	_close_ int base = FD_NONE;
	uint64_t id;
	int x;

	if (!r->has_def || r->is_new)
		return 0;
	/* Without layers there is nothing to freeze, and no reason to stand in anybody's way. */
	if (!r->is_fresh && !layers_exist(r->host.state_dir, r->def.name))
		return 0;
	x = def_own(r->host.state_dir, r->def.name, &o, e);
	if (x < 0) {
		*e = ERR_INIT;
		return 0;
	}
	x = layers_read(r->host.state_dir, r->def.name, &l, e);
	base = open(r->def.workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (x == 0 && r->is_fresh)
		x = layers_fresh(&l, false, &id, e);
	else if (x == 0 && base >= 0)
		x = layers_before_start(&l, base, message, e);
	layers_done(&l);
	def_let_go(&o);
	return x;
}

int run_layers(struct run *r, struct err *e)
{
	struct facts *f = &r->host.facts;
	int x;

	if (!r->has_def)
		return 0;
	x = layers_read(r->host.state_dir, r->def.name, &r->layers, e);
	if (x == 0 && r->policy.mode == WS_REVIEW && r->layers.ws.n == 0)
		x = layers_first(&r->layers, e);
	if (x < 0)
		return x;
	if (r->policy.mode == WS_REVIEW)
		f->ws_layers = r->ws_layers = layers_paths(&r->layers, &r->layers.ws);
	f->home_layers = r->home_layers = layers_paths(&r->layers, &r->layers.home);
	return 0;
}

/* ---- in the child ---- */

static int remember(const struct run *r, struct err *e)
{
	struct review v;
	int x = review_open(&v, r->host.state_dir, r->def.name, r->host.ws_fd, &r->policy, e);

	if (x == 0)
		x = review_remember(&v, e);
	review_close(&v);
	return x;
}

static int save(const struct run *r, struct err *e)
{
	_free_ char *message = mem_fmt("before %s", r->def.name);
	struct undone resumed;
	struct tree_saved saved;
	struct undo u;
	int x = undo_open(&u, r->host.state_dir, r->host.workspace, r->host.ws_fd, true, e);

	if (x == 0)
		x = undo_resume(&u, &resumed, e);
	if (x >= 0)
		x = undo_before_start(&u, TREE_START, message, &saved, e);
	undo_close(&u);
	return x;
}

static _Noreturn void begin_child(const struct run *r, int out)
{
	struct err e = ERR_INIT;
	int x;

	mem_share_end();
	x = r->policy.mode == WS_REVIEW ? remember(r, &e) : save(r, &e);
	if (x < 0)
		(void)io_write_all(out, &e,
				   sizeof(e)); /* an empty answer with a bad status is one too */
	_exit(x < 0);
}

int run_begin(struct run *r, struct err *e)
{
	int pair[2], status = 0, x = 0;
	ssize_t n;
	pid_t pid;

	if (!r->has_def)
		return 0;
	if (r->policy.mode == WS_REVIEW)
		x = layers_put_first(&r->layers, r->host.ws_fd, e);
	if (x == 0)
		x = seed_home(&(struct seed_in){ .state_dir = r->host.state_dir,
						 .name = r->def.name,
						 .workspace = r->host.workspace,
						 .self_exe = r->host.self_exe,
						 .layers = r->home_layers },
			      &r->preset, e);
	if (x < 0)
		return x;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0)
		begin_child(r, pair[1]);
	fd_close(pair[1]);
	if (pid < 0) {
		fd_close(pair[0]);
		return err_sys(e, "fork");
	}
	n = io_read(pair[0], e, sizeof(*e));
	fd_close(pair[0]);
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (n != (ssize_t)sizeof(*e))
		return err_set(e, ERR_SYSTEM, ECHILD, "the workspace could not be saved");
	return err_wrap(e, e->num > 0 ? -e->num : -EIO,
			"the workspace could not be saved before the start");
}
