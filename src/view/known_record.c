/* SPDX-License-Identifier: Apache-2.0 */
/* view/known_record.c - what was known when the keeper died
 *
 * A keeper that is killed between a replacement and its mending leaves what was planted. So what is known lies in a file
 * beside the other state, which nobody inside can reach; it goes with an orderly end. The next start in that workspace
 * finds it, holds the files against it as the keeper would have, and removes it. A file that is still the same (by its
 * number) is left alone: the host may have written to it since, and nobody else can have.
 *
 * Hidden files are not in it: it would be a copy of secrets.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/base64.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "view/known_own.h"
#include "view/walk.h"

#define RECORD_MAX (6 * MIB)
#define RECORD_TEXTS (2 * MIB) /* of content; what is beyond is not written down */

static void put_bytes(struct buf *b, const char *key, const char *p, size_t n)
{
	buf_printf(b, ",\"%s\":\"", key);
	base64_put(b, (struct str){ .p = p, .n = n });
	buf_putc(b, '"');
}

static void put_one(struct buf *b, const struct known_one *o, size_t *left)
{
	bool is_dir = known_is_dir(o);

	if (o->kind != HIT_PROTECT || o->is_gone ||
	    (!is_dir && (!o->has_text || o->text.n > *left)))
		return;
	*left -= is_dir ? 0 : o->text.n;
	buf_printf(b, "%s{\"ino\":%llu", b->p[b->n - 1] == '[' ? "" : ",",
		   (unsigned long long)o->ino);
	put_bytes(b, "rel", o->rel, strlen(o->rel));
	if (!is_dir) {
		buf_printf(b, ",\"mode\":%u,\"uid\":%u,\"gid\":%u", o->like.st_mode & 0777,
			   o->like.st_uid, o->like.st_gid);
		put_bytes(b, "text", buf_cstr(&o->text), o->text.n);
	}
	buf_putc(b, '}');
}

static int write_record(const char *temp, const char *path, const struct buf *b)
{
	_close_ int fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = io_write_all(fd, b->p, b->n);
	if (r == 0 && rename(temp, path) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(fd);
}

int known_record(struct known *k, const char *path, const char *workspace)
{
	_cleanup_(buf_done) struct buf b = BUF(RECORD_MAX);
	_free_ char *dir = path_parent(path), *temp = mem_fmt("%s/.%s", dir, path_name(path));
	size_t left = RECORD_TEXTS;
	int fd;

	if (!k->is_dirty)
		return 0;
	buf_puts(&b, "{\"version\":1");
	put_bytes(&b, "workspace", workspace, strlen(workspace));
	buf_puts(&b, ",\"names\":[");
	for (size_t i = 0; i < k->n; i++)
		put_one(&b, &k->v[i], &left);
	buf_puts(&b, "]}\n");
	if (b.is_over)
		return -E2BIG;
	fd = write_record(temp, path, &b);
	if (fd == -ENOENT && path_make(dir, 0700) == 0)
		fd = write_record(temp, path, &b);
	if (fd < 0)
		return fd;
	fd_close(k->record);
	k->record = fd;
	k->is_dirty = false;
	return 0;
}

void known_unrecord(struct known *k, const char *path)
{
	if (k->record >= 0)
		(void)unlink(path);
	fd_close(k->record);
	k->record = FD_NONE;
}

/* ---- reading ---- */

static bool get_bytes(const struct json *o, const char *key, struct buf *ret)
{
	const struct json *v = json_get(o, key);

	return v && v->type == JSON_STRING &&
	       base64_read((struct str){ .p = v->text, .n = v->n }, ret) && !ret->is_over;
}

static uint64_t get_number(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	uint64_t n = 0;

	return v && json_u64(v, &n) ? n : 0;
}

static void read_one(struct known *k, const struct json *v, dev_t dev)
{
	_cleanup_(buf_done) struct buf rel = BUF(SCAN_REL_MAX + 1), text = BUF(RECORD_TEXTS);
	struct known_one *o;
	struct stat like = { 0 };

	if (!get_bytes(v, "rel", &rel) || rel.n == 0 || memchr(rel.p, '\0', rel.n))
		return;
	vec_reserve(k->v, k->n, k->cap);
	o = &k->v[k->n++];
	*o = (struct known_one){ .rel = mem_strn(rel.p, rel.n),
				 .kind = HIT_PROTECT,
				 .fd = FD_NONE,
				 .was = FD_NONE,
				 .wd = -1,
				 .dev = dev,
				 .ino = get_number(v, "ino") };
	like.st_mode = S_IFREG | (get_number(v, "mode") & 0777);
	like.st_uid = (uid_t)get_number(v, "uid");
	like.st_gid = (gid_t)get_number(v, "gid");
	if (get_bytes(v, "text", &text))
		known_set_text(k, o, &text, &like);
}

static bool is_of(const struct json *root, const char *workspace)
{
	_cleanup_(buf_done) struct buf ws = BUF(64 * KIB);

	return get_number(root, "version") == 1 && get_bytes(root, "workspace", &ws) &&
	       str_eq(buf_cstr(&ws), workspace);
}

/* 1: it was of this workspace, and is dealt with. */
static int recover_one(int fd, const char *workspace, int ws_fd, struct sweep *out, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(RECORD_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *names;
	struct scan none = { 0 };
	struct known *k;
	struct stat st;
	int r;

	/* One that cannot be read is of a machine that died while it was written. */
	if (io_read_fd(fd, &b, e) < 0 || json_parse_foreign(buf_cstr(&b), b.n, &doc, e) < 0)
		return 1;
	if (!is_of(doc.root, workspace))
		return 0;
	if (fstat(ws_fd, &st) < 0)
		return err_sys(e, "look at the workspace");
	k = known_new(ws_fd, &none);
	names = json_get(doc.root, "names");
	for (const struct json *v = names ? names->first : NULL; v; v = v->next)
		read_one(k, v, st.st_dev);
	r = known_settle(k, "", out, e);
	known_free(k);
	return r < 0 ? r : 1;
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int known_recover(const char *dir, const char *workspace, int ws_fd, struct sweep *out,
		  struct err *e)
{
	_cleanup_(close_dir) DIR *d = opendir(dir);
	const struct dirent *de;
	int count = 0;

	while (d && (de = readdir(d)) != NULL) {
		_close_ int fd = FD_NONE;
		int r;

		if (de->d_name[0] == '.')
			continue;
		fd = openat(dirfd(d), de->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue; /* its keeper lives */
		r = recover_one(fd, workspace, ws_fd, out, e);
		if (r < 0)
			return r;
		if (r > 0)
			(void)unlinkat(dirfd(d), de->d_name, 0);
		count += r;
	}
	return count;
}
