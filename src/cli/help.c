/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help.c - the verb and option tables as text for a terminal, and the verb `help`
 *
 * Prose in the tables is written as long lines or wrapped anyhow; here paragraphs are filled again, and lines
 * that begin with blanks (examples) are left as they are. man.c reads the same texts by the same rule.
 */
#include "cli/cli.h"

#define WIDTH ((size_t)80)
#define OPTION_COLUMN ((size_t)28)

enum { OPT_MAN = 1, OPT_LIST };

const struct opt help_opts[] = {
	{ "man", 0, NULL, "print the manual page, as roff", OPT_MAN },
	{ "list", 0, NULL, "print the names of all verbs, one per line", OPT_LIST },
	{ NULL },
};

static void pad(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_putc(out, ' ');
}

/* Fills the n bytes at s between column `indent` and WIDTH; *at is the column we stand at. */
static void fill(struct buf *out, const char *s, size_t n, size_t indent, size_t *at)
{
	const char *end = s + n;

	while (s < end) {
		size_t word;

		while (s < end && (*s == ' ' || *s == '\n'))
			s++;
		for (word = 0; s + word < end && s[word] != ' ' && s[word] != '\n'; word++)
			;
		if (word == 0)
			break;
		if (*at > indent && *at + 1 + word > WIDTH) {
			buf_putc(out, '\n');
			pad(out, indent);
			*at = indent;
		} else if (*at > indent) {
			buf_putc(out, ' ');
			*at += 1;
		}
		buf_add(out, s, word);
		*at += word;
		s += word;
	}
}

/* Text in paragraphs: blank lines part them, indented lines stay as they are. */
static void put_text(struct buf *out, const char *text)
{
	size_t at = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");
		bool is_literal = *text == ' ' || *text == '\t';

		if (at > 0 && (n == 0 || is_literal)) {
			buf_putc(out, '\n');
			at = 0;
		}
		if (is_literal || n == 0) {
			buf_add(out, text, n);
			buf_putc(out, '\n');
		} else {
			fill(out, text, n, 0, &at);
		}
		text += n + (text[n] == '\n');
	}
	if (at > 0)
		buf_putc(out, '\n');
}

static void put_option(const struct opt *o, struct buf *out)
{
	size_t start = out->n, at;

	if (o->letter)
		buf_printf(out, "  -%c, --%s", o->letter, o->name);
	else
		buf_printf(out, "      --%s", o->name);
	if (o->arg)
		buf_printf(out, " %s", o->arg);
	at = out->n - start;
	if (at + 2 > OPTION_COLUMN) {
		buf_putc(out, '\n');
		at = 0;
	}
	pad(out, OPTION_COLUMN - at);
	at = OPTION_COLUMN;
	fill(out, o->help, strlen(o->help), OPTION_COLUMN, &at);
	buf_putc(out, '\n');
}

static void put_usage(const char *usage, struct buf *out)
{
	const char *lead = "usage: ";

	while (*usage) {
		size_t n = strcspn(usage, "\n");

		buf_printf(out, "%svitrine %.*s\n", lead, (int)n, usage);
		lead = "       ";
		usage += n + (usage[n] == '\n');
	}
}

void cli_help_verb(const struct verb *v, struct buf *out)
{
	put_usage(v->usage, out);
	buf_printf(out, "\nvitrine %s: %s\n", v->name, v->summary);
	if (v->opts && v->opts->name)
		buf_puts(out, "\noptions:\n");
	for (const struct opt *o = v->opts; o && o->name; o++)
		put_option(o, out);
	if (v->text && *v->text) {
		buf_putc(out, '\n');
		put_text(out, v->text);
	}
}

static void put_verb(const char *name, size_t n, struct buf *out)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (strlen(v->name) == n && memcmp(v->name, name, n) == 0)
			buf_printf(out, "  %-12s%s\n", v->name, v->summary);
}

void cli_help_all(struct buf *out)
{
	buf_puts(out, "usage: vitrine VERB [options] [arguments]\n"
		      "       vitrine AGENT ...             the same as 'vitrine run AGENT ...'\n\n"
		      "Runs coding agents, or any command, behind walls: files, network, "
		      "processes, devices\n"
		      "and credentials are closed unless the policy opens them.\n");
	for (const struct verb_group *g = verb_groups; g->title; g++) {
		buf_printf(out, "\n%s\n", g->title);
		for (const char *p = g->names; *p;) {
			size_t n = strcspn(p, " ");

			put_verb(p, n, out);
			p += n + strspn(p + n, " ");
		}
	}
	buf_puts(out, "\n`vitrine help VERB` or `vitrine VERB --help` tells more; so do the manual "
		      "pages.\n");
}

static int find_verb(const char *name, const struct verb **ret, struct err *e)
{
	_free_ const char **names = NULL;
	_cleanup_(buf_done) struct buf shown = BUF(KIB);
	const char *near;
	size_t n = 0;

	for (const struct verb *v = verbs; v->name; v++, n++)
		if (str_eq(v->name, name)) {
			*ret = v;
			return 0;
		}
	names = mem_new(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = verbs[i].name;
	near = cli_nearest(name, names);
	buf_esc(&shown, name, strnlen(name, 64));
	return err_set(e, ERR_USAGE, EINVAL, "there is no verb '%s'%s%s%s", buf_cstr(&shown),
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int cmd_help(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	const struct verb *v = NULL;
	bool is_man = false;
	struct opts o;
	int r;

	opts_init(&o, help_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0) {
		if (r == OPT_MAN)
			is_man = true;
		for (v = verbs; r == OPT_LIST && v->name; v++)
			buf_printf(&out, "%s\n", v->name);
		if (r == OPT_LIST)
			return cli_print(&out, e);
	}
	v = NULL;
	if (r == 0 && argc - o.at > 1)
		r = err_set(e, ERR_USAGE, EINVAL, "help takes one verb");
	if (r == 0 && argc - o.at == 1)
		r = find_verb(argv[o.at], &v, e);
	if (r < 0)
		return r;
	if (is_man)
		cli_man_page(v, &out);
	else if (v)
		cli_help_verb(v, &out);
	else
		cli_help_all(&out);
	return cli_print(&out, e);
}
