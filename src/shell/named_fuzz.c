/* SPDX-License-Identifier: Apache-2.0 */
/* shell/named_fuzz.c - any bytes as a command: no crash, no endless work, and what stands at its head is named */
#include "base/buf.h"
#include "shell/named.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look(void *arg, const char *dir, const char *path, bool is_sure)
{
	bool *has = arg;

	bug_on(path[0] == '\0' || dir == NULL);
	if (is_sure && str_eq(path, "./tool"))
		*has = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	bool has = false;

	buf_puts(&text, "./tool ;\n");
	buf_add(&text, data, n);
	shell_named(buf_cstr(&text), look, &has);
	bug_on(!has);
	return 0;
}
