/* SPDX-License-Identifier: Apache-2.0 */
/* guard/wrap_feed.c - xargs, parallel, find: commands whose arguments come out of another command
 *
 * What is fed in is a mark for anything, unless it can be seen (echo a | xargs rm). The inner command is told that
 * it is fed (is_fed), because then an argument may turn out to be an option.
 */
#include "guard/wrap.h"

#define MAX_EXEC 32 /* commands that one find runs */

static struct cmd inner_of(struct walk *w, const struct cmd *c, size_t n, const char *via)
{
	struct cmd in = *c;

	in.argv = arena_take(w->mem, (n + 1) * sizeof(const struct value *));
	in.argc = 0;
	in.via = arena_fmt(w->mem, "%s%s%s", c->via, c->via[0] ? "|" : "", via);
	in.input = INPUT_NONE;
	in.input_text = NULL;
	in.n_files = 0;
	return in;
}

/* The text with every `what` replaced. */
static const struct value *replaced(struct walk *w, const struct value *v, const char *what,
				    const char *by)
{
	struct text t = { .mem = w->mem };
	const char *s = v->s, *at;

	if (what[0] == '\0' || strstr(s, what) == NULL)
		return v;
	for (; (at = strstr(s, what)) != NULL; s = at + strlen(what)) {
		text_add(&t, s, (size_t)(at - s));
		text_add(&t, by, strlen(by));
	}
	text_add(&t, s, strlen(s));
	return value_text(w->mem, t.p, t.n);
}

/* xargs. */

struct xargs {
	const char *replace; /* -I; NULL: at the end */
	size_t at;
};

static void xargs_options(const struct cmd *c, struct xargs *x)
{
	static const char values[] = "-n|-P|-L|-s|-d|-E|-a|-R|-S|-J|-I|--max-args|--max-procs|--"
				     "max-lines|--max-chars|--delimiter|--arg-file|"
				     "--process-slot-var|--eof";

	x->at = wrap_skip_options(c, 1, values);
	for (size_t i = 1; i < x->at && i < c->argc; i++) {
		const char *s = c->argv[i]->s;

		if ((str_eq(s, "-I") || str_eq(s, "-J")) && i + 1 < c->argc)
			x->replace = c->argv[i + 1]->s;
		else if ((str_starts(s, "-I") || str_starts(s, "-J") || str_starts(s, "-i")) &&
			 s[2])
			x->replace = s + 2;
		else if (str_starts(s, "--replace=") && s[10])
			x->replace = s + 10;
		else if (str_eq(s, "-i") || str_eq(s, "--replace") || str_eq(s, "--replace="))
			x->replace = "{}";
	}
}

/* Words that can be seen in what is piped in. */
static size_t add_seen(struct walk *w, struct cmd *in, const char *text)
{
	size_t n = 0;

	while (*text && n < 16) {
		size_t blank = strspn(text, " \t\n"), len;

		text += blank;
		len = strcspn(text, " \t\n");
		if (len) {
			struct value *v = value_text(w->mem, text, len);

			in->argv[in->argc++] = v;
			n++;
		}
		text += len;
	}
	return n;
}

/* find -name '*.orig' | xargs: nobody knows the names, but how they end. */
static const struct value *fed_value(struct walk *w)
{
	const char *name = NULL;

	for (size_t i = 0; i + 1 < w->n_piped && str_eq(w->piped[0], "find"); i++) {
		if (rules_list_has("!|-not", w->piped[i]))
			name = "";
		if (!rules_list_has("-name|-iname", w->piped[i]))
			continue;
		/* Where several kinds are asked for, one that matters counts for all. */
		if (name == NULL ||
		    place_fits(&w->places, "@made", value_text(w->mem, name, strlen(name))))
			name = w->piped[i + 1];
	}
	if (name == NULL || name[0] != '*' || strpbrk(name + 1, "*?["))
		return value_text(w->mem, "\x02", 1);
	name = arena_fmt(w->mem, "\x02%s", name + 1);
	return value_text(w->mem, name, strlen(name));
}

void wrap_xargs(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	struct xargs x = { 0 };
	struct cmd in;

	xargs_options(c, &x);
	if (x.at >= c->argc)
		return;
	in = inner_of(w, c, c->argc + 17, t->name);
	in.is_fed = true;
	for (size_t i = x.at; i < c->argc; i++)
		in.argv[in.argc++] =
			x.replace ? replaced(w, c->argv[i], x.replace, "\x01") : c->argv[i];
	if (x.replace == NULL && (c->input != INPUT_TEXT || c->input_text == NULL ||
				  add_seen(w, &in, c->input_text) == 0))
		in.argv[in.argc++] = fed_value(w);
	walk_command(w, &in);
}

/* find. */

static bool starts_exec(const char *s)
{
	return rules_list_has("-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch", s);
}

/* Where one -name is all that is asked for, what is found ends as the pattern does. */
static const char *found_name(struct walk *w, const struct cmd *c)
{
	const char *name = NULL;

	for (size_t i = 1; i + 1 < c->argc; i++) {
		if (rules_list_has("-o|-or|!|-not|,", c->argv[i]->s))
			return "";
		if (rules_list_has("-name|-iname", c->argv[i]->s))
			name = c->argv[i + 1]->s;
	}
	if (name == NULL || strpbrk(name + (name[0] == '*'), "*?[" VALUE_MARKS))
		return "";
	return name[0] == '*' ? name + 1 : arena_fmt(w->mem, "/%s", name);
}

/* The file found lies below where the search began. */
static const char *found_path(struct walk *w, const struct cmd *c)
{
	size_t at = 1;

	while (at < c->argc && rules_list_has("-H|-L|-P|-E|-X|-d|-s|-x", c->argv[at]->s))
		at++;
	if (at >= c->argc || c->argv[at]->s[0] == '-' || rules_list_has("(|!", c->argv[at]->s))
		return arena_fmt(w->mem, "./\x01%s", found_name(w, c));
	return arena_fmt(w->mem, "%s/\x01%s", c->argv[at]->s, found_name(w, c));
}

static size_t find_exec(struct walk *w, const struct cmd *c, size_t at, const char *path)
{
	struct cmd in = inner_of(w, c, c->argc + 1, "find");

	for (at++; at < c->argc; at++) {
		const char *s = c->argv[at]->s;

		if (str_eq(s, ";") ||
		    (str_eq(s, "+") && in.argc && at && str_eq(c->argv[at - 1]->s, "{}")) ||
		    str_eq(s, "+"))
			break;
		in.argv[in.argc++] = replaced(w, c->argv[at], "{}", path);
	}
	/* fd puts what it finds at the end where no place is named. */
	if (str_starts(c->name, "fd") && in.argc && in.argc <= c->argc)
		in.argv[in.argc++] = value_text(w->mem, path, strlen(path));
	/* A command that xargs feeds into find is fed as well. */
	in.is_fed = c->is_fed;
	if (in.argc)
		walk_command(w, &in);
	return at;
}

void wrap_find(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	/* find's options are words, fd's are letters. */
	bool is_fd = str_starts(t->name, "fd");
	const char *path = is_fd ? "./\x01" : found_path(w, c);
	unsigned n = 0;

	for (size_t i = 1; i < c->argc; i++) {
		if (!starts_exec(c->argv[i]->s) ||
		    is_fd != (c->argv[i]->s[2] == '\0' || c->argv[i]->s[1] == '-'))
			continue;
		if (++n > MAX_EXEC) {
			walk_find(w, "unreadable", c);
			return;
		}
		i = find_exec(w, c, i, path);
	}
}

/* parallel. */

static bool is_source(const char *s)
{
	return rules_list_has(":::|:::+|::::|::::+", s);
}

static const char *fill(struct walk *w, const char *code, const char *by)
{
	static const char *const marks[] = { "{}",  "{.}", "{/}", "{//}", "{/.}",
					     "{1}", "{2}", "{#}", "{%}" };
	const struct value *v = value_text(w->mem, code, strlen(code));

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		v = replaced(w, v, marks[i], by);
	if (str_eq(v->s, code))
		return arena_fmt(w->mem, "%s %s", code, by);
	return v->s;
}

/* Parallel puts a line together and gives it to a shell; words of the template keep no quotes of their own. */
static void parallel_run(struct walk *w, const struct cmd *c, size_t from, size_t to,
			 const char *arg)
{
	struct cmd in = inner_of(w, c, c->argc + 2, "parallel");
	bool is_filled = false;

	in.is_fed = arg[0] == VALUE_UNKNOWN || arg[0] == VALUE_MANY;
	if (to == from + 1 && strchr(c->argv[from]->s, ' ')) {
		const char *code = fill(w, c->argv[from]->s, arg);

		walk_text(w, code, strlen(code), c, "parallel");
		return;
	}
	for (size_t i = from; i < to; i++) {
		const struct value *v = c->argv[i];
		const char *filled = strchr(v->s, '{') ? fill(w, v->s, arg) : v->s;

		/* fill() appends where there is no mark. */
		if (strchr(v->s, '{') && !strstr(filled, v->s)) {
			v = value_text(w->mem, filled, strlen(filled));
			is_filled = true;
		}
		in.argv[in.argc++] = v;
	}
	if (!is_filled)
		in.argv[in.argc++] = value_text(w->mem, arg, strlen(arg));
	walk_command(w, &in);
}

static void parallel_sources(struct walk *w, const struct cmd *c, size_t from, size_t to)
{
	size_t n = 0;

	for (size_t i = to; i < c->argc && n < 8; i++) {
		if (is_source(c->argv[i]->s))
			continue;
		n++;
		if (from == to)
			walk_text(w, c->argv[i]->s, c->argv[i]->n, c, "parallel");
		else
			parallel_run(w, c, from, to, c->argv[i]->s);
	}
}

void wrap_parallel(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	static const char values[] = "-j|--jobs|-P|-S|--sshlogin|--slf|--sshloginfile|--wd|--"
				     "workdir|--env|--colsep|-C|--rpl|-a|--arg-file|"
				     "-n|-N|-L|-I|--max-args|--joblog|--tmpdir|--results|--timeout|"
				     "--retries|--halt|--delay|--load|--memfree|"
				     "--max-procs|--tagstring|-d|--delimiter|-E|-s|--nice|--"
				     "shellquote|--trim|--block|--recstart|--recend";
	size_t from = wrap_skip_options(c, 1, values), to = from;
	bool is_dry = false;

	(void)t;
	for (size_t i = 1; i < from && i < c->argc; i++)
		is_dry |= rules_list_has("--dry-run|--dryrun|--version|--help|-V", c->argv[i]->s);
	while (to < c->argc && !is_source(c->argv[to]->s))
		to++;
	if (is_dry && from == to)
		return;
	if (to < c->argc) {
		if (!is_dry)
			parallel_sources(w, c, from, to);
	} else if (from < to) {
		parallel_run(w, c, from, to, "\x02");
	} else {
		/* Each line that comes in is a command. */
		wrap_run_input(w, c);
		if (c->input == INPUT_NONE)
			walk_find(w, "unknown-source", c);
	}
}
