/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-image.c - vitrine-image: OCI images from the layers of a sandbox, and trees from images (image/image.h)
 *
 * For: `save`, `load` and `template`, which run it in the workshop (core/workshop.h).
 * Links: libc, libarchive and libcrypto. No other program links libarchive.
 * Talks to: nobody. It reads the directories and the archive that it was given, and writes into one empty directory.
 * Must not: run outside the workshop on an archive that came from somebody else.
 * Promises: none of its own. The walls of the workshop are those of a sandbox without a network.
 */
#include <locale.h>
#include <sys/stat.h>

#include "image/image.h"

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int r = -EINVAL;

	(void)umask(022);
	/* Names are bytes; as UTF-8 where they are that. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 1 && str_eq(argv[1], "pack"))
		r = image_pack(argc - 1, argv + 1, &e);
	else if (argc > 1 && str_eq(argv[1], "unpack"))
		r = image_unpack(argc - 1, argv + 1, &e);
	else if (argc > 1 && str_eq(argv[1], "settle"))
		r = image_settle(argc - 1, argv + 1, &e);
	else
		(void)err_set(&e, ERR_USAGE, EINVAL, "vitrine-image is run by 'vitrine'");
	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	return r < 0 ? 1 : 0;
}
