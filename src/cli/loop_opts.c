/* SPDX-License-Identifier: Apache-2.0 */
/* cli/loop_opts.c - options of the verbs that vitrine-loop carries out; linked into vitrine too, for its help */
#include "cli/loop_opts.h"
#include "cli/table.h"

const struct opt loop_opts[] = {
	{ "prompt", 0, "FILE|TEXT", "what to do; a file is read anew for every iteration",
	  LOOP_OPT_PROMPT },
	{ "max", 0, "N", "at most so many iterations (default: 30)", LOOP_OPT_MAX },
	{ "until", 0, "CMD",
	  "stop when this command succeeds; it is run inside, after every iteration",
	  LOOP_OPT_UNTIL },
	{ "marker", 0, "TEXT", "stop when the agent says this; it is told so", LOOP_OPT_MARKER },
	{ "time", 0, "TIME", "stop when the iterations have taken so long together",
	  LOOP_OPT_TIME },
	{ "run-time", 0, "TIME", "end an iteration that takes longer", LOOP_OPT_RUN_TIME },
	{ "cost", 0, "DOLLARS",
	  "stop when so much is spent, as far as the agent says what it spends", LOOP_OPT_COST },
	{ "tokens", 0, "N", "stop when so many tokens are used, as far as the agent says",
	  LOOP_OPT_TOKENS },
	{ "still", 0, "N", "stop after so many iterations without a change (default: 3; 0: never)",
	  LOOP_OPT_STILL },
	{ "failures", 0, "N", "stop after so many equal failures in a row (default: 3; 0: never)",
	  LOOP_OPT_FAILURES },
	{ "backoff", 0, "TIME",
	  "wait so long when the service is busy, then twice as long (default: 30s)",
	  LOOP_OPT_BACKOFF },
	{ "mode", 0, "MODE",
	  "review: changes wait for 'vitrine apply' (default); direct: they appear on the host; "
	  "clone: in a git clone "
	  "of its own, whose commits 'vitrine fetch' takes out",
	  LOOP_OPT_MODE },
	{ "name", 0, "NAME",
	  "the sandbox to work in (default: one for loops of this agent and directory)",
	  LOOP_OPT_NAME },
	{ "resume", 0, NULL, "go on with the loop that was interrupted", LOOP_OPT_RESUME },
	{ "new", 0, NULL,
	  "begin a new loop although one was interrupted: in a sandbox of its own, beside it",
	  LOOP_OPT_NEW },
	{ "detach", 'd', NULL,
	  "go on behind the scenes, also when you log out, and print the sandbox's name",
	  LOOP_OPT_DETACH },
	{ "notify", 0, "CMD|desktop",
	  "run this command of yours on the host, with facts as JSON on its standard input, on the "
	  "end, a question or a busy service; desktop: a message by notify-send",
	  LOOP_OPT_NOTIFY },
	{ "follow", 'f', NULL, "logs: until the loop ends", LOOP_OPT_FOLLOW },
	{ "now", 0, NULL, "stop: at once; the iteration that runs is put back by --resume",
	  LOOP_OPT_NOW },
	{ "json", 0, NULL, "end with a summary in JSON", LOOP_OPT_JSON },
	{ "quiet", 'q', NULL, "say nothing but the summary", LOOP_OPT_QUIET },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt hint_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt status_opts[] = {
	{ "watch", 'w', NULL, "show it again every second, until the loop ends", LOOP_OPT_WATCH },
	{ "tasks", 0, NULL, "with what the project's own task list says is open and done",
	  LOOP_OPT_TASKS },
	{ "since", 0, "TIME",
	  "what happened since then, in all sandboxes: yesterday, today, 8h, 2026-01-31[T22:00]",
	  LOOP_OPT_SINCE },
	TABLE_OPTS("print JSON", "print the names only"),
	{ NULL, 0, NULL, NULL, 0 },
};
