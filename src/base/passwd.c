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

static bool is_member(const char *members, size_t n, const char *name)
{
	size_t len = strlen(name);

	for (size_t at = 0; at < n;) {
		size_t end = at;

		while (end < n && members[end] != ',')
			end++;
		if (len > 0 && end - at == len && memcmp(members + at, name, len) == 0)
			return true;
		at = end + 1;
	}
	return false;
}

bool group_has(const char *text, uint32_t gid, const char *name)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", gid);
	while (*text) {
		size_t n = strcspn(text, "\n");
		_free_ char *line = mem_strn(text, n);
		const char *at = line + strcspn(line, ":");

		text += n + (text[n] == '\n');
		at += *at == ':';
		at += strcspn(at, ":");
		at += *at == ':';
		if (strcspn(at, ":") == strlen(number) && str_starts(at, number)) {
			at += strlen(number);
			if (*at == ':' && is_member(at + 1, strlen(at + 1), name))
				return true;
		}
	}
	return false;
}
