/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/wake.h - what a machine is told before the link begins
 *
 * A machine may have been booted long ago, once, and be one of many that continue from there: all of them know the same
 * random numbers. So the first bytes on its port are a seed of its own, and nothing runs in it before it is mixed in.
 * A machine that is booted to be kept says LINK_AWAKE on its port when it waits for that; any other says nothing.
 */
#ifndef VITRINE_ENGINE_VM_WAKE_H
#define VITRINE_ENGINE_VM_WAKE_H

#include <stdint.h>

#define LINK_AWAKE 'A'
#define LINK_WAKE_MAGIC 0x31454b4157525456U /* "VTRWAKE1" */

struct link_wake {
	uint64_t magic;
	uint8_t seed[64];
};

/* What a machine that was parked is told before its link begins anew: it may be a copy, and some time may have passed. */
#define LINK_AGAIN_MAGIC 0x314e494147415654U /* "TVAGAIN1" */

struct link_again {
	uint64_t magic;
	uint64_t clock_ns; /* since 1970 */
	uint8_t seed[64];
};

/* The word of the kernel's command line, behind "--", that makes init say it. */
#define LINK_KEEP "keep"

#endif
