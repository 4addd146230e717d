/* SPDX-License-Identifier: Apache-2.0 */
/* policy/print.c - the effective policy with the origin of each value
 *
 * One row per value: people get a table, machines an object of the same shape as a policy file in which each value
 * is {"value", "origin", "widens"}. Both come from the same rows. "widens" marks what a layer above the built-in one
 * opened, which is what a person should look at first.
 */
#include "policy/table.h"

struct row {
	const struct key_def *key;
	const char *value; /* NULL: null in JSON */
	const char *shown; /* what people see instead, or NULL */
	enum layer origin;
	bool widens;
	bool is_bool;
	bool is_optional, is_limit;
};

struct table {
	struct buf *out;
	bool is_json;
	bool only_widening; /* skip all other rows */
	const char *section;
	bool has_row;        /* of this key */
	policy_wider_fn *fn; /* instead of printing */
	void *arg;
};

static void put_cell(struct buf *out, const char *text, size_t width)
{
	size_t before = out->n;

	buf_esc(out, text, strlen(text));
	while (out->n - before < width && !out->is_over)
		buf_putc(out, ' ');
}

static void put_title(const struct key_def *k, char *ret, size_t n)
{
	(void)snprintf(ret, n, "%s%s%s", k->section ? k->section : "", k->section ? "." : "",
		       k->name);
}

static void tell_row(const struct table *t, const struct row *row)
{
	bool is_map = row->key->kind == KEY_LIST && list_defs[row->key->id].is_map;
	const char *value = row->shown ? row->shown : row->value ? row->value : "";
	_free_ char *text = mem_strn(value, is_map ? strcspn(value, "=") : strlen(value));
	char title[64];

	put_title(row->key, title, sizeof(title));
	t->fn(t->arg, title, text, row->origin);
}

static void human_row(struct table *t, const struct row *row)
{
	char title[64];
	const char *value = row->shown ? row->shown : row->value ? row->value : "";

	put_title(row->key, title, sizeof(title));
	put_cell(t->out, title, 18);
	buf_puts(t->out, "  ");
	put_cell(t->out, value, 32);
	buf_printf(t->out, "  %s%s\n", layer_name(row->origin), row->widens ? "  widens" : "");
}

static void json_row(struct table *t, const struct row *row)
{
	buf_puts(t->out, "{\"value\":");
	if (row->value == NULL)
		buf_puts(t->out, "null");
	else if (row->is_bool)
		buf_puts(t->out, row->value);
	else
		buf_json(t->out, row->value);
	if (row->is_limit)
		buf_printf(t->out, ",\"optional\":%s", row->is_optional ? "true" : "false");
	buf_printf(t->out, ",\"origin\":\"%s\",\"widens\":%s}", layer_name(row->origin),
		   row->widens ? "true" : "false");
}

static void put_row(struct table *t, const struct row *row)
{
	if (t->only_widening && !row->widens)
		return;
	if (t->fn) {
		tell_row(t, row);
	} else if (t->is_json) {
		if (t->has_row)
			buf_putc(t->out, ',');
		json_row(t, row);
	} else {
		human_row(t, row);
	}
	t->has_row = true;
}

static void print_list(struct table *t, const struct policy *p, const struct key_def *k)
{
	const struct items *l = policy_list_const(p, k->id);
	const struct list_def *d = &list_defs[k->id];

	if (t->is_json)
		buf_putc(t->out, '[');
	for (size_t i = 0; i < l->n; i++) {
		const struct item *it = &l->v[i];
		bool is_taken_back = it->text[0] == '!' && d->is_matched;

		put_row(t, &(struct row){ .key = k,
					  .value = it->text,
					  .origin = it->origin,
					  .widens = it->origin != LAYER_BUILTIN &&
						    d->closes == is_taken_back });
	}
	if (t->is_json)
		buf_putc(t->out, ']');
}

static void print_limit(struct table *t, const struct policy *p, const struct key_def *k)
{
	_cleanup_(buf_done) struct buf value = BUF(64), shown = BUF(128);
	const struct limit *l = &p->limits[k->id];

	if (l->is_set)
		limit_format(k->id, l->max, &value);
	else
		buf_puts(&value, "none");
	buf_printf(&shown, "%s%s", buf_cstr(&value),
		   l->is_set && l->is_optional ? ",optional" : "");
	put_row(t, &(struct row){ .key = k,
				  .value = l->is_set ? buf_cstr(&value) : NULL,
				  .shown = buf_cstr(&shown),
				  .origin = l->origin,
				  .widens = l->is_widened,
				  .is_limit = true,
				  .is_optional = l->is_optional });
}

static void print_setting(struct table *t, const struct policy *p, const struct key_def *k)
{
	const struct setting_def *d = &setting_defs[k->id];
	unsigned value = setting_get(p, k->id);

	put_row(t, &(struct row){ .key = k,
				  .value = value < d->n ? d->choices[value].name : p->engine,
				  .origin = setting_origin(p, k->id),
				  .widens = (p->widened & BIT(k->id)) != 0,
				  .is_bool = d->is_bool });
}

static void print_key(struct table *t, const struct policy *p, const struct key_def *k)
{
	t->has_row = false;
	switch (k->kind) {
	case KEY_WORKSPACE:
		put_row(t, &(struct row){ .key = k,
					  .value = p->workspace,
					  .shown = p->workspace ? NULL : "(the current directory)",
					  .origin = p->workspace_origin });
		break;
	case KEY_SETTING:
		print_setting(t, p, k);
		break;
	case KEY_LIST:
		print_list(t, p, k);
		break;
	case KEY_LIMIT:
		print_limit(t, p, k);
		break;
	}
}

/* Opens and closes the object of a section around its keys. */
static void json_key(struct table *t, const struct key_def *k, bool is_first)
{
	bool is_same = !is_first && section_eq(t->section, k->section);

	if (!is_same && t->section)
		buf_putc(t->out, '}');
	if (!is_first)
		buf_putc(t->out, ',');
	if (!is_same && k->section)
		buf_printf(t->out, "\"%s\":{", k->section);
	buf_printf(t->out, "\"%s\":", k->name);
	t->section = k->section;
}

void policy_print(const struct policy *p, bool as_json, struct buf *out)
{
	struct table t = { .out = out, .is_json = as_json };

	if (as_json)
		buf_putc(out, '{');
	for (size_t i = 0; i < key_defs_n; i++) {
		if (as_json)
			json_key(&t, &key_defs[i], i == 0);
		print_key(&t, p, &key_defs[i]);
	}
	if (as_json)
		buf_puts(out, t.section ? "}}\n" : "}\n");
}

void policy_print_widenings(const struct policy *p, struct buf *out)
{
	struct table t = { .out = out, .only_widening = true };

	for (size_t i = 0; i < key_defs_n; i++)
		print_key(&t, p, &key_defs[i]);
}

void policy_each_widening(const struct policy *p, policy_wider_fn *fn, void *arg)
{
	struct table t = { .only_widening = true, .fn = fn, .arg = arg };

	for (size_t i = 0; i < key_defs_n; i++)
		print_key(&t, p, &key_defs[i]);
}
