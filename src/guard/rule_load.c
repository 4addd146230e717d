/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rule_load.c - a rule file: JSON in, tables out, every mistake named with its place
 *
 * Used by the build (guard/rules_gen.c) and at run time for the files of users and projects, so that both are held to
 * the same form.
 */
#include "guard/effect.h"
#include "guard/place.h"
#include "guard/rule.h"

#define MAX_ITEMS ((size_t)2048)

static const char *const verdict_names[VERDICT_COUNT_] = { "allow", "ask", "deny" };
static const char *const intent_names[INTENT_COUNT_] = { "hard_stop", "use_alternative",
							 "scope_down", "ask_human" };

const char *verdict_name(enum verdict v)
{
	bug_on(v >= VERDICT_COUNT_);
	return verdict_names[v];
}

const char *intent_name(enum intent i)
{
	bug_on(i >= INTENT_COUNT_);
	return intent_names[i];
}

static const char *const effect_names[EFFECT_COUNT_] = { "removes", "unlinks", "moves", "empties",
							 "writes",  "appends", "modes", "reads",
							 "sends",   "looks",   "uses",  "changes",
							 "starts" };

const char *effect_name(enum effect_kind k)
{
	bug_on(k >= EFFECT_COUNT_);
	return effect_names[k];
}

enum effect_kind effect_find(const char *name, size_t n)
{
	enum effect_kind k = 0;

	while (k < EFFECT_COUNT_ &&
	       (strlen(effect_names[k]) != n || memcmp(effect_names[k], name, n) != 0))
		k++;
	return k;
}

/* In the order of enum place_class. */
static const char place_names[PLACE_COUNT_][16] = {
	"@any",  "@credentials", "@cwd",  "@device", "@dynamic", "@git",    "@guard", "@home",
	"@made", "@outside",     "@root", "@secret", "@startup", "@system", "@tmp",   "@unknown"
};

enum place_class place_class_find(const char *name, size_t n)
{
	enum place_class c = 0;

	if (n < 3)
		return PLACE_COUNT_;
	/* Every word of a command comes here for every rule; the first two letters are enough to tell them apart. */
	while (c < PLACE_COUNT_ && (place_names[c][1] != name[1] || place_names[c][2] != name[2]))
		c++;
	if (c < PLACE_COUNT_ &&
	    (strncmp(place_names[c], name, n) != 0 || place_names[c][n] != '\0'))
		return PLACE_COUNT_;
	return c;
}

struct loader {
	struct arena *mem;
	bool may_allow;
	struct rule *rules, *safe;
	struct syntax *syntaxes;
	struct rule_test *tests;
	const char **lists[PATTERNS_COUNT_];
	struct rules *out;
	struct err *e;
};

#define wrong(l, v, fmt, ...)                                                                      \
	err_set((l)->e, ERR_CONFIG, EINVAL, "%u:%u: " fmt, (v)->line, (v)->col, ##__VA_ARGS__)

static int get_text(struct loader *l, const struct json *v, const char **ret)
{
	if (v->type != JSON_STRING || v->n == 0)
		return wrong(l, v, "\"%s\" must be a text", v->key ? v->key : "an entry");
	*ret = arena_strn(l->mem, v->text, v->n);
	return 0;
}

static int get_options(struct loader *l, const struct json *v, struct rule *r)
{
	size_t n = 0;

	if (v->type == JSON_STRING)
		return get_text(l, v, &r->option[0]);
	if (v->type != JSON_ARRAY || v->n > RULE_OPTIONS)
		return wrong(l, v, "\"option\" is a text or a list of at most %d", RULE_OPTIONS);
	for (const struct json *i = v->first; i; i = i->next) {
		int x = get_text(l, i, &r->option[n++]);

		if (x < 0)
			return x;
	}
	return 0;
}

static int get_word(struct loader *l, const struct json *v, const char *const *names, size_t n,
		    unsigned *ret)
{
	for (size_t i = 0; v->type == JSON_STRING && i < n; i++)
		if (str_eq(v->text, names[i])) {
			*ret = (unsigned)i;
			return 0;
		}
	return wrong(l, v, "\"%s\" is not a value of \"%s\"",
		     v->type == JSON_STRING ? v->text : "this", v->key);
}

static int get_tests(struct loader *l, const struct json *v, const char *rule)
{
	unsigned verdict = 0;

	if (v->type != JSON_OBJECT)
		return wrong(l, v, "\"tests\" is an object of lists");
	for (const struct json *list = v->first; list; list = list->next) {
		struct json key = *list;

		key.type = JSON_STRING;
		key.text = list->key;
		int x = get_word(l, &key, verdict_names, VERDICT_COUNT_, &verdict);

		if (x < 0)
			return x;
		if (list->type != JSON_ARRAY)
			return wrong(l, list, "\"%s\" is a list of commands", list->key);
		for (const struct json *i = list->first; i; i = i->next) {
			struct rule_test *t = &l->tests[l->out->n_tests];

			if (l->out->n_tests == MAX_ITEMS)
				return wrong(l, i, "too many tests");
			x = get_text(l, i, &t->command);
			if (x < 0)
				return x;
			t->rule = rule;
			t->verdict = (enum verdict)verdict;
			l->out->n_tests++;
		}
	}
	return 0;
}

static const struct {
	const char *key;
	size_t offset;
} text_fields[] = {
	{ "no_program", offsetof(struct rule, no_program) },
	{ "program", offsetof(struct rule, program) },
	{ "sub", offsetof(struct rule, sub) },
	{ "no_option", offsetof(struct rule, no_option) },
	{ "arg", offsetof(struct rule, arg) },
	{ "no_arg", offsetof(struct rule, no_arg) },
	{ "no_value", offsetof(struct rule, no_value) },
	{ "env", offsetof(struct rule, env) },
	{ "via", offsetof(struct rule, via) },
	{ "no_via", offsetof(struct rule, no_via) },
	{ "target", offsetof(struct rule, target) },
	{ "source", offsetof(struct rule, source) },
	{ "finding", offsetof(struct rule, finding) },
	{ "effect", offsetof(struct rule, effect) },
	{ "at", offsetof(struct rule, at) },
	{ "no_at", offsetof(struct rule, no_at) },
	{ "say", offsetof(struct rule, say) },
};

static int get_args(struct loader *l, const struct json *v, struct rule *r)
{
	uint64_t n;

	if (!json_u64(v, &n) || n > 100)
		return wrong(l, v, "\"args\" is a small number");
	r->args = (uint8_t)n;
	return 0;
}

static int get_field(struct loader *l, const struct json *v, struct rule *r)
{
	unsigned word = 0;
	int x;

	for (size_t i = 0; i < ARRAY_LEN(text_fields); i++)
		if (str_eq(v->key, text_fields[i].key))
			return get_text(l, v,
					(const char **)(void *)((char *)r + text_fields[i].offset));
	if (str_eq(v->key, "option"))
		return get_options(l, v, r);
	if (str_eq(v->key, "args"))
		return get_args(l, v, r);
	if (str_eq(v->key, "verdict")) {
		x = get_word(l, v, verdict_names, VERDICT_COUNT_, &word);
		r->verdict = (enum verdict)word;
		return x;
	}
	if (str_eq(v->key, "intent")) {
		x = get_word(l, v, intent_names, INTENT_COUNT_, &word);
		r->intent = (enum intent)word;
		return x;
	}
	if (str_eq(v->key, "id") || str_eq(v->key, "tests"))
		return 0;
	return wrong(l, v, "a rule has no \"%s\"", v->key);
}

/* A class that does not exist would never fit, and nobody would notice. */
static int check_classes(struct loader *l, const struct json *v, const char *list)
{
	for (const char *at = list; at && (at = strchr(at, '@')) != NULL; at++) {
		size_t n = strcspn(at, "|");

		if ((at == list || at[-1] == '|') && place_class_find(at, n) == PLACE_COUNT_)
			return wrong(l, v, "there is no class \"%.*s\"", (int)n, at);
	}
	return 0;
}

static int check_lists(struct loader *l, const struct json *v, const struct rule *r)
{
	const char *const lists[] = { r->arg,    r->no_arg, r->no_value, r->target,
				      r->source, r->at,     r->no_at };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (check_classes(l, v, lists[i]) < 0)
			return -EINVAL;
	return 0;
}

/* Each effect once: a rule is put down once for each of its effects (guard.c, collect). */
static int check_effects(struct loader *l, const struct json *v, const char *list)
{
	unsigned seen = 0;

	while (list && *list) {
		size_t n = strcspn(list, "|");
		enum effect_kind k = effect_find(list, n);

		if (k == EFFECT_COUNT_)
			return wrong(l, v, "there is no effect \"%.*s\"", (int)n, list);
		if (seen & 1U << k)
			return wrong(l, v, "effect \"%.*s\" stands there twice", (int)n, list);
		seen |= 1U << k;
		list += n + (list[n] == '|');
	}
	return 0;
}

/* Without something to look for, a rule would fit every command. */
static int check_rule(struct loader *l, const struct json *v, const struct rule *r, bool is_safe)
{
	if (r->program == NULL && r->finding == NULL && r->effect == NULL)
		return wrong(l, v, "a rule needs \"program\", \"finding\" or \"effect\"");
	if (check_effects(l, v, r->effect) < 0)
		return -EINVAL;
	if (r->effect == NULL && (r->at || r->no_at))
		return wrong(l, v, "\"at\" is where an \"effect\" falls");
	if (is_safe || check_lists(l, v, r) < 0)
		return is_safe ? check_lists(l, v, r) : -EINVAL;
	if (r->id == NULL || r->say == NULL)
		return wrong(l, v, "a rule needs \"id\" and \"say\"");
	if (r->verdict == VERDICT_ALLOW)
		return wrong(l, v, "a rule's \"verdict\" is \"ask\" or \"deny\"");
	return 0;
}

static int get_rule(struct loader *l, const struct json *v, struct rule *r, bool is_safe)
{
	const struct json *id = v->type == JSON_OBJECT ? json_get(v, "id") : NULL;
	const struct json *tests = v->type == JSON_OBJECT ? json_get(v, "tests") : NULL;
	int x = 0;

	if (v->type == JSON_STRING && is_safe)
		return get_text(l, v, &r->program);
	if (v->type != JSON_OBJECT)
		return wrong(l, v, "a rule is an object");
	if (id)
		x = get_text(l, id, &r->id);
	for (const struct json *i = v->first; i && x >= 0; i = i->next)
		x = get_field(l, i, r);
	if (x >= 0)
		x = check_rule(l, v, r, is_safe);
	if (x >= 0 && tests)
		x = get_tests(l, tests, r->id);
	return x;
}

static int get_rules(struct loader *l, const struct json *v, struct rule *to, size_t *n,
		     bool is_safe)
{
	if (v->type != JSON_ARRAY || v->n > MAX_ITEMS)
		return wrong(l, v, "\"%s\" is a list", v->key);
	for (const struct json *i = v->first; i; i = i->next) {
		int x = get_rule(l, i, &to[*n], is_safe);

		if (x < 0)
			return x;
		(*n)++;
	}
	return 0;
}

/* Clauses of a program's "does" (effect.c reads them): NULL, or what is wrong. */

/* "VERB WHAT [if COND] [unless COND]": the words of one clause that are not taken yet, after the first two. */
static const char *conditions_wrong(const char *at)
{
	while (*(at += strspn(at, " "))) {
		size_t n = strcspn(at, " ");

		if (!(n == 2 && str_starts(at, "if")) && !(n == 6 && str_starts(at, "unless")))
			return "behind what an effect falls on comes \"if\" or \"unless\"";
		at += n + strspn(at + n, " ");
		if (*at == '\0')
			return "\"if\" and \"unless\" need a condition";
		at += strcspn(at, " ");
	}
	return NULL;
}

static const char *clause_wrong(const char *at)
{
	static const char *const others[] = { "executes", "interprets", "runs" };
	size_t n = strcspn(at += strspn(at, " "), " ");
	bool is_verb = effect_find(at, n) != EFFECT_COUNT_;

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		is_verb = is_verb || (strlen(others[i]) == n && str_starts(at, others[i]));
	if (n == 0)
		return NULL;
	if (!is_verb)
		return "there is no such effect";
	at += n + strspn(at + n, " ");
	n = strcspn(at, " ");
	return n == 0 ? "an effect needs what it falls on" : conditions_wrong(at + n);
}

static const char *clauses_wrong(const char *does)
{
	const char *why = NULL;

	while (*does && why == NULL) {
		size_t n = strcspn(does, ";");
		_free_ char *one = mem_strn(does, n);

		why = clause_wrong(one);
		does += n + (does[n] == ';');
	}
	return why;
}

static int get_syntax(struct loader *l, const struct json *v, struct syntax *s)
{
	int x = 0;

	for (const struct json *i = v->first; i && x >= 0; i = i->next) {
		if (str_eq(i->key, "name"))
			x = get_text(l, i, &s->name);
		else if (str_eq(i->key, "values"))
			x = get_text(l, i, &s->values);
		else if (str_eq(i->key, "does"))
			x = get_text(l, i, &s->does);
		else if (str_eq(i->key, "test"))
			x = get_text(l, i, &s->test);
		else if (str_eq(i->key, "sub") && i->type == JSON_BOOL)
			s->has_sub = i->is_true;
		else if (str_eq(i->key, "single_dash") && i->type == JSON_BOOL)
			s->single_dash = i->is_true;
		else
			x = wrong(l, i, "a program has no \"%s\" like this", i->key);
	}
	if (x >= 0 && s->name == NULL)
		x = wrong(l, v, "a program needs a \"name\"");
	if (x >= 0 && s->does && clauses_wrong(s->does))
		x = wrong(l, v, "\"does\": %s", clauses_wrong(s->does));
	return x;
}

static int get_syntaxes(struct loader *l, const struct json *v)
{
	if (v->type != JSON_ARRAY || v->n > MAX_ITEMS)
		return wrong(l, v, "\"programs\" is a list");
	for (const struct json *i = v->first; i; i = i->next) {
		int x = i->type == JSON_OBJECT ? get_syntax(l, i, &l->syntaxes[l->out->n_syntaxes])
					       : wrong(l, i, "a program is an object");

		if (x < 0)
			return x;
		l->out->n_syntaxes++;
	}
	return 0;
}

static const struct {
	const char *key;
	bool only_users; /* makes the guard weaker */
} list_keys[PATTERNS_COUNT_] = {
	[PATTERNS_SECRET_NAME] = { "secret_names", false },
	[PATTERNS_SECRET] = { "secret_paths", false },
	[PATTERNS_NOT_SECRET] = { "not_secret", true },
	[PATTERNS_STARTUP] = { "startup_paths", false },
	[PATTERNS_MADE] = { "made_names", true },
	[PATTERNS_GUARD] = { "guard_paths", false },
};

static int get_texts(struct loader *l, const struct json *v, const char **to, size_t *n)
{
	if (v->type != JSON_ARRAY || v->n > MAX_ITEMS)
		return wrong(l, v, "\"%s\" is a list of patterns", v->key);
	for (const struct json *i = v->first; i; i = i->next) {
		int x = get_text(l, i, &to[*n]);

		if (x < 0)
			return x;
		(*n)++;
	}
	return 0;
}

static int get_level(struct loader *l, const struct json *v)
{
	static const char *const names[] = { "standard", "strict" };
	unsigned word = 0;
	int r = get_word(l, v, names, ARRAY_LEN(names), &word);

	l->out->is_strict = word == 1;
	return r;
}

static int get_off(struct loader *l, const struct json *v)
{
	struct text t = { .mem = l->mem };

	if (v->type != JSON_ARRAY)
		return wrong(l, v, "\"off\" is a list of rules");
	text_add(&t, "", 0);
	for (const struct json *i = v->first; i; i = i->next) {
		const char *id = NULL;
		int r = get_text(l, i, &id);

		if (r < 0)
			return r;
		text_add(&t, id, strlen(id));
		text_putc(&t, '|');
	}
	l->out->off = t.p;
	return 0;
}

/* {"sends": "deny", "starts": "allow"}: one verdict for every rule about an effect. */
static int get_actions(struct loader *l, const struct json *v, const char **ret)
{
	struct text t = { .mem = l->mem };

	if (v->type != JSON_OBJECT)
		return wrong(l, v, "\"%s\" is an object: an effect and its verdict", v->key);
	text_add(&t, "", 0);
	for (const struct json *i = v->first; i; i = i->next) {
		unsigned word = 0;

		if (effect_find(i->key, strlen(i->key)) == EFFECT_COUNT_)
			return wrong(l, i, "there is no effect \"%s\"", i->key);
		if (get_word(l, i, verdict_names, VERDICT_COUNT_, &word) < 0)
			return -EINVAL;
		text_add(&t, i->key, strlen(i->key));
		text_putc(&t, '=');
		text_putc(&t, (char)('0' + word));
		text_putc(&t, '|');
	}
	*ret = t.p;
	return 0;
}

static int get_section(struct loader *l, const struct json *v)
{
	if (str_eq(v->key, "level"))
		return get_level(l, v);
	if (str_eq(v->key, "title"))
		return get_text(l, v, &l->out->title);
	if (str_eq(v->key, "rules"))
		return get_rules(l, v, l->rules, &l->out->n_rules, false);
	if (str_eq(v->key, "programs"))
		return get_syntaxes(l, v);
	for (size_t i = 0; i < PATTERNS_COUNT_; i++)
		if (str_eq(v->key, list_keys[i].key) && (l->may_allow || !list_keys[i].only_users))
			return get_texts(l, v, l->lists[i], &l->out->lists[i].n);
	if (str_eq(v->key, "effects"))
		return get_actions(l, v, &l->out->actions[0]);
	if (str_eq(v->key, "effects_inside"))
		return get_actions(l, v, &l->out->actions[1]);
	if (!l->may_allow)
		return wrong(l, v, "\"%s\" is not for a project's file, which may only add rules",
			     v->key);
	if (str_eq(v->key, "safe"))
		return get_rules(l, v, l->safe, &l->out->n_safe, true);
	if (str_eq(v->key, "off"))
		return get_off(l, v);
	return wrong(l, v, "a rule file has no \"%s\"", v->key);
}

int rules_load(struct arena *mem, const char *text, size_t n, bool may_allow, struct rules *ret,
	       struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct rules out = { 0 };
	struct loader l = { .mem = mem, .may_allow = may_allow, .out = &out, .e = e };
	int r = json_parse(text, n, &doc, e);

	if (r < 0)
		return r;
	if (doc.root->type != JSON_OBJECT)
		return wrong(&l, doc.root, "a rule file is an object");
	/* No list can have more entries than the text has bytes for. */
	size_t most = n / 2 < MAX_ITEMS ? n / 2 + 1 : MAX_ITEMS + 1;

	l.rules = arena_take(mem, most * sizeof(*l.rules));
	l.safe = arena_take(mem, most * sizeof(*l.safe));
	l.syntaxes = arena_take(mem, most * sizeof(*l.syntaxes));
	l.tests = arena_take(mem, most * sizeof(*l.tests));
	for (size_t i = 0; i < PATTERNS_COUNT_; i++) {
		l.lists[i] = arena_take(mem, most * sizeof(*l.lists[i]));
		out.lists[i].v = l.lists[i];
	}
	for (const struct json *i = doc.root->first; i; i = i->next) {
		r = get_section(&l, i);
		if (r < 0)
			return r;
	}
	out.may_allow = may_allow;
	out.rules = l.rules;
	out.safe = l.safe;
	out.syntaxes = l.syntaxes;
	out.tests = l.tests;
	*ret = out;
	return 0;
}
