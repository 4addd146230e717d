/* SPDX-License-Identifier: Apache-2.0 */
/* core/seed.c - see seed.h
 *
 * The home is written by what runs inside, so it is foreign ground: every path is opened beneath it, following nothing,
 * and a file appears whole (written aside, then linked into place) or not at all. Credentials are no seeds: of the user's
 * own settings nothing is copied.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "core/seed.h"
#include "guard/install.h"

#define HOMES_MAX 64
#define SEED_MAX (256 * KIB)

struct homes {
	int fd[HOMES_MAX]; /* the first is the one that is written */
	size_t n;
};

static void homes_close(struct homes *h)
{
	for (size_t i = 0; i < h->n; i++)
		fd_close(h->fd[i]);
}

static int open_home(struct homes *h, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, "home '%s'", path);
	bug_on(h->n == HOMES_MAX);
	h->fd[h->n++] = fd;
	return 0;
}

static int homes_open(const struct seed_in *in, struct homes *h, struct err *e)
{
	_free_ char *plain = mem_fmt("%s/sandboxes/%s/home", in->state_dir, in->name);
	int r = 0;

	if (in->layers == NULL) {
		if (mkdir(plain, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "home '%s'", plain);
		return open_home(h, plain, e);
	}
	for (size_t i = 0; r == 0 && in->layers[i] && i < HOMES_MAX; i++) {
		/* Of the layer on top the directory of both its parts is named. */
		_free_ char *top = i == 0 ? mem_fmt("%s/fs", in->layers[i]) : NULL;

		r = open_home(h, top ? top : in->layers[i], e);
	}
	return r;
}

/* Anything but "no such file" counts as being there: then it is not ours to touch. */
static bool is_there(const struct homes *h, const char *rel)
{
	for (size_t i = 0; i < h->n; i++) {
		_close_ int fd = path_openat2(h->fd[i], rel, O_PATH | O_NOFOLLOW | O_CLOEXEC,
					      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

		if (fd != -ENOENT)
			return true;
	}
	return false;
}

static int write_file(int home, const char *rel, const struct buf *text, struct err *e)
{
	_free_ char *full = mem_fmt("/%s", rel);
	_free_ char *parent = path_parent(full);
	const char *below = parent[1] ? parent + 1 : ".";
	_close_ int dir = FD_NONE, fd = FD_NONE;
	char link[32];
	int r = str_eq(below, ".") ? 0 : path_mkdirs(home, below, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s' in the home: %s", below, strerror(-r));
	dir = path_open_beneath(home, below, O_RDONLY | O_DIRECTORY, e);
	if (dir < 0)
		return dir;
	fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "'%s' in the home", rel);
	r = io_write_all(fd, text->p, text->n);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s' in the home: %s", rel, strerror(-r));
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, dir, path_name(full), AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(e, "'%s' in the home", rel);
	return 0;
}

/* The placeholder that stands in this variable. */
static const char *variable(const void *arg, const char *name, size_t n)
{
	const struct seed_in *in = arg;

	for (size_t i = 0; i < in->n_secrets; i++)
		for (size_t k = 0; k < in->secrets[i].n_env; k++)
			if (strlen(in->secrets[i].env[k]) == n &&
			    memcmp(in->secrets[i].env[k], name, n) == 0)
				return in->secrets[i].placeholder;
	return NULL;
}

static void put_seed(const struct seed_in *in, const struct json *seed, struct buf *out)
{
	preset_seed_text(seed,
			 &(struct preset_fill){
				 .workspace = in->workspace, .variable = variable, .arg = in },
			 out);
}

static int write_seed(const struct seed_in *in, const struct homes *h, const struct json *seed,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(SEED_MAX);

	if (is_there(h, seed->key))
		return 0;
	put_seed(in, seed, &text);
	return write_file(h->fd[0], seed->key, &text, e);
}

/* The agent's settings with the guard in its hooks; where the preset seeds the same file, on top of that. */
static int write_hook(const struct seed_in *in, const struct homes *h, const struct preset *p,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf before = BUF(SEED_MAX), after = BUF(SEED_MAX);
	enum agent a = agent_find(p->hook);
	const char *file = a == AGENT_UNKNOWN ? NULL : install_file(a);
	const struct json *seed = file && p->seed ? json_get(p->seed, file) : NULL;
	bool is_seen = path_is_beneath(in->self_exe, in->workspace);
	int r;

	if (file == NULL)
		return err_set(e, ERR_CONFIG, EINVAL, "preset '%s': no hooks are known for '%.40s'",
			       p->name, p->hook);
	if (is_there(h, file))
		return 0;
	if (seed)
		put_seed(in, seed, &before);
	r = install_text(a, seed ? buf_cstr(&before) : NULL, is_seen ? in->self_exe : SEED_PROGRAM,
			 &after, e);
	return r < 0 ? err_wrap(e, r, "preset '%s'", p->name)
		     : write_file(h->fd[0], file, &after, e);
}

int seed_home(const struct seed_in *in, const struct preset *p, struct err *e)
{
	_cleanup_(homes_close) struct homes h = { 0 };
	int r;

	if (p->seed == NULL && p->hook == NULL)
		return 0;
	r = homes_open(in, &h, e);
	if (r == 0 && p->hook)
		r = write_hook(in, &h, p, e);
	for (const struct json *v = p->seed ? p->seed->first : NULL; r == 0 && v; v = v->next)
		r = write_seed(in, &h, v, e);
	return r;
}
