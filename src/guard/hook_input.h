/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook_input.h - a tool's arguments as things that would be done; part of guard/hook.h */
#ifndef VITRINE_GUARD_HOOK_INPUT_H
#define VITRINE_GUARD_HOOK_INPUT_H

#include "guard/hook.h"

/* Everything in the arguments that is a command, code, a statement or a path. */
void hook_acts(struct arena *mem, const struct json *input, struct hook_call *c);
/* A list of words as a shell would be given them; NULL when they are not all texts. */
const char *hook_words(struct arena *mem, const struct json *list);

#endif
