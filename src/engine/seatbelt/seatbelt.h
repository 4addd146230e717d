/* SPDX-License-Identifier: Apache-2.0 */
/* engine/seatbelt/seatbelt.h - profiles for macOS; made and compared everywhere, started there only */
#ifndef VITRINE_ENGINE_SEATBELT_SEATBELT_H
#define VITRINE_ENGINE_SEATBELT_SEATBELT_H

#include "engine/render.h"

/* `private_dir`: where this sandbox's home and temporary files lie on the host. ERR_UNSUPPORTED names what no profile
 * can say. */
int seatbelt_profile(const struct plan *p, const char *private_dir, struct buf *out, struct err *e);

/* Balanced, ended strings, refuses by default: what sandbox-exec would at least read. */
bool seatbelt_is_profile(const char *text);

#endif
