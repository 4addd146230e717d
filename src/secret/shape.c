/* SPDX-License-Identifier: Apache-2.0 */
/* secret/shape.c - see secret.h
 *
 * Programs look at keys before they use them: how they begin, how long they are. A placeholder has to pass for one, and
 * must not help to guess it: characters are drawn from the kinds that the value has anywhere, so where it has which
 * stays unknown.
 */
#include "base/sha256.h"
#include "secret/secret.h"

enum { LEAST_RANDOM = 16 };

static const char *const beginnings[] = {
	"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-admin01-",
	"sk-ant-",       "sk-proj-",      "sk-svcacct-",   "sk-or-v1-",
	"sk-",           "ghp_",          "gho_",          "ghu_",
	"ghs_",          "ghr_",          "github_pat_",   "glpat-",
	"AIza",          "ya29.",         "1//",           "gsk_",
	"xai-",          "fk-",           "key_",          "npm_",
	"hf_",           "eyJ",           "ksk_",          "Bearer ",
};

static size_t beginning(struct str value)
{
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (str_has_prefix(value, beginnings[i]))
			return strlen(beginnings[i]);
	return 0;
}

static const char *const kinds[] = { "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
				     "0123456789", "-", "_" };

static void take_alphabet(struct secret *s, struct str rest)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < rest.n; i++)
			if (strchr(kinds[k], rest.p[i])) {
				buf_puts(&b, kinds[k]);
				break;
			}
	if (b.n < 10)
		buf_puts(&b, kinds[0]);
	free(s->alphabet);
	s->alphabet = buf_take(&b);
}

void secret_take_shape(struct secret *s, struct str value)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * SECRET_VALUE_MAX);
	size_t start = beginning(value), random = 0;

	buf_add(&b, value.p, start);
	for (size_t i = start; i < value.n; i++) {
		buf_putc(&b, value.p[i] == '.' ? '.' : '?');
		random += value.p[i] != '.';
	}
	if (random < LEAST_RANDOM) {
		b.n = 0;
		buf_printf(&b, "vitrine-%s-????????????????????????", s->name);
	}
	free(s->shape);
	s->shape = buf_take(&b);
	take_alphabet(s, str_from(value, start));
}

static bool is_base64url(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
			    s.p[i]))
			return false;
	return s.n > 0;
}

void secret_take_claims(struct secret *s, struct str value)
{
	const char *first = memchr(value.p, '.', value.n);
	const char *second =
		first ? memchr(first + 1, '.', value.n - (size_t)(first + 1 - value.p)) : NULL;
	size_t kept = second ? (size_t)(second + 1 - value.p) : 0;
	struct str rest = str_from(value, kept);

	secret_take_shape(s, value);
	if (second == NULL || !str_has_prefix(value, "eyJ") || rest.n < LEAST_RANDOM ||
	    !is_base64url(rest) ||
	    !is_base64url((struct str){ .p = first + 1, .n = (size_t)(second - first) - 1 }))
		return;
	memcpy(s->shape, value.p, kept);
}

void secret_placeholder(const struct secret *s, const uint8_t seed[SECRET_SEED], struct buf *out)
{
	size_t n = strlen(s->alphabet), at = SHA256_BYTES;
	uint8_t digest[SHA256_BYTES];
	uint32_t block = 0;

	for (const char *c = s->shape; *c; c++) {
		if (*c != '?') {
			buf_putc(out, *c);
			continue;
		}
		if (at == SHA256_BYTES) {
			_cleanup_(buf_done) struct buf b = BUF(KIB);

			buf_add(&b, seed, SECRET_SEED);
			buf_printf(&b, "%s %u", s->name, block++);
			sha256(b.p, b.n, digest);
			at = 0;
		}
		buf_putc(out, s->alphabet[digest[at++] % n]);
	}
}
