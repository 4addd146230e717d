/* SPDX-License-Identifier: Apache-2.0 */
/* dir/config.c - git configurations: what is shown of one, and how one is replaced
 *
 * The inside never gets a file of its own under the name of a configuration. What it wrote into the lock file is read
 * once; those bytes are judged and written to a new file of the server's, under a name that no request can name; that
 * file takes the configuration's place, and the lock file goes. A descriptor or mapping that the inside kept is of a
 * file without a name. The lock file lies in the host's directory, so it is the lock between host and inside.
 */
#include <fcntl.h>
#include <sys/random.h>
#include <time.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "dir/serve.h"
#include "view/gitcfg_redact.h"

#define CONFIG_MAX (1 * MIB)
/* File times move in steps of the kernel's clock: 10 ms at most. */
#define FRESH_NS (20 * NS_PER_MS)

bool dir_is_fresh(const struct stat *st)
{
	struct timespec now;
	int64_t age;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - st->st_ctim.tv_sec) * (int64_t)NS_PER_SEC +
	      (now.tv_nsec - st->st_ctim.tv_nsec);
	return age < (int64_t)FRESH_NS;
}

/* ---- shown ---- */

static int read_config(int dir, const char *name, struct buf *ret, struct stat *st)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = io_read_regular(fd, ret);
	if (r == 0 && fstat(fd, st) < 0)
		r = -errno;
	return r;
}

static bool is_as_shown(const struct shown *s, const struct stat *st)
{
	return s->text && s->dev == st->st_dev && s->ino == st->st_ino && s->size == st->st_size &&
	       memcmp(&s->mtim, &st->st_mtim, sizeof(s->mtim)) == 0 &&
	       memcmp(&s->ctim, &st->st_ctim, sizeof(s->ctim)) == 0;
}

const struct shown *dir_show(struct dir *d, int dir, const char *name, const struct stat *st)
{
	_cleanup_(buf_done) struct buf host = BUF(CONFIG_MAX), text = BUF(2 * CONFIG_MAX);
	struct shown *s;
	struct stat now = { 0 };

	for (size_t i = 0; i < SHOWN_MAX && !dir_is_fresh(st); i++)
		if (is_as_shown(&d->shown[i], st))
			return d->shown[i].status < 0 ? NULL : &d->shown[i];
	if (read_config(dir, name, &host, &now) < 0)
		return NULL;
	s = &d->shown[d->next_shown++ % SHOWN_MAX];
	free(s->text);
	*s = (struct shown){ .dev = now.st_dev,
			     .ino = now.st_ino,
			     .size = now.st_size,
			     .mtim = now.st_mtim,
			     .ctim = now.st_ctim };
	s->status = gitcfg_redact(buf_cstr(&host), host.n, &text);
	if (sabotaged("redact")) {
		s->status = 0;
		text.n = 0;
		buf_add(&text, host.p, host.n);
	}
	s->text = mem_strn(buf_cstr(&text), text.n);
	s->n = text.n;
	return s->status < 0 ? NULL : s;
}

/* ---- lock files ---- */

static struct own_lock *find_own(const struct dir *d, const struct stat *st)
{
	for (size_t i = 0; i < OWN_LOCKS_MAX; i++)
		if (d->locks[i].fd >= 0 && d->locks[i].dev == st->st_dev &&
		    d->locks[i].ino == st->st_ino)
			return (struct own_lock *)(uintptr_t)&d->locks[i];
	return NULL;
}

bool dir_is_own(const struct dir *d, const struct stat *st)
{
	return find_own(d, st) != NULL;
}

int dir_own(struct dir *d, int take_fd)
{
	_close_ int fd = take_fd;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < OWN_LOCKS_MAX; i++)
		if (d->locks[i].fd < 0) {
			d->locks[i] = (struct own_lock){ .fd = take_fd(fd),
							 .dev = st.st_dev,
							 .ino = st.st_ino };
			return 0;
		}
	return -EMFILE;
}

void dir_disown(struct dir *d, const struct stat *st)
{
	struct own_lock *l = find_own(d, st);

	if (l) {
		fd_close(l->fd);
		l->fd = FD_NONE;
	}
}

/* ---- replaced ---- */

static int temp_name(char *ret, size_t size)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	(void)snprintf(ret, size, DIR_OWN_NAME "%016llx%016llx", (unsigned long long)random[0],
		       (unsigned long long)random[1]);
	return 0;
}

static int write_new(int dir, const char *temp, const struct buf *text, mode_t mode)
{
	_close_ int fd =
		openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, buf_cstr(text), text->n);
	if (r == 0 && fchmod(fd, mode & 0666) < 0)
		r = -errno;
	return r;
}

static int put_new(int dir, const char *name, const struct buf *text, mode_t mode)
{
	char temp[64];
	int r = temp_name(temp, sizeof(temp));

	if (r == 0)
		r = write_new(dir, temp, text, mode);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0 && r != -EEXIST)
		(void)unlinkat(dir, temp, 0); /* it may not have been made */
	return r;
}

int dir_replace(struct dir *d, int dir, const char *lock, const char *name, const char *rel)
{
	_cleanup_(buf_done) struct buf host = BUF(CONFIG_MAX), now = BUF(CONFIG_MAX),
				       text = BUF(2 * CONFIG_MAX);
	struct stat lock_st = { 0 }, st = { .st_mode = 0644 };
	struct err e = ERR_INIT;
	int r = read_config(dir, lock, &now, &lock_st), had;

	if (r < 0)
		return r;
	if (!dir_is_own(d, &lock_st) || lock_st.st_nlink != 1)
		return -EPERM;
	had = read_config(dir, name, &host, &st);
	if (had < 0 && had != -ENOENT)
		return -EPERM;
	r = dir_judge(&d->rules, rel,
		      had < 0 ? NULL : &(struct dir_text){ buf_cstr(&host), host.n },
		      &(struct dir_text){ buf_cstr(&now), now.n }, &text, &e);
	if (r < 0) {
		(void)snprintf(d->refusal, sizeof(d->refusal), "%.399s", e.msg);
		return -EPERM;
	}
	r = put_new(dir, name, &text, had < 0 ? lock_st.st_mode : st.st_mode);
	if (r < 0)
		return r;
	(void)unlinkat(dir, lock, 0); /* it was there a moment ago */
	dir_disown(d, &lock_st);
	return 0;
}
