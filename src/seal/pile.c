/* SPDX-License-Identifier: Apache-2.0 */
/* seal/pile.c - see pile.h */
#include "seal/pile.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

void pile_done(struct pile *p)
{
	if (p->text.p)
		explicit_bzero(p->text.p, p->text.cap);
	buf_done(&p->text);
	p->n = 0;
}

void pile_clear(struct pile *p)
{
	p->text.n = 0;
	p->text.is_over = false;
	p->text.max = HTTP_HEAD_MAX;
	p->n = 0;
	p->is_bad = false;
}

void pile_add(struct pile *p, struct str name, struct str value)
{
	struct str word = name.n > 0 && name.p[0] == ':' ? str_from(name, 1) : name;

	if (p->text.max == 0)
		p->text.max = HTTP_HEAD_MAX;
	if (p->n == HTTP_FIELDS_MAX - 8 || !http_is_token(word) || !http_is_value(value) ||
	    str_trim(value).n != value.n) {
		p->is_bad = true;
		return;
	}
	p->v[p->n].name = p->text.n;
	p->v[p->n].n_name = name.n;
	buf_add(&p->text, name.p, name.n);
	p->v[p->n].value = p->text.n;
	p->v[p->n].n_value = value.n;
	buf_add(&p->text, value.p, value.n);
	p->is_bad |= p->text.is_over;
	p->n++;
}

static struct http_field field(const struct pile *p, size_t i)
{
	const char *t = buf_cstr(&p->text);

	return (struct http_field){ .name = { .p = t + p->v[i].name, .n = p->v[i].n_name },
				    .value = { .p = t + p->v[i].value, .n = p->v[i].n_value } };
}

static bool is_pseudo(const struct http_field *f)
{
	return f->name.n > 0 && f->name.p[0] == ':';
}

static bool is_path(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f)
			return false;
	return true;
}

int pile_request(const struct pile *p, struct http_head *ret, struct err *e)
{
	struct str authority = { 0 }, scheme = { 0 };

	*ret = (struct http_head){ .minor = 1 };
	if (p->is_bad)
		return bad(e, "the head is too large, or holds what no header field may");
	for (size_t i = 0; i < p->n; i++) {
		struct http_field f = field(p, i);

		if (str_is(f.name, ":method"))
			ret->method = f.value;
		else if (str_is(f.name, ":path"))
			ret->target = f.value;
		else if (str_is(f.name, ":authority"))
			authority = f.value;
		else if (str_is(f.name, ":scheme"))
			scheme = f.value;
		else if (is_pseudo(&f))
			return bad(e, "an unknown pseudo-field");
		else
			ret->v[ret->n++] = f;
	}
	if (!http_is_token(ret->method) || ret->method.n > HTTP_METHOD_MAX || !is_path(ret->target))
		return bad(e, "the method or the path is malformed");
	if (scheme.n > 0 && !str_is(scheme, "https"))
		return bad(e, "the scheme is not https");
	/* With a Host field beside it there would be two, which nobody may send. */
	if (authority.n > 0)
		ret->v[ret->n++] = (struct http_field){ .name = STR("Host"), .value = authority };
	return 0;
}

int pile_response(const struct pile *p, struct http_head *ret, struct err *e)
{
	*ret = (struct http_head){ .minor = 1 };
	if (p->is_bad)
		return bad(e, "the head of the answer is too large, or holds what no field may");
	for (size_t i = 0; i < p->n; i++) {
		struct http_field f = field(p, i);

		if (!is_pseudo(&f)) {
			ret->v[ret->n++] = f;
			continue;
		}
		if (!str_is(f.name, ":status") || f.value.n != 3)
			return bad(e, "the answer has no status");
		for (size_t k = 0; k < 3; k++)
			ret->status = ret->status * 10 + (unsigned)(f.value.p[k] - '0');
	}
	return ret->status >= 100 && ret->status <= 999 ? 0 : bad(e, "the answer has no status");
}
