/* SPDX-License-Identifier: Apache-2.0 */
/* tree/index_fuzz.c - no bytes may lead the reader astray; the checksum is made right, since no fuzzer finds it */
#include "tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct tree_index *x)
{
	for (size_t i = 0; i < x->n; i++) {
		bug_on(x->v[i].path[0] == '/' || strstr(x->v[i].path, "//") ||
		       str_eq(x->v[i].name, ".."));
		bug_on(tree_find(x, x->v[i].path) != &x->v[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	_cleanup_(buf_done) struct buf again = BUF(MIB);
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	uint8_t sum[SHA256_BYTES];
	struct err e = ERR_INIT;

	buf_add(&b, data, n);
	sha256(b.p, b.n, sum);
	buf_add(&b, sum, sizeof(sum));
	if (b.is_over || tree_decode(b.p, b.n, &x, &e) < 0)
		return 0;
	check(&x);
	bug_on(tree_encode(&x, &again, &e) < 0 && e.num != EMSGSIZE);
	return 0;
}
