/* SPDX-License-Identifier: Apache-2.0 */
/* tree/ignore_fuzz.c - a .gitignore of any bytes */
#include "tree/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_free_ char *text = mem_strn((const char *)data, n < 4096 ? n : 4096);
	struct ignore *g = NULL;

	ignore_add(&g, "", (const char *)data, n < 4096 ? n : 4096);
	ignore_add(&g, "a/b", text, strlen(text));
	bug_on(ignore_dir(g, "a/b/.git"));
	(void)ignore_dir(g, "a/b/c");
	ignore_leave(g, "x"); /* the rules of a/b go */
	(void)ignore_dir(g, "node_modules");
	ignore_free(g);
	return 0;
}
