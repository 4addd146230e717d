/* SPDX-License-Identifier: Apache-2.0 */
/* policy/merge.c - one policy file into the policy
 *
 * The tree from base/json is walked once, each key looked up in key_defs[]. Whatever is wrong ends the merge with
 * "FILE:LINE:COLUMN: ..." and, for a name nobody knows, the nearest one somebody does.
 *
 * The file may be hostile (a project file comes out of the workspace), and its bytes end up in messages on a
 * terminal: place() therefore escapes the finished message as a whole, whoever wrote which part of it.
 */
#include "base/json.h"
#include "policy/table.h"

#define NAME_SHOWN_BYTES 160

struct merge {
	struct policy *p;
	const char *name;
	enum layer layer;
	bool may_widen;
	struct err *e;
};

/* Puts the place in front of the message in m->e and makes it fit for a terminal. Returns r. */
static int place(const struct merge *m, const char *where, int r)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	size_t n = strlen(m->name);
	bool is_long = n > NAME_SHOWN_BYTES;

	/* Of a long path the end is the part that tells, and the line number must not be cut off. */
	if (is_long)
		buf_puts(&b, "...");
	buf_esc(&b, is_long ? m->name + n - NAME_SHOWN_BYTES : m->name,
		is_long ? NAME_SHOWN_BYTES : n);
	buf_printf(&b, ":%s", where);
	buf_esc(&b, m->e->msg, strlen(m->e->msg));
	(void)err_set(m->e, ERR_CONFIG, -r, "%s", buf_cstr(&b));
	return r;
}

static int place_at(const struct merge *m, uint32_t line, uint32_t col, int r)
{
	char where[32];

	(void)snprintf(where, sizeof(where), "%u:%u: ", line, col);
	return place(m, where, r);
}

#define fail_value(m, v, ...)                                                                      \
	place_at((m), (v)->line, (v)->col, err_set((m)->e, ERR_CONFIG, EINVAL, __VA_ARGS__))

/* "limits.memory", "engine". */
static const char *key_title(const struct key_def *k, char title[static 64])
{
	(void)snprintf(title, 64, "%s%s%s", k->section ? k->section : "", k->section ? "." : "",
		       k->name);
	return title;
}

/* A value that was understood but not accepted: what the checker said, behind the name of the key. */
static int refuse(const struct merge *m, const struct key_def *k, const struct json *v, int r)
{
	char title[64];

	return place_at(m, v->line, v->col, err_wrap(m->e, r, "%s", key_title(k, title)));
}

static int wrong_type(const struct merge *m, const struct key_def *k, const struct json *v,
		      const char *wanted)
{
	char title[64];

	return fail_value(m, v, "%s must be %s, not %s", key_title(k, title), wanted,
			  json_type_name(v->type));
}

static int would_widen(const struct merge *m, const struct key_def *k, const struct json *v)
{
	char title[64];

	return fail_value(m, v,
			  "%s would widen the policy; a project file can only tighten. "
			  "Run 'vitrine trust' to allow exactly this content",
			  key_title(k, title));
}

static int users_own(const struct merge *m, const struct key_def *k, const struct json *v)
{
	char title[64];

	return fail_value(m, v,
			  "%s: only your own policy file and flags can let something run outside",
			  key_title(k, title));
}

static int merge_workspace(struct merge *m, const struct key_def *k, const struct json *v)
{
	int r;

	if (v->type != JSON_STRING)
		return wrong_type(m, k, v, "a string");
	/* It was found by way of the workspace; trusting it does not let it point elsewhere. */
	if (m->layer == LAYER_PROJECT)
		return fail_value(m, v,
				  "workspace.path: a project file cannot choose the workspace");
	r = policy_set_workspace(m->p, v->text, m->layer, m->e);
	return r < 0 ? refuse(m, k, v, r) : 0;
}

static int merge_setting(struct merge *m, const struct key_def *k, const struct json *v)
{
	bool is_bool = setting_defs[k->id].is_bool;
	unsigned value;
	int r;

	if (v->type != (is_bool ? JSON_BOOL : JSON_STRING))
		return wrong_type(m, k, v, is_bool ? "true or false" : "a string");
	r = setting_parse(k->id, is_bool ? (v->is_true ? "true" : "false") : v->text, &value, m->e);
	if (r < 0)
		return refuse(m, k, v, r);
	if (!m->may_widen && setting_widens(m->p, k->id, value))
		return would_widen(m, k, v);
	setting_apply(m->p, k->id, value, m->layer);
	return 0;
}

static int merge_limit(struct merge *m, const struct key_def *k, const struct json *v)
{
	struct limit l;
	int r;

	if (v->type != JSON_STRING && v->type != JSON_NUMBER)
		return wrong_type(m, k, v, "a string such as \"2g\" or \"none\", or a number");
	/* What is on record must not depend on what lies in the directory it is about. */
	if (k->id >= LIMIT_COUNT_ && m->layer == LAYER_PROJECT)
		return fail_value(m, v,
				  "events.%s: a project file cannot choose what is kept on record",
				  k->name);
	r = limit_parse(k->id, v->text, &l, m->e);
	if (r < 0)
		return refuse(m, k, v, r);
	if (!m->may_widen && limit_widens(&m->p->limits[k->id], &l))
		return would_widen(m, k, v);
	limit_apply(m->p, k->id, &l, m->layer);
	return 0;
}

static int merge_one(struct merge *m, const struct key_def *k, const struct json *v,
		     const char *text)
{
	_free_ char *entry = NULL;
	int r = list_parse(m->p, k->id, text, &entry, m->e);

	if (r < 0)
		return refuse(m, k, v, r);
	/* What runs outside is the user's to say; trusting a project's file does not change that. */
	if (list_defs[k->id].is_users && m->layer == LAYER_PROJECT &&
	    list_widens(m->p, k->id, entry))
		return users_own(m, k, v);
	if (!m->may_widen && list_widens(m->p, k->id, entry))
		return would_widen(m, k, v);
	list_apply(m->p, k->id, entry, m->layer);
	return 0;
}

/* The name of a group of hosts stands for its hosts. */
static int merge_entry(struct merge *m, const struct key_def *k, const struct json *v,
		       const char *text)
{
	const char *const *hosts = list_group(k->id, text);
	int r = 0;

	if (hosts == NULL)
		return merge_one(m, k, v, text);
	for (; r == 0 && *hosts; hosts++) {
		_free_ char *entry = mem_fmt("%s%s", text[0] == '!' ? "!" : "", *hosts);

		r = merge_one(m, k, v, entry);
	}
	return r;
}

/* A member of an object of strings; what is wrong with it is said at its key. */
static int merge_pair(struct merge *m, const struct key_def *k, const struct json *v)
{
	_free_ char *pair = mem_fmt("%s=%s", v->key, v->text);
	struct json at = { .line = v->key_line, .col = v->key_col };
	char title[64];

	/* K=V is split at the first '=' later, so a key with one of its own would become another variable. */
	if (strchr(v->key, '='))
		return fail_value(m, &at, "%s: the name of a variable cannot hold '='",
				  key_title(k, title));
	return merge_entry(m, k, &at, pair);
}

static int merge_list(struct merge *m, const struct key_def *k, const struct json *list)
{
	bool is_map = list_defs[k->id].is_map;

	if (list->type != (is_map ? JSON_OBJECT : JSON_ARRAY))
		return wrong_type(m, k, list,
				  is_map ? "an object of strings" : "a list of strings");
	for (const struct json *v = list->first; v; v = v->next) {
		int r;

		if (v->type != JSON_STRING)
			return wrong_type(m, k, v,
					  is_map ? "an object of strings" : "a list of strings");
		r = is_map ? merge_pair(m, k, v) : merge_entry(m, k, v, v->text);
		if (r < 0)
			return r;
	}
	return 0;
}

static int merge_key(struct merge *m, const struct key_def *k, const struct json *v)
{
	switch (k->kind) {
	case KEY_WORKSPACE:
		return merge_workspace(m, k, v);
	case KEY_SETTING:
		return merge_setting(m, k, v);
	case KEY_LIST:
		return merge_list(m, k, v);
	case KEY_LIMIT:
		return merge_limit(m, k, v);
	}
	bug_on(true);
	return -EINVAL;
}

static const struct key_def *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < key_defs_n; i++)
		if (section_eq(key_defs[i].section, section) && str_eq(key_defs[i].name, name))
			return &key_defs[i];
	return NULL;
}

/* The names that may stand in a section, or at top level (its keys and the sections). */
static size_t names_in(const char *section, const char **names, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < key_defs_n; i++) {
		const struct key_def *k = &key_defs[i];
		const char *name = section_eq(k->section, section) ? k->name
				   : section                       ? NULL
								   : k->section;

		if (name == NULL || (n > 0 && str_eq(names[n - 1], name)))
			continue;
		bug_on(n == max);
		names[n++] = name;
	}
	return n;
}

static int unknown_key(const struct merge *m, const char *section, const struct json *v)
{
	_cleanup_(buf_done) struct buf all = BUF(512);
	const char *names[32] = { 0 }, *near;
	size_t n = names_in(section, names, ARRAY_LEN(names));
	int r;

	near = near_name(v->key, names, n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	if (near)
		r = err_set(m->e, ERR_CONFIG, EINVAL,
			    "unknown key \"%.40s\"%s%s; did you mean \"%s\"?", v->key,
			    section ? " in " : "", section ? section : "", near);
	else
		r = err_set(m->e, ERR_CONFIG, EINVAL, "unknown key \"%.40s\"%s%s; known: %s",
			    v->key, section ? " in " : "", section ? section : "", buf_cstr(&all));
	return place_at(m, v->key_line, v->key_col, r);
}

static int merge_members(struct merge *m, const char *section, const struct json *object)
{
	for (const struct json *v = object->first; v; v = v->next) {
		const struct key_def *k = find_key(section, v->key);
		int r = k ? merge_key(m, k, v) : unknown_key(m, section, v);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_section(const char *name)
{
	for (size_t i = 0; i < key_defs_n; i++)
		if (key_defs[i].section && str_eq(key_defs[i].section, name))
			return true;
	return false;
}

static int merge_top(struct merge *m, const struct json *v)
{
	const struct key_def *k = find_key(NULL, v->key);

	if (k)
		return merge_key(m, k, v);
	if (is_section(v->key)) {
		if (v->type != JSON_OBJECT)
			return fail_value(m, v, "%s must be an object, not %s", v->key,
					  json_type_name(v->type));
		return merge_members(m, v->key, v);
	}
	/* Editors look for it; it says nothing to us. */
	if (str_eq(v->key, "$schema") && v->type == JSON_STRING)
		return 0;
	return unknown_key(m, NULL, v);
}

static int merge_root(struct merge *m, const struct json *root)
{
	int r = 0;

	if (root->type != JSON_OBJECT)
		return fail_value(m, root, "a policy is an object, not %s",
				  json_type_name(root->type));
	for (const struct json *v = root->first; r == 0 && v; v = v->next)
		r = merge_top(m, v);
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): seven arguments, one per fact; a struct would only rename them. */
int policy_merge_text(struct policy *p, const char *name, const char *text, size_t n,
		      enum layer layer, bool may_widen, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct merge m = { .p = p, .name = name, .layer = layer, .may_widen = may_widen, .e = e };
	int r = json_parse(text, n, &doc, e);

	if (r < 0)
		return place(&m, "", r);
	return merge_root(&m, doc.root);
}

/* NOLINTNEXTLINE(readability-function-size): as above */
int policy_merge_json(struct policy *p, const char *name, const struct json *object,
		      enum layer layer, bool may_widen, struct err *e)
{
	struct merge m = { .p = p, .name = name, .layer = layer, .may_widen = may_widen, .e = e };

	return merge_root(&m, object);
}
