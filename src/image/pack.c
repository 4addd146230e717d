/* SPDX-License-Identifier: Apache-2.0 */
/* image/pack.c - vitrine-image pack: the layers of a sandbox as an OCI image layout, and that as one tar
 *
 *	pack OUT TAG UID:GID LABEL=VALUE... -- PART PREFIX BASE LAYER... [-- PART ...] [-- layout DIR]
 *
 * A part is a stack of layers, top first, above BASE; it becomes one layer of the image, with all that it holds at the
 * path PREFIX, and marks for what is gone from BASE. The files of a system ("root", "system") keep their owners where there
 * are any (--as-root), else they are root's; all others are UID:GID's. "layout" takes over the layers of an image that is
 * packed already. Names are sorted, so the same state gives the same image. The layout goes to the directory OUT, the tar
 * of it to stdout.
 */
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/io.h"
#include "base/num.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "image/image.h"
#include "tree/overlay.h"

#define PARTS_MAX 8
#define FILE_MAX (1024 * (int64_t)GIB) /* what `load` takes */
#define HOLE_PIECE ((size_t)256 * MIB)

struct part {
	char *name;
	const char *prefix; /* NULL: it was taken over */
	struct blob blob;
};

struct pack {
	int out, blobs;
	const char *tag;
	char **labels;
	size_t n_labels;
	uint32_t uid, gid; /* of what is nobody else's */
	struct part parts[PARTS_MAX];
	size_t n;
};

/* ---- one part ---- */

struct link_seen {
	uint64_t dev, ino;
	char *path;
};

struct layer_out {
	struct archive *a;
	struct blob_out *blob;
	const struct overlay_diff *d;
	const char *prefix; /* without the first slash */
	bool is_system;
	uint32_t uid, gid;
	void *links; /* a tree of struct link_seen, for tsearch() */
	struct err *e;
};

static la_ssize_t on_bytes(struct archive *a, void *arg, const void *p, size_t n)
{
	struct layer_out *l = arg;

	if (blob_add(l->blob, p, n, l->e) < 0) {
		archive_set_error(a, EIO, "the blob");
		return -1;
	}
	return (la_ssize_t)n;
}

static int archive_failed(struct archive *a, struct err *e)
{
	return err_set(e, ERR_SYSTEM, EIO, "tar: %s",
		       archive_error_string(a) ? archive_error_string(a) : "failed");
}

static struct archive_entry *new_entry(const struct layer_out *l, const char *path, mode_t mode,
				       int64_t mtime)
{
	_free_ char *full = path[0] && l->prefix[0] ? mem_fmt("%s/%s", l->prefix, path)
						    : mem_str(path[0] ? path : l->prefix);
	struct archive_entry *en = archive_entry_new();

	bug_on(en == NULL);
	archive_entry_set_pathname(en, full);
	archive_entry_set_mode(en, mode & (S_IFMT | 01777));
	archive_entry_set_uid(en, l->uid);
	archive_entry_set_gid(en, l->gid);
	archive_entry_set_mtime(en, (time_t)(mtime / (int64_t)NS_PER_SEC),
				(long)(mtime % (int64_t)NS_PER_SEC));
	archive_entry_set_size(en, 0);
	return en;
}

/* Of a root file system with ids of its own: the owner, and what setting the owner may mean. */
static void set_owner(const struct layer_out *l, struct archive_entry *en,
		      const struct tree_entry *t)
{
	if (!l->is_system || !image_is_root())
		return;
	archive_entry_set_uid(en, t->uid);
	archive_entry_set_gid(en, t->gid);
	archive_entry_set_mode(en, t->mode & (S_IFMT | 07777));
}

static int put_header(const struct layer_out *l, struct archive_entry *en)
{
	return archive_write_header(l->a, en) < ARCHIVE_WARN ? archive_failed(l->a, l->e) : 0;
}

static int put_simple(const struct layer_out *l, struct archive_entry *take_en)
{
	int r = put_header(l, take_en);

	archive_entry_free(take_en);
	return r;
}

static void add_xattrs(struct archive_entry *en, int fd)
{
	char names[65536], value[65536];
	ssize_t n = flistxattr(fd, names, sizeof(names));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t size;

		if (!str_starts(names + at, "user.") || str_starts(names + at, "user.overlay."))
			continue;
		size = fgetxattr(fd, names + at, value, sizeof(value));
		if (size >= 0)
			archive_entry_xattr_add_entry(en, names + at, value, (size_t)size);
	}
}

/* Where the data is; the rest are holes. */
static void add_holes(struct archive_entry *en, int fd, int64_t size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_blocks * 512 >= size)
		return;
	for (off_t at = 0; at < size;) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0)
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		hole = hole < 0 || hole > size ? size : hole;
		archive_entry_sparse_add_entry(en, data, hole - data);
		at = hole;
	}
	if (archive_entry_sparse_count(en) == 0)
		archive_entry_sparse_add_entry(en, size, 0);
	(void)lseek(fd, 0, SEEK_SET);
}

/* Exactly `size` bytes, as the header says: one that was cut off meanwhile is filled with zeros. */
static int put_data(const struct layer_out *l, int fd, int64_t size)
{
	static char chunk[262144];
	int64_t at = 0;

	while (at < size) {
		size_t want =
			size - at < (int64_t)sizeof(chunk) ? (size_t)(size - at) : sizeof(chunk);
		ssize_t n = io_read(fd, chunk, want);

		if (n < 0)
			return err_set(l->e, ERR_SYSTEM, (int)-n, "a file cannot be read");
		if (n == 0) {
			memset(chunk, 0, want);
			n = (ssize_t)want;
		}
		if (archive_write_data(l->a, chunk, (size_t)n) < 0)
			return archive_failed(l->a, l->e);
		at += n;
	}
	return 0;
}

/* A hole as long as it may be: the tar holds nothing of it, and the writer does not look at the bytes. */
static int put_hole(const struct layer_out *l, int64_t size)
{
	static const char *zeros;

	if (zeros == NULL) {
		void *p = mmap(NULL, HOLE_PIECE, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return err_sys(l->e, "mmap");
		zeros = p;
	}
	while (size > 0) {
		size_t n = size < (int64_t)HOLE_PIECE ? (size_t)size : HOLE_PIECE;
		la_ssize_t done = archive_write_data(l->a, zeros, n);

		if (done <= 0)
			return archive_failed(l->a, l->e);
		size -= done;
	}
	return 0;
}

/* The content of a file whose holes were named: what is read is where the data was. */
static int put_sparse(const struct layer_out *l, struct archive_entry *en, int fd, int64_t size)
{
	la_int64_t from, n;
	int64_t at = 0;
	int r = 0;

	(void)archive_entry_sparse_reset(en);
	while (r == 0 && archive_entry_sparse_next(en, &from, &n) == ARCHIVE_OK) {
		r = put_hole(l, from - at);
		if (r == 0 && lseek(fd, from, SEEK_SET) < 0)
			r = err_sys(l->e, "lseek");
		if (r == 0)
			r = put_data(l, fd, n);
		at = from + n;
	}
	return r < 0 ? r : put_hole(l, size - at);
}

static int by_inode(const void *a, const void *b)
{
	const struct link_seen *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static void free_link(void *link)
{
	struct link_seen *seen = link;

	free(seen->path);
	free(seen);
}

/* The earlier name of the same file; else this one is remembered. */
static const char *seen_before(struct layer_out *l, const struct tree_entry *en)
{
	struct link_seen *seen = mem_new(1, sizeof(*seen)), **found;

	*seen = (struct link_seen){ .dev = en->dev, .ino = en->ino };
	found = tsearch(seen, &l->links, by_inode);
	bug_on(found == NULL);
	if (*found != seen) {
		free(seen);
		return (*found)->path;
	}
	seen->path = mem_fmt("%s%s%s", l->prefix, l->prefix[0] ? "/" : "", en->path);
	return NULL;
}

static int put_file(struct layer_out *l, const struct tree_entry *t, int layer)
{
	const char *first = t->nlink > 1 ? seen_before(l, t) : NULL;
	_close_ int fd = FD_NONE;
	struct archive_entry *en;
	struct stat st;
	int r;

	en = new_entry(l, t->path, t->mode, t->mtime);
	set_owner(l, en, t);
	if (first) {
		archive_entry_set_hardlink(en, first);
		return put_simple(l, en);
	}
	fd = tree_open(layer, t->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		archive_entry_free(en);
		return err_set(l->e, ERR_SYSTEM, EIO, "'%.200s' cannot be read", t->path);
	}
	if (st.st_size > FILE_MAX) {
		archive_entry_free(en);
		return err_set(l->e, ERR_UNSUPPORTED, EFBIG,
			       "'%.200s' is %lld bytes long, and an image holds files of up to 1 "
			       "TiB; "
			       "remove or shorten it first",
			       t->path, (long long)st.st_size);
	}
	archive_entry_set_size(en, st.st_size);
	add_xattrs(en, fd);
	add_holes(en, fd, st.st_size);
	r = put_header(l, en);
	if (r == 0)
		r = archive_entry_sparse_count(en) > 0 && !sabotaged("holes")
			    ? put_sparse(l, en, fd, st.st_size)
			    : put_data(l, fd, st.st_size);
	archive_entry_free(en);
	return r;
}

static int put_entry(struct layer_out *l, const struct tree_entry *t)
{
	struct archive_entry *en;

	if (S_ISREG(t->mode))
		return put_file(l, t, l->d->o->layers[l->d->layer[t - l->d->after.v]]);
	if (!S_ISDIR(t->mode) && !S_ISLNK(t->mode) && !S_ISFIFO(t->mode))
		return 0; /* sockets and devices are of one machine */
	en = new_entry(l, t->path, t->mode, t->mtime);
	set_owner(l, en, t);
	if (S_ISLNK(t->mode)) {
		_free_ char *target = mem_strn(t->target, t->target_len);

		archive_entry_set_symlink(en, target);
	}
	return put_simple(l, en);
}

/* ".wh.NAME" says that NAME of the tree below is gone. */
static int put_whiteouts(const struct layer_out *l)
{
	const struct overlay_diff *d = l->d;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->changes.n; i++) {
		const struct change *c = &d->changes.v[i];
		const struct tree_entry *dir, *now;
		_free_ char *path = NULL;

		if (c->kind != CHANGE_REMOVED)
			continue;
		dir = c->a->parent == TREE_NONE ? NULL : &d->before.v[c->a->parent];
		now = dir ? tree_find(&d->after, dir->path) : NULL;
		if (dir && (now == NULL || !S_ISDIR(now->mode)))
			continue;
		path = mem_fmt("%.*s.wh.%s", (int)(c->a->name - c->a->path), c->a->path,
			       c->a->name);
		r = put_simple(l, new_entry(l, path, S_IFREG | 0600, 0));
	}
	return r;
}

/* Does an earlier part lie there, or below it? */
static bool was_put(const struct pack *p, const char *dir)
{
	_free_ char *full = mem_fmt("/%s", dir);

	for (size_t i = 0; i < p->n; i++)
		if (p->parts[i].prefix && path_is_beneath(p->parts[i].prefix, full))
			return true;
	return false;
}

/* The directories on the way are the system's, the last one is the part's own. */
static struct archive_entry *new_way(const struct layer_out *l, const char *dir)
{
	bool is_tmp = str_eq(dir, "tmp") || str_eq(dir, "var/tmp");
	struct archive_entry *en = new_entry(l, "", S_IFDIR | (is_tmp ? 01777 : 0755), 0);

	archive_entry_set_pathname(en, dir);
	if (!str_eq(dir, l->prefix)) {
		archive_entry_set_uid(en, 0);
		archive_entry_set_gid(en, 0);
	}
	return en;
}

static int put_prefix(const struct pack *p, const struct layer_out *l)
{
	int r = 0;

	for (const char *end = l->prefix; r == 0 && *end;) {
		_free_ char *dir = NULL;

		end += strcspn(end, "/");
		dir = mem_strn(l->prefix, (size_t)(end - l->prefix));
		if (!was_put(p, dir))
			r = put_simple(l, new_way(l, dir));
		end += *end == '/';
	}
	return r;
}

static int put_layer(const struct pack *p, struct layer_out *l)
{
	int r;

	if (archive_write_set_format_pax_restricted(l->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(l->a, 512) != ARCHIVE_OK ||
	    archive_write_open(l->a, l, NULL, on_bytes, NULL) != ARCHIVE_OK)
		return archive_failed(l->a, l->e);
	r = put_prefix(p, l);
	for (size_t i = 0; r == 0 && i < l->d->after.n; i++)
		r = put_entry(l, &l->d->after.v[i]);
	if (r == 0)
		r = put_whiteouts(l);
	if (r == 0 && archive_write_close(l->a) != ARCHIVE_OK)
		r = archive_failed(l->a, l->e);
	return r;
}

static int pack_part(struct pack *p, struct part *part, const struct overlay *o, struct err *e)
{
	struct overlay_diff d = { 0 };
	struct layer_out l = { .d = &d, .prefix = part->prefix + 1, .e = e };
	int r = overlay_compare(o, false, &d, e);

	l.is_system = image_is_system(part->name);
	l.uid = l.is_system ? 0 : p->uid;
	l.gid = l.is_system ? 0 : p->gid;

	if (r == 0)
		r = blob_begin(p->blobs, &l.blob, e);
	l.a = archive_write_new();
	if (r == 0)
		r = put_layer(p, &l);
	(void)archive_write_free(l.a);
	if (r == 0)
		r = blob_end(take(l.blob), &part->blob, e);
	blob_drop(l.blob);
	tdestroy(l.links, free_link);
	overlay_diff_done(&d);
	return r;
}

/* ---- the image ---- */

#if defined(__x86_64__)
#define MACHINE "amd64"
#else
#define MACHINE "arm64"
#endif

static void json_labels(const struct pack *p, struct buf *out)
{
	for (size_t i = 0; i < p->n_labels; i++) {
		size_t n = strcspn(p->labels[i], "=");
		_free_ char *key = mem_strn(p->labels[i], n);

		buf_puts(out, i ? "," : "");
		buf_json(out, key);
		buf_putc(out, ':');
		buf_json(out, p->labels[i][n] ? p->labels[i] + n + 1 : "");
	}
}

static int put_config(struct pack *p, struct blob *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_puts(&b, "{\"architecture\":\"" MACHINE "\",\"os\":\"linux\",\"config\":{\"Labels\":{");
	json_labels(p, &b);
	buf_puts(&b, "}},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[");
	for (size_t i = 0; i < p->n; i++)
		buf_printf(&b, "%s\"sha256:%s\"", i ? "," : "", p->parts[i].blob.digest);
	buf_puts(&b, "]},\"history\":[");
	for (size_t i = 0; i < p->n; i++)
		buf_printf(&b, "%s{\"created_by\":\"vitrine save: %s\"}", i ? "," : "",
			   p->parts[i].name);
	buf_puts(&b, "]}");
	return blob_put(p->blobs, &b, ret, e);
}

static int put_manifest(struct pack *p, const struct blob *config, struct blob *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_printf(&b,
		   "{\"schemaVersion\":2,\"mediaType\":\"application/"
		   "vnd.oci.image.manifest.v1+json\","
		   "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
		   "\"digest\":\"sha256:%s\",\"size\":%llu},\"layers\":[",
		   config->digest, (unsigned long long)config->size);
	for (size_t i = 0; i < p->n; i++)
		buf_printf(&b,
			   "%s{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\","
			   "\"digest\":\"sha256:%s\",\"size\":%llu,\"annotations\":{\"" PART_KEY
			   "\":\"%s\"}}",
			   i ? "," : "", p->parts[i].blob.digest,
			   (unsigned long long)p->parts[i].blob.size, p->parts[i].name);
	buf_puts(&b, "]}");
	return blob_put(p->blobs, &b, ret, e);
}

static int put_text(int dir, const char *name, const char *text, struct err *e)
{
	_close_ int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : io_write_all(fd, text, strlen(text));

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", name, strerrordesc_np(-r)) : 0;
}

static int put_index(struct pack *p, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct blob config = { 0 }, manifest = { 0 };
	int r = put_config(p, &config, e);

	if (r == 0)
		r = put_manifest(p, &config, &manifest, e);
	if (r < 0)
		return r;
	buf_printf(&b,
		   "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
		   "\"application/"
		   "vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\",\"size\":%llu,"
		   "\"platform\":{\"architecture\":\"" MACHINE "\",\"os\":\"linux\"},"
		   "\"annotations\":{\"org."
		   "opencontainers.image.ref.name\":",
		   manifest.digest, (unsigned long long)manifest.size);
	buf_json(&b, p->tag);
	buf_puts(&b, "}}]}");
	r = put_text(p->out, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", e);
	return r < 0 ? r : put_text(p->out, "index.json", buf_cstr(&b), e);
}

/* ---- the tar of it ---- */

static int tar_file(struct archive *a, int dir, const char *name, const char *path, struct err *e)
{
	struct layer_out l = { .a = a, .e = e };
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct archive_entry *en;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", path);
	en = archive_entry_new();
	archive_entry_set_pathname(en, path);
	archive_entry_set_mode(en, S_IFREG | 0644);
	archive_entry_set_size(en, st.st_size);
	archive_entry_set_mtime(en, 0, 0);
	r = put_header(&l, en);
	archive_entry_free(en);
	return r < 0 ? r : put_data(&l, fd, st.st_size);
}

/* Some readers give directories that an archive does not name to root. */
static int tar_dir(struct archive *a, const char *path, struct err *e)
{
	struct layer_out l = { .a = a, .e = e };
	struct archive_entry *en = archive_entry_new();

	bug_on(en == NULL);
	archive_entry_set_pathname(en, path);
	archive_entry_set_mode(en, S_IFDIR | 0755);
	archive_entry_set_mtime(en, 0, 0);
	return put_simple(&l, en);
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static int tar_blobs(struct archive *a, const struct pack *p, struct err *e)
{
	char *names[IMAGE_LAYERS_MAX];
	size_t n = 0;
	DIR *d = fdopendir(fcntl(p->blobs, F_DUPFD_CLOEXEC, 3));
	struct dirent *en;
	int r = d ? 0 : err_sys(e, "blobs");

	while (d && (en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' && n < ARRAY_LEN(names))
			names[n++] = mem_str(en->d_name);
	if (d)
		(void)closedir(d);
	qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 0; i < n; i++) {
		_free_ char *path = mem_fmt("blobs/sha256/%s", names[i]);

		if (r == 0)
			r = tar_file(a, p->blobs, names[i], path, e);
		free(names[i]);
	}
	return r;
}

static int put_tar(const struct pack *p, struct err *e)
{
	struct archive *a = archive_write_new();
	int r = 0;

	if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
	    archive_write_open_fd(a, 1) != ARCHIVE_OK)
		r = archive_failed(a, e);
	if (r == 0)
		r = tar_file(a, p->out, "oci-layout", "oci-layout", e);
	if (r == 0)
		r = tar_file(a, p->out, "index.json", "index.json", e);
	if (r == 0)
		r = tar_dir(a, "blobs/", e);
	if (r == 0)
		r = tar_dir(a, "blobs/sha256/", e);
	if (r == 0)
		r = tar_blobs(a, p, e);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = archive_failed(a, e);
	(void)archive_write_free(a);
	return r;
}

/* ---- words ---- */

static int open_dir(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "'%s'", path) : fd;
}

/* PART PREFIX BASE LAYER... up to "--"; how many words. */
static int read_part(struct pack *p, char **argv, struct err *e)
{
	struct part *part = &p->parts[p->n];
	struct overlay o = { .base = FD_NONE };
	int n = 0, r = 0;

	while (argv[n] && !str_eq(argv[n], "--"))
		n++;
	if (n < 3 || p->n == ARRAY_LEN(p->parts) || n - 3 > OVERLAY_LAYERS_MAX || argv[1][0] != '/')
		return err_set(e, ERR_USAGE, EINVAL, "pack: PART PREFIX BASE LAYER...");
	*part = (struct part){ .name = mem_str(argv[0]), .prefix = argv[1] };
	r = o.base = open_dir(argv[2], e);
	for (int i = 3; r >= 0 && i < n; i++)
		r = o.layers[o.n++] = open_dir(argv[i], e);
	if (r >= 0)
		r = pack_part(p, part, &o, e);
	p->n++;
	return r < 0 ? r : n;
}

static int take_blob(const struct pack *p, int fd, struct blob *ret, struct err *e)
{
	static char chunk[262144];
	struct blob_out *b = NULL;
	int r = blob_begin(p->blobs, &b, e);
	ssize_t n = 1;

	while (r == 0 && n > 0) {
		n = io_read(fd, chunk, sizeof(chunk));
		r = n < 0 ? err_set(e, ERR_SYSTEM, (int)-n, "a layer cannot be read")
			  : blob_add(b, chunk, (size_t)n, e);
	}
	if (r == 0)
		r = blob_end(take(b), ret, e);
	blob_drop(b);
	return r;
}

/* layout DIR: the layers of an image of ours; how many words. */
static int read_layout(struct pack *p, char **argv, struct err *e)
{
	_close_ int in = argv[1] ? open_dir(argv[1], e) : FD_NONE;
	struct image i = { 0 };
	int r = argv[1] == NULL ? err_set(e, ERR_USAGE, EINVAL, "pack: layout DIR")
		: in < 0        ? in
				: image_read_layout(in, &i, e);

	for (size_t k = 0; r == 0 && k < i.n; k++) {
		const struct layer_ref *l = &i.layers[k];
		_close_ int fd = image_open_blob(in, l->file, l->digest, e);

		if (fd >= 0 && (l->part == NULL || p->n == ARRAY_LEN(p->parts)))
			r = err_set(e, ERR_USAGE, EINVAL, "pack: too many parts");
		else
			r = fd < 0 ? fd : take_blob(p, fd, &p->parts[p->n].blob, e);
		if (r == 0)
			p->parts[p->n++].name = mem_str(l->part);
	}
	image_done(&i);
	return r < 0 ? r : 2;
}

static int read_owner(struct pack *p, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	_free_ char *uid = colon ? mem_strn(text, (size_t)(colon - text)) : NULL;
	uint64_t u = 0, g = 0;
	int r = colon ? num_parse(uid, 0, UINT32_MAX - 1, &u, e)
		      : err_set(e, ERR_USAGE, EINVAL, "pack: UID:GID");

	if (r == 0)
		r = num_parse(colon + 1, 0, UINT32_MAX - 1, &g, e);
	p->uid = (uint32_t)u;
	p->gid = (uint32_t)g;
	return r;
}

int image_pack(int argc, char **argv, struct err *e)
{
	struct pack p = { 0 };
	int at = 4, r = 0;

	if (argc < 6)
		return err_set(e, ERR_USAGE, EINVAL,
			       "pack OUT TAG UID:GID [LABEL=VALUE...] -- PART...");
	p.tag = argv[2];
	p.labels = argv + at;
	while (argv[at] && !str_eq(argv[at], "--"))
		at++;
	p.n_labels = (size_t)at - 4;
	r = read_owner(&p, argv[3], e);
	if (r >= 0)
		r = p.out = open_dir(argv[1], e);
	if (r >= 0 &&
	    (mkdirat(p.out, "blobs", 0755) < 0 || mkdirat(p.out, "blobs/sha256", 0755) < 0))
		r = err_sys(e, "blobs");
	if (r >= 0)
		r = p.blobs = openat(p.out, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (r >= 0 && argv[at]) {
		char **words = argv + at + 1;

		r = words[0] && str_eq(words[0], "layout") ? read_layout(&p, words, e)
							   : read_part(&p, words, e);
		at += r + 1;
	}
	if (r >= 0)
		r = put_index(&p, e);
	return r < 0 ? r : put_tar(&p, e);
}
