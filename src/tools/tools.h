/* SPDX-License-Identifier: Apache-2.0 */
/* tools/tools.h - vitrine-tools: one small program inside, under the names of the tools it stands in front of */
#ifndef VITRINE_TOOLS_TOOLS_H
#define VITRINE_TOOLS_TOOLS_H

#include "tools/judge.h"

/* real.c: the program of this name that comes behind us on PATH. */
char *real_path(const char *name);
/* Does not return; 127 when there is none. */
_Noreturn void real_exec(const char *name, char *const *argv);
/* Runs it and takes what it prints, without the last newline. -1, or its exit status. */
int real_run(const char *name, const char *const *argv, struct buf *out);

/* stand_in.c: `name` is the tool. Returns only when the call was refused. */
int stand_in_main(const char *name, int argc, char **argv);

/* trash.c: keeps a copy (or a second name) of a file or tree; false: too large to be kept, or not there.
 * may_link: the file itself will not be written to, only its name goes. */
bool trash_save(const char *cwd, const char *path, bool may_link);
int trash_main(int argc, char **argv);

/* remote.c, ask.c: what the broker does. */
int remote_main(int argc, char **argv);
int ask_main(int argc, char **argv);

#endif
