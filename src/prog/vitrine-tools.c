/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-tools.c - vitrine-tools: what stands in front of the tools inside (tools/tools.h)
 *
 * For: inside, under the names of rm, mv, git and others, softening or refusing calls that destroy work; `trash`; git's
 *     remote helper, gh and declared commands, which ask the broker. A copy lies in the skeleton, first on PATH.
 * Links: libc alone, statically.
 * Talks to: the broker, over /.vitrine/broker. Executes the real tool in its place.
 * Must not: open or read a file before the decision: an ordinary call is one exec away from the program that was meant.
 * Promises: none. It is advice and no wall; it runs inside, behind the walls of the sandbox, as the agent does.
 */
#include "base/path.h"
#include "tools/tools.h"

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? path_name(argv[0]) : "";

	if (str_eq(name, "vitrine-tools") && argc > 1) {
		argc--;
		argv++;
		name = path_name(argv[0]);
	}
	if (str_eq(name, "vitrine-tools") || name[0] == '\0') {
		(void)fprintf(stderr, "usage: vitrine-tools TOOL [ARGUMENT...]; see "
				      "docs/TOOLS.md\n");
		return 2;
	}
	if (str_eq(name, "trash"))
		return trash_main(argc, argv);
	if (str_eq(name, "git-remote-vitrine"))
		return remote_main(argc, argv);
	if (str_eq(name, "gh") || str_eq(name, "broker") || str_eq(name, "vitrine-checkpoint"))
		return ask_main(argc, argv);
	return stand_in_main(name, argc, argv);
}
