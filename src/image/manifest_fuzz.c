/* SPDX-License-Identifier: Apache-2.0 */
/* image/manifest_fuzz.c - what an image says of itself: never a file outside, never a crash */
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const char *file)
{
	_free_ char *again = image_path(file);

	bug_on(again == NULL || !str_eq(again, file) || file[0] == '/' || file[0] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	_free_ char *text = mem_strn((const char *)p, n);
	_free_ char *file = NULL, *digest = NULL, *path = image_path(text);
	struct err e = ERR_INIT;
	struct image i;
	bool is_index;

	if (path && path[0])
		check(path);
	if (image_pick(text, n, &file, &digest, &is_index, &e) == 0)
		check(file);
	if (image_manifest(text, n, &i, &e) == 0) {
		check(i.config);
		for (size_t k = 0; k < i.n; k++)
			check(i.layers[k].file);
		image_done(&i);
	}
	if (image_docker(text, n, &i, &e) == 0) {
		check(i.config);
		for (size_t k = 0; k < i.n; k++)
			check(i.layers[k].file);
		image_done(&i);
	}
	return 0;
}
