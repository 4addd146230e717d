/* SPDX-License-Identifier: Apache-2.0 */
/* cli/secret.c - the verb `secret`: set, ls, rm; import is in secret_import.c
 *
 * A value is never an argument: what stands on a command line is seen by every process and kept in a history. It comes
 * from stdin, or stays where it is and is fetched from there at every start. It is fetched once here too, so that a
 * wrong path or command is noticed now and the placeholder gets its shape.
 */
#include <termios.h>

#include "base/io.h"
#include "base/num.h"
#include "cli/secret.h"
#include "cli/table.h"
#include "core/facts.h"
#include "secret/secret.h"

enum {
	OPT_ENV = 1,
	OPT_HOST,
	OPT_HEADER,
	OPT_IN,
	OPT_CACHE,
	OPT_SOURCE = 0x100, /* behind it: enum secret_source */
};

const struct opt secret_opts[] = {
	{ "env", 0, "VAR", "variable that holds the placeholder inside", OPT_ENV },
	{ "host", 0, "HOST", "host it is for: name or *.name", OPT_HOST },
	{ "header", 0, "NAME", "swap it in this header field only", OPT_HEADER },
	{ "in", 0, "PLACE", "where it is swapped: header (default), query, body", OPT_IN },
	{ "from-file", 0, "PATH", "read the value from this file at every start",
	  OPT_SOURCE + SECRET_FILE },
	{ "from-env", 0, "VAR", "take the value from this variable of the caller",
	  OPT_SOURCE + SECRET_VARIABLE },
	{ "from-command", 0, "CMD", "take the value from the output of a host command",
	  OPT_SOURCE + SECRET_COMMAND },
	{ "cache", 0, "TIME", "use a command's output this long (default: 55m)", OPT_CACHE },
	TABLE_OPTS("with 'ls': print one JSON object", "with 'ls': print the names only"),
	{ NULL, 0, NULL, NULL, 0 },
};

static int set_source(struct secret *s, enum secret_source source, const char *from, struct err *e)
{
	if (s->from)
		return err_set(e, ERR_USAGE, EINVAL, "a secret has one source");
	s->source = source;
	s->from = mem_str(from);
	return 0;
}

static int apply(struct secret *s, int id, const char *value, struct err *e)
{
	if (id >= OPT_SOURCE)
		return set_source(s, (enum secret_source)(id - OPT_SOURCE), value, e);
	switch (id) {
	case OPT_ENV:
		secret_list_add(&s->env, value);
		return 0;
	case OPT_HOST:
		secret_list_add(&s->hosts, value);
		return 0;
	case OPT_HEADER:
		secret_list_add(&s->headers, value);
		return 0;
	case OPT_IN:
		secret_list_add(&s->places, value);
		return 0;
	case OPT_CACHE:
		return num_duration(value, &s->cache, e);
	default:
		bug_on(true);
		return 0;
	}
}

/* One line; from a terminal without showing it. */
static int read_stdin(struct buf *value, struct err *e)
{
	struct termios old, quiet;
	bool is_tty = tcgetattr(0, &old) == 0;
	char c;

	if (is_tty) {
		quiet = old;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		(void)fputs("value: ", stderr);
		(void)tcsetattr(0, TCSAFLUSH, &quiet);
	}
	while (io_read(0, &c, 1) == 1 && !(is_tty && c == '\n'))
		buf_putc(value, c);
	if (is_tty) {
		(void)tcsetattr(0, TCSAFLUSH, &old);
		(void)fputc('\n', stderr);
	}
	if (value->n > 0 && value->p[value->n - 1] == '\n')
		value->p[--value->n] = '\0';
	for (size_t i = 0; i < value->n; i++)
		if ((unsigned char)value->p[i] < 0x20 || value->p[i] == 0x7f)
			return err_set(e, ERR_USAGE, EINVAL,
				       "the value is more than one line, or holds a control "
				       "character");
	if (value->n == 0 || value->is_over)
		return err_set(e, ERR_USAGE, EINVAL,
			       "the value on stdin is empty or over %zu bytes", SECRET_VALUE_MAX);
	if (value->n < SECRET_VALUE_MIN)
		return err_set(e, ERR_USAGE, EINVAL,
			       "the value has fewer than %d characters: it could be neither put in "
			       "nor masked without touching other text",
			       SECRET_VALUE_MIN);
	return 0;
}

int secret_say_saved(const struct secret *s, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB);

	buf_printf(&out, "%s: for", s->name);
	for (size_t i = 0; i < s->hosts.n; i++)
		buf_printf(&out, " %s", s->hosts.v[i]);
	for (size_t i = 0; i < s->env.n; i++)
		buf_printf(&out, "%s%s", i ? ", " : "; inside as ", s->env.v[i]);
	switch (s->source) {
	case SECRET_STORED:
		buf_puts(&out, "; kept in a file that only you can read, not encrypted\n");
		break;
	case SECRET_KEYRING:
		buf_puts(&out, "; kept in the desktop keyring\n");
		break;
	case SECRET_FILE:
	case SECRET_VARIABLE:
	case SECRET_COMMAND:
	case SECRET_LOGIN:
	case SECRET_SOURCE_COUNT_:
		buf_printf(&out, "; fetched at every start (%s)\n", secret_source_name(s->source));
		break;
	}
	return cli_print(&out, e);
}

static int set(const struct host *h, struct secret *s, struct err *e)
{
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	int r = secret_check_name(s->name, e);

	if (r < 0)
		return r;
	if (s->source == SECRET_COMMAND && s->cache == 0)
		s->cache = 3300 * NS_PER_SEC;
	secret_apply_service(s);
	r = secret_check(s, e);
	if (r >= 0)
		r = s->from ? secret_value(h->state_dir, s, &value, e) : read_stdin(&value, e);
	if (r >= 0)
		r = secret_save(h->state_dir, s, (struct str){ .p = value.p, .n = value.n }, e);
	return r < 0 ? r : secret_say_saved(s, e);
}

static void put_words(struct buf *b, const struct secret_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		buf_printf(b, "%s%s", i ? "," : "", l->v[i]);
	if (l->n == 0)
		buf_putc(b, '-');
}

/* ---- ls ---- */

static const struct column columns[] = {
	{ "name", "Name", "name", COLUMN_TEXT },
	{ "source", "Source", "source", COLUMN_TEXT },
	{ "env", "Variable", "variable", COLUMN_TEXT },
	{ "hosts", "Hosts", "hosts", COLUMN_TEXT },
};

/* One listing: rows for --quiet and --format, else text in the making. */
struct listed {
	struct table_how how;
	struct table rows;
	struct buf out;
	bool has_one;
};

static void add_row(struct table *t, const struct secret *s)
{
	struct buf env = BUF(64 * KIB), hosts = BUF(64 * KIB);
	struct cell *c = table_row(t);

	put_words(&env, &s->env);
	put_words(&hosts, &s->hosts);
	c[0].text = mem_str(s->name);
	c[1].text = mem_str(secret_source_name(s->source));
	c[2].text = buf_take(&env);
	c[3].text = buf_take(&hosts);
}

static void put_line(struct buf *out, const struct secret *s)
{
	_cleanup_(buf_done) struct buf env = BUF(4 * KIB);

	put_words(&env, &s->env);
	buf_printf(out, "%-20s%-10s%-28s", s->name, secret_source_name(s->source), buf_cstr(&env));
	put_words(out, &s->hosts);
	buf_putc(out, '\n');
}

static void put_one(struct listed *l, const struct secret *s)
{
	if (table_is_asked(&l->how)) {
		add_row(&l->rows, s);
	} else if (l->how.as_json) {
		buf_puts(&l->out, l->has_one ? ",\n" : "\n");
		secret_write(s, &l->out);
		l->out.n--; /* its newline */
	} else {
		put_line(&l->out, s);
	}
	l->has_one = true;
}

/* Logins of agents on this host are there without having been set. */
static void put_logins(struct listed *to, const struct host *h)
{
	for (const struct secret_login *l = secret_logins; l->name; l++) {
		_cleanup_(secret_done) struct secret s = { 0 };

		if (secret_login_is_there(l, h->home, h->state_dir, &s))
			put_one(to, &s);
	}
}

static int put_all(struct listed *l, const struct host *h, struct err *e)
{
	_cleanup_(secret_list_done) struct secret_list names = { 0 };
	int r = secret_names(h->state_dir, &names, e);

	if (l->how.as_json)
		buf_puts(&l->out, "{\"secrets\":[");
	else
		buf_printf(&l->out, "%-20s%-10s%-28s%s\n", "name", "source", "variable", "hosts");
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		_cleanup_(secret_done) struct secret s = { 0 };

		r = secret_load(h->state_dir, names.v[i], &s, e);
		if (r >= 0)
			put_one(l, &s);
	}
	put_logins(l, h);
	if (l->how.as_json)
		buf_puts(&l->out, "\n]}\n");
	return r;
}

static int ls(const struct host *h, const struct table_how *how, struct err *e)
{
	struct listed l = { .how = *how,
			    .rows = { .columns = columns, .n_columns = ARRAY_LEN(columns) },
			    .out = BUF(MIB) };
	int r = put_all(&l, h, e);

	if (r >= 0)
		r = table_is_asked(how) ? table_show(&l.rows, how, e) : cli_print(&l.out, e);
	table_done(&l.rows);
	buf_done(&l.out);
	return r;
}

static int parse(struct secret *s, int argc, char **argv, struct table_how *how, struct err *e)
{
	struct opts o;
	int r;

	opts_init(&o, secret_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0) {
		r = table_opt(how, &o, r) ? 0 : apply(s, r, o.value, e);
		if (r < 0)
			return r;
	}
	if (r == 0 && o.at < argc)
		r = err_set(e, ERR_USAGE, EINVAL,
			    "'%s' is one word too many; a value is read from "
			    "stdin, never from the command line",
			    argv[o.at]);
	return r;
}

int cmd_secret(int argc, char **argv, struct err *e)
{
	const char *word = argc > 1 ? argv[1] : "";
	bool is_ls = str_eq(word, "ls"), is_import = str_eq(word, "import");
	struct table_how how = { 0 };
	_cleanup_(secret_done) struct secret s = { 0 };
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	int r = 0;

	if (!is_ls && !is_import && !str_eq(word, "set") && !str_eq(word, "rm"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "secret set NAME | secret ls | secret rm NAME | secret import "
			       "npm|pip|cargo");
	/* The options behind the word, and then the name. */
	r = opts_arrange(secret_opts, argc - 1, argv + 1, e);
	if (r < 0)
		return r;
	if (is_import && (argc < 3 || argv[argc - 1][0] == '-'))
		return err_set(e, ERR_USAGE, EINVAL, "secret import npm | pip | cargo");
	if (!is_ls && (argc < 3 || argv[argc - 1][0] == '-'))
		return err_set(e, ERR_USAGE, EINVAL, "secret %s needs a name", word);
	s.name = is_ls ? NULL : mem_str(argv[argc - 1]);
	r = parse(&s, argc - (is_ls ? 1 : 2), argv + 1, &how, e);
	if (r >= 0)
		r = host_init(&h, NULL, e);
	if (r < 0)
		return r;
	if (is_ls)
		return ls(&h, &how, e);
	if (is_import)
		return secret_import(&h, &s, e);
	return str_eq(word, "set") ? set(&h, &s, e) : secret_remove(h.state_dir, s.name, e);
}
