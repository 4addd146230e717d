/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loopfile.h - the files of a loop as text; pure, strict. Private to agent/ */
#ifndef VITRINE_AGENT_LOOPFILE_H
#define VITRINE_AGENT_LOOPFILE_H

#include "agent/loopdir.h"
#include "base/json.h"

void loop_def_print(const struct loop_def *d, struct buf *out);
int loop_def_parse(const char *text, size_t n, struct loop_def *ret, struct err *e);
void loop_begin_print(const struct loop_begin *b, struct buf *out);
int loop_begin_parse(const char *text, size_t n, struct loop_begin *ret, struct err *e);

#endif
