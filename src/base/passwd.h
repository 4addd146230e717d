/* SPDX-License-Identifier: Apache-2.0 */
/* base/passwd.h - one line of passwd: name:x:uid:gid:gecos:home:shell
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

#endif
