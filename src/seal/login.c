/* SPDX-License-Identifier: Apache-2.0 */
/* seal/login.c - see login.h
 *
 * A token is found by its key in the parsed answer and replaced in the bytes, wherever it stands in them: so the answer
 * stays what it was in every other respect, its length included. An answer in which a token cannot be found as it is
 * (written with escapes) or is too short to be stood for does not go inside at all.
 */
#include "seal/login.h"
#include "base/sabotage.h"
#include "http/head.h"
#include "http/uri.h"
#include "secret/secret.h"

_Static_assert(LOGIN_SEED == SECRET_SEED, "one kind of placeholder");
_Static_assert(MASK_SHORTEST == SECRET_VALUE_MIN, "what can be kept can be masked");

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
		free_list(g->closed, g->n_closed);
		free_list(g->marks, g->n_marks);
		path_rules_done(&g->pages);
		path_rules_done(&g->texts);
	}
	explicit_bzero(l, sizeof(*l));
}

static int read_strings(const struct json *o, const char *key, char ***ret, size_t *ret_n,
			struct err *e)
{
	const struct json *list = json_get(o, key);

	if (list == NULL || list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' is a list", key);
	if (list->n == 0)
		return 0;
	*ret = mem_new(list->n, sizeof(char *));
	for (const struct json *m = list->first; m; m = m->next) {
		if (m->type != JSON_STRING || m->n == 0)
			return err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' holds strings", key);
		(*ret)[(*ret_n)++] = mem_str(m->text);
	}
	return 0;
}

static int read_rules(const struct json *o, const char *key, struct path_rules *ret, struct err *e)
{
	const struct json *list = json_get(o, key);
	int r = list && list->type == JSON_ARRAY
			? 0
			: err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' is a list", key);

	for (const struct json *m = r < 0 ? NULL : list->first; m && r >= 0; m = m->next)
		r = m->type == JSON_STRING
			    ? path_rules_add(ret, false, m->text, e)
			    : err_set(e, ERR_CONFIG, EINVAL, "logins: '%s' holds strings", key);
	return r;
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
	if (r >= 0)
		r = read_strings(o, "closed", &g->closed, &g->n_closed, e);
	if (r >= 0)
		r = read_strings(o, "marks", &g->marks, &g->n_marks, e);
	if (r >= 0)
		r = read_rules(o, "texts", &g->texts, e);
	if (r >= 0)
		r = read_rules(o, "pages", &g->pages, e);
	if (r >= 0 && (g->n_hosts == 0 || g->n_endpoints == 0 || g->n_tokens == 0))
		r = err_set(e, ERR_CONFIG, EINVAL, "login '%s' has no host, endpoint or token",
			    g->name);
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

bool logins_cover(const struct logins *l, const char *host)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->v[i].n_doors; k++)
			if (str_eq(l->v[i].doors[k], host))
				return true;
	return false;
}

bool logins_concern(const struct logins *l, const char *host)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->v[i].n_hosts; k++)
			if (host_matches(l->v[i].hosts[k], host))
				return true;
	return logins_cover(l, host);
}

static bool is_below(struct str path, struct str prefix)
{
	return prefix.n <= 1 ||
	       (path.n >= prefix.n && strncasecmp(path.p, prefix.p, prefix.n) == 0 &&
		(path.n == prefix.n || path.p[prefix.n] == '/'));
}

/* Does the path lie at or below one of these "host/prefix"? Where a secret alone makes a host's paths canonical, a slash may
 * be encoded (http_check_canonical): then a prefix counts wherever it stands in the decoded path. */
static bool is_below_any(char *const *v, size_t n, const char *host, struct str path)
{
	_cleanup_(buf_done) struct buf plain = BUF(HTTP_HEAD_MAX);
	bool is_encoded = str_find(path, '%') < path.n;

	if (is_encoded)
		http_decode_twice(path, &plain);
	for (size_t i = 0; i < n; i++) {
		const char *prefix = strchrnul(v[i], '/');
		size_t host_n = (size_t)(prefix - v[i]);

		if (strlen(host) != host_n || memcmp(v[i], host, host_n) != 0)
			continue;
		if (is_below(path, str_of(prefix)) ||
		    (is_encoded && strcasestr(buf_cstr(&plain), prefix)))
			return true;
	}
	return false;
}

static struct str without_query(struct str path)
{
	return str_first(path, str_find(path, '?'));
}

/* Does a rule list this request? A path that can be read in two ways is listed by none. */
static bool is_listed(const struct path_rules *r, const char *host, struct str method,
		      struct str path)
{
	const struct path_rule *rule = NULL;
	struct err ignored = ERR_INIT;

	return path_judge(r, host, method, path, &rule, &ignored) == 0 && rule;
}

int logins_judge(const struct logins *l, const char *host, struct str method, struct str target,
		 struct err *e)
{
	struct str path = without_query(target);
	bool is_endpoint = str_is(method, "POST") && logins_find(l, host, path);

	for (size_t i = 0; i < l->n && !is_endpoint; i++) {
		const struct login *g = &l->v[i];

		if (!is_below_any(g->closed, g->n_closed, host, path) ||
		    is_listed(&g->pages, host, method, path))
			continue;
		return err_set(e, ERR_DENIED, EACCES,
			       "this is where %s gives out tokens, and %.*s %.*s is no request of "
			       "its agent that is known; a newer agent may need a newer Vitrine",
			       g->name, (int)method.n, method.p, (int)(path.n < 200 ? path.n : 200),
			       path.p);
	}
	return 0;
}

const struct login *logins_watch(const struct logins *l, const char *host, struct str target)
{
	struct str path = without_query(target);

	for (size_t i = 0; i < l->n; i++) {
		const struct login *g = &l->v[i];
		bool is_door = false;

		for (size_t k = 0; k < g->n_doors; k++)
			is_door |= str_eq(g->doors[k], host);
		if (is_door && !is_listed(&g->texts, host, STR("GET"), path))
			return g;
	}
	return NULL;
}

enum { SHORT_MARK = 4, LEAST_TOKEN = 12, LEAST_CUT = 4, DECODINGS = 4 };

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
	       (c != '\0' && strchr("-._~+/=", c));
}

/* Does a word begin at `at`? Also behind an escape of JSON or of a form, whose last letter is none of the word. */
static bool begins_word(struct str text, size_t at)
{
	const char *p = text.p + at;

	return at == 0 || !is_token_char(p[-1]) || strchr("=/.~", p[-1]) ||
	       (at >= 2 && p[-2] == '\\') || (at >= 3 && p[-3] == '%') ||
	       (at >= 6 && p[-6] == '\\' && p[-5] == 'u');
}

/* The mark stands at `at`: is what follows as long as a token is, with a digit in it? A text that ends inside such a word was
 * cut off there: a few letters are enough. */
static bool is_token_at(struct str text, size_t at, size_t mark, bool may_be_cut)
{
	bool has_digit = false;
	size_t n = 0;

	if (mark <= SHORT_MARK && !begins_word(text, at))
		return false;
	for (size_t i = at + mark; i < text.n && is_token_char(text.p[i]); i++, n++)
		has_digit |= text.p[i] >= '0' && text.p[i] <= '9';
	return (has_digit && n >= LEAST_TOKEN) ||
	       (may_be_cut && at + mark + n == text.n && n >= LEAST_CUT);
}

/* Where the next token stands, at or behind `from`; text.n: nowhere. */
static size_t next_token(struct str text, size_t from, const char *mark, bool may_be_cut)
{
	size_t n = strlen(mark);

	while (from < text.n) {
		const char *at = memmem(text.p + from, text.n - from, mark, n);

		if (at == NULL)
			break;
		from = (size_t)(at - text.p);
		if (is_token_at(text, from, n, may_be_cut))
			return from;
		from++;
	}
	return text.n;
}

static const char *token_as_written(const struct login *l, const struct vault *v, struct str text,
				    bool may_be_cut)
{
	for (size_t i = 0; i < l->n_marks; i++)
		for (size_t at = 0; (at = next_token(text, at, l->marks[i], may_be_cut)) < text.n;
		     at++)
			if (!vault_is_placeholder(v, str_from(text, at)))
				return l->marks[i];
	return NULL;
}

static int hex_of(struct str s)
{
	int v = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		int digit = c >= '0' && c <= '9'                 ? c - '0'
			    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
								 : -1;

		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

/* One character behind an escape, of JSON or of an address: how many bytes it takes, 0 where there is none. */
static size_t read_escape(struct str s, char *ret)
{
	size_t n = s.n >= 6 && s.p[0] == '\\' && s.p[1] == 'u' ? 6
		   : s.n >= 3 && s.p[0] == '%'                 ? 3
							       : 0;
	int v = n ? hex_of(str_from(str_first(s, n), n == 6 ? 2 : 1)) : -1;

	if (v >= 0) {
		*ret = (char)(v < 0x80 ? v : '?'); /* no token has such a letter */
		return n;
	}
	if (s.n < 2 || s.p[0] != '\\')
		return 0;
	*ret = s.p[1];
	if (strchr("bfnrt", s.p[1]))
		*ret = ' ';
	return 2;
}

/* The text with its escapes read, and without zeros, which stand between the letters of UTF-16. False: there were none. */
static bool decode_once(struct str in, struct buf *out)
{
	bool has_changed = false;

	for (size_t i = 0; i < in.n;) {
		char c = in.p[i];
		size_t n = c == '\\' || c == '%' ? read_escape(str_from(in, i), &c) : 0;

		has_changed |= n > 0 || c == '\0';
		if (c != '\0')
			buf_putc(out, c);
		i += n > 0 ? n : 1;
	}
	return has_changed;
}

static bool has_escape(struct str s)
{
	return s.n > 0 &&
	       (memchr(s.p, '\\', s.n) || memchr(s.p, '%', s.n) || memchr(s.p, '\0', s.n));
}

const char *login_token_in(const struct login *l, const struct vault *v, struct str text,
			   bool may_be_cut)
{
	_cleanup_(secret_wipe) struct buf a = { 0 }, b = { 0 };
	const char *mark = token_as_written(l, v, text, may_be_cut);

	if (mark || !has_escape(text) || sabotaged("seal-escape"))
		return mark;
	a = secret_buf_of(text.n + 1);
	b = secret_buf_of(text.n + 1);
	for (int i = 0; i < DECODINGS && mark == NULL; i++) {
		struct buf *to = i % 2 ? &b : &a;

		to->n = 0;
		if (!decode_once(text, to))
			break;
		text = (struct str){ .p = buf_cstr(to), .n = to->n };
		mark = token_as_written(l, v, text, may_be_cut);
	}
	return mark;
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
	_cleanup_(secret_done) struct secret s = { .name = mem_fmt("%s %.60s", t->l->name,
								   v->key ? v->key : "value") };
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
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' is too short to be stood for", s.name);
	r = vault_capture(t->v, &entry, buf_cstr(&holder), value);
	if (r < 0)
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' cannot be kept: %s", s.name,
			       strerror(-r));
	if (replace_all(t->text, value, buf_cstr(&holder)) == 0)
		return err_set(e, ERR_DENIED, EBADMSG, "'%s' is not written as it is", s.name);
	t->n++;
	return 0;
}

/* By the key under which it stands, or by how it begins. */
static bool is_token(const struct login *l, const struct json *v)
{
	if (v->type != JSON_STRING || v->n == 0)
		return false;
	for (size_t i = 0; i < l->n_tokens; i++)
		if (v->key && str_eq(v->key, l->tokens[i]))
			return true;
	for (size_t i = 0; i < l->n_marks; i++)
		if (str_starts(v->text, l->marks[i]) &&
		    is_token_at((struct str){ .p = v->text, .n = v->n }, 0, strlen(l->marks[i]),
				false))
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

int login_take(const struct logins *all, const struct login *l, struct vault *v, bool is_success,
	       struct buf *text, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct taking t = { .all = all, .l = l, .v = v, .text = text };
	int r;

	if (text->n == 0)
		return 0;
	r = json_parse_foreign(text->p, text->n, &doc, e);
	if (r < 0 && !is_success)
		return login_token_in(l, v, (struct str){ .p = text->p, .n = text->n }, true)
			       ? err_set(e, ERR_DENIED, EBADMSG,
					 "a token stands where none is expected")
			       : 0;
	if (r < 0)
		return err_set(e, ERR_DENIED, EBADMSG, "it cannot be read");
	r = take_below(&t, doc.root, e);
	wipe_tree(doc.root);
	if (r < 0)
		return -EBADMSG;
	/* Tokens were replaced by placeholders: one that is left stands inside another text, or has escapes in it. */
	return login_token_in(l, v, (struct str){ .p = text->p, .n = text->n }, true)
		       ? err_set(e, ERR_DENIED, EBADMSG, "a token stands inside another text")
		       : t.n;
}
