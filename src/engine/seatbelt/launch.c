/* SPDX-License-Identifier: Apache-2.0 */
/* engine/seatbelt/launch.c - become a command behind a profile; compiled on macOS only, and not tested anywhere else
 *
 * The words are made and tested everywhere (seatbelt_args); what is left is to close what the command must not inherit
 * and to execute them. sandbox-exec puts the profile on itself before it executes the command, and what has it cannot
 * take it off.
 */
#include <fcntl.h>
#include <unistd.h>

#include "engine/seatbelt/seatbelt.h"

int seatbelt_launch(const struct args *words, const char *cwd, char *const *env)
{
	long max = sysconf(_SC_OPEN_MAX);

	for (int fd = 3; fd < (max > 0 ? (int)max : 1024); fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* most are not open */
	if (chdir(cwd) < 0)
		return -errno;
	(void)execve(words->v[0], words->v, env);
	return -errno;
}
