/* SPDX-License-Identifier: Apache-2.0 */
/* cli/verbs.c - the one table of verbs; --help, man pages and completions are made from it */
#include "cli/run.h"

extern const struct opt exec_opts[];
extern const struct opt policy_opts[];
extern const struct opt trust_opts[];
extern const struct opt checkpoint_opts[];
extern const struct opt checkpoints_opts[];
extern const struct opt restore_opts[];
extern const struct opt diff_opts[];
extern const struct opt json_opts[];
extern const struct opt help_opts[];

const struct verb verbs[] = {
	{ "run", cmd_run, "run [options] -- CMD [ARGS...]", "run a command behind walls", run_opts,
	  "The command sees the system's /usr read-only, a private home, /tmp and /proc, and the "
	  "workspace (the current "
	  "directory) at its own path, writable. It has no network, no capabilities, and none of "
	  "the caller's environment "
	  "but an allowlist. Its exit status becomes ours; 124 means a time limit, 125 that "
	  "Vitrine itself failed, 126 and "
	  "127 that the command could not be run, 128+N that signal N ended it.\n\n"
	  "A limit followed by ',optional' may be enforced by watching where the kernel cannot.\n\n"
	  "  vitrine run -- make test\n"
	  "  vitrine run --read ~/datasets --memory 4g,optional --time 30m -- python3 train.py\n"
	  "  vitrine run --name box -- bash" },
	{ "exec", cmd_exec, "exec [options] NAME -- CMD [ARGS...]",
	  "run another command in a running sandbox", exec_opts,
	  "The command starts behind the same walls as the first one, started by the sandbox's own "
	  "init.\n\n"
	  "  vitrine exec box -- ps ax" },
	{ "checkpoint", cmd_checkpoint, "checkpoint [options] [NAME]",
	  "save the state of a workspace", checkpoint_opts,
	  "Only what changed since the last one is read and kept. Directories that .gitignore "
	  "names are "
	  "left out unless they were saved before or --all is given.\n\n"
	  "  vitrine checkpoint -m 'tests pass'" },
	{ "checkpoints", cmd_checkpoints, "checkpoints [options] [NAME]",
	  "list the saved states of a workspace, or thin them out", checkpoints_opts,
	  "  vitrine checkpoints --keep 5" },
	{ "restore", cmd_restore, "restore [options] [NAME] CHECKPOINT [PATHS...]",
	  "make a workspace what it was at a checkpoint", restore_opts,
	  "What is there now is saved first, so a restore can itself be taken back. Only files "
	  "that "
	  "differ are written. Files that were edited on the host after the last sandbox ended are "
	  "not overwritten unless you say so.\n\n"
	  "  vitrine restore 3 src/" },
	{ "undo", cmd_undo, "undo [options] [NAME] [PATHS...]",
	  "take back what happened since the last checkpoint", restore_opts,
	  "Again: goes back to the one before. Otherwise as 'restore'." },
	{ "diff", cmd_diff, "diff [options] [NAME] [PATHS...]",
	  "show what changed since a checkpoint", diff_opts,
	  "The form is that of git. Nothing of the workspace is executed, and no git is needed.\n\n"
	  "  vitrine diff --stat --since 3" },
	{ "explain", cmd_explain, "explain [options] -- CMD [ARGS...]",
	  "print the plan for a command and run nothing", run_opts,
	  "Takes the options of 'run'. What is printed is exactly what the engine would carry "
	  "out." },
	{ "policy", cmd_policy, "policy check FILE | policy show [--json]",
	  "check a policy file, or show the one in force", policy_opts,
	  "'show' gives the origin of each value. docs/POLICY.md describes the file." },
	{ "trust", cmd_trust, "trust [--remove|--list] [PATH]",
	  "let a project's policy file widen the policy", trust_opts,
	  "Pins the exact content of .vitrine.jsonc; any change to the file ends the trust." },
	{ "engines", cmd_engines, "engines [--json]", "list the walls that are available here",
	  json_opts, NULL },
	{ "doctor", cmd_doctor, "doctor [--json]",
	  "check what this host can enforce, and how to fix what it cannot", json_opts, NULL },
	{ "demo", cmd_demo, "demo [--json]",
	  "watch a scripted agent work, misbehave and be stopped", json_opts,
	  "A small shell script plays the agent, in a real sandbox around a throw-away project: it "
	  "does some work, then tries "
	  "what it should not. The table says what worked and what was stopped, and by which wall. "
	  "The exit status is 0 when "
	  "all was as it should be, else 1. Nothing is left behind." },
	{ "completion", cmd_completion, "completion bash|zsh|fish",
	  "print a shell completion script", NULL, NULL },
	{ "version", cmd_version, "version", "print the version", NULL, NULL },
	{ "help", cmd_help, "help [--man] [VERB]", "explain a verb", help_opts, NULL },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
