/* SPDX-License-Identifier: Apache-2.0 */
/* loop_main.c - vitrine-loop: loop, hint and status
 *
 * `vitrine` executes this in its place for verbs with VERB_LOOP (cli/verbs.c). It starts no sandbox itself: every
 * iteration is a `vitrine run`, so that a loop has no rights and no walls of its own.
 */
#include "cli/loop_opts.h"

static const struct sibling_verb table[] = {
	{ "loop", cmd_loop },
	{ "hint", cmd_hint },
	{ "status", cmd_status },
	{ NULL },
};

int main(int argc, char **argv)
{
	return cli_sibling(table, "vitrine-loop", argc, argv);
}
