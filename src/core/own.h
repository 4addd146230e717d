/* SPDX-License-Identifier: Apache-2.0 */
/* core/own.h - our own ground: is what Vitrine relies on written by nobody but its user?
 *
 * The state directory holds definitions, records, secrets and the skeleton of every sandbox's root. Whoever can write
 * it, or a directory on the way to it, decides what sandboxes are. So every command looks before it reads anything
 * there: right owner, not writable by others, no link, else a refusal that names the part.
 */
#ifndef VITRINE_CORE_OWN_H
#define VITRINE_CORE_OWN_H

#include <sys/stat.h>

#include "base/err.h"

/* Why somebody else than uid (and root) could change what is in this directory, or NULL. A group of one's own is the user's
 * affair; a sticky directory is shared, but a name in it is its owner's. */
const char *own_why_not(const struct stat *st, uid_t uid, gid_t gid);

/* The state directory: the way to it, itself, and every entry in it. Links that root made are the system's: *path is
 * replaced by where they lead. What does not exist yet is no failure. */
int own_check_state(char **path, struct err *e);

/* The directory that a file of the user's lies in: `real` is a path without links. */
int own_check_folder(const char *real, struct err *e);

#endif
