/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loopfile.c - see loopfile.h
 *
 * One table per file: what is printed is what is read, a key that is missing is zero or empty, and what has another type
 * makes the file unreadable: it was not us who wrote it.
 */
#include "agent/loopfile.h"

#include "agent/report.h"

enum kind {
	KIND_U64,
	KIND_INT,
	KIND_BOOL,
	KIND_TEXT,
	KIND_TEXTS,
	KIND_DOLLARS,
	KIND_HEX,
	KIND_OUTCOME
};

struct key {
	const char *name;
	enum kind kind;
	size_t at;
};

#define DEF(field) offsetof(struct loop_def, field)
#define BEGIN(field) offsetof(struct loop_begin, field)
#define REC(field) offsetof(struct loop_record, field)

static const struct key def_keys[] = {
	{ "agent", KIND_TEXT, DEF(agent) },
	{ "workspace", KIND_TEXT, DEF(workspace) },
	{ "mode", KIND_TEXT, DEF(mode) },
	{ "prompt", KIND_TEXT, DEF(prompt) },
	{ "prompt_file", KIND_TEXT, DEF(prompt_file) },
	{ "until", KIND_TEXT, DEF(until) },
	{ "marker", KIND_TEXT, DEF(marker) },
	{ "notify", KIND_TEXT, DEF(notify) },
	{ "run_time_ns", KIND_U64, DEF(run_time) },
	{ "created", KIND_U64, DEF(created) },
	{ "max", KIND_U64, DEF(conf.max) },
	{ "time_ns", KIND_U64, DEF(conf.time) },
	{ "cost_usd", KIND_DOLLARS, DEF(conf.cost) },
	{ "tokens", KIND_U64, DEF(conf.tokens) },
	{ "still", KIND_U64, DEF(conf.still) },
	{ "failures", KIND_U64, DEF(conf.failures) },
	{ "backoff_ns", KIND_U64, DEF(conf.backoff) },
};

static const struct key begin_keys[] = {
	{ "iteration", KIND_U64, BEGIN(iteration) },   { "attempt", KIND_U64, BEGIN(attempt) },
	{ "checkpoint", KIND_U64, BEGIN(checkpoint) }, { "started", KIND_U64, BEGIN(started) },
	{ "hints", KIND_TEXTS, BEGIN(hints) },
};

static const struct key record_keys[] = {
	{ "iteration", KIND_U64, REC(iteration) },
	{ "attempt", KIND_U64, REC(attempt) },
	{ "checkpoint", KIND_U64, REC(checkpoint) },
	{ "started", KIND_U64, REC(started) },
	{ "outcome", KIND_OUTCOME, REC(result.outcome) },
	{ "status", KIND_INT, REC(result.status) },
	{ "reason", KIND_TEXT, REC(reason) },
	{ "marked", KIND_BOOL, REC(result.is_marked) },
	{ "has_check", KIND_BOOL, REC(has_check) },
	{ "checked", KIND_BOOL, REC(result.is_checked) },
	{ "check_status", KIND_INT, REC(check_status) },
	{ "duration_ns", KIND_U64, REC(result.duration) },
	{ "changed", KIND_U64, REC(result.n_changed) },
	{ "files", KIND_TEXTS, REC(files) },
	{ "has_cost", KIND_BOOL, REC(has_cost) },
	{ "cost_usd", KIND_DOLLARS, REC(result.cost) },
	{ "has_tokens", KIND_BOOL, REC(has_tokens) },
	{ "tokens_in", KIND_U64, REC(result.tokens_in) },
	{ "tokens_out", KIND_U64, REC(result.tokens_out) },
	{ "failure", KIND_HEX, REC(result.failure) },
	{ "said", KIND_TEXT, REC(said) },
	{ "outside", KIND_TEXTS, REC(outside) },
};

void loop_texts_free(char **v)
{
	for (char **p = v; p && *p; p++)
		free(*p);
	free(v);
}

void loop_def_done(struct loop_def *d)
{
	free(d->agent);
	free(d->workspace);
	free(d->mode);
	free(d->prompt);
	free(d->prompt_file);
	free(d->until);
	free(d->marker);
	free(d->notify);
	*d = (struct loop_def){ 0 };
}

void loop_begin_done(struct loop_begin *b)
{
	loop_texts_free(b->hints);
	*b = (struct loop_begin){ 0 };
}

void loop_record_done(struct loop_record *r)
{
	free(r->reason);
	free(r->said);
	loop_texts_free(r->files);
	loop_texts_free(r->outside);
	*r = (struct loop_record){ 0 };
}

static void put_texts(char *const *v, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t i = 0; v && v[i]; i++) {
		buf_puts(out, i ? "," : "");
		buf_json(out, v[i]);
	}
	buf_putc(out, ']');
}

static uint64_t get_u64(const void *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof(n));
	return n;
}

static void put_value(const struct key *k, const void *at, struct buf *out)
{
	const char *text;

	switch (k->kind) {
	case KIND_U64:
		buf_printf(out, "%llu", (unsigned long long)get_u64(at));
		return;
	case KIND_INT:
		buf_printf(out, "%d", *(const int *)at);
		return;
	case KIND_BOOL:
		buf_puts(out, *(const bool *)at ? "true" : "false");
		return;
	case KIND_TEXT:
		text = *(char *const *)at;
		if (text)
			buf_json(out, text);
		else
			buf_puts(out, "null");
		return;
	case KIND_TEXTS:
		put_texts(*(char **const *)at, out);
		return;
	case KIND_DOLLARS:
		buf_printf(out, "%llu.%06llu", (unsigned long long)(get_u64(at) / 1000000),
			   (unsigned long long)(get_u64(at) % 1000000));
		return;
	case KIND_HEX:
		buf_printf(out, "\"%016llx\"", (unsigned long long)get_u64(at));
		return;
	case KIND_OUTCOME:
		buf_json(out, loop_outcome_name(*(const enum loop_outcome *)at));
		return;
	}
}

static void put_object(const struct key *keys, size_t n, const void *object, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%s\"%s\":", i ? ",\n " : "{", keys[i].name);
		put_value(&keys[i], (const char *)object + keys[i].at, out);
	}
	buf_puts(out, "}\n");
}

static bool take_texts(const struct json *v, char ***ret)
{
	size_t n = 0;

	if (v->type != JSON_ARRAY)
		return false;
	for (const struct json *m = v->first; m; m = m->next)
		if (m->type != JSON_STRING)
			return false;
	*ret = mem_new(v->n + 1, sizeof(**ret));
	for (const struct json *m = v->first; m; m = m->next)
		(*ret)[n++] = mem_str(m->text);
	return true;
}

static bool take_hex(const struct json *v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v->type != JSON_STRING || v->n != 16)
		return false;
	for (const char *p = v->text; *p; p++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *p);

		if (at == NULL)
			return false;
		n = n << 4 | (uint64_t)(at - digits);
	}
	*ret = n;
	return true;
}

static bool take_outcome(const struct json *v, enum loop_outcome *ret)
{
	for (enum loop_outcome o = 0; v->type == JSON_STRING && o < LOOP_OUTCOME_COUNT_; o++)
		if (str_eq(v->text, loop_outcome_name(o))) {
			*ret = o;
			return true;
		}
	return false;
}

static bool take_value(const struct key *k, const struct json *v, void *at)
{
	int64_t number;
	uint64_t n;

	switch (k->kind) {
	case KIND_U64:
		if (!json_u64(v, &n))
			return false;
		memcpy(at, &n, sizeof(n));
		return true;
	case KIND_INT:
		if (!json_i64(v, &number) || number < INT32_MIN || number > INT32_MAX)
			return false;
		*(int *)at = (int)number;
		return true;
	case KIND_BOOL:
		*(bool *)at = v->is_true;
		return v->type == JSON_BOOL;
	case KIND_TEXT:
		*(char **)at = v->type == JSON_STRING ? mem_str(v->text) : NULL;
		return v->type == JSON_STRING || v->type == JSON_NULL;
	case KIND_TEXTS:
		return take_texts(v, at);
	case KIND_DOLLARS:
		return v->type == JSON_NUMBER && report_dollars(v->text, at);
	case KIND_HEX:
		return take_hex(v, at);
	case KIND_OUTCOME:
		return take_outcome(v, at);
	}
	return false;
}

static int take_object(const struct key *keys, size_t n, const char *text, size_t len, void *object,
		       struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	int r = json_parse(text, len, &doc, e);

	if (r < 0)
		return err_wrap(e, r, "a record of the loop");
	for (size_t i = 0; i < n; i++) {
		const struct json *v =
			doc.root->type == JSON_OBJECT ? json_get(doc.root, keys[i].name) : NULL;

		if (doc.root->type != JSON_OBJECT ||
		    (v && !take_value(&keys[i], v, (char *)object + keys[i].at)))
			return err_set(e, ERR_CONFIG, EINVAL,
				       "a record of the loop is damaged: '%s'", keys[i].name);
	}
	return 0;
}

void loop_def_print(const struct loop_def *d, struct buf *out)
{
	put_object(def_keys, ARRAY_LEN(def_keys), d, out);
}

int loop_def_parse(const char *text, size_t n, struct loop_def *ret, struct err *e)
{
	struct loop_def d = { 0 };
	int r = take_object(def_keys, ARRAY_LEN(def_keys), text, n, &d, e);

	if (r == 0 && (d.agent == NULL || d.workspace == NULL || d.mode == NULL ||
		       (d.prompt == NULL) == (d.prompt_file == NULL)))
		r = err_set(e, ERR_CONFIG, EINVAL, "the definition of the loop is damaged");
	d.conf.has_marker = d.marker != NULL;
	d.conf.has_check = d.until != NULL;
	if (r < 0)
		loop_def_done(&d);
	else
		*ret = d;
	return r;
}

void loop_begin_print(const struct loop_begin *b, struct buf *out)
{
	put_object(begin_keys, ARRAY_LEN(begin_keys), b, out);
}

int loop_begin_parse(const char *text, size_t n, struct loop_begin *ret, struct err *e)
{
	struct loop_begin b = { 0 };
	int r = take_object(begin_keys, ARRAY_LEN(begin_keys), text, n, &b, e);

	if (r < 0)
		loop_begin_done(&b);
	else
		*ret = b;
	return r;
}

void loop_record_print(const struct loop_record *r, struct buf *out)
{
	put_object(record_keys, ARRAY_LEN(record_keys), r, out);
}

int loop_record_parse(const char *text, size_t n, struct loop_record *ret, struct err *e)
{
	struct loop_record rec = { 0 };
	int r = take_object(record_keys, ARRAY_LEN(record_keys), text, n, &rec, e);

	if (r < 0)
		loop_record_done(&rec);
	else
		*ret = rec;
	return r;
}
