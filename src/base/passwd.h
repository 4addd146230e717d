/* SPDX-License-Identifier: Apache-2.0 */
/* base/passwd.h - one line of passwd: name:x:uid:gid:gecos:home:shell; and of group: name:x:gid:member,member
 *
 * Our own reader, because a static program cannot load the name service's modules.
 */
#ifndef VITRINE_BASE_PASSWD_H
#define VITRINE_BASE_PASSWD_H

#include "base/base.h"

struct passwd_line {
	const char *name, *home, *shell; /* in the line */
	uint32_t uid, gid;
};

/* Cuts the line up. False: it is not one. */
bool passwd_parse(char *line, struct passwd_line *ret);

/* Is the account a member of the group with this number, by the text of the file? */
bool group_has(const char *text, uint32_t gid, const char *name);

#endif
