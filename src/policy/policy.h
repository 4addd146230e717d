/* SPDX-License-Identifier: Apache-2.0 */
/* policy/policy.h - what a sandbox may do, as plain data
 *
 * Layers are merged in the order of enum layer. Built-in, user, preset and flags may widen (each widening is
 * visible in `policy show`); a project file can only tighten unless the user trusted exactly its content.
 * Everything here is pure: text in, struct policy out; no descriptors, no clock, no environment.
 */
#ifndef VITRINE_POLICY_POLICY_H
#define VITRINE_POLICY_POLICY_H

#include "base/buf.h"
#include "base/err.h"

enum layer { LAYER_BUILTIN, LAYER_USER, LAYER_PRESET, LAYER_PROJECT, LAYER_FLAGS, LAYER_COUNT_ };

enum ws_mode { WS_DIRECT, WS_REVIEW, WS_CLONE, WS_MODE_COUNT_ };
enum home_mode {
	HOME_PRIVATE,
	HOME_TMP,
	HOME_MODE_COUNT_
};                                              /* private: kept with a named sandbox */
enum tmp_mode { TMP_PRIVATE, TMP_MODE_COUNT_ }; /* the host's /tmp cannot be shared */
enum net_mode { NET_NONE, NET_GATE, NET_MODE_COUNT_ };
enum tools_mode {
	TOOLS_AUTO,
	TOOLS_ALWAYS,
	TOOLS_NEVER,
	TOOLS_MODE_COUNT_
}; /* auto: in a named sandbox */
enum net_level { LEVEL_NONE, LEVEL_LOCKED, LEVEL_BALANCED, LEVEL_OPEN, NET_LEVEL_COUNT_ };

enum limit_id {
	LIMIT_MEMORY,     /* bytes */
	LIMIT_CPUS,       /* thousandths of a CPU */
	LIMIT_CPU_TIME,   /* ns, all processes together */
	LIMIT_PIDS,       /* processes and threads */
	LIMIT_DISK,       /* bytes in private writable space (/tmp, home, /dev/shm) */
	LIMIT_IO_READ,    /* bytes per second */
	LIMIT_IO_WRITE,   /* bytes per second */
	LIMIT_OPEN_FILES, /* per process */
	LIMIT_TIME,       /* ns of wall time */
	LIMIT_IDLE,       /* ns without output and without CPU use */
	LIMIT_OUTPUT,     /* bytes on stdout and stderr together */
	LIMIT_COUNT_,
	/* Not of a run but of what is kept about it; same words, read by the store. */
	LIMIT_EVENTS_AGE = LIMIT_COUNT_, /* ns */
	LIMIT_EVENTS_SIZE,               /* bytes for each sandbox */
	LIMIT_ALL_
};

struct limit {
	bool is_set; /* false: no limit */
	bool is_optional; /* weaker enforcement than the kernel's is acceptable (built-in defaults are) */
	uint64_t max;
	enum layer origin;
	bool is_widened; /* origin raised, lifted or weakened what an earlier layer had set */
};

/* Settings that are one of a few words, and settings that are lists; what a file calls them is in policy/table.c. */
enum setting_id {
	SETTING_MODE,
	SETTING_HOME,
	SETTING_TMP,
	SETTING_NETWORK,
	SETTING_NET_PRESET,
	SETTING_NET_ASK,
	SETTING_ENGINE,
	SETTING_ISOLATION,
	SETTING_DEBUG,
	SETTING_CHECK_READS,
	SETTING_TELEMETRY,
	SETTING_CONTAINERS,
	SETTING_LIVE,
	SETTING_TOOLS,
	SETTING_COUNT_
};

enum list_id {
	LIST_READ,
	LIST_WRITE,
	LIST_MOUNT,
	LIST_HIDE,
	LIST_PROTECT,
	LIST_NET_ALLOW,
	LIST_NET_DENY,
	LIST_NET_PORTS,
	LIST_NET_HOST_PORTS,
	LIST_NET_UPSTREAM,
	LIST_INSPECT_HOSTS,
	LIST_INSPECT_NEVER,
	LIST_INSPECT_ALLOW,
	LIST_INSPECT_DENY,
	LIST_GIT_FETCH,
	LIST_GIT_PUSH,
	LIST_SECRETS,
	LIST_SOCKETS,
	LIST_ENV_PASS,
	LIST_ENV_SET,
	LIST_TOOLS_OFF,
	LIST_BROKER_FETCH,
	LIST_BROKER_PUSH,
	LIST_BROKER_GH,
	LIST_BROKER_COMMANDS,
	LIST_COUNT_
};

/* What separates the inside from the host's kernel: nothing but its own checks, a kernel in user space, or another
 * kernel. */
enum isolation { ISOLATION_PROCESS, ISOLATION_KERNEL, ISOLATION_VM, ISOLATION_COUNT_ };

/* One entry of a list with where it came from. A protect or hide entry "!glob" takes an earlier one back. */
struct item {
	char *text;
	enum layer origin;
	bool is_static; /* text is part of the program: there are hundreds, and every start would copy them */
	/* For items_match(), which asks every name of a workspace about every entry. */
	uint32_t n;       /* bytes of text */
	bool is_path;     /* text holds a slash */
	char first, last; /* what a name that matches must begin and end with; 0: anything */
	/* For a table of names (view/match.h): the last component of text, when it is one plain name. */
	bool is_literal;
	uint32_t name_at;   /* where in text it begins */
	uint32_t name_hash; /* name_hash() of it */
};

struct items {
	struct item *v;
	size_t n, cap;
};

/* The names of data/names.json: one behind the other, ended by an empty one. All but the noted are patterns of the built-in
 * layer; those that are hidden where a token stands in them are file names. The noted ones are in lower case. */
extern const char names_hide[], names_hide_with_token[], names_protect[], names_note[];
#define for_names(name, list) for (const char *name = (list); *name; name += strlen(name) + 1)

/* FNV-1a, folded: the high bits of it are the better ones. */
static inline uint32_t name_hash(const char *s, size_t n)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619U;
	return h ^ (h >> 15);
}

struct policy {
	char *workspace; /* absolute; NULL: the current directory */
	enum ws_mode mode;
	struct items read;    /* extra paths, read-only: absolute, or ~/... */
	struct items write;   /* extra paths, read-write */
	struct items mount;   /* HOST:INSIDE:ro|rw, from -v; absolute both */
	struct items hide;    /* globs relative to the workspace */
	struct items protect; /* globs relative to the workspace */
	enum home_mode home;
	enum net_mode network;
	enum net_level net_preset;        /* index into net_presets[] */
	bool net_ask;                     /* what no rule decides waits for an answer */
	struct items net_allow, net_deny; /* policy/rules.h says what an entry may be */
	struct items net_ports; /* "8080:80": a port of the host's loopback : a port inside */
	struct items
		net_host_ports; /* "5432": a port of the host's loopback that is reached from inside */
	struct items net_upstream; /* at most one: http://, socks5://, or "env" */
	struct items inspect_hosts,
		inspect_never;                    /* name or *.name: TLS is looked into, or never */
	struct items inspect_allow, inspect_deny; /* policy/pathrule.h */
	struct items git_fetch, git_push;         /* policy/gitrule.h */
	struct items secrets;                     /* names; see secret/secret.h */
	struct items sockets;                     /* host unix sockets by exact path */
	struct limit limits[LIMIT_ALL_];
	struct items env_pass; /* names; one trailing * allowed; "!name" takes back */
	struct items env_set;  /* K=V */
	enum tools_mode tools;
	struct items tools_off; /* names of safe tools that are not there */
	struct items broker_fetch, broker_push, broker_gh,
		broker_commands; /* policy/brokerrule.h */
	char *engine;
	enum isolation isolation; /* the least an engine must have */
	bool debug;               /* features.debug: ptrace among processes inside */
	bool check_reads;         /* features.check_reads: Landlock judges reading too */
	bool telemetry;           /* features.telemetry: what the inside says of itself is kept */
	bool containers; /* features.containers: root of its own kernel, for a container engine inside */
	bool live;       /* features.live: a machine that can be saved while it works */
	enum tmp_mode tmp;
	enum layer workspace_origin, mode_origin, home_origin, network_origin, engine_origin,
		debug_origin, check_reads_origin, telemetry_origin, containers_origin, live_origin;
	enum layer isolation_origin, tools_origin;
	enum layer tmp_origin, net_preset_origin, net_ask_origin;
	unsigned widened; /* BIT(enum setting_id): its origin widened what an earlier layer had */
};

/* The built-in layer. */
void policy_init(struct policy *p);
void policy_done(struct policy *p);

void items_add(struct items *l, const char *text, enum layer origin);
void items_done(struct items *l);

/* Parses text (a JSONC file's whole content, called `name` in messages) and merges it into *p as `layer`.
 * `may_widen` is false for an untrusted project file: anything that would widen is an ERR_CONFIG that names
 * file:line:column, what it would widen, and `vitrine trust`. Errors leave *p unspecified but safe to done. */
int policy_merge_text(struct policy *p, const char *name, const char *text, size_t n,
		      enum layer layer, bool may_widen, struct err *e);

/* The same for a policy that stands inside another file: its object, whose values know their places in `name`. */
struct json;
int policy_merge_json(struct policy *p, const char *name, const struct json *object,
		      enum layer layer, bool may_widen, struct err *e);

/* One value from a flag, checked as in a file but without a place in the message: the caller puts "--memory" or the
 * like in front. Always allowed to widen, and a widening is recorded. ERR_USAGE. */

/* "2g", "2g,optional", "none". */
int policy_set_limit(struct policy *p, enum limit_id id, const char *text, enum layer layer,
		     struct err *e);

/* One of the words of that setting ("review"; "true" and "false" for debug). */
int policy_set(struct policy *p, enum setting_id id, const char *text, enum layer layer,
	       struct err *e);

/* One entry of a list; "!entry" takes back. A mount is HOST:INSIDE[:ro|rw] and is kept with its mode. */
int policy_add(struct policy *p, enum list_id id, const char *text, enum layer layer,
	       struct err *e);

/* An absolute path without "." or "..". Never from a project file. */
int policy_set_workspace(struct policy *p, const char *path, enum layer layer, struct err *e);

const char *limit_name(enum limit_id id); /* "memory", "cpu_time", ... as in the file */
const char *layer_name(enum layer layer); /* "built-in", "user", "preset", "project", "flags" */
void limit_format(enum limit_id id, uint64_t max, struct buf *out); /* "2g", "10m", "1.5" */

/* Impossible combinations, after all layers are in. */
int policy_validate(const struct policy *p, struct err *e);

/* Effective policy with the origin of each value: for people, or as JSON. */
void policy_print(const struct policy *p, bool as_json, struct buf *out);

/* For people, only the values that widen the layer before them. */
void policy_print_widenings(const struct policy *p, struct buf *out);

/* The same one by one: "network.allow", "example.org". Of a variable that is set, its name alone. */
typedef void policy_wider_fn(void *arg, const char *key, const char *value, enum layer layer);
void policy_each_widening(const struct policy *p, policy_wider_fn *fn, void *arg);

/* A path relative to the workspace against a glob: * and ? within a component, ** as a whole component for any
 * number of them (at least one at the end), [abc], [a-z], [!a], \\x; all match a leading dot. A pattern without a
 * slash matches the last component at any depth; a match of a directory covers all below it (the caller walks).
 * Time is polynomial whatever the pattern; a pattern that glob_check() refuses matches nothing it should not. */
bool glob_match(const char *pattern, const char *rel);
/* The same with at most *steps comparisons of a character or component, which are taken off; none are left: no match. */
bool glob_match_within(const char *pattern, const char *rel, uint64_t *steps);
int glob_check(const char *pattern, struct err *e);

/* The last pattern of the list that matches decides; "!pattern" takes back. Returns its index or -1. */
int items_match(const struct items *l, const char *rel);

/* One line of the list of trusted project files: the hash of the content, two spaces, the absolute real path. */
int policy_trust_line(const char *sha256_hex, const char *path, char **ret, struct err *e);

/* Does an env_pass entry cover this variable name? */
bool policy_env_passes(const struct policy *p, const char *name);

#endif
