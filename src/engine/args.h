/* SPDX-License-Identifier: Apache-2.0 */
/* engine/args.h - an argument vector that grows */
#ifndef VITRINE_ENGINE_ARGS_H
#define VITRINE_ENGINE_ARGS_H

#include "base/buf.h"

struct args {
	char **v; /* NULL-ended */
	size_t n, cap;
};

void args_add(struct args *a, const char *text);
void args_addf(struct args *a, const char *fmt, ...) PRINTF(2, 3);
/* Several at once, ended by NULL. */
void args_put(struct args *a, ...) __attribute__((sentinel));
void args_done(struct args *a);
/* One argument a line, an option's arguments behind it: for golden files and `explain`. */
void args_print(const struct args *a, struct buf *out);

#endif
