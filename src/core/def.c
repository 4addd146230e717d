/* SPDX-License-Identifier: Apache-2.0 */
/* core/def.c - the definition of a sandbox: its text, its name, its file; see def.h */
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sha256.h"
#include "core/def.h"

#define DEF_VERSION 1
#define FLAGS_MAX 1024

void def_done(struct def *d)
{
	free(d->name);
	free(d->id);
	free(d->agent);
	free(d->workspace);
	for (size_t i = 0; i < d->n_flags; i++)
		free(d->flags[i]);
	free(d->flags);
	*d = (struct def){ 0 };
}

void def_add_flag(struct def *d, const char *text)
{
	d->flags = mem_grow(d->flags, d->n_flags + 1, sizeof(*d->flags));
	d->flags[d->n_flags++] = mem_str(text);
}

const char *def_flag(const struct def *d, const char *flag)
{
	const char *value = NULL;

	for (size_t i = 0; i < d->n_flags; i++)
		if (str_starts(d->flags[i], flag))
			value = d->flags[i] + strlen(flag);
	return value;
}

/* ---- names ---- */

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
				 "-";

bool def_is_name(const char *name)
{
	size_t n = strspn(name, name_chars);

	return n > 0 && name[n] == '\0' && n <= DEF_NAME_MAX && name[0] != '-' && name[0] != '.' &&
	       !str_starts(name, "run-");
}

char *def_default_name(const char *agent, const char *workspace, bool is_long)
{
	_free_ char *base = mem_str(path_name(workspace));
	char hex[SHA256_HEX_BYTES];
	size_t n = strlen(base);

	for (size_t i = 0; i < n; i++)
		if (strchr(name_chars, base[i]) == NULL)
			base[i] = '-';
	sha256_hex(workspace, strlen(workspace), hex);
	if (!is_long)
		return mem_fmt("%.20s-%.40s", agent, n > 0 ? base : "root");
	return mem_fmt("%.20s-%.32s-%.8s", agent, n > 0 ? base : "root", hex);
}

/* ---- text ---- */

void def_print(const struct def *d, struct buf *out)
{
	buf_printf(out, "{\n  \"version\": %d,\n  \"id\": ", DEF_VERSION);
	buf_json(out, d->id);
	buf_puts(out, ",\n  \"name\": ");
	buf_json(out, d->name);
	buf_puts(out, ",\n  \"agent\": ");
	buf_json(out, d->agent);
	buf_puts(out, ",\n  \"workspace\": ");
	buf_json(out, d->workspace);
	buf_printf(out, ",\n  \"created\": %llu,\n  \"flags\": [", (unsigned long long)d->created);
	for (size_t i = 0; i < d->n_flags; i++) {
		buf_puts(out, i ? ", " : "");
		buf_json(out, d->flags[i]);
	}
	buf_puts(out, "]\n}\n");
}

static int want_text(const struct json *root, const char *key, char **ret, struct err *e)
{
	const struct json *v = json_get(root, key);

	if (v == NULL || v->type != JSON_STRING || v->n == 0)
		return err_set(e, ERR_CONFIG, EINVAL, "\"%s\" is missing or not a text", key);
	*ret = mem_str(v->text);
	return 0;
}

static bool is_id(const char *s)
{
	return strlen(s) == 16 && strspn(s, "0123456789abcdef") == 16;
}

static int take_flags(const struct json *root, struct def *d, struct err *e)
{
	const struct json *v = json_get(root, "flags");

	if (v == NULL || v->type != JSON_ARRAY || v->n > FLAGS_MAX)
		return err_set(e, ERR_CONFIG, EINVAL, "\"flags\" is missing or not a list");
	for (const struct json *f = v->first; f; f = f->next) {
		/* They are parsed as options of `run`, so nothing else may stand there. */
		if (f->type != JSON_STRING || !str_starts(f->text, "--") || f->text[2] == '\0')
			return err_set(e, ERR_CONFIG, EINVAL, "a flag is not an option");
		def_add_flag(d, f->text);
	}
	return 0;
}

static int take_all(const struct json *root, struct def *d, struct err *e)
{
	uint64_t version = 0;
	int r;

	if (root->type != JSON_OBJECT || !json_u64(json_get(root, "version"), &version) ||
	    version != DEF_VERSION)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "not a definition that this version of Vitrine knows");
	r = want_text(root, "id", &d->id, e);
	if (r == 0)
		r = want_text(root, "name", &d->name, e);
	if (r == 0)
		r = want_text(root, "agent", &d->agent, e);
	if (r == 0)
		r = want_text(root, "workspace", &d->workspace, e);
	if (r == 0)
		r = take_flags(root, d, e);
	if (r < 0)
		return r;
	if (!is_id(d->id) || !path_is_clean(d->workspace) || !def_is_name(d->name) ||
	    !json_u64(json_get(root, "created"), &d->created))
		return err_set(e, ERR_CONFIG, EINVAL,
			       "\"id\", \"name\", \"workspace\" or \"created\" is not what it "
			       "should be");
	return 0;
}

int def_parse(const char *text, size_t n, struct def *ret, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_cleanup_(def_done) struct def d = { 0 };
	int r = json_parse(text, n, &doc, e);

	if (r == 0)
		r = take_all(doc.root, &d, e);
	if (r < 0)
		return r;
	*ret = d;
	d = (struct def){ 0 };
	return 0;
}

/* ---- file ---- */

int def_read(const char *state_dir, const char *name, struct def *ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/" DEF_FILE, state_dir, name);
	_close_ int fd = FD_NONE;
	_cleanup_(buf_done) struct buf b = BUF(DEF_MAX_BYTES);
	int r;

	if (!def_is_name(name))
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no sandbox '%.64s'", name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no sandbox '%.64s'; 'vitrine ls' lists them", name);
	if (fd < 0)
		return err_sys(e, "sandbox '%s'", name);
	r = io_read_fd(fd, &b, e);
	if (r == 0)
		r = def_parse(buf_cstr(&b), b.n, ret, e);
	if (r < 0)
		return err_wrap(e, r, "'%.200s'", path);
	free(ret->name);
	ret->name = mem_str(name);
	return 0;
}

static int give_id(struct def *d, struct err *e)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return err_sys(e, "getrandom");
	free(d->id);
	d->id = mem_fmt("%016llx", (unsigned long long)n);
	d->created = (uint64_t)time(NULL);
	return 0;
}

/* A path or a value that is no text would come back as another one. */
static int check_text(const struct def *d, const struct buf *text, struct err *e)
{
	_cleanup_(def_done) struct def back = { 0 };
	struct err why = ERR_INIT;
	bool is_same;

	if (text->is_over || def_parse(buf_cstr(text), text->n, &back, &why) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "this sandbox cannot be written down: %.200s",
			       text->is_over ? "too many flags" : why.msg);
	is_same = back.workspace && str_eq(back.workspace, d->workspace) &&
		  back.n_flags == d->n_flags;
	for (size_t i = 0; is_same && i < d->n_flags; i++)
		is_same = str_eq(back.flags[i], d->flags[i]);
	return is_same ? 0
		       : err_set(e, ERR_USAGE, EILSEQ,
				 "a sandbox that lasts needs a directory and flags that are valid "
				 "UTF-8; 'vitrine run -- CMD' does not");
}

/* Written beside and linked into place: it is there whole, and only for the first of two makers. */
static int put_file(int dir, const struct buf *text, struct err *e)
{
	char tmp[48];
	_close_ int fd = FD_NONE;
	int r = 0;

	(void)snprintf(tmp, sizeof(tmp), ".new-%d", (int)getpid());
	(void)unlinkat(dir, tmp, 0); /* of a process that died with our number */
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "write " DEF_FILE);
	if (io_write_all(fd, text->p, text->n) < 0 || fsync(fd) < 0 ||
	    linkat(dir, tmp, dir, DEF_FILE, 0) < 0)
		r = errno == EEXIST ? -EEXIST : err_sys(e, "write " DEF_FILE);
	(void)unlinkat(dir, tmp, 0);
	/* The name is acknowledged with the content: both survive a power cut. */
	if (r == 0 && fsync(dir) < 0)
		r = err_sys(e, "write " DEF_FILE);
	return r;
}

/* The folder's own entry, too. On most file systems the first sync has done it already, and this one is free. */
static int sync_entry(const char *path, struct err *e)
{
	_free_ char *parent = path_parent(path);
	_close_ int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? err_sys(e, "'%s'", parent) : 0;
}

int def_create(const char *state_dir, struct def *d, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, d->name);
	_cleanup_(buf_done) struct buf text = BUF(DEF_MAX_BYTES);
	int r = give_id(d, e);

	if (r < 0)
		return r;
	def_print(d, &text);
	r = check_text(d, &text, e);
	for (int i = 0; r == 0 && i < 100; i++) {
		_close_ int dir = FD_NONE;

		r = path_make(path, 0700);
		if (r < 0)
			return err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r));
		dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir >= 0)
			r = put_file(dir, &text, e);
		else if (errno != ENOENT)
			return err_sys(e, "'%s'", path);
		if (dir >= 0 && r != -ENOENT)
			break;
		r = 0; /* somebody who cleaned up took it away under us */
	}
	if (r == 0)
		r = sync_entry(path, e);
	/* An empty folder is nobody's; one that somebody else has just filled stays. */
	if (r < 0)
		(void)rmdir(path);
	return r;
}

/* ---- listing ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(int dir, const char *name, bool runs)
{
	_free_ char *file = NULL;

	if (runs && str_starts(name, "run-"))
		return true;
	if (!def_is_name(name))
		return false;
	file = mem_fmt("%s/" DEF_FILE, name);
	return faccessat(dir, file, F_OK, 0) == 0;
}

int def_list(const char *state_dir, bool runs, char ***ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	char **v = mem_new(1, sizeof(*v));
	DIR *d = opendir(path);
	struct dirent *en;
	size_t n = 0;

	if (d == NULL && errno != ENOENT) {
		free(v);
		return err_sys(e, "'%s'", path);
	}
	while (d && (en = readdir(d)) != NULL) {
		if (!is_listed(dirfd(d), en->d_name, runs))
			continue;
		v = mem_grow(v, n + 2, sizeof(*v));
		v[n++] = mem_str(en->d_name);
		v[n] = NULL;
	}
	if (d)
		(void)closedir(d);
	qsort(v, n, sizeof(*v), compare);
	*ret = v;
	return 0;
}

void def_list_free(char **names)
{
	for (char **p = names; p && *p; p++)
		free(*p);
	free(names);
}

/* ---- who may write where ---- */

/* "--write=PATH", "--volume=HOST[:INSIDE][:rw]": the host's path, or NULL. */
static char *written_by(const char *flag)
{
	const char *v;

	if (str_starts(flag, "--write=") && flag[8] == '/')
		return mem_str(flag + 8);
	if (!str_starts(flag, "--volume=") || str_ends(flag, ":ro"))
		return NULL;
	v = flag + strlen("--volume=");
	return mem_strn(v, strcspn(v, ":"));
}

/* As it is said, and as it leads. */
static bool holds(const char *dir, const char *path)
{
	_free_ char *real = realpath(dir, NULL);

	return path_is_beneath(path, dir) || (real && path_is_beneath(path, real));
}

static bool may_write(const struct def *d, const char *path)
{
	const char *mode = def_flag(d, "--mode=");
	bool is_kept = mode && (str_eq(mode, "review") || str_eq(mode, "clone"));

	if (!is_kept && holds(d->workspace, path))
		return true;
	for (size_t i = 0; i < d->n_flags; i++) {
		_free_ char *dir = written_by(d->flags[i]);

		if (dir && path_is_clean(dir) && holds(dir, path))
			return true;
	}
	return false;
}

char *def_may_write(const char *state_dir, const char *path)
{
	struct err ignored = ERR_INIT;
	char **names = NULL, *found = NULL;

	if (def_list(state_dir, false, &names, &ignored) < 0)
		return NULL;
	for (char **n = names; found == NULL && *n; n++) {
		_cleanup_(def_done) struct def d = { 0 };

		if (def_read(state_dir, *n, &d, &ignored) == 0 && may_write(&d, path))
			found = mem_str(*n);
	}
	def_list_free(names);
	return found;
}
