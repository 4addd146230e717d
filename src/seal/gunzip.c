/* SPDX-License-Identifier: Apache-2.0 */
/* seal/gunzip.c - see gunzip.h; zlib with a window of its own and no more */
#include <zlib.h>

#include "seal/gunzip.h"

enum { GZIP_WINDOW = 15 + 16, PIECE = 4096 };

struct gunzip {
	z_stream z;
	bool is_ended;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *g = mem_new(1, sizeof(*g));

	bug_on(inflateInit2(&g->z, GZIP_WINDOW) != Z_OK);
	return g;
}

void gunzip_free(struct gunzip *g)
{
	if (g == NULL)
		return;
	(void)inflateEnd(&g->z); /* frees whatever the state */
	free(g);
}

int gunzip_feed(struct gunzip *g, const char *p, size_t n, gunzip_fn *fn, void *arg, struct err *e)
{
	char piece[PIECE];

	g->z.next_in = (Bytef *)(uintptr_t)p;
	g->z.avail_in = (uInt)n;
	while (!g->is_ended) {
		int r, z;

		g->z.next_out = (Bytef *)piece;
		g->z.avail_out = sizeof(piece);
		z = inflate(&g->z, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
			return err_set(e, ERR_DENIED, EBADMSG, "the body is not what gzip makes");
		g->is_ended = z == Z_STREAM_END;
		r = fn(arg, piece, sizeof(piece) - g->z.avail_out, e);
		if (r != 0)
			return r;
		if (g->z.avail_out > 0)
			break;
	}
	return 0;
}
