/* SPDX-License-Identifier: Apache-2.0 */
/* loop_main.c - vitrine-loop: loop, hint and status
 *
 * `vitrine` executes this in its place for verbs with VERB_LOOP (cli/verbs.c). It starts no sandbox itself: every
 * iteration is a `vitrine run`, so that a loop has no rights and no walls of its own.
 */
#include "cli/loop_opts.h"

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv, struct err *e);
} table[] = {
	{ "loop", cmd_loop },
	{ "hint", cmd_hint },
	{ "status", cmd_status },
};

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int r;

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(table); i++) {
		if (!str_eq(table[i].name, argv[1]))
			continue;
		r = table[i].fn(argc - 1, argv + 1, &e);
		if (r >= 0)
			return r;
		cli_complain(e.msg);
		return err_exit_code(&e);
	}
	cli_complain("vitrine-loop is run by 'vitrine'; see 'vitrine help loop'");
	return 2;
}
