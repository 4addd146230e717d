/* SPDX-License-Identifier: Apache-2.0 */
/* cli/found.c - programs of the host, found on PATH as a shell finds them */
#include <sys/stat.h>

#include "cli/cli.h"

char *cli_find_program(const char *name)
{
	const char *p = getenv("PATH");

	for (size_t n; p && *p; p += n + (p[n] == ':')) {
		_free_ char *dir = mem_strn(p, n = strcspn(p, ":"));
		_free_ char *path = mem_fmt("%s/%s", dir, name);
		struct stat st;

		if (dir[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0)
			return take(path);
	}
	return NULL;
}
