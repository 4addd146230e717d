/* SPDX-License-Identifier: Apache-2.0 */
/* cli/machine.c - see machine.h
 *
 * save      the keeper makes the machine still and hands over its monitor; memory, devices, tables of open files, the list of its
 *           commands and the home go into live/.part
 * keep      the checkpoint of the workspace is there: the folder gets its name, last of all, and the machine goes on
 *
 * Where changes wait in layers a point of theirs is that checkpoint, the home included: the layer that is written in is copied
 * while the machine stands still.
 *
 * Killed at any moment, there is no such folder or a whole one, and the machine goes on because our connection has ended. A folder
 * holds the machine's memory, and with it whatever secret was in it: nobody else can read it, and it goes with its checkpoint.
 */
#include "cli/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/num.h"
#include "base/path.h"
#include "cli/client.h"
#include "cli/live.h"
#include "cli/progress.h"
#include "cli/whole.h"
#include "engine/engine.h"
#include "tree/tree.h"

#define PART ".part"
#define HOMES "homes"
#define LAYERS "layers-"
#define NAME_BYTES 64
#define STILL_MS 120000 /* for the machine to be still: it may be slow */

static char *folder(const struct spot *s, const char *name)
{
	return mem_fmt("%s/sandboxes/%s/live%s%s", s->host.state_dir, s->sandbox,
		       name[0] ? "/" : "", name);
}

/* A point's number comes again when all have gone; its time does not. */
static bool name_of(const struct spot *s, uint64_t id, char out[NAME_BYTES])
{
	const struct point *p = s->is_review ? layers_point(&s->review.layers, id) : NULL;

	if (s->is_review && p == NULL)
		return false;
	if (p)
		(void)snprintf(out, NAME_BYTES, LAYERS "%llu-%llu", (unsigned long long)p->id,
			       (unsigned long long)p->created);
	else
		(void)snprintf(out, NAME_BYTES, "%llu", (unsigned long long)id);
	return true;
}

/* NULL: there is no such checkpoint. */
static char *folder_of(const struct spot *s, uint64_t id)
{
	char name[NAME_BYTES];

	return name_of(s, id, name) ? folder(s, name) : NULL;
}

static bool has_layers(const struct spot *s)
{
	return s->is_review || whole_is_in_layers(s);
}

/* ---- save ---- */

static int open_folder(struct machine *m, const struct spot *s, struct err *e)
{
	_free_ char *live = folder(s, "");
	int r = path_make(live, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", live, strerrordesc_np(-r));
	m->live = open(live, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->live < 0)
		return err_sys(e, "'%s'", live);
	(void)path_remove(m->live,
			  PART); /* of one that was cut off; the keeper lets one at a time */
	if (mkdirat(m->live, PART, 0700) < 0)
		return err_sys(e, "'%s'", live);
	m->part = openat(m->live, PART, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m->part < 0 ? err_sys(e, "'%s'", live) : 0;
}

static int put_file(int dir, const char *name, const void *p, size_t n, struct err *e)
{
	_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, p, n);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", name, strerrordesc_np(-r)) : 0;
}

static void add_session(struct buf *b, const struct keep_msg *m)
{
	struct engine_saved s = {
		.id = (uint32_t)m->b, .pty = m->flags, .rows = m->rows, .cols = m->cols
	};

	(void)snprintf(s.command, sizeof(s.command), "%.191s", m->err.msg);
	buf_add(b, &s, sizeof(s));
}

/* The keeper's word that it is still, and what came with it. */
static int await_parked(int conn, struct keep_msg *m, int fds[PACKET_FDS], struct buf *sessions,
			struct err *e)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };

	for (;;) {
		int r = poll(&p, 1, STILL_MS) == 1 ? keep_recv(conn, m, fds) : -ETIMEDOUT;

		if (r == 1 && m->type == KEEP_PARKED)
			return 0;
		if (r == 1 && m->type == KEEP_SAVED)
			add_session(sessions, m);
		for (int i = 0; r >= 0 && i < PACKET_FDS; i++)
			fd_close(fds[i]);
		if (r == 1 && m->type == KEEP_ENDED) {
			*e = m->err;
			return e->num > 0 ? -e->num : -EPROTO;
		}
		if (r != 1)
			return err_set(e, ERR_SYSTEM, r < 0 ? -r : EPIPE,
				       "the machine does not become still");
	}
}

static int write_down(struct machine *m, const struct keep_msg *parked, const int fds[PACKET_FDS],
		      const struct buf *sessions, struct err *e)
{
	_cleanup_(buf_done) struct buf key = BUF(MIB);
	struct stat st = { 0 };
	int r = lseek(fds[3], 0, SEEK_SET) < 0 ? err_sys(e, "its key")
					       : io_read_fd(fds[3], &key, e);

	if (r == 0)
		r = put_file(m->part, "key", buf_cstr(&key), key.n, e);
	if (r == 0)
		r = put_file(m->part, "sessions", buf_cstr(sessions), sessions->n, e);
	if (r == 0)
		r = engine_save(fds[0], fds + 1, parked->a == 2 ? 2 : 1, m->part, &m->lost, e);
	if (r == 0 && fstatat(m->part, "memory", &st, 0) == 0)
		m->memory = (uint64_t)st.st_size;
	m->sessions = sessions->n / sizeof(struct engine_saved);
	return r;
}

static int save_home(const struct machine *m, const struct spot *s, struct err *e)
{
	_free_ char *home = mem_fmt("%s/sandboxes/%s/home", s->host.state_dir, s->sandbox);
	_free_ char *path = folder(s, HOMES);
	_close_ int fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct tree_note note = { .root_fd = fd, .kind = TREE_MANUAL, .message = "", .root = home };
	struct tree_options o = { .with_ignored = true };
	struct tree_saved saved = { 0 };
	struct store *store = NULL;
	char id[24];
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", home);
	r = store_open(path, true, &store, e);
	if (r == 0)
		r = tree_checkpoint(store, &note, &o, &saved, NULL, e);
	store_close(store);
	if (r < 0)
		return err_wrap(e, r, "its home");
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)saved.id);
	return put_file(m->part, "home", id, strlen(id), e);
}

int machine_save(struct machine *m, const struct spot *s, struct err *e)
{
	_cleanup_(buf_done) struct buf sessions = BUF(MIB);
	struct keep_msg msg = { .type = KEEP_PARK };
	int fds[PACKET_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	int r;

	if (s->sandbox == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "--live: of which sandbox? 'vitrine checkpoint --live NAME'");
	m->conn = keep_connect(s->host.state_dir, s->sandbox, e);
	if (m->conn == -ENOENT)
		return err_set(e, ERR_CONFLICT, ENOENT,
			       "--live: '%s' does not run; 'vitrine checkpoint %s' "
			       "saves its files",
			       s->sandbox, s->sandbox);
	r = m->conn < 0 ? m->conn : open_folder(m, s, e);
	if (r < 0)
		return r;
	m->began = clock_now();
	if (keep_send(m->conn, &msg, NULL, 0) < 0)
		return err_set(e, ERR_SYSTEM, EPIPE, "the keeper is gone");
	r = await_parked(m->conn, &msg, fds, &sessions, e);
	if (r < 0)
		return r;
	r = write_down(m, &msg, fds, &sessions, e);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r < 0)
		return err_wrap(e, r, "the machine was not saved");
	return has_layers(s) ? 0 : save_home(m, s, e);
}

int machine_keep(struct machine *m, const struct spot *s, uint64_t id, uint64_t *ret_ms,
		 struct err *e)
{
	char name[NAME_BYTES];

	if (!name_of(s, id, name))
		return err_set(e, ERR_NOTFOUND, ENOENT, "checkpoint %llu has gone",
			       (unsigned long long)id);
	if (fsync(m->part) < 0 || renameat(m->live, PART, m->live, name) < 0 || fsync(m->live) < 0)
		return err_sys(e, "checkpoint %s", name);
	fd_close(take_fd(m->conn));
	*ret_ms = (clock_now() - m->began) / NS_PER_MS;
	return 0;
}

void machine_close(struct machine *m)
{
	if (m->live >= 0)
		(void)path_remove(m->live, PART); /* when it was kept there is none */
	fd_close(m->conn);
	fd_close(m->part);
	fd_close(m->live);
	*m = MACHINE_NONE;
}

void machine_print(const struct machine *m, bool as_json)
{
	char size[32];

	if (as_json) {
		(void)printf(",\"live\":{\"bytes\":%llu,\"commands\":%llu,\"lost\":%llu}",
			     (unsigned long long)m->memory, (unsigned long long)m->sessions,
			     (unsigned long long)m->lost);
		return;
	}
	progress_size(m->memory, size, sizeof(size));
	(void)printf("  with the machine at work: %llu commands, %s of memory and devices\n",
		     (unsigned long long)m->sessions, size);
	if (m->lost)
		(void)printf("  %llu files that it has open cannot come back: they have no name "
			     "any more\n",
			     (unsigned long long)m->lost);
}

/* ---- and back ---- */

uint64_t machine_bytes(const struct spot *s, uint64_t id)
{
	_free_ char *dir = s->sandbox ? folder_of(s, id) : NULL;
	_free_ char *path = dir ? mem_fmt("%s/memory", dir) : NULL;
	struct stat st;

	return path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static int read_home(const struct spot *s, uint64_t id, uint64_t *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64);
	_free_ char *dir = folder_of(s, id);
	_free_ char *path = dir ? mem_fmt("%s/home", dir) : NULL;

	if (path == NULL || access(path, F_OK) < 0)
		return -ENOENT;
	if (io_read_file(path, &b, e) < 0 || num_parse(buf_cstr(&b), 1, INT64_MAX, ret, e) < 0)
		return err_wrap(e, -EBADMSG, "'%s'", path);
	return 0;
}

static int home_to(int home, struct store *store, uint64_t id, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index now = { 0 }, target = { 0 };
	struct tree_options o = { .with_ignored = true };
	struct restore_job job = {
		.root_fd = home, .store = store, .now = &now, .target = &target
	};
	struct restored sum;
	int r = store_load(store, id, &target, e);

	tree_clean(home);
	if (r == 0)
		r = tree_look(home, &target, &o, &now, e);
	if (r == 0)
		r = tree_hash_all(home, &target, &now, e);
	return r < 0 ? r : tree_restore(&job, &sum, e);
}

/* The plain directory it was; where it lies in layers by now, an empty one, and what was there is a point of theirs. */
static int open_home(struct spot *s, struct err *e)
{
	_free_ char *home = NULL;
	uint64_t present;
	int fd;

	if (s->review.layers.home.n > 0 && layers_fresh(&s->review.layers, false, &present, e) < 0)
		return -EIO;
	home = s->review.layers.home.n > 0
		       ? layers_home_top(&s->review.layers)
		       : mem_fmt("%s/sandboxes/%s/home", s->host.state_dir, s->sandbox);
	fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "'%s'", home) : fd;
}

int machine_home_back(struct spot *s, uint64_t id, struct err *e)
{
	_free_ char *path = folder(s, HOMES);
	_close_ int fd = FD_NONE;
	struct store *store = NULL;
	uint64_t home_id = 0;
	int r = read_home(s, id, &home_id, e);

	if (r == -ENOENT)
		return 0;
	if (r == 0) {
		fd = open_home(s, e);
		r = fd < 0 ? fd : 0;
	}
	if (r == 0)
		r = store_open(path, true, &store, e);
	if (r == 0)
		r = home_to(fd, store, home_id, e);
	store_close(store);
	return r < 0 ? err_wrap(e, r, "the home of '%s'", s->sandbox) : 0;
}

int machine_start(const struct spot *s, uint64_t id, struct err *e)
{
	_free_ char *dir = folder_of(s, id);
	_close_ int conn = dir ? live_again(&s->host, s->sandbox, dir, e) : -ENOENT;

	return conn < 0 ? conn : 0;
}

/* ---- and away ---- */

static bool is_in(uint64_t id, const uint64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void prune_one(const char *state_dir, const char *name, const uint64_t *ids, size_t n)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/live", state_dir, name);
	DIR *d = opendir(path);
	struct dirent *en;
	struct err ignored;
	uint64_t id;

	while (d && (en = readdir(d)) != NULL)
		if (num_parse(en->d_name, 1, INT64_MAX, &id, &ignored) == 0 && !is_in(id, ids, n))
			(void)path_remove(dirfd(d), en->d_name); /* else the next time */
	if (d)
		(void)closedir(d);
}

int machine_prune(const struct spot *s, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	char **names = NULL;
	size_t n = 0;
	int r = store_list(s->undo.store, &ids, &n, e);

	if (r == 0)
		r = def_list(s->host.state_dir, false, &names, e);
	for (char **p = names; r == 0 && p && *p; p++) {
		_cleanup_(def_done) struct def d = { 0 };
		struct err ignored;

		if (def_read(s->host.state_dir, *p, &d, &ignored) == 0 &&
		    str_eq(d.workspace, s->host.workspace))
			prune_one(s->host.state_dir, *p, ids, n);
	}
	def_list_free(names);
	return r;
}

void machine_prune_layers(const struct spot *s)
{
	_free_ char *path = folder(s, "");
	DIR *d = opendir(path);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL) {
		bool is_kept = !str_starts(en->d_name, LAYERS);
		char name[NAME_BYTES];

		for (size_t i = 0; i < s->review.layers.n_points && !is_kept; i++)
			is_kept = name_of(s, s->review.layers.points[i].id, name) &&
				  str_eq(en->d_name, name);
		if (!is_kept)
			(void)path_remove(dirfd(d), en->d_name); /* else the next time */
	}
	if (d)
		(void)closedir(d);
}
