/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/container.h - private to the container engines */
#ifndef VITRINE_ENGINE_CONTAINER_CONTAINER_H
#define VITRINE_ENGINE_CONTAINER_CONTAINER_H

#include "engine/render.h"

/* The seccomp profile of a plan, as JSON. */
void seccomp_profile(bool debug, struct buf *out);

/* The name docker knows the skeleton by. */
char *image_name(const struct plan *p);
/* The skeleton as a tar archive, for an engine that runs images only. Pure but for SKEL_COPY, which reads its source. */
int image_tar(const struct plan *p, struct buf *out, struct err *e);

#endif
