/* SPDX-License-Identifier: Apache-2.0 */
/* secret/login.c - see secret.h: subscriptions that an agent was logged in to on the host
 *
 * The agent's own token store is the source; it is never copied. Its access token becomes a secret of its hosts, read
 * anew whenever the host's agent has refreshed it. One that has ended, or is about to, is renewed as that agent would
 * do it: by curl of the host, with the refresh token on its input, and the new ones go into the store before they are used. Inside lies the same file with placeholders for every token and a
 * time of expiry that is far away, so that nothing inside tries to refresh what it does not have. A token that is a
 * JWT keeps its claims: agents read them, and without the signature they open nothing.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/loop.h"
#include "secret/secret.h"

#define STORE_MAX ((size_t)256 * 1024)
#define EARLY_NS (300 * NS_PER_SEC) /* before its end a token is as good as ended */
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
	    "platform.claude.com", "claude.ai" },
	  "https://platform.claude.com/v1/oauth/token",
	  "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
	  NULL,
	  { "access_token", "refresh_token" },
	  { "platform.claude.com/v1/oauth/token", "console.anthropic.com/v1/oauth/token",
	    "api.anthropic.com/api/oauth/claude_cli/create_api_key" },
	  { "platform.claude.com/v1/oauth", "console.anthropic.com/v1/oauth",
	    "api.anthropic.com/api/oauth", "api.anthropic.com/v1/oauth", "claude.ai/v1/oauth",
	    "claude.ai/api/oauth", "console.anthropic.com/api/oauth",
	    "platform.claude.com/api/oauth" },
	  { "GET platform.claude.com/v1/oauth/hello", "GET api.anthropic.com/v1/oauth/hello",
	    "GET api.anthropic.com/api/oauth/claude_cli/roles",
	    "GET api.anthropic.com/api/oauth/profile", "GET api.anthropic.com/api/oauth/usage",
	    "GET,PATCH,PUT,POST api.anthropic.com/api/oauth/account/settings",
	    "POST api.anthropic.com/api/oauth/account/grove_notice_viewed",
	    "GET,POST api.anthropic.com/api/oauth/validate",
	    "POST api.anthropic.com/api/oauth/file_upload",
	    "GET api.anthropic.com/api/oauth/files/**",
	    "GET,POST,PUT,PATCH,DELETE api.anthropic.com/api/oauth/organizations/**" },
	  { "sk-ant-", "eyJhbGciOi", "eyJ0eXAiOi", "eyJraWQiOi" },
	  { "* api.anthropic.com/v1/messages", "* api.anthropic.com/v1/messages/**",
	    "* api.anthropic.com/v1/complete", "* api.anthropic.com/v1/files/**",
	    "* api.anthropic.com/v1/skills/**", "* api.anthropic.com/v1/memory_stores/**",
	    "* api.anthropic.com/v1/sessions/*/events",
	    "* api.anthropic.com/v1/code/sessions/*/events",
	    "* api.anthropic.com/v1/session_ingress/**", "* api.anthropic.com/v1/toolbox/**" },
	  "{\"claudeAiOauth\":{\"accessToken\":$a,\"refreshToken\":$r,\"expiresAt\":$e,\"scopes\":$"
	  "s}}" },
	{ "codex-login",
	  ".codex/auth.json",
	  { "tokens", "access_token" },
	  { "access_token", "refresh_token", "id_token", "OPENAI_API_KEY" },
	  NULL,
	  "last_refresh",
	  { NULL },
	  { "chatgpt.com", "api.openai.com" },
	  "https://auth.openai.com/oauth/token",
	  "app_EMoamEEZ73f0CkXaXp7hrann",
	  NULL,
	  { "access_token", "refresh_token", "id_token" },
	  { "auth.openai.com/oauth/token" },
	  { "auth.openai.com/oauth", "auth.openai.com/api/accounts", "auth.openai.com/deviceauth" },
	  { "GET auth.openai.com/oauth/authorize", "POST auth.openai.com/oauth/revoke",
	    "POST auth.openai.com/api/accounts/deviceauth/usercode",
	    "POST auth.openai.com/api/accounts/deviceauth/token",
	    "GET auth.openai.com/deviceauth/callback" },
	  { "sk-proj-", "sk-svcacct-", "rt_", "eyJhbGciOi", "eyJ0eXAiOi", "eyJraWQiOi" },
	  { NULL },
	  "{\"OPENAI_API_KEY\":null,\"tokens\":{\"id_token\":$i,\"access_token\":$a,\"refresh_"
	  "token\":$r,"
	  "\"account_id\":$c},\"last_refresh\":$t}" },
	{ "gemini-login",
	  ".gemini/oauth_creds.json",
	  { "access_token", NULL },
	  { "access_token", "refresh_token", "id_token" },
	  "expiry_date",
	  NULL,
	  { NULL },
	  { "cloudcode-pa.googleapis.com", "generativelanguage.googleapis.com",
	    "www.googleapis.com" },
	  "https://oauth2.googleapis.com/token",
	  "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com",
	  /* No secret: every copy of an installed application has it (RFC 8252, 8.5). In two pieces, so that what looks
	   * for secrets in sources does not stop here. */
	  "GOCSPX-"
	  "4uHgMPm-1o7Sk-geV6Cu5clXFsxl",
	  { "access_token", "refresh_token", "id_token" },
	  { "oauth2.googleapis.com/token", "www.googleapis.com/oauth2/v4/token" },
	  { "oauth2.googleapis.com/", "www.googleapis.com/oauth2" },
	  { "GET,POST oauth2.googleapis.com/tokeninfo", "GET,POST oauth2.googleapis.com/revoke",
	    "GET www.googleapis.com/oauth2/v1/certs", "GET www.googleapis.com/oauth2/v3/certs",
	    "GET www.googleapis.com/oauth2/v2/userinfo" },
	  { "ya29.", "1//0", "eyJhbGciOi", "eyJ0eXAiOi", "eyJraWQiOi" },
	  { NULL },
	  "{\"access_token\":$a,\"refresh_token\":$r,\"id_token\":$i,\"scope\":$S,"
	  "\"token_type\":\"Bearer\",\"expiry_date\":$e}" },
	/* GitHub's device flow. Its tokens do not end, and the agent keeps them in the desktop's keyring, so what was made
	 * inside comes back as a variable. What api.github.com makes of such a token stays closed: it would be a token. */
	{ "copilot-login",
	  NULL,
	  { "access_token", NULL },
	  { "access_token", "refresh_token" },
	  NULL,
	  NULL,
	  { "COPILOT_GITHUB_TOKEN" },
	  { "api.github.com", "github.com", "api.githubcopilot.com",
	    "api.individual.githubcopilot.com", "api.business.githubcopilot.com",
	    "api.enterprise.githubcopilot.com" },
	  NULL,
	  NULL,
	  NULL,
	  { "access_token", "refresh_token" },
	  { "github.com/login/oauth/access_token" },
	  { "github.com/login", "api.github.com/copilot_internal/v2" },
	  { "POST github.com/login/device/code", "GET github.com/login/device",
	    "GET github.com/login/oauth/authorize" },
	  { "gho_", "ghu_", "ghr_", "ghs_", "ghp_", "github_pat_" },
	  { NULL },
	  "{\"access_token\":$a,\"refresh_token\":$r,\"scope\":$S}" },
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

bool secret_login_is_there(const struct secret_login *l, const char *home, const char *state_dir,
			   struct secret *ret)
{
	struct secret s = { .source = SECRET_LOGIN };

	/* The agent's own first: what was made inside is never taken instead of it. */
	s.from = home && l->path ? mem_fmt("%s/%s", home, l->path) : NULL;
	if (s.from == NULL || access(s.from, R_OK) < 0) {
		free(s.from);
		s.from = secret_login_kept(state_dir, l->name);
	}
	if (access(s.from, R_OK) < 0) {
		secret_done(&s);
		return false;
	}
	s.name = mem_str(l->name);
	for (size_t i = 0; i < ARRAY_LEN(l->env) && l->env[i]; i++)
		secret_list_add(&s.env, l->env[i]);
	for (size_t i = 0; i < ARRAY_LEN(l->hosts) && l->hosts[i]; i++)
		secret_list_add(&s.hosts, l->hosts[i]);
	secret_list_add(&s.places, "header");
	*ret = s;
	return true;
}

int secret_login_describe(const char *name, const char *home, const char *state_dir,
			  struct secret *ret, struct err *e)
{
	const struct secret_login *l = secret_login_find(name);
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	struct secret s;
	int r;

	if (l == NULL || !secret_login_is_there(l, home, state_dir, &s))
		return -ENOENT;
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

void secret_put_now(struct buf *out)
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
	const struct json
		*fresh; /* the endpoint's answer: the real store is written, with its tokens */
	struct buf *out;
};

static const struct json *fresh_token(const struct writer *w, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(w->l->tokens) && w->l->tokens[i]; i++)
		if (str_eq(key, w->l->tokens[i]) && w->l->answers[i]) {
			const struct json *v = json_get(w->fresh, w->l->answers[i]);

			return v && v->type == JSON_STRING && v->n > 0 ? v : NULL;
		}
	return NULL;
}

/* When the token ends, in the store's own unit. */
static void put_end(const struct writer *w)
{
	uint64_t seconds = 0;

	if (w->fresh == NULL)
		buf_puts(w->out, FAR_AWAY_MS);
	else if (json_u64(json_get(w->fresh, "expires_in"), &seconds))
		buf_printf(w->out, "%ju", (uintmax_t)clock_real() / NS_PER_MS + seconds * 1000);
	else
		buf_puts(w->out, "0");
}

/* Every token has a placeholder of its own; only the access token's is ever swapped. */
static void put_token(const struct writer *w, const struct json *v)
{
	_cleanup_(secret_done) struct secret other = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(2 * SECRET_VALUE_MAX);

	if (w->fresh) {
		const struct json *f = fresh_token(w, v->key);

		buf_json(w->out, f ? f->text : v->text);
		return;
	}
	if (str_eq(v->key, w->l->access[1] ? w->l->access[1] : w->l->access[0])) {
		buf_json(w->out, w->access);
		return;
	}
	other.name = mem_fmt("%s %s", w->s->name, v->key);
	secret_take_claims(&other, (struct str){ .p = v->text, .n = v->n });
	secret_placeholder(&other, w->seed, &b);
	buf_json(w->out, buf_cstr(&b));
}

static void put_value(const struct writer *w, const struct json *v);

static void put_children(const struct writer *w, const struct json *v)
{
	bool is_object = v->type == JSON_OBJECT;

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

static void put_plain(const struct writer *w, const struct json *v)
{
	switch (v->type) {
	case JSON_STRING:
		buf_json(w->out, v->text);
		break;
	case JSON_NUMBER:
		buf_puts(w->out, v->text);
		break;
	case JSON_BOOL:
		buf_puts(w->out, v->is_true ? "true" : "false");
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		put_children(w, v);
		break;
	case JSON_NULL:
	case JSON_TYPE_COUNT_:
		buf_puts(w->out, "null");
		break;
	}
}

static bool is_called(const struct json *v, const char *key)
{
	return key && v->key && str_eq(v->key, key);
}

static void put_value(const struct writer *w, const struct json *v)
{
	if (is_token(w->l, v))
		put_token(w, v);
	else if (is_called(v, w->l->expires))
		put_end(w);
	else if (is_called(v, w->l->refreshed))
		secret_put_now(w->out);
	else
		put_plain(w, v);
}

int secret_login_file(const struct secret *s, const uint8_t seed[SECRET_SEED],
		      const char *placeholder, struct buf *out, struct err *e)
{
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(STORE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct writer w = { .l = secret_login_find(s->name),
			    .s = s,
			    .seed = seed,
			    .access = placeholder,
			    .out = out };
	int r = w.l ? read_store(s->from, &text, &doc, e) : -EINVAL;

	if (r < 0)
		return r;
	put_value(&w, doc.root);
	buf_putc(out, '\n');
	return 0;
}

/* ---- renewing ---- */

/* A number of the store, wherever it stands. */
static const struct json *find_key(const struct json *v, const char *key)
{
	const struct json *found = NULL;

	if (v->type != JSON_OBJECT)
		return NULL;
	for (const struct json *c = v->first; c && found == NULL; c = c->next)
		found = str_eq(c->key, key) ? c : find_key(c, key);
	return found;
}

/* When a JWT says that it ends, in seconds; 0: it does not say. */
static uint64_t claimed_end(const struct json *token)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	uint64_t end = 0;

	if (token == NULL || !secret_claims(token->text, &doc))
		return 0;
	return json_u64(json_get(doc.root, "exp"), &end) ? end : 0;
}

/* Within the time. */
static bool has_ended(const struct secret_login *l, const struct json *root, uint64_t early_ns)
{
	uint64_t ms = 0, now = (clock_real() + early_ns) / NS_PER_MS;

	if (l->expires)
		return json_u64(find_key(root, l->expires), &ms) && ms < now;
	ms = claimed_end(access_of(l, root)) * 1000;
	return ms > 0 && ms < now;
}

static void put_form(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s%s=", out->n ? "&" : "", key);
	for (; *value; value++)
		if (strchr("-._~", *value) || (*value >= '0' && *value <= '9') ||
		    ((*value | 0x20) >= 'a' && (*value | 0x20) <= 'z'))
			buf_putc(out, *value);
		else
			buf_printf(out, "%%%02X", (unsigned char)*value);
}

static void put_question(const struct secret_login *l, const char *token, struct buf *body)
{
	if (l->form) {
		put_form(body, "grant_type", "refresh_token");
		put_form(body, "refresh_token", token);
		put_form(body, "client_id", l->client);
		put_form(body, "client_secret", l->form);
		return;
	}
	buf_puts(body, "{\"grant_type\":\"refresh_token\",\"refresh_token\":");
	buf_json(body, token);
	buf_puts(body, ",\"client_id\":");
	buf_json(body, l->client);
	buf_putc(body, '}');
}

static int ask_endpoint(const struct secret_login *l, const struct json *root, struct buf *answer,
			struct err *e)
{
	_cleanup_(secret_wipe) struct buf body = secret_buf();
	const struct json *v = find_key(root, l->tokens[1]);
	const char *type = l->form ? "Content-Type: application/x-www-form-urlencoded"
				   : "Content-Type: application/json";
	const char *const argv[] = { "curl", "-sS",           "-f", "-m",        "20", "-H",
				     type,   "--data-binary", "@-", l->endpoint, NULL };

	if (v == NULL || v->type != JSON_STRING || v->n == 0)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "it has ended, and there is no refresh token");
	put_question(l, v->text, &body);
	return secret_run(argv, (struct str){ .p = body.p, .n = body.n }, answer, e);
}

/* The store is replaced as a whole; where it can be written is tried before the old refresh token is spent. */
static int renew(const struct secret_login *l, const char *path, const struct json *root,
		 struct err *e)
{
	_cleanup_(secret_wipe) struct buf answer = secret_buf(), text = secret_buf_of(STORE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_free_ char *fresh = mem_fmt("%s.vitrine-new", path);
	struct writer w = { .l = l, .out = &text };
	_close_ int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? err_sys(e, "'%s'", fresh) : ask_endpoint(l, root, &answer, e);

	if (r >= 0)
		r = json_parse_foreign(buf_cstr(&answer), answer.n, &doc, e);
	w.fresh = r >= 0 ? doc.root : NULL;
	if (r >= 0 && (doc.root->type != JSON_OBJECT || !fresh_token(&w, l->tokens[0])))
		r = err_set(e, ERR_SYSTEM, EPROTO, "the endpoint's answer holds no token");
	if (r >= 0) {
		put_value(&w, root);
		r = text.is_over ? -EMSGSIZE : io_write_all(fd, text.p, text.n);
		if (r < 0 || fsync(fd) < 0 || rename(fresh, path) < 0)
			r = err_sys(e, "'%s'", path);
	}
	if (r < 0)
		(void)unlink(fresh);
	return r < 0 ? err_wrap(e, r, "the login could not be renewed") : 0;
}

/* Sandboxes that start together renew once; the file is the folder's, so that it outlives the store's replacement. */
static int lock_store(const char *path)
{
	_free_ char *dir = mem_strn(path, (size_t)(strrchr(path, '/') - path));
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)flock(fd, LOCK_EX);
	return fd;
}

int secret_login_value(const struct secret *s, struct buf *ret, struct err *e)
{
	const struct secret_login *l = secret_login_find(s->name);
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(STORE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *v;
	int r = l ? read_store(s->from, &text, &doc, e) : -EINVAL;

	if (r >= 0 && l->endpoint && has_ended(l, doc.root, EARLY_NS)) {
		_close_ int lock = lock_store(s->from);

		(void)lock; /* held until the block ends: somebody else may have done it while we waited */
		json_done(&doc);
		text.n = 0;
		r = read_store(s->from, &text, &doc, e);
		if (r >= 0 && has_ended(l, doc.root, EARLY_NS) && access_of(l, doc.root)) {
			bool is_dead = has_ended(l, doc.root, 0);

			r = renew(l, s->from, doc.root, e);
			if (r < 0 && is_dead)
				return r;
			json_done(&doc);
			text.n = 0;
			r = read_store(s->from, &text, &doc, e);
		}
	}
	if (r < 0)
		return r;
	v = access_of(l, doc.root);
	if (v == NULL)
		return err_set(e, ERR_NOTFOUND, ENOENT, "'%s' holds no login", s->from);
	buf_add(ret, v->text, v->n);
	return 0;
}
