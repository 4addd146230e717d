/* SPDX-License-Identifier: Apache-2.0 */
/* policy/table.c - see table.h; what each built-in entry is for stands in docs/POLICY.md
 *
 * A name belongs in `hide` when holding a secret is its whole purpose, and in `protect` when a program on the host
 * takes it up unasked (opening the folder, a prompt, a commit) and runs what it says. Build scripts belong in neither:
 * editing them is the agent's work, and they run only when somebody runs the project.
 */
#include "policy/table.h"

#include "names_data.h"

#define DAY ((uint64_t)86400 * NS_PER_SEC)
#define YEAR (365 * DAY)

/*  id, name, unit, least, most, built-in */
#define LIMITS(X)                                                                                  \
	X(MEMORY, memory, BYTES, 4 * MIB, 1024 * TIB, 0)                                           \
	X(CPUS, cpus, CPUS, 10, 1000000, 0)                                                        \
	X(CPU_TIME, cpu_time, TIME, 10 * NS_PER_MS, 10 * YEAR, 0)                                  \
	X(PIDS, pids, NUMBER, 4, 4194304, 4096)                                                    \
	X(DISK, disk, BYTES, 1 * MIB, 1024 * TIB, 4 * GIB)                                         \
	X(IO_READ, io_read, BYTES_PER_SEC, 4 * KIB, 1024 * TIB, 0)                                 \
	X(IO_WRITE, io_write, BYTES_PER_SEC, 4 * KIB, 1024 * TIB, 0)                               \
	X(OPEN_FILES, open_files, NUMBER, 16, (uint64_t)1 << 30, 65536)                            \
	X(TIME, time, TIME, 10 * NS_PER_MS, 10 * YEAR, 0)                                          \
	X(IDLE, idle, TIME, 10 * NS_PER_MS, 10 * YEAR, 0)                                          \
	X(OUTPUT, output, BYTES, 1, 1024 * TIB, 0)

/*  the same, of the section "events": how long and how much of it is kept */
#define KEPT(X)                                                                                    \
	X(EVENTS_AGE, max_age, TIME, 3600 * NS_PER_SEC, 10 * YEAR, 90 * DAY)                       \
	X(EVENTS_SIZE, max_size, BYTES, 64 * KIB, 1024 * TIB, 1 * GIB)

const struct limit_def limit_defs[LIMIT_ALL_] = {
#define X(id, word, u, least, most, builtin)                                                       \
	[LIMIT_##id] = { .name = #word,                                                            \
			 .unit = UNIT_##u,                                                         \
			 .min = (least),                                                           \
			 .max = (most),                                                            \
			 .preset = (builtin) },
	LIMITS(X) KEPT(X)
#undef X
};

/* Ranks: nothing reaches the host before you say so in review and in clone; neither is wider than the other. */
static const struct choice mode_words[WS_MODE_COUNT_] = {
	[WS_DIRECT] = { "direct", 0 }, [WS_REVIEW] = { "review", 1 }, [WS_CLONE] = { "clone", 1 }
};
static const struct choice home_words[HOME_MODE_COUNT_] = {
	[HOME_PRIVATE] = { "private", 0 }, [HOME_TMP] = { "tmp", 1 }
};
static const struct choice tmp_words[TMP_MODE_COUNT_] = { [TMP_PRIVATE] = { "private", 0 } };
static const struct choice network_words[NET_MODE_COUNT_] = {
	[NET_NONE] = { "none", 1 }, [NET_GATE] = { "gate", 0 }
};
static const struct choice preset_words[NET_LEVEL_COUNT_] = { [LEVEL_NONE] = { "none", 3 },
							      [LEVEL_LOCKED] = { "locked", 2 },
							      [LEVEL_BALANCED] = { "balanced", 1 },
							      [LEVEL_OPEN] = { "open", 0 } };
/* The same names as in engine/engine.c; a test compares them. */
static const struct choice engine_words[] = {
	{ "native", 0 },   { "auto", 0 },    { "bwrap", 0 },          { "nsjail", 0 },
	{ "firejail", 0 }, { "systemd", 0 }, { "systemd-system", 0 }, { "crun", 0 },
	{ "runc", 0 },     { "gvisor", 0 },  { "podman", 0 },         { "podman-remote", 0 },
	{ "docker", 0 },   { "vm", 0 },      { "vm-emulated", 0 },    { "seatbelt", 0 },
};
static const struct choice isolation_words[ISOLATION_COUNT_] = {
	[ISOLATION_PROCESS] = { "process", 0 },
	[ISOLATION_KERNEL] = { "kernel", 1 },
	[ISOLATION_VM] = { "vm", 2 },
};
static const struct choice bool_words[] = { { "false", 1 }, { "true", 0 } }; /* true widens */
static const struct choice check_words[] = { { "false", 0 }, { "true", 1 } };

static const struct choice tools_words[TOOLS_MODE_COUNT_] = { [TOOLS_AUTO] = { "auto", 1 },
							      [TOOLS_ALWAYS] = { "always", 1 },
							      [TOOLS_NEVER] = { "never", 0 } };

#define WORDS(w, origin)                                                                           \
	.choices = (w), .n = ARRAY_LEN(w), .origin_at = offsetof(struct policy, origin)
const struct setting_def setting_defs[SETTING_COUNT_] = {
	[SETTING_MODE] = { WORDS(mode_words, mode_origin) },
	[SETTING_HOME] = { WORDS(home_words, home_origin) },
	[SETTING_TMP] = { WORDS(tmp_words, tmp_origin) },
	[SETTING_NETWORK] = { WORDS(network_words, network_origin) },
	[SETTING_NET_PRESET] = { WORDS(preset_words, net_preset_origin) },
	[SETTING_NET_ASK] = { WORDS(bool_words, net_ask_origin), .is_bool = true },
	[SETTING_ENGINE] = { WORDS(engine_words, engine_origin), .is_any_wider = true },
	[SETTING_ISOLATION] = { WORDS(isolation_words, isolation_origin) },
	[SETTING_DEBUG] = { WORDS(bool_words, debug_origin), .is_bool = true },
	[SETTING_CHECK_READS] = { WORDS(check_words, check_reads_origin), .is_bool = true },
	[SETTING_TELEMETRY] = { WORDS(bool_words, telemetry_origin), .is_bool = true },
	[SETTING_CONTAINERS] = { WORDS(bool_words, containers_origin), .is_bool = true },
	[SETTING_LIVE] = { WORDS(bool_words, live_origin), .is_bool = true },
	[SETTING_TOOLS] = { WORDS(tools_words, tools_origin) },
};

#define AT(field) .at = offsetof(struct policy, field)
const struct list_def list_defs[LIST_COUNT_] = {
	[LIST_READ] = { AT(read), .check = check_path },
	[LIST_WRITE] = { AT(write), .check = check_path },
	[LIST_MOUNT] = { AT(mount), .check = check_mount },
	[LIST_HIDE] = { AT(hide), .closes = true, .is_matched = true, .check = glob_check },
	[LIST_PROTECT] = { AT(protect), .closes = true, .is_matched = true, .check = glob_check },
	[LIST_NET_ALLOW] = { AT(net_allow), .check = check_net_allow },
	[LIST_NET_DENY] = { AT(net_deny), .closes = true, .check = check_net_deny },
	[LIST_NET_PORTS] = { AT(net_ports), .check = check_net_port },
	[LIST_NET_HOST_PORTS] = { AT(net_host_ports), .check = check_net_host_port },
	[LIST_NET_UPSTREAM] = { AT(net_upstream), .check = check_net_upstream },
	[LIST_INSPECT_HOSTS] = { AT(inspect_hosts), .closes = true, .check = check_inspect_host },
	[LIST_INSPECT_NEVER] = { AT(inspect_never), .check = check_inspect_host },
	[LIST_INSPECT_ALLOW] = { AT(inspect_allow), .check = check_inspect_rule },
	[LIST_INSPECT_DENY] = { AT(inspect_deny), .closes = true, .check = check_inspect_rule },
	[LIST_GIT_FETCH] = { AT(git_fetch), .check = check_git_fetch },
	[LIST_GIT_PUSH] = { AT(git_push), .check = check_git_push },
	[LIST_SECRETS] = { AT(secrets), .check = check_secret_name },
	[LIST_SOCKETS] = { AT(sockets), .check = check_socket },
	[LIST_ENV_PASS] = { AT(env_pass), .is_matched = true, .check = check_env_name },
	[LIST_ENV_SET] = { AT(env_set), .is_map = true, .check = check_env_set },
	[LIST_TOOLS_OFF] = { AT(tools_off), .check = check_tool },
	[LIST_BROKER_FETCH] = { AT(broker_fetch), .is_users = true, .check = check_broker_fetch },
	[LIST_BROKER_PUSH] = { AT(broker_push), .is_users = true, .check = check_broker_push },
	[LIST_BROKER_GH] = { AT(broker_gh), .is_users = true, .check = check_broker_gh },
	[LIST_BROKER_COMMANDS] = { AT(broker_commands), .is_users = true, .is_map = true,
				   .check = check_broker_command },
};

const struct key_def key_defs[] = {
	{ "workspace", "path", KEY_WORKSPACE, 0 },
	{ "workspace", "mode", KEY_SETTING, SETTING_MODE },
	{ "files", "read", KEY_LIST, LIST_READ },
	{ "files", "write", KEY_LIST, LIST_WRITE },
	{ "files", "mount", KEY_LIST, LIST_MOUNT },
	{ "files", "hide", KEY_LIST, LIST_HIDE },
	{ "files", "protect", KEY_LIST, LIST_PROTECT },
	{ "files", "home", KEY_SETTING, SETTING_HOME },
	{ "files", "tmp", KEY_SETTING, SETTING_TMP },
	{ "network", "mode", KEY_SETTING, SETTING_NETWORK },
	{ "network", "preset", KEY_SETTING, SETTING_NET_PRESET },
	{ "network", "allow", KEY_LIST, LIST_NET_ALLOW },
	{ "network", "deny", KEY_LIST, LIST_NET_DENY },
	{ "network", "ports", KEY_LIST, LIST_NET_PORTS },
	{ "network", "host_ports", KEY_LIST, LIST_NET_HOST_PORTS },
	{ "network", "upstream", KEY_LIST, LIST_NET_UPSTREAM },
	{ "network", "ask", KEY_SETTING, SETTING_NET_ASK },
	{ "inspect", "hosts", KEY_LIST, LIST_INSPECT_HOSTS },
	{ "inspect", "never", KEY_LIST, LIST_INSPECT_NEVER },
	{ "inspect", "allow", KEY_LIST, LIST_INSPECT_ALLOW },
	{ "inspect", "deny", KEY_LIST, LIST_INSPECT_DENY },
	{ "git", "fetch", KEY_LIST, LIST_GIT_FETCH },
	{ "git", "push", KEY_LIST, LIST_GIT_PUSH },
	{ NULL, "secrets", KEY_LIST, LIST_SECRETS },
	{ NULL, "sockets", KEY_LIST, LIST_SOCKETS },
#define X(id, word, u, least, most, builtin) { "limits", #word, KEY_LIMIT, LIMIT_##id },
	LIMITS(X)
#undef X
#define X(id, word, u, least, most, builtin) { "events", #word, KEY_LIMIT, LIMIT_##id },
		KEPT(X)
#undef X
			{ "env", "pass", KEY_LIST, LIST_ENV_PASS },
	{ "env", "set", KEY_LIST, LIST_ENV_SET },
	{ "tools", "use", KEY_SETTING, SETTING_TOOLS },
	{ "tools", "off", KEY_LIST, LIST_TOOLS_OFF },
	{ "broker", "fetch", KEY_LIST, LIST_BROKER_FETCH },
	{ "broker", "push", KEY_LIST, LIST_BROKER_PUSH },
	{ "broker", "gh", KEY_LIST, LIST_BROKER_GH },
	{ "broker", "commands", KEY_LIST, LIST_BROKER_COMMANDS },
	{ NULL, "engine", KEY_SETTING, SETTING_ENGINE },
	{ NULL, "isolation", KEY_SETTING, SETTING_ISOLATION },
	{ "features", "debug", KEY_SETTING, SETTING_DEBUG },
	{ "features", "check_reads", KEY_SETTING, SETTING_CHECK_READS },
	{ "features", "telemetry", KEY_SETTING, SETTING_TELEMETRY },
	{ "features", "containers", KEY_SETTING, SETTING_CONTAINERS },
	{ "features", "live", KEY_SETTING, SETTING_LIVE },
};
const size_t key_defs_n = ARRAY_LEN(key_defs);

const char *const builtin_env_pass[] = {
	/* where programs lie, how the terminal behaves, the language, who is asking */
	"PATH", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
	"COLUMNS", "LINES", "LANG", "LANGUAGE", "LC_*", "TZ", "USER", "LOGNAME", "SHELL", "EDITOR",
	"VISUAL", "PAGER", "CI",
	/* the host's git configuration is not seen inside, these stand in for it */
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", NULL
};
