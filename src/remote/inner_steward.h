/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_steward.h - who moves the files' bytes in a machine that can be saved, and how init speaks to it */
#ifndef VITRINE_REMOTE_INNER_STEWARD_H
#define VITRINE_REMOTE_INNER_STEWARD_H

#include "base/base.h"

#define STEWARD_WAYS 2 /* the view, the programs */

/* Each is answered by one byte, the same: nothing is on the way any more; it goes on. */
enum { STEWARD_STOP = 'S', STEWARD_GO = 'G' };

struct steward_msg {
	uint64_t op;
	uint64_t clock_ns; /* of STEWARD_GO: since 1970 */
	uint8_t seed[64];
};

/* Forks it. `ret_kernel`: what the kernel mounts from. Its control, or -errno. */
int steward_start(const int *take_ports, size_t n, int ret_kernel[STEWARD_WAYS]);

#endif
