/* SPDX-License-Identifier: Apache-2.0 */
/* base/listing.h - the names in a directory, as bytes: what init says of one to whoever copies it
 *
 * Each entry is its name, a NUL, what it leads to when it is a link, and a NUL. The reader treats it as foreign: a name
 * is never empty, "." or "..", holds no '/', and is no longer than a file system allows.
 */
#ifndef VITRINE_BASE_LISTING_H
#define VITRINE_BASE_LISTING_H

#include "base/buf.h"

#define LISTING_MAX (32 * MIB)  /* of one directory */
#define LISTING_ENTRY (8 * KIB) /* more than any of them takes */

/* False: not a name, or a target that is too long; nothing was added. */
bool listing_add(struct buf *b, const char *name, const char *target);

struct listing {
	const char *p;
	size_t left;
};

/* The next entry; target is "" unless it is a link. 1, 0 at the end, -EBADMSG. */
int listing_next(struct listing *l, const char **ret_name, const char **ret_target);

#endif
