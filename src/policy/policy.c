/* SPDX-License-Identifier: Apache-2.0 */
/* policy/policy.c - the struct, its built-in values, and how one value changes it
 *
 * Every change goes through three small functions per kind: parse, widens, apply. A file asks `widens` before it
 * applies, because a project file may not; a flag applies at once. Either way a widening is recorded, so that
 * `policy show` can name it.
 */
#include "base/num.h"
#include "base/path.h"
#include "policy/rules.h"
#include "policy/table.h"

static const char *const layer_names[LAYER_COUNT_] = {
	[LAYER_BUILTIN] = "built-in", [LAYER_USER] = "user",   [LAYER_PRESET] = "preset",
	[LAYER_PROJECT] = "project",  [LAYER_FLAGS] = "flags",
};

const char *layer_name(enum layer layer)
{
	bug_on(layer >= LAYER_COUNT_);
	return layer_names[layer];
}

const char *limit_name(enum limit_id id)
{
	bug_on(id >= LIMIT_ALL_);
	return limit_defs[id].name;
}

/* Lists. */

void items_add(struct items *l, const char *text, enum layer origin)
{
	vec_reserve(l->v, l->n, l->cap);
	l->v[l->n] = (struct item){ .text = mem_str(text), .origin = origin };
	item_prepare(&l->v[l->n++]);
}

static void item_done(struct item *it)
{
	if (!it->is_static)
		free(it->text);
}

void items_done(struct items *l)
{
	for (size_t i = 0; i < l->n; i++)
		item_done(&l->v[i]);
	free(l->v);
	*l = (struct items){ 0 };
}

static void items_remove(struct items *l, size_t i)
{
	item_done(&l->v[i]);
	memmove(l->v + i, l->v + i + 1, (l->n - i - 1) * sizeof(*l->v));
	l->n--;
}

struct items *policy_list(struct policy *p, enum list_id id)
{
	bug_on(id >= LIST_COUNT_);
	return (void *)((char *)p + list_defs[id].at);
}

const struct items *policy_list_const(const struct policy *p, enum list_id id)
{
	bug_on(id >= LIST_COUNT_);
	return (const void *)((const char *)p + list_defs[id].at);
}

static char *static_text(const char *text)
{
	union {
		const char *in;
		char *out;
	} u = { .in = text };

	return u.out;
}

static void add_all(struct items *l, const char *const *names)
{
	for (; *names; names++) {
		vec_reserve(l->v, l->n, l->cap);
		l->v[l->n] = (struct item){ .text = static_text(*names),
					    .origin = LAYER_BUILTIN,
					    .is_static = true };
		item_prepare(&l->v[l->n++]);
	}
}

static void add_names(struct items *l, const char *names, const struct name_row *rows, size_t n)
{
	l->v = mem_new(n, sizeof(*l->v));
	l->cap = l->n = n;
	for (size_t i = 0; i < n; i++)
		l->v[i] = (struct item){ .text = static_text(names + rows[i].at),
					 .origin = LAYER_BUILTIN,
					 .is_static = true,
					 .n = rows[i].n,
					 .is_path = rows[i].is_path,
					 .first = rows[i].first,
					 .last = rows[i].last,
					 .is_literal = rows[i].is_literal,
					 .name_at = rows[i].name_at,
					 .name_hash = rows[i].hash };
}

static struct limit limit_builtin(enum limit_id id)
{
	uint64_t max = limit_defs[id].preset;

	return (struct limit){ .is_set = max > 0,
			       .is_optional = max > 0 && id < LIMIT_COUNT_,
			       .max = max };
}

void policy_init(struct policy *p)
{
	*p = (struct policy){ .engine = mem_str(setting_defs[SETTING_ENGINE].choices[0].name) };
	add_names(&p->hide, names_hide, names_hide_rows, names_hide_n);
	add_names(&p->protect, names_protect, names_protect_rows, names_protect_n);
	add_all(&p->env_pass, builtin_env_pass);
	for (enum limit_id i = 0; i < LIMIT_ALL_; i++)
		p->limits[i] = limit_builtin(i);
}

void policy_done(struct policy *p)
{
	for (enum list_id i = 0; i < LIST_COUNT_; i++)
		items_done(policy_list(p, i));
	free(p->workspace);
	free(p->engine);
	*p = (struct policy){ 0 };
}

/* Limits. */

static int limit_number(const struct limit_def *d, const char *text, uint64_t *ret, struct err *e)
{
	switch (d->unit) {
	case UNIT_BYTES:
	case UNIT_BYTES_PER_SEC:
		return num_size(text, ret, e);
	case UNIT_TIME:
		return num_duration(text, ret, e);
	case UNIT_CPUS:
		return num_milli(text, ret, e);
	case UNIT_NUMBER:
		return num_parse(text, 0, UINT64_MAX, ret, e);
	}
	bug_on(true);
	return -EINVAL;
}

int limit_parse(enum limit_id id, const char *text, struct limit *ret, struct err *e)
{
	const struct limit_def *d = &limit_defs[id];
	const char *suffix = strchr(text, ',');
	_free_ char *number = mem_strn(text, suffix ? (size_t)(suffix - text) : strlen(text));
	struct limit l = { .is_set = true, .is_optional = suffix != NULL };
	int r;

	if (str_eq(text, "none")) {
		*ret = (struct limit){ 0 };
		return 0;
	}
	if (suffix && id >= LIMIT_COUNT_)
		return err_set(e, ERR_USAGE, EINVAL, "nothing may follow the value, not \"%.40s\"",
			       suffix);
	if (suffix && !str_eq(suffix, ",optional"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "only \",optional\" may follow a limit, not \"%.40s\"", suffix);
	r = limit_number(d, number, &l.max, e);
	if (r < 0)
		return r;
	if (l.max < d->min || l.max > d->max) {
		_cleanup_(buf_done) struct buf min = BUF(64), max = BUF(64);

		limit_format(id, d->min, &min);
		limit_format(id, d->max, &max);
		return err_set(e, ERR_USAGE, ERANGE,
			       "'%.40s' is outside %s..%s; \"none\" lifts the limit", number,
			       buf_cstr(&min), buf_cstr(&max));
	}
	*ret = l;
	return 0;
}

bool limit_widens(const struct limit *old, const struct limit *new)
{
	if (!old->is_set)
		return false;
	return !new->is_set || new->max > old->max || (new->is_optional && !old->is_optional);
}

/* A value that was not changed keeps the origin that made it so. */
void limit_apply(struct policy *p, enum limit_id id, const struct limit *new, enum layer layer)
{
	struct limit *l = &p->limits[id], builtin = limit_builtin(id);
	bool is_widened = limit_widens(l, new) || limit_widens(&builtin, new);

	if (l->is_set == new->is_set && l->is_optional == new->is_optional && l->max == new->max)
		return;
	*l = *new;
	l->origin = layer;
	l->is_widened = is_widened;
}

int policy_set_limit(struct policy *p, enum limit_id id, const char *text, enum layer layer,
		     struct err *e)
{
	struct limit l;
	int r;

	bug_on(id >= LIMIT_ALL_);
	r = limit_parse(id, text, &l, e);
	if (r < 0)
		return r;
	limit_apply(p, id, &l, layer);
	return 0;
}

static void format_with(uint64_t v, const uint64_t *factors, const char *const *names, size_t n,
			struct buf *out)
{
	size_t i = 0;

	while (i + 1 < n && (v == 0 || v % factors[i] != 0))
		i++;
	buf_printf(out, "%llu%s", (unsigned long long)(v / factors[i]), names[i]);
}

static void format_milli(uint64_t v, struct buf *out)
{
	unsigned rest = (unsigned)(v % 1000), width = 3;

	buf_printf(out, "%llu", (unsigned long long)(v / 1000));
	if (rest == 0)
		return;
	for (; rest % 10 == 0; width--)
		rest /= 10;
	buf_printf(out, ".%0*u", (int)width, rest);
}

void limit_format(enum limit_id id, uint64_t max, struct buf *out)
{
	static const uint64_t sizes[] = { TIB, GIB, MIB, KIB, 1 };
	static const char *const size_names[] = { "t", "g", "m", "k", "" };
	static const uint64_t times[] = { 86400 * NS_PER_SEC, 3600 * NS_PER_SEC, 60 * NS_PER_SEC,
					  NS_PER_SEC,         NS_PER_MS,         1 };
	static const char *const time_names[] = { "d", "h", "m", "s", "ms", "ns" };

	bug_on(id >= LIMIT_ALL_);
	switch (limit_defs[id].unit) {
	case UNIT_BYTES:
	case UNIT_BYTES_PER_SEC:
		format_with(max, sizes, size_names, ARRAY_LEN(sizes), out);
		break;
	case UNIT_TIME:
		format_with(max, times, time_names, ARRAY_LEN(times), out);
		break;
	case UNIT_CPUS:
		format_milli(max, out);
		break;
	case UNIT_NUMBER:
		buf_printf(out, "%llu", (unsigned long long)max);
		break;
	}
}

/* Settings. */

unsigned setting_get(const struct policy *p, enum setting_id id)
{
	switch (id) {
	case SETTING_MODE:
		return p->mode;
	case SETTING_HOME:
		return p->home;
	case SETTING_TMP:
		return p->tmp;
	case SETTING_NETWORK:
		return p->network;
	case SETTING_NET_PRESET:
		return p->net_preset;
	case SETTING_NET_ASK:
		return p->net_ask;
	case SETTING_DEBUG:
		return p->debug;
	case SETTING_ISOLATION:
		return p->isolation;
	case SETTING_CHECK_READS:
		return p->check_reads;
	case SETTING_TELEMETRY:
		return p->telemetry;
	case SETTING_CONTAINERS:
		return p->containers;
	case SETTING_LIVE:
		return p->live;
	case SETTING_TOOLS:
		return p->tools;
	case SETTING_ENGINE:
		for (unsigned i = 0; i < setting_defs[id].n; i++)
			if (p->engine && str_eq(p->engine, setting_defs[id].choices[i].name))
				return i;
		return setting_defs[id].n;
	case SETTING_COUNT_:
		break;
	}
	bug_on(true);
	return 0;
}

enum layer setting_origin(const struct policy *p, enum setting_id id)
{
	enum layer origin;

	bug_on(id >= SETTING_COUNT_);
	memcpy(&origin, (const char *)p + setting_defs[id].origin_at, sizeof(origin));
	return origin;
}

static int unknown_word(const struct setting_def *d, const char *text, struct err *e)
{
	_cleanup_(buf_done) struct buf all = BUF(256);
	const char *names[24], *near;

	bug_on(d->n > ARRAY_LEN(names));
	for (unsigned i = 0; i < d->n; i++) {
		names[i] = d->choices[i].name;
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	near = near_name(text, names, d->n);
	if (near)
		return err_set(e, ERR_USAGE, EINVAL,
			       "unknown value \"%.40s\"; did you mean \"%s\"?", text, near);
	return err_set(e, ERR_USAGE, EINVAL, "unknown value \"%.40s\"; known: %s", text,
		       buf_cstr(&all));
}

int setting_parse(enum setting_id id, const char *text, unsigned *ret, struct err *e)
{
	const struct setting_def *d = &setting_defs[id];

	for (unsigned i = 0; i < d->n; i++) {
		if (str_eq(text, d->choices[i].name)) {
			*ret = i;
			return 0;
		}
	}
	return unknown_word(d, text, e);
}

static bool is_wider(const struct setting_def *d, unsigned old, unsigned new)
{
	if (d->is_any_wider || old >= d->n)
		return new != old;
	return d->choices[new].rank < d->choices[old].rank;
}

bool setting_widens(const struct policy *p, enum setting_id id, unsigned value)
{
	return is_wider(&setting_defs[id], setting_get(p, id), value);
}

/* A value that was not changed keeps the origin that made it so. */
void setting_apply(struct policy *p, enum setting_id id, unsigned value, enum layer layer)
{
	const struct setting_def *d = &setting_defs[id];

	if (setting_get(p, id) == value)
		return;
	p->widened &= ~BIT(id);
	if (setting_widens(p, id, value) || is_wider(d, 0, value))
		p->widened |= BIT(id);
	memcpy((char *)p + d->origin_at, &layer, sizeof(layer));
	switch (id) {
	case SETTING_MODE:
		p->mode = (enum ws_mode)value;
		break;
	case SETTING_HOME:
		p->home = (enum home_mode)value;
		break;
	case SETTING_TMP:
		p->tmp = (enum tmp_mode)value;
		break;
	case SETTING_NETWORK:
		p->network = (enum net_mode)value;
		break;
	case SETTING_NET_PRESET:
		p->net_preset = (enum net_level)value;
		break;
	case SETTING_NET_ASK:
		p->net_ask = value != 0;
		break;
	case SETTING_DEBUG:
		p->debug = value != 0;
		break;
	case SETTING_ISOLATION:
		p->isolation = (enum isolation)value;
		break;
	case SETTING_CHECK_READS:
		p->check_reads = value != 0;
		break;
	case SETTING_TELEMETRY:
		p->telemetry = value != 0;
		break;
	case SETTING_CONTAINERS:
		p->containers = value != 0;
		break;
	case SETTING_LIVE:
		p->live = value != 0;
		break;
	case SETTING_TOOLS:
		p->tools = (enum tools_mode)value;
		break;
	case SETTING_ENGINE:
		free(p->engine);
		p->engine = mem_str(setting_defs[id].choices[value].name);
		break;
	case SETTING_COUNT_:
		break;
	}
}

int policy_set(struct policy *p, enum setting_id id, const char *text, enum layer layer,
	       struct err *e)
{
	unsigned value = 0;
	int r;

	bug_on(id >= SETTING_COUNT_);
	r = setting_parse(id, text, &value, e);
	if (r < 0)
		return r;
	setting_apply(p, id, value, layer);
	return 0;
}

int policy_set_workspace(struct policy *p, const char *path, enum layer layer, struct err *e)
{
	if (!path_is_clean(path) || strlen(path) > ITEM_MAX_BYTES)
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be an absolute path without '.', '..' or a slash at the end");
	free(p->workspace);
	p->workspace = mem_str(path);
	p->workspace_origin = layer;
	return 0;
}

/* Entries of lists. */

int list_parse(const struct policy *p, enum list_id id, const char *text, char **ret, struct err *e)
{
	const struct list_def *d = &list_defs[id];
	bool is_taken_back = text[0] == '!' && !d->is_map;
	int r;

	if (strlen(text) > ITEM_MAX_BYTES)
		return err_set(e, ERR_USAGE, EINVAL, "an entry of more than %d bytes",
			       ITEM_MAX_BYTES);
	if (policy_list_const(p, id)->n >= LIST_MAX_ITEMS)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d entries", LIST_MAX_ITEMS);
	r = d->check(text + is_taken_back, e);
	if (r < 0)
		return r;
	/* The mode is written out, so that an entry has one spelling and the plan need not know the default. */
	if (id == LIST_MOUNT && !str_ends(text, ":ro") && !str_ends(text, ":rw"))
		*ret = mem_fmt("%s:rw", text);
	else
		*ret = mem_str(text);
	return 0;
}

/* Where an entry of this text already has its full effect: nothing is taken back behind it. -1: nowhere. */
static int find_effective(const struct items *l, const char *entry)
{
	for (size_t i = l->n; i-- > 0;) {
		if (str_eq(l->v[i].text, entry))
			return (int)i;
		if (l->v[i].text[0] == '!' || entry[0] == '!')
			return -1;
	}
	return -1;
}

bool list_widens(const struct policy *p, enum list_id id, const char *entry)
{
	const struct list_def *d = &list_defs[id];
	bool is_taken_back = entry[0] == '!' && !d->is_map;

	if (find_effective(policy_list_const(p, id), entry) >= 0)
		return false;
	/* The name of one variable that passes already, by whatever entry. */
	if (id == LIST_ENV_PASS && !is_taken_back && !strchr(entry, '*') &&
	    policy_env_passes(p, entry))
		return false;
	return d->closes == is_taken_back;
}

static void remove_equal(struct items *l, const char *text, size_t n)
{
	for (size_t i = l->n; i-- > 0;)
		if (strncmp(l->v[i].text, text, n) == 0 &&
		    (l->v[i].text[n] == '\0' || text[n - 1] == '='))
			items_remove(l, i);
}

void list_apply(struct policy *p, enum list_id id, const char *entry, enum layer layer)
{
	const struct list_def *d = &list_defs[id];
	struct items *l = policy_list(p, id);

	if (find_effective(l, entry) >= 0)
		return;
	if (d->is_map) {
		remove_equal(l, entry, (size_t)(strchr(entry, '=') - entry) + 1);
	} else if (entry[0] == '!' && !d->is_matched) {
		remove_equal(l, entry + 1, strlen(entry + 1));
		return;
	}
	items_add(l, entry, layer);
}

const char *const *list_group(enum list_id id, const char *text)
{
	const struct net_preset *g = id == LIST_NET_ALLOW || id == LIST_NET_DENY
					     ? net_group_find(text + (text[0] == '!'))
					     : NULL;

	return g ? g->allow : NULL;
}

static int add_one(struct policy *p, enum list_id id, const char *text, enum layer layer,
		   struct err *e)
{
	_free_ char *entry = NULL;
	int r;

	bug_on(id >= LIST_COUNT_);
	r = list_parse(p, id, text, &entry, e);
	if (r < 0)
		return r;
	list_apply(p, id, entry, layer);
	return 0;
}

int policy_add(struct policy *p, enum list_id id, const char *text, enum layer layer, struct err *e)
{
	const char *const *hosts = list_group(id, text);
	int r = 0;

	if (hosts == NULL)
		return add_one(p, id, text, layer, e);
	for (; r == 0 && *hosts; hosts++) {
		_free_ char *entry = mem_fmt("%s%s", text[0] == '!' ? "!" : "", *hosts);

		r = add_one(p, id, entry, layer, e);
	}
	return r;
}

bool policy_env_passes(const struct policy *p, const char *name)
{
	for (size_t i = p->env_pass.n; i-- > 0;) {
		const char *t = p->env_pass.v[i].text;
		bool is_taken_back = t[0] == '!';
		size_t n;

		t += is_taken_back;
		n = strlen(t);
		if (n > 0 && t[n - 1] == '*' ? strncmp(t, name, n - 1) == 0 : str_eq(t, name))
			return !is_taken_back;
	}
	return false;
}

int policy_trust_line(const char *sha256_hex, const char *path, char **ret, struct err *e)
{
	if (strlen(sha256_hex) != 64 || strspn(sha256_hex, "0123456789abcdef") != 64)
		return err_set(e, ERR_USAGE, EINVAL, "not a SHA-256 in lower-case hexadecimal");
	if (!path_is_clean(path))
		return err_set(e, ERR_USAGE, EINVAL, "not an absolute path");
	/* One line each: a path that could make two lines of one could pin what nobody asked for. */
	if (strpbrk(path, "\n\r"))
		return err_set(e, ERR_USAGE, EINVAL, "a path with a line break cannot be pinned");
	*ret = mem_fmt("%s  %s", sha256_hex, path);
	return 0;
}
