/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loopdir.c - see loopdir.h: folders, locks, what is there and in which order it appears */
#include "agent/loopdir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/loopfile.h"
#include "base/io.h"
#include "base/num.h"
#include "base/path.h"

#define LOOPS "loops"
#define NUMBER_MAX 1000000

void loopdir_close(struct loopdir *l)
{
	fd_close(l->fd);
	fd_close(l->lock);
	*l = LOOPDIR_NONE;
}

static int open_dir(int at, const char *name, struct err *e)
{
	int fd = path_open_beneath(at, name, O_RDONLY | O_DIRECTORY, e);

	return fd;
}

static int make_dir(int at, const char *name, struct err *e)
{
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "loop: '%s'", name);
	return open_dir(at, name, e);
}

enum sync { SYNC_NOT, SYNC_FILE, SYNC_ALL };

static int put(int dir, const char *name, const char *text, size_t n, enum sync sync, struct err *e)
{
	_free_ char *aside = mem_fmt(".%s.new", name);
	_close_ int fd =
		openat(dir, aside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text, n);

	if (r == 0 && ((sync >= SYNC_FILE && fsync(fd) < 0) ||
		       renameat(dir, aside, dir, name) < 0 || (sync == SYNC_ALL && fsync(dir) < 0)))
		r = -errno;
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "loop: '%s': %s", name, strerror(-r)) : 0;
}

int loopdir_put(int dir, const char *name, const char *text, size_t n, struct err *e)
{
	return put(dir, name, text, n, SYNC_ALL, e);
}

int loopdir_note(int dir, const char *name, const char *text, size_t n, bool is_kept, struct err *e)
{
	return put(dir, name, text, n, is_kept ? SYNC_FILE : SYNC_NOT, e);
}

int loopdir_get(int dir, const char *name, struct buf *out, struct err *e)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(e, "loop: '%s'", name);
	return io_read_fd(fd, out, e);
}

static int open_loops(const char *state_dir, const char *name, bool is_made, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, name);
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? err_set(e, ERR_NOTFOUND, ENOENT,
						 "there is no sandbox '%.64s'", name)
				       : err_sys(e, "'%s'", path);
	return is_made ? make_dir(dir, LOOPS, e)
		       : path_openat2(dir, LOOPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

static uint64_t newest(int loops)
{
	int copy = openat(loops, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	uint64_t last = 0;

	for (struct dirent *en; d && (en = readdir(d));) {
		struct err e = ERR_INIT;
		uint64_t n;

		if (num_parse(en->d_name, 1, NUMBER_MAX, &n, &e) == 0 && n > last)
			last = n;
	}
	if (d)
		(void)closedir(d);
	return last;
}

int loopdir_open(const char *state_dir, const char *name, struct loopdir *ret, struct err *e)
{
	_close_ int loops = open_loops(state_dir, name, false, e);
	uint64_t last = loops < 0 ? 0 : newest(loops);
	_free_ char *number = mem_fmt("%llu", (unsigned long long)last);
	int fd;

	if (loops < 0 && loops != -ENOENT)
		return loops;
	if (last == 0)
		return e->kind == ERR_NOTFOUND && e->num == ENOENT
			       ? -ENOENT
			       : err_set(e, ERR_NOTFOUND, ENOENT, "the sandbox '%.64s' has no loop",
					 name);
	fd = open_dir(loops, number, e);
	if (fd < 0)
		return fd;
	*ret = (struct loopdir){ .fd = fd, .lock = FD_NONE, .number = last };
	return 0;
}

int loopdir_open_old(const char *state_dir, const char *name, uint64_t number, struct loopdir *ret,
		     struct err *e)
{
	_close_ int loops = open_loops(state_dir, name, false, e);
	_free_ char *text = mem_fmt("%llu", (unsigned long long)number);
	int fd = loops < 0 ? loops
			   : path_openat2(loops, text, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	*ret = (struct loopdir){ .fd = fd, .lock = FD_NONE, .number = number };
	return 0;
}

static int write_def(int dir, const struct loop_def *d, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(2 * LOOPDIR_TEXT_MAX);

	loop_def_print(d, &text);
	return text.is_over ? err_set(e, ERR_USAGE, E2BIG, "the prompt is too long")
			    : loopdir_put(dir, "loop.json", text.p, text.n, e);
}

int loopdir_write_def(const struct loopdir *l, const struct loop_def *d, struct err *e)
{
	return write_def(l->fd, d, e);
}

int loopdir_create(const char *state_dir, const char *name, const struct loop_def *d,
		   struct loopdir *ret, struct err *e)
{
	_close_ int loops = open_loops(state_dir, name, true, e), fd = FD_NONE;
	_free_ char *number = NULL;
	uint64_t next;
	int r;

	if (loops < 0)
		return loops;
	next = newest(loops) + 1;
	number = mem_fmt("%llu", (unsigned long long)next);
	fd = make_dir(loops, number, e);
	if (fd < 0)
		return fd;
	if ((mkdirat(fd, "runs", 0700) < 0 || mkdirat(fd, "hints", 0700) < 0) && errno != EEXIST)
		return err_sys(e, "loop");
	r = write_def(fd, d, e);
	if (r < 0)
		return r;
	(void)fsync(loops);
	*ret = (struct loopdir){ .fd = take_fd(fd), .lock = FD_NONE, .number = next };
	return 0;
}

/* A lock of the process, not of the descriptor: what it forks does not hold it on when it is killed, and asking takes none. */
int loopdir_lock(struct loopdir *l, struct err *e)
{
	_close_ int fd = openat(l->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "loop: lock");
	if (fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET }) < 0)
		return err_set(e, ERR_CONFLICT, EBUSY, "the loop is running already");
	l->lock = take_fd(fd);
	return 0;
}

static struct flock ask_lock(const struct loopdir *l)
{
	_close_ int fd = openat(l->fd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct flock held = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fd < 0 || fcntl(fd, F_GETLK, &held) < 0)
		held.l_type = F_UNLCK;
	return held;
}

pid_t loopdir_holder(const struct loopdir *l)
{
	struct flock held = ask_lock(l);

	return held.l_type != F_UNLCK ? held.l_pid : 0;
}

/* The pid is 0 where the holder is a process of another pid namespace. */
bool loopdir_is_locked(const struct loopdir *l)
{
	return ask_lock(l).l_type != F_UNLCK;
}

int loopdir_def(const struct loopdir *l, struct loop_def *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	int r = loopdir_get(l->fd, "loop.json", &text, e);

	/* Killed between making the folder and writing the file. */
	if (r == -ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT, "the loop was never begun; start it anew");
	return r < 0 ? r : loop_def_parse(buf_cstr(&text), text.n, ret, e);
}

/* ---- tries ---- */

static void run_path(uint64_t number, char *out, size_t size)
{
	(void)snprintf(out, size, "runs/%04llu", (unsigned long long)number);
}

int loopdir_run(const struct loopdir *l, uint64_t number, struct err *e)
{
	char path[40];

	run_path(number, path, sizeof(path));
	return make_dir(l->fd, path, e);
}

static int get_of_run(const struct loopdir *l, uint64_t number, const char *name, struct buf *out,
		      struct err *e)
{
	char path[40];

	run_path(number, path, sizeof(path));
	_close_ int dir = path_openat2(l->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	return dir < 0 ? dir : loopdir_get(dir, name, out, e);
}

static int put_of_run(const struct loopdir *l, uint64_t number, const char *name,
		      const struct buf *text, struct err *e)
{
	_close_ int dir = loopdir_run(l, number, e);

	return dir < 0 ? dir : loopdir_put(dir, name, text->p, text->n, e);
}

int loopdir_begin(const struct loopdir *l, uint64_t number, struct loop_begin *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	int r = get_of_run(l, number, "begin.json", &text, e);

	return r < 0 ? r : loop_begin_parse(buf_cstr(&text), text.n, ret, e);
}

int loopdir_record(const struct loopdir *l, uint64_t number, struct loop_record *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	int r = get_of_run(l, number, "record.json", &text, e);

	if (r == 0)
		r = loop_record_parse(buf_cstr(&text), text.n, ret, e);
	if (r == 0)
		ret->number = number;
	return r;
}

int loopdir_write_begin(const struct loopdir *l, uint64_t number, const struct loop_begin *b,
			struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);

	loop_begin_print(b, &text);
	return put_of_run(l, number, "begin.json", &text, e);
}

int loopdir_write_record(const struct loopdir *l, const struct loop_record *r, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);

	loop_record_print(r, &text);
	return put_of_run(l, r->number, "record.json", &text, e);
}

int loopdir_sum(const struct loopdir *l, struct loop_sum *ret, struct err *e)
{
	struct loop_sum s = { 0 };
	int r = 0;

	for (uint64_t n = 1; n <= NUMBER_MAX; n++) {
		_cleanup_(loop_record_done) struct loop_record rec = { 0 };

		r = loopdir_record(l, n, &rec, e);
		if (r < 0)
			break;
		loop_fold(&s, &rec.result);
	}
	*ret = s;
	return r == -ENOENT ? 0 : r;
}

/* ---- the end, and being asked for it ---- */

int loopdir_write_end(const struct loopdir *l, enum loop_stop why, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(KIB);

	buf_printf(&text, "{\"reason\":\"%s\",\"ended\":%llu}\n", loop_stop_name(why),
		   (unsigned long long)time(NULL));
	return loopdir_put(l->fd, "end.json", text.p, text.n, e);
}

enum loop_stop loopdir_end(const struct loopdir *l)
{
	_cleanup_(buf_done) struct buf text = BUF(KIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	const struct json *v;

	if (loopdir_get(l->fd, "end.json", &text, &e) < 0 ||
	    json_parse(buf_cstr(&text), text.n, &doc, &e) < 0)
		return LOOP_GOES_ON;
	v = json_get(doc.root, "reason");
	for (enum loop_stop s = 0; v && v->type == JSON_STRING && s < LOOP_STOP_COUNT_; s++)
		if (str_eq(v->text, loop_stop_name(s)))
			return s;
	return LOOP_GOES_ON;
}

bool loopdir_is_interrupted(const struct loopdir *l)
{
	return !loopdir_is_locked(l) && loop_stop_is_interruption(loopdir_end(l)) &&
	       faccessat(l->fd, "loop.json", F_OK, 0) == 0;
}

int loopdir_ask_stop(const struct loopdir *l, struct err *e)
{
	return loopdir_put(l->fd, "stop", "", 0, e);
}

bool loopdir_is_asked(const struct loopdir *l)
{
	return faccessat(l->fd, "stop", F_OK, 0) == 0;
}

void loopdir_forget_stop(const struct loopdir *l)
{
	(void)unlinkat(l->fd, "stop", 0);
	(void)unlinkat(l->fd, "end.json", 0);
}

/* ---- hints ---- */

int loopdir_add_hint(const struct loopdir *l, const char *text, struct err *e)
{
	_close_ int dir = make_dir(l->fd, "hints", e);
	struct timespec now;
	char name[64];

	if (dir < 0)
		return dir;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(name, sizeof(name), "%012llu.%09ld-%d", (unsigned long long)now.tv_sec,
		       now.tv_nsec, (int)getpid());
	return loopdir_put(dir, name, text, strlen(text), e);
}

static int cmp_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int loopdir_hints(const struct loopdir *l, char ***ret, struct err *e)
{
	int fd = make_dir(l->fd, "hints", e);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0, cap = 0;
	char **v = NULL;

	if (d == NULL) {
		fd_close(fd);
		return fd < 0 ? fd : err_sys(e, "loop: hints");
	}
	for (struct dirent *en; (en = readdir(d));) {
		if (en->d_name[0] == '.')
			continue;
		vec_reserve(v, n, cap);
		v[n++] = mem_str(en->d_name);
	}
	(void)closedir(d);
	vec_reserve(v, n, cap);
	v[n] = NULL;
	if (n > 1)
		qsort(v, n, sizeof(*v), cmp_names);
	*ret = v;
	return 0;
}

int loopdir_read_hint(const struct loopdir *l, const char *name, struct buf *out, struct err *e)
{
	_close_ int dir = make_dir(l->fd, "hints", e);

	return dir < 0 ? dir : loopdir_get(dir, name, out, e);
}

void loopdir_drop_hints(const struct loopdir *l, char *const *names)
{
	struct err e = ERR_INIT;
	_close_ int dir = make_dir(l->fd, "hints", &e);

	for (; dir >= 0 && names && *names; names++)
		(void)unlinkat(
			dir, *names,
			0); /* one that stays is taken again, which says it twice and no worse */
}
