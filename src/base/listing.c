/* SPDX-License-Identifier: Apache-2.0 */
/* base/listing.c - see listing.h */
#include <limits.h>

#include "base/listing.h"

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= NAME_MAX && strchr(name, '/') == NULL && !str_eq(name, ".") &&
	       !str_eq(name, "..");
}

bool listing_add(struct buf *b, const char *name, const char *target)
{
	if (!is_name(name) || strlen(target) >= PATH_MAX)
		return false;
	buf_add(b, name, strlen(name) + 1);
	buf_add(b, target, strlen(target) + 1);
	return true;
}

/* Up to its NUL, which must be there. */
static const char *take_text(struct listing *l)
{
	const char *text = l->p, *end = l->left ? memchr(l->p, '\0', l->left) : NULL;

	if (end == NULL)
		return NULL;
	l->left -= (size_t)(end - text) + 1;
	l->p = end + 1;
	return text;
}

int listing_next(struct listing *l, const char **ret_name, const char **ret_target)
{
	const char *name, *target;

	if (l->left == 0)
		return 0;
	name = take_text(l);
	target = name ? take_text(l) : NULL;
	if (target == NULL || !is_name(name) || strlen(target) >= PATH_MAX)
		return -EBADMSG;
	*ret_name = name;
	*ret_target = target;
	return 1;
}
