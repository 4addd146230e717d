/* SPDX-License-Identifier: Apache-2.0 */
/* cli/progress.c - see progress.h */
#include "cli/progress.h"

#include <time.h>

#include "base/base.h"

void progress_size(uint64_t n, char *out, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)n;
	size_t u = 0;

	while (v >= 1024 && u + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		u++;
	}
	(void)snprintf(out, size, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void on_progress(void *arg, uint64_t files, uint64_t bytes)
{
	uint64_t *last = arg, now = (uint64_t)time(NULL);
	char size[32];

	if (*last == 0 || now == *last) { /* nothing in the first second */
		*last = *last ? *last : now;
		return;
	}
	*last = now;
	progress_size(bytes, size, sizeof(size));
	(void)fprintf(stderr, "\rvitrine: %llu files, %s saved ...\033[K",
		      (unsigned long long)files, size);
}

struct tree_progress progress_show(uint64_t *last)
{
	*last = 0;
	return isatty(2) ? (struct tree_progress){ .fn = on_progress, .arg = last }
			 : (struct tree_progress){ 0 };
}

void progress_end(uint64_t last)
{
	if (last && isatty(2))
		(void)fputs("\r\033[K", stderr);
}
