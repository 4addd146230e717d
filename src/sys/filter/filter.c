/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/filter.c - hands out the filters made at build time
 *
 * filter_data.h is written by gen from syscalls.def. Nothing is computed, allocated or resolved
 * when a sandbox starts: the program lies in read-only data and the kernel copies it in one call.
 *
 * struct sock_fprog wants a pointer to mutable instructions, though the kernel only reads them. The
 * cast through uintptr_t says that this is meant; the pages stay read-only.
 */
#include "sys/filter/filter.h"

#include <stdint.h>
#include <stdlib.h>

#include "filter_data.h"

#define PROG(a)                                                                                    \
	{                                                                                          \
		.len = sizeof(a) / sizeof((a)[0]), .filter = (struct sock_filter *)(uintptr_t)(a)  \
	}

static const struct sock_fprog progs[FILTER_COUNT_] = {
	[FILTER_BASE] = PROG(filter_base),
	[FILTER_DEBUG] = PROG(filter_debug),
	[FILTER_ROOT] = PROG(filter_root),
	[FILTER_BASE_NOTICE] = PROG(filter_base_notice),
	[FILTER_DEBUG_NOTICE] = PROG(filter_debug_notice),
#if defined(VITRINE_SABOTAGE) && VITRINE_SABOTAGE
	[FILTER_NOARCH] = PROG(filter_noarch),
	[FILTER_NOARGS] = PROG(filter_noargs),
#endif
};

const struct sock_fprog *filter_get(enum filter_kind kind)
{
	if ((unsigned int)kind >= FILTER_COUNT_)
		abort();
	return &progs[kind];
}
