/* SPDX-License-Identifier: Apache-2.0 */
/* cli/begin.c - what a sandbox that lasts needs before it starts: its layers, and a way back
 *
 * Which layers make up its view is a fact for the plan. Before the start the workspace is saved (written in place) or
 * looked at (changes kept for review); a child does it, because it needs memory that the keeper, which shares ours,
 * shall not have. Saving needs nothing of the plan and goes on beside it; nothing starts before it is done.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "cli/image.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/spot.h"
#include "cli/waits.h"
#include "core/disk_note.h"
#include "core/review.h"
#include "core/seed.h"
#include "core/undo.h"
#include "core/workshop.h"
#include "git/git.h"
#include "policy/net.h"
#include "sys/spread.h"

/* What runs, or is just being started by somebody else, is not ours to freeze. */
int run_freeze(struct run *r, struct err *e)
{
	_free_ char *message = mem_fmt("before %s", r->def.name ? r->def.name : "");
	struct owned o = OWNED_NONE;
	struct layers l = { 0 };
	uint64_t id;
	int x;

	if (!r->has_def || r->is_new)
		return 0;
	/* Without layers there is nothing to freeze, and no reason to stand in anybody's way. */
	if (!r->is_fresh && !layers_exist(r->host.state_dir, r->def.name))
		return 0;
	x = r->is_fresh ? spot_needs_layers(&r->host, &r->def, e) : 0;
	if (x < 0)
		return err_wrap(e, x, "--fresh; 'vitrine reset %s' empties its home", r->def.name);
	x = def_own(r->host.state_dir, r->def.name, &o, e);
	if (x < 0) {
		*e = ERR_INIT;
		return 0;
	}
	x = layers_read(r->host.state_dir, r->def.name, &l, e);
	if (x == 0 && r->is_fresh)
		x = layers_fresh(&l, false, &id, e);
	else if (x == 0)
		x = layers_before_start(&l, message, e);
	layers_done(&l);
	def_let_go(&o);
	return x;
}

/* The layers of a clone have nothing below them, those of a review the workspace: they do not go over into each other. */
static int check_mode(const struct run *r, struct err *e)
{
	bool is_clone = git_clone_exists(r->host.state_dir, r->def.name);
	struct git_place place = { 0 };
	int x = 0;

	if (r->layers.ws.n > 0 && is_clone != (r->policy.mode == WS_CLONE) &&
	    (is_clone || r->policy.mode == WS_CLONE))
		return err_set(e, ERR_USAGE, EINVAL,
			       "the sandbox '%s' was made with workspace mode '%s' and keeps it; "
			       "make another one with --name",
			       r->def.name, is_clone ? "clone" : "review");
	if (r->policy.mode == WS_CLONE)
		x = git_place_find(r->host.workspace, &place, e);
	git_place_done(&place);
	return x;
}

int run_layers(struct run *r, struct err *e)
{
	struct facts *f = &r->host.facts;
	int x;

	if (!r->has_def)
		return 0;
	x = layers_read(r->host.state_dir, r->def.name, &r->layers, e);
	if (x == 0)
		x = check_mode(r, e);
	if (x == 0 && r->policy.mode != WS_DIRECT && r->layers.ws.n == 0)
		x = layers_first(&r->layers, e);
	if (x == 0 && r->host.root_dir) {
		_free_ char *below = template_mark(r->host.root_dir, f->inner_root == ROOT_SETUID);

		x = layers_first_sys(&r->layers, below, e);
	}
	if (x < 0)
		return x;
	if (r->host.root_dir)
		f->sys_layers = r->sys_layers = layers_paths(&r->layers, &r->layers.sys);
	if (r->policy.mode != WS_DIRECT)
		f->ws_layers = r->ws_layers = layers_paths(&r->layers, &r->layers.ws);
	if (r->policy.mode == WS_CLONE)
		f->ws_repo = r->ws_repo =
			mem_fmt("%s/sandboxes/%s/" GIT_CLONE_REPO, r->host.state_dir, r->def.name);
	f->home_layers = r->home_layers = layers_paths(&r->layers, &r->layers.home);
	return 0;
}

/* ---- in the child ---- */

static int remember(struct run *r, struct err *e)
{
	struct review v;
	int x = review_open(&v, r->host.state_dir, r->def.name, r->host.ws_fd, &r->policy, e);

	if (x == 0)
		x = review_remember(&v, e);
	review_close(&v);
	return x;
}

static int save(const struct run *r, struct keeper_saved *ret, struct err *e)
{
	_free_ char *message = mem_fmt("before %s", r->def.name);
	struct undone resumed;
	struct tree_saved saved;
	uint64_t last = 0;
	struct undo u;
	int x = undo_open(&u, r->host.state_dir, r->host.workspace, r->host.ws_fd, true, e);

	u.policy = &r->policy;
	if (x == 0)
		x = undo_resume(&u, &resumed, e);
	if (x >= 0)
		x = undo_before_start(&u, TREE_START, message, progress_show(&last), &saved, e);
	progress_end(last);
	if (x >= 0 && !saved.is_same)
		*ret = (struct keeper_saved){ saved.id, saved.files, saved.new_bytes };
	undo_close(&u);
	return x;
}

/* What cannot be refreshed is as it was; what cannot be made is not there. */
static int clone(struct run *r, struct err *e)
{
	const char *state = r->host.state_dir, *name = r->def.name, *ws = r->host.workspace;
	_free_ char *part = mem_fmt("%s/sandboxes/%s/clone.part", state, name);
	_free_ char *empty = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_EMPTY, state, name);
	_free_ char *top = mem_fmt("%s/layers/%s", state, r->layers.ws.v[0]);
	bool is_new = access(top, F_OK) < 0;
	int x = git_clone_refresh(state, name, ws, e);

	if (x < 0 && !is_new) {
		cli_complain(e->msg);
		*e = ERR_INIT;
	}
	if (!is_new)
		return 0;
	if (x < 0)
		return x;
	(void)path_remove(AT_FDCWD, part); /* somebody was killed at it */
	if (mkdir(part, 0755) < 0 || (mkdir(empty, 0700) < 0 && errno != EEXIST))
		return err_sys(e, "'%s'", part);
	x = git_clone_fill(state, name, ws, part, e);
	return x < 0 ? x : layers_put_full(&r->layers, part, e);
}

/* By somebody to whom nothing of it is closed. While it runs the keeper looks (keep/disk.c). */
static uint64_t count_disk(const struct run *r)
{
	struct ids ids = plan_ids(&r->host.facts);

	return ids.root == ROOT_NONE
		       ? layers_disk(r->host.state_dir, r->def.name, DISK_NAMES_SOME).bytes
		       : layers_disk_rooted(r->host.state_dir, r->def.name, DISK_NAMES_SOME,
					    &ids.uids, &ids.gids)
				 .bytes;
}

/* Its home, its layers and those of its checkpoints: less than max, counted now or a while ago. */
static uint64_t disk_used(const struct run *r, uint64_t max)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", r->host.state_dir, r->def.name);
	_close_ int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct disk_note now = { .when = clock_real() / NS_PER_SEC }, was;
	struct disk_room room;

	(void)disk_room_find(dir, &room); /* none: then what was counted before does not hold */
	now.room = room.bytes;
	if (disk_note_read(dir, &was) && disk_note_holds(&was, max, now.room, now.when))
		return was.used;
	now.used = count_disk(r);
	disk_note_write(dir, &now);
	return now.used;
}

static int check_disk(const struct run *r, struct err *e)
{
	const struct limit *l = &r->policy.limits[LIMIT_DISK];
	uint64_t has = l->is_set ? disk_used(r, l->max) : 0;

	if (!l->is_set || has <= l->max)
		return 0;
	return err_set(e, ERR_DENIED, EDQUOT,
		       "'%s' keeps %llu MiB on the disk, and its limit is %llu; 'vitrine "
		       "checkpoints --keep 1 "
		       "%s' or 'vitrine reset' make room, --disk SIZE,optional allows more",
		       r->def.name, (unsigned long long)(has / MIB),
		       (unsigned long long)(l->max / MIB), r->def.name);
}

struct answer {
	struct keeper_saved saved;
	struct err err;
	bool is_over; /* nothing was tried */
};

/* How long saving takes depends on what lies in the workspace: nobody saves for a command that is gone. */
static _Noreturn void begin_child(struct run *r, int out, pid_t parent)
{
	struct answer a = { .err = ERR_INIT };
	int x;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	mem_share_end();
	spread_end();
	x = check_disk(r, &a.err);
	if (x < 0)
		a.is_over = true;
	else if (r->policy.mode == WS_CLONE)
		x = clone(r, &a.err);
	else
		x = r->policy.mode == WS_REVIEW ? remember(r, &a.err) : save(r, &a.saved, &a.err);
	(void)io_write_all(out, &a, sizeof(a)); /* an empty answer is one too */
	_exit(x < 0);
}

/* Forked from here on it sees what it needs of *r, and nobody changes that. */
static int start_saver(struct run *r, struct err *e)
{
	pid_t self = getpid(), pid;
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0)
		begin_child(r, pair[1], self);
	fd_close(pair[1]);
	if (pid < 0) {
		fd_close(pair[0]);
		return err_sys(e, "fork");
	}
	r->saver = pid;
	r->saver_says = pair[0];
	return 0;
}

int run_begin_soon(struct run *r, struct err *e)
{
	if (!r->is_starting || !r->has_def || r->policy.mode != WS_DIRECT)
		return 0;
	return start_saver(r, e);
}

void run_begin_not(struct run *r)
{
	if (r->saver <= 0)
		return;
	fd_close(r->saver_says);
	(void)waitpid(r->saver, NULL, 0); /* what it saved is saved, and does no harm */
	r->saver = 0;
}

/* A port may be taken between this check and the gate's bind(); the gate then records an event. */
static int check_ports(const struct run *r, struct err *e)
{
	for (size_t i = 0; i < r->plan.net.n_ports; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct net_port port;
		int one = 1;

		if (fd < 0 || net_port_parse(r->plan.net.ports[i], &port) < 0)
			continue;
		a.sin_port = htons(port.outside);
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 1) == 0)
			continue;
		return err_set(e, ERR_CONFLICT, errno,
			       "-p: host port %u cannot be opened: %s. Choose another: '-p "
			       "OTHER:%u'",
			       port.outside, strerrordesc_np(errno), port.inside);
	}
	return 0;
}

int run_begin(struct run *r, struct err *e)
{
	struct answer a;
	int status = 0, x = 0;
	ssize_t n;
	pid_t pid;

	x = r->plan.net.n_ports ? check_ports(r, e) : 0;
	if (x < 0 || !r->has_def)
		return x;
	x = places_keep(r->host.state_dir, r->def.name, &r->was, &r->host.places, e);
	if (x == 0 && r->policy.mode == WS_REVIEW)
		x = layers_put_first(&r->layers, r->host.ws_fd, e);
	if (x == 0 && r->host.root_dir)
		x = layers_put_sys(&r->layers, e);
	if (x == 0)
		x = seed_home(&(struct seed_in){ .state_dir = r->host.state_dir,
						 .name = r->def.name,
						 .workspace = r->host.workspace,
						 .self_exe = r->host.self_exe,
						 .secrets = r->secrets.facts,
						 .n_secrets = r->secrets.n,
						 .layers = r->home_layers },
			      &r->preset, e);
	if (x == 0 && r->saver <= 0)
		x = start_saver(r, e);
	if (x < 0)
		return x;
	n = io_read(r->saver_says, &a, sizeof(a));
	fd_close(r->saver_says);
	pid = r->saver;
	r->saver = 0;
	x = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (n != (ssize_t)sizeof(a) || x < 0)
		return err_set(e, ERR_SYSTEM, ECHILD, "the workspace could not be saved");
	r->saved = a.saved;
	if (x == 0)
		return 0;
	*e = a.err;
	if (a.is_over)
		return -e->num;
	return err_wrap(e, e->num > 0 ? -e->num : -EIO,
			"the workspace could not be saved before the start");
}

/* The keeper of a clone's sandbox is asked for the commits; what nobody has taken yet is named last. */
void run_end(const struct run *r)
{
	const char *argv[] = { "fetch", "--quiet", r->def.name, NULL };
	_cleanup_(waits_done) struct waits w = { 0 };
	_free_ char *text = NULL, *how = NULL, *line = NULL;
	struct err e = ERR_INIT;
	pid_t pid;

	if (!r->has_def)
		return;
	if (r->has_plan && r->policy.mode == WS_CLONE) {
		pid = workshop_self(argv, FD_NONE, FD_NONE, 2, &e);
		if (pid > 0)
			(void)workshop_wait(pid); /* it has said what was wrong */
	}
	if (r->as_json || r->is_rm)
		return;
	waits_find(r->host.state_dir, r->def.name, r->def.workspace, &w);
	text = waits_text(&w);
	if (text == NULL)
		return;
	how = waits_how(&w, r->def.name);
	line = mem_fmt("'%s' keeps %s: %s", r->def.name, text, how);
	cli_complain(line);
}
