/* SPDX-License-Identifier: Apache-2.0 */
/* policy/table.h - every key of a policy file, once; private to policy/
 *
 * Reading, merging, printing and the test of docs/policy.schema.json all walk these tables, so they cannot
 * disagree. Each entry also says how two layers merge, that is: which change widens.
 */
#ifndef VITRINE_POLICY_TABLE_H
#define VITRINE_POLICY_TABLE_H

#include "policy/policy.h"

#define LIST_MAX_ITEMS 1024
#define ITEM_MAX_BYTES 4095
#define GLOB_MAX_BYTES 1024

enum unit { UNIT_BYTES, UNIT_BYTES_PER_SEC, UNIT_TIME, UNIT_CPUS, UNIT_NUMBER };

/* A limit. Lower, or set where it was not, tightens; higher, "none" and ",optional" widen. */
struct limit_def {
	const char *name;
	enum unit unit;
	uint64_t min, max;
	uint64_t preset; /* the built-in value, always optional; 0: none */
};

/* One word of a setting. A change to a lower rank widens. */
struct choice {
	const char *name;
	unsigned rank;
};

struct setting_def {
	const struct choice *choices; /* by value; the built-in value is 0 */
	unsigned n;
	bool is_bool;      /* true or false in the file, not a string */
	bool is_any_wider; /* every change widens */
	size_t origin_at;  /* offsetof(struct policy) */
};

/* A list. `closes`: an entry tightens and "!entry" widens; else the other way round. */
struct list_def {
	size_t at; /* offsetof(struct policy) */
	bool closes;
	bool is_map; /* an object of strings in the file, K=V here */
	bool is_matched; /* "!entry" stays in the list and works when it is matched; else it removes its equal */
	bool is_users; /* never from a project file, however trusted */
	int (*check)(const char *text, struct err *e);
};

enum key_kind { KEY_WORKSPACE, KEY_SETTING, KEY_LIST, KEY_LIMIT };

struct key_def {
	const char *section; /* NULL: top level */
	const char *name;
	enum key_kind kind;
	unsigned id;
};

extern const struct limit_def limit_defs[LIMIT_ALL_];
extern const struct setting_def setting_defs[SETTING_COUNT_];
extern const struct list_def list_defs[LIST_COUNT_];
extern const struct key_def key_defs[];
extern const size_t key_defs_n;

static inline bool section_eq(const char *a, const char *b)
{
	return a == b || (a && b && str_eq(a, b));
}

/* Of the built-in layer; NULL-ended. */
extern const char *const builtin_env_pass[];

/* What item_prepare() finds out about the names of the lists `hide` and `protect`, in their order. Made by the build: there are
 * hundreds, and each start would look at every byte of them. No pointers, which the loader would have to fill in. */
struct name_row {
	uint32_t hash;
	uint16_t at; /* in the list */
	uint8_t n, name_at;
	char first, last;
	bool is_path, is_literal;
};
extern const struct name_row names_hide_rows[], names_protect_rows[];
extern const size_t names_hide_n, names_protect_n;

/* Access by id. */
struct items *policy_list(struct policy *p, enum list_id id);
const struct items *policy_list_const(const struct policy *p, enum list_id id);
unsigned setting_get(const struct policy *p, enum setting_id id);
enum layer setting_origin(const struct policy *p, enum setting_id id);

/* Parse, ask, apply: a file asks between the two, a flag does not. */
int limit_parse(enum limit_id id, const char *text, struct limit *ret, struct err *e);
bool limit_widens(const struct limit *old, const struct limit *new);
void limit_apply(struct policy *p, enum limit_id id, const struct limit *new, enum layer layer);

int setting_parse(enum setting_id id, const char *text, unsigned *ret, struct err *e);
bool setting_widens(const struct policy *p, enum setting_id id, unsigned value);
void setting_apply(struct policy *p, enum setting_id id, unsigned value, enum layer layer);

int list_parse(const struct policy *p, enum list_id id, const char *text, char **ret,
	       struct err *e);
bool list_widens(const struct policy *p, enum list_id id, const char *entry);
/* The hosts of the group that this entry of a list of hosts names, "!" or not; NULL: it names none. */
const char *const *list_group(enum list_id id, const char *text);
void list_apply(struct policy *p, enum list_id id, const char *entry, enum layer layer);

/* Checks of one entry. */
int check_path(const char *text, struct err *e);
int check_mount(const char *text, struct err *e);
int check_socket(const char *text, struct err *e);
int check_net_allow(const char *text, struct err *e);
int check_net_deny(const char *text, struct err *e);
int check_net_port(const char *text, struct err *e);
int check_net_host_port(const char *text, struct err *e);
int check_net_upstream(const char *text, struct err *e);
int check_inspect_host(const char *text, struct err *e);
int check_inspect_rule(const char *text, struct err *e);
int check_git_fetch(const char *text, struct err *e);
int check_git_push(const char *text, struct err *e);
int check_secret_name(const char *text, struct err *e);
int check_env_name(const char *text, struct err *e);
int check_env_set(const char *text, struct err *e);
int check_tool(const char *text, struct err *e);
int check_broker_fetch(const char *text, struct err *e);
int check_broker_push(const char *text, struct err *e);
int check_broker_gh(const char *text, struct err *e);
int check_broker_command(const char *text, struct err *e);

/* Fills in what items_match() wants to know of an entry. */
void item_prepare(struct item *it);

/* The candidate nearest to word (NULL when none is near): few edits, a swap of neighbours being one. */
const char *near_name(const char *word, const char *const *candidates, size_t n);

#endif
