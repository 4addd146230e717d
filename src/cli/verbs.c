/* SPDX-License-Identifier: Apache-2.0 */
/* cli/verbs.c - the one table of verbs; --help, man pages and completions are made from it */
#include "cli/run.h"

extern const struct opt exec_opts[];
extern const struct opt policy_opts[];
extern const struct opt trust_opts[];
extern const struct opt secret_opts[];
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
	{ "secret", cmd_secret, "secret set NAME [options] | secret ls [--json] | secret rm NAME",
	  "keep credentials outside; inside, placeholders stand for them", secret_opts,
	  "The value is read from stdin, or fetched from a file, a variable or a command at every "
	  "start. It goes to the gate, which puts it into requests to the secret's hosts over "
	  "verified TLS, and nowhere else. 'run --secret NAME' uses it. The services of "
	  "docs/SEAL.md are known by name.\n\n"
	  "  vitrine secret set anthropic <key.txt\n"
	  "  vitrine secret set github --from-command 'gh auth token'\n"
	  "  vitrine secret set mine --env MY_TOKEN --host api.example.org --header X-Token" },
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
