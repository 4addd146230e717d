/* SPDX-License-Identifier: Apache-2.0 */
/* secret/describe.c - a secret as text: its own file, and what vitrine-seal is told; never the value */
#include "base/num.h"
#include "secret/secret.h"

static const char *const source_names[SECRET_SOURCE_COUNT_] = {
	[SECRET_STORED] = "stored",     [SECRET_KEYRING] = "keyring", [SECRET_FILE] = "file",
	[SECRET_VARIABLE] = "variable", [SECRET_COMMAND] = "command", [SECRET_LOGIN] = "login",
};

const char *secret_source_name(enum secret_source s)
{
	return source_names[s];
}

void secret_list_add(struct secret_list *l, const char *text)
{
	l->v = mem_grow(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = mem_str(text);
}

void secret_list_done(struct secret_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct secret_list){ 0 };
}

void secret_done(struct secret *s)
{
	secret_list_done(&s->env);
	secret_list_done(&s->hosts);
	secret_list_done(&s->headers);
	secret_list_done(&s->places);
	free(s->name);
	free(s->from);
	free(s->npm);
	free(s->around);
	free(s->shape);
	free(s->alphabet);
	*s = (struct secret){ 0 };
}

static bool is_made_of(const char *s, const char *set)
{
	return *s && strspn(s, set) == strlen(s);
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

int secret_check_name(const char *name, struct err *e)
{
	if (!is_made_of(name, LOWER UPPER DIGITS "-_") || strchr(DIGITS "-_", name[0]) ||
	    strlen(name) > SECRET_NAME_MAX)
		return err_set(e, ERR_USAGE, EINVAL,
			       "a secret's name is letters, digits, '-' and '_', beginning with a "
			       "letter");
	return 0;
}

static int check_list(const struct secret_list *l, const char *set, const char *what, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (!is_made_of(l->v[i], set))
			return err_set(e, ERR_USAGE, EINVAL, "not %s: '%s'", what, l->v[i]);
	return 0;
}

/* "*.name", or no star at all; never a whole top-level domain. */
static bool is_host(const char *s)
{
	if (s[0] != '*')
		return strchr(s, '*') == NULL;
	return s[1] == '.' && strchr(s + 1, '*') == NULL && strchr(s + 2, '.') != NULL;
}

int secret_check(const struct secret *s, struct err *e)
{
	int r = check_list(&s->env, LOWER UPPER DIGITS "_", "the name of a variable", e);

	for (size_t i = 0; r >= 0 && i < s->env.n; i++)
		if (strchr(DIGITS, s->env.v[i][0]))
			r = err_set(e, ERR_USAGE, EINVAL, "not the name of a variable: '%s'",
				    s->env.v[i]);
	if (r >= 0)
		r = check_list(&s->hosts, LOWER DIGITS "-_.*", "a host (name or *.name)", e);
	if (r >= 0)
		r = check_list(&s->headers, LOWER UPPER DIGITS "-", "the name of a header field",
			       e);
	for (size_t i = 0; r >= 0 && i < s->hosts.n; i++)
		if (!is_host(s->hosts.v[i]))
			r = err_set(e, ERR_USAGE, EINVAL, "not a host (name or *.name): '%s'",
				    s->hosts.v[i]);
	for (size_t i = 0; r >= 0 && i < s->places.n; i++)
		if (!str_eq(s->places.v[i], "header") && !str_eq(s->places.v[i], "query") &&
		    !str_eq(s->places.v[i], "body"))
			r = err_set(e, ERR_USAGE, EINVAL, "--in is header, query or body");
	if (r >= 0 && s->hosts.n == 0)
		r = err_set(e, ERR_USAGE, EINVAL,
			    "'%s' is no service known here, so say which --host it is for",
			    s->name);
	return r;
}

static void put_list(struct buf *b, const char *key, const struct secret_list *l)
{
	buf_printf(b, ",\"%s\":[", key);
	for (size_t i = 0; i < l->n; i++) {
		if (i > 0)
			buf_putc(b, ',');
		buf_json(b, l->v[i]);
	}
	buf_putc(b, ']');
}

static void put_text(struct buf *b, const char *key, const char *text)
{
	buf_printf(b, ",\"%s\":", key);
	buf_json(b, text ? text : "");
}

void secret_write(const struct secret *s, struct buf *out)
{
	buf_puts(out, "{\"name\":");
	buf_json(out, s->name);
	put_list(out, "env", &s->env);
	put_list(out, "hosts", &s->hosts);
	put_list(out, "headers", &s->headers);
	put_list(out, "in", &s->places);
	put_text(out, "source", source_names[s->source]);
	if (s->from)
		put_text(out, "from", s->from);
	if (s->npm)
		put_text(out, "npm", s->npm);
	if (s->around)
		put_text(out, "around", s->around);
	buf_printf(out, ",\"cache_s\":%llu", (unsigned long long)(s->cache / NS_PER_SEC));
	put_text(out, "shape", s->shape);
	put_text(out, "alphabet", s->alphabet);
	buf_puts(out, "}\n");
}

void secret_terms(const struct secret *s, const char *placeholder, struct buf *out)
{
	buf_puts(out, "{\"name\":");
	buf_json(out, s->name);
	put_text(out, "placeholder", placeholder);
	put_list(out, "hosts", &s->hosts);
	put_list(out, "headers", &s->headers);
	put_list(out, "in", &s->places);
	buf_putc(out, '}');
}

static int read_list(const struct json *o, const char *key, struct secret_list *l, struct err *e)
{
	const struct json *list = json_get(o, key);

	if (!list || list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is missing", key);
	for (const struct json *m = list->first; m; m = m->next) {
		if (m->type != JSON_STRING)
			return err_set(e, ERR_CONFIG, EINVAL, "'%s' holds strings", key);
		secret_list_add(l, m->text);
	}
	return 0;
}

static int read_text(const struct json *o, const char *key, char **ret, struct err *e)
{
	const struct json *v = json_get(o, key);

	if (!v || v->type != JSON_STRING)
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is missing", key);
	*ret = mem_str(v->text);
	return 0;
}

static int read_source(const struct json *o, struct secret *s, struct err *e)
{
	const struct json *v = json_get(o, "source"), *from = json_get(o, "from");

	for (int i = 0; v && v->type == JSON_STRING && i < SECRET_SOURCE_COUNT_; i++)
		if (str_eq(v->text, source_names[i])) {
			s->source = (enum secret_source)i;
			s->from = from && from->type == JSON_STRING ? mem_str(from->text) : NULL;
			if (i <= SECRET_KEYRING || s->from)
				return 0;
		}
	return err_set(e, ERR_CONFIG, EINVAL, "'source' is missing");
}

/* What an import wrote: one line each, of the characters of a URL. */
static int read_import(const struct json *o, struct secret *s, struct err *e)
{
	static const char *const keys[] = { "npm", "around" };
	char **to[] = { &s->npm, &s->around };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct json *v = json_get(o, keys[i]);

		if (v == NULL)
			continue;
		if (v->type != JSON_STRING ||
		    !is_made_of(v->text, LOWER UPPER DIGITS "-._~:/@%{} +&=") ||
		    (i == 0 && !str_starts(v->text, "//")) ||
		    (i == 1 && strstr(v->text, "{}") == NULL))
			return err_set(e, ERR_CONFIG, EINVAL, "'%s' is of no use", keys[i]);
		*to[i] = mem_str(v->text);
	}
	return 0;
}

int secret_read(const char *text, size_t n, struct secret *ret, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct secret s = { 0 };
	uint64_t cache = 0;
	int r = json_parse(text, n, &doc, e);

	if (r < 0)
		return r;
	if (doc.root->type != JSON_OBJECT)
		return err_set(e, ERR_CONFIG, EINVAL, "not an object");
	r = read_text(doc.root, "name", &s.name, e);
	if (r >= 0)
		r = read_list(doc.root, "env", &s.env, e);
	if (r >= 0)
		r = read_list(doc.root, "hosts", &s.hosts, e);
	if (r >= 0)
		r = read_list(doc.root, "headers", &s.headers, e);
	if (r >= 0)
		r = read_list(doc.root, "in", &s.places, e);
	if (r >= 0)
		r = read_source(doc.root, &s, e);
	if (r >= 0)
		r = read_import(doc.root, &s, e);
	if (r >= 0)
		r = read_text(doc.root, "shape", &s.shape, e);
	if (r >= 0)
		r = read_text(doc.root, "alphabet", &s.alphabet, e);
	if (r >= 0 && s.alphabet[0] == '\0')
		r = err_set(e, ERR_CONFIG, EINVAL, "'alphabet' is empty");
	if (r < 0) {
		secret_done(&s);
		return r;
	}
	if (json_get(doc.root, "cache_s") && json_u64(json_get(doc.root, "cache_s"), &cache))
		s.cache = cache * NS_PER_SEC;
	*ret = s;
	return 0;
}
