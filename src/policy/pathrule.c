/* SPDX-License-Identifier: Apache-2.0 */
/* policy/pathrule.c - see pathrule.h */
#include "policy/pathrule.h"
#include "policy/policy.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

static void rule_done(struct path_rule *r)
{
	free(r->methods);
	free(r->host);
	free(r->path);
	free(r->text);
}

void path_rules_done(struct path_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		rule_done(&r->v[i]);
	free(r->v);
	*r = (struct path_rules){ 0 };
}

bool host_matches(const char *pattern, const char *host)
{
	if (str_starts(pattern, "*."))
		return strlen(host) > strlen(pattern) - 1 && str_ends(host, pattern + 1);
	return str_eq(pattern, host);
}

static int check_methods(struct str s, struct err *e)
{
	if (str_is(s, "*"))
		return 0;
	for (;;) {
		size_t comma = str_find(s, ',');

		if (comma == 0)
			break;
		for (size_t i = 0; i < comma; i++)
			if ((s.p[i] < 'A' || s.p[i] > 'Z') && s.p[i] != '-')
				return err_set(e, ERR_CONFIG, EINVAL,
					       "methods are written in capitals");
		if (comma == s.n)
			return 0;
		s = str_from(s, comma + 1);
	}
	return err_set(e, ERR_CONFIG, EINVAL, "a rule is 'METHOD[,METHOD...] HOST[/PATH]'");
}

static int parse_rule(const char *text, struct path_rule *r, struct err *e)
{
	struct str s = str_of(text), rest;
	size_t space = str_find(s, ' '), slash;
	int n = check_methods(str_first(s, space), e);

	r->text = mem_str(text);
	if (n < 0)
		return n;
	rest = str_trim(str_from(s, space));
	slash = str_find(rest, '/');
	if (slash == 0)
		return err_set(e, ERR_CONFIG, EINVAL, "a rule is 'METHOD[,METHOD...] HOST[/PATH]'");
	r->methods = mem_strn(s.p, space);
	r->host = mem_strn(rest.p, slash);
	for (char *c = r->host; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
	rest = str_from(rest, slash);
	if (rest.n == 0 || str_is(rest, "/**"))
		return 0;
	r->path = mem_strn(rest.p, rest.n);
	return rest.n == 1 ? 0 : glob_check(r->path + 1, e);
}

int path_rules_add(struct path_rules *r, bool is_deny, const char *text, struct err *e)
{
	struct path_rule rule = { .is_deny = is_deny };
	int n = parse_rule(text, &rule, e);

	if (n < 0) {
		rule_done(&rule);
		return err_wrap(e, n, "rule '%s'", text);
	}
	vec_reserve(r->v, r->n, r->cap);
	r->v[r->n++] = rule;
	return 0;
}

bool path_rules_cover(const struct path_rules *r, const char *host)
{
	for (size_t i = 0; i < r->n; i++)
		if (host_matches(r->v[i].host, host))
			return true;
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of a path, decoded once; -1 for one that does not mean the same to everybody. */
static int next_char(struct str *s)
{
	int c = (unsigned char)s->p[0];

	if (c != '%') {
		*s = str_from(*s, 1);
		return c == '\\' || c == ';' ? -1 : c;
	}
	if (s->n < 3 || hex_digit(s->p[1]) < 0 || hex_digit(s->p[2]) < 0)
		return -1;
	c = hex_digit(s->p[1]) * 16 + hex_digit(s->p[2]);
	*s = str_from(*s, 3);
	return c < 0x20 || c == 0x7f || strchr("/.%\\;", c) ? -1 : c;
}

/* A part that is empty, "." or "..", ending where the buffer ends. */
static bool is_odd_part(const struct buf *b)
{
	return str_ends(buf_cstr(b), "/") || str_ends(buf_cstr(b), "/.") ||
	       str_ends(buf_cstr(b), "/..");
}

/* The path decoded, without query and without one slash at its end. */
static int clean_path(struct str target, struct buf *out, struct err *e)
{
	struct str s = str_first(target, str_find(target, '?'));

	while (s.n > 0) {
		int c = next_char(&s);

		if (c < 0 || (c == '/' && out->n > 0 && is_odd_part(out)))
			return bad(e, "the path can be read in more than one way");
		buf_putc(out, (char)c);
	}
	if (out->n > 1 && (str_ends(buf_cstr(out), "/.") || str_ends(buf_cstr(out), "/..")))
		return bad(e, "the path can be read in more than one way");
	if (out->n > 1 && out->p[out->n - 1] == '/')
		out->p[--out->n] = '\0';
	return out->is_over ? bad(e, "the path is too long") : 0;
}

static bool method_matches(const char *methods, struct str method)
{
	struct str list = str_of(methods);

	if (str_is(list, "*"))
		return true;
	while (list.n > 0) {
		struct str word = str_first(list, str_find(list, ','));

		if ((word.n == method.n && memcmp(word.p, method.p, word.n) == 0) ||
		    (str_is(word, "GET") && str_is(method, "HEAD")))
			return true;
		list = str_from(list, word.n < list.n ? word.n + 1 : word.n);
	}
	return false;
}

/* Both get a first part in common: a glob without a slash would else match at any depth. */
static bool path_matches(const char *pattern, const char *path)
{
	_free_ char *a = NULL, *b = NULL;

	if (pattern == NULL)
		return true;
	if (str_eq(pattern, "/") || str_eq(path, "/"))
		return str_eq(pattern, path);
	a = mem_fmt("x%s", pattern);
	b = mem_fmt("x%s", path);
	return glob_match(a, b);
}

static const struct path_rule *find(const struct path_rules *r, bool is_deny, const char *host,
				    struct str method, const char *path)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].is_deny == is_deny && host_matches(r->v[i].host, host) &&
		    method_matches(r->v[i].methods, method) && path_matches(r->v[i].path, path))
			return &r->v[i];
	return NULL;
}

static bool has_allow(const struct path_rules *r, const char *host)
{
	for (size_t i = 0; i < r->n; i++)
		if (!r->v[i].is_deny && host_matches(r->v[i].host, host))
			return true;
	return false;
}

int path_judge(const struct path_rules *r, const char *host, struct str method, struct str target,
	       const struct path_rule **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF(PATH_RULE_TARGET_MAX);
	const struct path_rule *found;
	int n;

	*ret = NULL;
	if (!path_rules_cover(r, host))
		return 0;
	n = clean_path(target, &path, e);
	if (n < 0)
		return n;
	found = find(r, true, host, method, buf_cstr(&path));
	if (found)
		return err_set(e, ERR_DENIED, EACCES, "the rule 'deny %s' refuses it", found->text);
	found = find(r, false, host, method, buf_cstr(&path));
	if (!found && has_allow(r, host))
		return err_set(e, ERR_DENIED, ENOENT, "no rule allows it; '%.*s %s%.200s' would",
			       (int)method.n, method.p, host, buf_cstr(&path));
	*ret = found;
	return 0;
}
