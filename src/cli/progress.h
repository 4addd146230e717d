/* SPDX-License-Identifier: Apache-2.0 */
/* cli/progress.h - how far saving a workspace is, on a terminal and when it takes longer than a moment */
#ifndef VITRINE_CLI_PROGRESS_H
#define VITRINE_CLI_PROGRESS_H

#include "tree/tree.h"

/* `last` is the caller's, for as long as it goes on. */
struct tree_progress progress_show(uint64_t *last);
void progress_end(uint64_t last);
/* "1.5 MiB" */
void progress_size(uint64_t n, char *out, size_t size);

#endif
