/* SPDX-License-Identifier: Apache-2.0 */
/* tree/runs.h - which changed files are likely to be run on the host later
 *
 * Writing a program or a build file in the workspace is an agent's work and allowed; what it wrote runs with the user's
 * rights once he builds or tests. So those who look at a difference are told which of the files that are.
 */
#ifndef VITRINE_TREE_RUNS_H
#define VITRINE_TREE_RUNS_H

#include "tree/tree.h"

/* One short phrase, or NULL: nothing to be said. A file that is gone runs nothing. */
const char *tree_runs(const struct change *c);

#endif
