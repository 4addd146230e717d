/* SPDX-License-Identifier: Apache-2.0 */
/* image/main.c - vitrine-image: run by `vitrine` in its workshop; see image.h */
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
