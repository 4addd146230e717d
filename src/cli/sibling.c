/* SPDX-License-Identifier: Apache-2.0 */
/* cli/sibling.c - the programs beside `vitrine` that carry out verbs in its place */
#include "cli/cli.h"

int cli_sibling(const struct sibling_verb *table, const char *program, int argc, char **argv)
{
	_free_ char *who = mem_fmt("%s is run by 'vitrine'; see 'vitrine help'", program);
	struct err e = ERR_INIT;
	int r;

	for (; argc > 1 && table->name; table++) {
		if (!str_eq(table->name, argv[1]))
			continue;
		r = table->fn(argc - 1, argv + 1, &e);
		if (r >= 0)
			return r;
		cli_complain(e.msg);
		return err_exit_code(&e);
	}
	cli_complain(who);
	return 2;
}
