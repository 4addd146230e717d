/* SPDX-License-Identifier: Apache-2.0 */
/* base/title.c - see title.h */
#include "base/title.h"

static char *area;
static size_t area_size;

/* The kernel lays out the strings of argv and then of the environment back to back. */
void title_init(int argc, char **argv)
{
	char *end = argv[0];

	if (argc < 1)
		return;
	area = argv[0];
	for (int i = 0; i < argc && argv[i] == end; i++)
		end = argv[i] + strlen(argv[i]) + 1;
	for (char **v = environ; v && *v && *v == end; v++)
		end = *v + strlen(*v) + 1;
	area_size = (size_t)(end - area);
}

void title_set(const char *title)
{
	static char *none[] = { NULL };

	environ = none;
	if (area == NULL)
		return;
	explicit_bzero(area, area_size);
	(void)snprintf(area, area_size, "%s", title);
}
