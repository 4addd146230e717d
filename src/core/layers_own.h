/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_own.h - what layers.c and layers_file.c share */
#ifndef VITRINE_CORE_LAYERS_OWN_H
#define VITRINE_CORE_LAYERS_OWN_H

#include "core/layers.h"

int layers_lock(const char *state_dir, struct err *e);
int layers_finish_move(struct layers *l, struct err *e);

#endif
