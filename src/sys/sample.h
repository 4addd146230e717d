/* SPDX-License-Identifier: Apache-2.0 */
/* sys/sample.h - what the processes of one /proc use together, by looking at each */
#ifndef VITRINE_SYS_SAMPLE_H
#define VITRINE_SYS_SAMPLE_H

#include "base/base.h"

struct sample {
	uint64_t memory; /* resident and not shared with a file */
	uint64_t cpu_ns; /* of the living and of what they waited for */
	uint64_t pids;
};

/* `proc` is a directory of a proc file system. What ends while we look is not counted. */
void sample_take(int proc, struct sample *ret);

#endif
