/* SPDX-License-Identifier: Apache-2.0 */
/* cli/measure.h - what a start costs */
#ifndef VITRINE_CLI_MEASURE_H
#define VITRINE_CLI_MEASURE_H

#include "base/base.h"

struct measured {
	uint64_t best_ns, median_ns;
};

/* False: it does not start here. */
bool measure_start(const char *engine, struct measured *ret);

#endif
