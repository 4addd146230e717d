/* SPDX-License-Identifier: Apache-2.0 */
/* shell/named.h - which files does a command name?
 *
 * For commands that somebody else will run later: the program at their head, the script behind an interpreter
 * (`env A=1 python3 -u x.py`), what an option or a variable names (`node --require ./x y`, `make -f x`,
 * `BASH_ENV=./x sh y`), the texts inside (`sh -c './x'`, `!f() { ./x; }; f`). Whether such a file exists is the caller's
 * question. What is put together at run time has no name, but for a directory in front ("$PWD/x", "$(git rev-parse
 * --show-toplevel)/x"): that is taken for the directory the command starts in.
 */
#ifndef VITRINE_SHELL_NAMED_H
#define VITRINE_SHELL_NAMED_H

#include "base/base.h"

/* dir: "", or a directory that the command goes into first (`cd t && ./x`): the path may be meant from there. is_sure: this
 * is a file, whether it exists or not; else it may as well be an argument, and counts where a file of that name is. */
typedef void (*shell_named_fn)(void *arg, const char *dir, const char *path, bool is_sure);

/* May name too much, and the same file several times; a text that cannot be read is cut at blanks and quotes. */
void shell_named(const char *text, shell_named_fn fn, void *arg);

#endif
