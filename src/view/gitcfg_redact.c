/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg_redact.c - see gitcfg_redact.h
 *
 * The text is cut into pieces: entries as git's reader finds them (one may go over several lines), and between them
 * lines (section headers, comments, and all that follows a mistake). A piece that holds a secret is written anew with a
 * placeholder, and its number in the placeholder is its place in the list of such pieces. The way back looks the number
 * up, asks that section, key and value (of a line: its text) are exactly those that were shown, and puts the host's
 * own bytes there: so a value is restored whole or not at all, and never next to another host name.
 *
 * The one change that is let through is the name of a remote (`git remote rename`): a URL leads to the same place
 * whatever its remote is called.
 */
#include "view/gitcfg_redact.h"

#include <ctype.h>

#include "base/redact.h"
#include "base/str.h"
#include "view/gitcfg.h"

#define REDACT_MAX (4 * MIB)

/* ---- pieces ---- */

struct piece {
	const struct gitcfg_item *item; /* NULL: a line */
	struct str raw;
};

typedef int (*piece_fn)(void *arg, const struct piece *p);

struct cutter {
	const char *pos;
	piece_fn fn;
	void *arg;
};

static int cut_lines(struct cutter *c, const char *end)
{
	while (c->pos < end) {
		const char *nl = memchr(c->pos, '\n', (size_t)(end - c->pos));
		size_t n = nl ? (size_t)(nl - c->pos) + 1 : (size_t)(end - c->pos);
		const struct piece p = { .raw = { c->pos, n } };
		int r;

		c->pos += n;
		r = c->fn(c->arg, &p);
		if (r < 0)
			return r;
	}
	return 0;
}

static int cut_item(void *arg, const struct gitcfg_item *it)
{
	struct cutter *c = arg;
	const struct piece p = { .item = it, .raw = { it->at, (size_t)(it->end - it->at) } };
	int r = cut_lines(c, it->at);

	if (r < 0)
		return r;
	c->pos = it->end;
	return c->fn(c->arg, &p);
}

/* What git cannot read ends its reading; the rest is lines. So a callback must not fail with the reader's -EINVAL. */
static int for_pieces(const char *text, size_t n, piece_fn fn, void *arg)
{
	struct cutter c = { .pos = text, .fn = fn, .arg = arg };
	int r = gitcfg_read(text, n, GITCFG_GIT, cut_item, &c);

	return r < 0 && r != -EINVAL ? r : cut_lines(&c, text + n);
}

/* ---- what is a secret ---- */

static bool has_text(struct str s, const char *what)
{
	return s.n && memmem(s.p, s.n, what, strlen(what)) != NULL;
}

/* Up to and with the last "@" of the user part behind "://"; 0: there is none that is a secret. */
static size_t userinfo(struct str scheme, struct str s)
{
	size_t host = strcspn(s.p, "/?# \t\n'\"<>`|"), word = strcspn(s.p, " \t\n'\"<>`|");
	const char *at = memrchr(s.p, '@', host), *colon = memchr(s.p, ':', host);
	bool is_named = false;

	/* "https://me:a/b@host/": what follows the colon is no port, so the slash belongs to a password. */
	if (at == NULL && colon && !strchr("0123456789/?#", colon[1]))
		at = memrchr(s.p, '@', word);
	if (at == NULL)
		return 0;
	/* Names of accounts, not tokens: ssh has no password there, and "git" is nobody's. */
	is_named = has_text(scheme, "ssh") || str_is(scheme, "git") ||
		   str_is((struct str){ s.p, (size_t)(at - s.p) }, "git");
	if (is_named && memchr(s.p, ':', (size_t)(at - s.p)) == NULL)
		return 0;
	return (size_t)(at - s.p);
}

static bool is_scheme_byte(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '.' || c == '-';
}

static bool hide_users(const char *text, const char *mark, struct buf *out)
{
	const char *pos = text;
	bool has_secret = false;

	for (const char *at = strstr(text, "://"); at; at = strstr(pos, "://")) {
		size_t len = 0, user;

		while (at - len > pos && is_scheme_byte(at[-1 - (ssize_t)len]))
			len++;
		user = userinfo((struct str){ at - len, len }, str_of(at + 3));
		buf_add(out, pos, (size_t)(at + 3 - pos));
		pos = at + 3;
		if (user == 0)
			continue;
		buf_puts(out, mark);
		/* A password that is missing would be asked for. */
		if (memchr(pos, ':', user))
			buf_printf(out, ":%s", mark);
		pos += user;
		has_secret = true;
	}
	buf_puts(out, pos);
	return has_secret;
}

/* Adds text with each secret replaced by mark. */
static bool hide(const char *text, const char *mark, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(REDACT_MAX);
	bool has_user = hide_users(text, mark, &b);
	bool has_more = redact_with(buf_cstr(&b), mark, out);

	out->is_over = out->is_over || b.is_over;
	return has_user || has_more;
}

static bool is_one_of(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(s, *words))
			return true;
	return false;
}

/* "smtppass", "oauth-token"; not "askpass", which is a program. */
static bool is_secret_key(const char *key)
{
	static const char *const words[] = { "token",  "passwd", "password", "passphrase",
					     "secret", "apikey", "api-key",  "privatekey" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(key, words[i]))
			return true;
	return str_ends(key, "pass") && !str_eq(key, "askpass");
}

static bool is_yes_or_no(const char *v)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "", NULL };

	return is_one_of(v, words);
}

/* The value to show in place of the entry's own; false: there is nothing to hide. */
static bool hide_value(const struct gitcfg_item *it, const char *mark, struct buf *out)
{
	/* Names of refs and of people, in which "auth:" is no header. */
	static const char *const plain[] = { "fetch", "push",        "merge",  "name",
					     "email", "description", "branch", NULL };

	if (it->value == NULL)
		return false;
	/* Ours in form, but the host's: it must not be taken for a placeholder. */
	if (strstr(it->value, GITCFG_HIDDEN) ||
	    (is_secret_key(it->key) && !is_yes_or_no(it->value))) {
		buf_puts(out, mark);
		return true;
	}
	if (is_one_of(it->key, plain))
		return false;
	if (str_eq(it->key, "extraheader")) {
		buf_printf(out, "X-Hidden: %s", mark);
		return it->value[0] != '\0';
	}
	if (!hide(it->value, mark, out))
		return false;
	if (str_eq(it->section, "credential")) {
		/* A helper with the password in it: git shall run something that says nothing. */
		out->n = 0;
		buf_printf(out, "!: %s", mark);
	}
	return true;
}

/* ---- there ---- */

struct record {
	struct str host; /* the piece, borrowed from the host's text */
	/* As it was shown. */
	char *section, *sub, *key, *value, *text;
};

struct redactor {
	struct buf *out;
	struct record *v;
	size_t n, cap;
	struct err *e;
};

static void redactor_done(struct redactor *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->v[i].section);
		free(x->v[i].sub);
		free(x->v[i].key);
		free(x->v[i].value);
		free(x->v[i].text);
	}
	free(x->v);
}

static void put_quoted(struct buf *out, const char *value)
{
	buf_putc(out, '"');
	for (; *value; value++) {
		if (*value == '\n' || *value == '\t' || *value == '\b') {
			buf_putc(out, '\\');
			buf_putc(out, *value == '\n' ? 'n' : *value == '\t' ? 't' : 'b');
			continue;
		}
		if (*value == '"' || *value == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *value);
	}
	buf_putc(out, '"');
}

static struct str line_end(struct str raw)
{
	size_t n = raw.n && raw.p[raw.n - 1] == '\n' ? 1 : 0;

	n += n && raw.n > 1 && raw.p[raw.n - 2] == '\r';
	return str_from(raw, raw.n - n);
}

static bool redact_item(const struct gitcfg_item *it, const char *mark, struct buf *out)
{
	_cleanup_(buf_done) struct buf value = BUF(REDACT_MAX), comment = BUF(REDACT_MAX);
	_free_ char *behind =
		it->comment ? mem_strn(it->comment, (size_t)(it->end - it->comment)) : NULL;
	bool has_secret = hide_value(it, mark, &value);

	if (!has_secret &&
	    (behind == NULL || (!hide(behind, mark, &comment) && !strstr(behind, GITCFG_HIDDEN))))
		return false;
	out->is_over = out->is_over || value.is_over;
	if (has_secret) {
		const char *equals = memchr(it->at, '=', (size_t)(it->end - it->at));

		buf_add(out, it->at, (size_t)(equals - it->at));
		buf_puts(out, "= ");
		put_quoted(out, buf_cstr(&value));
	} else {
		buf_add(out, it->at, (size_t)(it->comment - it->at));
		buf_printf(out, "# %s", mark);
	}
	return true;
}

static bool redact_line(struct str raw, const char *mark, struct buf *out)
{
	_free_ char *line = mem_strn(raw.p, raw.n);

	if (strstr(line, GITCFG_HIDDEN)) {
		buf_printf(out, "# %s", mark);
		return true;
	}
	return hide(line, mark, out);
}

static int redact_piece(void *arg, const struct piece *p)
{
	struct redactor *x = arg;
	struct str end = line_end(p->raw), body = { p->raw.p, p->raw.n - end.n };
	_cleanup_(buf_done) struct buf shown = BUF(REDACT_MAX);
	char mark[64];
	bool has_secret;

	(void)snprintf(mark, sizeof(mark), GITCFG_HIDDEN "%zu", x->n + 1);
	has_secret = p->item ? redact_item(p->item, mark, &shown) : redact_line(body, mark, &shown);
	if (!has_secret) {
		buf_add(x->out, p->raw.p, p->raw.n);
		return 0;
	}
	buf_add(x->out, shown.p, shown.n);
	buf_add(x->out, end.p, end.n);
	x->out->is_over = x->out->is_over || shown.is_over;
	vec_reserve(x->v, x->n, x->cap);
	x->v[x->n++] = (struct record){ .host = body };
	return 0;
}

/* ---- and back ---- */

/* The record that the first placeholder of a piece names; NULL: none, *ret_has: but there is a placeholder. */
static struct record *record_of(const struct redactor *x, struct str raw, bool *ret_has)
{
	const char *at =
		raw.n ? memmem(raw.p, raw.n, GITCFG_HIDDEN, sizeof(GITCFG_HIDDEN) - 1) : NULL;
	const char *end = raw.p + raw.n;
	size_t number = 0;

	*ret_has = at != NULL;
	if (at == NULL)
		return NULL;
	at += sizeof(GITCFG_HIDDEN) - 1;
	for (; at < end && *at >= '0' && *at <= '9' && number <= x->n; at++)
		number = number * 10 + (size_t)(*at - '0');
	return number >= 1 && number <= x->n ? &x->v[number - 1] : NULL;
}

static char *copy_or_null(const char *s)
{
	return s ? mem_str(s) : NULL;
}

/* Reads what was shown, as the way back will read it. */
static int learn_piece(void *arg, const struct piece *p)
{
	struct redactor *x = arg;
	bool has = false;
	struct record *r = record_of(x, p->raw, &has);

	if (r == NULL || r->text || r->section)
		return has ? -EBADMSG : 0;
	if (p->item == NULL) {
		struct str t = str_trim((struct str){ p->raw.p, p->raw.n - line_end(p->raw).n });

		r->text = mem_strn(t.p, t.n);
		return 0;
	}
	r->section = mem_str(p->item->section);
	r->sub = copy_or_null(p->item->sub);
	r->key = mem_str(p->item->key);
	r->value = copy_or_null(p->item->value);
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && str_eq(a, b));
}

static bool is_as_shown(const struct record *r, const struct piece *p)
{
	const struct gitcfg_item *it = p->item;
	struct str t = str_trim((struct str){ p->raw.p, p->raw.n - line_end(p->raw).n });

	if (it == NULL)
		return r->text && str_is(t, r->text);
	if (r->section == NULL || !str_eq(r->section, it->section) || !str_eq(r->key, it->key) ||
	    !is_same(r->value, it->value))
		return false;
	if (is_same(r->sub, it->sub))
		return true;
	return str_eq(it->section, "remote") && r->sub && it->sub &&
	       (str_eq(it->key, "url") || str_eq(it->key, "pushurl"));
}

static int restore_piece(void *arg, const struct piece *p)
{
	struct redactor *x = arg;
	_cleanup_(buf_done) struct buf what = BUF(KIB);
	bool has = false;
	const struct record *r = record_of(x, p->raw, &has);

	if (!has) {
		buf_add(x->out, p->raw.p, p->raw.n);
		return 0;
	}
	if (r && is_as_shown(r, p)) {
		struct str end = line_end(p->raw);

		buf_add(x->out, r->host.p, r->host.n);
		buf_add(x->out, end.p, end.n);
		return 0;
	}
	if (p->item)
		buf_printf(&what, "%s.%s", p->item->section, p->item->key);
	else
		buf_puts(&what, "a line");
	return err_set(x->e, ERR_DENIED, EACCES,
		       "git config: the hidden value of %s was changed or moved; it can be kept as "
		       "it is or removed, "
		       "and be changed outside the sandbox",
		       buf_cstr(&what));
}

static int redact_all(struct redactor *x, const char *text, size_t n)
{
	int r;

	if (n && memchr(text, '\0', n))
		return -EINVAL;
	r = for_pieces(text, n, redact_piece, x);
	if (r < 0)
		return r;
	if (x->out->is_over)
		return -EMSGSIZE;
	r = for_pieces(buf_cstr(x->out), x->out->n, learn_piece, x);
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i].text == NULL && x->v[i].section == NULL)
			return -EINVAL;
	return r < 0 ? -EINVAL : 0;
}

int gitcfg_unredact(const char *host_text, size_t host_n, const char *new_text, size_t new_n,
		    struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf shown = BUF(REDACT_MAX);
	_cleanup_(redactor_done) struct redactor x = { .out = &shown, .e = e };
	int r = redact_all(&x, host_text, host_n);

	if (r < 0)
		return err_set(e, ERR_UNSUPPORTED, -r,
			       "git config: the file on the host cannot be read with certainty");
	x.out = out;
	r = for_pieces(new_text, new_n, restore_piece, &x);
	if (r == 0 && out->is_over)
		return err_set(e, ERR_UNSUPPORTED, EMSGSIZE, "git config: too large");
	return r;
}

int gitcfg_redact(const char *text, size_t n, struct buf *out)
{
	_cleanup_(buf_done) struct buf shown = BUF(REDACT_MAX), back = BUF(REDACT_MAX);
	_cleanup_(redactor_done) struct redactor x = { .out = &shown };
	struct err e = ERR_INIT;
	int r = redact_all(&x, text, n);

	if (r < 0)
		return r;
	/* The proof that a config which comes back unchanged is the host's again, byte for byte. */
	if (x.n && (gitcfg_unredact(text, n, buf_cstr(&shown), shown.n, &back, &e) < 0 ||
		    back.n != n || memcmp(buf_cstr(&back), text, n) != 0))
		return -EINVAL;
	buf_add(out, buf_cstr(&shown), shown.n);
	return out->is_over ? -EMSGSIZE : (int)x.n;
}
