/* SPDX-License-Identifier: Apache-2.0 */
/* cli/verbs.c - the one table of verbs; --help, man pages and completions are made from it */
#include "cli/run.h"

extern const struct opt agents_opts[], completion_opts[];
extern const struct opt exec_opts[];
extern const struct opt attach_opts[];
extern const struct opt start_opts[];
extern const struct opt stop_opts[];
extern const struct opt rm_opts[];
extern const struct opt prune_opts[];
extern const struct opt reset_opts[], wait_opts[];
extern const struct opt list_opts[];
extern const struct opt stats_opts[];
extern const struct opt inspect_opts[];
extern const struct opt logs_opts[];
extern const struct opt cp_opts[];
extern const struct opt policy_opts[];
extern const struct opt trust_opts[];
extern const struct opt checkpoint_opts[];
extern const struct opt checkpoints_opts[];
extern const struct opt restore_opts[];
extern const struct opt diff_opts[];
extern const struct opt apply_opts[];
extern const struct opt fetch_opts[];
extern const struct opt save_opts[];
extern const struct opt template_opts[];
extern const struct opt load_opts[];
extern const struct opt discard_opts[];
extern const struct opt json_opts[], engines_opts[], export_opts[];
extern const struct opt help_opts[];
extern const struct opt events_opts[];
extern const struct opt secret_opts[];
extern const struct opt hook_opts[];
extern const struct opt guard_opts[];
extern const struct opt loop_opts[], hint_opts[], status_opts[];
extern const struct opt trash_opts[], quarantine_opts[];
extern const struct opt broker_opts[];
extern const struct opt net_opts[];
extern const struct opt network_opts[];

const struct verb verbs[] = {
	{ "run", cmd_run,
	  "run [options] [AGENT|NAME] [PATH] [-- PROMPT|ARGS...] | run [options] [--] CMD "
	  "[ARGS...]",
	  "run an agent or a command behind walls", run_opts,
	  "The command sees the system's /usr read-only, a private home, /tmp and /proc, and the "
	  "workspace (the current "
	  "directory) at its own path, writable. It has no network, no capabilities, and none of "
	  "the caller's environment "
	  "but an allowlist. Its exit status becomes ours; 124 means a time limit, 125 that "
	  "Vitrine itself failed, 126 and "
	  "127 that the command could not be run, 128+N that signal N ended it.\n\n"
	  "The first word is an agent, else a sandbox, else a directory, else a program: then a "
	  "command begins with it, as behind '--', and the sandbox is gone when it ends. An "
	  "agent's word and a "
	  "directory stand for one sandbox that lasts: "
	  "the first run makes it, later ones find it, and while it runs they join it as another "
	  "session. Behind '--' a text with blanks in it is a prompt; words that begin with '-' "
	  "are added to the agent's command, others take its place. 'vitrine claude' is 'vitrine "
	  "run claude'. Options of 'run' stand anywhere before '--' or the command. Ctrl-p "
	  "ctrl-q leaves a session "
	  "running; 'vitrine attach' comes back.\n\n"
	  "A limit followed by ',optional' may be enforced by watching where the kernel cannot.\n\n"
	  "  vitrine run npm test\n"
	  "  vitrine run claude . -- 'Refactor the auth module'\n"
	  "  vitrine run -- make test\n"
	  "  vitrine run shell .\n"
	  "  vitrine run shell . -- -c 'make test'\n"
	  "  vitrine run --read ~/datasets --memory 4g,optional --time 30m -- python3 train.py\n"
	  "  vitrine run --name box -- bash",
	  VERB_ORDER },
	{ "create", cmd_create, "create [options] AGENT [PATH] | create [options] NAME PATH",
	  "make a sandbox and start nothing", run_opts,
	  "Takes the options of 'run' and keeps them: they are in force whenever the sandbox "
	  "runs. Prints the name.\n\n"
	  "  vitrine create --memory 4g,optional shell .\n"
	  "  vitrine create box .",
	  VERB_ORDER },
	{ "start", cmd_start, "start NAME...", "start a sandbox that stays until it is stopped",
	  start_opts,
	  "It runs nothing until 'run' or 'exec' asks for something, and does not end with the "
	  "last session." },
	{ "exec", cmd_exec, "exec [options] NAME -- CMD [ARGS...]",
	  "run another command in a sandbox", exec_opts,
	  "The command starts behind the same walls as the first one, started by the sandbox's own "
	  "init. A sandbox that does not run is started for the time of the command.\n\n"
	  "  vitrine exec box -- ps ax",
	  VERB_ORDER },
	{ "attach", cmd_attach, "attach [options] [NAME [SESSION]]",
	  "see a session that runs, and type into it", attach_opts,
	  "Several can look at one session. Who last typed or resized sets its size. Without a "
	  "session the newest with a terminal "
	  "is meant, without a name the only sandbox that runs." },
	{ "stop", cmd_stop, "stop [options] NAME...", "end a sandbox and all that runs in it",
	  stop_opts,
	  "Its commands are asked first (SIGTERM, and SIGHUP on a terminal), then killed. The "
	  "sandbox itself is kept." },
	{ "rm", cmd_rm, "rm [--force] [--dry-run] NAME... | rm [--force] [--dry-run] --all",
	  "remove sandboxes with their homes and records", rm_opts,
	  "The workspace is not touched. A sandbox in which work waits stays, and is named: "
	  "changes "
	  "under review, commits of a clone that no ref of your repository names. --force removes "
	  "it all the same." },
	{ "prune", cmd_prune, "prune [--yes|--force] [--dry-run] [--filter since=TIME]",
	  "remove the sandboxes that do not run", prune_opts,
	  "Those in which work waits stay, as with 'rm'.\n\n"
	  "  vitrine prune --dry-run --filter since=30d" },
	{ "reset", cmd_reset, "reset [--force] [--dry-run] [NAME...]",
	  "empty the homes of sandboxes", reset_opts,
	  "The definition stays: the next run begins as the first one did. Without a name all "
	  "are meant." },
	{ "rename", cmd_rename, "rename OLD NEW", "give a sandbox that does not run another name",
	  start_opts, NULL },
	{ "ls", cmd_ls, "ls [options]", "list the sandboxes", list_opts,
	  "--format takes text with fields: {{.Name}} {{.Agent}} {{.Status}} {{.Exit}} "
	  "{{.Waits}} {{.Sessions}} "
	  "{{.Workspace}} {{.Created}} {{.Id}}; "
	  "\\t and \\n stand for tab and line end." },
	{ "ps", cmd_ps, "ps [options] [NAME...]", "list the sessions that run", list_opts,
	  "Fields of --format: {{.Name}} {{.Session}} {{.Pid}} {{.Tty}} {{.Started}} {{.Cpu}} "
	  "{{.Memory}} {{.Processes}} {{.Viewers}} {{.Command}}." },
	{ "inspect", cmd_inspect, "inspect [--format TEXT] NAME...",
	  "print all that is known of a sandbox, as JSON", inspect_opts, NULL },
	{ "logs", cmd_logs, "logs [options] NAME [SESSION]",
	  "print the recorded output of a session", logs_opts,
	  "Of sessions on a terminal and of those that 'run' started, the last 4 to 8 MiB. "
	  "Without a session the last one is meant. "
	  "On a terminal control characters are shown, not obeyed." },
	{ "stats", cmd_stats, "stats [options] [NAME...]", "show what running sandboxes use",
	  stats_opts,
	  "Fields of --format: {{.Name}} {{.Cpu}} {{.Memory}} {{.Peak}} {{.Processes}} {{.Disk}} "
	  "{{.Sessions}}." },
	{ "cp", cmd_cp, "cp NAME:PATH DEST | cp SOURCE NAME:PATH",
	  "copy files out of a sandbox or into it", cp_opts,
	  "Plain files and directories; links are copied only where they stay in what is copied, "
	  "everything else is left out and named. "
	  "Nothing is written through a link." },
	{ "wait", cmd_wait, "wait NAME [SESSION]", "wait for a session and print its exit status",
	  wait_opts,
	  "Without a session the newest that runs is meant, and where none runs the last one that "
	  "did. A session that has "
	  "ended is answered from what is on record: of sessions that 'run' started and of those "
	  "on a terminal, and for a "
	  "week of runs without a name that were left running." },
	{ "events", NULL, "events [options] [NAME]", "show what happened, live or later",
	  events_opts,
	  "Everything that happens in a sandbox is on record outside its reach: docs/EVENTS.md "
	  "describes each type. "
	  "Without NAME, the events of all sandboxes and runs. --verify checks that none was "
	  "edited, removed, reordered or "
	  "cut off, prints what it found and exits with 1 when something is wrong.\n\n"
	  "  vitrine events box --since 10m\n"
	  "  vitrine events -f --type net.verdict --type limit.hit\n"
	  "  vitrine events box --json | jq .data\n"
	  "  vitrine events --verify",
	  VERB_STORE },
	{ "checkpoint", cmd_checkpoint, "checkpoint [options] [NAME]",
	  "save the state of a workspace", checkpoint_opts,
	  "Only what changed since the last one is read and kept. Directories that .gitignore "
	  "names are "
	  "left out unless they were saved before or --all is given. --live saves the running "
	  "machine with its files: 'restore' lets its commands go on from there.\n\n"
	  "  vitrine checkpoint -m 'tests pass'" },
	{ "checkpoints", cmd_checkpoints, "checkpoints [options] [NAME]",
	  "list the saved states of a workspace, or thin them out", checkpoints_opts,
	  "Fields of --format: {{.Checkpoint}} {{.Kind}} {{.Created}} {{.Files}} {{.Message}}.\n\n"
	  "  vitrine checkpoints --keep 5" },
	{ "restore", cmd_restore, "restore [options] [NAME] CHECKPOINT [PATHS...]",
	  "make a workspace what it was at a checkpoint", restore_opts,
	  "What is there now is saved first, so a restore can itself be taken back. Only files "
	  "that "
	  "differ are written. Files that were edited on the host after the last sandbox ended are "
	  "not overwritten unless you say so.\n\n"
	  "  vitrine restore 3 src/\n"
	  "  vitrine restore 'tests pass'     the one that was given this text with 'checkpoint "
	  "-m'" },
	{ "undo", cmd_undo, "undo [options] [NAME] [PATHS...]",
	  "take back what happened since the last checkpoint", restore_opts,
	  "Again: goes back to the one before. Otherwise as 'restore'." },
	{ "diff", cmd_diff, "diff [options] [NAME] [PATHS...]",
	  "show what changed since a checkpoint, or what waits for review", diff_opts,
	  "The form is that of git. Nothing of the workspace is executed, and no git is needed.\n\n"
	  "  vitrine diff --stat --since 3" },
	{ "fetch", cmd_fetch, "fetch [options] NAME",
	  "take the commits out of a sandbox that works in a clone", fetch_opts,
	  "The git inside packs them, a git behind walls of its own checks every object, and they "
	  "lie in a "
	  "repository beside the sandbox. Your repository knows it as the remote vitrine/NAME. "
	  "Happens by itself "
	  "when a session of 'run' ends.\n\n"
	  "  vitrine run --name box --mode clone -- make\n"
	  "  git fetch vitrine/box && git log vitrine/box/main" },
	{ "apply", cmd_apply, "apply [options] [NAME] [PATHS...]",
	  "take over changes that wait for review", apply_opts,
	  "Each file is replaced in one step. Files that were edited on the host meanwhile, links "
	  "and "
	  "special files are left unless you say otherwise. What would run code on the host "
	  "(hooks, "
	  "editor tasks, agents' settings) is taken over only when that very path is named. What "
	  "'diff' has not shown, or what changed since, is shown first.\n\n"
	  "  vitrine apply box src/" },
	{ "discard", cmd_discard, "discard [options] [NAME] [PATHS...]",
	  "throw away changes that wait for review", discard_opts,
	  "The sandbox must not run. What was there stays as a checkpoint of it, and the command "
	  "that "
	  "brings it back is printed." },
	{ "fork", cmd_fork, "fork NAME NEW", "make a second sandbox that begins where this one is",
	  NULL,
	  "Home and waiting changes are shared until either writes; nothing is copied. The sandbox "
	  "must "
	  "not run." },
	{ "net", cmd_net,
	  "net log [-f] [--denied] [NAME] | net rules [NAME] | net test [NAME] HOST[:PORT] | net "
	  "presets | net groups | net "
	  "allow|deny NAME HOST|GROUP...",
	  "what a sandbox may reach, and what it tried", net_opts,
	  "Rules that are given here are kept with the sandbox and hold at once, also for "
	  "connections that are "
	  "open. 'test' says which rule decides and why, and its exit status is 1 when it would be "
	  "refused; "
	  "without NAME it asks the policy of this directory. Fields of --format: of 'rules' "
	  "{{.Rule}} "
	  "{{.Verdict}}, of 'presets' and 'groups' {{.Name}} {{.Summary}} {{.Allow}}, of 'log' "
	  "those of "
	  "'vitrine events'.\n\n"
	  "  vitrine net allow box example.org '*.example.net:443'\n"
	  "  vitrine net allow box npm github\n"
	  "  vitrine net test box example.org:22\n"
	  "  vitrine net log -f --denied box" },
	{ "network", cmd_network,
	  "network proxy NAME [--policy allow|deny] [--allow-host|--block-host HOST] "
	  "[--allow-cidr|--block-cidr PREFIX] | "
	  "network log [NAME]",
	  "the same in the words of 'docker sandbox'", network_opts,
	  "--policy allow opens everything public; --policy deny nothing but "
	  "what is listed." },
	{ "save", cmd_save, "save [options] NAME TAG",
	  "make an image of a sandbox's home and of what waits for review", save_opts,
	  "The image is an OCI layout, kept here under its tag or written as a tar that podman, "
	  "skopeo and umoci "
	  "read. The sandbox must not run. A workspace that is written in place is not part of "
	  "it.\n\n"
	  "  vitrine save box box:1 -o box.tar" },
	{ "load", cmd_load, "load [options] FILE|TAG NAME",
	  "make a sandbox of an image that 'save' made", load_opts,
	  "It brings files and nothing else: options and policy are those of this machine. What "
	  "waited for review "
	  "waits again, against the workspace given here.\n\n"
	  "  vitrine load box.tar box" },
	{ "template", cmd_template,
	  "template ls | agent [NAME] | debian NAME | build DOCKERFILE NAME | import DIR|IMAGE.tar "
	  "NAME | pull IMAGE [NAME] "
	  "| push NAME IMAGE | export NAME FILE | rm NAME",
	  "root file systems to start from", template_opts,
	  "'run --template NAME' sees the template's system in place of the host's, read-only. "
	  "docs/TEMPLATES.md says "
	  "what each needs and how to add packages. Fields of --format: {{.Name}} {{.Created}} "
	  "{{.Source}}.\n\n"
	  "  vitrine template agent\n"
	  "  vitrine template debian db --packages @agent,postgresql-client\n"
	  "  vitrine run --template agent -- rg --version" },
	{ "explain", cmd_explain, "explain [options] -- CMD [ARGS...]",
	  "print the plan for a command and run nothing", run_opts,
	  "Takes the options of 'run'. What is printed is exactly what the engine would carry "
	  "out.",
	  VERB_ORDER },
	{ "policy", cmd_policy, "policy check FILE | policy show [--json]",
	  "check a policy file, or show the one in force", policy_opts,
	  "'show' gives the origin of each value. docs/POLICY.md describes the file." },
	{ "trust", cmd_trust, "trust [--remove] [PATH] | trust --list [options]",
	  "let a project's policy file widen the policy", trust_opts,
	  "Pins the exact content of .vitrine.jsonc; any change to the file ends the trust. "
	  "Fields of --format: {{.Path}} {{.Sha256}}." },
	{ "secret", cmd_secret,
	  "secret set NAME [options] | secret ls [options] | secret rm NAME | secret import "
	  "npm|pip|cargo [--host HOST]",
	  "keep credentials outside; inside, placeholders stand for them", secret_opts,
	  "The value is read from stdin, or fetched from a file, a variable or a command at every "
	  "start. It goes to the gate, which puts it into requests to the secret's hosts over "
	  "verified TLS, to the broker where a rule names it, and nowhere else. 'run --secret "
	  "NAME' uses it. The services of "
	  "docs/SEAL.md are known by name. 'import' takes the tokens out of your own settings of "
	  "npm, "
	  "pip or cargo, whose files stay as they are. Fields of --format: {{.Name}} {{.Source}} "
	  "{{.Variable}} "
	  "{{.Hosts}}.\n\n"
	  "  vitrine secret set anthropic <key.txt\n"
	  "  vitrine secret set github --from-command 'gh auth token'\n"
	  "  vitrine secret import npm\n"
	  "  vitrine secret set mine --env MY_TOKEN --host api.example.org --header X-Token",
	  VERB_ORDER },
	{ "agents", cmd_agents, "agents [options]",
	  "list the agents that are known, and which are installed", agents_opts,
	  "Each is a preset: a command, hosts, secrets, settings for an empty home. A file of the "
	  "same name in "
	  "~/.config/vitrine/agents takes the place of ours. docs/AGENTS.md describes them. "
	  "Fields of --format: {{.Name}} {{.Installed}} {{.Program}} {{.Path}} {{.Guard}} "
	  "{{.Secrets}} "
	  "{{.Summary}} {{.Install}} {{.Origin}}.\n\n"
	  "  vitrine run claude .\n"
	  "  vitrine run codex . -- codex exec 'fix the tests'" },
	{ "engines", cmd_engines, "engines [options] [--measure [NAME...]]",
	  "list the walls that are available here", engines_opts,
	  "Each one whose program is here is started once; that it works is remembered for an "
	  "hour. "
	  "docs/ENGINES.md describes each of them. Fields of --format: {{.Name}} {{.Kernel}} "
	  "{{.Works}} "
	  "{{.NeedsRoot}} {{.Untested}} {{.Summary}} {{.Why}}; with --measure {{.Name}} "
	  "{{.BestMs}} "
	  "{{.MedianMs}}." },
	{ "export", cmd_export, "export devcontainer|dockerfile [--force]",
	  "write the policy down for other tools", export_opts,
	  "devcontainer: .devcontainer/ with the policy's files, variables and limits applied. "
	  "dockerfile: a "
	  "template of an image to work in, on standard output." },
	{ "doctor", cmd_doctor, "doctor [--json]",
	  "check what this host can enforce, and how to fix what it cannot", json_opts, NULL },
	{ "demo", cmd_demo, "demo [--json]",
	  "watch a scripted agent work, misbehave and be stopped", json_opts,
	  "A small shell script plays the agent, in a real sandbox around a throw-away project: it "
	  "does some work, then tries "
	  "what it should not. The table says what worked and what was stopped, and by which wall. "
	  "The exit status is 0 when "
	  "all was as it should be, else 1. Nothing is left behind." },
	{ "hook", cmd_hook, "hook [--agent NAME] [--unattended]",
	  "judge one tool call of an agent, in its own hook protocol", hook_opts,
	  "Agents call it, not people: 'vitrine guard install AGENT' writes it into their "
	  "settings. The call "
	  "comes as JSON on stdin, the answer goes to stdout. Whatever goes wrong is a refusal." },
	{ "guard", cmd_guard,
	  "guard install|uninstall AGENT | guard test|explain 'CMD' | guard stats",
	  "advice before action: rules for what an agent may run", guard_opts,
	  "'test' gives the verdict for one command, 'explain' also all that it would run and "
	  "every rule that "
	  "fits; the exit status is 0 for allow, 1 for ask, 3 for deny. 'stats' adds up the "
	  "decisions so far. "
	  "docs/GUARD.md has the rules and says how to add your own.\n\n"
	  "  vitrine guard install claude\n"
	  "  vitrine guard explain 'find . -name \"*.log\" | xargs rm'",
	  VERB_ORDER },
	{ "loop", NULL,
	  "loop [options] AGENT [PATH] [-- RUN-OPTIONS...] | loop --resume [NAME] | loop ls | loop "
	  "attach|logs|report|stop NAME",
	  "let an agent work on a prompt again and again, until it is done", loop_opts,
	  "Every iteration is a session of its own with a checkpoint before it and a folder of "
	  "records behind it. Changes "
	  "wait for review unless --mode says otherwise. It stops when the marker is said, when "
	  "--until succeeds (run "
	  "inside, never on the host), when iterations, time, money or tokens are used up, when "
	  "nothing changes any more, "
	  "when it keeps failing in the same way, on 'loop stop' and on a signal; the reason is "
	  "reported. Exit status: 0 "
	  "when the goal was reached, 3 when it stopped before, 128+N on a signal. After a crash "
	  "or a reboot --resume goes "
	  "on: a finished iteration is neither lost nor repeated, one that was cut off is put back "
	  "and run again. "
	  "With -d it goes on behind the scenes, also when you log out: 'loop ls' lists loops, "
	  "'loop logs' says what the "
	  "iterations did, 'loop attach' also shows what the agent prints and ends with the loop's "
	  "status (Ctrl-C leaves the "
	  "loop running), 'loop stop' ends it after the iteration that runs, with --now at once. "
	  "docs/LOOP.md describes it.\n\n"
	  "  vitrine loop claude . --prompt PROMPT.md --until 'make test' --max 30\n"
	  "  vitrine loop -d codex . --prompt 'Work through TODO.md' --marker ALL-DONE --tokens "
	  "2000000 "
	  "-- --allow example.org\n"
	  "  vitrine loop attach loop-codex-proj\n"
	  "  vitrine loop report loop-claude-proj",
	  VERB_LOOP | VERB_ORDER },
	{ "hint", NULL, "hint NAME TEXT...", "tell a loop something; the next iteration reads it",
	  hint_opts, "  vitrine hint loop-claude-proj 'the parser is in src/parse.c'",
	  VERB_LOOP | VERB_ORDER },
	{ "status", NULL, "status [options] [NAME] | status --since TIME",
	  "show how loops get on, or what happened since yesterday", status_opts,
	  "--since: what ran, what was done (commits, files), what was refused, what waits for a "
	  "person and what it cost, "
	  "over all loops and runs. "
	  "--tasks counts what is open and done in the project's own list: a Markdown checklist "
	  "(TODO.md, TASKS.md, PLAN.md, "
	  "...) or beads, as the sandbox has it. Fields of --format: {{.Name}} {{.Agent}} "
	  "{{.State}} "
	  "{{.Iterations}} {{.Max}} {{.Failed}} {{.Time}} {{.Tokens}} {{.Cost}} {{.Mode}} "
	  "{{.Workspace}}, "
	  "with --tasks also {{.Open}} {{.Done}}.\n\n"
	  "  vitrine status --watch --tasks loop-claude-proj\n"
	  "  vitrine status --since yesterday",
	  VERB_LOOP },
	{ "trash", cmd_trash,
	  "trash ls [options] NAME | trash restore NAME ID|PATH... | trash empty NAME",
	  "what 'rm' inside a sandbox kept", trash_opts,
	  "In a sandbox that has a name, 'rm' is a safe tool: what it removes is kept in the "
	  "sandbox's home first "
	  "(docs/TOOLS.md). A path means the newest that was removed there. "
	  "Fields of --format: {{.Id}} {{.Removed}} {{.Bytes}} {{.Directory}} {{.Path}}." },
	{ "quarantine", cmd_quarantine,
	  "quarantine ls [NAME] | quarantine show|restore NAME ID|PATH... | quarantine rm NAME "
	  "[ID|PATH...]",
	  "what was taken out of a workspace because it would run code on the host",
	  quarantine_opts,
	  "A protected name that appears while a sandbox runs is moved away: editor tasks, git "
	  "hooks, "
	  "agents' settings and the like (docs/SECURITY.md). 'restore' puts it where it was, never "
	  "over "
	  "something else; look at it with 'show' first. The names of runs without a name are in "
	  "the list, "
	  "and restore into the current directory. Fields of --format: {{.Name}} {{.Id}} "
	  "{{.Taken}} "
	  "{{.Rule}} {{.Path}}.\n\n"
	  "  vitrine quarantine show box .envrc\n"
	  "  vitrine quarantine restore box .envrc" },
	{ "broker", cmd_broker, "broker ls [options] | broker show|approve|deny NAME ID",
	  "answer what the broker asks before it acts", broker_opts,
	  "Rules of the broker with the word 'approve' wait until a person has looked: 'show' "
	  "prints what would be pushed "
	  "or run, with the changes. Fields of --format: {{.Id}} {{.Sandbox}} {{.Title}}. "
	  "docs/BROKER.md" },
	{ "completion", cmd_completion, "completion bash|zsh|fish | completion --words KIND...",
	  "print a shell completion script", completion_opts,
	  "The scripts ask for names with --words while somebody types; it reads, and starts "
	  "nothing." },
	{ "version", cmd_version, "version", "print the version", NULL, NULL },
	{ "help", cmd_help, "help [--man] [VERB]", "explain a verb", help_opts, NULL },
	{ NULL },
};

const struct verb_group verb_groups[] = {
	{ "Run", "run loop exec attach create start stop wait hint rm prune reset rename demo" },
	{ "Look", "ls ps status logs events diff stats inspect explain" },
	{ "Take back", "undo restore checkpoint checkpoints apply discard fetch fork cp "
		       "save load trash quarantine" },
	{ "Allow", "net network secret trust policy guard broker" },
	{ "Set up", "doctor agents engines template export completion hook version help" },
	{ NULL, NULL },
};
