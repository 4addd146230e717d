/* SPDX-License-Identifier: Apache-2.0 */
/* keep/served.c - the server of the workspace's .git: vitrine-dir (dir/)
 *
 * Init makes the mount and hands out its /dev/fuse. The keeper answers the kernel's first request and then waits until there is
 * another: the first time that somebody inside looks into .git. Only then the server is started, a process of its own that takes
 * as long to come up as a third of a start; most commands never need it. Where the view itself has mounts in .git, its
 * building waits for the server, which is then started at once. Whoever makes the keeper wait for something that goes
 * through the mount calls served_need() first: the keeper could not start the server while it waits.
 *
 * From then on the keeper holds none of the server's descriptors but a socket: it says why a change was refused, and hangs up
 * when the server ends. A dead server leaves a .git that nobody can open, and git would look for a repository further
 * up: the sandbox ends with it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "dir/wire.h"
#include "keep/keeper.h"

#define START_MS 10000
#define FUSE_MAJOR 10
#define FUSE_MINOR 229
#define NOTES_MAX 20
#define PARTS_AFTER (4 * NS_PER_MS)

struct served {
	struct keeper *k;
	bool is_answered; /* init has made the mount, or cannot */
	bool is_on;
	int fuse, git; /* until there is a server */
	pid_t pid;
	int socket;
	struct watch *on_fuse, *on_socket, *on_parts;
	bool has_parts;
	int parts[SERVED_PARTS];    /* of .git, to be attached; FD_NONE: none, or not any more */
	char last[DIR_REFUSAL_MAX]; /* the last refusal: said once */
	unsigned n_notes;
};

/* ---- settings ---- */

static void put(struct buf *b, char what, const char *text)
{
	buf_putc(b, what);
	buf_add(b, text, strlen(text) + 1);
}

static void put_range(struct buf *b, char what, uint32_t in, uint32_t out)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%u %u 1", in, out);
	put(b, what, text);
}

static const struct mount *serve_mount(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_SERVE)
			return &p->mounts[i];
	return NULL;
}

/* A configuration is judged by its keys, so what would have covered it is left out; all others as the plan has them. */
static void put_covers(struct buf *b, const struct plan *p, const char *git)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		const char *name = path_name(m->dst);

		if (!(m->flags & MOUNT_SERVED) || str_eq(m->dst, git))
			continue;
		if (m->kind == MOUNT_PIN || str_eq(name, "config") ||
		    str_eq(name, "config.worktree"))
			put(b, 'n', path_below(m->dst, git));
		else
			put(b, m->kind == MOUNT_HIDE ? 'h' : 'p', path_below(m->dst, git));
	}
}

/* Whose files are the inside's own: the caller's. Root's are mapped to the sandbox's id. */
static void put_settings(struct buf *b, const struct plan *p, const struct mount *m)
{
	const struct ids *ids = &p->ids;

	put(b, 'o', "");
	put(b, 'w', p->workspace);
	put_range(b, 'u', ids->uid_in, ids->is_root ? 0 : ids->uid_out);
	put_range(b, 'g', ids->gid_in, ids->is_root ? 0 : ids->gid_out);
	put_covers(b, p, m->dst);
}

/* ---- life ---- */

static void reap(struct served *s, int *ret_status)
{
	*ret_status = 0;
	watch_free(s->on_socket);
	s->on_socket = NULL;
	fd_close(s->socket);
	s->socket = FD_NONE;
	if (s->pid > 0)
		(void)waitpid(s->pid, ret_status, 0);
	s->pid = 0;
}

/* It ends with status 0 when its mount is gone, and that goes with the last process inside. */
static void on_end(struct served *s)
{
	struct keeper *k = s->k;
	struct err e = ERR_INIT;
	int status;

	reap(s, &status);
	if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || k->is_ending ||
	    sabotaged("served-end"))
		return;
	err_put_(&e, ERR_SYSTEM, ECHILD,
		 "the server of .git (vitrine-dir) ended unexpectedly, and without it nothing "
		 "inside can use the "
		 "repository; run the command again");
	keeper_fail(k, &e);
}

static void on_socket(void *arg)
{
	struct served *s = arg;
	char text[DIR_REFUSAL_MAX];
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
	ssize_t n = recv(s->socket, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_end(s);
		return;
	}
	text[n] = '\0';
	if (str_eq(text, s->last) || s->n_notes >= NOTES_MAX)
		return;
	(void)snprintf(s->last, sizeof(s->last), "%s", text);
	s->n_notes++;
	buf_esc(&b, text, (size_t)n);
	keeper_note(s->k, buf_cstr(&b));
}

static int open_git(const struct keeper *k, const struct mount *m, struct err *e)
{
	_close_ int fd =
		openat(k->in->ws_fd, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", m->dst);
	if (st.st_dev != m->dev || st.st_ino != m->ino)
		return err_set(e, ERR_CONFLICT, ESTALE,
			       "'%s' was replaced while the sandbox started", m->dst);
	return take_fd(fd);
}

static void on_parts(void *arg);

/* Until they are attached they are served, by the same rules and more slowly. */
static void await_parts(struct served *s)
{
	if (s->has_parts && s->pid > 0 && s->on_parts == NULL)
		s->on_parts = watch_timer(s->k->loop, PARTS_AFTER, false, on_parts, s);
}

static int launch(struct served *s, struct err *e)
{
	_close_ int fuse = take_fd(s->fuse);
	const struct plan *p = s->k->in->plan;
	const struct mount *m = serve_mount(p);
	_cleanup_(buf_done) struct buf settings = BUF(DIR_SETTINGS_MAX);
	_close_ int git = take_fd(s->git);
	int r;

	watch_free(s->on_fuse);
	s->on_fuse = NULL;
	put_settings(&settings, p, m);
	if (settings.is_over)
		return err_set(e, ERR_UNSUPPORTED, E2BIG, "too many protected names in '%s'",
			       m->dst);
	r = dir_spawn(fuse, git, &settings, &s->pid, &s->socket, e);
	if (r < 0)
		return r;
	s->on_socket = watch_fd(s->k->loop, s->socket, WATCH_READ, on_socket, s);
	await_parts(s);
	return 0;
}

void served_need(struct keeper *k)
{
	struct served *s = k->served;
	struct err e = ERR_INIT;

	if (s && s->fuse >= 0 && launch(s, &e) < 0)
		keeper_fail(k, &e);
}

/* A request; or the mount is gone, with all who could have made one. */
static void on_fuse(void *arg)
{
	struct served *s = arg;
	struct pollfd p = { .fd = s->fuse, .events = POLLIN };

	if (poll(&p, 1, 0) > 0 && p.revents & POLLIN)
		served_need(s->k);
	else if (p.revents)
		watch_set(s->on_fuse, false);
}

static int await_need(struct served *s, struct err *e)
{
	const struct plan *p = s->k->in->plan;
	int r = dir_hello(s->fuse, e);

	s->is_on = true;
	if (r < 0)
		return r;
	/* Now: the host may replace it before anybody inside looks. */
	s->git = open_git(s->k, serve_mount(p), e);
	if (s->git < 0)
		return s->git;
	if (plan_mounts_in_served(p, serve_mount(p)))
		return launch(s, e);
	s->on_fuse = watch_fd(s->k->loop, s->fuse, WATCH_READ, on_fuse, s);
	return 0;
}

static bool is_fuse(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == FUSE_MAJOR &&
	       minor(st.st_rdev) == FUSE_MINOR;
}

/* Where init has no mount for it, its covers do. */
void served_take(struct keeper *k, int take_fuse, int error)
{
	_close_ int fuse = take_fuse;
	struct served *s = k->served;
	struct err e = ERR_INIT;

	if (s == NULL || s->is_answered)
		return;
	s->is_answered = true;
	if (fuse < 0 && error)
		return;
	if (fuse < 0 || !is_fuse(fuse))
		err_put_(&e, ERR_BUG, EINVAL, "init handed out something else than /dev/fuse");
	else
		s->fuse = take_fd(fuse);
	if (e.kind != ERR_NONE || await_need(s, &e) < 0)
		keeper_fail(k, &e);
}

/* ---- parts ---- */

static void drop_parts(struct served *s)
{
	for (size_t i = 0; i < SERVED_PARTS; i++)
		fd_close(take_fd(s->parts[i]));
}

static void on_parts(void *arg)
{
	struct served *s = arg;
	struct err e = ERR_INIT;

	watch_set(s->on_parts, false);
	if (s->pid > 0 && !s->k->is_ending &&
	    native_parts(&s->k->native, serve_mount(s->k->in->plan), s->parts, &e) < 0 &&
	    !s->k->is_ending)
		keeper_note(s->k, e.msg);
	drop_parts(s);
}

/* Most commands are over before it would have been worth the while. */
bool served_parts(struct keeper *k, const struct init_msg *m, int fds[PACKET_FDS])
{
	struct served *s = k->served;
	size_t at = 0;

	if (m->type != INIT_PARTS || s == NULL || !s->is_on || s->has_parts)
		return false;
	for (size_t i = 0; i < SERVED_PARTS; i++)
		if (m->flags & BIT(i))
			s->parts[i] = take_fd(fds[at++]);
	for (; at < PACKET_FDS; at++)
		fd_close(fds[at]);
	s->has_parts = true;
	await_parts(s);
	return true;
}

int served_start(struct keeper *k, struct err *e)
{
	uint64_t until = clock_now() + START_MS * NS_PER_MS;

	if (!k->in->plan->serves_git)
		return 0;
	k->served = mem_new(1, sizeof(*k->served));
	*k->served = (struct served){ .k = k,
				      .fuse = FD_NONE,
				      .git = FD_NONE,
				      .socket = FD_NONE,
				      .parts = { FD_NONE, FD_NONE, FD_NONE } };
	while (!k->served->is_answered && !k->is_ending) {
		uint64_t before = k->n_messages;

		if (!wait_readable(k->native.ctl, until))
			return err_set(e, ERR_SYSTEM, ETIMEDOUT, "init did not begin in time");
		inside_message(k);
		if (k->n_messages == before)
			break; /* init died: the loop sees that */
	}
	return 0;
}

bool served_is_on(const struct keeper *k)
{
	return k->served && k->served->is_on;
}

void served_finish(struct keeper *k)
{
	int status;

	if (k->served) {
		drop_parts(k->served);
		watch_free(k->served->on_fuse);
		k->served->on_fuse = NULL;
		fd_close(take_fd(k->served->fuse));
		fd_close(take_fd(k->served->git));
	}
	if (k->served == NULL || k->served->pid <= 0)
		return;
	(void)kill(k->served->pid, SIGKILL); /* nothing inside lives any more */
	reap(k->served, &status);
}
