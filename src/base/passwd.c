/* SPDX-License-Identifier: Apache-2.0 */
/* base/passwd.c - see passwd.h */
#include "base/passwd.h"

#include "base/num.h"

bool passwd_parse(char *line, struct passwd_line *ret)
{
	char *field[7];
	struct err ignored;
	uint64_t uid, gid;

	for (int i = 0; i < 7; i++) {
		field[i] = line;
		line += strcspn(line, ":");
		if (*line)
			*line++ = '\0';
		else if (i < 6)
			return false;
	}
	if (num_parse(field[2], 0, UINT32_MAX - 1, &uid, &ignored) < 0 ||
	    num_parse(field[3], 0, UINT32_MAX - 1, &gid, &ignored) < 0)
		return false;
	*ret = (struct passwd_line){ .name = field[0],
				     .home = field[5],
				     .shell = field[6],
				     .uid = (uint32_t)uid,
				     .gid = (uint32_t)gid };
	return true;
}
