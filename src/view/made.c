/* SPDX-License-Identifier: Apache-2.0 */
/* view/made.c - see made.h
 *
 * The record is a list of hashes, one per git dir or .git file, over what identifies it: there is nothing to parse, and what
 * does not match to the last bit does not count.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "view/git.h"
#include "view/made.h"
#include "view/replica.h"

void made_done(struct made *m)
{
	free(m->v);
	*m = (struct made){ 0 };
}

static bool has(const struct made *m, const char *hex)
{
	for (size_t i = 0; i < m->n; i++)
		if (str_eq(m->v[i].hex, hex))
			return true;
	return false;
}

static void add(struct made *m, const char *hex)
{
	if (m->n >= MADE_MAX || has(m, hex))
		return;
	vec_reserve(m->v, m->n, m->cap);
	memcpy(m->v[m->n++].hex, hex, SHA256_HEX_BYTES);
}

/* ---- what identifies one ---- */

/* A file with a second name can be changed by that name, unseen by a time that is looked at here: it is nobody's. */
static int put_stat(struct buf *b, const char *name, const struct stat *st)
{
	if (!S_ISDIR(st->st_mode) && (!S_ISREG(st->st_mode) || st->st_nlink != 1))
		return -EINVAL;
	buf_add(b, name, strlen(name) + 1);
	buf_printf(b, "%o %llu", st->st_mode, (unsigned long long)st->st_ino);
	if (S_ISREG(st->st_mode))
		buf_printf(b, " %lld", (long long)st->st_size);
	buf_printf(b, " %lld.%ld %lld.%ld\n", (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		   (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	return 0;
}

static int put_part(void *arg, const char *name, enum git_what what, const struct stat *st,
		    struct err *e)
{
	(void)e;
	if (what == GIT_VIA_LINK || what == GIT_UNREADABLE)
		return -EINVAL;
	return put_stat(arg, name, st);
}

static bool end(struct buf *b, char hex[static SHA256_HEX_BYTES])
{
	if (b->is_over)
		return false;
	sha256_hex(b->p, b->n, hex);
	return true;
}

static bool of_gitdir(int fd, const char *rel, char hex[static SHA256_HEX_BYTES])
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err ignored = ERR_INIT;
	struct stat st;

	/* The workspace's own repository is the user's from the end of the session that made it: nobody removes it inside, and
	 * its configuration is what the user's tools read all day. */
	if (rel[0] == '\0' || str_eq(rel, ".git") || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	/* The directory itself by its number only: its times move with every commit. */
	buf_printf(&b, "git dir %llu ", (unsigned long long)st.st_ino);
	buf_add(&b, rel, strlen(rel) + 1);
	return git_parts(fd, put_part, &b, &ignored) == 0 && end(&b, hex);
}

static bool of_file(int dir_fd, const char *name, const char *rel,
		    char hex[static SHA256_HEX_BYTES])
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	buf_puts(&b, "file ");
	return put_stat(&b, rel, &st) == 0 && end(&b, hex);
}

bool made_has_gitdir(const struct made *m, int fd, const char *rel)
{
	char hex[SHA256_HEX_BYTES];

	return m && m->n > 0 && of_gitdir(fd, rel, hex) && (has(m, hex) || sabotaged("made"));
}

bool made_has_file(const struct made *m, int dir_fd, const char *name, const char *rel)
{
	char hex[SHA256_HEX_BYTES];

	return m && m->n > 0 && of_file(dir_fd, name, rel, hex) &&
	       (has(m, hex) || sabotaged("made"));
}

void made_add_gitdir(struct made *m, int fd, const char *rel)
{
	char hex[SHA256_HEX_BYTES];

	if (of_gitdir(fd, rel, hex))
		add(m, hex);
}

void made_add_file(struct made *m, int dir_fd, const char *name, const char *rel)
{
	char hex[SHA256_HEX_BYTES];

	if (of_file(dir_fd, name, rel, hex))
		add(m, hex);
}

/* ---- the record ---- */

static char *record_path(const char *state_dir, const char *dir)
{
	char hex[SHA256_HEX_BYTES];

	sha256_hex(dir, strlen(dir), hex);
	return mem_fmt("%s/made/%.32s", state_dir, hex);
}

void made_load(const char *state_dir, const char *dir, struct made *ret)
{
	_free_ char *path = record_path(state_dir, dir);
	_cleanup_(buf_done) struct buf b = BUF((size_t)MADE_MAX * SHA256_HEX_BYTES);
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	if (fd < 0 || io_read_fd(fd, &b, &ignored) < 0)
		return;
	for (size_t at = 0; at + SHA256_HEX_BYTES <= b.n; at += SHA256_HEX_BYTES) {
		char hex[SHA256_HEX_BYTES];

		memcpy(hex, b.p + at, SHA256_HEX_BYTES);
		if (hex[SHA256_HEX_BYTES - 1] != '\n')
			return;
		hex[SHA256_HEX_BYTES - 1] = '\0';
		add(ret, hex);
	}
}

int made_save(const char *state_dir, const char *dir, const struct made *now)
{
	_free_ char *path = record_path(state_dir, dir), *up = path_parent(path);
	_cleanup_(made_done) struct made all = { 0 }, was = { 0 };
	_cleanup_(buf_done) struct buf b = BUF((size_t)MADE_MAX * SHA256_HEX_BYTES + 1);
	const struct stat like = { .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };
	char temp[REPLICA_TEMP_MAX];
	_close_ int dir_fd = FD_NONE;
	int r;

	if (now->n == 0)
		return 0;
	/* Another sandbox may have added to it. */
	made_load(state_dir, dir, &was);
	for (size_t i = 0; i < now->n; i++)
		add(&all, now->v[i].hex);
	for (size_t i = 0; i < was.n; i++)
		add(&all, was.v[i].hex);
	for (size_t i = 0; i < all.n; i++)
		buf_printf(&b, "%s\n", all.v[i].hex);
	r = path_make(up, 0700);
	if (r == 0)
		r = dir_fd = open(up, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r < 0)
		return r == -1 ? -errno : r;
	r = replica_temp(temp);
	if (r == 0)
		r = replica_write(dir_fd, temp, buf_cstr(&b), b.n, &like);
	if (r == 0 && renameat(dir_fd, temp, dir_fd, path_name(path)) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temp, 0); /* a file of ours that nobody misses */
	return r;
}
