/* SPDX-License-Identifier: Apache-2.0 */
/* core/packages.h - the configuration of installed programs: what below /etc is a package's own
 *
 * Where the system keeps dpkg's records, a file below /etc is shown inside when everybody may read it, its content is the
 * one that its package brought (by the checksum in the records), and neither its name nor its text is that of a secret.
 * Whatever was changed on this machine is not shown: that takes a line in plan_etc_paths, or --read.
 *
 * The copies lie in a tree of ours, named after the state of dpkg's records. It is made when there is none for that state:
 * later starts cost two look-ups. Copies do not follow what is edited since; a package's own text is all they ever hold.
 */
#ifndef VITRINE_CORE_PACKAGES_H
#define VITRINE_CORE_PACKAGES_H

#include "base/buf.h"
#include "base/err.h"

/* Where the records and the files are; the tests have their own. */
struct packages {
	const char *records; /* /var/lib/dpkg */
	const char *etc;     /* /etc */
	uid_t owner;         /* whose all of it must be */
};

/* The tree for the present state of the records, made now if need be: its path, to be freed, or NULL where there are no
 * records or it cannot be made. Without may_make nothing is made: the path that a start would use. */
char *packages_tree(const struct packages *at, const char *state_dir, bool may_make);

/* Pure: calls fn for each path below /etc that the text of dpkg's `status` has a checksum for, of installed packages.
 * Paths are those that a careful reader accepts: no "..", no odd bytes. */
typedef void (*packages_fn)(void *arg, const char *rel, const char *md5);
void packages_status(const char *text, packages_fn fn, void *arg);
/* The same of a package's list of checksums. */
void packages_sums(const char *text, packages_fn fn, void *arg);

/* Pure: would a file of this name (below /etc) be shown, and a link with this target? */
bool packages_may_show(const char *rel);
bool packages_may_link(const char *rel, const char *target);

#endif
