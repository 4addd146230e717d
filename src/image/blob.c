/* SPDX-License-Identifier: Apache-2.0 */
/* image/blob.c - see image.h: files whose names are the hash of what is in them */
#include <fcntl.h>
#include <openssl/evp.h>

#include "base/io.h"
#include "image/image.h"

struct blob_out {
	int dir, fd;
	EVP_MD_CTX *md;
	uint64_t size;
};

static const char tmp_name[] = ".part"; /* one at a time */

static int hash_failed(struct err *e)
{
	return err_set(e, ERR_SYSTEM, EIO, "SHA-256 does not work here");
}

int blob_begin(int dir, struct blob_out **ret, struct err *e)
{
	struct blob_out *b = mem_new(1, sizeof(*b));

	*b = (struct blob_out){ .dir = dir, .md = EVP_MD_CTX_new() };
	b->fd = openat(dir, tmp_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (b->fd < 0) {
		int r = err_sys(e, "a blob");

		blob_drop(b);
		return r;
	}
	if (b->md == NULL || EVP_DigestInit_ex(b->md, EVP_sha256(), NULL) != 1) {
		blob_drop(b);
		return hash_failed(e);
	}
	*ret = b;
	return 0;
}

void blob_drop(struct blob_out *b)
{
	if (b == NULL)
		return;
	EVP_MD_CTX_free(b->md);
	fd_close(b->fd);
	free(b);
}

int blob_add(struct blob_out *b, const void *p, size_t n, struct err *e)
{
	int r = io_write_all(b->fd, p, n);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "a blob: %s", strerrordesc_np(-r));
	if (EVP_DigestUpdate(b->md, p, n) != 1)
		return hash_failed(e);
	b->size += n;
	return 0;
}

static int md_hex(EVP_MD_CTX *md, char hex[DIGEST_BYTES])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (EVP_DigestFinal_ex(md, sum, &n) != 1 || n != 32)
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		(void)snprintf(hex + 2 * (size_t)i, 3, "%02x", sum[i]);
	return 0;
}

int blob_end(struct blob_out *b, struct blob *ret, struct err *e)
{
	int r = md_hex(b->md, ret->digest) < 0 ? hash_failed(e) : 0;

	ret->size = b->size;
	if (r == 0 && renameat(b->dir, tmp_name, b->dir, ret->digest) < 0)
		r = err_sys(e, "a blob");
	blob_drop(b);
	return r;
}

int blob_put(int dir, const struct buf *text, struct blob *ret, struct err *e)
{
	struct blob_out *b = NULL;
	int r = blob_begin(dir, &b, e);

	if (r < 0 || b == NULL)
		return r < 0 ? r : -EIO;
	r = blob_add(b, text->p, text->n, e);
	if (r < 0) {
		blob_drop(b);
		return r;
	}
	return blob_end(b, ret, e);
}

int blob_verify(int fd, const char *digest, struct err *e)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	char hex[DIGEST_BYTES] = "", chunk[65536];
	ssize_t n = 0;
	int r = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 ? 0 : hash_failed(e);

	while (r == 0 && (n = io_read(fd, chunk, sizeof(chunk))) > 0)
		if (EVP_DigestUpdate(md, chunk, (size_t)n) != 1)
			r = hash_failed(e);
	if (r == 0 && (n < 0 || md_hex(md, hex) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		r = err_set(e, ERR_SYSTEM, EIO, "a blob cannot be read");
	EVP_MD_CTX_free(md);
	if (r == 0 && !(str_starts(digest, "sha256:") && str_eq(digest + 7, hex)))
		r = err_set(e, ERR_DENIED, EBADMSG, "a blob is not what its name says: '%.80s'",
			    digest);
	return r;
}
