/* SPDX-License-Identifier: Apache-2.0 */
/* secret/store.c - see secret.h
 *
 * STATE/secrets/ is 0700 and its files 0600, replaced as a whole. Where a session bus and secret-tool are there the
 * value goes into the desktop's keyring, and is read back once: a keyring that does not give back is none.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "base/sha256.h"
#include "secret/secret.h"

/* Memory of its own: locked where the limit allows, in no dump, and not among what is shared with other processes. */
struct buf secret_buf_of(size_t max)
{
	struct buf b = BUF(max);

	b.cap = b.max + 1;
	b.p = mmap(NULL, b.cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bug_on(b.p == MAP_FAILED);
	(void)mlock(b.p, b.cap);
	(void)madvise(b.p, b.cap, MADV_DONTDUMP);
	return b;
}

struct buf secret_buf(void)
{
	return secret_buf_of(SECRET_VALUE_MAX);
}

void secret_wipe(struct buf *b)
{
	if (b->p) {
		explicit_bzero(b->p, b->cap);
		(void)munmap(b->p, b->cap);
	}
	*b = (struct buf){ 0 };
}

/* The folder, made at need. */
static int open_dir(const char *state_dir, struct err *e)
{
	_free_ char *path = mem_fmt("%s/secrets", state_dir);
	struct stat st;
	int r = path_make(path, 0700), fd;

	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s'", path);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, "open '%s'", path);
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077)) {
		fd_close(fd);
		return err_set(e, ERR_DENIED, EPERM,
			       "'%s' must belong to you alone (chmod 700 would do)", path);
	}
	return fd;
}

static int replace_file(int dir, const char *name, const char *p, size_t n, struct err *e)
{
	_free_ char *fresh = mem_fmt(".%s.new", name);
	_close_ int fd = FD_NONE;
	int r;

	(void)unlinkat(dir, fresh, 0); /* of one that was interrupted */
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, "create '%s'", name);
	r = io_write_all(fd, p, n);
	if (r < 0 || fsync(fd) < 0 || renameat(dir, fresh, dir, name) < 0) {
		errno = r < 0 ? -r : errno;
		return err_sys(e, "write '%s'", name);
	}
	return 0;
}

static int read_file(int dir, const char *name, struct buf *b, struct err *e)
{
	_close_ int fd = path_open_beneath(dir, name, O_RDONLY | O_CLOEXEC, e);

	return fd < 0 ? fd : io_read_fd(fd, b, e);
}

/* ---- the keyring */

static bool has_keyring(void)
{
	const char *bus = getenv("DBUS_SESSION_BUS_ADDRESS");

	return bus && *bus && access("/usr/bin/secret-tool", X_OK) == 0;
}

static int keyring(const char *verb, const char *name, struct str in, struct buf *out,
		   struct err *e)
{
	_free_ char *label = mem_fmt("--label=Vitrine: %s", name);
	const char *const store[] = {
		"/usr/bin/secret-tool", "store", label, "application", "vitrine", "name", name, NULL
	};
	const char *const other[] = {
		"/usr/bin/secret-tool", verb, "application", "vitrine", "name", name, NULL
	};

	return secret_run(str_eq(verb, "store") ? store : other, in, out, e);
}

static bool put_into_keyring(const char *name, struct str value)
{
	_cleanup_(secret_wipe) struct buf said = secret_buf(), back = secret_buf();
	struct err e = ERR_INIT;

	return has_keyring() && keyring("store", name, value, &said, &e) >= 0 &&
	       keyring("lookup", name, STR(""), &back, &e) >= 0 && back.n == value.n &&
	       memcmp(back.p, value.p, value.n) == 0;
}

/* ---- save, load, remove */

int secret_save(const char *state_dir, struct secret *s, struct str value, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(64 * KIB);
	_free_ char *meta = mem_fmt("%s.json", s->name);
	_free_ char *file = mem_fmt("%s.value", s->name);
	_close_ int dir = open_dir(state_dir, e);
	int r = dir < 0 ? dir : 0;

	if (r < 0)
		return r;
	secret_take_shape(s, value);
	if (s->source <= SECRET_KEYRING) {
		s->source = put_into_keyring(s->name, value) ? SECRET_KEYRING : SECRET_STORED;
		r = s->source == SECRET_STORED ? replace_file(dir, file, value.p, value.n, e) : 0;
	}
	if (r >= 0 && s->source != SECRET_STORED)
		(void)unlinkat(dir, file, 0); /* of an earlier one of that name */
	secret_write(s, &text);
	return r < 0 ? r : replace_file(dir, meta, text.p, text.n, e);
}

int secret_load(const char *state_dir, const char *name, struct secret *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(64 * KIB);
	_free_ char *meta = mem_fmt("%s.json", name);
	_close_ int dir = FD_NONE;
	int r = secret_check_name(name, e);

	if (r < 0)
		return r;
	dir = open_dir(state_dir, e);
	if (dir < 0)
		return dir;
	r = read_file(dir, meta, &text, e);
	if (r == -ENOENT) {
		struct err none = ERR_INIT;

		r = secret_login_describe(name, getenv("HOME"), state_dir, ret, &none);
		if (r != -ENOENT)
			return r < 0 ? err_set(e, none.kind, -r, "secret '%s': %s", name, none.msg)
				     : r;
	}
	if (r == -ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no secret '%s'; 'vitrine secret set %s' makes it", name,
			       name);
	if (r >= 0)
		r = secret_read(buf_cstr(&text), text.n, ret, e);
	return r < 0 ? err_wrap(e, r, "secret '%s'", name) : 0;
}

/* A login that was made inside is ours. */
static bool is_kept(const char *state_dir, const struct secret *s)
{
	_free_ char *ours = secret_login_kept(state_dir, s->name);

	return str_eq(s->from, ours);
}

int secret_remove(const char *state_dir, const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF(KIB);
	_cleanup_(secret_done) struct secret s = { 0 };
	_free_ char *meta = mem_fmt("%s.json", name);
	_free_ char *file = mem_fmt("%s.value", name);
	int r = secret_load(state_dir, name, &s, e);
	_close_ int dir = FD_NONE;

	if (r >= 0 && s.source == SECRET_LOGIN && is_kept(state_dir, &s))
		return unlink(s.from) < 0 ? err_sys(e, "remove '%s'", name) : 0;
	if (r >= 0 && s.source == SECRET_LOGIN)
		r = err_set(e, ERR_NOTFOUND, ENOENT,
			    "'%s' is the login in '%s', which is the agent's own: log out there",
			    name, s.from);
	if (r < 0)
		return r;
	dir = open_dir(state_dir, e);
	if (dir < 0)
		return dir;
	if (s.source == SECRET_KEYRING && keyring("clear", name, STR(""), &said, e) < 0)
		return -EIO;
	(void)unlinkat(dir, file, 0); /* only a stored one has it */
	return unlinkat(dir, meta, 0) < 0 ? err_sys(e, "remove '%s'", name) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int secret_names(const char *state_dir, struct secret_list *ret, struct err *e)
{
	int fd = open_dir(state_dir, e);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d == NULL) {
		fd_close(fd);
		return fd < 0 ? fd : err_sys(e, "secrets");
	}
	for (struct dirent *x; (x = readdir(d)) != NULL;) {
		_free_ char *name = mem_str(x->d_name);

		if (x->d_name[0] == '.' || !str_ends(name, ".json"))
			continue;
		name[strlen(name) - 5] = '\0';
		secret_list_add(ret, name);
	}
	(void)closedir(d);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

/* ---- values */

static int from_variable(const char *name, struct buf *ret, struct err *e)
{
	const char *v = getenv(name);

	if (v == NULL || *v == '\0')
		return err_set(e, ERR_NOTFOUND, ENOENT, "the variable %s is not set", name);
	buf_puts(ret, v);
	return 0;
}

static int from_file(const char *path, struct buf *ret, struct err *e)
{
	int r = io_read_file(path, ret, e);

	if (r >= 0 && ret->n > 0 && ret->p[ret->n - 1] == '\n')
		ret->p[--ret->n] = '\0';
	return r;
}

static int from_store(const char *state_dir, const struct secret *s, struct buf *ret, struct err *e)
{
	_free_ char *file = mem_fmt("%s.value", s->name);
	_close_ int dir = open_dir(state_dir, e);

	return dir < 0 ? dir : read_file(dir, file, ret, e);
}

static int get(const char *state_dir, const struct secret *s, struct buf *ret, struct err *e)
{
	const char *const shell[] = { "/bin/sh", "-c", s->from, NULL };

	switch (s->source) {
	case SECRET_STORED:
		return from_store(state_dir, s, ret, e);
	case SECRET_KEYRING:
		return keyring("lookup", s->name, STR(""), ret, e);
	case SECRET_FILE:
		return from_file(s->from, ret, e);
	case SECRET_VARIABLE:
		return from_variable(s->from, ret, e);
	case SECRET_COMMAND:
		return secret_run(shell, STR(""), ret, e);
	case SECRET_LOGIN:
		return secret_login_value(s, ret, e);
	case SECRET_SOURCE_COUNT_:
		break;
	}
	bug_on(true);
	return -EINVAL;
}

int secret_value(const char *state_dir, const struct secret *s, struct buf *ret, struct err *e)
{
	int r = get(state_dir, s, ret, e);

	if (r >= 0 && ret->is_over)
		r = err_set(e, ERR_CONFIG, EMSGSIZE, "over %zu bytes", SECRET_VALUE_MAX);
	for (size_t i = 0; r >= 0 && i < ret->n; i++)
		if ((unsigned char)ret->p[i] < 0x20 || ret->p[i] == 0x7f)
			r = err_set(e, ERR_CONFIG, EINVAL,
				    "its value is more than one line, or holds a control "
				    "character");
	if (r >= 0 && ret->n == 0)
		r = err_set(e, ERR_CONFIG, EINVAL, "its value is empty");
	if (r >= 0 && ret->n < SECRET_VALUE_MIN)
		r = err_set(e, ERR_CONFIG, EINVAL,
			    "its value has fewer than %d characters: it could be neither put in "
			    "nor "
			    "masked without touching other text",
			    SECRET_VALUE_MIN);
	return r < 0 ? err_wrap(e, r, "secret '%s'", s->name) : 0;
}

/* ---- seeds */

int secret_seed(const char *state_dir, const char *sandbox, uint8_t ret[SECRET_SEED], struct err *e)
{
	_cleanup_(buf_done) struct buf seed = BUF(KIB);
	_close_ int dir = open_dir(state_dir, e);
	uint8_t fresh[SECRET_SEED];
	int r = dir < 0 ? dir : read_file(dir, ".seed", &seed, e);

	if (r == -ENOENT || (r >= 0 && seed.n != SECRET_SEED)) {
		if (getrandom(fresh, sizeof(fresh), 0) != (ssize_t)sizeof(fresh))
			return err_sys(e, "getrandom");
		seed.n = 0;
		buf_add(&seed, fresh, sizeof(fresh));
		r = replace_file(dir, ".seed", seed.p, seed.n, e);
	}
	if (r < 0)
		return r;
	buf_puts(&seed, sabotaged("seed") ? "" : sandbox);
	sha256(seed.p, seed.n, ret);
	return 0;
}
