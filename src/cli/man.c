/* SPDX-License-Identifier: Apache-2.0 */
/* cli/man.c - the verb and option tables as manual pages
 *
 * Every character of a table passes esc(), so no text can become a request or a font change by accident; what is
 * roff is written here and nowhere else. Pages carry no date: the same source gives the same bytes.
 */
#include "cli/cli.h"

/* One Unicode character at s as a number; the tables are our own and valid UTF-8. */
static unsigned code_point(const unsigned char *s, size_t max, size_t *len)
{
	unsigned c = s[0] < 0xe0 ? s[0] & 0x1fU : s[0] < 0xf0 ? s[0] & 0x0fU : s[0] & 0x07U;
	size_t n = 1;

	for (; n < max && (s[n] & 0xc0) == 0x80; n++)
		c = c << 6 | (s[n] & 0x3fU);
	*len = n;
	return c;
}

static const char *roff_name(char c)
{
	switch (c) {
	case '\\':
		return "\\(rs";
	case '-':
		return "\\-";
	case '\'':
		return "\\(aq";
	case '`':
		return "\\(ga";
	case '^':
		return "\\(ha";
	case '~':
		return "\\(ti";
	case '"':
		return "\\(dq";
	default:
		return NULL;
	}
}

/* A dot or an apostrophe is a request at the start of a line; the apostrophe is escaped anyhow. */
static void esc(struct buf *out, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *name = roff_name(*s);
		size_t len = 1;

		if (name)
			buf_puts(out, name);
		else if (*s == '.' && str_ends(buf_cstr(out), "\n"))
			buf_puts(out, "\\&.");
		else if ((unsigned char)*s >= 0x80)
			buf_printf(out, "\\[u%04X]",
				   code_point((const unsigned char *)s, (size_t)(end - s), &len));
		else
			buf_putc(out, *s);
		s += len;
	}
}

static void put(struct buf *out, const char *s)
{
	esc(out, s, strlen(s));
}

/* The same rule as in help.c: blank lines part paragraphs, indented lines stay as they are. */
static void put_text(struct buf *out, const char *text)
{
	bool is_literal = false, is_new = true;

	while (*text) {
		size_t n = strcspn(text, "\n");
		bool want_literal = *text == ' ' || *text == '\t';

		if (n > 0 && want_literal != is_literal) {
			buf_puts(out, want_literal ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n.PP\n");
			is_literal = want_literal;
		} else if (n > 0 && is_new) {
			buf_puts(out, ".PP\n");
		}
		is_new = n == 0;
		if (n > 0) {
			size_t skip = want_literal ? strspn(text, " \t") : 0;

			/* Deeper indentation within an example is kept below its first four columns. */
			skip = skip > 4 ? 4 : skip;
			esc(out, text + skip, n - skip);
			buf_putc(out, '\n');
		}
		text += n + (text[n] == '\n');
	}
	if (is_literal)
		buf_puts(out, ".RE\n.fi\n");
}

static void put_head(struct buf *out, const char *title, const char *summary)
{
	buf_puts(out, ".TH ");
	for (const char *c = title; *c; c++)
		buf_putc(out, (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c));
	buf_puts(out, " 1 \"\" \"vitrine " VITRINE_VERSION "\" \"Vitrine Manual\"\n.SH NAME\n");
	put(out, title);
	buf_puts(out, " \\- ");
	put(out, summary);
	buf_putc(out, '\n');
}

static void put_option(struct buf *out, const struct opt *o)
{
	buf_puts(out, ".TP\n");
	if (o->letter) {
		buf_puts(out, "\\fB\\-");
		esc(out, &o->letter, 1);
		buf_puts(out, "\\fR, ");
	}
	buf_puts(out, "\\fB\\-\\-");
	put(out, o->name);
	buf_puts(out, "\\fR");
	if (o->arg) {
		buf_puts(out, " \\fI");
		put(out, o->arg);
		buf_puts(out, "\\fR");
	}
	buf_putc(out, '\n');
	put(out, o->help);
	buf_puts(out, ".\n");
}

static void put_usage(struct buf *out, const char *usage)
{
	while (*usage) {
		size_t n = strcspn(usage, "\n");

		buf_puts(out, "\\fBvitrine\\fR ");
		esc(out, usage, n);
		buf_putc(out, '\n');
		usage += n + (usage[n] == '\n');
		if (*usage)
			buf_puts(out, ".br\n");
	}
}

static const struct {
	const char *status, *meaning;
} exit_codes[] = {
	{ "0", "success; for verbs that run a command: the command's own status" },
	{ "2", "the call or a policy file is wrong" },
	{ "124", "the time limit ended the command" },
	{ "125", "Vitrine itself failed, a name means nothing here, or this host cannot enforce "
		 "what the policy asks for" },
	{ "126, 127", "the command could not be executed, or was not found" },
	{ "128+n", "signal n ended the command; 137 (SIGKILL) also when a memory limit did" },
};

static const struct {
	const char *name, *meaning;
} files[] = {
	{ "$XDG_CONFIG_HOME/vitrine/policy.jsonc", "the user's own policy (default: ~/.config)" },
	{ "WORKSPACE/.vitrine.jsonc", "the project's policy; it can only tighten unless trusted" },
	{ "$XDG_STATE_HOME/vitrine", "state and quarantine (default: ~/.local/state)" },
};

static void put_exit_codes(struct buf *out)
{
	buf_puts(out, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < ARRAY_LEN(exit_codes); i++) {
		buf_puts(out, ".TP\n");
		put(out, exit_codes[i].status);
		buf_putc(out, '\n');
		put(out, exit_codes[i].meaning);
		buf_puts(out, ".\n");
	}
}

static void main_page(struct buf *out)
{
	put_head(out, "vitrine", "run coding agents, or any command, behind walls");
	buf_puts(out, ".SH SYNOPSIS\n\\fBvitrine\\fR \\fIVERB\\fR [options] [arguments]\n.SH "
		      "DESCRIPTION\n");
	put_text(out, "Vitrine runs a command so that only what the policy opens is open to it: "
		      "files, network, "
		      "processes, devices and credentials are closed by default. The workspace, "
		      "normally the current "
		      "directory, is readable and writable at its own path. What this host cannot "
		      "enforce is refused, "
		      "never silently weakened.");
	buf_puts(out, ".SH VERBS\n");
	for (const struct verb *v = verbs; v->name; v++) {
		buf_puts(out, ".TP\n\\fBvitrine\\-");
		put(out, v->name);
		buf_puts(out, "\\fR(1)\n");
		put(out, v->summary);
		buf_puts(out, ".\n");
	}
	put_exit_codes(out);
	buf_puts(out, ".SH FILES\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		buf_puts(out, ".TP\n");
		put(out, files[i].name);
		buf_putc(out, '\n');
		put(out, files[i].meaning);
		buf_puts(out, ".\n");
	}
	buf_puts(out, ".SH ENVIRONMENT\n.TP\nNO_COLOR\nWhen set and not empty, nothing is printed "
		      "in colour.\n");
}

void cli_man_page(const struct verb *v, struct buf *out)
{
	_free_ char *title = NULL;

	if (v == NULL) {
		main_page(out);
		return;
	}
	title = mem_fmt("vitrine-%s", v->name);
	put_head(out, title, v->summary);
	buf_puts(out, ".SH SYNOPSIS\n");
	put_usage(out, v->usage);
	if (v->text && *v->text) {
		buf_puts(out, ".SH DESCRIPTION\n");
		put_text(out, v->text);
	}
	if (v->opts && v->opts->name)
		buf_puts(out, ".SH OPTIONS\n");
	for (const struct opt *o = v->opts; o && o->name; o++)
		put_option(out, o);
	put_exit_codes(out);
	buf_puts(out, ".SH SEE ALSO\n\\fBvitrine\\fR(1)\n");
}
