/* SPDX-License-Identifier: Apache-2.0 */
/* engine/wall.c - start a sandbox behind walls that another tool builds
 *
 * Two processes are started: the tool, told by its renderer to run our init as pid 1 behind its walls, and
 * vitrine-link. Two pipes between them are the link: init's input and output. The keeper keeps neither, so the end of
 * either side is seen by the other. To the keeper vitrine-link is init.
 *
 *     keeper ──packets── vitrine-link ──pipes── [ tool: vitrine-init ── commands ]
 *
 * The tool gets a small environment of its own and our control groups, nothing else of ours.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/num.h"
#include "base/path.h"
#include "base/program.h"
#include "base/sabotage.h"
#include "engine/engine.h"
#include "engine/mapped.h"
#include "engine/vm/vm.h"
#include "plan/guest.h"

#define SAMPLE_MS 50
#define EMPTY_MS 300  /* for init to end */
#define GRACE_MS 5000 /* for a tool to see that its command has ended */

/* Both ends of everything between the two processes and us. */
struct ends {
	int to_init[2], from_init[2]; /* pipes */
	int words[2];                 /* the tool's complaints */
	int ctl[2];
	int go[2]; /* the tool waits here until it is in its control groups */
};

static void ends_done(struct ends *p)
{
	for (int i = 0; i < 2; i++) {
		fd_close(p->to_init[i]);
		fd_close(p->from_init[i]);
		fd_close(p->words[i]);
		fd_close(p->ctl[i]);
		fd_close(p->go[i]);
	}
}

#define NO_ENDS                                                                                    \
	((struct ends){ { FD_NONE, FD_NONE },                                                      \
			{ FD_NONE, FD_NONE },                                                      \
			{ FD_NONE, FD_NONE },                                                      \
			{ FD_NONE, FD_NONE },                                                      \
			{ FD_NONE, FD_NONE } })

static int ends_open(struct ends *p, struct err *e)
{
	if (pipe2(p->to_init, O_CLOEXEC) < 0 || pipe2(p->from_init, O_CLOEXEC) < 0 ||
	    pipe2(p->words, O_CLOEXEC) < 0 || pipe2(p->go, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->ctl) < 0)
		return err_sys(e, "pipes for the engine");
	(void)fcntl(p->words[0], F_SETFL, O_NONBLOCK);
	/* More than the usual 64 KiB on the way: fewer turns for the same bytes. Not everybody may. */
	(void)fcntl(p->to_init[0], F_SETPIPE_SZ, 256 * 1024);
	(void)fcntl(p->from_init[0], F_SETPIPE_SZ, 256 * 1024);
	return 0;
}

/* ---- children ---- */

/* Descriptors v[0..n) become first, first+1, ...; nothing else is left open. */
static bool arrange(const int *v, int n, int first)
{
	int high[16];

	bug_on(n > (int)ARRAY_LEN(high));

	for (int i = 0; i < n; i++) {
		if (v[i] < 0) { /* a number that this one has no use for */
			high[i] = FD_NONE;
			continue;
		}
		high[i] = fcntl(v[i], F_DUPFD_CLOEXEC, 32);
		if (high[i] < 0)
			return false;
	}
	for (int i = 0; i < n; i++)
		if (high[i] < 0 ? close(first + i) < 0 && errno != EBADF
				: dup2(high[i], first + i) < 0)
			return false;
	return syscall(SYS_close_range, first + n, ~0U, 0) == 0;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < 32; s++)
		(void)signal(s, SIG_DFL); /* not for KILL and STOP, which have no other */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* When memory runs out, what is inside goes first. Init says so of itself, but not to our kernel where it has another. */
static void go_first(void)
{
	struct err ignored = ERR_INIT;

	(void)io_write_file("/proc/self/oom_score_adj", "300", &ignored);
}

/* What the child that becomes the tool is told. */
struct launch {
	const struct engine *en;
	const struct plan *plan;
	const char *skel, *dir;
	struct mapped *mapped; /* of root's sandboxes */
	const struct args *args;
	const struct args *env; /* none: the plan's */
	struct vm_start *vm;    /* of a machine */
	const char *again;      /* of one that goes on: its folder; NULL: it is new */
};

/* As the tool would: the keeper reads it there. */
static _Noreturn void give_up(const char *what, int r)
{
	(void)fprintf(stderr, "%s: %s\n", what, strerror(-r));
	_exit(125);
}

/* Where the tool finds its things: root's are elsewhere. */
static struct render_in places_of(const struct launch *l)
{
	bool is_root = l->plan->ids.is_root;

	return (struct render_in){ .plan = l->plan,
				   .skel = is_root ? MAPPED_SKEL : l->skel,
				   .place = is_root ? MAPPED_PLACE : NULL,
				   .dir = is_root ? MAPPED_DIR : l->dir,
				   .kernel = is_root ? MAPPED_KERNEL : l->vm->kernel.image,
				   .kept = is_root && l->vm->kept ? MAPPED_KEPT : l->vm->kept,
				   .is_virtiofs = l->vm->virtiofsd != NULL };
}

/* Root's: from here on somebody who has nothing but what was placed. */
static void drop_root(const struct launch *l)
{
	const char *where = "other ids";
	int r = mapped_become(l->mapped, &l->plan->ids);

	if (r == 0)
		r = mapped_points(l->mapped, l->plan, &where);
	if (r < 0)
		give_up(where, r);
}

static void lock_machine(const struct launch *l, const struct render_in *in)
{
	struct err e = ERR_INIT;

	if (sabotaged("machine") || vm_jail(in, l->vm->files.n == 0 && !in->is_virtiofs, &e) == 0)
		return;
	(void)fprintf(stderr, "the machine's program: %s\n", e.msg);
	_exit(125);
}

/* The view, who serves it, and then nothing else. */
static void prepare_machine(const struct launch *l)
{
	struct render_in in = places_of(l);
	const struct vm_files *f = &l->vm->files;
	const char *where = "";
	int r = vm_view(&in, &where);

	if (r < 0) {
		(void)fprintf(stderr, "the machine's view: ");
		give_up(where, r);
	}
	if (f->n && vm_files_spawn(f, in.place ? MAPPED_FILES : f->program, in.dir,
				   sabotage_bare_env()) < 0)
		_exit(125);
	r = l->vm->virtiofsd
		    ? vm_share_spawn(l->vm->virtiofsd, in.dir, l->vm->n_shares, l->plan->engine_env)
		    : 0;
	if (r < 0)
		give_up("virtiofsd", r);
	lock_machine(l, &in);
}

/* Of its descriptors the first are every tool's, the others a machine's: numbers that its words name. */
static bool arrange_tool(const struct launch *l, const struct ends *p)
{
	const struct vm_files *f = &l->vm->files;
	int fds[] = { p->to_init[0],     p->from_init[1], p->words[1],
		      l->vm->monitor[1], l->vm->state,    f->n ? f->guest[0][1] : l->vm->ram,
		      f->guest[1][1],    f->guest[0][0],  f->ctl[0][1],
		      f->table[0],       f->guest[1][0],  f->ctl[1][1],
		      f->table[1] };
	int n_fds = f->n                     ? (int)ARRAY_LEN(fds)
		    : l->vm->ram >= 0        ? 6
		    : l->vm->state >= 0      ? 5
		    : l->vm->monitor[1] >= 0 ? 4
					     : 3;

	return arrange(fds, n_fds, 0);
}

/* Alone, with nothing of the keeper's, and not before it is told. */
static void await_go(const struct ends *p)
{
	char go;

	(void)setsid();
	reset_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd_close(p->go[1]);
	if (read(p->go[0], &go, 1) != 1)
		_exit(125);
}

static _Noreturn void become_tool(const struct launch *l)
{
	const struct engine *en = l->en;
	char *const *argv = l->args->v, *const *env = l->env->n ? l->env->v : l->plan->engine_env;
	int r = en->needs_stage ? stage_enter(en) : 0;

	bug_on(argv == NULL);
	if (r < 0)
		give_up("cannot make namespaces for it", r);
	if (en->seals_itself)
		stage_exec_sealed(argv, env);
	(void)execve(argv[0], argv, env);
	(void)fprintf(stderr, "cannot run '%s': %s\n", argv[0], strerror(errno));
	_exit(127);
}

static _Noreturn void tool_child(const struct launch *l, const struct ends *p)
{
	const struct engine *en = l->en;
	struct last_words last = { .first = en->first,
				   .id = path_name(l->dir),
				   .env = l->plan->engine_env };
	const char *where = "";
	int r;

	bug_on(l->args->v == NULL);
	last.tool = en->is_told ? l->args->v[0] : NULL;
	await_go(p);
	if (en->strength > STRENGTH_PROCESS)
		go_first();
	r = l->mapped->trees ? mapped_place(l->mapped, l->plan, &where) : 0;
	if (!arrange_tool(l, p))
		_exit(125);
	if (r < 0)
		give_up(where, r);
	if (en->has_helpers && mind_tool(&last) < 0)
		_exit(125);
	if (l->mapped->trees)
		drop_root(l);
	if (en->strength == STRENGTH_VM)
		prepare_machine(l);
	become_tool(l);
}

static _Noreturn void link_child(const struct ends *p, const char *program)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[6] = { null, null, null, p->ctl[1], p->from_init[0], p->to_init[1] };
	char *const argv[] = { (char *)(uintptr_t) "vitrine-link", NULL };

	(void)setsid();
	reset_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null < 0 || !arrange(fds, 6, 0))
		_exit(125);
	(void)execve(program, argv, sabotage_bare_env());
	_exit(127);
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int spawn_link(const struct ends *p, struct native *n, struct err *e)
{
	_free_ char *program = NULL;
	int r = program_find("vitrine-link", &program, e);

	if (r < 0)
		return r;
	n->pid = fork();
	if (n->pid == 0)
		link_child(p, program);
	if (n->pid < 0)
		return err_sys(e, "fork");
	n->pidfd = open_pidfd(n->pid);
	return n->pidfd < 0 ? err_sys(e, "pidfd") : 0;
}

static int spawn_tool(const struct launch *l, const struct ends *p, const struct cgroup *cg,
		      struct native *n, struct err *e)
{
	int r = 0;

	/* Where there is nothing to wait for it need not. */
	if (cg == NULL && io_write_all(p->go[1], "g", 1) < 0)
		return err_sys(e, "start the engine");
	n->tool = fork();
	if (n->tool == 0)
		tool_child(l, p);
	if (n->tool < 0)
		return err_sys(e, "fork");
	if (cg == NULL)
		return 0;
	r = cgroup_attach(cg, n->tool, e);
	if (r == 0 && io_write_all(p->go[1], "g", 1) < 0)
		r = err_sys(e, "start the engine");
	return r;
}

/* ---- what the tool is given ---- */

static bool is_over_itself(const struct mount *m)
{
	return m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN;
}

/* What is covered, on the host: the place inside as the mount below it shows it. */
static char *host_of(const struct plan *p, const struct mount *m)
{
	const struct mount *from = NULL;

	if (m->kind != MOUNT_HIDE || path_is_beneath(m->dst, p->workspace))
		return mem_str(is_over_itself(m) ? m->src : m->dst);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_BIND && path_is_beneath(m->dst, p->mounts[i].dst) &&
		    (from == NULL || path_is_beneath(p->mounts[i].dst, from->dst)))
			from = &p->mounts[i];
	return from && from->src[0] == '/' ? path_join(from->src, path_below(m->dst, from->dst))
					   : mem_str(m->dst);
}

/* Covers of names that have vanished since the scan: a tool would make the name, on the host. And covers of sockets, where
 * nobody inside can reach one of the host's anyway, and none can be covered. */
static bool *find_gone(const struct engine *en, const struct plan *p)
{
	bool *gone = mem_new(p->n_mounts, sizeof(*gone));
	struct stat st;

	for (size_t i = 0; i < p->n_mounts; i++) {
		_free_ char *host = host_of(p, &p->mounts[i]);

		gone[i] = p->mounts[i].flags & MOUNT_GONE_OK &&
			  !path_is_beneath(p->mounts[i].dst, "/proc") &&
			  (lstat(host, &st) < 0 || (en->is_deaf && S_ISSOCK(st.st_mode)));
	}
	return gone;
}

static bool is_cover(const struct mount *m)
{
	return m->kind == MOUNT_HIDE || is_over_itself(m);
}

/* The workspace must still be the directory that was looked at. And a tool follows a link that it is told to cover or to
 * show, out of the workspace and onto the host: what is a link cannot be covered by it. */
static int verify(const struct engine *en, const struct plan *p, struct err *e)
{
	struct stat st;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		_free_ char *host = host_of(p, m);

		if (m->flags & MOUNT_VERIFY &&
		    (lstat(m->src, &st) < 0 || st.st_dev != m->dev || st.st_ino != m->ino))
			return err_set(e, ERR_CONFLICT, ESTALE,
				       "'%s' was replaced while we looked at it", m->src);
		if (is_cover(m) && lstat(host, &st) == 0 && S_ISLNK(st.st_mode))
			return err_set(e, ERR_UNSUPPORTED, ELOOP,
				       "engine '%s' cannot honour: hide and protect of '%s', which "
				       "is a "
				       "symbolic link; the native engine can",
				       en->name, m->dst);
	}
	return 0;
}

static int write_file(const char *dir, const char *name, const struct buf *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text->p, text->n);

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* ---- what init and link are given ---- */

static int send_plan(const struct engine *en, const struct plan *p, int ctl, struct err *e)
{
	_cleanup_(buf_done) struct buf guest = BUF(GUEST_MAX);
	struct guest_walls walls = { .has_own_kernel = en->strength != STRENGTH_PROCESS,
				     .has_cgroups = en->has_cgroups,
				     .is_elsewhere = en->is_told };
	struct init_msg m = { .type = INIT_GUEST,
			      .a = plan_needs_samples(p) ? SAMPLE_MS : 0,
			      .b = p->argv[0] == NULL,
			      .flags = p->is_named };
	_close_ int fd = FD_NONE;
	struct stat ws;
	int r;

	if (walls.is_elsewhere && stat(p->workspace, &ws) == 0)
		walls.ws_mtime = (uint64_t)ws.st_mtime;
	walls.umask = umask(0);
	(void)umask((mode_t)walls.umask);
	guest_encode(p, &walls, &guest);
	fd = request_seal(&guest, e);
	if (fd < 0)
		return fd;
	r = init_send(ctl, &m, &fd, 1);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "vitrine-link does not answer") : 0;
}

/* Init has had its plan long ago. */
static int send_again(const struct plan *p, int ctl, struct err *e)
{
	struct init_msg m = { .type = INIT_AGAIN, .a = plan_needs_samples(p) ? SAMPLE_MS : 0 };
	int r = init_send(ctl, &m, NULL, 0);

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "vitrine-link does not answer") : 0;
}

/* A pipe of the user's may be blocking, and shared with others who want it so. Opened anew it is ours alone. */
static int own_pipe(int fd, int flags)
{
	char path[40];
	struct stat st;
	int again;

	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return fcntl(fd, F_DUPFD_CLOEXEC, 3);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return again >= 0 ? again : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int wall_exec(const struct native *nat, const struct init_msg *m, int request, const int fd[3])
{
	int fds[PACKET_FDS] = { request, FD_NONE, FD_NONE, FD_NONE };
	size_t n = 1;
	int r;

	for (int i = 0; i < 3; i++)
		if (!(m->flags & BIT(i)))
			fds[n++] = own_pipe(fd[i], i == 0 ? O_RDONLY : O_WRONLY);
	r = init_send(nat->ctl, m, fds, n);
	for (size_t i = 1; i < n; i++)
		fd_close(fds[i]);
	return r;
}

static int send_first(const struct plan *p, const struct stdio *io, const struct native *n,
		      struct err *e)
{
	struct init_msg m = {
		.type = INIT_START, .flags = io->flags, .rows = io->rows, .cols = io->cols
	};
	_close_ int request = FD_NONE;
	int r;

	if (p->argv[0] == NULL)
		return 0; /* it will only stand ready */
	request = request_make(p->argv, NULL, "", e);
	if (request < 0)
		return request;
	r = wall_exec(n, &m, request, io->fd);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "vitrine-link does not answer") : 0;
}

/* ---- together ---- */

static int render(const struct launch *l, const char *tool, struct rendering *out, struct err *e)
{
	_free_ bool *gone = find_gone(l->en, l->plan);
	struct render_in in = places_of(l);
	int r;

	in.tool = tool;
	in.id = path_name(l->dir);
	in.gone = gone;
	in.is_again = l->again != NULL;
	in.runtime = stage_is_hybrid() ? "runc" : NULL;
	r = l->en->render(&in, out, e);
	return r == 0 && out->file ? write_file(l->dir, out->file, &out->text, e) : r;
}

/* Everything the tool will ask for, in its directory. */
static int prepare(const struct launch *l, struct vm_start *vm, struct rendering *out,
		   struct err *e)
{
	const struct engine *en = l->en;
	_free_ char *tool = engine_tool(en);
	int r;

	if (tool == NULL)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "engine '%s': there is no program '%s' here", en->name, en->tool);
	r = path_make(l->dir, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", l->dir, strerrordesc_np(-r));
	if (en->strength == STRENGTH_VM)
		r = vm_start_open((struct vm_kind){ .plan = l->plan,
						    .tool = tool,
						    .is_emulated = en->is_emulated },
				  l->dir, l->again, vm, e);
	if (r == 0 && en->prepare)
		r = en->prepare(l->plan, tool, l->dir, e);
	return r < 0 ? r : render(l, tool, out, e);
}

/* All that the tool of root's sandbox will ask for, for somebody who is not root. */
static int open_mapped(const struct launch *l, struct native *n, struct err *e)
{
	const struct vm_start *vm = l->vm;
	bool is_kvm = l->en->strength == STRENGTH_VM && !l->en->is_emulated;
	_free_ char *cover = mem_fmt("%s/.vitrine/dir", l->skel);
	const struct {
		const char *src, *at;
		bool is_own;
	} also[] = {
		{ l->skel, MAPPED_SKEL, l->en->makes_points }, { l->dir, MAPPED_DIR, true },
		{ vm->kernel.image, MAPPED_KERNEL, true },     { vm->kept, MAPPED_KEPT, true },
		{ vm->files.program, MAPPED_FILES, false },    { cover, MAPPED_COVER, true },
	};
	int r = 0;

	if (!l->plan->ids.is_root)
		return 0;
	r = native_idmap(&l->plan->ids, n, e);
	_Static_assert(ARRAY_LEN(also) <= MAPPED_ALSO_MAX, "room for all of them");
	if (r == 0)
		r = mapped_open(l->plan, n->idmap, l->mapped, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(also); i++)
		if (also[i].src)
			r = mapped_add(l->mapped, also[i].src, also[i].at, also[i].is_own, e);
	l->mapped->wants_ids = l->en->wants_ids;
	l->mapped->device = is_kvm ? "/dev/kvm" : NULL;
	native_idmap_end(n);
	return r;
}

/* The tool and vitrine-link, and what both are told first. */
static int spawn_both(const struct launch *l, const struct ends *ends, const struct cgroup *cg,
		      struct native *n, struct err *e)
{
	int r = spawn_tool(l, ends, cg, n, e);

	if (r == 0 && l->en->strength == STRENGTH_VM)
		r = vm_start_wake(ends->to_init[1], l->again != NULL, e);
	if (r == 0)
		r = spawn_link(ends, n, e);
	if (r == 0)
		r = vm_start_plug(l->vm, e);
	if (r < 0)
		return r;
	return l->again ? send_again(l->plan, ends->ctl[0], e)
			: send_plan(l->en, l->plan, ends->ctl[0], e);
}

static char *dir_for(const struct plan *p)
{
	return mem_fmt("%s/engine/vitrine-%s-%d", p->state_dir, p->name, (int)getpid());
}

int wall_start(const struct plan *p, const struct stdio *io, const struct cgroup *cg,
	       const char *again, struct native *ret, struct err *e)
{
	const struct engine *en = engine_find(p->engine);
	_cleanup_(engine_done) struct native n = NATIVE_NONE;
	_cleanup_(rendering_done) struct rendering out = RENDERING;
	_cleanup_(ends_done) struct ends ends = NO_ENDS;
	_cleanup_(vm_start_done) struct vm_start vm = VM_START_NONE;
	_cleanup_(mapped_done) struct mapped mapped = MAPPED_NONE;
	_free_ char *dir = dir_for(p);
	char skel[4096];
	struct launch launch = { .en = en,
				 .plan = p,
				 .skel = skel,
				 .dir = dir,
				 .mapped = &mapped,
				 .args = &out.args,
				 .env = &out.env,
				 .vm = &vm,
				 .again = again };
	int r;

	n.skel = skel_open(p, e);
	if (n.skel < 0)
		return n.skel;
	r = skel_path(p, skel, sizeof(skel));
	if (r < 0)
		return err_set(e, ERR_USAGE, ENAMETOOLONG,
			       "the state directory's path is too long");
	r = verify(en, p, e);
	if (r == 0)
		r = prepare(&launch, &vm, &out, e);
	if (r == 0)
		r = open_mapped(&launch, &n, e);
	if (r == 0)
		r = ends_open(&ends, e);
	if (r == 0)
		r = spawn_both(&launch, &ends, cg, &n, e);
	n.ctl = take_fd(ends.ctl[0]);
	if (r == 0)
		r = send_first(p, io, &n, e);
	if (r < 0)
		return r;
	n.words = take_fd(ends.words[0]);
	n.alive = take_fd(ends.from_init[0]);
	n.monitor = take_fd(vm.monitor[0]);
	for (int i = 0; i < 2; i++)
		n.files[i] = take_fd(vm.files.ctl[i][0]);
	*ret = n;
	n = NATIVE_NONE;
	return 0;
}

static bool wait_pidfd(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r;

	do {
		r = poll(&p, 1, ms);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

/* Every thread has its own list of children. */
static int add_children(int tasks, const char *tid, struct buf *out)
{
	_free_ char *path = mem_fmt("%s/children", tid);
	_close_ int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (n < 0 || n == sizeof(text)) /* more than any tool has */
		return -EIO;
	buf_add(out, text, (size_t)n);
	return out->is_over ? -EMSGSIZE : 0;
}

/* The tool's threads, and their children where `children` is given, each followed by a blank. */
static int list_tasks(pid_t tool, struct buf *threads, struct buf *children)
{
	_free_ char *path = mem_fmt("/proc/%d/task", (int)tool);
	DIR *d = opendir(path);
	struct dirent *en;
	int r = 0;

	if (d == NULL)
		return -errno;
	while (r == 0 && (en = readdir(d)) != NULL) {
		if (en->d_name[0] == '.')
			continue;
		buf_printf(threads, "%s ", en->d_name);
		if (children)
			r = add_children(dirfd(d), en->d_name, children);
	}
	(void)closedir(d);
	return r < 0 ? r : threads->is_over ? -EMSGSIZE : 0;
}

/* A thread that ends leaves its children to another one, which may have been read before. */
static int list_children(pid_t tool, struct buf *ret)
{
	_cleanup_(buf_done) struct buf before = BUF(4 * KIB), after = BUF(4 * KIB);
	int r = list_tasks(tool, &before, ret);

	if (r == 0)
		r = list_tasks(tool, &after, NULL);
	return r < 0 ? r : str_eq(buf_cstr(&before), buf_cstr(&after)) ? 0 : -EAGAIN;
}

static bool wait_dead(const char *pid)
{
	_close_ int fd = FD_NONE;
	struct err ignored = ERR_INIT;
	uint64_t n;

	if (num_parse(pid, 1, INT32_MAX, &n, &ignored) < 0)
		return false;
	fd = open_pidfd((pid_t)n);
	return fd >= 0 ? wait_pidfd(fd, EMPTY_MS) : errno == ESRCH;
}

/* All that is inside dies with the tool's children, see struct engine; what the tool does then is tidying up. */
bool wall_is_empty(const struct native *n)
{
	_cleanup_(buf_done) struct buf children = BUF(4 * KIB);

	if (list_children(n->tool, &children) < 0)
		return false;
	for (const char *at = buf_cstr(&children); *at;) {
		_free_ char *word = mem_strn(at, strcspn(at, " "));

		if (!wait_dead(word))
			return false;
		at += strlen(word);
		at += strspn(at, " ");
	}
	return true;
}

/* The other end of this pipe is held by init and by the tool alone: when nobody holds it, nothing inside lives. */
static bool is_over(const struct native *n, int ms)
{
	struct pollfd p = { .fd = n->alive };
	int r;

	do {
		r = poll(&p, 1, ms);
	} while (r < 0 && errno == EINTR);
	return r > 0 && p.revents & POLLHUP;
}

static bool wait_tool(const struct native *n, int ms)
{
	_close_ int fd = open_pidfd(n->tool);

	return fd < 0 || wait_pidfd(fd, ms);
}

void wall_reap(struct native *n, const struct plan *p)
{
	const struct engine *en = engine_find(p->engine);

	/* A machine is one process: with it everything inside is gone. */
	if (en->strength == STRENGTH_VM || !is_over(n, GRACE_MS) || !wait_tool(n, GRACE_MS)) {
		if (en->has_helpers && kill(n->tool, SIGTERM) == 0)
			(void)wait_tool(n, GRACE_MS);
		(void)kill(-n->tool, SIGKILL); /* with what it started in its own session */
	}
	(void)waitpid(n->tool, NULL, 0);
	n->tool = 0;
}

/* "vitrine-NAME-PID": of a keeper that is no more. One whose number somebody else has now waits for the next time. */
static bool is_left(const char *name)
{
	const char *pid = strrchr(name, '-');
	struct err ignored = ERR_INIT;
	uint64_t n;

	return pid && num_parse(pid + 1, 1, INT32_MAX, &n, &ignored) == 0 &&
	       kill((pid_t)n, 0) < 0 && errno == ESRCH;
}

void wall_tidy(const struct plan *p)
{
	_free_ char *dir = dir_for(p);
	_free_ char *parent = path_parent(dir);
	DIR *d = opendir(parent);
	struct dirent *en;

	if (d == NULL)
		return;
	(void)path_remove(dirfd(d), path_name(dir)); /* what stays is for the next who is here */
	while ((en = readdir(d)) != NULL)
		if (is_left(en->d_name))
			(void)path_remove(dirfd(d), en->d_name);
	(void)closedir(d);
}
