/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg_ini.c - .npmrc and pip.conf, as they may be seen inside; see homecfg.h
 *
 * What comes inside is where packages come from (registries, indexes, mirrors) and how patient and how loud the tool is.
 * Tokens stand in keys of their own ("//host/:_authToken", "_auth"), which are not in the tables, or in URLs, which are
 * written without them. npm puts variables in place of "${X}": such a line is left out.
 */
#include <ctype.h>

#include "base/str.h"
#include "view/homecfg.h"

#define LINE_MAX_ (8 * KIB)

struct ini_key {
	char key[32];
	enum homecfg_form form;
};

static const struct ini_key npm_keys[] = {
	{ "registry", FORM_URL },
	{ "disturl", FORM_URL },
	{ "audit", FORM_BOOL },
	{ "engine-strict", FORM_BOOL },
	{ "fetch-retries", FORM_NUMBER },
	{ "fetch-retry-factor", FORM_NUMBER },
	{ "fetch-retry-maxtimeout", FORM_NUMBER },
	{ "fetch-retry-mintimeout", FORM_NUMBER },
	{ "fetch-timeout", FORM_NUMBER },
	{ "fund", FORM_BOOL },
	{ "ignore-scripts", FORM_BOOL },
	{ "legacy-peer-deps", FORM_BOOL },
	{ "loglevel", FORM_WORD },
	{ "maxsockets", FORM_NUMBER },
	{ "package-lock", FORM_BOOL },
	{ "prefer-offline", FORM_BOOL },
	{ "progress", FORM_BOOL },
	{ "replace-registry-host", FORM_WORD },
	{ "save-exact", FORM_BOOL },
	{ "strict-peer-deps", FORM_BOOL },
	{ "update-notifier", FORM_BOOL },
};

/* Where native modules look for what was built already: electron_mirror, sass_binary_site, sharp_binary_host, ... */
static const char *const npm_mirrors[] = { "mirror", "_binary_site", "_binary_host", NULL };

static const struct ini_key pip_keys[] = {
	{ "index-url", FORM_URL },
	{ "extra-index-url", FORM_URLS },
	{ "find-links", FORM_URLS },
	{ "trusted-host", FORM_HOSTS },
	{ "no-index", FORM_BOOL },
	{ "timeout", FORM_NUMBER },
	{ "default-timeout", FORM_NUMBER },
	{ "retries", FORM_NUMBER },
	{ "prefer-binary", FORM_BOOL },
	{ "only-binary", FORM_HOSTS },
	{ "no-binary", FORM_HOSTS },
	{ "pre", FORM_BOOL },
	{ "upgrade-strategy", FORM_WORD },
	{ "no-cache-dir", FORM_BOOL },
	{ "disable-pip-version-check", FORM_BOOL },
	{ "progress-bar", FORM_WORD },
	{ "require-virtualenv", FORM_BOOL },
	{ "break-system-packages", FORM_BOOL },
};

static struct str trimmed(struct str s)
{
	while (s.n && isspace((unsigned char)s.p[0]))
		s = str_from(s, 1);
	while (s.n && isspace((unsigned char)s.p[s.n - 1]))
		s.n--;
	return s;
}

/* The next line without its end; false: there is none. */
static bool next_line(struct str *rest, struct str *ret)
{
	size_t n = str_find(*rest, '\n');

	if (rest->n == 0)
		return false;
	*ret = str_first(*rest, n);
	*rest = str_from(*rest, n < rest->n ? n + 1 : n);
	return true;
}

static const struct ini_key *find_key(const struct ini_key *t, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(t[i].key, key))
			return &t[i];
	return NULL;
}

/* ---- npm ---- */

/* "@SCOPE:registry" */
static bool is_scope_key(const char *key)
{
	size_t n = key[0] == '@' ? strcspn(key, ":") : 0;

	if (n < 2 || !str_eq(key + n, ":registry"))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!isalnum((unsigned char)key[i]) && strchr("-._", key[i]) == NULL)
			return false;
	return true;
}

static bool npm_form(const char *key, enum homecfg_form *ret)
{
	const struct ini_key *k = find_key(npm_keys, ARRAY_LEN(npm_keys), key);
	bool is_word = key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';

	*ret = k ? k->form : FORM_URL;
	for (const char *const *m = npm_mirrors; is_word && *m; m++)
		if (str_ends(key, *m))
			return true;
	return k || is_scope_key(key);
}

/* KEY = VALUE of one line; the value without quotes around it. False: neither a setting nor ours to judge. */
static bool npm_split(struct str line, char **ret_key, char **ret_value)
{
	size_t at = str_find(line, '=');
	struct str value;

	line = trimmed(line);
	at = str_find(line, '=');
	if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';' || at == line.n ||
	    line.n > LINE_MAX_)
		return false;
	value = trimmed(str_from(line, at + 1));
	if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') &&
	    value.p[value.n - 1] == value.p[0])
		value = (struct str){ value.p + 1, value.n - 2 };
	line = trimmed(str_first(line, at));
	*ret_key = mem_strn(line.p, line.n);
	*ret_value = mem_strn(value.p, value.n);
	return true;
}

static bool is_section(struct str line)
{
	line = trimmed(line);
	return line.n && line.p[0] == '[';
}

int homecfg_npm(const char *text, size_t n, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(HOMECFG_MAX);
	struct str rest = { text, n }, line;

	if (n > HOMECFG_MAX || memchr(text, '\0', n))
		return -EINVAL;
	/* npm takes nothing from sections. */
	while (next_line(&rest, &line) && !is_section(line)) {
		_free_ char *key = NULL, *value = NULL;
		_cleanup_(buf_done) struct buf v = BUF(8 * KIB);
		enum homecfg_form form;

		if (npm_split(line, &key, &value) && npm_form(key, &form) &&
		    homecfg_value(form, value, &v))
			buf_printf(&b, "%s=%s\n", key, buf_cstr(&v));
	}
	if (b.is_over)
		return -EINVAL;
	buf_add(out, b.p, b.n);
	return 0;
}

/* The host of "//HOST[:PORT]/PATH/:_authToken", in small letters; NULL: the key is of another form. */
static char *npm_host(const char *key)
{
	static const char *const words[] = { ":_authToken", ":_auth" };
	size_t n = strcspn(key + 2, "/:");
	bool is_known = false;
	char *host;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		is_known |= str_ends(key, words[i]);
	for (const char *p = key; *p; p++)
		is_known &= isalnum((unsigned char)*p) || strchr("/:.-_~@%", *p);
	if (!is_known || n == 0)
		return NULL;
	host = mem_strn(key + 2, n);
	for (char *p = host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return host;
}

int homecfg_npm_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg)
{
	static const char *const secrets[] = { "_authToken", "_auth", "_password" };
	struct str rest = { text, n }, line;
	int r = 0;

	if (n > HOMECFG_MAX || memchr(text, '\0', n))
		return -EINVAL;
	while (r == 0 && next_line(&rest, &line) && !is_section(line)) {
		_free_ char *key = NULL, *value = NULL, *host = NULL;
		bool is_secret = false;

		if (!npm_split(line, &key, &value) || value[0] == '\0')
			continue;
		for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
			is_secret |= str_ends(key, secrets[i]);
		host = str_starts(key, "//") ? npm_host(key) : NULL;
		/* Without a host npm sends it to whatever registry is set: not ours to repeat. */
		if (is_secret)
			r = fn(arg, &(struct homecfg_token){ .key = key,
							     .host = host,
							     .value = host ? value : NULL });
		explicit_bzero(value, strlen(value));
	}
	return r;
}

/* ---- pip ---- */

struct pip {
	struct buf *out;
	char section[32]; /* empty: none that counts */
	bool is_written;  /* its header */
	char key[32];     /* empty: none that counts */
	struct buf value;
	homecfg_token_fn *fn; /* tokens are wanted, and nothing is written */
	void *arg;
	int failed; /* what fn returned */
};

/* URLs of one setting, of which the first with a password becomes a token; the others are written without theirs. */
static void pip_tokens(struct pip *p)
{
	_cleanup_(buf_done) struct buf around = BUF(8 * KIB), value = BUF(4 * KIB), host = BUF(KIB);
	size_t taken = 0, lost = 0;
	bool is_plain_value = true;

	for (const char *v = buf_cstr(&p->value); *v; v += strspn(v, " \t\n,")) {
		size_t n = strcspn(v, " \t\n,"), from, to;
		_cleanup_(buf_done) struct buf seen = BUF(4 * KIB);
		_free_ char *url = mem_strn(v, n);
		bool has_one = homecfg_url_secret(url, n, &from, &to);
		bool is_plain = homecfg_value(FORM_URL, url, &seen);

		v += n;
		if (has_one && (taken || !is_plain))
			lost++;
		if (!is_plain)
			continue;
		if (around.n)
			buf_putc(&around, ' ');
		if (has_one && !taken++) {
			size_t end = to + strcspn(url + to, "@") + 1;

			buf_add(&value, url + from, to - from);
			buf_add(&around, url, from);
			buf_printf(&around, "{}%s", url + to);
			buf_add(&host, url + end, strcspn(url + end, "/:"));
		} else {
			buf_puts(&around, buf_cstr(&seen));
		}
	}
	for (size_t i = 0; i < host.n; i++)
		host.p[i] = (char)tolower((unsigned char)host.p[i]);
	/* What is written otherwise in a URL than on the wire cannot be told apart from what stands for it. */
	for (size_t i = 0; i < value.n; i++)
		is_plain_value &=
			isalnum((unsigned char)value.p[i]) || strchr("-._~", value.p[i]) != NULL;
	if (taken && !is_plain_value) {
		lost++;
		taken = 0;
	}
	if (taken && !around.is_over && !value.is_over)
		p->failed = p->fn(p->arg, &(struct homecfg_token){ .key = p->key,
								   .host = buf_cstr(&host),
								   .value = buf_cstr(&value),
								   .around = buf_cstr(&around) });
	for (; lost && p->failed == 0; lost--)
		p->failed = p->fn(p->arg, &(struct homecfg_token){ .key = p->key });
	if (value.n)
		explicit_bzero(value.p, value.n);
}

static void pip_flush(struct pip *p)
{
	const struct ini_key *k = find_key(pip_keys, ARRAY_LEN(pip_keys), p->key);
	_cleanup_(buf_done) struct buf v = BUF(8 * KIB);

	if (p->fn && p->failed == 0 && p->section[0] && k && !p->value.is_over &&
	    (k->form == FORM_URL || k->form == FORM_URLS))
		pip_tokens(p);
	if (!p->fn && p->section[0] && p->key[0] && k && !p->value.is_over &&
	    homecfg_value(k->form, buf_cstr(&p->value), &v)) {
		if (!p->is_written)
			buf_printf(p->out, "[%s]\n", p->section);
		p->is_written = true;
		buf_printf(p->out, "%s = %s\n", p->key, buf_cstr(&v));
	}
	p->key[0] = '\0';
	buf_done(&p->value);
	p->value = (struct buf)BUF(4 * KIB);
}

/* "[NAME]": letters and dashes, as pip's own commands have them. */
static void pip_section(struct pip *p, struct str line)
{
	size_t n = 0;

	p->section[0] = '\0';
	p->is_written = false;
	if (line.n < 3 || line.n - 2 >= sizeof(p->section) || line.p[line.n - 1] != ']')
		return;
	for (size_t i = 1; i + 1 < line.n; i++) {
		if (!islower((unsigned char)line.p[i]) && line.p[i] != '-')
			return;
		n++;
	}
	memcpy(p->section, line.p + 1, n);
	p->section[n] = '\0';
}

static void pip_key(struct pip *p, struct str line)
{
	size_t eq = str_find(line, '='), colon = str_find(line, ':'), at = eq < colon ? eq : colon;
	struct str key = trimmed(str_first(line, at)), value;

	if (at == line.n || key.n == 0 || key.n >= sizeof(p->key))
		return;
	for (size_t i = 0; i < key.n; i++)
		p->key[i] = key.p[i] == '_' ? '-' : (char)tolower((unsigned char)key.p[i]);
	p->key[key.n] = '\0';
	value = trimmed(str_from(line, at + 1));
	buf_add(&p->value, value.p, value.n);
}

static void pip_read(struct pip *p, struct str rest)
{
	struct str raw;

	while (next_line(&rest, &raw)) {
		struct str line = trimmed(raw);

		if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';')
			continue;
		/* What is indented goes on with the value before it. */
		if (isspace((unsigned char)raw.p[0])) {
			buf_putc(&p->value, '\n');
			buf_add(&p->value, line.p, line.n);
			continue;
		}
		pip_flush(p);
		if (line.p[0] == '[')
			pip_section(p, line);
		else
			pip_key(p, line);
	}
	pip_flush(p);
	buf_done(&p->value);
}

int homecfg_pip(const char *text, size_t n, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(HOMECFG_MAX);
	struct pip p = { .out = &b, .value = BUF(4 * KIB) };

	if (n > HOMECFG_MAX || memchr(text, '\0', n))
		return -EINVAL;
	pip_read(&p, (struct str){ text, n });
	if (b.is_over)
		return -EINVAL;
	buf_add(out, b.p, b.n);
	return 0;
}

int homecfg_pip_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg)
{
	struct pip p = { .value = BUF(4 * KIB), .fn = fn, .arg = arg };

	if (n > HOMECFG_MAX || memchr(text, '\0', n))
		return -EINVAL;
	pip_read(&p, (struct str){ text, n });
	return p.failed;
}
