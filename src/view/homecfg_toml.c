/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg_toml.c - cargo's config.toml, as it may be seen inside; see homecfg.h
 *
 * The part of TOML that such files are written in: tables, dotted and quoted keys, strings of one line, numbers, truth,
 * lists, inline tables. Everything else (dates, strings of several lines, lists of tables) is not read with certainty,
 * and then nothing of the file is seen. Values are written as dotted keys at the top, one form for all: what was an
 * inline table with a token in it is then a line that is missing.
 */
#include <ctype.h>

#include "view/homecfg.h"

#define KEYS_MAX 8
#define KEY_BYTES 128
#define DEPTH_MAX 8

struct toml {
	const char *p, *end;
	struct buf *out;
	homecfg_token_fn *fn; /* tokens are wanted; may be NULL */
	void *arg;
};

struct keys {
	char v[KEYS_MAX][KEY_BYTES];
	size_t n;
};

/* "*" stands for any one key. Strings that name programs run inside only, behind the walls. */
static const struct cargo_key {
	char path[40];
	enum homecfg_form form;
} cargo_keys[] = {
	{ "source.*.registry", FORM_URL },
	{ "source.*.replace-with", FORM_WORD },
	{ "source.*.directory", FORM_TEXT },
	{ "source.*.local-registry", FORM_TEXT },
	{ "source.*.git", FORM_URL },
	{ "source.*.branch", FORM_TEXT },
	{ "source.*.tag", FORM_TEXT },
	{ "registries.*.index", FORM_URL },
	{ "registries.*.protocol", FORM_WORD },
	{ "registry.default", FORM_WORD },
	{ "registry.index", FORM_URL },
	{ "net.git-fetch-with-cli", FORM_BOOL },
	{ "net.offline", FORM_BOOL },
	{ "net.retry", FORM_NUMBER },
	{ "http.check-revoke", FORM_BOOL },
	{ "http.low-speed-limit", FORM_NUMBER },
	{ "http.multiplexing", FORM_BOOL },
	{ "http.timeout", FORM_NUMBER },
	{ "build.jobs", FORM_NUMBER },
	{ "build.incremental", FORM_BOOL },
	{ "build.target", FORM_TEXT },
	{ "build.rustflags", FORM_TEXT },
	{ "build.rustdocflags", FORM_TEXT },
	{ "build.rustc-wrapper", FORM_TEXT },
	{ "target.*.linker", FORM_TEXT },
	{ "target.*.ar", FORM_TEXT },
	{ "target.*.runner", FORM_TEXT },
	{ "target.*.rustflags", FORM_TEXT },
	{ "alias.*", FORM_TEXT },
	{ "term.color", FORM_WORD },
	{ "term.quiet", FORM_BOOL },
	{ "term.verbose", FORM_BOOL },
	{ "term.progress.when", FORM_WORD },
	{ "profile.*.*", FORM_TEXT },
	{ "unstable.*", FORM_TEXT },
	{ "future-incompat-report.frequency", FORM_WORD },
	{ "cargo-new.vcs", FORM_WORD },
};

static int peek(const struct toml *t)
{
	return t->p < t->end ? (unsigned char)*t->p : -1;
}

static void skip(struct toml *t, const char *what)
{
	while (t->p < t->end && strchr(what, *t->p) && *t->p)
		t->p++;
}

/* White space and comments, over lines. */
static void skip_all(struct toml *t)
{
	for (;;) {
		skip(t, " \t\r\n");
		if (peek(t) != '#')
			return;
		while (peek(t) >= 0 && peek(t) != '\n')
			t->p++;
	}
}

/* A string of one line, in either kind of quotes. Of escapes those that every reader knows. */
static int read_string(struct toml *t, struct buf *ret)
{
	int q = peek(t);

	t->p++;
	if (peek(t) == q && t->end - t->p > 1 && t->p[1] == q)
		return -EINVAL;
	for (;; t->p++) {
		int c = peek(t);

		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
		if (c == q)
			break;
		if (c == '\\' && q == '"') {
			t->p++;
			c = peek(t);
			if (c != '"' && c != '\\')
				return -EINVAL;
		}
		buf_putc(ret, (char)c);
	}
	t->p++;
	return ret->is_over ? -EINVAL : 0;
}

static int read_key(struct toml *t, struct keys *k)
{
	for (;;) {
		_cleanup_(buf_done) struct buf b = BUF(KEY_BYTES);
		int r = 0;

		skip(t, " \t");
		if (peek(t) == '"' || peek(t) == '\'')
			r = read_string(t, &b);
		else
			while (isalnum(peek(t)) || peek(t) == '-' || peek(t) == '_')
				buf_putc(&b, *t->p++);
		if (r < 0 || b.n == 0 || b.is_over || b.n >= KEY_BYTES || k->n == KEYS_MAX)
			return -EINVAL;
		memcpy(k->v[k->n], b.p, b.n);
		k->v[k->n++][b.n] = '\0';
		skip(t, " \t");
		if (peek(t) != '.')
			return 0;
		t->p++;
	}
}

/* A key that stands for any may be a name of the user's; it is held to what a text is held to. */
static bool is_plain_key(const char *key)
{
	_cleanup_(buf_done) struct buf b = BUF(KEY_BYTES);

	return homecfg_value(FORM_TEXT, key, &b);
}

static const struct cargo_key *find_key(const struct keys *k)
{
	for (size_t i = 0; i < ARRAY_LEN(cargo_keys); i++) {
		const char *p = cargo_keys[i].path;
		size_t at = 0;

		for (; at < k->n && *p; at++) {
			size_t n = strcspn(p, ".");

			if (!(n == 1 && p[0] == '*' && is_plain_key(k->v[at])) &&
			    (strlen(k->v[at]) != n || memcmp(p, k->v[at], n) != 0))
				break;
			p += n;
			p += *p == '.';
		}
		if (at == k->n && *p == '\0')
			return &cargo_keys[i];
	}
	return NULL;
}

static void put_key(struct buf *out, const struct keys *k)
{
	for (size_t i = 0; i < k->n; i++) {
		if (i)
			buf_putc(out, '.');
		homecfg_quote(out, k->v[i]);
	}
	buf_puts(out, " = ");
}

/* A bare word: a number or truth, checked by its form; `ret` gets it. */
static int read_bare(struct toml *t, struct buf *ret)
{
	while (isalnum(peek(t)) || (peek(t) > 0 && strchr("+-._", peek(t))))
		buf_putc(ret, *t->p++);
	return ret->n && !ret->is_over ? 0 : -EINVAL;
}

static int read_value(struct toml *t, struct keys *k, int depth);

/* One string, number or truth value; *ret_ok: it may be seen, and stands in `ret` as TOML. */
static int read_scalar(struct toml *t, enum homecfg_form form, struct buf *ret, bool *ret_ok)
{
	_cleanup_(buf_done) struct buf raw = BUF(4 * KIB), seen = BUF(4 * KIB);
	bool is_string = peek(t) == '"' || peek(t) == '\'';
	int r = is_string ? read_string(t, &raw) : read_bare(t, &raw);

	if (r < 0)
		return r;
	if (is_string) {
		*ret_ok = homecfg_value(form, buf_cstr(&raw), &seen);
		homecfg_quote(ret, buf_cstr(&seen));
		return 0;
	}
	*ret_ok = homecfg_value(FORM_BOOL, buf_cstr(&raw), &seen) ||
		  homecfg_value(FORM_NUMBER, buf_cstr(&raw), &seen);
	buf_puts(ret, buf_cstr(&seen));
	return 0;
}

/* A list of such: all of it may be seen, or none. */
static int read_list(struct toml *t, const struct keys *k)
{
	const struct cargo_key *known = find_key(k);
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);
	bool is_ok = known != NULL;

	t->p++;
	buf_putc(&b, '[');
	for (skip_all(t); peek(t) != ']'; skip_all(t)) {
		bool is_one = false;
		int r = read_scalar(t, known ? known->form : FORM_WORD, &b, &is_one);

		if (r < 0)
			return r;
		is_ok = is_ok && is_one;
		buf_puts(&b, ", ");
		skip_all(t);
		if (peek(t) == ',')
			t->p++;
		else if (peek(t) != ']')
			return -EINVAL;
	}
	t->p++;
	if (is_ok && !b.is_over) {
		put_key(t->out, k);
		buf_printf(t->out, "%s]\n", buf_cstr(&b));
	}
	return 0;
}

static int read_table(struct toml *t, const struct keys *k, int depth)
{
	t->p++;
	skip(t, " \t");
	if (peek(t) == '}') {
		t->p++;
		return 0;
	}
	for (;;) {
		struct keys below = *k;
		int r = read_key(t, &below);

		if (r < 0 || peek(t) != '=')
			return -EINVAL;
		t->p++;
		r = read_value(t, &below, depth + 1);
		skip(t, " \t");
		if (r < 0)
			return r;
		if (peek(t) != ',' && peek(t) != '}')
			return -EINVAL;
		if (*t->p++ == '}')
			return 0;
	}
}

/* "registry.token" and "registries.NAME.token" */
static int give_token(struct toml *t, const struct keys *k, const char *value)
{
	bool is_default = k->n == 2 && str_eq(k->v[0], "registry") && str_eq(k->v[1], "token");
	bool is_named = k->n == 3 && str_eq(k->v[0], "registries") && str_eq(k->v[2], "token");

	if (!is_default && !is_named)
		return 0;
	return t->fn(t->arg, &(struct homecfg_token){ .key = is_named ? k->v[1] : "",
						      .value = value[0] ? value : NULL });
}

/* A value when tokens are looked for: strings are given out, all else is passed over. */
static int read_for_tokens(struct toml *t, const struct keys *k)
{
	_cleanup_(buf_done) struct buf raw = BUF(4 * KIB);
	bool is_string = peek(t) == '"' || peek(t) == '\'';
	int r = is_string ? read_string(t, &raw) : read_bare(t, &raw);

	if (r == 0 && is_string)
		r = give_token(t, k, buf_cstr(&raw));
	if (raw.n)
		explicit_bzero(raw.p, raw.n);
	return r;
}

static int read_value(struct toml *t, struct keys *k, int depth)
{
	const struct cargo_key *known;
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	bool is_ok = false;
	int r;

	skip(t, " \t");
	if (depth > DEPTH_MAX)
		return -EINVAL;
	if (peek(t) == '[')
		return read_list(t, k);
	if (peek(t) == '{')
		return read_table(t, k, depth);
	if (t->fn)
		return read_for_tokens(t, k);
	known = find_key(k);
	r = read_scalar(t, known ? known->form : FORM_WORD, &b, &is_ok);
	if (r == 0 && known && is_ok && !b.is_over) {
		put_key(t->out, k);
		buf_printf(t->out, "%s\n", buf_cstr(&b));
	}
	return r;
}

static int read_all(struct toml *t)
{
	struct keys table = { .n = 0 };

	for (skip_all(t); peek(t) >= 0; skip_all(t)) {
		struct keys k = table;

		if (peek(t) == '[') {
			table.n = 0;
			t->p++;
			if (read_key(t, &table) < 0 || peek(t) != ']')
				return -EINVAL;
			t->p++;
		} else {
			int r;

			if (read_key(t, &k) < 0 || peek(t) != '=')
				return -EINVAL;
			t->p++;
			r = read_value(t, &k, 0);
			if (r < 0)
				return r;
		}
		skip(t, " \t\r");
		if (peek(t) >= 0 && peek(t) != '\n' && peek(t) != '#')
			return -EINVAL;
	}
	return 0;
}

int homecfg_cargo(const char *text, size_t n, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(HOMECFG_MAX);
	struct toml t = { .p = text, .end = text + n, .out = &b };

	if (n > HOMECFG_MAX || memchr(text, '\0', n) || read_all(&t) < 0 || b.is_over)
		return -EINVAL;
	buf_add(out, b.p, b.n);
	return 0;
}

int homecfg_cargo_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg)
{
	_cleanup_(buf_done) struct buf none = BUF(HOMECFG_MAX);
	struct toml t = { .p = text, .end = text + n, .out = &none, .fn = fn, .arg = arg };

	if (n > HOMECFG_MAX || memchr(text, '\0', n))
		return -EINVAL;
	return read_all(&t);
}
