/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-loop.c - vitrine-loop: the verbs loop, hint and status
 *
 * For: running an agent again and again until its task is done. `vitrine` executes this program in its place for the
 *     verbs with VERB_LOOP (cli/verbs.c).
 * Links: libc alone, statically.
 * Talks to: `vitrine`, which it starts once for each iteration, and the records of the loop on disk (agent/loopdir.h).
 * Must not: start a sandbox by itself. Each iteration is a `vitrine run`, so a loop has no rights and no walls of its own.
 * Promises: none. It runs with the user's rights, as the `vitrine` that it starts.
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
