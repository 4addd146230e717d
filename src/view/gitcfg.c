/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg.c - see gitcfg.h
 *
 * The grammar is that of git's own reader: sections "[a]" and "[a "b"]" (or "[a.b]", the old way), keys with an
 * optional value, quotes anywhere in a value, five escapes, "\" at the end of a line, "#" and ";" comments. The
 * strict grammar drops what `git config` never writes (continued lines, the old way, a key behind its section
 * header, bare tabs in values, carriage returns and other control characters), because other readers of these files differ from git
 * exactly there.
 *
 * What is harmless is a list, not a search for harm: a key that is not in `allowed` is an objection. The families of
 * keys that run something (filter.*, diff.*, merge.*, alias.*, ...) are open-ended and grow with git. Left out on
 * purpose though they run nothing: what makes a later push destructive (remote.*.mirror, remote.*.push) and what
 * makes git on the host fetch unasked (promisor remotes).
 */
#include "view/gitcfg.h"

#include "base/buf.h"

#define SECTION_MAX 1024
#define KEY_MAX 256
#define VALUE_MAX (16 * KIB)

struct cursor {
	const unsigned char *p, *end;
	const unsigned char *comment; /* behind the last value; NULL when there was none */
	bool is_strict;
};

static bool is_alpha(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static char to_lower(int c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

/* The next character as git sees it: CRLF is one newline, the end is a newline and then -1. */
static int peek(const struct cursor *c)
{
	if (c->p >= c->end)
		return -1;
	if (c->p[0] == '\r' && c->end - c->p > 1 && c->p[1] == '\n')
		return '\n';
	return c->p[0];
}

static int next(struct cursor *c)
{
	int ch = peek(c);

	if (ch >= 0)
		c->p += c->p[0] == '\r' && ch == '\n' ? 2 : 1;
	return ch;
}

static bool is_blank(int ch)
{
	return ch == ' ' || ch == '\t';
}

/* What isspace() is to git: no vertical tab, no form feed. */
static bool is_space(int ch)
{
	return is_blank(ch) || ch == '\n' || ch == '\r';
}

static void skip_line(struct cursor *c)
{
	int ch;

	do {
		ch = next(c);
	} while (ch >= 0 && ch != '\n');
}

/* Behind the blank that follows the section's name. */
static int read_sub(struct cursor *c, struct buf *sub)
{
	while (is_blank(peek(c)))
		(void)next(c);
	if (next(c) != '"')
		return -EINVAL;
	for (;;) {
		int ch = next(c);

		if (ch == '\\')
			ch = next(c);
		else if (ch == '"')
			return next(c) == ']' ? 0 : -EINVAL;
		if (ch < 0 || ch == '\n' || ch == '\0')
			return -EINVAL;
		buf_putc(sub, (char)ch);
	}
}

/* Behind "[". *ret_has_sub: there is a subsection, perhaps empty. */
static int read_section(struct cursor *c, struct buf *section, struct buf *sub, bool *ret_has_sub)
{
	section->n = sub->n = 0;
	*ret_has_sub = false;
	for (;;) {
		int ch = next(c);

		if (ch == ']')
			break;
		if (is_blank(ch)) {
			if (section->n == 0 || *ret_has_sub)
				return -EINVAL;
			*ret_has_sub = true;
			return read_sub(c, sub);
		}
		if (ch == '.' && !*ret_has_sub && !c->is_strict) {
			*ret_has_sub = true;
			continue;
		}
		if (!is_word(ch) && !(ch == '.' && *ret_has_sub))
			return -EINVAL;
		buf_putc(*ret_has_sub ? sub : section, to_lower(ch));
	}
	return section->n || *ret_has_sub ? 0 : -EINVAL;
}

static int unescape(struct cursor *c, struct buf *value)
{
	int ch = next(c);

	switch (ch) {
	case -1: /* the end counts as a newline */
	case '\n':
		return c->is_strict ? -EINVAL : 0;
	case 't':
		buf_putc(value, '\t');
		return 0;
	case 'b':
		buf_putc(value, '\b');
		return 0;
	case 'n':
		buf_putc(value, '\n');
		return 0;
	case '\\':
	case '"':
		buf_putc(value, (char)ch);
		return 0;
	default:
		return -EINVAL;
	}
}

struct value {
	struct buf *text;
	size_t keep; /* white space outside quotes counts only when something follows */
	bool is_quoted, has_tab;
};

/* A character that is part of the value, or a quote. */
static int put_char(struct cursor *c, struct value *v, int ch)
{
	int r = 0;

	/* Versions of git differ on what a bare tab within a value is. */
	if (c->is_strict && v->has_tab && v->keep)
		return -EINVAL;
	v->has_tab = false;
	if (ch == '"')
		v->is_quoted = !v->is_quoted;
	else if (ch == '\\')
		r = unescape(c, v->text);
	else
		buf_putc(v->text, (char)ch);
	v->keep = v->text->n;
	return r;
}

/* Behind "=". Up to and with the end of the line. */
static int read_value(struct cursor *c, struct buf *text)
{
	struct value v = { .text = text };
	int r = 0;

	text->n = 0;
	while (r == 0) {
		int ch = next(c);

		if (!v.is_quoted && (ch == '#' || ch == ';')) {
			c->comment = c->p - 1;
			skip_line(c);
			ch = '\n';
		}
		if (ch < 0 || ch == '\n')
			break;
		if (v.is_quoted || !is_space(ch)) {
			r = put_char(c, &v, ch);
			continue;
		}
		v.has_tab = v.has_tab || ch == '\t';
		if (v.keep)
			buf_putc(text, (char)ch);
	}
	text->n = v.keep;
	return v.is_quoted ? -EINVAL : r;
}

static int read_key(struct cursor *c, struct buf *key, struct buf *value, bool *ret_has_value)
{
	key->n = 0;
	while (is_word(peek(c)))
		buf_putc(key, to_lower(next(c)));
	while (is_blank(peek(c)))
		(void)next(c);
	*ret_has_value = peek(c) == '=';
	if (!*ret_has_value)
		return peek(c) == '\n' || peek(c) < 0 ? 0 : -EINVAL;
	(void)next(c);
	return read_value(c, value);
}

struct reader {
	struct buf section, sub, key, value;
	bool has_sub, has_section;
};

static void reader_done(struct reader *r)
{
	buf_done(&r->section);
	buf_done(&r->sub);
	buf_done(&r->key);
	buf_done(&r->value);
}

static const char *text_of(struct buf *b)
{
	/* n was set back by hand at places. */
	if (b->p)
		b->p[b->n] = '\0';
	return buf_cstr(b);
}

static int read_entry(struct cursor *c, struct reader *r, gitcfg_fn fn, void *arg)
{
	const unsigned char *at = c->p;
	bool has_value = false;
	struct gitcfg_item it;

	c->comment = NULL;
	/* Git lets a key stand before the first section, where it means nothing. */
	if ((c->is_strict && !r->has_section) || read_key(c, &r->key, &r->value, &has_value) < 0)
		return -EINVAL;
	if (r->section.is_over || r->sub.is_over || r->key.is_over || r->value.is_over)
		return -EINVAL;
	it = (struct gitcfg_item){ .section = text_of(&r->section),
				   .sub = r->has_sub ? text_of(&r->sub) : NULL,
				   .key = text_of(&r->key),
				   .value = has_value ? text_of(&r->value) : NULL,
				   .at = (const char *)at,
				   .comment = (const char *)c->comment,
				   .end = (const char *)c->p };
	return fn(arg, &it);
}

/* What only a hand or an attacker writes. */
static bool has_odd_bytes(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)text[i];

		if ((ch < 0x20 && ch != '\n' && ch != '\t') || ch == 0x7f)
			return true;
	}
	return false;
}

static int read_header(struct cursor *c, struct reader *r)
{
	if (read_section(c, &r->section, &r->sub, &r->has_sub) < 0)
		return -EINVAL;
	r->has_section = true;
	if (!c->is_strict)
		return 0;
	while (is_blank(peek(c)))
		(void)next(c);
	return peek(c) < 0 || peek(c) == '\n' ? 0 : -EINVAL;
}

int gitcfg_read(const char *text, size_t n, enum gitcfg_grammar grammar, gitcfg_fn fn, void *arg)
{
	struct cursor c = { .p = (const unsigned char *)text,
			    .is_strict = grammar == GITCFG_STRICT };
	_cleanup_(reader_done) struct reader r = { .section = BUF(SECTION_MAX),
						   .sub = BUF(SECTION_MAX),
						   .key = BUF(KEY_MAX),
						   .value = BUF(VALUE_MAX) };
	int ret = 0;

	c.end = c.p + n;
	if (c.is_strict && has_odd_bytes(text, n))
		return -EINVAL;
	if (!c.is_strict && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		c.p += 3;
	while (ret == 0 && peek(&c) >= 0) {
		int ch = peek(&c);

		if (is_space(ch)) {
			(void)next(&c);
		} else if (ch == '#' || ch == ';') {
			skip_line(&c);
		} else if (ch == '[') {
			(void)next(&c);
			ret = read_header(&c, &r);
		} else if (is_alpha(ch)) {
			ret = read_entry(&c, &r, fn, arg);
		} else {
			ret = -EINVAL;
		}
	}
	return ret;
}

/* What a value may be. */
enum rule {
	V_ANY,  /* text that git only shows or compares */
	V_BOOL, /* true, false, yes, no, on, off, or nothing */
	V_NUMBER,
	V_WORD,     /* letters, digits, - . _ only: no path, no command, no "!" */
	V_URL,      /* a transport built into git, or a path */
	V_WORKTREE, /* a path that stays in the workspace */
};

static const struct allow {
	char section[16]; /* no pointers: they would cost every start of the program */
	bool has_sub;
	char key[32]; /* empty: any */
	enum rule rule;
} allowed[] = {
	{ "user", false, "name", V_ANY },
	{ "user", false, "email", V_ANY },
	{ "remote", true, "url", V_URL },
	{ "remote", true, "pushurl", V_URL },
	{ "remote", true, "fetch", V_ANY },
	{ "remote", true, "prune", V_BOOL },
	{ "remote", true, "prunetags", V_BOOL },
	{ "remote", true, "skipdefaultupdate", V_BOOL },
	{ "remote", true, "skipfetchall", V_BOOL },
	{ "remote", true, "tagopt", V_WORD },
	{ "remote", true, "gh-resolved", V_ANY },
	{ "remote", false, "pushdefault", V_URL },
	/* A remote may be given as its URL, here and above. */
	{ "branch", true, "remote", V_URL },
	{ "branch", true, "pushremote", V_URL },
	{ "branch", true, "merge", V_ANY },
	{ "branch", true, "rebase", V_WORD },
	{ "branch", true, "description", V_ANY },
	{ "branch", true, "gh-merge-base", V_ANY },
	{ "branch", true, "vscode-merge-base", V_ANY },
	{ "branch", false, "autosetupmerge", V_WORD },
	{ "branch", false, "autosetuprebase", V_WORD },
	{ "branch", false, "sort", V_WORD },
	{ "core", false, "bare", V_BOOL },
	{ "core", false, "filemode", V_BOOL },
	{ "core", false, "repositoryformatversion", V_NUMBER },
	{ "core", false, "logallrefupdates", V_WORD },
	{ "core", false, "ignorecase", V_BOOL },
	{ "core", false, "precomposeunicode", V_BOOL },
	{ "core", false, "symlinks", V_BOOL },
	{ "core", false, "autocrlf", V_WORD },
	{ "core", false, "safecrlf", V_WORD },
	{ "core", false, "eol", V_WORD },
	{ "core", false, "quotepath", V_BOOL },
	{ "core", false, "abbrev", V_WORD },
	{ "core", false, "compression", V_WORD },
	{ "core", false, "untrackedcache", V_WORD },
	{ "core", false, "commitgraph", V_BOOL },
	{ "core", false, "multipackindex", V_BOOL },
	{ "core", false, "longpaths", V_BOOL },
	{ "core", false, "sparsecheckout", V_BOOL },
	{ "core", false, "sparsecheckoutcone", V_BOOL },
	{ "core", false, "worktree", V_WORKTREE },
	{ "index", false, "version", V_NUMBER },
	{ "index", false, "sparse", V_BOOL },
	{ "init", false, "defaultbranch", V_ANY },
	{ "extensions", false, "objectformat", V_WORD },
	{ "extensions", false, "compatobjectformat", V_WORD },
	{ "extensions", false, "refstorage", V_WORD },
	/* config.worktree is held to this list as well. */
	{ "extensions", false, "worktreeconfig", V_BOOL },
	{ "submodule", true, "url", V_URL },
	{ "submodule", true, "active", V_BOOL },
	{ "submodule", true, "path", V_ANY },
	{ "submodule", true, "branch", V_ANY },
	{ "submodule", true, "ignore", V_WORD },
	{ "submodule", true, "shallow", V_BOOL },
	{ "submodule", true, "update", V_WORD },
	{ "submodule", true, "fetchrecursesubmodules", V_WORD },
	{ "submodule", false, "active", V_ANY },
	{ "submodule", false, "recurse", V_BOOL },
	{ "pull", false, "rebase", V_WORD },
	{ "pull", false, "ff", V_WORD },
	{ "push", false, "default", V_WORD },
	{ "push", false, "autosetupremote", V_BOOL },
	{ "push", false, "followtags", V_BOOL },
	{ "fetch", false, "prune", V_BOOL },
	{ "fetch", false, "prunetags", V_BOOL },
	{ "fetch", false, "parallel", V_NUMBER },
	{ "merge", false, "ff", V_WORD },
	{ "merge", false, "conflictstyle", V_WORD },
	{ "rebase", false, "autosquash", V_BOOL },
	{ "rebase", false, "autostash", V_BOOL },
	{ "rebase", false, "updaterefs", V_BOOL },
	{ "rerere", false, "enabled", V_BOOL },
	{ "gc", false, "auto", V_NUMBER },
	{ "gc", false, "autodetach", V_BOOL },
	{ "receive", false, "denycurrentbranch", V_WORD },
	{ "receive", false, "denynonfastforwards", V_BOOL },
	{ "http", false, "postbuffer", V_NUMBER },
	{ "lfs", false, "repositoryformatversion", V_NUMBER },
	{ "color", false, "ui", V_WORD },
	{ "advice", false, "", V_BOOL },
};

static bool is_word_value(const char *v)
{
	for (; *v; v++)
		if (!is_word((unsigned char)*v) && *v != '.' && *v != '_')
			return false;
	return true;
}

static bool is_bool_value(const char *v)
{
	static const char *const words[] = {
		"true", "false", "yes", "no", "on", "off", "1", "0", ""
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(v, words[i]) == 0)
			return true;
	return false;
}

static bool is_number_value(const char *v)
{
	size_t digits = strspn(v, "0123456789");

	return digits > 0 && digits < 19 &&
	       (v[digits] == '\0' || (strchr("kmg", v[digits] | 0x20) && !v[digits + 1]));
}

/* "helper::address" and unknown schemes run git-remote-helper; a leading "-", also of a host, is an option to ssh. */
static bool is_url_value(const char *v)
{
	static const char *const schemes[] = { "https", "http", "ssh", "git", "file" };
	const char *colons = strstr(v, "://");

	if (v[0] == '\0' || v[0] == '-' || strstr(v, "::") || strstr(v, "@-") || strstr(v, ":-"))
		return false;
	for (const char *p = v; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	if (colons == NULL)
		return true;
	if (colons[3] == '-')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strlen(schemes[i]) == (size_t)(colons - v) &&
		    strncmp(v, schemes[i], (size_t)(colons - v)) == 0)
			return true;
	return false;
}

struct objection {
	gitcfg_path_fn is_beneath;
	void *arg;
	char *why;
};

static bool value_ok(const struct objection *o, enum rule rule, const char *v)
{
	if (v == NULL)
		return rule == V_BOOL;
	switch (rule) {
	case V_ANY:
		return true;
	case V_BOOL:
		return is_bool_value(v);
	case V_NUMBER:
		return is_number_value(v);
	case V_WORD:
		return is_word_value(v);
	case V_URL:
		return is_url_value(v);
	case V_WORKTREE:
		return o->is_beneath && o->is_beneath(o->arg, v);
	}
	return false;
}

static int check_item(void *arg, const struct gitcfg_item *it)
{
	struct objection *o = arg;
	struct buf text = BUF(4 * KIB);
	bool is_known = false;

	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		const struct allow *a = &allowed[i];

		if (!str_eq(a->section, it->section) || a->has_sub != (it->sub != NULL))
			continue;
		if (a->key[0] && !str_eq(a->key, it->key))
			continue;
		if (value_ok(o, a->rule, it->value))
			return 0;
		is_known = true;
	}
	buf_printf(&text, "git config %s %s.", is_known ? "value of" : "key", it->section);
	if (it->sub) {
		buf_esc(&text, it->sub, strnlen(it->sub, 64));
		buf_putc(&text, '.');
	}
	buf_puts(&text, it->key);
	o->why = buf_take(&text);
	return 1;
}

bool gitcfg_is_harmless(const struct gitcfg_item *it)
{
	struct objection o = { 0 };

	(void)check_item(&o, it);
	if (o.why == NULL)
		return true;
	free(o.why);
	return false;
}

char *gitcfg_objection(const char *text, size_t n, gitcfg_path_fn is_beneath, void *arg)
{
	struct objection o = { .is_beneath = is_beneath, .arg = arg };
	int r;

	if (n > GITCFG_NEW_MAX)
		return mem_str("git config larger than 64 KiB");
	r = gitcfg_read(text, n, GITCFG_STRICT, check_item, &o);
	if (r < 0)
		return mem_str("git config that cannot be read with certainty");
	return o.why;
}

static const struct ref {
	char section[16]; /* no pointers: they would cost every start of the program */
	char key[24];     /* empty: any */
	enum gitcfg_ref ref;
} refs[] = {
	{ "core", "hookspath", GITCFG_REF_HOOKS },
	{ "init", "templatedir", GITCFG_REF_HOOKS },
	{ "include", "path", GITCFG_REF_INCLUDE },
	{ "includeif", "path", GITCFG_REF_INCLUDE },
	{ "core", "worktree", GITCFG_REF_WORKTREE },
	{ "core", "attributesfile", GITCFG_REF_FILE },
	{ "core", "fsmonitor", GITCFG_REF_COMMAND },
	{ "core", "sshcommand", GITCFG_REF_COMMAND },
	{ "core", "editor", GITCFG_REF_COMMAND },
	{ "core", "pager", GITCFG_REF_COMMAND },
	{ "core", "askpass", GITCFG_REF_COMMAND },
	{ "core", "gitproxy", GITCFG_REF_COMMAND },
	{ "core", "alternaterefscommand", GITCFG_REF_COMMAND },
	{ "sequence", "editor", GITCFG_REF_COMMAND },
	{ "hook", "command", GITCFG_REF_COMMAND },
	{ "filter", "", GITCFG_REF_COMMAND },
	{ "diff", "", GITCFG_REF_COMMAND },
	{ "difftool", "", GITCFG_REF_COMMAND },
	{ "merge", "driver", GITCFG_REF_COMMAND },
	{ "mergetool", "", GITCFG_REF_COMMAND },
	{ "guitool", "", GITCFG_REF_COMMAND },
	{ "browser", "", GITCFG_REF_COMMAND },
	{ "man", "", GITCFG_REF_COMMAND },
	{ "pager", "", GITCFG_REF_COMMAND },
	{ "gpg", "", GITCFG_REF_COMMAND },
	{ "credential", "helper", GITCFG_REF_COMMAND },
	{ "alias", "", GITCFG_REF_ALIAS },
	{ "trailer", "", GITCFG_REF_COMMAND },
	{ "interactive", "difffilter", GITCFG_REF_COMMAND },
	{ "remote", "uploadpack", GITCFG_REF_COMMAND },
	{ "remote", "receivepack", GITCFG_REF_COMMAND },
	{ "uploadpack", "packobjectshook", GITCFG_REF_COMMAND },
	{ "submodule", "update", GITCFG_REF_COMMAND },
	{ "tar", "command", GITCFG_REF_COMMAND },
	{ "imap", "tunnel", GITCFG_REF_COMMAND },
	{ "instaweb", "httpd", GITCFG_REF_COMMAND },
	{ "sendemail", "sendmailcmd", GITCFG_REF_COMMAND },
	{ "sendemail", "smtpserver", GITCFG_REF_COMMAND },
	{ "sendemail", "tocmd", GITCFG_REF_COMMAND },
	{ "sendemail", "cccmd", GITCFG_REF_COMMAND },
	{ "sendemail", "headercmd", GITCFG_REF_COMMAND },
	{ "svn", "authorsprog", GITCFG_REF_COMMAND },
	{ "lfs", "", GITCFG_REF_COMMAND },
};

enum gitcfg_ref gitcfg_refers(const struct gitcfg_item *it)
{
	if (it->value == NULL || it->value[0] == '\0')
		return GITCFG_REF_NONE;
	for (size_t i = 0; i < ARRAY_LEN(refs); i++)
		if (str_eq(refs[i].section, it->section) &&
		    (refs[i].key[0] == '\0' || str_eq(refs[i].key, it->key)))
			return refs[i].ref;
	return GITCFG_REF_NONE;
}
