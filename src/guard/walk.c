/* SPDX-License-Identifier: Apache-2.0 */
/* guard/walk.c - see walk.h; the tree of a script, in the order in which it would run
 *
 * Keeps what later words mean: variables, the directory, files written on the way. What a single command is worth is
 * decided in walk_command.c.
 */
#include "guard/walk.h"

#include "base/path.h"

/* Every word of every later command is put behind the directory: a longer one is not followed any more. */
#define MAX_CWD ((size_t)KIB)

static void walk_node(struct walk *w, const struct node *n, enum input_kind input,
		      const char *text);

/* Words and what is inside them. */

/* What a subshell does to variables and directory is gone with it. */
struct scope {
	struct vars vars;
	const char *cwd;
	size_t n_exported;
};

static struct scope scope_begin(struct walk *w)
{
	struct scope s = { .vars = w->vars, .cwd = w->places.cwd, .n_exported = w->n_exported };
	struct var **end = &s.vars.first;

	for (const struct var *v = w->vars.first; v; v = v->next) {
		*end = arena_new(w->mem, struct var);
		**end = *v;
		end = &(*end)->next;
	}
	return s;
}

static void scope_end(struct walk *w, const struct scope *s)
{
	w->vars = s->vars;
	w->places.cwd = s->cwd;
	w->n_exported = s->n_exported;
}

static void walk_subshell(struct walk *w, const struct node *n, enum input_kind input,
			  const char *text)
{
	struct scope scope;

	if (n == NULL || w->depth >= WALK_MAX_DEPTH) {
		if (n)
			walk_find(w, "unreadable", NULL);
		return;
	}
	w->depth++;
	scope = scope_begin(w);
	walk_node(w, n, input, text);
	scope_end(w, &scope);
	w->depth--;
}

static void walk_parts(struct walk *w, const struct word *word);

static void walk_word(struct walk *w, const struct word *word)
{
	for (const struct part *p = word->first; p; p = p->next) {
		if (p->arg)
			walk_parts(w, p->arg);
		if (p->script)
			walk_subshell(w, p->script,
				      p->kind == PART_PROC && !p->is_input ? INPUT_UNKNOWN
									   : INPUT_NONE,
				      NULL);
		if (p->kind == PART_VAR && p->op[0] && strchr("=", p->op[strlen(p->op) - 1]))
			vars_lose(&w->vars, p->text);
	}
}

static void walk_parts(struct walk *w, const struct word *word)
{
	for (; word; word = word->next)
		walk_word(w, word);
}

/* What these are given, they send to their service and do not print: a secret that goes straight into their arguments
 * is not shown to anybody. For the rules such a substitution is run via "argument". */
static bool keeps_arguments(struct walk *w, const struct word *name)
{
	const struct value *v = value_whole(&w->vars, name);

	return v && !v->is_dynamic &&
	       rules_list_has("curl|wget|http|helm|kubectl|k|oc|gh|psql|mysql|docker|podman|aws|"
			      "gcloud",
			      cmd_name(w->mem, v->s));
}

static void walk_words(struct walk *w, const struct word *words)
{
	const char *around = w->via;
	bool has_script = false;

	if (words == NULL)
		return;
	walk_word(w, words);
	for (const struct word *i = words->next; i && !has_script; i = i->next)
		for (const struct part *p = i->first; p; p = p->next)
			has_script |= p->script || p->arg;
	if (has_script && keeps_arguments(w, words))
		w->via = arena_fmt(w->mem, "%s%sargument", around, around[0] ? "|" : "");
	walk_parts(w, words->next);
	w->via = around;
}

static const struct value **expand(struct walk *w, const struct word *words, size_t *ret_n)
{
	struct value *first = NULL, **end = &first;
	const struct value **v;
	size_t n = 0;

	for (; words; words = words->next) {
		*end = value_of(&w->vars, words);
		for (; *end; end = &(*end)->next)
			n++;
	}
	v = arena_take(w->mem, (n + 4) * sizeof(const struct value *));
	*ret_n = n;
	n = 0;
	for (const struct value *i = first; i; i = i->next)
		v[n++] = i;
	return v;
}

/* Assignments. */

static void assign(struct walk *w, const struct assign *a)
{
	const struct value *v = a->value ? value_whole(&w->vars, a->value) : NULL;

	/* d=$(mktemp -d): it lies where temporary files lie, whatever its name is. */
	if (v && str_starts(v->s, "/tmp/mktemp.") && !a->is_append && !a->index && !w->branches)
		vars_set(&w->vars, a->name, "/tmp/mktemp.unknown");
	else if (v == NULL || a->is_append || a->index || w->branches || v->is_dynamic)
		vars_lose(&w->vars, a->name);
	else
		vars_set(&w->vars, a->name, v->s);
}

static void walk_assigns(struct walk *w, const struct node *n)
{
	for (const struct assign *a = n->assigns; a; a = a->next) {
		if (a->value)
			walk_parts(w, a->value);
		walk_parts(w, a->values);
		if (a->index)
			walk_parts(w, a->index);
	}
}

/* The variables that stand before the command's name, and those exported earlier. */
static void set_env(struct walk *w, const struct node *n, struct cmd *c)
{
	bool counts_none = false;

	for (size_t i = 0; i < w->n_exported; i++)
		c->env[c->n_env++] = w->exported[i];
	for (const struct assign *a = n->assigns; a && c->n_env < ARRAY_LEN(c->env); a = a->next) {
		const struct value *v = a->value ? value_whole(&w->vars, a->value) : NULL;

		/* Emptied, these switch off what they would switch on. */
		if (v && v->n == 0 && rules_list_has("BASH_ENV|ENV|GIT_CONFIG_COUNT", a->name))
			continue;
		if (str_eq(a->name, "GIT_CONFIG_COUNT"))
			counts_none = v && str_eq(v->s, "0");
		if (counts_none && (str_eq(a->name, "GIT_CONFIG_COUNT") ||
				    str_starts(a->name, "GIT_CONFIG_KEY_") ||
				    str_starts(a->name, "GIT_CONFIG_VALUE_")))
			continue;
		c->env[c->n_env++] = a->name;
	}
}

/* Variables whose value is a command that the program runs: PAGER='rm -rf x' git -p log. */
static void run_env(struct walk *w, const struct node *n, const struct cmd *c)
{
	static const char names[] =
		"PAGER|MANPAGER|GIT_PAGER|EDITOR|VISUAL|GIT_EDITOR|GIT_SEQUENCE_EDITOR|BROWSER|"
		"LESSOPEN|LESSCLOSE|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|RSYNC_RSH|"
		"FZF_DEFAULT_COMMAND|FCEDIT|SHELL|MAKEFLAGS_EVAL|PROMPT_COMMAND";

	for (const struct assign *a = n->assigns; a; a = a->next) {
		const struct value *v = a->value && rules_list_has(names, a->name)
						? value_whole(&w->vars, a->value)
						: NULL;

		if (v && v->n)
			walk_text(w, v->s, v->n, c->argc ? c : NULL, a->name);
	}
}

/* Redirections. */

static void add_file(struct cmd *c, const struct value *path, bool is_read, bool is_written,
		     bool is_appended)
{
	if (c->n_files < ARRAY_LEN(c->files))
		c->files[c->n_files++] =
			(struct file_use){ path, is_read, is_written, is_appended };
}

static void set_input(struct cmd *c, const struct value *v)
{
	c->input = v->is_dynamic && value_has_mark(v) && value_begins_open(v) ? INPUT_UNKNOWN
									      : INPUT_TEXT;
	c->input_text = v->s;
}

static void set_redir(struct walk *w, const struct redir *r, struct cmd *c)
{
	const struct value *v = value_whole(&w->vars, r->target);

	switch (r->op) {
	case REDIR_IN:
		add_file(c, v, true, false, false);
		if (r->fd <= 0)
			c->input = INPUT_UNKNOWN;
		break;
	case REDIR_OUT:
	case REDIR_APPEND:
	case REDIR_BOTH:
		add_file(c, v, false, true, r->op == REDIR_APPEND);
		break;
	case REDIR_RDWR:
		add_file(c, v, true, true, true);
		break;
	case REDIR_DUP_IN:
	case REDIR_DUP_OUT:
		/* A number or "-" is a descriptor, anything else a file. */
		if (v->s[strspn(v->s, "0123456789-")] != '\0')
			add_file(c, v, r->op == REDIR_DUP_IN, r->op == REDIR_DUP_OUT, false);
		break;
	case REDIR_HEREDOC:
		if (r->body && r->fd <= 0)
			set_input(c, value_whole(&w->vars, r->body));
		break;
	case REDIR_STRING:
		set_input(c, v);
		break;
	case REDIR_OP_COUNT_:
		bug_on(true);
	}
}

static void walk_redirs(struct walk *w, const struct redir *first)
{
	for (const struct redir *r = first; r; r = r->next) {
		if (r->op != REDIR_HEREDOC)
			walk_parts(w, r->target);
		if (r->body)
			walk_parts(w, r->body);
	}
}

static const char *absolute(struct walk *w, const char *path)
{
	_free_ char *joined = NULL;

	if (path[0] != '/' && w->places.cwd == NULL)
		return path;
	joined = path_join(w->places.cwd ? w->places.cwd : "/", path);
	return arena_strn(w->mem, joined, strlen(joined));
}

/* cat > x.sh <<EOF and its like: remember what is in x.sh. */
static void remember_written(struct walk *w, const struct cmd *c, const char *printed)
{
	for (size_t i = 0; i < c->n_files; i++) {
		struct written *f;

		if (!c->files[i].is_written)
			continue;
		f = arena_new(w->mem, struct written);
		f->path = absolute(w, c->files[i].path->s);
		f->text = printed ? printed : "\x01";
		f->next = w->written;
		w->written = f;
	}
}

const char *walk_written(const struct walk *w, const char *path)
{
	struct walk *any = (struct walk *)(uintptr_t)w;
	const char *want = absolute(any, path);

	for (const struct written *f = w->written; f; f = f->next)
		if (str_eq(f->path, want))
			return f->text;
	return NULL;
}

/* What a command prints, where that is plain: echo and printf with literals, cat of a heredoc. */
static const char *printed_by(struct walk *w, const struct cmd *c)
{
	size_t from = 1;
	const char *s;

	if (str_eq(c->name, "cat") && c->argc == 1 && c->input == INPUT_TEXT)
		return c->input_text;
	if (!str_eq(c->name, "echo") && !str_eq(c->name, "printf"))
		return NULL;
	/* With a format that is only there for the newline, what it formats is what counts. */
	if (c->argc > 2 && (strchr(c->argv[1]->s, '%') || c->argv[1]->s[0] == '-'))
		from = 2;
	s = walk_join(w, c, from);
	if (strstr(s, "\\n")) {
		char *copy = arena_strn(w->mem, s, strlen(s));

		for (char *at = copy; (at = strstr(at, "\\t")) != NULL; at += 2) {
			at[0] = '\t';
			at[1] = ' ';
		}

		for (char *at = copy; (at = strstr(at, "\\n")) != NULL; at += 2) {
			at[0] = ' ';
			at[1] = '\n';
		}
		s = copy;
	}
	return s;
}

/* Simple commands. */

static const char *follow(struct walk *w, const struct cmd *c);

static const char *walk_simple(struct walk *w, const struct node *n, enum input_kind input,
			       const char *text)
{
	struct cmd c = { .via = w->via, .name = "", .input = input, .input_text = text };
	const char *printed;

	walk_words(w, n->words);
	walk_assigns(w, n);
	walk_redirs(w, n->redirs);
	c.argv = expand(w, n->words, &c.argc);
	for (const struct redir *r = n->redirs; r; r = r->next)
		set_redir(w, r, &c);
	if (c.argc == 0) {
		static const struct value nothing = { .s = ":", .n = 1 };
		static const struct value *const words[] = { &nothing };

		for (const struct assign *a = n->assigns; a; a = a->next)
			assign(w, a);
		if (c.n_files == 0)
			return NULL;
		c.argv = (const struct value **)(uintptr_t)words;
		c.argc = 1;
	}
	set_env(w, n, &c);
	run_env(w, n, &c);
	walk_command(w, &c);
	for (const struct assign *a = n->words ? n->assigns : NULL; a; a = a->next)
		if (a->values)
			vars_lose(&w->vars, a->name);
	printed = printed_by(w, &c);
	if (c.n_files)
		remember_written(w, &c, printed);
	(void)follow(w, &c);
	return printed;
}

/* Builtins that change what later words mean. */

static void change_directory(struct walk *w, const struct cmd *c)
{
	const struct value *to = NULL;

	for (size_t i = 1; i < c->argc; i++)
		if (c->argv[i]->s[0] != '-' || c->argv[i]->n == 1)
			to = c->argv[i];
	if (to == NULL)
		w->places.cwd = w->vars.home;
	else if (to->is_dynamic || to->is_glob || str_eq(to->s, "-") ||
		 (to->s[0] != '/' && w->places.cwd == NULL))
		w->places.cwd = NULL;
	else
		w->places.cwd = absolute(w, to->s);
	if (w->places.cwd && strnlen(w->places.cwd, MAX_CWD) == MAX_CWD)
		w->places.cwd = NULL;
	w->vars.cwd = w->places.cwd;
}

static void declare(struct walk *w, const struct cmd *c, bool is_exported)
{
	for (size_t i = 1; i < c->argc; i++) {
		const char *s = c->argv[i]->s, *eq = strchr(s, '=');
		const char *name = arena_strn(w->mem, s, eq ? (size_t)(eq - s) : strlen(s));

		if (s[0] == '-')
			continue;
		if (eq && !w->branches && !c->argv[i]->is_dynamic)
			vars_set(&w->vars, name,
				 eq[1] == '~' && (eq[2] == '/' || eq[2] == '\0')
					 ? arena_fmt(w->mem, "%s%s", w->places.home, eq + 2)
					 : eq + 1);
		else if (eq || !is_exported)
			vars_lose(&w->vars, name);
		if (is_exported && w->n_exported < ARRAY_LEN(w->exported))
			w->exported[w->n_exported++] = name;
	}
}

static const char *follow(struct walk *w, const struct cmd *c)
{
	if (rules_list_has("cd|pushd|chdir", c->name))
		change_directory(w, c);
	else if (str_eq(c->name, "popd"))
		w->places.cwd = w->vars.cwd = NULL;
	else if (rules_list_has("export|declare|typeset|local|readonly", c->name))
		declare(w, c, str_eq(c->name, "export") || str_eq(c->name, "declare"));
	else if (rules_list_has("read|mapfile|readarray|unset|getopts|let", c->name))
		for (size_t i = 1; i < c->argc; i++)
			vars_lose(&w->vars, c->argv[i]->s);
	else if (str_eq(c->name, "printf") && c->argc > 2 && str_eq(c->argv[1]->s, "-v"))
		vars_lose(&w->vars, c->argv[2]->s);
	return NULL;
}

/* Commands in the tree below whose name is this, as far as it is written plainly. */
static bool is_call(const struct node *n, const char *names)
{
	const struct part *p = n->words ? n->words->first : NULL;

	return n->kind == NODE_SIMPLE && p && p->kind == PART_TEXT && p->next == NULL &&
	       rules_list_has(names, p->text);
}

static unsigned calls_of(const struct node *n, const char *names)
{
	unsigned count = 0;

	for (const struct node *i = n->first; i && count < 2; i = i->next)
		count += (is_call(i, names) + calls_of(i, names)) * (1 + i->is_background);
	return count;
}

/* Words of a command in a pipe: files that the last one must not write to. */
static void remember_piped(struct walk *w, const struct node *n)
{
	const struct word *word = n->kind == NODE_SIMPLE ? n->words : NULL;

	if (is_call(n, "echo|printf"))
		return;
	for (; word && w->n_piped < WALK_MAX_PIPED; word = word->next)
		if (word->first && word->first->kind == PART_TEXT && word->first->next == NULL)
			w->piped[w->n_piped++] = word->first->text;
}

static void walk_pipe(struct walk *w, const struct node *n)
{
	size_t n_piped = w->n_piped;
	static const char stops[] = "head|dd|less|more|sed";
	/* These read until there is no more. */
	static const char endless[] = "tee|cat|gzip|bzip2|xz|sort|wc|md5sum|sha256sum|tail|tr|tac|"
				      "base64|openssl|pv";
	enum input_kind input = INPUT_NONE;
	const char *text = NULL;
	const struct node *last = NULL; /* that stops reading */
	bool is_open;

	for (const struct node *i = n->first; i; i = i->next)
		if (is_call(i, stops))
			last = i;
	is_open = last != NULL;
	for (const struct node *i = n->first; i; i = i->next) {
		struct scope scope = scope_begin(w);
		const char *printed = NULL;
		bool was_bounded = w->is_bounded, was_piped = w->is_piped;

		is_open &= i != last;
		w->is_bounded |= is_open;
		w->is_piped = i->next != NULL && !(is_call(i, "yes") && is_call(i->next, endless));
		if (i->kind == NODE_SIMPLE)
			printed = walk_simple(w, i, input, text);
		else
			walk_node(w, i, input, text);
		scope_end(w, &scope);
		w->is_bounded = was_bounded;
		w->is_piped = was_piped;
		remember_piped(w, i);
		input = printed && !strpbrk(printed, VALUE_MARKS) ? INPUT_TEXT : INPUT_UNKNOWN;
		text = printed;
	}
	w->n_piped = n_piped;
}

static void walk_children(struct walk *w, const struct node *n, enum input_kind input,
			  const char *text)
{
	for (const struct node *i = n->first; i; i = i->next)
		if (i->is_background)
			walk_subshell(w, i, input, text);
		else
			walk_node(w, i, input, text);
}

/* Where it is not known whether or how often: what is assigned inside is unknown from then on. */
static void walk_maybe(struct walk *w, const struct node *n, enum input_kind input,
		       const char *text)
{
	const char *cwd = w->places.cwd;

	w->branches++;
	walk_children(w, n, input, text);
	w->branches--;
	if (w->places.cwd != cwd)
		w->places.cwd = w->vars.cwd = NULL;
}

static bool has_background(const struct node *n)
{
	for (const struct node *i = n->first; i; i = i->next)
		if (i->is_background || has_background(i))
			return true;
	return false;
}

#define MANY_JOBS 300
#define MANY_FILES 100000

/* for ((;;)): nothing between the two. */
static bool is_forever(const struct word *words)
{
	const struct part *p = words->first;

	return p == NULL || (p->kind == PART_TEXT && strstr(p->text, ";;"));
}

/* The largest number that stands in the words of "for": 1 to 100000, $(seq 5), i<99. */
static uint64_t number_in(const struct word *words, unsigned depth);

static uint64_t number_in_node(const struct node *n, unsigned depth)
{
	uint64_t most = number_in(n->words, depth);

	for (const struct node *i = n->first; i && depth < 6; i = i->next) {
		uint64_t k = number_in_node(i, depth + 1);

		most = k > most ? k : most;
	}
	return most;
}

static uint64_t number_in_text(const char *s)
{
	uint64_t most = 0, n = 0;

	for (;; s++) {
		if (*s >= '0' && *s <= '9' && n < UINT64_MAX / 20) {
			n = n * 10 + (uint64_t)(*s - '0');
			continue;
		}
		most = n > most ? n : most;
		n = 0;
		if (*s == '\0')
			return most;
	}
}

static uint64_t number_in(const struct word *words, unsigned depth)
{
	uint64_t most = 0;

	for (; words; words = words->next)
		for (const struct part *p = words->first; p; p = p->next) {
			uint64_t n = p->text ? number_in_text(p->text) : 0;

			if (p->script && depth < 6)
				n = number_in_node(p->script, depth + 1);
			most = n > most ? n : most;
		}
	return most;
}

/* Does it call one of these in the foreground? */
static bool waits_in_front(const struct node *n, const char *names)
{
	for (const struct node *i = n->first; i; i = i->next)
		if (!i->is_background && (is_call(i, names) || waits_in_front(i, names)))
			return true;
	return false;
}

/* for i in {1..100000}; do x & done: so many at once stop a machine as well. */
static void look_at_count(struct walk *w, const struct node *n)
{
	static const char makes[] = "touch|mkdir|cp|dd|docker|podman|curl|wget|mktemp|fallocate|"
				    "ssh|"
				    "kubectl|aws|gcloud|nc";
	uint64_t count = n->name && !n->has_list ? 0 : number_in(n->words, 0);

	if (count >= MANY_JOBS && has_background(n) && !waits_in_front(n, "wait|sleep"))
		walk_find(w, "fork-bomb", NULL);
	else if ((count >= MANY_FILES && calls_of(n, makes)) ||
		 (count >= MANY_JOBS && calls_of(n, "docker|podman|kubectl|aws|gcloud")))
		walk_find(w, "endless", NULL);
}

/* while true without anything that waits or ends: each turn starts another process, or it hammers a service. */
static void look_at_loop(struct walk *w, const struct node *n)
{
	static const char ever[] = "true|:|/bin/true|false|/bin/false|1";
	static const char ends[] = "sleep|wait|break|exit|return|read|inotifywait|usleep|exec|"
				   "select";
	struct node cond = { .first = n->first };
	bool is_for = n->words && n->name == NULL;

	if (n->first == NULL)
		return;
	if (n->name || (is_for && !is_forever(n->words))) {
		look_at_count(w, n);
		return;
	}
	cond.first = n->first->first;
	if (!is_for && !calls_of(&cond, ever))
		return;
	/* A job that sleeps in the background does not hold the loop up. */
	if (has_background(n) && !waits_in_front(n, "wait|sleep|read"))
		walk_find(w, "fork-bomb", NULL);
	else if (!calls_of(n, ends))
		walk_find(w, "endless", NULL);
}

/* What a pattern outside finds: a name that nobody knows, in a place that everybody knows. */
static const char *one_of(struct walk *w, const struct value *v)
{
	size_t n = strcspn(v->s, "*?[");

	if (!v->is_glob)
		return v->s;
	while (n && v->s[n - 1] != '/')
		n--;
	return arena_fmt(w->mem, "%.*sunknown", (int)n, v->s);
}

static void walk_loop(struct walk *w, const struct node *n, enum input_kind input, const char *text)
{
	const struct value **v;
	size_t count = 0, known = 0;

	walk_parts(w, n->words);
	look_at_loop(w, n);
	if (n->name == NULL || !n->has_list) {
		const char *around = w->via;

		if (n->name)
			vars_lose(&w->vars, n->name);
		/* while read f; do rm "$f"; done: what is read decides, as with xargs. */
		if (n->first && calls_of(n->first, "read") && !text)
			w->via = arena_fmt(w->mem, "%s%sread", around, around[0] ? "|" : "");
		walk_maybe(w, n, input, text);
		w->via = around;
		return;
	}
	v = expand(w, n->words, &count);
	for (size_t i = 0; i < count; i++) {
		known += !v[i]->is_dynamic && (!v[i]->is_glob || v[i]->s[0] == '/');
		/* for p in /proc/[0-9]*; do kill ... */
		if (str_starts(v[i]->s, "/proc/") && calls_of(n, "kill"))
			effect_text(w, EFFECT_CHANGES, "processes",
				    &(struct cmd){ .via = "", .name = "kill" });
	}
	if (known == count && count && count <= 6 && w->branches < 2) {
		for (size_t i = 0; i < count; i++) {
			vars_set(&w->vars, n->name, one_of(w, v[i]));
			walk_maybe(w, n, input, text);
		}
	} else {
		vars_lose(&w->vars, n->name);
		walk_maybe(w, n, input, text);
	}
	vars_lose(&w->vars, n->name);
}

static void walk_function(struct walk *w, const struct node *n)
{
	const char *cwd = w->places.cwd;
	const char *const *params = w->vars.params;

	if (n->name && calls_of(n, n->name) > 1)
		walk_find(w, "fork-bomb", NULL);
	/* A function that takes the guard's place. */
	if (n->name && str_eq(n->name, "vitrine"))
		effect_text(w, EFFECT_CHANGES, "guard",
			    &(struct cmd){ .via = "", .name = "function" });
	w->vars.params = NULL;
	walk_maybe(w, n, INPUT_NONE, NULL);
	w->vars.params = params;
	w->places.cwd = w->vars.cwd = cwd;
}

/* [[ 'a[$(x)]' -eq 1 ]] and its like. */
static void walk_test(struct walk *w, const struct node *n)
{
	struct cmd c = { .via = w->via, .name = "test" };

	c.argv = expand(w, n->words, &c.argc);
	if (c.argc)
		walk_subscripts(w, &c, 0);
}

/* Redirections of a compound are those of everything in it. */
static void compound_redirs(struct walk *w, const struct node *n, enum input_kind *input,
			    const char **text)
{
	static const struct value group = { .s = ":", .n = 1 };
	static const struct value *const words[] = { &group };
	struct cmd c = { .via = "",
			 .name = ":",
			 .argv = (const struct value **)(uintptr_t)words,
			 .argc = 1,
			 .input = *input,
			 .input_text = *text };

	walk_redirs(w, n->redirs);
	for (const struct redir *r = n->redirs; r; r = r->next)
		set_redir(w, r, &c);
	*input = c.input;
	*text = c.input_text;
	if (c.n_files)
		walk_command(w, &c);
}

static void walk_node(struct walk *w, const struct node *n, enum input_kind input, const char *text)
{
	if (n->kind != NODE_SIMPLE && n->redirs)
		compound_redirs(w, n, &input, &text);
	switch (n->kind) {
	case NODE_SIMPLE:
		(void)walk_simple(w, n, input, text);
		break;
	case NODE_LIST:
	case NODE_AND_OR:
	case NODE_GROUP:
		walk_children(w, n, input, text);
		break;
	case NODE_PIPE:
		walk_pipe(w, n);
		break;
	case NODE_SUBSHELL:
		for (const struct node *i = n->first; i; i = i->next)
			walk_subshell(w, i, input, text);
		break;
	case NODE_BRANCH:
		walk_parts(w, n->words);
		walk_maybe(w, n, input, text);
		break;
	case NODE_LOOP:
		walk_loop(w, n, input, text);
		break;
	case NODE_FUNCTION:
		walk_function(w, n);
		break;
	case NODE_TEST:
		walk_parts(w, n->words);
		walk_test(w, n);
		break;
	case NODE_KIND_COUNT_:
		bug_on(true);
	}
}

void walk_script(struct walk *w, const struct node *script)
{
	walk_node(w, script, INPUT_NONE, NULL);
}
