/* SPDX-License-Identifier: Apache-2.0 */
/* guard/walk_command.c - one command: the rules that are about it, and whatever it would start
 *
 * The tree around it is walk.c's; this begins when the words of a command are known, and comes back there with the text
 * of every script the command brings along.
 */
#include <stdlib.h>

#include "base/path.h"
#include "guard/walk.h"

const char *walk_join(struct walk *w, const struct cmd *c, size_t from)
{
	struct text t = { .mem = w->mem };

	text_add(&t, "", 0);
	for (size_t i = from; i < c->argc; i++) {
		if (i > from)
			text_putc(&t, ' ');
		text_add(&t, c->argv[i]->s, c->argv[i]->n);
	}
	return t.p;
}

/* For people: the beginning will do. */
static const char *shown(struct walk *w, const struct cmd *c)
{
	struct cmd head = *c;

	for (size_t i = 0, n = 0; i < c->argc; i++) {
		n += c->argv[i]->n;
		if (n > 1024 && i > 0) {
			head.argc = i;
			break;
		}
	}
	return walk_join(w, &head, 0);
}

/* Findings. */

static bool is_off(const struct walk *w, const struct rule *r)
{
	/* What switches the guard off is not switched off itself. */
	if (r->effect && r->at && strstr(r->at, "guard"))
		return false;
	return w->off && rules_list_has(w->off, r->id);
}

void walk_hit(struct walk *w, const struct rule *r, enum fit fit, const struct cmd *c)
{
	/* Perhaps a question is no question. */
	if (fit == FIT_MAYBE && r->verdict == VERDICT_ASK)
		return;
	walk_hit_as(w, r, fit == FIT_MAYBE ? VERDICT_ASK : r->verdict, c);
}

void walk_hit_as(struct walk *w, const struct rule *r, enum verdict v, const struct cmd *c)
{
	struct found *f;

	if (v > w->ceiling)
		v = w->ceiling;
	if (is_off(w, r) || (v <= w->verdict && w->n_found == WALK_MAX_FINDINGS))
		return;
	/* The last place is kept for something worse. */
	f = &w->found[w->n_found < WALK_MAX_FINDINGS ? w->n_found++ : WALK_MAX_FINDINGS - 1];
	*f = (struct found){ .rule = r, .verdict = v, .command = c ? shown(w, c) : "" };
	if (v > w->verdict) {
		w->verdict = v;
		w->worst = f;
	}
}

void walk_find(struct walk *w, const char *finding, const struct cmd *c)
{
	for (size_t i = 0; i < w->n_finding_rules; i++)
		if (rules_list_has(w->finding_rules[i]->finding, finding))
			walk_hit(w, w->finding_rules[i], FIT_YES, c);
}

/* Rules. */

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct rule_index *)entry)->name);
}

static void try_indexed(struct walk *w, const struct cmd *c, const struct args *a,
			const struct rules *set, const char *name)
{
	const struct rule_index *x = bsearch(name, set->index, set->n_index, sizeof(*x), by_name);

	for (size_t i = 0; x && i < x->n; i++) {
		const struct rule *r = &set->rules[set->order[x->first + i]];
		enum fit fit = cmd_fits(c, a, &w->places, r);

		if (fit != FIT_NO)
			walk_hit(w, r, fit, c);
	}
}

static void try_rules(struct walk *w, struct cmd *c)
{
	struct args a;

	args_read(w->mem, c, &w->places, &a);
	for (size_t i = 0; i < w->n_sets; i++) {
		const struct rules *set = w->sets[i];

		if (set->index) {
			try_indexed(w, c, &a, set, c->name);
			try_indexed(w, c, &a, set, "*");
			continue;
		}
		for (size_t k = 0; k < set->n_rules; k++) {
			enum fit fit = cmd_fits(c, &a, &w->places, &set->rules[k]);

			if (fit != FIT_NO)
				walk_hit(w, &set->rules[k], fit, c);
		}
	}
	c->args = &a;
	effect_read(w, c, &a);
	c->args = NULL;
	/* The next command's arguments may lie at the same address. */
	w->asked.args = NULL;
}

/* Commands. */

/* Subscripts are evaluated once more where a name or a number is expected: test -v 'a[$(rm x)]' runs rm. */
void walk_subscripts(struct walk *w, const struct cmd *c, size_t from)
{
	static const char names[] = "test|[|let|declare|typeset|local|export|readonly|unset|printf|"
				    "read|mapfile|"
				    "readarray|wait|getopts";

	if (!rules_list_has(names, c->name))
		return;
	for (size_t i = from; i < c->argc; i++) {
		const char *s = strchr(c->argv[i]->s, '[');

		if (s && (strstr(s, "$(") || strchr(s, '`')))
			walk_find(w, "dynamic-code", c);
	}
}

/* An unknown program whose arguments are a command of their own: it may well run it. */
static void try_as_wrapper(struct walk *w, struct cmd *c)
{
	static const char dangerous[] = "rm|git|find|sh|bash|zsh|dd|shred|sudo|xargs|kubectl|"
					"terraform|aws|gcloud";
	static const char harmless[] = "echo|printf|cat|head|tail|less|more|wc|grep|egrep|fgrep|rg|"
				       "ag|man|which|type|whereis|hash|help|info|"
				       "apropos|tldr|ls|stat|file|test|[|sed|awk|gawk|git|gh|apt|"
				       "apt-get|dnf|yum|brew|pip|npm|dpkg|rpm|rm|cp|mv|"
				       "touch|mkdir|diff|cmp|alias|unalias|declare|export|local|"
				       "readonly|typeset|unset|set|for|read|basename|"
				       "dirname|sort|uniq|cut|tr|say|notify-send|logger|true|false|"
				       ":|kill|pkill|pgrep|killall|command|cd|case|"
				       "whatis|complete|compgen|trap|shellcheck|vitrine|systemctl|"
				       "service|docker|podman|make|cargo|go|fzf|sk|"
				       "pacman|snap|flatpak|port|winget|choco|scoop|zypper|apk|"
				       "emerge|asdf|mise|direnv|tee|open|xdg-open|ssh|"
				       "mdfind|locate|plocate|dpkg-query|update-alternatives|"
				       "readlink|realpath|strings|nm|ldd|otool|codesign";

	if (c->argc < 3 || rules_list_has(harmless, c->name))
		return;
	for (size_t i = 1; i < c->argc && i < 3; i++) {
		enum verdict before = w->ceiling;

		if (c->argv[i]->s[0] == '-')
			continue;
		if (!rules_list_has(dangerous, c->argv[i]->s))
			return;
		w->ceiling = VERDICT_ASK;
		walk_inner(w, c, i, c->name);
		w->ceiling = before;
		return;
	}
}

/* alias tidy='rm -rf'; tidy ~ */
static void try_as_alias(struct walk *w, struct cmd *c)
{
	const char *text = vars_get(&w->vars, arena_fmt(w->mem, "alias %s", c->argv[0]->s));
	struct cmd in = *c;

	if (text == NULL || strlen(text) > 1024 || !vars_spend(&w->vars, strlen(text)))
		return;
	in.argv = arena_take(w->mem, (strlen(text) + c->argc + 1) * sizeof(const struct value *));
	in.argc = 0;
	while (*text) {
		size_t n = strcspn(text, " \t\n");

		if (n)
			in.argv[in.argc++] = value_text(w->mem, text, n);
		text += n + (text[n] != '\0');
	}
	/* alias ls='ls -l' */
	if (in.argc == 0 || str_eq(in.argv[0]->s, c->argv[0]->s))
		return;
	for (size_t i = 1; i < c->argc; i++)
		in.argv[in.argc++] = c->argv[i];
	walk_command(w, &in);
}

/* ./x.sh that was written earlier in the same text. */
static void try_as_script(struct walk *w, struct cmd *c)
{
	const char *text = strchr(c->argv[0]->s, '/') ? walk_written(w, c->argv[0]->s) : NULL;

	if (text == NULL)
		return;
	/* $0 is the script itself. */
	if (strstr(text, "$0 &") || strstr(text, "\"$0\" &") || strstr(text, "$0|$0"))
		walk_find(w, "fork-bomb", c);
	walk_text(w, text, strlen(text), c, c->name);
}

/* A name made at run time. Its last part may still be known: $HOME/bin/tool. */
static void dynamic_name(struct walk *w, struct cmd *c)
{
	const char *slash = strrchr(c->argv[0]->s, '/');

	if (slash && slash[1] && !strpbrk(slash, VALUE_MARKS "*?[")) {
		c->name = cmd_name(w->mem, slash + 1);
		return;
	}
	c->name = "";
	walk_find(w, "dynamic-command", c);
	/* It may be nothing at all; then the next word is the command. */
	if (c->argv[0]->s[0] == VALUE_MANY && c->argc > 1) {
		enum verdict before = w->ceiling;

		w->ceiling = w->ceiling > VERDICT_ASK ? VERDICT_ASK : w->ceiling;
		walk_inner(w, c, 1, "");
		w->ceiling = before;
	}
}

static bool enter(struct walk *w, const struct cmd *c)
{
	if (w->depth >= WALK_MAX_DEPTH || ++w->commands > WALK_MAX_COMMANDS || w->mem->is_over) {
		if (w->verdict == VERDICT_ALLOW || w->commands == WALK_MAX_COMMANDS + 1)
			walk_find(w, "unreadable", c);
		return false;
	}
	w->depth++;
	return true;
}

void walk_command(struct walk *w, struct cmd *c)
{
	if (!enter(w, c))
		return;
	c->name = cmd_name(w->mem, c->argv[0]->s);
	if (w->on_command)
		w->on_command(w->to, c->argv[0]->is_dynamic ? "" : c->argv[0]->s);
	if (value_has_mark(c->argv[0]) || c->argv[0]->is_glob)
		dynamic_name(w, c);
	else if (c->argv[0]->n == 0 && c->argv[0]->is_dynamic)
		/* It may as well not be there. */
		walk_inner(w, c, 1, "");
	if (c->name[0]) {
		try_rules(w, c);
		walk_subscripts(w, c, 1);
		if (!wrap_open(w, c)) {
			code_open(w, c);
			try_as_wrapper(w, c);
			try_as_script(w, c);
			try_as_alias(w, c);
		}
	}
	w->depth--;
}

void walk_inner(struct walk *w, const struct cmd *c, size_t skip, const char *via)
{
	struct cmd inner = *c;

	if (skip >= c->argc)
		return;
	inner.argv = c->argv + skip;
	inner.argc = c->argc - skip;
	inner.via =
		via[0] ? arena_fmt(w->mem, "%s%s%s", c->via, c->via[0] ? "|" : "", via) : c->via;
	walk_command(w, &inner);
}

void walk_words_of(struct walk *w, const struct cmd *by, const char *const *words, size_t n,
		   const char *via)
{
	struct cmd c = { .via = arena_fmt(w->mem, "%s%s%s", by->via, by->via[0] ? "|" : "", via),
			 .name = "" };

	c.argv = arena_take(w->mem, (n + 4) * sizeof(const struct value *));
	for (; c.argc < n; c.argc++)
		c.argv[c.argc] = value_text(w->mem, words[c.argc], strlen(words[c.argc]));
	walk_command(w, &c);
}

/* Marks cannot be read again; a variable that nobody sets can. */
static const char *readable(struct walk *w, const char *text, size_t n, size_t *ret_n)
{
	struct text t = { .mem = w->mem };

	if (!strpbrk(text, VALUE_MARKS)) {
		*ret_n = n;
		return text;
	}
	for (size_t i = 0; i < n; i++)
		if (text[i] == VALUE_UNKNOWN || text[i] == VALUE_MANY)
			text_add(&t, "${__vitrine_unknown}", 20);
		else
			text_putc(&t, text[i]);
	*ret_n = t.n;
	return t.p;
}

void walk_text(struct walk *w, const char *text, size_t n, const struct cmd *by, const char *via)
{
	const char *around = w->via;
	struct shell_error error;
	struct node *script;
	size_t k = 0;
	const char *s;

	w->text_bytes += n;
	if (w->text_bytes > WALK_MAX_TEXT) {
		walk_find(w, "unreadable", by);
		return;
	}
	if (!enter(w, by))
		return;
	if (text[0] == VALUE_UNKNOWN || text[0] == VALUE_MANY)
		walk_find(w, "dynamic-code", by);
	s = readable(w, text, n, &k);
	script = shell_parse(w->mem, s, k, &error);
	w->via = by ? by->via : around;
	if (via[0])
		w->via = arena_fmt(w->mem, "%s%s%s", w->via, w->via[0] ? "|" : "", via);
	if (script == NULL)
		walk_find(w, "unreadable", by);
	else
		walk_script(w, script);
	w->via = around;
	w->depth--;
}
