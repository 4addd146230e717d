/* SPDX-License-Identifier: Apache-2.0 */
/* core/takeover.c - see takeover.h */
#include "core/takeover.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"

static const struct tree_entry *coming(const struct takeover *t, const char *rel)
{
	if (!tree_is_among(t->only, rel))
		return NULL;
	return tree_find(t->d ? &t->d->after : t->target, rel);
}

/* Does the host's own still show at a name that does not come? */
static bool host_shows(const struct takeover *t, const char *rel)
{
	_free_ char *up = mem_str(rel);
	char *slash;

	if (!tree_is_among(t->only, rel))
		return true;
	if (t->d)
		return tree_find(&t->d->before, rel) == NULL;
	while ((slash = strrchr(up, '/')) != NULL) {
		const struct tree_entry *dir;

		*slash = '\0';
		dir = tree_find(t->target, up);
		if (dir)
			return dir->flags & TREE_OPAQUE;
	}
	return false;
}

static unsigned char type_of(void *arg, const char *rel, mode_t *ret_mode)
{
	const struct takeover *t = arg;
	const struct tree_entry *en = coming(t, rel);
	_close_ int fd = FD_NONE;
	struct stat st = { 0 };

	if (en) {
		*ret_mode = en->mode;
		return IFTODT(en->mode);
	}
	if (host_shows(t, rel))
		fd = tree_open(t->ws_fd, rel, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return DT_UNKNOWN;
	*ret_mode = st.st_mode;
	return IFTODT(st.st_mode);
}

static int read_host(const struct takeover *t, const char *rel, struct buf *out)
{
	_close_ int fd = tree_open(t->ws_fd, rel, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return io_read_regular(fd, out);
}

static int read_coming(const struct takeover *t, const struct tree_entry *en, struct buf *out)
{
	struct err ignored = ERR_INIT;
	uint8_t sum[SHA256_BYTES];
	int r;

	if (!S_ISREG(en->mode) || en->flags & (TREE_UNHASHED | TREE_UNSAVED))
		return -EINVAL;
	if (en->size > out->max)
		return -EMSGSIZE;
	if (t->d == NULL)
		return store_read(t->store, en->hash, en->size, out, &ignored);
	r = overlay_read((void *)(uintptr_t)t->d, en, true, out);
	if (r < 0)
		return r;
	sha256(buf_cstr(out), out->n, sum); /* small enough to be hashed as a whole */
	return memcmp(sum, en->hash, sizeof(sum)) == 0 ? 0 : -ESTALE;
}

static int read_after(void *arg, const char *rel, struct buf *out)
{
	const struct takeover *t = arg;
	const struct tree_entry *en = coming(t, rel);

	if (en)
		return read_coming(t, en, out);
	return host_shows(t, rel) ? read_host(t, rel, out) : -ENOENT;
}

/* An index also holds names that stay as they are: what came out earlier is still in the layer it came from. */
static bool is_old(void *arg, const char *rel)
{
	const struct takeover *t = arg;
	const struct tree_entry *en = coming(t, rel);
	const struct tree_entry *was = tree_find(t->d ? &t->d->before : t->now, rel);
	mode_t mode;

	if (en == NULL)
		return type_of(arg, rel, &mode) != DT_UNKNOWN;
	if (was == NULL || was->mode != en->mode)
		return false;
	return !S_ISREG(en->mode) || (was->size == en->size && !(was->flags & TREE_UNHASHED) &&
				      memcmp(was->hash, en->hash, sizeof(en->hash)) == 0);
}

int takeover_begin(struct takeover *t, const struct policy *p, struct err *e)
{
	t->outcome = (struct outcome_tree){ .p = p,
					    .host = &t->host,
					    .type = type_of,
					    .read = read_after,
					    .is_old = is_old,
					    .arg = t };
	return outcome_host_load(t->ws_fd, p, &t->host, e);
}

void takeover_done(struct takeover *t)
{
	outcome_done(&t->outcome);
	outcome_host_done(&t->host);
}

char *takeover_why(struct takeover *t, const char *path)
{
	return outcome_why(&t->outcome, path);
}
