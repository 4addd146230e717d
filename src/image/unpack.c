/* SPDX-License-Identifier: Apache-2.0 */
/* image/unpack.c - vitrine-image unpack: an image, in whatever form it comes, to trees
 *
 *	unpack root IN OUT        OUT/root is the root file system
 *	unpack sandbox IN OUT     OUT/home and OUT/workspace are what `save` put in, OUT/whites-PART what is gone,
 *	                          OUT/meta what it says of itself, OUT/system which system it holds, if it does
 *	unpack system IN OUT      OUT/root is that system, with all that was installed
 *
 * IN is an OCI layout as a directory or a tar, a docker archive, or the tar of a root file system. The files of an
 * archive of the first kinds are laid out flat in OUT/in first: what names what is known only at the end.
 */
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sha256.h"
#include "image/image.h"

#define TEXT_MAX (4 * MIB)
#define WHITES_MAX (256 * MIB)

struct unpack {
	int in, out;
	struct image image;
	struct extract x;
	struct err *e;
};

static int fail(struct err *e, const char *what)
{
	return err_set(e, ERR_DENIED, EBADMSG, "not an image that can be read: %s", what);
}

static int make_dir(int at, const char *name, struct err *e)
{
	int fd;

	if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "'%s'", name) : fd;
}

int image_open_blob(int in, const char *file, const char *digest, struct err *e)
{
	_close_ int fd = path_open_beneath(in, file, O_RDONLY | O_NONBLOCK, e);
	int r = fd < 0 ? fd : digest ? blob_verify(fd, digest, e) : 0;

	return r < 0 ? r : take_fd(fd);
}

static int read_blob(int in, const char *file, const char *digest, struct buf *out, struct err *e)
{
	_close_ int fd = image_open_blob(in, file, digest, e);

	return fd < 0 ? fd : io_read_fd(fd, out, e);
}

static bool has_file(const struct unpack *u, const char *file)
{
	struct stat st;

	return fstatat(u->in, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* An index may name an index, once. */
int image_read_layout(int in, struct image *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	_free_ char *file = mem_str("index.json"), *digest = NULL;
	bool is_index = true;
	int r = 0;

	for (int i = 0; r == 0 && is_index && i < 2; i++) {
		char *next = NULL, *next_digest = NULL;

		b.n = 0;
		r = read_blob(in, file, digest, &b, e);
		if (r == 0)
			r = image_pick(buf_cstr(&b), b.n, &next, &next_digest, &is_index, e);
		if (r < 0)
			return r;
		free(file);
		free(digest);
		file = next;
		digest = next_digest;
	}
	b.n = 0;
	r = is_index ? fail(e, "too many indexes") : read_blob(in, file, digest, &b, e);
	return r < 0 ? r : image_manifest(buf_cstr(&b), b.n, ret, e);
}

static int read_docker(struct unpack *u)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	int r = read_blob(u->in, "manifest.json", NULL, &b, u->e);

	return r < 0 ? r : image_docker(buf_cstr(&b), b.n, &u->image, u->e);
}

static int put_layer(struct unpack *u, const struct layer_ref *l)
{
	_close_ int fd = image_open_blob(u->in, l->file, l->digest, u->e);
	int r = fd < 0 ? fd : 0;

	for (int pass = 0; r == 0 && pass < 2; pass++) {
		struct archive *a = image_open_tar(fd, u->e);

		u->x.is_white_pass = pass == 0;
		r = a == NULL ? -EBADMSG : image_extract(a, &u->x, u->e);
		if (a)
			(void)archive_read_free(a);
		if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
			r = err_sys(u->e, "a layer");
	}
	return r;
}

/* ---- a root file system ---- */

/* All of it, or of one of our own what is not somebody's. */
static int put_root(struct unpack *u, bool is_system_only)
{
	int r = u->x.root = make_dir(u->out, "root", u->e);

	for (size_t i = 0; r >= 0 && i < u->image.n; i++)
		if (!is_system_only || image_is_system(u->image.layers[i].part))
			r = put_layer(u, &u->image.layers[i]);
	return r < 0 ? r : 0;
}

static int put_plain_root(struct unpack *u, int fd)
{
	struct archive *a = NULL;
	int r = u->x.root = make_dir(u->out, "root", u->e);

	if (r >= 0)
		a = image_open_tar(fd, u->e);
	r = r < 0 ? r : a == NULL ? -EBADMSG : image_extract(a, &u->x, u->e);
	if (a)
		(void)archive_read_free(a);
	return r;
}

/* ---- a sandbox ---- */

static int put_file(int dir, const char *name, const struct buf *text, struct err *e)
{
	_close_ int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text->p, text->n);

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", name, strerrordesc_np(-r)) : 0;
}

static const char *label(const struct json_doc *doc, const char *key)
{
	const struct json *v =
		doc->root && doc->root->type == JSON_OBJECT ? json_get(doc->root, "config") : NULL;

	v = v && v->type == JSON_OBJECT ? json_get(v, "Labels") : NULL;
	v = v && v->type == JSON_OBJECT ? json_get(v, key) : NULL;
	return v && v->type == JSON_STRING ? v->text : NULL;
}

static int put_part(struct unpack *u, const struct layer_ref *l, const char *prefix)
{
	_cleanup_(buf_done) struct buf whites = BUF(WHITES_MAX);
	_free_ char *strip = prefix ? image_path(prefix) : NULL;
	_free_ char *list = mem_fmt("whites-%s", l->part);
	_close_ int root = FD_NONE;
	int r;

	if (strip == NULL || strip[0] == '\0')
		return fail(u->e, "it does not say where its parts belong");
	if (faccessat(u->out, l->part, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fail(u->e, "a part of it comes twice");
	root = make_dir(u->out, l->part, u->e);
	if (root < 0)
		return root;
	u->x.root = root;
	u->x.strip = strip;
	u->x.whites = &whites;
	r = put_layer(u, l);
	u->x.whites = NULL;
	u->x.strip = NULL;
	return r < 0 ? r : put_file(u->out, list, &whites, u->e);
}

/* Which system it is: the same layers, the same name, wherever they come from. */
static int put_system_name(struct unpack *u, const char *kind)
{
	_cleanup_(buf_done) struct buf layers = BUF(64 * KIB), text = BUF(64 * KIB);
	bool is_sudo = kind && str_eq(kind, "sudo");
	char hex[SHA256_HEX_BYTES];

	for (size_t i = 0; i < u->image.n; i++)
		if (image_is_system(u->image.layers[i].part))
			buf_printf(&layers, "%s\n", u->image.layers[i].digest);
	if (layers.n == 0)
		return 0;
	sha256_hex(layers.p, layers.n, hex);
	buf_printf(&text, "%s %.16s", is_sudo ? "sudo" : "plain", hex);
	return put_file(u->out, "system", &text, u->e);
}

static int put_sandbox(struct unpack *u)
{
	_cleanup_(buf_done) struct buf text = BUF(TEXT_MAX), meta = BUF(64 * KIB);
	struct json_doc doc = { 0 };
	int r = read_blob(u->in, u->image.config, NULL, &text, u->e);

	if (r == 0)
		r = json_parse_foreign(buf_cstr(&text), text.n, &doc, u->e);
	if (r < 0)
		return r;
	if (label(&doc, LABEL_HOME) == NULL)
		r = fail(u->e, "it is not one that 'vitrine save' made; 'vitrine template import' "
			       "takes "
			       "any image");
	for (size_t i = 0; r == 0 && i < u->image.n; i++) {
		const struct layer_ref *l = &u->image.layers[i];

		if (l->part && str_eq(l->part, "home"))
			r = put_part(u, l, label(&doc, LABEL_HOME));
		else if (l->part && str_eq(l->part, "workspace"))
			r = put_part(u, l, label(&doc, LABEL_WORKSPACE));
		else if (!image_is_system(l->part))
			r = fail(u->e, "a layer of it is neither home nor workspace nor system");
	}
	if (r == 0)
		r = put_system_name(u, label(&doc, LABEL_SYSTEM));
	buf_puts(&meta, label(&doc, LABEL_AGENT) ? label(&doc, LABEL_AGENT) : "shell");
	json_done(&doc);
	return r < 0 ? r : put_file(u->out, "meta", &meta, u->e);
}

/* ---- the archive around it ---- */

/* 1: it holds an image; 0: it is a root file system's own. */
static int looks_like_image(int fd, struct err *e)
{
	struct archive *a = image_open_tar(fd, e);
	struct archive_entry *en;
	int is = 0, n = 0;

	if (a == NULL)
		return -EBADMSG;
	while (!is && n++ < 10000 && archive_read_next_header(a, &en) >= ARCHIVE_WARN) {
		_free_ char *path =
			archive_entry_pathname(en) ? image_path(archive_entry_pathname(en)) : NULL;

		is = path && (str_eq(path, "index.json") || str_eq(path, "manifest.json"));
	}
	(void)archive_read_free(a);
	return lseek(fd, 0, SEEK_SET) < 0 ? err_sys(e, "the archive must be a file") : is;
}

static int lay_out(struct unpack *u, int fd)
{
	struct extract x = { 0 };
	struct archive *a;
	int r = u->in = x.root = make_dir(u->out, "in", u->e);

	if (r < 0)
		return r;
	a = image_open_tar(fd, u->e);
	r = a ? image_extract(a, &x, u->e) : -EBADMSG;
	if (a)
		(void)archive_read_free(a);
	return r;
}

/* 1: the files of an image are at u->in; 0: IN is the tar of a root itself. */
static int find_files(struct unpack *u, int fd)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_sys(u->e, "the archive");
	if (S_ISDIR(st.st_mode)) {
		u->in = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return u->in < 0 ? err_sys(u->e, "the archive") : 1;
	}
	r = looks_like_image(fd, u->e);
	if (r > 0)
		r = lay_out(u, fd);
	else if (r == 0)
		return 0;
	return r < 0 ? r : 1;
}

static int put_image(struct unpack *u, const char *what)
{
	int r = has_file(u, "index.json") ? image_read_layout(u->in, &u->image, u->e)
					  : read_docker(u);

	if (r == 0)
		r = str_eq(what, "sandbox") ? put_sandbox(u) : put_root(u, str_eq(what, "system"));
	image_done(&u->image);
	if (u->x.left_out)
		(void)fprintf(stderr, "left out: %llu devices and the like\n",
			      (unsigned long long)u->x.left_out);
	return r;
}

int image_unpack(int argc, char **argv, struct err *e)
{
	struct unpack u = { .in = FD_NONE, .e = e };
	_close_ int fd = FD_NONE;
	int r;

	if (argc != 4 ||
	    (!str_eq(argv[1], "root") && !str_eq(argv[1], "system") && !str_eq(argv[1], "sandbox")))
		return err_set(e, ERR_USAGE, EINVAL, "unpack root|system|sandbox IN OUT");
	u.x.has_owners = !str_eq(argv[1], "sandbox") && image_is_root();
	fd = open(argv[2], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	u.out = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || u.out < 0)
		return err_sys(e, "'%s'", fd < 0 ? argv[2] : argv[3]);
	r = find_files(&u, fd);
	if (r == 0)
		return str_eq(argv[1], "root") ? put_plain_root(&u, fd)
					       : fail(e, "it has no index");
	r = r < 0 ? r : put_image(&u, argv[1]);
	if (image_is_root())
		(void)path_remove(u.out,
				  "in"); /* nobody else can; if it stays it only takes space */
	return r;
}
