/* SPDX-License-Identifier: Apache-2.0 */
/* broker/scan.c - credentials by what they look like
 *
 * Only shapes that are hardly anything else: a known beginning, then at least so many characters of an alphabet. What is
 * written in manuals as an example is let through. This finds mistakes; it keeps nobody from encoding a secret.
 */
#include "broker/broker.h"

#define LFS_POINTER_MAX 1024 /* git-lfs itself takes nothing larger for one */

enum alphabet { ALNUM, UPPER, HEX, WORD };

static bool is_of(char c, enum alphabet a)
{
	bool is_digit = c >= '0' && c <= '9', is_upper = c >= 'A' && c <= 'Z',
	     is_lower = c >= 'a' && c <= 'z';

	switch (a) {
	case ALNUM:
		return is_digit || is_upper || is_lower;
	case UPPER:
		return is_digit || is_upper;
	case HEX:
		return is_digit || (c >= 'a' && c <= 'f');
	case WORD:
		return is_digit || is_upper || is_lower || c == '_' || c == '-';
	}
	return false;
}

static const struct {
	char head[16];
	char kind[32];
	uint8_t least, most; /* characters behind the head; most 0: no end */
	uint8_t alphabet;
} shapes[] = {
	{ "AKIA", "AWS access key", 16, 16, UPPER },
	{ "ASIA", "AWS access key", 16, 16, UPPER },
	{ "ghp_", "GitHub token", 36, 0, ALNUM },
	{ "gho_", "GitHub token", 36, 0, ALNUM },
	{ "ghu_", "GitHub token", 36, 0, ALNUM },
	{ "ghs_", "GitHub token", 36, 0, ALNUM },
	{ "ghr_", "GitHub token", 36, 0, ALNUM },
	{ "github_pat_", "GitHub token", 60, 0, WORD },
	{ "glpat-", "GitLab token", 20, 0, WORD },
	{ "sk-ant-", "Anthropic key", 24, 0, WORD },
	{ "sk-proj-", "OpenAI key", 32, 0, WORD },
	{ "sk-", "OpenAI key", 40, 0, ALNUM },
	{ "xoxb-", "Slack token", 24, 0, WORD },
	{ "xoxp-", "Slack token", 24, 0, WORD },
	{ "xoxa-", "Slack token", 24, 0, WORD },
	{ "AIza", "Google API key", 35, 35, WORD },
	{ "SG.", "SendGrid key", 22, 0, WORD },
	{ "npm_", "npm token", 36, 0, ALNUM },
	{ "pypi-AgEI", "PyPI token", 40, 0, WORD },
	{ "hf_", "Hugging Face token", 34, 0, ALNUM },
	{ "sk_live_", "Stripe key", 24, 0, ALNUM },
	{ "rk_live_", "Stripe key", 24, 0, ALNUM },
	{ "dop_v1_", "DigitalOcean token", 64, 64, HEX },
};

static bool is_example(const char *p, size_t n)
{
	return memmem(p, n, "EXAMPLE", 7) || memmem(p, n, "example", 7) ||
	       memmem(p, n, "xxxxxxxx", 8) || memmem(p, n, "XXXXXXXX", 8) ||
	       memmem(p, n, "00000000", 8);
}

static bool fits_shape(const char *p, size_t n, size_t i)
{
	size_t head = strlen(shapes[i].head), len = head;

	if (n < head + shapes[i].least || memcmp(p, shapes[i].head, head) != 0)
		return false;
	while (len < n && is_of(p[len], shapes[i].alphabet))
		len++;
	if (len - head < shapes[i].least || (shapes[i].most && len - head > shapes[i].most))
		return false;
	return !is_example(p, len);
}

static bool is_private_key(const char *p, size_t n)
{
	const char *end;

	if (n < 64 || memcmp(p, "-----BEGIN ", 11) != 0)
		return false;
	end = memmem(p, n < 64 ? n : 64, "PRIVATE KEY", 11);
	return end && memmem(end, n - (size_t)(end - p), "-----END ", 9);
}

const char *scan_secret(const char *p, size_t n)
{
	for (size_t at = 0; at < n; at++) {
		if (p[at] == '-' && is_private_key(p + at, n - at))
			return "private key";
		if (at > 0 && is_of(p[at - 1], WORD))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
			if (p[at] == shapes[i].head[0] && fits_shape(p + at, n - at, i))
				return shapes[i].kind;
	}
	return NULL;
}

bool scan_is_lfs(const char *p, size_t n)
{
	static const char first[] = "version https://git-lfs.github.com/spec/v1\n", oid[] = "\noid "
											    "sha256"
											    ":";

	return n > strlen(first) && n < LFS_POINTER_MAX && memcmp(p, first, strlen(first)) == 0 &&
	       memmem(p, n, oid, strlen(oid));
}
