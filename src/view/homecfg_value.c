/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg_value.c - one value of a setting, as it may be seen inside; see homecfg.h */
#include <ctype.h>

#include "base/redact.h"
#include "view/homecfg.h"

#define VALUE_MAX (4 * KIB)
#define PIECE_MIN 12 /* the last part of a UUID */
#define JOINED_MIN 16
#define JOINED_LONG 24
#define JOINED_DIGITS 6

static bool is_of(const char *v, const char *more)
{
	if (*v == '\0')
		return false;
	for (; *v; v++)
		if (!isalnum((unsigned char)*v) && strchr(more, *v) == NULL)
			return false;
	return true;
}

static bool is_bool(const char *v)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "1", "0" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(v, words[i]) == 0)
			return true;
	return false;
}

/* A run of letters and digits. */
struct run {
	size_t n, digits, uppers, lowers;
};

static void run_add(struct run *r, unsigned char c)
{
	r->n++;
	r->digits += isdigit(c) != 0;
	r->uppers += isupper(c) != 0;
	r->lowers += islower(c) != 0;
}

static bool is_mixed(const struct run *r)
{
	return r->n >= PIECE_MIN && ((r->digits >= 2 && r->uppers + r->lowers >= 2) ||
				     (r->uppers >= 2 && r->lowers >= 2));
}

/* With dashes and the like in it: words in lower case with a year or a version are none, "aB3-dE6_gH9-jK2_mN5p" is. */
static bool is_mixed_with_dashes(const struct run *r)
{
	return (r->n >= JOINED_MIN && r->digits && r->uppers && r->lowers) ||
	       (r->n >= JOINED_LONG && r->digits >= JOINED_DIGITS);
}

/* Without spaces and words a token is a long run of letters and digits, mixed; dashes, underscores and tildes join runs. */
bool homecfg_is_token(const char *p, size_t n)
{
	struct run run = { 0 }, joined = { 0 };

	for (size_t i = 0; i <= n; i++) {
		unsigned char c = i < n ? (unsigned char)p[i] : '\0';

		if (isalnum(c)) {
			run_add(&run, c);
			run_add(&joined, c);
			continue;
		}
		if (is_mixed(&run) || is_mixed_with_dashes(&joined))
			return true;
		run = (struct run){ 0 };
		if (c == '\0' || strchr("-_~", c) == NULL)
			joined = (struct run){ 0 };
	}
	return false;
}

/* "SCHEME://[USER@]HOST[:PORT][/PATH]", ended by a NUL. */
static bool put_url(const char *v, struct buf *out)
{
	static const char *const schemes[] = { "http", "https",        "ssh",
					       "git",  "sparse+https", "sparse+http" };
	const char *host = strstr(v, "://"), *end, *at;
	bool is_known = false, is_ssh;

	for (const char *p = v; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f ||
		    strchr("?#\\\"'`<>|^{}$;", *p))
			return false;
	if (host == NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		is_known |= strlen(schemes[i]) == (size_t)(host - v) &&
			    strncasecmp(v, schemes[i], (size_t)(host - v)) == 0;
	is_ssh = v[0] == 's' && v[1] == 's';
	host += 3;
	end = host + strcspn(host, "/");
	at = memrchr(host, '@', (size_t)(end - host));
	if (!is_known || homecfg_is_token(end, strlen(end)) || redact_has_token(end))
		return false;
	buf_add(out, v, (size_t)(host - v));
	if (at && is_ssh && at - host == 3 && memcmp(host, "git", 3) == 0)
		buf_puts(out, "git@");
	if (at)
		host = at + 1;
	if (host == end || memchr(host, '%', (size_t)(end - host)) || host[0] == '-')
		return false;
	buf_puts(out, host);
	return true;
}

bool homecfg_url_secret(const char *url, size_t n, size_t *ret_from, size_t *ret_to)
{
	const char *host = memmem(url, n, "://", 3), *end, *at, *colon;

	if (host == NULL)
		return false;
	host += 3;
	end = memchr(host, '/', (size_t)(url + n - host));
	end = end ? end : url + n;
	at = memrchr(host, '@', (size_t)(end - host));
	colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
	if (at == NULL || at == host)
		return false;
	/* "TOKEN:@HOST" and "TOKEN@HOST": the token is the user. */
	*ret_from = (size_t)((colon && colon + 1 < at ? colon + 1 : host) - url);
	*ret_to = (size_t)((colon && colon + 1 == at ? colon : at) - url);
	return *ret_to > *ret_from;
}

static bool put_list(const char *v, bool is_url, struct buf *out)
{
	bool is_any = false;

	while (*v) {
		size_t n = strcspn(v, " \t\n,");
		_free_ char *one = mem_strn(v, n);
		_cleanup_(buf_done) struct buf b = BUF(VALUE_MAX);

		v += n;
		v += strspn(v, " \t\n,");
		if (n == 0 || (is_url ? !put_url(one, &b) : !is_of(one, ".:-*_[]")))
			continue;
		buf_printf(out, "%s%s", is_any ? "\n\t" : "", is_url ? buf_cstr(&b) : one);
		is_any = true;
	}
	return is_any;
}

static bool is_line(const char *v)
{
	for (; *v; v++)
		if ((unsigned char)*v < 0x20 || *v == 0x7f)
			return false;
	return true;
}

static bool put_text(const char *v, bool is_name, struct buf *out)
{
	if (!is_line(v) || strstr(v, "://") || redact_has_token(v) ||
	    (!is_name && homecfg_is_token(v, strlen(v))))
		return false;
	buf_puts(out, v);
	return true;
}

bool homecfg_value(enum homecfg_form form, const char *value, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(VALUE_MAX);
	bool is_ok = false;

	if (strlen(value) >= VALUE_MAX)
		return false;
	switch (form) {
	case FORM_BOOL:
		is_ok = is_bool(value);
		break;
	case FORM_NUMBER:
		is_ok = strspn(value, "0123456789") == strlen(value) && value[0] &&
			strlen(value) < 12;
		break;
	case FORM_WORD:
		is_ok = is_of(value, "-._") && strlen(value) < 64;
		is_ok = is_ok && !homecfg_is_token(value, strlen(value));
		break;
	case FORM_NAME:
	case FORM_TEXT:
		is_ok = put_text(value, form == FORM_NAME, &b);
		break;
	case FORM_URL:
		is_ok = put_url(value, &b);
		break;
	case FORM_URLS:
		is_ok = put_list(value, true, &b);
		break;
	case FORM_HOSTS:
		is_ok = put_list(value, false, &b);
		break;
	}
	if (is_ok && !b.is_over)
		buf_puts(out, b.n ? buf_cstr(&b) : value);
	return is_ok && !b.is_over;
}

void homecfg_quote(struct buf *out, const char *text)
{
	buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
	buf_putc(out, '"');
}
