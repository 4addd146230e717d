/* SPDX-License-Identifier: Apache-2.0 */
/* guard/code.c - inline code: what an interpreter, an editor or git is told to run
 *
 * Programs in other languages are not read, only searched: for texts in quotes. Where the code calls something that
 * runs commands, each such text is read as one; where it calls something that deletes, as a path; and in any case it
 * may be the name of a file with credentials. That sees what is written plainly, which is what an agent does; who
 * builds a name out of pieces is met by the walls.
 */
#include <ctype.h>

#include "guard/wrap.h"

#define MAX_LITERALS 64

/* Texts in quotes. */

static char unescape(const char **at)
{
	const char *s = *at;
	int v = 0, n = 0;

	if (*s == 'x') {
		for (s++; n < 2 && isxdigit((unsigned char)*s); n++, s++)
			v = v * 16 + (isdigit((unsigned char)*s)
					      ? *s - '0'
					      : tolower((unsigned char)*s) - 'a' + 10);
	} else if (*s >= '0' && *s <= '7') {
		for (; n < 3 && *s >= '0' && *s <= '7'; n++, s++)
			v = v * 8 + (*s - '0');
	} else {
		v = *s == 'n' ? '\n' : *s == 't' ? ' ' : (unsigned char)*s;
		s++;
	}
	*at = s;
	if (v <= 8 || v > 255)
		return ' ';
	return (char)v;
}

/* The next one at or behind *at, or NULL. */
static const char *next_literal(struct walk *w, const char **at)
{
	struct text t = { .mem = w->mem };
	const char *s = *at;
	char quote;

	while (*s && *s != '"' && *s != '\'' && *s != '`')
		s++;
	if (*s == '\0')
		return NULL;
	quote = *s++;
	text_add(&t, "", 0);
	while (*s && *s != quote)
		if (*s == '\\' && s[1]) {
			s++;
			text_putc(&t, unescape(&s));
		} else {
			text_putc(&t, *s++);
		}
	*at = *s ? s + 1 : s;
	return t.p;
}

static bool has_any(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static const char *const runs[] = { "system", "exec",       "popen",        "spawn", "subprocess",
				    "qx",     "check_call", "check_output", "Open3", "passthru",
				    "pty.",   "`",          "sh -c",        "eval" };
static const char *const deletes[] = {
	"rmtree",      "os.remove", "os.unlink",   "os.rmdir",        "removedirs",   "unlinkSync",
	"rmSync",      "rmdirSync", "fs.rm",       "fs.unlink",       "rm_rf",        "rm_r",
	"remove_tree", "unlink",    "Deno.remove", "File.delete",     "remove_entry", "rimraf",
	"os.truncate", ".unlink(",  "delete_file", "delete_directory"
};
static const char *const decodes[] = { "b64decode", "base64", "atob", "decode64", "Base64" };

static const char *base64_text(struct walk *w, const char *s)
{
	static const char table[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "+/";
	struct text t = { .mem = w->mem };
	uint32_t bits = 0;
	unsigned n = 0;

	text_add(&t, "", 0);
	for (; *s && *s != '='; s++) {
		char c = *s;

		if (c == '-')
			c = '+';
		else if (c == '_')
			c = '/';
		const char *at = strchr(table, c);

		if (at == NULL)
			return NULL;
		bits = bits << 6 | (uint32_t)(at - table);
		n += 6;
		if (n >= 8) {
			n -= 8;
			c = (char)(bits >> n & 0xff);
			if ((unsigned char)c < 9)
				return NULL;
			text_putc(&t, c);
		}
	}
	return t.n > 2 ? t.p : NULL;
}

static bool is_secret(struct walk *w, const char *s)
{
	const char *path = s;

	if (str_starts(s, "~/"))
		path = arena_fmt(w->mem, "%s%s", w->places.home, s + 1);
	return place_is_secret(&w->places, value_text(w->mem, path, strlen(path)));
}

static void judge_literal(struct walk *w, const struct cmd *c, const char *s, bool is_run,
			  bool is_deleted)
{
	const struct value *v = value_text(w->mem, s, strlen(s));
	struct shell_error error;
	struct node *script;

	if (is_secret(w, s))
		walk_find(w, "code-secret", c);
	if (is_deleted && (s[0] == '/' || s[0] == '~' || str_starts(s, "..")) &&
	    (place_fits(&w->places, "@root|@home|@outside", v) || s[0] == '~'))
		walk_find(w, "code-deletes", c);
	/* Only what reads as a command is one. */
	if (!is_run || strchr(s, ' ') == NULL)
		return;
	script = shell_parse(w->mem, s, strlen(s), &error);
	if (script && script->first)
		walk_script(w, script);
}

static bool was_run(const struct ran *r, const char *s)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->texts[i], s))
			return true;
	return false;
}

/* for f in os.listdir('x'): os.remove(f): everything in x goes. */
static void enumerated(struct walk *w, const struct cmd *c, const char *text)
{
	static const char *const lists[] = { "glob",    "os.walk",      "listdir",
					     "scandir", "readdir",      "iterdir",
					     "Dir[",    "Dir.children", "Dir.each_child" };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const char *at = strstr(text, lists[i]), *s = at;
		const char *path = at ? next_literal(w, &s) : NULL;
		char *star;

		if (at == NULL)
			continue;
		if (path == NULL || s - at > 200 || path[0] == '\0')
			path = ".";
		/* One kind of file that is made again is no loss. */
		if (rules_list_fits("*.pyc|*.log|*.tmp|*.bak|*.o|*.swp|*__pycache__*|*.orig|*.rej|"
				    "*.class|*.map",
				    path))
			return;
		star = strpbrk(path, "*?[");
		path = star == NULL      ? arena_fmt(w->mem, "%s/", path)
		       : star == path    ? "./"
		       : star[-1] == '/' ? arena_strn(w->mem, path, (size_t)(star - path))
					 : "./";
		effect_add(w, EFFECT_REMOVES, value_text(w->mem, path, strlen(path)), c);
		return;
	}
}

void code_scan(struct walk *w, const struct cmd *c, const char *text)
{
	bool is_run = has_any(text, runs, ARRAY_LEN(runs));
	bool is_deleted = has_any(text, deletes, ARRAY_LEN(deletes));
	bool is_decoded = has_any(text, decodes, ARRAY_LEN(decodes));
	struct ran ran = { 0 };
	const char *at = text, *s;

	code_calls(w, c, text, &ran);
	code_loops(w, c, text);
	code_services(w, c, text);
	if (str_eq(c->name, "osascript") && strcasestr(text, "login item"))
		effect_text(w, EFFECT_CHANGES, "schedule", c);
	if (str_eq(c->name, "osascript") &&
	    (strcasestr(text, "shut down") || strcasestr(text, "to restart")))
		effect_text(w, EFFECT_CHANGES, "system", c);
	if (is_deleted)
		enumerated(w, c, text);
	for (unsigned n = 0; n < MAX_LITERALS && (s = next_literal(w, &at)) != NULL; n++) {
		const char *plain = is_decoded ? base64_text(w, s) : NULL;

		judge_literal(w, c, s, is_run && !was_run(&ran, s), is_deleted);
		/* A template in backquotes has code of its own inside. */
		if (at[-1] == '`' && strpbrk(s, "\"'") && w->depth < WALK_MAX_DEPTH) {
			w->depth++;
			code_scan(w, c, s);
			w->depth--;
		}
		if (plain)
			judge_literal(w, c, plain, is_run, is_deleted);
	}
}

/* Interpreters. */

struct interpreter {
	const char *names;
	const char *letters; /* a word of options that ends in one of these takes code */
	const char *words;
	const char *values; /* options that take another value */
};

static const struct interpreter interpreters[] = {
	{ "python|python2|python3|pypy|pypy3", "c", "", "-W|-X|-m" },
	{ "node|nodejs", "ep", "--eval|--print",
	  "-r|--require|--import|--title|-C|--conditions|--loader" },
	{ "bun|deno|tsx|ts-node", "ep", "--eval|--print|eval", "-r|--preload|--config" },
	{ "ruby|jruby", "e", "", "-r|-I|-C|-E" },
	{ "perl", "eE", "", "-I|-M|-m" },
	{ "php", "rBRE", "", "-d|-c|-z" },
	{ "lua|luajit|rscript|r|julia|elixir|osascript|groovy|ghc|scala|kotlin|sbcl|clojure|bb",
	  "e", "--eval", "-l" },
	{ "tclsh|wish|go|dart|swift|guile|racket|crystal|nim|zig", "", "", "" },
};

static const struct interpreter *find_interpreter(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(interpreters); i++)
		if (rules_list_has(interpreters[i].names, name))
			return &interpreters[i];
	if (str_starts(name, "python3.") || str_starts(name, "python2."))
		return &interpreters[0];
	return NULL;
}

static bool takes_code(const struct interpreter *t, const char *s)
{
	if (s[0] != '-')
		return t->words[0] && str_eq(s, "eval");
	if (s[1] == '-')
		return t->words[0] && rules_list_has(t->words, s);
	/* -MFile::Path=rmtree: the value is attached. */
	if (s[1] && s[2] && strchr("MIm", s[1]) && strchr(t->letters, 'E'))
		return false;
	return s[1] && strchr(t->letters, s[strlen(s) - 1]) != NULL;
}

static void interpret_code(struct walk *w, const struct cmd *c, const struct value *code)
{
	if (code->s[0] == VALUE_UNKNOWN || code->s[0] == VALUE_MANY ||
	    (c->is_fed && strpbrk(code->s, VALUE_MARKS)))
		walk_find(w, "dynamic-code", c);
	code_scan(w, c, code->s);
}

/* One option; false when what follows is the program's own. */
static bool interpret_option(struct walk *w, const struct cmd *c, const struct interpreter *t,
			     size_t *at)
{
	const char *s = c->argv[*at]->s;
	bool is_module = str_eq(s, "-m") && str_starts(c->name, "python");

	/* python3 -m twine upload: the module is a program. */
	if (is_module && *at + 1 < c->argc)
		walk_inner(w, c, *at + 1, "python");

	if (value_has_mark(c->argv[*at]))
		walk_find(w, "unknown-source", c);
	if (rules_list_has(t->values, s)) {
		++*at;
		/* These load code. */
		if (rules_list_has("-r|--require|--import|--preload|-M|-m", s) && *at < c->argc &&
		    value_begins_open(c->argv[*at]))
			walk_find(w, "unknown-source", c);
	}
	return !is_module;
}

/* Without a program on the command line it comes from standard input. */
static void interpret_input(struct walk *w, const struct cmd *c)
{
	if (c->input == INPUT_TEXT)
		code_scan(w, c, c->input_text);
	else if (c->input == INPUT_UNKNOWN)
		walk_find(w, "unknown-source", c);
}

/* A program that was written earlier in the same text: go run x.go, python3 x.py. */
static void interpret_file(struct walk *w, const struct cmd *c, size_t at)
{
	const char *text;

	if (rules_list_has("run|eval", c->argv[at]->s) && at + 1 < c->argc)
		at++;
	if (str_eq(c->argv[at]->s, "-")) {
		interpret_input(w, c);
		return;
	}
	text = walk_written(w, c->argv[at]->s);
	if (text)
		code_scan(w, c, text);
}

static void interpret(struct walk *w, const struct cmd *c, const struct interpreter *t)
{
	size_t at = 1;

	for (; at < c->argc; at++) {
		const char *s = c->argv[at]->s;

		if (takes_code(t, s)) {
			if (at + 1 < c->argc)
				interpret_code(w, c, c->argv[at + 1]);
			return;
		}
		if (s[0] != '-' || s[1] == '\0')
			break;
		if (!interpret_option(w, c, t, &at))
			return;
	}
	if (at >= c->argc || str_eq(c->argv[at]->s, "-"))
		interpret_input(w, c);
	else if (c->is_fed && value_begins_open(c->argv[at]))
		walk_find(w, "unknown-source", c);
	else
		interpret_file(w, c, at);
}

/* awk. */

static void awk_program(struct walk *w, const struct cmd *c, const struct value *program)
{
	const char *text = program->s;
	bool is_empty = strstr(text, "printf \"\"") != NULL;
	unsigned written = 0;

	if (text[0] == VALUE_UNKNOWN || text[0] == VALUE_MANY ||
	    (c->is_fed && strpbrk(text, VALUE_MARKS)))
		walk_find(w, "dynamic-code", c);
	for (const char *at = text; (at = strstr(at, "system")) != NULL; at += 6) {
		const char *s = at + 6;

		while (*s == ' ')
			s++;
		if (*s != '(')
			continue;
		s += strspn(s, "( ");
		if (*s != '"')
			walk_find(w, "code-runs", c);
	}
	code_scan(w, c, text);
	/* print > "file" */
	for (const char *at = text; (at = strchr(at, '>')) != NULL && written < MAX_LITERALS;) {
		bool is_more = at[1] == '>';
		const char *s = at + 1 + is_more + strspn(at + 1 + is_more, " "), *path;

		bool is_home = str_starts(s, "ENVIRON[\"HOME\"]");

		at += 1 + is_more;
		s += is_home ? 15 + strspn(s + 15, " ") : 0;
		if (*s != '"')
			continue;
		path = next_literal(w, &s);
		if (path && is_home)
			path = arena_fmt(w->mem, "%s%s", w->places.home, path);
		if (path && path[0] && ++written)
			effect_add(w,
				   is_more    ? EFFECT_APPENDS
				   : is_empty ? EFFECT_EMPTIES
					      : EFFECT_WRITES,
				   value_text(w->mem, path, strlen(path)), c);
	}
	/* print "rm " $1 | "sh" */
	for (const char *at = text; (at = strchr(at, '|')) != NULL; at++) {
		const char *s = at + 1 + strspn(at + 1, " ");

		if (str_starts(s, "\"sh\"") || str_starts(s, "\"bash\"") ||
		    str_starts(s, "\"/bin/sh\"") || str_starts(s, "\"/bin/bash\""))
			walk_find(w, "code-runs", c);
	}
	if (strchr(text, '|') || strstr(text, "getline")) {
		const char *at = text, *s;

		for (unsigned n = 0; n < MAX_LITERALS && (s = next_literal(w, &at)) != NULL; n++)
			judge_literal(w, c, s, true, false);
	}
}

static void awk(struct walk *w, const struct cmd *c)
{
	size_t at = wrap_skip_options(c, 1, "-F|-v|-f|-e|-i|-E|-l");

	for (size_t i = 1; i < c->argc && i < at; i++) {
		const char *s = c->argv[i]->s;

		if ((str_eq(s, "-e") || str_eq(s, "--source")) && i + 1 < c->argc)
			awk_program(w, c, c->argv[i + 1]);
		if ((str_eq(s, "-f") && i + 1 < c->argc && value_begins_open(c->argv[i + 1])) ||
		    ((str_starts(s, "-f") || str_starts(s, "--file")) &&
		     value_has_mark(c->argv[i])))
			walk_find(w, "unknown-source", c);
		if (str_starts(s, "-f") || str_starts(s, "--file") || str_eq(s, "-e") ||
		    str_eq(s, "--source"))
			at = c->argc;
	}
	if (at < c->argc)
		awk_program(w, c, c->argv[at]);
}

/* sed: "1e command", and the flag e of s///. */
static void sed_script(struct walk *w, const struct cmd *c, const char *s)
{
	const char *at = s + strspn(s, "0123456789,$ ");

	if (*at == 'e' && (at[1] == ' ' || at[1] == '\0')) {
		if (at[1])
			walk_text(w, at + 2, strlen(at + 2), c, "sed");
		else
			walk_find(w, "code-runs", c);
	}
	/* Only letters and digits stand behind the last delimiter. */
	if (*at == 's' && at[1] && !isalnum((unsigned char)at[1])) {
		const char *flags = strrchr(at + 2, at[1]);

		if (flags && strchr(flags, 'e') &&
		    flags[1 + strspn(flags + 1, "gIiMmpe0123456789")] == '\0')
			walk_find(w, "code-runs", c);
	}
}

/* sed -i d, sed -i '1,$d': nothing is left of these files. */
static void sed_in_place(struct walk *w, const struct cmd *c, size_t from)
{
	bool is_in_place = false, is_all = false;

	for (size_t i = 1; i < c->argc; i++) {
		is_in_place |= str_starts(c->argv[i]->s, "-i") || str_starts(c->argv[i]->s, "--in-"
											    "plac"
											    "e");
		is_all |= rules_list_fits("d|1,$d|0,$d|s/.[*]//|s/.[*]//g|s/^.[*]$//|s/.//g|//d|/./"
					  "d",
					  c->argv[i]->s);
	}
	for (size_t i = from; i < c->argc && is_in_place && is_all; i++)
		effect_add(w, EFFECT_EMPTIES, c->argv[i], c);
}

static void sed(struct walk *w, const struct cmd *c)
{
	size_t at = wrap_skip_options(c, 1, "-e|-f|-l|--expression|--file");
	bool is_given = false;

	for (size_t i = 1; i < c->argc && i < at; i++)
		if (rules_list_has("-e|--expression", c->argv[i]->s) && i + 1 < c->argc) {
			sed_script(w, c, c->argv[i + 1]->s);
			is_given = true;
		}
	if (!is_given && at < c->argc)
		sed_script(w, c, c->argv[at]->s);
	sed_in_place(w, c, at + !is_given);
}

/* Files that an editor is given: its arguments that are no options. */
static void editor_empties(struct walk *w, const struct cmd *c)
{
	for (size_t i = 1; i < c->argc; i++)
		if (rules_list_has("-c|--cmd|-e|--eval|--expression|-f|-l|-s", c->argv[i]->s))
			i += c->argv[i]->s[1] != 's';
		else if (c->argv[i]->s[0] != '-' && c->argv[i]->s[0] != '+')
			effect_add(w, EFFECT_EMPTIES, c->argv[i], c);
}

/* %d, 1,$d, ,d: every line goes. */
static bool deletes_all(const char *s)
{
	static const char *const all[] = { "%d", "1,$d", ",d", "ggdG", "0,$d", "erase-buffer" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const char *at = strstr(s, all[i]);

		if (at && !isalnum((unsigned char)at[strlen(all[i])]) &&
		    (at == s || !isalnum((unsigned char)at[-1])))
			return true;
	}
	return false;
}

/* Lisp's names have dashes in them; the search for calls does not. */
static void lisp(struct walk *w, const struct cmd *c, const char *code)
{
	char *s = arena_strn(w->mem, code, strlen(code));

	for (char *at = s; at[0] && at[1]; at++)
		if (at[1] == '-' && isalpha((unsigned char)at[0]) && isalpha((unsigned char)at[2]))
			at[1] = '_';
	code_scan(w, c, s);
	if (strstr(code, "erase-buffer"))
		editor_empties(w, c);
}

static void emacs(struct walk *w, const struct cmd *c)
{
	for (size_t i = 1; i + 1 < c->argc; i++)
		if (rules_list_has("--eval|-eval|--execute|-execute", c->argv[i]->s))
			lisp(w, c, c->argv[i + 1]->s);
	for (size_t i = 1; i < c->argc; i++)
		if (str_starts(c->argv[i]->s, "--eval="))
			lisp(w, c, c->argv[i]->s + 7);
}

/* What ed reads is a program. */
static void line_editor(struct walk *w, const struct cmd *c)
{
	if (c->input != INPUT_TEXT || c->input_text == NULL)
		return;
	if (deletes_all(c->input_text))
		editor_empties(w, c);
	if (c->input_text[0] == '!')
		walk_text(w, c->input_text + 1, strlen(c->input_text + 1), c, c->name);
}

/* vim -c '!cmd', vim +'!cmd' */
static void editor(struct walk *w, const struct cmd *c)
{
	line_editor(w, c);
	for (size_t i = 1; i < c->argc; i++) {
		const char *s = c->argv[i]->s;

		if ((rules_list_has("-c|--cmd", s) ||
		     (s[0] == '-' && s[1] != '-' && s[1] && s[strlen(s) - 1] == 'c')) &&
		    i + 1 < c->argc)
			s = c->argv[++i]->s;
		else if (s[0] != '+')
			continue;
		if (deletes_all(s))
			editor_empties(w, c);
		if (strstr(s, "delete(") || strstr(s, "writefile(") || strstr(s, "system("))
			code_scan(w, c, s);
		s = strchr(s, '!');
		if (s)
			walk_text(w, s + 1, strlen(s + 1), c, c->name);
	}
}

/* Options whose value is a command. */
static void option_code(struct walk *w, const struct cmd *c, const char *names)
{
	for (size_t i = 1; i < c->argc; i++) {
		const char *s = c->argv[i]->s, *eq = strchr(s, '=');
		const char *name = eq ? arena_strn(w->mem, s, (size_t)(eq - s)) : s;

		if (!rules_list_has(names, name))
			continue;
		if (eq)
			s = eq + 1;
		else if (i + 1 < c->argc)
			s = c->argv[++i]->s;
		if (str_starts(s, "exec="))
			s += 5;
		walk_text(w, s, strlen(s), c, c->name);
	}
}

/* Terminal multiplexers type for you. */
static void typed(struct walk *w, const struct cmd *c)
{
	for (size_t i = 1; i < c->argc; i++)
		if (strchr(c->argv[i]->s, ' '))
			walk_text(w, c->argv[i]->s, c->argv[i]->n, c, c->name);
}

/* git. */

/* git -c alias.x=value x ...: what x stands for. */
static void git_alias(struct walk *w, const struct cmd *c, const char *config, size_t at)
{
	const char *eq = strchr(config, '=');
	size_t n = eq ? (size_t)(eq - config) : 0;
	struct cmd in = *c;

	if (!str_starts(config, "alias.") || eq == NULL)
		return;
	if (eq[1] == '!') {
		walk_text(w, eq + 2, strlen(eq + 2), c, "git");
		return;
	}
	while (at < c->argc && c->argv[at]->s[0] == '-')
		at += 1 + rules_list_has("-c|-C", c->argv[at]->s);
	if (at >= c->argc || c->argv[at]->n != n - 6 ||
	    memcmp(c->argv[at]->s, config + 6, n - 6) != 0)
		return;
	in.argv = arena_take(w->mem, (c->argc + 2) * sizeof(const struct value *));
	in.argv[0] = c->argv[0];
	in.argv[1] = value_text(w->mem, eq + 1, strlen(eq + 1));
	in.argc = 2;
	for (at++; at < c->argc; at++)
		in.argv[in.argc++] = c->argv[at];
	walk_command(w, &in);
}

/* git -c core.pager='command' */
static void git_program(struct walk *w, const struct cmd *c, const char *config)
{
	static const char names[] =
		"core.pager|core.editor|core.sshcommand|core.fsmonitor|core.askpass|"
		"sequence.editor|diff.external|pager.*|gpg.program|credential.helper|"
		"core.gitproxy|interactive.difffilter|*.textconv|merge.*.driver|"
		"filter.*.clean|filter.*.smudge|uploadpack.packobjectshook";
	const char *eq = strchr(config, '=');
	char *name = eq ? arena_strn(w->mem, config, (size_t)(eq - config)) : NULL;

	for (char *s = name; s && *s; s++)
		*s = (char)tolower((unsigned char)*s);
	if (name && eq[1] && rules_list_fits(names, name))
		walk_text(w, eq + (eq[1] == '!' ? 2 : 1), strlen(eq + (eq[1] == '!' ? 2 : 1)), c,
			  "git");
}

static void git(struct walk *w, const struct cmd *c)
{
	size_t at = wrap_skip_options(c, 1,
				      "-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--"
				      "config-env");

	for (size_t i = 1; i < c->argc && i < at; i++) {
		const char *s = c->argv[i]->s;

		if (str_eq(s, "-c") && i + 1 < c->argc) {
			git_alias(w, c, c->argv[i + 1]->s, i + 2);
			git_program(w, c, c->argv[i + 1]->s);
		} else if (str_starts(s, "-c") && s[2]) {
			git_alias(w, c, s + 2, i + 1);
			git_program(w, c, s + 2);
		}
	}
	if (at + 2 < c->argc && str_eq(c->argv[at]->s, "submodule") &&
	    str_eq(c->argv[at + 1]->s, "foreach")) {
		const char *text;

		at = wrap_skip_options(c, at + 2, "");
		text = walk_join(w, c, at);
		walk_text(w, text, strlen(text), c, "git");
	} else if (at + 2 < c->argc && str_eq(c->argv[at]->s, "bisect") &&
		   str_eq(c->argv[at + 1]->s, "run")) {
		walk_inner(w, c, at + 2, "git");
	} else if (at < c->argc && rules_list_has("rebase|filter-branch", c->argv[at]->s)) {
		option_code(w, c,
			    "-x|--exec|--tree-filter|--index-filter|--msg-filter|--env-filter|--"
			    "commit-filter");
	}
}

/* expect -c 'spawn rm -rf x' */
static void expect(struct walk *w, const struct cmd *c)
{
	for (size_t i = 1; i < c->argc; i++)
		for (const char *s = c->argv[i]->s; (s = strstr(s, "spawn ")) != NULL;) {
			size_t n = strcspn(s += 6, ";\n\"}");

			walk_text(w, arena_strn(w->mem, s, n), n, c, "expect");
		}
}

/* A makefile that was written earlier or comes in: lines behind a tab are a shell's. */
static void make(struct walk *w, const struct cmd *c)
{
	const char *text = c->input == INPUT_TEXT ? c->input_text : walk_written(w, "Makefile");

	for (size_t i = 1; i + 1 < c->argc; i++)
		if (rules_list_has("-f|--file|--makefile", c->argv[i]->s) &&
		    !rules_list_has("-|/dev/stdin", c->argv[i + 1]->s))
			text = walk_written(w, c->argv[i + 1]->s);
	while (text && *text) {
		size_t n = strcspn(text, "\n");
		const char *tab = memchr(text, '\t', n), *line = arena_strn(w->mem, text, n);
		const char *recipe = strstr(line, ": ;");

		/* all: ; command */
		if (recipe)
			walk_text(w, recipe + 3, strlen(recipe + 3), c, "make");
		/* A recipe that starts itself in the background. */
		if (strstr(line, "$(MAKE)") && strchr(line, '&'))
			walk_find(w, "fork-bomb", c);

		if (tab && tab[1] && tab + 1 < text + n)
			walk_text(w, arena_strn(w->mem, tab + 1, n - (size_t)(tab + 1 - text)),
				  n - (size_t)(tab + 1 - text), c, "make");
		text += n + (text[n] == '\n');
	}
}

/* ssh -o ProxyCommand='command' */
void code_ssh(struct walk *w, const struct cmd *c)
{
	static const char *const names[] = { "ProxyCommand=", "LocalCommand=", "KnownHostsCommand=",
					     "ProxyCommand ", "LocalCommand " };

	for (size_t i = 1; i < c->argc; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			const char *s = strcasestr(c->argv[i]->s, names[k]);

			if (s && (s == c->argv[i]->s || s == c->argv[i]->s + 2))
				walk_text(w, s + strlen(names[k]), strlen(s + strlen(names[k])), c,
					  c->name);
		}
}

void code_open(struct walk *w, const struct cmd *c)
{
	const struct interpreter *t = find_interpreter(c->name);

	if (t)
		interpret(w, c, t);
	else if (str_eq(c->name, "git"))
		git(w, c);
	else if (rules_list_has("awk|gawk|mawk|nawk|busybox-awk", c->name))
		awk(w, c);
	else if (rules_list_has("sed|gsed", c->name))
		sed(w, c);
	else if (rules_list_has("vim|vi|nvim|ex|view|gvim", c->name))
		editor(w, c);
	else if (str_eq(c->name, "ed"))
		line_editor(w, c);
	else if (rules_list_has("emacs|emacsclient", c->name))
		emacs(w, c);
	else if (str_eq(c->name, "expect"))
		expect(w, c);
	else if (rules_list_has("make|gmake", c->name))
		make(w, c);
	else if (rules_list_has("tar|gtar|bsdtar", c->name))
		option_code(w, c,
			    "--to-command|--checkpoint-action|-I|--use-compress-program|--info-"
			    "script|-F");
	else if (str_eq(c->name, "rsync"))
		option_code(w, c, "-e|--rsh|--rsync-path");
	else if (rules_list_has("tmux|screen", c->name))
		typed(w, c);
	else if (rules_list_has("nix-shell", c->name))
		option_code(w, c, "--run|--command");
}
