/* SPDX-License-Identifier: Apache-2.0 */
/* tree/runs.c - see runs.h */
#include <ctype.h>
#include <sys/stat.h>

#include "base/sabotage.h"
#include "policy/policy.h"
#include "tree/runs.h"

/* Could the pattern match a path with this last component? From both ends of the two: most answers are no. */
static bool is_possible(const char *pattern, const char *name, size_t len)
{
	char last = pattern[strlen(pattern) - 1];

	if (len == 0 || (last != '*' && last != name[len - 1]))
		return false;
	return pattern[0] == '*' || pattern[0] == name[0];
}

/* Read by programs that execute what stands in them: data/names.json. In any case: make reads "MAKEFILE" on some systems. */
static bool is_build_file(const char *path)
{
	_free_ char *lower = mem_str(path);
	const char *name = strrchr(lower, '/');
	size_t len;

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	name = name ? name + 1 : lower;
	len = strlen(name);
	for_names(pattern, names_note)
		if (is_possible(pattern, name, len) && glob_match(pattern, lower))
			return true;
	return false;
}

const char *tree_runs(const struct change *c)
{
	if (c->b == NULL || !S_ISREG(c->b->mode) || sabotaged("runs"))
		return NULL;
	if (c->b->mode & (S_IXUSR | S_IXGRP | S_IXOTH))
		return "executable";
	return is_build_file(c->b->path) ? "build tools run what stands in it" : NULL;
}
