/* SPDX-License-Identifier: Apache-2.0 */
/* seal/login.c - see login.h
 *
 * A token is found by its key in the parsed answer and replaced in the bytes, wherever it stands in them: so the answer
 * stays what it was in every other respect, its length included. An answer in which a token cannot be found as it is
 * (written with escapes) or is too short to be stood for does not go inside at all.
 */
#include "seal/login.h"
#include "secret/secret.h"

_Static_assert(LOGIN_SEED == SECRET_SEED, "one kind of placeholder");

static void free_list(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

void logins_done(struct logins *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct login *g = &l->v[i];

		free(g->name);
		free_list(g->hosts, g->n_hosts);
		free_list(g->endpoints, g->n_endpoints);
		free_list(g->doors, g->n_doors);
		free_list(g->tokens, g->n_tokens);
	}
	explicit_bzero(l, sizeof(*l));
}

static int read_strings(const struct json *o, const char *key, char ***ret, size_t *ret_n,
			struct err *e)
{
	const struct json *list = json_get(o, key);

	if (list == NULL || list->type != JSON_ARRAY || list->n == 0)
		return err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' is a list", key);
	*ret = mem_new(list->n, sizeof(char *));
	for (const struct json *m = list->first; m; m = m->next) {
		if (m->type != JSON_STRING || m->n == 0)
			return err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' holds strings", key);
		(*ret)[(*ret_n)++] = mem_str(m->text);
	}
	return 0;
}

int logins_add(struct logins *l, const struct json *o, struct err *e)
{
	const struct json *name = o->type == JSON_OBJECT ? json_get(o, "name") : NULL;
	struct login *g;
	int r;

	if (name == NULL || name->type != JSON_STRING || name->n == 0)
		return err_set(e, ERR_CONFIG, EINVAL, "a login needs a name");
	if (l->n == LOGINS_MAX)
		return err_set(e, ERR_CONFIG, E2BIG, "more than %d logins", LOGINS_MAX);
	g = &l->v[l->n++];
	*g = (struct login){ .name = mem_str(name->text) };
	r = read_strings(o, "hosts", &g->hosts, &g->n_hosts, e);
	if (r >= 0)
		r = read_strings(o, "endpoints", &g->endpoints, &g->n_endpoints, e);
	if (r >= 0)
		r = read_strings(o, "tokens", &g->tokens, &g->n_tokens, e);
	if (r < 0)
		return r;
	g->doors = mem_new(g->n_endpoints, sizeof(char *));
	for (size_t i = 0; i < g->n_endpoints; i++)
		g->doors[g->n_doors++] = mem_strn(g->endpoints[i], strcspn(g->endpoints[i], "/"));
	return 0;
}

const struct login *logins_find(const struct logins *l, const char *host, struct str path)
{
	struct str bare = str_first(path, str_find(path, '?'));

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->v[i].n_endpoints; k++) {
			const char *at = strchr(l->v[i].endpoints[k], '/');

			if (at && str_eq(l->v[i].doors[k], host) && str_is(bare, at))
				return &l->v[i];
		}
	return NULL;
}

struct taking {
	const struct logins *all;
	const struct login *l;
	struct vault *v;
	struct buf *text;
	int n;
};

static size_t replace_all(struct buf *text, struct str word, const char *by)
{
	char *at = text->p, *end = text->p + text->n;
	size_t n = 0;

	while ((at = memmem(at, (size_t)(end - at), word.p, word.n)) != NULL) {
		memcpy(at, by, word.n);
		at += word.n;
		n++;
	}
	return n;
}

static int take_token(struct taking *t, const struct json *v, struct err *e)
{
	_cleanup_(secret_done) struct secret s = { .name = mem_fmt("%s %s", t->l->name, v->key) };
	_cleanup_(buf_done) struct buf holder = BUF(2 * SECRET_VALUE_MAX);
	struct str value = { .p = v->text, .n = v->n };
	const struct vault_entry entry = { .name = s.name,
					   .hosts = t->l->hosts,
					   .n_hosts = t->l->n_hosts,
					   .doors = t->l->doors,
					   .n_doors = t->l->n_doors,
					   .places = VAULT_HEADER };
	int r;

	secret_take_claims(&s, value);
	secret_placeholder(&s, t->all->seed, &holder);
	if (holder.n != value.n || holder.is_over)
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' is too short to be stood for", v->key);
	r = vault_capture(t->v, &entry, buf_cstr(&holder), value);
	if (r < 0)
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' cannot be kept: %s", v->key,
			       strerror(-r));
	if (replace_all(t->text, value, buf_cstr(&holder)) == 0)
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' is not written as it is", v->key);
	t->n++;
	return 0;
}

static bool is_token(const struct login *l, const struct json *v)
{
	for (size_t i = 0; i < l->n_tokens; i++)
		if (v->key && v->type == JSON_STRING && v->n > 0 && str_eq(v->key, l->tokens[i]))
			return true;
	return false;
}

static int take_below(struct taking *t, const struct json *v, struct err *e)
{
	int r = is_token(t->l, v) ? take_token(t, v, e) : 0;

	if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
		return r;
	for (const struct json *c = v->first; c && r >= 0; c = c->next)
		r = take_below(t, c, e);
	return r;
}

/* The tree of the parsed answer holds the tokens once more. */
static void wipe_tree(struct json *v)
{
	if (v->type == JSON_STRING && v->n > 0)
		explicit_bzero((char *)(uintptr_t)v->text, v->n);
	if (v->type == JSON_OBJECT || v->type == JSON_ARRAY)
		for (struct json *c = v->first; c; c = c->next)
			wipe_tree(c);
}

int login_take(const struct logins *all, const struct login *l, struct vault *v, struct buf *text,
	       struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct taking t = { .all = all, .l = l, .v = v, .text = text };
	int r;

	if (text->n == 0)
		return 0;
	r = json_parse_foreign(text->p, text->n, &doc, e);
	if (r < 0)
		return err_set(e, ERR_DENIED, EBADMSG, "it cannot be read");
	r = take_below(&t, doc.root, e);
	wipe_tree(doc.root);
	return r < 0 ? -EBADMSG : t.n;
}
