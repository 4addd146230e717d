/* SPDX-License-Identifier: Apache-2.0 */
/* secret/login.c - see secret.h: subscriptions that an agent was logged in to on the host
 *
 * The agent's own token store is the source; it is never copied. Its access token becomes a secret of its hosts, read
 * anew whenever the host's agent has refreshed it. Inside lies the same file with placeholders for every token and a
 * time of expiry that is far away, so that nothing inside tries to refresh what it does not have. A token that is a
 * JWT keeps its claims: agents read them, and without the signature they open nothing.
 */
#include <time.h>

#include "base/io.h"
#include "secret/secret.h"

#define STORE_MAX ((size_t)256 * 1024)
#define FAR_AWAY_MS "4102444800000" /* 2100-01-01 */

const struct secret_login secret_logins[] = {
	{ "claude-login",
	  ".claude/.credentials.json",
	  { "claudeAiOauth", "accessToken" },
	  { "accessToken", "refreshToken" },
	  "expiresAt",
	  NULL,
	  { "CLAUDE_CODE_OAUTH_TOKEN" },
	  { "api.anthropic.com", "mcp-proxy.anthropic.com", "console.anthropic.com",
	    "platform.claude.com", "claude.ai" } },
	{ "codex-login",
	  ".codex/auth.json",
	  { "tokens", "access_token" },
	  { "access_token", "refresh_token", "id_token", "OPENAI_API_KEY" },
	  NULL,
	  "last_refresh",
	  { NULL },
	  { "chatgpt.com", "api.openai.com" } },
	{ "gemini-login",
	  ".gemini/oauth_creds.json",
	  { "access_token", NULL },
	  { "access_token", "refresh_token", "id_token" },
	  "expiry_date",
	  NULL,
	  { NULL },
	  { "cloudcode-pa.googleapis.com", "generativelanguage.googleapis.com",
	    "www.googleapis.com" } },
	{ NULL },
};

const struct secret_login *secret_login_find(const char *name)
{
	for (const struct secret_login *l = secret_logins; l->name; l++)
		if (str_eq(l->name, name))
			return l;
	return NULL;
}

/* The store is the agent's, and may hold more than we know. */
static int read_store(const char *path, struct buf *text, struct json_doc *doc, struct err *e)
{
	int r = io_read_file(path, text, e);

	if (r < 0)
		return r;
	r = json_parse_foreign(buf_cstr(text), text->n, doc, e);
	return r < 0 ? err_wrap(e, r, "'%s'", path) : 0;
}

static const struct json *access_of(const struct secret_login *l, const struct json *root)
{
	const struct json *v = root->type == JSON_OBJECT ? json_get(root, l->access[0]) : NULL;

	if (v && l->access[1])
		v = v->type == JSON_OBJECT ? json_get(v, l->access[1]) : NULL;
	return v && v->type == JSON_STRING && v->n > 0 ? v : NULL;
}

int secret_login_value(const struct secret *s, struct buf *ret, struct err *e)
{
	const struct secret_login *l = secret_login_find(s->name);
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(STORE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *v;
	int r = l ? read_store(s->from, &text, &doc, e) : -EINVAL;

	if (r < 0)
		return r;
	v = access_of(l, doc.root);
	if (v == NULL)
		return err_set(e, ERR_NOTFOUND, ENOENT, "'%s' holds no login", s->from);
	buf_add(ret, v->text, v->n);
	return 0;
}

int secret_login_describe(const char *name, const char *home, struct secret *ret, struct err *e)
{
	const struct secret_login *l = secret_login_find(name);
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	struct secret s = { .source = SECRET_LOGIN };
	int r;

	if (l == NULL || home == NULL)
		return -ENOENT;
	s.name = mem_str(name);
	s.from = mem_fmt("%s/%s", home, l->path);
	for (size_t i = 0; i < ARRAY_LEN(l->env) && l->env[i]; i++)
		secret_list_add(&s.env, l->env[i]);
	for (size_t i = 0; i < ARRAY_LEN(l->hosts) && l->hosts[i]; i++)
		secret_list_add(&s.hosts, l->hosts[i]);
	secret_list_add(&s.places, "header");
	r = secret_login_value(&s, &value, e);
	if (r >= 0)
		secret_take_claims(&s, (struct str){ .p = value.p, .n = value.n });
	if (r < 0)
		secret_done(&s);
	else
		*ret = s;
	return r;
}

/* ---- the file inside ---- */

/* A string of the store that lies below any of its objects under one of the names that hold tokens. */
static bool is_token(const struct secret_login *l, const struct json *v)
{
	for (size_t i = 0; i < ARRAY_LEN(l->tokens) && l->tokens[i]; i++)
		if (v->key && v->type == JSON_STRING && v->n > 0 && str_eq(v->key, l->tokens[i]))
			return true;
	return false;
}

static void put_time(struct buf *out)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[40];

	(void)gmtime_r(&now, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_json(out, text);
}

struct writer {
	const struct secret_login *l;
	const struct secret *s;
	const uint8_t *seed;
	const char *access; /* its placeholder */
	struct buf *out;
};

/* Every token has a placeholder of its own; only the access token's is ever swapped. */
static void put_token(const struct writer *w, const struct json *v)
{
	_cleanup_(
		secret_done) struct secret other = { .name = mem_fmt("%s %s", w->s->name, v->key) };
	_cleanup_(buf_done) struct buf b = BUF(2 * SECRET_VALUE_MAX);

	if (v->key && str_eq(v->key, w->l->access[1] ? w->l->access[1] : w->l->access[0])) {
		buf_json(w->out, w->access);
		return;
	}
	secret_take_claims(&other, (struct str){ .p = v->text, .n = v->n });
	secret_placeholder(&other, w->seed, &b);
	buf_json(w->out, buf_cstr(&b));
}

static void put_value(const struct writer *w, const struct json *v)
{
	bool is_object = v->type == JSON_OBJECT;

	if (is_token(w->l, v)) {
		put_token(w, v);
	} else if (w->l->expires && v->key && str_eq(v->key, w->l->expires)) {
		buf_puts(w->out, FAR_AWAY_MS);
	} else if (w->l->refreshed && v->key && str_eq(v->key, w->l->refreshed)) {
		put_time(w->out);
	} else if (v->type == JSON_STRING) {
		buf_json(w->out, v->text);
	} else if (v->type == JSON_NUMBER) {
		buf_puts(w->out, v->text);
	} else if (v->type == JSON_BOOL) {
		buf_puts(w->out, v->is_true ? "true" : "false");
	} else if (v->type == JSON_NULL) {
		buf_puts(w->out, "null");
	} else {
		buf_putc(w->out, is_object ? '{' : '[');
		for (const struct json *c = v->first; c; c = c->next) {
			if (c != v->first)
				buf_putc(w->out, ',');
			if (is_object) {
				buf_json(w->out, c->key);
				buf_putc(w->out, ':');
			}
			put_value(w, c);
		}
		buf_putc(w->out, is_object ? '}' : ']');
	}
}

int secret_login_file(const struct secret *s, const uint8_t seed[SECRET_SEED],
		      const char *placeholder, struct buf *out, struct err *e)
{
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(STORE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct writer w = { secret_login_find(s->name), s, seed, placeholder, out };
	int r = w.l ? read_store(s->from, &text, &doc, e) : -EINVAL;

	if (r < 0)
		return r;
	put_value(&w, doc.root);
	buf_putc(out, '\n');
	return 0;
}
