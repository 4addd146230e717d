/* SPDX-License-Identifier: Apache-2.0 */
/* engine/seatbelt/seatbelt.h - profiles for macOS; made and compared everywhere, started there only */
#ifndef VITRINE_ENGINE_SEATBELT_SEATBELT_H
#define VITRINE_ENGINE_SEATBELT_SEATBELT_H

#include "engine/render.h"

/* `private_dir`: where this sandbox's home and temporary files lie on the host. ERR_UNSUPPORTED names what no profile
 * can say. */
int seatbelt_profile(const struct plan *p, const char *private_dir, struct buf *out, struct err *e);

/* check.c: of our grammar, with operations and filters that are known, and refusing by default. */
bool seatbelt_is_profile(const char *text);

/* The words that run a command behind a profile. */
void seatbelt_args(const char *profile, char *const *argv, struct args *out);
/* launch.c, on macOS: in the child that becomes the command. Returns only on failure, -errno. */
int seatbelt_launch(const struct args *words, const char *cwd, char *const *env);

#endif
