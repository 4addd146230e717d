/* SPDX-License-Identifier: Apache-2.0 */
/* cli/version.c - the verb `version`
 *
 * A build in which walls can be switched off says so, so that nobody takes it for the real thing.
 */
#include "cli/cli.h"

int cmd_version(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	struct opts o;
	int r;

	opts_init(&o, NULL, argc, argv);
	r = opts_next(&o, e);
	if (r < 0)
		return r;
	if (o.at < argc)
		return err_set(e, ERR_USAGE, EINVAL, "version takes no arguments");
	buf_puts(&out, "vitrine " VITRINE_VERSION);
#ifdef VITRINE_SABOTAGE
	buf_puts(&out, " (TEST BUILD: its walls can be switched off; do not use it)");
#endif
	buf_putc(&out, '\n');
	return cli_print(&out, e);
}
