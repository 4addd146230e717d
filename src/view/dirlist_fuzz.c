/* SPDX-License-Identifier: Apache-2.0 */
/* view/dirlist_fuzz.c - a list's file of any content: whatever passes for whole can be walked without leaving it
 *
 * The sum is put right first, else nothing would be looked at; the first byte decides whether that is done.
 */
#include "base/buf.h"
#include "view/index_own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool count(void *arg, const char *rel)
{
	*(size_t *)arg += strlen(rel);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct index_rules rules = { 0 };
	struct index x = { 0 };
	_free_ char *bytes = NULL;
	size_t total = 0;

	if (n < 1 || n > MIB)
		return 0;
	bytes = mem_grow(NULL, n, 1);
	memcpy(bytes, data + 1, n - 1);
	if (data[0] & 1 && n - 1 >= INDEX_HEAD_BYTES) {
		index_seal(bytes, n - 1);
		memcpy(rules.digest, bytes + INDEX_HEAD_DIGEST, sizeof(rules.digest));
	}
	if (!index_parse(&x, bytes, n - 1, &rules))
		return 0;
	for (uint32_t i = 0; i < x.n; i++) {
		struct index_item it;
		_free_ char *path = index_path(&x, i, "name");

		total += strlen(path) + index_find(&x, x.dirs[i].ino);
		for (size_t at = 0; index_next(&x, i, &at, &it);)
			total += it.len;
	}
	index_setid_files(&x, count, &total);
	free(x.by_ino);
	return total == SIZE_MAX;
}
