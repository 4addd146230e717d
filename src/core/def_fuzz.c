/* SPDX-License-Identifier: Apache-2.0 */
/* core/def_fuzz.c - any bytes as sandbox.json: refused, or what is printed of it means the same */
#include "core/def.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(def_done) struct def d = { 0 }, back = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(16 * MIB);
	struct err e = ERR_INIT;

	if (def_parse((const char *)data, size, &d, &e) < 0) {
		bug_on(e.kind != ERR_CONFIG || e.msg[0] == '\0');
		return 0;
	}
	bug_on(!def_is_name(d.name) || d.workspace[0] != '/');
	def_print(&d, &b);
	bug_on(def_parse(buf_cstr(&b), b.n, &back, &e) < 0);
	bug_on(!str_eq(d.workspace, back.workspace) || d.n_flags != back.n_flags ||
	       d.created != back.created || !str_eq(d.agent, back.agent));
	return 0;
}
