/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg_fuzz.c - any bytes; and what the strict grammar accepts, git's own must read the same way */
#include "base/buf.h"
#include "view/gitcfg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int put_item(void *arg, const struct gitcfg_item *it)
{
	struct buf *b = arg;

	buf_printf(b, "%s\1%s\1%s\1%s\2", it->section, it->sub ? it->sub : "\3", it->key,
		   it->value ? it->value : "\3");
	(void)gitcfg_refers(it);
	return 0;
}

static bool says_yes(void *arg, const char *path)
{
	(void)arg;
	(void)path;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf strict = BUF(16 * MIB), git = BUF(16 * MIB);
	_cleanup_(buf_done) struct buf rest = BUF(MIB);
	_free_ char *text = mem_strn((const char *)data, n), *why = NULL;
	int a = gitcfg_read(text, n, GITCFG_STRICT, put_item, &strict);
	int b = gitcfg_read(text, n, GITCFG_GIT, put_item, &git);

	bug_on(a == 0 && (b != 0 || !str_eq(buf_cstr(&strict), buf_cstr(&git))));
	why = gitcfg_objection(text, n, says_yes, NULL);
	bug_on(why == NULL && a != 0);
	/* What is left is harmless, and a config that is harmless as it is has something left. */
	if (gitcfg_rest(text, n, says_yes, NULL, &rest)) {
		_free_ char *again = gitcfg_objection(buf_cstr(&rest), rest.n, says_yes, NULL);

		bug_on(again != NULL || rest.n > n);
	} else {
		bug_on(why == NULL);
	}
	return 0;
}
