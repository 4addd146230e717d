/* SPDX-License-Identifier: Apache-2.0 */
/* image/image.h - vitrine-image: layers of a sandbox to an OCI image layout, and images to trees
 *
 * A tool that `vitrine` runs in its workshop (core/workshop.h): it sees what it packs read-only, an empty directory to
 * write in, and no network. Archives come from anybody, so what it reads is bounded and taken with distrust, and what
 * is left is only that empty directory. It links libarchive and OpenSSL; nothing else of Vitrine does for this.
 */
#ifndef VITRINE_IMAGE_IMAGE_H
#define VITRINE_IMAGE_IMAGE_H

#include <archive.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- blobs ---- */

#define DIGEST_BYTES 65 /* SHA-256 in hex and a NUL */

struct blob {
	char digest[DIGEST_BYTES];
	uint64_t size;
};

struct blob_out; /* a blob that is being written: its name is known at the end */
int blob_begin(int dir, struct blob_out **ret, struct err *e);
int blob_add(struct blob_out *b, const void *p, size_t n, struct err *e);
int blob_end(struct blob_out *take_b, struct blob *ret, struct err *e); /* gives it its name */
void blob_drop(struct blob_out *take_b);
int blob_put(int dir, const struct buf *text, struct blob *ret, struct err *e);
/* Does what lies in fd have this digest ("sha256:...")? Leaves fd at its beginning. */
int blob_verify(int fd, const char *digest, struct err *e);

/* ---- manifests ---- */

#define IMAGE_LAYERS_MAX 128
#define LABEL_HOME "org.vitrine.home"
#define LABEL_WORKSPACE "org.vitrine.workspace"
#define LABEL_AGENT "org.vitrine.agent"
#define LABEL_SYSTEM "org.vitrine.system" /* "sudo": its files have owners; "plain" */
#define PART_KEY "org.vitrine.part"

struct layer_ref {
	char *file;   /* below the layout: "blobs/sha256/..." or a docker archive's name */
	char *digest; /* "sha256:..."; NULL in a docker archive */
	char *part;   /* our own images: "root", "system", "home", "workspace"; else NULL */
};

struct image {
	struct layer_ref layers[IMAGE_LAYERS_MAX];
	size_t n;
	char *config; /* file below the layout */
};

/* Of an OCI index: which manifest is this machine's; of a manifest: its layers. Pure and strict: a digest is
 * "sha256:" and 64 hex digits, a file of a docker archive a clean relative path. */
int image_pick(const char *index, size_t n, char **ret_file, char **ret_digest, bool *ret_is_index,
	       struct err *e);
int image_manifest(const char *text, size_t n, struct image *ret, struct err *e);
int image_docker(const char *text, size_t n, struct image *ret, struct err *e);
void image_done(struct image *i);
/* Is this layer one of a system, not of what somebody keeps in it? */
bool image_is_system(const char *part);
/* Of an OCI layout that lies in the directory `in`. */
int image_read_layout(int in, struct image *ret, struct err *e);
/* A blob of it, which is what its digest (NULL: it has none) says. */
int image_open_blob(int in, const char *file, const char *digest, struct err *e);
/* A path of an archive: relative, normal, without "..", "./" and slashes at either end removed; NULL: refused. */
char *image_path(const char *path);

/* ---- the verbs ---- */

/* Run with `--as-root`? Then files have owners. */
bool image_is_root(void);
#define IMAGE_IDS_MAX 65536

int image_pack(int argc, char **argv, struct err *e);
int image_unpack(int argc, char **argv, struct err *e);
int image_settle(int argc, char **argv, struct err *e);

/* One layer, or a whole root, onto a directory. */
struct extract {
	int root;
	const char *strip; /* only what lies below this, without it; NULL: all */
	struct buf *
		whites; /* names that are marked as gone, each with its NUL; NULL: they are removed */
	bool is_white_pass; /* only the marks, else all but them */
	bool has_owners; /* owners and set-user-id bits are taken over: we are root of ids that are for it */
	uint64_t entries, bytes, left_out;
};
#define EXTRACT_ENTRIES_MAX ((uint64_t)4 << 20)
#define EXTRACT_BYTES_MAX (64 * GIB)
int image_extract(struct archive *a, struct extract *x, struct err *e);
/* A tar, compressed or not. Takes nothing. */
struct archive *image_open_tar(int fd, struct err *e);

#endif
