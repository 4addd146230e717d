/* SPDX-License-Identifier: Apache-2.0 */
/* cli/trash.c - the verb `trash`: what the safe rm kept in a sandbox
 *
 * The trash lies in the sandbox's home and is its own: looking and restoring is done by the tool inside (tools/trash.c),
 * so that nothing the sandbox has put there is ever read or followed out here.
 */
#include "cli/cli.h"
#include "cli/run.h"

const struct opt trash_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

/* Looking must not make one. */
static int must_be_there(const char *name, struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	_cleanup_(def_done) struct def d = { 0 };
	int r = host_init(&h, NULL, e);

	return r < 0 ? r : def_read(h.state_dir, name, &d, e);
}

int cmd_trash(int argc, char **argv, struct err *e)
{
	static const char tool[] = PLAN_TOOLS "/trash";
	const char *words[64] = { "run", "--name", NULL, "--", tool };
	size_t n = 5;
	struct opts o;
	int r;

	opts_init(&o, trash_opts, argc, argv);
	r = opts_next(&o, e);
	if (r < 0)
		return r;
	argc -= o.at;
	argv += o.at;
	if (argc < 2 ||
	    (!str_eq(argv[0], "ls") && !str_eq(argv[0], "empty") && !str_eq(argv[0], "restore")) ||
	    (str_eq(argv[0], "restore") ? argc < 3 : argc != 2))
		return err_set(e, ERR_USAGE, EINVAL,
			       "trash ls NAME, trash restore NAME ID|PATH..., trash empty NAME");
	r = must_be_there(argv[1], e);
	if (r < 0)
		return r;
	words[2] = argv[1];
	words[n++] = argv[0];
	for (int i = 2; i < argc && n < ARRAY_LEN(words) - 1; i++)
		words[n++] = argv[i];
	return cmd_run((int)n, (char **)(uintptr_t)words, e);
}
