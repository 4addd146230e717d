/* SPDX-License-Identifier: Apache-2.0 */
/* base/page.c - see page.h; build time only */
#include "base/page.h"

#include "base/io.h"

int page_fill(const char *path, const char *name, const struct buf *part, struct buf *out,
	      struct err *e)
{
	_free_ char *begin = mem_fmt("<!-- %s: made from %s/ by the build -->\n", name, name),
		    *end = mem_fmt("<!-- end of %s -->", name);
	_cleanup_(buf_done) struct buf text = BUF(4 * MIB);
	const char *from, *to;
	int r = io_read_file(path, &text, e);

	if (r < 0)
		return r;
	from = strstr(buf_cstr(&text), begin);
	to = from ? strstr(from, end) : NULL;
	if (to == NULL)
		return err_set(e, ERR_CONFIG, EINVAL, "%s: the marks of '%s' are missing", path,
			       name);
	buf_add(out, text.p, (size_t)(from - text.p) + strlen(begin));
	buf_add(out, part->p, part->n);
	buf_puts(out, to);
	return 0;
}
