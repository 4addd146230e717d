/* SPDX-License-Identifier: Apache-2.0 */
/* shell/named.c - see named.h
 *
 * All words of all commands are looked at, those in substitutions, functions, here-documents and quoted texts too. Sure are
 * the program itself when its name has a slash, the script of an interpreter (the first word that is no option; the first
 * two, when an option stands before: it may have a value), what a variable names by a path, and the values of options that
 * are known to be files. The list of programs that run files is endless, so every other word is named as unsure, but
 * for the words of git, which run something in known places only, and of programs that only move files around.
 */
#include "shell/named.h"

#include "shell/shell.h"

#define TEXTS_MAX 6 /* texts in texts */
#define DIRS_MAX 8
#define SPLIT " \t\n\r\"'`;|&<>(){}$=,"

struct named {
	shell_named_fn fn;
	void *arg;
	struct arena mem;
	const char *dirs[DIRS_MAX]; /* gone into so far; the first is "" */
	size_t n_dirs;
	unsigned texts;
};

/* How far the words of one command have been read. */
struct place {
	bool has_head;   /* the program's name was there */
	bool is_wrapped; /* that program starts another one */
	bool is_runner;  /* it runs files that options name */
	bool is_idle;    /* it runs nothing */
	bool is_git;
	unsigned scripts; /* so many words without "-" are scripts */
	bool has_option;
	const char *last; /* the word before, "" for none */
};

static void read_text(struct named *x, const char *text, size_t n);
static void read_node(struct named *x, const struct node *node);
static void read_word(struct named *x, const struct word *w, struct place *at);

static const char *base_name(const char *s)
{
	const char *slash = strrchr(s, '/');

	return slash ? slash + 1 : s;
}

static bool is_listed(const char *s, const char *const *list)
{
	for (; *list; list++) {
		size_t n = strlen(*list);

		/* "python*": with a version behind it. */
		if ((*list)[n - 1] == '*' ? strncmp(s, *list, n - 1) == 0 : str_eq(s, *list))
			return true;
	}
	return false;
}

static bool is_interpreter(const char *name)
{
	static const char *const list[] = {
		"sh",     "bash",    "dash",    "zsh",     "ksh*",    "mksh",      "ash",
		"fish",   "csh",     "tcsh",    "pwsh",    "python*", "pypy*",     "perl*",
		"ruby*",  "node",    "nodejs",  "deno",    "bun",     "php*",      "lua*",
		"tclsh*", "wish*",   "Rscript", "R",       "java",    "groovy",    "guile*",
		"awk",    "gawk",    "mawk",    "nawk",    "sed",     "tsx",       "ts-node",
		"npx",    "source",  ".",       "exec",    "uv",      "pipx",      "poetry",
		"julia",  "octave*", "elixir",  "escript", "expect",  "osascript", "nu",
		"xonsh",  "racket",  "sbcl",    "emacs",   "vim",     NULL
	};

	return is_listed(name, list);
}

static void put_path(struct named *x, const char *path, bool is_sure)
{
	if (path[0] == '\0' || path[0] == '-' || path[0] == '%')
		return;
	for (size_t i = 0; i < x->n_dirs; i++)
		x->fn(x->arg, x->dirs[i], path, is_sure);
}

static void put_dir(struct named *x, const char *dir)
{
	size_t n = x->n_dirs;

	for (size_t i = 0; i < n && x->n_dirs < DIRS_MAX; i++)
		x->dirs[x->n_dirs++] = x->dirs[i][0] ? arena_fmt(&x->mem, "%s/%s", x->dirs[i], dir)
						     : arena_strn(&x->mem, dir, strlen(dir));
}

/* A value: of a word, an option, a variable. Several words in one are a text of their own. */
static void read_value(struct named *x, const char *value, bool is_sure)
{
	put_path(x, value, is_sure);
	if (strpbrk(value, " \t\n;&|`$("))
		read_text(x, value, strlen(value));
}

static bool has_slash(const char *s)
{
	return strchr(s, '/') != NULL;
}

static void read_option(struct named *x, const char *s, struct place *at)
{
	const char *equals = strchr(s, '=');

	at->has_option = true;
	if (at->is_idle)
		return;
	if (equals)
		read_value(x, equals + 1, at->is_runner && has_slash(equals));
	else if (s[1] != '-' && s[1] && s[2])
		read_value(x, s + 2, at->is_runner && has_slash(s)); /* "-Ilib", "-f./x" */
}

static bool is_assignment(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n > 0 && s[0] != '-' && s[n] == '=';
}

/* What the word before says about this one; true when that is all there is to it. */
static bool is_told_before(struct named *x, const char *s, const struct place *at)
{
	static const char *const files[] = { "-f",        "--file",    "--makefile", "-r",
					     "--require", "--rcfile",  "--import",   "--init-file",
					     "--loader",  "--preload", NULL };
	static const char *const dirs[] = { "cd", "pushd", "-C", "--directory", "--chdir", NULL };
	static const char *const in_git[] = { "run",           "foreach",        "-x", "--exec",
					      "--tree-filter", "--index-filter", NULL };

	if (is_listed(at->last, dirs)) {
		put_dir(x, s);
		return true;
	}
	if (!(at->is_runner && is_listed(at->last, files)) &&
	    !(at->is_git && is_listed(at->last, in_git)))
		return false;
	read_value(x, s, at->is_runner || has_slash(s));
	return true;
}

/* The name of the program, or of one that another program starts. */
static void read_head(struct named *x, const char *s, struct place *at)
{
	static const char *const wrappers[] = {
		"env",     "sudo",   "doas",      "nice",    "ionice",  "nohup", "time",
		"timeout", "stdbuf", "setsid",    "command", "builtin", "exec",  "xargs",
		"busybox", "chroot", "unshare",   "strace",  "flock",   "watch", "parallel",
		"direnv",  "nix",    "nix-shell", "bundle",  NULL
	};
	static const char *const runners[] = { "make", "gmake", "ninja", "just", "task",
					       "rake", "ant",   "psql",  "tmux", NULL };
	static const char *const idle[] = { "rm",     "rmdir", "mv",    "cp",    "ls",   "echo",
					    "printf", "mkdir", "touch", "rsync", "tar",  "grep",
					    "rg",     "chmod", "chown", "test",  "[",    "true",
					    "false",  "ln",    "du",    "head",  "tail", "wc",
					    "sort",   "tee",   NULL };
	const char *name = base_name(s);

	at->has_head = true;
	if (is_interpreter(name)) {
		at->scripts = 2;
		at->is_runner = true;
		at->is_wrapped = false;
	}
	at->is_wrapped = at->is_wrapped || is_listed(name, wrappers);
	at->is_runner = at->is_runner || is_listed(name, runners);
	at->is_idle = is_listed(name, idle);
	at->is_git = str_eq(name, "git");
	read_value(x, s, has_slash(s));
}

static void read_plain(struct named *x, const char *s, struct place *at)
{
	bool is_told = is_told_before(x, s, at);

	at->last = s;
	if (is_told)
		return;
	if (s[0] == '-' && s[1]) {
		read_option(x, s, at);
	} else if (is_assignment(s)) {
		read_value(x, strchr(s, '=') + 1, has_slash(s));
	} else if (at->scripts > 0) {
		at->scripts -= at->has_option && at->scripts == 2 ? 1 : at->scripts;
		read_value(x, s, true);
	} else if (!at->has_head || at->is_wrapped) {
		read_head(x, s, at);
	} else if (!at->is_idle && (!at->is_git || strpbrk(s, " \t\n"))) {
		read_value(x, s, false);
	}
}

static bool is_home(const struct part *p)
{
	static const char *const list[] = { "HOME", "XDG_*", "USER", "LOGNAME", NULL };

	return p->kind == PART_VAR && is_listed(p->text, list);
}

/* The text of a word, from the first part that is text to the last; what is made at run time in front of a slash is left out,
 * and NULL is returned for what is made at run time anywhere else. */
static const char *static_text(struct named *x, const struct word *w)
{
	struct text t = { .mem = &x->mem };
	const struct part *p = w->first;
	bool is_made = false;

	for (; p && (p->kind != PART_TEXT || p->n == 0); p = p->next) {
		if (is_home(p))
			return NULL;
		is_made = is_made || p->kind != PART_TEXT;
	}
	if (p && is_made) {
		if (p->text[0] != '/')
			return NULL;
		text_add(&t, ".", 1);
	}
	for (; p; p = p->next) {
		if (p->kind != PART_TEXT)
			return NULL;
		text_add(&t, p->text, p->n);
	}
	text_putc(&t, '\0');
	return t.p;
}

static void read_parts(struct named *x, const struct word *w)
{
	for (const struct part *p = w->first; p; p = p->next) {
		struct place inner = { .last = "" };

		if (p->script)
			read_node(x, p->script);
		if (p->arg)
			read_word(x, p->arg, &inner);
	}
}

static void read_word(struct named *x, const struct word *w, struct place *at)
{
	const char *s = static_text(x, w);

	if (s && s[0])
		read_plain(x, s, at);
	else
		at->last = "";
	read_parts(x, w);
}

static void read_redir(struct named *x, const struct redir *r)
{
	struct place at = { .last = "" };

	if (r->op == REDIR_HEREDOC && r->body_raw) {
		read_text(x, r->body_raw, r->body_n);
	} else if (r->target) {
		const char *s = static_text(x, r->target);

		if (s && r->op == REDIR_IN)
			read_value(x, s, true);
		else
			read_word(x, r->target, &at);
	}
}

static void read_assign(struct named *x, const struct assign *a)
{
	struct place at = { .last = "" };
	const char *s = a->value ? static_text(x, a->value) : NULL;

	if (s)
		read_value(x, s, has_slash(s));
	if (a->value)
		read_parts(x, a->value);
	for (const struct word *w = a->values; w; w = w->next)
		read_word(x, w, &at);
}

/* Subtrees are as deep as the reader lets them be: SHELL_MAX_DEPTH. */
static void read_node(struct named *x, const struct node *node)
{
	struct place at = { .last = "" };

	for (const struct assign *a = node->assigns; a; a = a->next)
		read_assign(x, a);
	for (const struct word *w = node->words; w; w = w->next)
		read_word(x, w, &at);
	for (const struct redir *r = node->redirs; r; r = r->next)
		read_redir(x, r);
	for (const struct node *n = node->first; n; n = n->next)
		read_node(x, n);
}

/* It cannot be read as a shell would: every run of ordinary characters is a word. */
static void split_text(struct named *x, const char *text, size_t n)
{
	char *copy = arena_strn(&x->mem, text, n);

	for (char *p = copy + strspn(copy, SPLIT); *p; p += strspn(p, SPLIT)) {
		size_t len = strcspn(p, SPLIT);
		bool is_end = p[len] == '\0';

		p[len] = '\0';
		put_path(x, p, strchr(p, '/') != NULL);
		if (is_end)
			return;
		p += len + 1;
	}
}

static void read_text(struct named *x, const char *text, size_t n)
{
	struct shell_error error = { 0 };
	struct node *script;

	if (x->texts >= TEXTS_MAX || x->mem.is_over)
		return;
	x->texts++;
	script = shell_parse(&x->mem, text, n, &error);
	if (script)
		read_node(x, script);
	else
		split_text(x, text, n);
	x->texts--;
}

void shell_named(const char *text, shell_named_fn fn, void *arg)
{
	struct named x = {
		.fn = fn, .arg = arg, .mem = ARENA(16 * MIB), .dirs = { "" }, .n_dirs = 1
	};

	read_text(&x, text, strlen(text));
	arena_done(&x.mem);
}
