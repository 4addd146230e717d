/* SPDX-License-Identifier: Apache-2.0 */
/* base/sabotage.h - remove one wall on purpose, in the test build only
 *
 * A containment suite that cannot fail proves nothing. In a build with -Dsabotage=true the environment variable
 * VITRINE_SABOTAGE names walls to leave out, and the suite must then turn red. In every other build sabotaged()
 * is the constant false and no trace of this is left in the binary.
 */
#ifndef VITRINE_BASE_SABOTAGE_H
#define VITRINE_BASE_SABOTAGE_H

#include "base/base.h"

#ifdef VITRINE_SABOTAGE
bool sabotaged(const char *wall);
/* "VITRINE_SABOTAGE=...", for a program of ours that gets an environment. */
void sabotage_env(char *to, size_t size);
#else
#define sabotaged(wall) false
#endif

/* The environment of a program of ours that gets none: nothing, and in the test build the walls to leave out. */
char *const *sabotage_bare_env(void);

#endif
