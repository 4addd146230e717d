/* SPDX-License-Identifier: Apache-2.0 */
/* core/place.c - see place.h */
#include <fcntl.h>
#include <linux/stat.h> /* not every libc knows statx() */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/place.h"

#define FILE_NAME "places.json"
#define NEW_NAME ".new-places"
#define PLACES_VERSION 1
#define MAX_BYTES (4 * MIB)

static void place_done(struct place *p)
{
	free(p->said);
	free(p->real);
}

void places_done(struct places *p)
{
	for (size_t i = 0; i < p->n; i++)
		place_done(&p->v[i]);
	free(p->v);
	*p = (struct places){ 0 };
}

const struct place *places_find(const struct places *p, const char *said)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->v[i].said, said))
			return &p->v[i];
	return NULL;
}

static void put(struct places *p, const char *said, const char *real, const struct place *what)
{
	vec_reserve(p->v, p->n, p->cap);
	p->v[p->n] = *what;
	p->v[p->n].said = mem_str(said);
	p->v[p->n].real = mem_str(real);
	p->n++;
}

int places_add(struct places *p, const char *said, const char *real, int fd, struct err *e)
{
	struct place now = { 0 };
	struct statx st;

	if (syscall(SYS_statx, fd >= 0 ? fd : AT_FDCWD, fd >= 0 ? "" : real,
		    fd >= 0 ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
		    &st) < 0)
		return err_sys(e, "'%s'", real);
	now.is_dir = S_ISDIR(st.stx_mode);
	if ((!now.is_dir && !S_ISREG(st.stx_mode)) || places_find(p, said))
		return 0;
	now.dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	now.ino = st.stx_ino;
	now.uid = st.stx_uid;
	if (st.stx_mask & STATX_BTIME && st.stx_btime.tv_sec > 0)
		now.born = (uint64_t)st.stx_btime.tv_sec * NS_PER_SEC + st.stx_btime.tv_nsec;
	put(p, said, real, &now);
	return 0;
}

/* ---- comparing: pure ---- */

char *place_changed(const struct place *was, const struct place *now)
{
	const char *kind = was->is_dir ? "directory" : "file";

	if (!str_eq(was->real, now->real))
		return mem_fmt("a link leads to '%.100s' now, before it was '%.100s'", now->real,
			       was->real);
	if (was->is_dir != now->is_dir)
		return mem_fmt("it was a %s and is a %s now", kind,
			       now->is_dir ? "directory" : "file");
	if (was->uid != now->uid)
		return mem_fmt("it belonged to uid %u and belongs to uid %u now", was->uid,
			       now->uid);
	if (!was->is_dir)
		return NULL;
	if (was->ino != now->ino || was->born != now->born ||
	    (was->born == 0 && was->dev != now->dev))
		return mem_fmt("another directory lies there (inode %llu of device %llu:%llu, "
			       "before "
			       "%llu of %llu:%llu)",
			       (unsigned long long)now->ino, (unsigned long long)(now->dev >> 32),
			       (unsigned long long)(now->dev & UINT32_MAX),
			       (unsigned long long)was->ino, (unsigned long long)(was->dev >> 32),
			       (unsigned long long)(was->dev & UINT32_MAX));
	return NULL;
}

/* A definition holds its workspace without links. So even where nothing is on record a link on the way is new. */
static char *changed_since(const struct places *was, const struct place *now, const char *workspace)
{
	const struct place *old = places_find(was, now->said);
	struct place made = *now;

	made.real = now->said;
	if (old == NULL && (workspace == NULL || !str_eq(now->said, workspace)))
		return NULL;
	return place_changed(old ? old : &made, now);
}

int places_check(const struct places *was, const struct places *now, const struct place_of *of,
		 struct err *e)
{
	for (size_t i = 0; i < now->n; i++) {
		_free_ char *what = changed_since(was, &now->v[i], of->workspace);

		if (what && !sabotaged("places"))
			return err_set(e, ERR_DENIED, ESTALE,
				       "'%.90s' is not what the sandbox '%.64s' was given: %.230s. "
				       "If you moved or replaced it yourself, 'vitrine run %.64s "
				       "--accept-moved' accepts it",
				       now->v[i].said, of->sandbox, what, of->sandbox);
	}
	return 0;
}

/* ---- text ---- */

void places_print(const struct places *p, struct buf *out)
{
	buf_printf(out, "{\n  \"version\": %d,\n  \"places\": [", PLACES_VERSION);
	for (size_t i = 0; i < p->n; i++) {
		const struct place *v = &p->v[i];

		buf_puts(out, i ? ",\n    { \"path\": " : "\n    { \"path\": ");
		buf_json(out, v->said);
		buf_puts(out, ", \"real\": ");
		buf_json(out, v->real);
		buf_printf(out,
			   ", \"device\": %llu, \"inode\": %llu, \"born\": %llu, \"owner\": %u, "
			   "\"directory\": %s }",
			   (unsigned long long)v->dev, (unsigned long long)v->ino,
			   (unsigned long long)v->born, v->uid, v->is_dir ? "true" : "false");
	}
	buf_puts(out, "\n  ]\n}\n");
}

static int take_place(const struct json *v, struct places *p, struct err *e)
{
	const struct json *said = json_get(v, "path"), *real = json_get(v, "real");
	const struct json *dir = json_get(v, "directory");
	struct place x = { 0 };
	uint64_t uid = 0;

	if (v->type != JSON_OBJECT || said == NULL || said->type != JSON_STRING || real == NULL ||
	    real->type != JSON_STRING || dir == NULL || dir->type != JSON_BOOL ||
	    !json_u64(json_get(v, "device"), &x.dev) || !json_u64(json_get(v, "inode"), &x.ino) ||
	    !json_u64(json_get(v, "born"), &x.born) || !json_u64(json_get(v, "owner"), &uid) ||
	    uid > UINT32_MAX)
		return err_set(e, ERR_CONFIG, EINVAL, "a place is not what it should be");
	x.uid = (uint32_t)uid;
	x.is_dir = dir->is_true;
	put(p, said->text, real->text, &x);
	return 0;
}

int places_parse(const char *text, size_t n, struct places *ret, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_cleanup_(places_done) struct places p = { 0 };
	int r = json_parse(text, n, &doc, e);
	const struct json *all = r < 0 ? NULL : json_get(doc.root, "places");
	uint64_t version = 0;

	if (r < 0)
		return r;
	if (!json_u64(json_get(doc.root, "version"), &version) || version != PLACES_VERSION ||
	    all == NULL || all->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "not a list of places that this version of Vitrine knows");
	for (const struct json *v = all->first; r == 0 && v; v = v->next)
		r = take_place(v, &p, e);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct places){ 0 };
	return 0;
}

/* ---- file ---- */

static int open_folder(const char *state_dir, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(e, "'%s'", path);
	return fd;
}

int places_read(const char *state_dir, const char *name, struct places *ret, struct err *e)
{
	_close_ int dir = open_folder(state_dir, name, e), fd = FD_NONE;
	_cleanup_(buf_done) struct buf b = BUF(MAX_BYTES);
	int r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, FILE_NAME " of '%s'", name);
	r = io_read_fd(fd, &b, e);
	if (r == 0)
		r = places_parse(buf_cstr(&b), b.n, ret, e);
	return r < 0 ? err_wrap(e, r, FILE_NAME " of '%s'", name) : 0;
}

static bool is_equal(const struct place *a, const struct place *b)
{
	return a && str_eq(a->real, b->real) && a->dev == b->dev && a->ino == b->ino &&
	       a->born == b->born && a->uid == b->uid && a->is_dir == b->is_dir;
}

static int write_file(int dir, const struct buf *text, struct err *e)
{
	_close_ int fd = FD_NONE;
	char tmp[48];

	(void)snprintf(tmp, sizeof(tmp), NEW_NAME "-%d", (int)getpid());
	(void)unlinkat(dir, tmp, 0); /* of a process that died with our number */
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && !text->is_over && io_write_all(fd, text->p, text->n) == 0 &&
	    fsync(fd) == 0 && renameat(dir, tmp, dir, FILE_NAME) == 0)
		return 0;
	if (errno == ENOENT) /* the folder is no longer there to write in */
		return err_set(e, ERR_NOTFOUND, ENOENT, "the sandbox was just removed");
	(void)err_sys(e, "write " FILE_NAME);
	(void)unlinkat(dir, tmp, 0); /* it may not be there */
	return -e->num;
}

int places_keep(const char *state_dir, const char *name, const struct places *was,
		const struct places *now, struct err *e)
{
	_cleanup_(places_done) struct places all = { 0 };
	_cleanup_(buf_done) struct buf text = BUF(MAX_BYTES);
	_close_ int dir = FD_NONE;
	bool is_known = true;

	for (size_t i = 0; i < now->n; i++) {
		is_known &= is_equal(places_find(was, now->v[i].said), &now->v[i]);
		put(&all, now->v[i].said, now->v[i].real, &now->v[i]);
	}
	if (is_known)
		return 0;
	for (size_t i = 0; i < was->n; i++)
		if (places_find(now, was->v[i].said) == NULL)
			put(&all, was->v[i].said, was->v[i].real, &was->v[i]);
	dir = open_folder(state_dir, name, e);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir; /* removed meanwhile: nothing will start */
	places_print(&all, &text);
	return write_file(dir, &text, e);
}

int places_check_workspace(const char *state_dir, const char *name, const char *workspace,
			   struct err *e)
{
	_cleanup_(places_done) struct places was = { 0 }, now = { 0 };
	_free_ char *real = NULL;
	int r = path_real(workspace, &real, e);

	if (r == 0)
		r = places_read(state_dir, name, &was, e);
	if (r == 0)
		r = places_add(&now, workspace, real, FD_NONE, e);
	return r < 0 ? r : places_check(&was, &now, &(struct place_of){ name, workspace }, e);
}
