/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/image.c - the skeleton as an image: a few dozen directories, links and small files
 *
 * Written as a ustar archive from the plan and not from the disk, because two of its entries are there to be
 * unreadable. The image is named by the skeleton's key, so equal names hold equal trees.
 */
#include "base/io.h"
#include "base/path.h"
#include "engine/container/container.h"
#include "engine/native/native.h"

#define BLOCK 512

struct tar_head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
		magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};

char *image_name(const struct plan *p)
{
	return mem_fmt("vitrine-skel:%s", p->skel_key);
}

/* A long name is split at a slash: prefix and name. */
static int put_name(struct tar_head *h, const char *path, struct err *e)
{
	size_t n = strlen(path), at = n > sizeof(h->name) ? n - sizeof(h->name) : 0;
	const char *slash;

	if (at == 0) {
		memcpy(h->name, path, n);
		return 0;
	}
	slash = strchr(path + at - 1, '/');
	if (slash == NULL || (size_t)(slash - path) > sizeof(h->prefix))
		return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG,
			       "'%s' is too long a name for an image", path);
	memcpy(h->prefix, path, (size_t)(slash - path));
	memcpy(h->name, slash + 1, strlen(slash + 1));
	return 0;
}

static void finish_head(struct tar_head *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;

	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	(void)snprintf(h->sum, sizeof(h->sum), "%06o", sum);
}

static int put_entry(struct buf *out, const struct skel *s, const struct buf *content,
		     struct err *e)
{
	struct tar_head h = { 0 };
	size_t n = content ? content->n : 0;
	static const char zero[BLOCK];
	int r = put_name(&h, s->path, e);

	_Static_assert(sizeof(h) == BLOCK, "a tar header is one block");
	if (r < 0)
		return r;
	h.type = (char)(s->kind == SKEL_DIR ? '5' : s->kind == SKEL_LINK ? '2' : '0');
	if (s->kind == SKEL_LINK) {
		if (strlen(s->text) > sizeof(h.link))
			return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG,
				       "'%s' leads too far for an image", s->path);
		memcpy(h.link, s->text, strlen(s->text));
	}
	(void)snprintf(h.mode, sizeof(h.mode), "%07o", s->kind == SKEL_LINK ? 0777 : s->mode);
	(void)snprintf(h.uid, sizeof(h.uid), "%07o", 0U);
	(void)snprintf(h.gid, sizeof(h.gid), "%07o", 0U);
	(void)snprintf(h.size, sizeof(h.size), "%011o", (unsigned)n);
	(void)snprintf(h.mtime, sizeof(h.mtime), "%011o", 0U);
	finish_head(&h);
	buf_add(out, &h, sizeof(h));
	if (n > 0) {
		buf_add(out, content->p, n);
		buf_add(out, zero, (BLOCK - n % BLOCK) % BLOCK);
	}
	return 0;
}

static int put_skel(void *arg, const struct skel *s, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(8 * MIB);
	int r = 0;

	if (s->kind == SKEL_FILE)
		buf_puts(&text, s->text);
	else if (s->kind == SKEL_COPY)
		r = io_read_file(s->text, &text, e);
	return r < 0 ? r : put_entry(arg, s, &text, e);
}

int image_tar(const struct plan *p, struct buf *out, struct err *e)
{
	static const char end[2 * BLOCK];
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_skel; i++) {
		const struct skel *s = &p->skel[i];

		r = s->kind == SKEL_TREE ? skel_tree_each(p, s, put_skel, out, e)
					 : put_skel(out, s, e);
	}
	buf_add(out, end, sizeof(end));
	if (r == 0 && out->is_over)
		r = err_set(e, ERR_UNSUPPORTED, EMSGSIZE, "the skeleton is too large for an image");
	return r;
}
