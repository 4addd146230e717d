/* SPDX-License-Identifier: Apache-2.0 */
/* base/title.h - what /proc/PID/cmdline says of a process that was forked, not executed
 *
 * A keeper and an init are copies of the CLI, and its arguments and environment are still in their memory. They
 * are overwritten: nothing inside may read on the command line of pid 1 where Vitrine lies or what it was told.
 */
#ifndef VITRINE_BASE_TITLE_H
#define VITRINE_BASE_TITLE_H

#include "base/base.h"

/* Once, first thing in main. */
void title_init(int argc, char **argv);
/* Wipes arguments and environment, then writes the title there. Nothing may point into them any more. */
void title_set(const char *title);

#endif
