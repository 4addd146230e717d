/* SPDX-License-Identifier: Apache-2.0 */
/* base/page.h - pages of documentation of which one part is made from data, between two marks */
#ifndef VITRINE_BASE_PAGE_H
#define VITRINE_BASE_PAGE_H

#include "base/buf.h"
#include "base/err.h"

/* The page at `path` with `part` between "<!-- NAME: made from NAME/ by the build -->" and "<!-- end of NAME -->". */
int page_fill(const char *path, const char *name, const struct buf *part, struct buf *out,
	      struct err *e);

#endif
