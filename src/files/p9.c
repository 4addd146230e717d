/* SPDX-License-Identifier: Apache-2.0 */
/* files/p9.c - see p9.h */
#include "files/p9.h"

/* What follows the head. 1 2 4 8: a number of so many bytes; n: a name; t: any text; w: a count[2] and so many names;
 * d: a count[4] and so many bytes. */
static const struct {
	uint8_t type;
	const char *fields;
} forms[] = {
	{ P9_STATFS, "4" },      { P9_LOPEN, "44" },         { P9_LCREATE, "4n444" },
	{ P9_SYMLINK, "4nt4" },  { P9_MKNOD, "4n4444" },     { P9_RENAME, "44n" },
	{ P9_READLINK, "4" },    { P9_GETATTR, "48" },       { P9_SETATTR, "4444488888" },
	{ P9_XATTRWALK, "44t" }, { P9_XATTRCREATE, "4t84" }, { P9_READDIR, "484" },
	{ P9_FSYNC, "44" },      { P9_LOCK, "414884t" },     { P9_GETLOCK, "41884t" },
	{ P9_LINK, "44n" },      { P9_MKDIR, "4n44" },       { P9_RENAMEAT, "4n4n" },
	{ P9_UNLINKAT, "4n4" },  { P9_VERSION, "4t" },       { P9_AUTH, "4tt4" },
	{ P9_ATTACH, "44tt4" },  { P9_FLUSH, "2" },          { P9_WALK, "44w" },
	{ P9_READ, "484" },      { P9_WRITE, "48d" },        { P9_CLUNK, "4" },
	{ P9_REMOVE, "4" },
};

struct cursor {
	const uint8_t *p;
	size_t left;
};

static bool number(struct cursor *c, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (c->left < n)
		return false;
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)c->p[i] << (8 * i);
	c->p += n;
	c->left -= n;
	*ret = v;
	return true;
}

bool p9_is_name(const char *name)
{
	return name[0] != '\0' && !str_eq(name, ".") && !str_eq(name, "..") &&
	       strchr(name, '/') == NULL && strlen(name) <= 255;
}

static bool take_text(struct cursor *c, struct p9_request *q, bool is_name)
{
	uint64_t n;
	char *s;

	if (q->n_s == P9_WALK_MAX || !number(c, 2, &n) || c->left < n || memchr(c->p, '\0', n))
		return false;
	s = mem_strn((const char *)c->p, n);
	q->s[q->n_s++] = s;
	c->p += n;
	c->left -= n;
	if (is_name && !p9_is_name(s))
		q->is_bad_name = true;
	return true;
}

static bool take_names(struct cursor *c, struct p9_request *q)
{
	uint64_t n;

	if (!number(c, 2, &n) || n > P9_WALK_MAX)
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (!take_text(c, q, true))
			return false;
	return true;
}

static bool take_data(struct cursor *c, struct p9_request *q)
{
	uint64_t n;

	if (!number(c, 4, &n) || c->left < n)
		return false;
	q->data = c->p;
	q->n_data = n;
	c->p += n;
	c->left -= n;
	return true;
}

static bool take_field(struct cursor *c, char form, struct p9_request *q, size_t *at)
{
	switch (form) {
	case 'n':
	case 't':
		return take_text(c, q, form == 'n');
	case 'w':
		return take_names(c, q);
	case 'd':
		return take_data(c, q);
	default:
		bug_on(*at == P9_NUMBERS);
		return number(c, (size_t)(form - '0'), &q->n[(*at)++]);
	}
}

static const char *form_of(uint8_t type)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (forms[i].type == type)
			return forms[i].fields;
	return NULL;
}

int p9_length(const void *p, size_t n, size_t *ret)
{
	struct cursor c = { p, n };
	uint64_t size;

	*ret = 0;
	if (!number(&c, 4, &size))
		return 0;
	if (size < P9_HEAD || size > P9_MSIZE)
		return -EBADMSG;
	*ret = size;
	return 0;
}

int p9_parse(const void *p, size_t n, struct p9_request *ret)
{
	struct cursor c = { p, n };
	uint64_t size, type, tag;
	const char *form;
	size_t at = 0;

	*ret = (struct p9_request){ 0 };
	if (!number(&c, 4, &size) || size != n || !number(&c, 1, &type) || !number(&c, 2, &tag))
		return -EBADMSG;
	ret->type = (uint8_t)type;
	ret->tag = (uint16_t)tag;
	form = form_of(ret->type);
	for (; form && *form; form++)
		if (!take_field(&c, *form, ret, &at))
			break;
	if (form && *form == '\0' && c.left == 0)
		return 0;
	p9_done(ret);
	return -EBADMSG;
}

void p9_done(struct p9_request *q)
{
	for (size_t i = 0; i < q->n_s; i++)
		free(q->s[i]);
	q->n_s = 0;
}

/* ---- answers ---- */

static void put(struct buf *b, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_putc(b, (char)(uint8_t)(v >> (8 * i)));
}

void p9_put1(struct buf *b, uint8_t v)
{
	put(b, v, 1);
}

void p9_put2(struct buf *b, uint16_t v)
{
	put(b, v, 2);
}

void p9_put4(struct buf *b, uint32_t v)
{
	put(b, v, 4);
}

void p9_put8(struct buf *b, uint64_t v)
{
	put(b, v, 8);
}

void p9_put_text(struct buf *b, const char *s, size_t n)
{
	put(b, n, 2);
	buf_add(b, s, n);
}

void p9_put_qid(struct buf *b, const struct p9_qid *q)
{
	put(b, q->type, 1);
	put(b, q->version, 4);
	put(b, q->path, 8);
}

void p9_begin(struct buf *b, uint8_t type, uint16_t tag)
{
	b->n = 0;
	put(b, 0, 4);
	put(b, type + 1U, 1);
	put(b, tag, 2);
}

void p9_end(struct buf *b)
{
	bug_on(b->is_over || b->n < P9_HEAD);
	for (size_t i = 0; i < 4; i++)
		b->p[i] = (char)(uint8_t)(b->n >> (8 * i));
}

void p9_error(struct buf *b, uint16_t tag, int error)
{
	p9_begin(b, P9_LERROR, tag);
	put(b, (uint64_t)error, 4);
	p9_end(b);
}
