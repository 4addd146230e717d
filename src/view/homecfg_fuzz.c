/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg_fuzz.c - any bytes as each of the files; what comes out must be read by the same code and be the same */
#include "view/homecfg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef int filter_fn(const char *text, size_t n, struct buf *out);

static int git(const char *text, size_t n, struct buf *out)
{
	const struct homecfg_place place = { "/h", "/w", NULL, NULL };

	return homecfg_git("/h/.gitconfig", text, n, &place, out);
}

/* What is given out has no control character, and a key of npm's is one word. */
static int token(void *arg, const struct homecfg_token *t)
{
	bug_on(t->key == NULL || (t->around && strstr(t->around, "{}") == NULL));
	for (const char *p = t->host ? t->host : ""; *p; p++)
		bug_on((unsigned char)*p <= 0x20 || *p == '/');
	*(size_t *)arg += t->value ? strlen(t->value) : 0;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t sum = 0;
	static filter_fn *const filters[] = { git, homecfg_npm, homecfg_pip, homecfg_cargo };
	_free_ char *text = n ? mem_strn((const char *)data + 1, n - 1) : NULL;
	_cleanup_(buf_done) struct buf once = BUF(4 * MIB), twice = BUF(4 * MIB);
	filter_fn *fn;

	if (n == 0)
		return 0;
	(void)homecfg_npm_tokens(text, n - 1, token, &sum);
	(void)homecfg_pip_tokens(text, n - 1, token, &sum);
	(void)homecfg_cargo_tokens(text, n - 1, token, &sum);
	bug_on(sum > 4 * n);
	fn = filters[data[0] % ARRAY_LEN(filters)];
	if (fn(text, n - 1, &once) < 0) {
		bug_on(once.n != 0);
		return 0;
	}
	bug_on(fn(buf_cstr(&once), once.n, &twice) < 0);
	bug_on(!str_eq(buf_cstr(&once), buf_cstr(&twice)));
	return 0;
}
