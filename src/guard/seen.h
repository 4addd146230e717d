/* SPDX-License-Identifier: Apache-2.0 */
/* guard/seen.h - the names of all commands in a text, for holding the reader against bash */
#ifndef VITRINE_GUARD_SEEN_H
#define VITRINE_GUARD_SEEN_H

#include "shell/shell.h"

struct seen {
	struct arena *mem;
	const char **names;
	size_t n, cap;
	bool is_open;    /* runs something whose name is made at run time */
	const char *why; /* of a refusal */
};

/* False when the text was refused. */
bool seen_text(struct seen *s, const char *text, size_t n);
bool seen_has(const struct seen *s, const char *name);

#endif
