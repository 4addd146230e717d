/* SPDX-License-Identifier: Apache-2.0 */
/* cli/complain.c - the one way a line of ours reaches standard error
 *
 * Names of files, options and hosts in it are foreign bytes; none of them may reach the terminal as they are.
 */
#include "cli/cli.h"

void cli_complain(const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	buf_esc(&b, text, strlen(text));
	(void)fprintf(stderr, "vitrine: %s\n", buf_cstr(&b));
}
