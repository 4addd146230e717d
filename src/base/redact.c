/* SPDX-License-Identifier: Apache-2.0 */
/* base/redact.c - see redact.h
 *
 * Three ways to know a secret: by the name in front of it (TOKEN=..., --password ..., Authorization: ...), by where
 * it stands (https://user:secret@host), by what it looks like (sk-..., ghp_..., AKIA...). It errs on the side of
 * hiding: a record is for finding out what was decided, not for running the command again.
 */
#include "base/redact.h"

#include <ctype.h>
#include <strings.h>

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-./+=~", c));
}

static size_t token_length(const char *s)
{
	size_t n = 0;

	while (s[n] && is_token(s[n]))
		n++;
	return n;
}

static bool has_word(const char *s, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++)
		if (strncasecmp(s + i, word, len) == 0)
			return true;
	return false;
}

static bool is_secret_name(const char *s, size_t n)
{
	static const char *const words[] = { "token",       "secret",     "passw",
					     "passphrase",  "apikey",     "api_key",
					     "api-key",     "access_key", "access-key",
					     "private_key", "credential", "auth",
					     "session",     "cookie",     "pwd" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (has_word(s, n, words[i]))
			return true;
	return false;
}

static size_t secret_shape(const char *s)
{
	static const char *const heads[] = { "sk-",      "ghp_",    "gho_",        "ghu_",
					     "ghs_",     "ghr_",    "github_pat_", "glpat-",
					     "xoxb-",    "xoxp-",   "xoxa-",       "AKIA",
					     "ASIA",     "AIza",    "ya29.",       "eyJ",
					     "npm_",     "pypi-",   "hf_",         "rk_live_",
					     "sk_live_", "dop_v1_", "SG." };

	/* The head first: only what has one is measured, so that a long text is read once. */
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		if (str_starts(s, heads[i])) {
			size_t n = token_length(s);

			return n >= 12 ? n : 0;
		}
	return 0;
}

/* Length of the value at s: a quoted text or a run without blanks. */
static size_t value_length(const char *s)
{
	size_t n;

	if (*s == '"' || *s == '\'') {
		const char *end = strchr(s + 1, *s);

		return end ? (size_t)(end - s) + 1 : strlen(s);
	}
	n = strcspn(s, " \t\n'\"");
	return n;
}

/* Behind a name that promises a secret: "=x", ": Bearer x", " x". How much of what follows is it? */
static size_t value_behind(const char *s, bool is_option, size_t *ret_skip)
{
	size_t skip = 0;

	if (*s == '=' || *s == ':') {
		skip = 1 + strspn(s + 1, " ");
		if (strncasecmp(s + skip, "bearer ", 7) == 0 ||
		    strncasecmp(s + skip, "basic ", 6) == 0)
			skip += strcspn(s + skip, " ") + 1;
	} else if (is_option && *s == ' ') {
		skip = strspn(s, " ");
		if (s[skip] == '-')
			return 0;
	} else {
		return 0;
	}
	*ret_skip = skip;
	return value_length(s + skip);
}

/* https://user:secret@host: length of the secret at s, which stands behind "://". */
static size_t url_password(const char *s, size_t *ret_skip)
{
	size_t host = strcspn(s, "/ \t\n'\"");
	const char *at = memchr(s, '@', host);
	const char *colon = at ? memchr(s, ':', (size_t)(at - s)) : NULL;

	if (colon == NULL)
		return 0;
	*ret_skip = (size_t)(colon - s) + 1;
	return (size_t)(at - colon) - 1;
}

static size_t name_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '-')
		n++;
	return n;
}

/* Text that stays, then text that goes, from s on; 0 for both when nothing is known about s. */
static size_t find_secret(const char *s, bool is_start, size_t *ret_keep)
{
	size_t n = name_length(s), skip = 0, hidden;

	if (str_starts(s, "://")) {
		hidden = url_password(s + 3, &skip);
		*ret_keep = 3 + skip;
		return hidden;
	}
	if (!is_start)
		return 0;
	if (n && is_secret_name(s, n)) {
		hidden = value_behind(s + n, s[0] == '-', &skip);
		*ret_keep = n + skip;
		if (hidden)
			return hidden;
	}
	*ret_keep = 0;
	return secret_shape(s);
}

bool redact_with(const char *text, const char *mark, struct buf *out)
{
	bool is_start = true, has_secret = false;

	for (const char *s = text; *s;) {
		size_t keep = 0, hidden = find_secret(s, is_start, &keep);

		if (hidden) {
			buf_add(out, s, keep);
			buf_puts(out, mark);
			has_secret = true;
			s += keep + hidden;
			is_start = false;
			continue;
		}
		is_start = !isalnum((unsigned char)*s) && *s != '_' && *s != '-';
		buf_putc(out, *s++);
	}
	return has_secret;
}

void redact(const char *text, size_t max, struct buf *out)
{
	_free_ char *copy = mem_strn(text, strnlen(text, max));

	(void)redact_with(copy, "***", out);
	if (strnlen(text, max + 1) > max)
		buf_puts(out, "[...]");
}

/* ---- settings ---- */

static bool is_token_key(const char *s, size_t n)
{
	static const char *const words[] = { "token",  "passw",   "secret",  "authident",
					     "apikey", "api_key", "api-key", "accesskey" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (has_word(s, n, words[i]))
			return true;
	return n == 5 && strncasecmp(s, "_auth", 5) == 0;
}

static bool is_literal(const char *s)
{
	static const char *const words[] = { "true", "false", "null", "none" };
	size_t n = strcspn(s, " \t\r\n'\",;<>");

	if (n < 4 || strchr("$%{(", *s))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n == strlen(words[i]) && strncasecmp(s, words[i], n) == 0)
			return false;
	return true;
}

/* Behind a key: `=x`, `: "x"`, and `" value="x"` of XML. */
static bool has_literal_behind(const char *s)
{
	s += strspn(s, "'\"]");
	s += strspn(s, " \t");
	if (strncasecmp(s, "value=", 6) == 0)
		s += 5;
	if (*s != '=' && *s != ':')
		return false;
	s += 1 + strspn(s + 1, " \t");
	s += strspn(s, "'\"");
	return is_literal(s);
}

bool redact_has_token(const char *text)
{
	bool is_start = true;

	if (strstr(text, "PRIVATE KEY-----"))
		return true;
	for (const char *s = text; *s; s++) {
		size_t n = is_start ? name_length(s) : 0, skip = 0;

		if (n && is_token_key(s, n) && has_literal_behind(s + n))
			return true;
		if (is_start && secret_shape(s))
			return true;
		if (str_starts(s, "://") && url_password(s + 3, &skip) &&
		    !strchr("$%{", s[3 + skip]))
			return true;
		is_start = !isalnum((unsigned char)*s) && *s != '_' && *s != '-';
	}
	return false;
}
