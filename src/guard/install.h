/* SPDX-License-Identifier: Apache-2.0 */
/* guard/install.h - put the hook into an agent's settings, and take it out again */
#ifndef VITRINE_GUARD_INSTALL_H
#define VITRINE_GUARD_INSTALL_H

#include "guard/hook.h"

/* Writes the user's settings of this agent. *ret_path is the file; what was done is said in one line in out.
 * `program` is the absolute path of vitrine. is_dry: the new content goes to out and nothing is written. */
int guard_install(enum agent a, const char *program, bool is_dry, struct buf *out, struct err *e);
int guard_uninstall(enum agent a, bool is_dry, struct buf *out, struct err *e);

/* The file below the home; NULL: none is known. */
const char *install_file(enum agent a);
/* What that file holds with our entries in it: `before` is what it would hold without, NULL: nothing. */
int install_text(enum agent a, const char *before, const char *program, struct buf *out,
		 struct err *e);

/* The text with our entries in (program) or out (NULL); for tests. */
int install_edit(enum agent a, const char *text, size_t n, const char *program, struct buf *out,
		 struct err *e);

#endif
