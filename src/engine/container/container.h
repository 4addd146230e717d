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

/* Is an image there, by the word of a daemon on this machine? False: it is not, or this way cannot say. */
bool docker_has(char *const *env, const char *image);
/* The socket the client would use with this environment and this text of its configuration; NULL: none of this machine's,
 * or not for us to say. Pure. */
const char *docker_socket(char *const *env, const char *config);

#endif
