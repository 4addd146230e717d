/* SPDX-License-Identifier: Apache-2.0 */
/* keep/place.c - where a sandbox lives while it runs: its folder, the lock on it, the control socket in it
 *
 * A name is taken while its lock is held; what a dead keeper left is reused. The socket is reached through the
 * folder's descriptor, because a socket's name may be 107 bytes and the state directory's path may be longer.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "core/def.h"
#include "keep/keeper.h"

static bool is_still(const char *path, int dir)
{
	struct stat a, b;

	return fstat(dir, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* One try; -EAGAIN when somebody who cleaned up took the directory away under us. */
static int claim_once(struct keeper *k, const char *path, struct err *e)
{
	const struct plan *p = k->in->plan;
	_close_ int at = FD_NONE, lock = FD_NONE;
	int r = p->is_named ? 0 : path_make(path, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r));
	at = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0 && p->is_named)
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no sandbox '%s' any more",
			       p->name);
	if (at < 0)
		return errno == ENOENT ? -EAGAIN : err_sys(e, "'%s'", path);
	lock = openat(at, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return errno == ENOENT ? -EAGAIN : err_sys(e, "lock of '%s'", p->name);
	/* Nobody else has a generated name; who holds its lock is just cleaning up. */
	if (flock(lock, p->is_named ? LOCK_EX | LOCK_NB : LOCK_EX) < 0)
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "the sandbox '%s' is already running; 'vitrine exec %s -- CMD' "
			       "starts another command in it",
			       p->name, p->name);
	if (!is_still(path, at) || (!p->is_named && faccessat(at, "lock", F_OK, 0) < 0))
		return -EAGAIN;
	if (p->is_named && faccessat(at, DEF_FILE, F_OK, 0) < 0)
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no sandbox '%s' any more",
			       p->name);
	if (p->is_named && mkdirat(at, "home", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "home of '%s'", p->name);
	/* For `quarantine restore` and `undo`, which ask where the sandboxes work that run. Without the link this one counts
	 * as working anywhere. */
	if (!p->is_named)
		(void)!symlinkat(p->workspace, at, DEF_RUN_WORKSPACE);
	k->dir = take_fd(at);
	k->lock = take_fd(lock);
	return 0;
}

int place_claim(struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	_free_ char *path = mem_fmt("%s/sandboxes/%s", p->state_dir, p->name);
	int r = -EAGAIN;

	for (int i = 0; i < 100 && r == -EAGAIN; i++)
		r = claim_once(k, path, e);
	return r == -EAGAIN
		       ? err_set(e, ERR_SYSTEM, EAGAIN, "'%s' is taken away again and again", path)
		       : r;
}

static bool is_our_user(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return false;
	return cred.uid == geteuid() || cred.uid == 0 || sabotaged("peercred");
}

static bool accept_one(struct keeper *k)
{
	struct init_msg stay = { .type = INIT_STAY };
	_close_ int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	if (!is_our_user(fd))
		return true;
	if (!k->has_visitors &&
	    k->native.tool == 0) { /* behind other engines a named one always stays */
		k->has_visitors = true;
		(void)init_send(k->native.ctl, &stay, NULL, 0); /* if it is ending, so are we */
	}
	(void)client_add(k, take_fd(fd)); /* one too many is hung up on */
	return true;
}

static void on_accept(void *keeper)
{
	(void)accept_one(keeper);
}

int place_listen(struct keeper *k, struct err *e)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(e, "control socket");
	(void)unlinkat(k->dir, "control", 0); /* a dead keeper's */
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/control", k->dir);
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 64) < 0)
		return err_sys(e, "control socket");
	k->listener = take_fd(fd);
	k->on_listener = watch_fd(k->loop, k->listener, WATCH_READ, on_accept, k);
	return 0;
}

/* What it asked for was never begun. It is read all the same: a socket that is closed with something unread loses what
 * was said to its peer. */
static void turn_away(int conn)
{
	struct keep_msg m = { 0 }, no = { .type = KEEP_ENDED, .a = 125, .b = END_CLOSING };
	int fds[PACKET_FDS];

	while (keep_recv(conn, &m, fds) == 1)
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
	(void)keep_send(conn, &no, NULL, 0); /* it may be gone */
}

void place_shut(struct keeper *k)
{
	int fd;

	if (k->listener < 0)
		return;
	/* From here on connecting fails; who is in the queue is told to come again. */
	(void)shutdown(k->listener, SHUT_RDWR);
	while ((fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		turn_away(fd);
		fd_close(fd);
	}
}

void place_hide(struct keeper *k)
{
	/* Who holds the lock without it is coming or going: others wait a moment. */
	(void)unlinkat(k->dir, "control", 0);
	if (k->listener < 0)
		return;
	/* From here on a connect() is refused; connections that were made before get an answer with all others. */
	(void)shutdown(k->listener, SHUT_RDWR);
	while (accept_one(k))
		;
}

void place_release(struct keeper *k)
{
	const struct plan *p = k->in->plan;
	struct owned o = { .dir = k->dir, .lock = k->lock };
	struct err e = ERR_INIT;

	(void)unlinkat(k->dir, "ca-bundle.pem", 0); /* only of an inspected one */
	(void)unlinkat(k->dir, "ca-bundle.jks", 0);
	for (char *const *v = p->net.logins; v && *v; v += 2)
		(void)unlinkat(k->dir, *v, 0);
	sockets_close(k);
	broker_remove(k);
	if (!p->is_named) {
		_free_ char *dir = mem_fmt("%s/sandboxes/%s", p->state_dir, p->name);

		(void)unlinkat(k->dir, DEF_RUN_WORKSPACE, 0);
		(void)unlinkat(k->dir, "lock", 0);
		(void)rmdir(dir);
	} else if (k->in->is_rm) {
		if (k->journal)
			journal_event(k->journal, EVENT_NO_SESSION, EV_SANDBOX_REMOVED,
				      &EVENT_STR(NAME, p->name), 1);
		if (def_remove(p->state_dir, p->name, &o, &e) < 0)
			keeper_note(k, e.msg);
		k->dir = o.dir;
		k->lock = o.lock;
	}
	fd_close(take_fd(k->lock));
}
