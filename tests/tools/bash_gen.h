/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/bash_gen.h - random command texts; the same seed gives the same texts */
#ifndef VITRINE_TESTS_BASH_GEN_H
#define VITRINE_TESTS_BASH_GEN_H

#include "base/buf.h"

struct gen {
	uint64_t state; /* not 0 */
	unsigned probes;
	struct buf *out;
};

/* The next text, into out (which loses what it held). Probes in it are called p0, p1, ... */
void gen_text(struct gen *g, struct buf *out);

#endif
