/* SPDX-License-Identifier: Apache-2.0 */
/* secret/capture.c - see secret.h: logins made inside
 *
 * vitrine-seal takes the tokens out of the answer that gives them out (seal/login.c), and the keeper keeps them here: in
 * STATE/secrets/NAME.login, owner only, in the form in which the agent itself keeps them, so that all that is known of a
 * login of the host (login.c) holds for it too. The host's own store is neither written nor outdone: whoever is inside can
 * log in to an account of its own, and must not thereby change what the person or another sandbox is logged in to.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "secret/secret.h"

char *secret_login_kept(const char *state_dir, const char *name)
{
	return mem_fmt("%s/secrets/%s.login", state_dir, name);
}

static void put_list(struct buf *out, const char *key, const char *const *v, size_t max)
{
	buf_printf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < max && v[i]; i++) {
		buf_puts(out, i ? "," : "");
		buf_json(out, v[i]);
	}
	buf_putc(out, ']');
}

void secret_login_terms(const struct secret_login *l, struct buf *out)
{
	static const char *const tokens[] = { "access_token", "refresh_token", "id_token",
					      "raw_key" };

	buf_puts(out, "{\"name\":");
	buf_json(out, l->name);
	put_list(out, "hosts", l->hosts, ARRAY_LEN(l->hosts));
	put_list(out, "endpoints", l->gives, ARRAY_LEN(l->gives));
	put_list(out, "tokens", tokens, ARRAY_LEN(tokens));
	put_list(out, "closed", l->closed, ARRAY_LEN(l->closed));
	put_list(out, "pages", l->pages, ARRAY_LEN(l->pages));
	put_list(out, "marks", l->marks, ARRAY_LEN(l->marks));
	put_list(out, "texts", l->texts, ARRAY_LEN(l->texts));
	buf_putc(out, '}');
}

bool secret_claims(const char *token, struct json_doc *ret)
{
	_cleanup_(buf_done) struct buf text = BUF(SECRET_VALUE_MAX), claims = BUF(SECRET_VALUE_MAX);
	const char *from = strchr(token, '.'), *to = from ? strchr(from + 1, '.') : NULL;
	struct err e = ERR_INIT;

	for (const char *c = from ? from + 1 : NULL; to && c < to; c++)
		buf_putc(&text, (char)(*c == '-' ? '+' : *c == '_' ? '/' : *c));
	while (text.n % 4)
		buf_putc(&text, '=');
	if (to == NULL || !base64_read((struct str){ .p = text.p, .n = text.n }, &claims) ||
	    json_parse_foreign(buf_cstr(&claims), claims.n, ret, &e) < 0)
		return false;
	if (ret->root->type == JSON_OBJECT)
		return true;
	json_done(ret);
	*ret = (struct json_doc){ 0 };
	return false;
}

/* ---- the store ---- */

static void put_string(struct buf *out, const char *text)
{
	if (text)
		buf_json(out, text);
	else
		buf_puts(out, "null");
}

/* "a b" as ["a","b"]. */
static void put_words(struct buf *out, const char *text)
{
	buf_putc(out, '[');
	for (bool is_first = true; text && *text; is_first = false) {
		size_t n = strcspn(text, " ");

		buf_puts(out, is_first ? "" : ",");
		buf_json_n(out, text, n);
		text += n;
		text += strspn(text, " ");
	}
	buf_putc(out, ']');
}

/* Of a ChatGPT account, which the agent names in its requests. */
static void put_account(struct buf *out, const char *id_token)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *auth = NULL;

	if (id_token && secret_claims(id_token, &doc))
		auth = json_get(doc.root, "https://api.openai.com/auth");
	put_string(out, auth ? json_text(auth, "chatgpt_account_id", NULL) : NULL);
}

static void put_end(struct buf *out, const struct json *answer)
{
	uint64_t seconds = 0;
	const struct json *v = json_get(answer, "expires_in");

	if (v == NULL || !json_u64(v, &seconds) || seconds > UINT32_MAX)
		seconds = 3600;
	buf_printf(out, "%ju", (uintmax_t)(clock_real() / NS_PER_MS + seconds * 1000));
}

/* $a access, $r refresh, $i id token; $e end in ms, $s scopes as a list, $S as a text, $c account, $t now. */
static void put_store(struct buf *out, const char *form, const struct json *answer)
{
	for (; *form; form++) {
		if (*form != '$') {
			buf_putc(out, *form);
			continue;
		}
		switch (*++form) {
		case 'a':
			put_string(out, json_text(answer, "access_token", NULL));
			break;
		case 'r':
			put_string(out, json_text(answer, "refresh_token", NULL));
			break;
		case 'i':
			put_string(out, json_text(answer, "id_token", NULL));
			break;
		case 'e':
			put_end(out, answer);
			break;
		case 's':
			put_words(out, json_text(answer, "scope", NULL));
			break;
		case 'S':
			put_string(out, json_text(answer, "scope", NULL));
			break;
		case 'c':
			put_account(out, json_text(answer, "id_token", NULL));
			break;
		default:
			secret_put_now(out);
			break;
		}
	}
	buf_putc(out, '\n');
}

static int write_store(const char *path, const struct buf *text, bool may_replace, struct err *e)
{
	_free_ char *fresh = mem_fmt("%s.%d", path, getpid());
	_close_ int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text->p, text->n);

	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && (may_replace ? rename(fresh, path) : link(fresh, path)) < 0)
		r = -errno;
	(void)unlink(fresh); /* the second name of what was linked, or what failed */
	errno = -r;
	return r < 0 ? err_sys(e, "'%s'", path) : 0;
}

int secret_login_keep(const struct secret_login *l, const char *state_dir, struct str answer,
		      bool may_replace, struct err *e)
{
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(2 * SECRET_VALUE_MAX);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_free_ char *path = secret_login_kept(state_dir, l->name);
	_free_ char *dir = mem_strn(path, (size_t)(strrchr(path, '/') - path));
	int r = json_parse_foreign(answer.p, answer.n, &doc, e);

	if (r < 0)
		return r;
	if (!json_text(doc.root, "access_token", NULL) || (l->endpoint && !json_text(doc.root,
										     "refresh_"
										     "token",
										     NULL)))
		return 0;
	put_store(&text, l->fresh, doc.root);
	if (text.is_over)
		return err_set(e, ERR_SYSTEM, EMSGSIZE, "a login of more than %zu bytes", text.max);
	r = path_make(dir, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerror(-r));
	r = write_store(path, &text, may_replace, e);
	return r < 0 ? r : 1;
}
