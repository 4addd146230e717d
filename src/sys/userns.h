/* SPDX-License-Identifier: Apache-2.0 */
/* sys/userns.h - a user namespace for this very process
 *
 * Whoever enters one has every capability over what belongs to the one id that is mapped there, and over nothing else.
 */
#ifndef VITRINE_SYS_USERNS_H
#define VITRINE_SYS_USERNS_H

#include <sys/types.h>

/* The caller's own ids are `uid` and `gid` there. `also`: further CLONE_NEW* flags. The process must have one thread. 0 or
 * -errno; after a failure it may stand in a namespace without ids and should end, or know what it still can. */
int userns_enter(uid_t uid, gid_t gid, int also);

#endif
