/* SPDX-License-Identifier: Apache-2.0 */
/* cli/measure.h - what a start costs */
#ifndef VITRINE_CLI_MEASURE_H
#define VITRINE_CLI_MEASURE_H

#include "base/buf.h"

struct measured {
	uint64_t best_ns, median_ns;
};

/* False: it does not start here, and `why` is the last line that was said of it. */
bool measure_start(const char *engine, struct measured *ret, struct buf *why);

/* The last line of what a program wrote, without "vitrine: " in front, escaped. */
void measure_last_line(int fd, struct buf *out);

#endif
