/* SPDX-License-Identifier: Apache-2.0 */
/* cli/completion.c - shell completions made from the verb and option tables
 *
 * What an option's value or a verb's argument may be is read from the words the tables show to people anyway:
 * FILE, PATH, DIR and HOST... are file names, VERB is one of our verbs, CMD is a command, and lower-case words
 * of a usage line are offered as they stand. Names that are known here (sandboxes, agents, hosts, ...) are asked for
 * while completing, by `vitrine completion --words KIND...` (known.c), which reads and starts nothing.
 */
#include "cli/cli.h"

enum { OPT_WORDS = 1 };

const struct opt completion_opts[] = {
	{ "words", 0, NULL,
	  "print what is known of these kinds: sandboxes, agents, engines, modes, presets, groups, "
	  "hosts, templates, secrets",
	  OPT_WORDS },
	{ NULL },
};

enum value_kind { VALUE_ANY, VALUE_FILE, VALUE_DIR, VALUE_KNOWN, VALUE_KIND_COUNT_ };

/* The kinds of words that an option takes, whatever the verb; NULL: none are known. */
static const char *known_kinds(const struct opt *o)
{
	static const struct {
		const char *name, *kinds;
	} table[] = {
		{ "engine", "engines" },     { "mode", "modes" },
		{ "net", "presets" },        { "allow", "groups hosts" },
		{ "deny", "groups hosts" },  { "inspect", "hosts" },
		{ "allow-host", "hosts" },   { "block-host", "hosts" },
		{ "template", "templates" }, { "secret", "secrets" },
		{ "name", "sandboxes" },
	};

	for (size_t i = 0; o->arg && i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].name, o->name))
			return table[i].kinds;
	return NULL;
}

static enum value_kind value_kind(const struct opt *o)
{
	if (known_kinds(o))
		return VALUE_KNOWN;
	if (strstr(o->arg, "DIR"))
		return VALUE_DIR;
	if (strstr(o->arg, "FILE") || strstr(o->arg, "PATH") || str_starts(o->arg, "HOST"))
		return VALUE_FILE;
	return VALUE_ANY;
}

/* The kinds of words that a verb's usage names: "sandboxes agents"; "" none. */
static char *usage_kinds(const struct verb *v)
{
	static const struct {
		const char *word, *kind;
	} table[] = { { "NAME", "sandboxes" },
		      { "AGENT", "agents" },
		      { "GROUP", "groups" },
		      { "HOST", "hosts" } };
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (strstr(v->usage, table[i].word))
			buf_printf(&b, "%s%s", b.n ? " " : "", table[i].kind);
	return buf_take(&b);
}

static bool is_lower_word(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] < 'a' || s[i] > 'z')
			return false;
	return n > 0;
}

/* The lower-case words a usage line names beside the verb itself ("check show", "bash zsh fish"), each once. */
static char *usage_words(const struct verb *v)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	const char *s = v->usage;

	while (*s) {
		size_t n = strcspn(s, " |\n[]");
		_free_ char *word = mem_strn(s, n), *spaced = mem_fmt(" %s ", word);
		_free_ char *have = mem_fmt(" %s ", buf_cstr(&b));

		if (is_lower_word(s, n) && !str_eq(word, v->name) && !str_eq(word, "options") &&
		    strstr(have, spaced) == NULL)
			buf_printf(&b, "%s%s", b.n ? " " : "", word);
		s += n + (s[n] != '\0');
	}
	return buf_take(&b);
}

static char *verb_names(void)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	for (const struct verb *v = verbs; v->name; v++)
		buf_printf(&b, "%s%s", b.n ? " " : "", v->name);
	return buf_take(&b);
}

/* Inside single quotes of any of the three shells. */
static void quoted(struct buf *out, const char *s)
{
	for (; *s; s++)
		if (*s == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *s);
}

/* --- bash --- */

static void bash_values(struct buf *out, const struct verb *v, enum value_kind kind,
			const char *action)
{
	_cleanup_(buf_done) struct buf names = BUF(16 * KIB);

	for (const struct opt *o = v->opts; o && o->name; o++) {
		if (o->arg == NULL || value_kind(o) != kind)
			continue;
		buf_printf(&names, "%s--%s", names.n ? "|" : "", o->name);
		if (o->letter)
			buf_printf(&names, "|-%c", o->letter);
	}
	if (names.n)
		buf_printf(out, "\t\t%s) %s return ;;\n", buf_cstr(&names), action);
}

static void bash_verb(struct buf *out, const struct verb *v)
{
	_free_ char *words = usage_words(v), *all = verb_names(), *kinds = usage_kinds(v);

	buf_printf(out, "\t%s)\n\t\tcase $prev in\n", v->name);
	for (const struct opt *o = v->opts; o && o->name; o++)
		if (known_kinds(o))
			buf_printf(out, "\t\t--%s) _vitrine_known %s; return ;;\n", o->name,
				   known_kinds(o));
	bash_values(out, v, VALUE_FILE, "_vitrine_files -f;");
	bash_values(out, v, VALUE_DIR, "_vitrine_files -d;");
	bash_values(out, v, VALUE_ANY, "COMPREPLY=();");
	buf_puts(out, "\t\tesac\n\t\toptions='--help");
	for (const struct opt *o = v->opts; o && o->name; o++)
		buf_printf(out, " --%s", o->name);
	buf_puts(out, "'\n\t\twords='");
	quoted(out, strstr(v->usage, "VERB") ? all : words);
	buf_printf(out, "'\n\t\tkinds='%s'\n\t\tcommand=%s\n\t\t;;\n", kinds,
		   strstr(v->usage, "CMD") ? "yes" : "");
}

static void completion_bash(struct buf *out)
{
	_free_ char *names = verb_names();

	buf_puts(out, "# bash completion for vitrine; made by `vitrine completion bash`\n"
		      "_vitrine_files() {\n"
		      "\tcompopt -o filenames 2>/dev/null\n"
		      "\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
		      "}\n\n"
		      "_vitrine_known() {\n"
		      "\tmapfile -t COMPREPLY < <(compgen -W \"$(\"${COMP_WORDS[0]}\" completion "
		      "--words \"$@\" 2>/dev/null)\" -- \"$cur\")\n"
		      "}\n\n"
		      "_vitrine() {\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		      "\tlocal verb=${COMP_WORDS[1]} options='' words='' kinds='' command='' i\n"
		      "\tCOMPREPLY=()\n"
		      "\tif ((COMP_CWORD == 1)); then\n");
	buf_printf(out, "\t\tmapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")\n", names);
	buf_puts(out, "\t\treturn\n\tfi\n"
		      "\t# After -- it is somebody else's command line.\n"
		      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		      "\t\t[[ ${COMP_WORDS[i]} == -- ]] || continue\n"
		      "\t\tif ((i + 1 == COMP_CWORD)); then\n"
		      "\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
		      "\t\telse\n\t\t\t_vitrine_files -f\n\t\tfi\n\t\treturn\n\tdone\n"
		      "\tcase $verb in\n");
	for (const struct verb *v = verbs; v->name; v++)
		bash_verb(out, v);
	buf_puts(out, "\tesac\n"
		      "\tif [[ $cur == -* ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
		      "\telse\n"
		      "\t\t[[ ! $kinds ]] || words+=\" $(\"${COMP_WORDS[0]}\" completion --words "
		      "$kinds "
		      "2>/dev/null)\"\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		      "\tfi\n"
		      "\tif [[ ${#COMPREPLY[@]} == 0 && $cur != -* ]]; then\n"
		      "\t\tif [[ $command ]]; then\n"
		      "\t\t\tmapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\")\n"
		      "\t\telse\n\t\t\t_vitrine_files -f\n\t\tfi\n\tfi\n}\n"
		      "complete -F _vitrine vitrine\n");
}

/* --- zsh --- */

/* In an _arguments specification a colon or bracket of the text would end it. */
static void zsh_text(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '[' || *s == ']' || *s == ':' || *s == '\\')
			buf_putc(out, '\\');
		if (*s == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *s);
	}
}

static const char *zsh_action(enum value_kind kind)
{
	static const char *const actions[VALUE_KIND_COUNT_] = {
		[VALUE_ANY] = " ",
		[VALUE_FILE] = "_files",
		[VALUE_DIR] = "_files -/",
		[VALUE_KNOWN] = " ",
	};

	return actions[kind];
}

static void zsh_option(struct buf *out, const struct opt *o, bool is_letter)
{
	if (is_letter)
		buf_printf(out, "\t\t\t'*-%c%s[", o->letter, o->arg ? "+" : "");
	else
		buf_printf(out, "\t\t\t'*--%s%s[", o->name, o->arg ? "=" : "");
	zsh_text(out, o->help);
	buf_putc(out, ']');
	if (o->arg) {
		buf_putc(out, ':');
		zsh_text(out, o->arg);
		if (known_kinds(o))
			buf_printf(out, ":{_vitrine_known %s}", known_kinds(o));
		else
			buf_printf(out, ":%s", zsh_action(value_kind(o)));
	}
	buf_puts(out, "' \\\n");
}

static void zsh_verb(struct buf *out, const struct verb *v)
{
	_free_ char *words = usage_words(v), *all = verb_names(), *kinds = usage_kinds(v);

	buf_printf(out, "\t\t%s)\n\t\t\t_arguments -S '--help[show help]' \\\n", v->name);
	for (const struct opt *o = v->opts; o && o->name; o++) {
		zsh_option(out, o, false);
		if (o->letter)
			zsh_option(out, o, true);
	}
	if (strstr(v->usage, "VERB"))
		buf_printf(out, "\t\t\t'1:verb:(%s)'", all);
	else if (*kinds)
		buf_printf(out,
			   "\t\t\t'1:what:{_vitrine_known %s; compadd -- %s; _files}' "
			   "'*:what:{_vitrine_known %s; _files}'",
			   kinds, *words ? words : "''", kinds);
	else if (strstr(v->usage, "CMD"))
		buf_puts(out, "\t\t\t'*::command:_normal'");
	else if (*words)
		buf_printf(out, "\t\t\t'1:what:(%s)' '*:file:_files'", words);
	else
		buf_puts(out, "\t\t\t'*:file:_files'");
	buf_puts(out, "\n\t\t\t;;\n");
}

static void completion_zsh(struct buf *out)
{
	buf_puts(out, "#compdef vitrine\n"
		      "# zsh completion for vitrine; made by `vitrine completion zsh`\n"
		      "_vitrine_known() {\n"
		      "\tcompadd -- ${(f)\"$(vitrine completion --words \"$@\" 2>/dev/null)\"}\n"
		      "}\n"
		      "_vitrine() {\n"
		      "\tlocal context state line\n"
		      "\tlocal -a verbs\n"
		      "\tverbs=(\n");
	for (const struct verb *v = verbs; v->name; v++) {
		buf_printf(out, "\t\t'%s:", v->name);
		quoted(out, v->summary);
		buf_puts(out, "'\n");
	}
	buf_puts(out, "\t)\n"
		      "\t_arguments -C '1:verb:->verb' '*::argument:->argument'\n"
		      "\tcase $state in\n"
		      "\tverb) _describe verb verbs ;;\n"
		      "\targument)\n\t\tcase $line[1] in\n");
	for (const struct verb *v = verbs; v->name; v++)
		zsh_verb(out, v);
	buf_puts(out, "\t\tesac\n\t\t;;\n\tesac\n}\n"
		      "if [[ $funcstack[1] == _vitrine ]]; then\n\t_vitrine \"$@\"\nelse\n"
		      "\tcompdef _vitrine vitrine\nfi\n");
}

/* --- fish --- */

static void fish_option(struct buf *out, const struct verb *v, const struct opt *o)
{
	buf_printf(out, "complete -c vitrine -n '__fish_seen_subcommand_from %s' -l %s", v->name,
		   o->name);
	if (o->letter)
		buf_printf(out, " -s %c", o->letter);
	if (known_kinds(o))
		buf_printf(out, " -x -a '(vitrine completion --words %s 2>/dev/null)'",
			   known_kinds(o));
	else if (o->arg)
		buf_puts(out, value_kind(o) == VALUE_ANY ? " -x" : " -r -F");
	buf_puts(out, " -d '");
	quoted(out, o->help);
	buf_puts(out, "'\n");
}

static void fish_verb(struct buf *out, const struct verb *v)
{
	_free_ char *words = usage_words(v), *all = verb_names(), *kinds = usage_kinds(v);
	bool has_verb = strstr(v->usage, "VERB") != NULL;

	buf_printf(out, "complete -c vitrine -n __fish_use_subcommand -f -a %s -d '", v->name);
	quoted(out, v->summary);
	buf_puts(out, "'\n");
	for (const struct opt *o = v->opts; o && o->name; o++)
		fish_option(out, v, o);
	if (has_verb || *words)
		buf_printf(out,
			   "complete -c vitrine -n '__fish_seen_subcommand_from %s' -f -a '%s'\n",
			   v->name, has_verb ? all : words);
	if (*kinds)
		buf_printf(out,
			   "complete -c vitrine -n '__fish_seen_subcommand_from %s' -a '(vitrine "
			   "completion --words %s 2>/dev/null)'\n",
			   v->name, kinds);
	if (strstr(v->usage, "CMD"))
		buf_printf(out,
			   "complete -c vitrine -n '__fish_seen_subcommand_from %s' -a "
			   "'(__fish_complete_command)'\n",
			   v->name);
}

static void completion_fish(struct buf *out)
{
	buf_puts(out, "# fish completion for vitrine; made by `vitrine completion fish`\n");
	for (const struct verb *v = verbs; v->name; v++)
		fish_verb(out, v);
	buf_puts(out, "complete -c vitrine -l help -d 'show help'\n");
}

int cli_completion(const char *shell, struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf shown = BUF(KIB);

	if (str_eq(shell, "bash"))
		completion_bash(out);
	else if (str_eq(shell, "zsh"))
		completion_zsh(out);
	else if (str_eq(shell, "fish"))
		completion_fish(out);
	else {
		buf_esc(&shown, shell, strnlen(shell, 64));
		return err_set(e, ERR_USAGE, EINVAL,
			       "no completion for '%s'; there is bash, zsh and fish",
			       buf_cstr(&shown));
	}
	return 0;
}

int cmd_completion(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	bool is_words = false;
	struct opts o;
	int r;

	opts_init(&o, completion_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0)
		is_words = true;
	if (r == 0 && is_words)
		r = cli_known_words(argv + o.at, &out, e);
	else if (r == 0 && argc - o.at != 1)
		r = err_set(e, ERR_USAGE, EINVAL, "which shell: bash, zsh or fish?");
	else if (r == 0)
		r = cli_completion(argv[o.at], &out, e);
	return r < 0 ? r : cli_print(&out, e);
}
