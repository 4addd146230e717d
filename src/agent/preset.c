/* SPDX-License-Identifier: Apache-2.0 */
/* agent/preset.c - a preset's text -> struct preset, and the commands that come of it; pure
 *
 * Strict: a key that nobody knows, a list that holds something else than strings, a path that leads out of the home end
 * the reading with FILE:LINE:COLUMN and, for a name, the nearest one that is known. The policy inside is judged when it
 * is merged, by the same code as every other layer.
 */
#include "agent/preset.h"

#include "base/path.h"
#include "policy/table.h"

enum kind { KIND_TEXT, KIND_LIST, KIND_SEEDS, KIND_REPORT, KIND_ANY };

struct key {
	const char *name;
	enum kind kind;
	size_t at;
};

#define AT(field) offsetof(struct preset, field)

static const struct key keys[] = {
	{ "summary", KIND_TEXT, AT(summary) },
	{ "command", KIND_LIST, AT(command) },
	{ "free", KIND_LIST, AT(free) },
	{ "prompt", KIND_LIST, AT(prompt) },
	{ "begin", KIND_LIST, AT(begin) },
	{ "install", KIND_TEXT, AT(install) },
	{ "secrets", KIND_LIST, AT(secrets) },
	{ "hook", KIND_TEXT, AT(hook) },
	{ "share", KIND_LIST, AT(share) },
	{ "seed", KIND_SEEDS, AT(seed) },
	{ "etc", KIND_SEEDS, AT(etc) },
	{ "report", KIND_REPORT, AT(report) },
	{ "busy", KIND_LIST, AT(busy) },
	{ "policy", KIND_ANY, AT(policy) },
	{ "own_sandbox", KIND_TEXT, AT(own_sandbox) },
};

static const struct key report_keys[] = {
	{ "when", KIND_TEXT, AT(report.when) },
	{ "text_when", KIND_TEXT, AT(report.text_when) },
	{ "text", KIND_TEXT, AT(report.text) },
	{ "cost", KIND_TEXT, AT(report.cost) },
	{ "tokens_in", KIND_TEXT, AT(report.tokens_in) },
	{ "tokens_out", KIND_TEXT, AT(report.tokens_out) },
	{ "failed", KIND_TEXT, AT(report.failed) },
};

struct reader {
	struct preset *p;
	struct err *e;
};

/* "FILE:LINE:COLUMN: " in front of what was said; the bytes may be anybody's. */
static int place(const struct reader *r, uint32_t line, uint32_t col, int x)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	buf_esc(&b, r->p->origin, strlen(r->p->origin));
	if (line)
		buf_printf(&b, ":%u:%u: ", line, col);
	else
		buf_putc(&b, ':');
	buf_esc(&b, r->e->msg, strlen(r->e->msg));
	(void)err_set(r->e, ERR_CONFIG, -x, "%s", buf_cstr(&b));
	return x;
}

#define fail(r, v, ...)                                                                            \
	place((r), (v)->line, (v)->col, err_set((r)->e, ERR_CONFIG, EINVAL, __VA_ARGS__))

static int wrong_type(const struct reader *r, const struct json *v, const char *name,
		      const char *wanted)
{
	return fail(r, v, "%s must be %s, not %s", name, wanted, json_type_name(v->type));
}

static int check_strings(const struct reader *r, const struct json *v, const char *name)
{
	bool is_map = v->type == JSON_OBJECT;

	for (const struct json *m = v->first; m; m = m->next) {
		if (m->type != JSON_STRING)
			return wrong_type(r, m, name,
					  is_map ? "an object of strings" : "a list of strings");
		if (!is_map && m->text[0] == '\0')
			return fail(r, m, "%s holds an empty string", name);
	}
	return 0;
}

/* Written below the home by us, from outside: nothing that leads out of it. */
static bool is_home_path(const char *path)
{
	_free_ char *full = mem_fmt("/%s", path);

	return path[0] != '\0' && path_is_clean(full);
}

static int check_seeds(const struct reader *r, const struct key *k, const struct json *v)
{
	for (const struct json *m = v->first; m; m = m->next) {
		struct json at = { .line = m->key_line, .col = m->key_col };

		if (!is_home_path(m->key))
			return fail(r, &at,
				    "%s \"%.80s\" must be a path below %s, without '.' or '..'",
				    k->name, m->key, str_eq(k->name, "etc") ? "/etc" : "the home");
		if (m->type != JSON_OBJECT && m->type != JSON_ARRAY)
			return wrong_type(r, m, k->name, "an object or a list of lines");
		if (m->type == JSON_ARRAY &&
		    check_strings(r, &(struct json){ .type = JSON_OBJECT, .first = m->first },
				  k->name) < 0)
			return -EINVAL;
	}
	return 0;
}

static int unknown(const struct reader *r, const struct json *v, const struct key *table, size_t n)
{
	_cleanup_(buf_done) struct buf all = BUF(512);
	struct json at = { .line = v->key_line, .col = v->key_col };
	const char *names[32], *near;

	bug_on(n > ARRAY_LEN(names));
	for (size_t i = 0; i < n; i++) {
		names[i] = table[i].name;
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	near = near_name(v->key, names, n);
	return near ? fail(r, &at, "unknown key \"%.40s\"; did you mean \"%s\"?", v->key, near)
		    : fail(r, &at, "unknown key \"%.40s\"; known: %s", v->key, buf_cstr(&all));
}

static int read_members(struct reader *r, const struct json *object, const struct key *table,
			size_t n);

static int read_value(struct reader *r, const struct key *k, const struct json *v)
{
	void *at = (char *)r->p + k->at;

	switch (k->kind) {
	case KIND_TEXT:
		if (v->type != JSON_STRING)
			return wrong_type(r, v, k->name, "a string");
		*(const char **)at = v->text;
		return 0;
	case KIND_LIST:
		if (v->type != JSON_ARRAY)
			return wrong_type(r, v, k->name, "a list of strings");
		*(const struct json **)at = v;
		return check_strings(r, v, k->name);
	case KIND_SEEDS:
	case KIND_ANY:
	case KIND_REPORT:
		break;
	}
	if (v->type != JSON_OBJECT)
		return wrong_type(r, v, k->name, "an object");
	if (k->kind == KIND_REPORT)
		return read_members(r, v, report_keys, ARRAY_LEN(report_keys));
	*(const struct json **)at = v;
	return k->kind == KIND_SEEDS ? check_seeds(r, k, v) : 0;
}

static int read_members(struct reader *r, const struct json *object, const struct key *table,
			size_t n)
{
	for (const struct json *v = object->first; v; v = v->next) {
		const struct key *k = NULL;
		int x;

		for (size_t i = 0; i < n && k == NULL; i++)
			if (str_eq(table[i].name, v->key))
				k = &table[i];
		x = k ? read_value(r, k, v) : unknown(r, v, table, n);
		if (x < 0)
			return x;
	}
	return 0;
}

static bool holds(const struct json *list, const char *text)
{
	for (const struct json *v = list ? list->first : NULL; v; v = v->next)
		if (str_eq(v->text, text))
			return true;
	return false;
}

static int check_whole(struct reader *r)
{
	const struct preset *p = r->p;

	if (p->command == NULL || p->command->first == NULL)
		return fail(r, p->doc.root, "a preset needs a \"command\"");
	if (p->summary == NULL)
		return fail(r, p->doc.root, "a preset needs a \"summary\"");
	if (p->prompt && !holds(p->prompt, "{prompt}"))
		return fail(r, p->prompt, "prompt must hold the word \"{prompt}\"");
	if (p->begin && !holds(p->begin, "{prompt}"))
		return fail(r, p->begin, "begin must hold the word \"{prompt}\"");
	if (p->report.when && strchr(p->report.when, '=') == NULL)
		return fail(r, p->doc.root, "report.when must be \"MEMBER=VALUE\"");
	for (const struct json *v = p->share ? p->share->first : NULL; v; v = v->next)
		if (!str_starts(v->text, "~/") || !is_home_path(v->text + 2))
			return fail(r, v, "share takes paths below the home (\"~/...\")");
	return 0;
}

int preset_parse(const char *name, const char *origin, const char *text, size_t n,
		 struct preset *ret, struct err *e)
{
	struct preset p = { .name = mem_str(name), .origin = mem_str(origin) };
	struct reader r = { &p, e };
	int x = json_parse(text, n, &p.doc, e);

	if (x < 0) {
		x = place(&r, 0, 0, x);
	} else {
		x = p.doc.root->type == JSON_OBJECT
			    ? read_members(&r, p.doc.root, keys, ARRAY_LEN(keys))
			    : fail(&r, p.doc.root, "a preset is an object, not %s",
				   json_type_name(p.doc.root->type));
		if (x == 0)
			x = check_whole(&r);
	}
	if (x < 0)
		preset_done(&p);
	else
		*ret = p;
	return x;
}

void preset_done(struct preset *p)
{
	free(p->name);
	free(p->origin);
	if (p->doc.root)
		json_done(&p->doc);
	*p = (struct preset){ 0 };
}

/* ---- commands ---- */

const char *preset_program(const struct preset *p)
{
	return p->command->first->text;
}

/* One string, so that the program has no table to be relocated. */
static const char free_words[] = "--dsp\0--yolo\0--dangerously-skip-permissions\0"
				 "--dangerously-bypass-approvals-and-sandbox\0--allow-all\0--allow-"
				 "all-tools\0"
				 "--trust-all-tools\0--yes-always\0--skip-permissions-unsafe\0--"
				 "dangerously-allow-all\0";

bool preset_is_free_word(const char *word)
{
	for (const char *w = free_words; *w; w += strlen(w) + 1)
		if (str_eq(w, word))
			return true;
	return false;
}

int preset_check_free(const struct preset *p, struct err *e)
{
	return p->free ? 0
		       : err_set(e, ERR_USAGE, EINVAL,
				 "'%s' is no agent: it asks no questions that could be switched "
				 "off",
				 p->name);
}

static size_t put_list(const char **argv, size_t n, const struct json *list)
{
	for (const struct json *v = list ? list->first : NULL; v; v = v->next)
		argv[n++] = v->text;
	return n;
}

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* An agent whose settings switch its questions off may still have a word for it where it gets a prompt (droid exec). */
static size_t put_free(const char **argv, size_t n, const struct preset *p)
{
	if (p->free->n)
		return put_list(argv, n, p->free);
	for (const struct json *v = p->prompt ? p->prompt->first : NULL; v; v = v->next)
		if (preset_is_free_word(v->text))
			argv[n++] = v->text;
	return n;
}

/* An option of the preset's own "free": given again, some agents refuse it (codex). */
static bool is_own_free(const struct preset *p, const char *word)
{
	return word[0] == '-' && holds(p->free, word);
}

const char **preset_command(const struct preset *p, char *const *words)
{
	size_t more = count(words), n = 0,
	       flags = (p->free ? p->free->n : 0) + (p->prompt ? p->prompt->n : 0);
	bool is_added = more == 0 || words[0][0] == '-', is_free = is_added, is_text = false;
	const char **argv = mem_new(p->command->n + (more + 1) * (flags + 1) + 1, sizeof(*argv));

	if (is_added)
		n = put_list(argv, put_list(argv, n, p->command), p->free);
	for (size_t i = 0; i < more; i++) {
		/* The first word of a command that takes the place of ours is a program; behind "--" nothing is an option. */
		is_text = is_text || str_eq(words[i], "--");
		if (p->free == NULL || is_text || (i == 0 && !is_added) ||
		    (!preset_is_free_word(words[i]) && !is_own_free(p, words[i]))) {
			argv[n++] = words[i];
		} else if (!is_free) {
			n = put_free(argv, n, p);
			is_free = true;
		}
	}
	return argv;
}

const char **preset_begin(const struct preset *p, char *const *words, bool has_terminal)
{
	const struct json *list = has_terminal || p->prompt == NULL ? p->begin : p->prompt;
	size_t more = count(words), n = 0;
	size_t own = p->command->n + (p->free ? p->free->n : 0) + (list ? list->n : 0);
	const char **argv = mem_new(own + more + 1, sizeof(*argv));

	if (list == NULL) {
		n = put_list(argv, put_list(argv, n, p->command), p->free);
		argv[n++] = words[0];
	}
	for (const struct json *v = list ? list->first : NULL; v; v = v->next)
		argv[n++] = str_eq(v->text, "{prompt}") ? words[0] : v->text;
	for (size_t i = 1; i < more; i++)
		argv[n++] = words[i];
	return argv;
}

int preset_prompt(const struct preset *p, const char *prompt, const char ***ret, struct err *e)
{
	const char **argv;
	size_t n = 0;

	if (p->prompt == NULL)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "the preset '%s' does not say how to give it a prompt (\"prompt\")",
			       p->name);
	argv = mem_new(p->prompt->n + 1, sizeof(*argv));
	for (const struct json *v = p->prompt->first; v; v = v->next)
		argv[n++] = str_eq(v->text, "{prompt}") ? prompt : v->text;
	*ret = argv;
	return 0;
}

/* ---- seeds ---- */

/* The last characters of a variable's text, by which Claude Code remembers keys it was told to use. */
#define END_LENGTH 20

/* What stands for the mark that `text` begins with, and how long that mark is; NULL: it is none. */
static const char *fill_of(const struct preset_fill *f, const char *text, size_t *ret_n)
{
	static const char place[] = "{workspace}", end[] = "{end:";
	const char *close = strchr(text, '}'), *value = NULL;

	if (str_starts(text, place)) {
		*ret_n = strlen(place);
		return f->workspace;
	}
	if (!str_starts(text, end) || close == NULL)
		return NULL;
	*ret_n = (size_t)(close - text) + 1;
	if (f->variable)
		value = f->variable(f->arg, text + strlen(end), *ret_n - strlen(end) - 1);
	if (value == NULL)
		return "";
	return strlen(value) > END_LENGTH ? value + strlen(value) - END_LENGTH : value;
}

static void put_filled(struct buf *out, const char *text, const struct preset_fill *f)
{
	for (const char *hit; (hit = strchr(text, '{'));) {
		size_t n = 1;
		const char *fill = fill_of(f, hit, &n);

		buf_add(out, text, (size_t)(hit - text));
		buf_puts(out, fill ? fill : "{");
		text = hit + n;
	}
	buf_puts(out, text);
}

static void put_filled_json(struct buf *out, const char *text, const void *fill)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	put_filled(&b, text, fill);
	buf_json(out, buf_cstr(&b));
}

void preset_seed_text(const struct json *seed, const struct preset_fill *fill, struct buf *out)
{
	if (seed->type == JSON_OBJECT) {
		json_print_as(seed,
			      &(struct json_style){
				      .is_compact = true, .put = put_filled_json, .arg = fill },
			      out);
		buf_putc(out, '\n');
		return;
	}
	for (const struct json *v = seed->first; v; v = v->next) {
		put_filled(out, v->text, fill);
		buf_putc(out, '\n');
	}
}
