/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg.c - the user's own git settings, as they may be seen inside; see homecfg.h
 *
 * The keys are those that make git behave as at home: who commits, what a new branch is called, how output looks, what
 * `pull` and `push` mean. Left out: credentials and what finds them, every key that names a command, a file or a
 * directory, and signing with a key, which is not inside. Included files are followed, because the address for work often
 * stands in one.
 */
#include "view/homecfg.h"

#include "base/path.h"
#include "base/redact.h"
#include "view/gitcfg.h"

#define DEPTH_MAX 4
#define FILES_MAX 64 /* included by a configuration and what it includes */

static const struct git_key {
	char section[12]; /* no pointers: they would cost every start of the program */
	char key[24];     /* empty: any */
	enum homecfg_form form;
} git_keys[] = {
	{ "user", "name", FORM_NAME },
	{ "user", "email", FORM_NAME },
	{ "user", "useconfigonly", FORM_BOOL },
	{ "author", "name", FORM_NAME },
	{ "author", "email", FORM_NAME },
	{ "committer", "name", FORM_NAME },
	{ "committer", "email", FORM_NAME },
	{ "format", "signoff", FORM_BOOL },
	{ "format", "pretty", FORM_TEXT },
	{ "pretty", "", FORM_TEXT },
	{ "init", "defaultbranch", FORM_WORD },
	{ "commit", "cleanup", FORM_WORD },
	{ "commit", "status", FORM_BOOL },
	{ "commit", "verbose", FORM_WORD },
	{ "core", "abbrev", FORM_WORD },
	{ "core", "autocrlf", FORM_WORD },
	{ "core", "commentchar", FORM_TEXT },
	{ "core", "eol", FORM_WORD },
	{ "core", "precomposeunicode", FORM_BOOL },
	{ "core", "quotepath", FORM_BOOL },
	{ "core", "safecrlf", FORM_WORD },
	{ "core", "untrackedcache", FORM_WORD },
	{ "core", "whitespace", FORM_TEXT },
	{ "advice", "", FORM_BOOL },
	{ "apply", "whitespace", FORM_WORD },
	{ "blame", "coloring", FORM_WORD },
	{ "blame", "date", FORM_WORD },
	{ "branch", "autosetupmerge", FORM_WORD },
	{ "branch", "autosetuprebase", FORM_WORD },
	{ "branch", "sort", FORM_WORD },
	{ "checkout", "defaultremote", FORM_WORD },
	{ "checkout", "guess", FORM_BOOL },
	{ "color", "", FORM_TEXT },
	{ "column", "", FORM_TEXT },
	{ "diff", "algorithm", FORM_WORD },
	{ "diff", "colormoved", FORM_WORD },
	{ "diff", "context", FORM_NUMBER },
	{ "diff", "mnemonicprefix", FORM_BOOL },
	{ "diff", "noprefix", FORM_BOOL },
	{ "diff", "renamelimit", FORM_NUMBER },
	{ "diff", "renames", FORM_WORD },
	{ "diff", "submodule", FORM_WORD },
	{ "fetch", "parallel", FORM_NUMBER },
	{ "fetch", "prune", FORM_BOOL },
	{ "fetch", "prunetags", FORM_BOOL },
	{ "grep", "linenumber", FORM_BOOL },
	{ "grep", "patterntype", FORM_WORD },
	{ "http", "postbuffer", FORM_NUMBER },
	{ "http", "version", FORM_TEXT },
	{ "log", "abbrevcommit", FORM_BOOL },
	{ "log", "date", FORM_TEXT },
	{ "log", "decorate", FORM_WORD },
	{ "log", "follow", FORM_BOOL },
	{ "merge", "conflictstyle", FORM_WORD },
	{ "merge", "ff", FORM_WORD },
	{ "merge", "log", FORM_WORD },
	{ "merge", "stat", FORM_BOOL },
	{ "pack", "threads", FORM_NUMBER },
	{ "pull", "ff", FORM_WORD },
	{ "pull", "rebase", FORM_WORD },
	{ "push", "autosetupremote", FORM_BOOL },
	{ "push", "default", FORM_WORD },
	{ "push", "followtags", FORM_BOOL },
	{ "rebase", "abbreviatecommands", FORM_BOOL },
	{ "rebase", "autosquash", FORM_BOOL },
	{ "rebase", "autostash", FORM_BOOL },
	{ "rebase", "missingcommitscheck", FORM_WORD },
	{ "rebase", "stat", FORM_BOOL },
	{ "rebase", "updaterefs", FORM_BOOL },
	{ "rerere", "autoupdate", FORM_BOOL },
	{ "rerere", "enabled", FORM_BOOL },
	{ "stash", "showpatch", FORM_BOOL },
	{ "stash", "showstat", FORM_BOOL },
	{ "status", "branch", FORM_BOOL },
	{ "status", "relativepaths", FORM_BOOL },
	{ "status", "short", FORM_BOOL },
	{ "status", "showstash", FORM_BOOL },
	{ "status", "showuntrackedfiles", FORM_WORD },
	{ "status", "submodulesummary", FORM_WORD },
	{ "submodule", "recurse", FORM_BOOL },
	{ "tag", "sort", FORM_WORD },
};

/* Subcommands that run no program that their words could name, each in blanks. */
static const char alias_words[] =
	" add am blame branch cat-file checkout cherry cherry-pick clean commit count-objects "
	"describe diff fetch for-each-ref init log ls-files ls-tree merge merge-base mv notes pull "
	"push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog "
	"show "
	"show-branch show-ref stash status switch tag whatchanged worktree ";
/* Options of these that do name one. */
static const char *const alias_stops[] = { "-x",
					   "--exec",
					   "--ext-diff",
					   "--textconv",
					   "-c",
					   "--upload-pack",
					   "--receive-pack",
					   "--config",
					   "-O",
					   "--open-files",
					   "--pickaxe-all",
					   "--output",
					   "-s=",
					   "--strategy=ext",
					   NULL };

static bool is_plain_alias(const char *v)
{
	size_t n = strcspn(v, " \t");
	_free_ char *first = mem_fmt(" %.*s ", (int)n, v);

	if (strpbrk(v, "!`$\n\r") || strstr(alias_words, first) == NULL)
		return false;
	for (const char *p = v + n; *p;) {
		p += strspn(p, " \t\"'");
		for (const char *const *s = alias_stops; *s; s++)
			if (str_starts(p, *s))
				return false;
		p += strcspn(p, " \t");
	}
	return true;
}

struct git_reader {
	const struct homecfg_place *place;
	const char *path; /* of the file that is read */
	struct buf *out;
	int depth;
	unsigned *n_files; /* that were included, by any file */
};

static void put_entry(struct buf *out, const struct gitcfg_item *it, const char *sub,
		      const char *value)
{
	buf_printf(out, "[%s", it->section);
	if (sub) {
		buf_putc(out, ' ');
		homecfg_quote(out, sub);
	}
	buf_printf(out, "]\n\t%s = ", it->key);
	homecfg_quote(out, value);
	buf_putc(out, '\n');
}

/* "git@HOST:" and "HOST:": names for ssh, without a password. */
static bool put_scp(const char *v, struct buf *out)
{
	const char *host = str_starts(v, "git@") ? v + 4 : v;
	size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

	if (n == 0 || host[0] == '-' || host[n] != ':' || strchr(host, '@') || strstr(host, "::") ||
	    host[n + 1] == '-' || homecfg_is_token(host + n, strlen(host + n)) ||
	    strpbrk(host, " \t\r\n\"'\\`?#"))
		return false;
	buf_puts(out, v);
	return true;
}

static bool put_git_url(const char *v, struct buf *out)
{
	return strstr(v, "://") ? homecfg_value(FORM_URL, v, out) : put_scp(v, out);
}

/* [url "BASE"] insteadOf = PREFIX */
static void put_instead(struct git_reader *r, const struct gitcfg_item *it)
{
	_cleanup_(buf_done) struct buf base = BUF(4 * KIB), prefix = BUF(4 * KIB);

	if (it->sub && it->value && put_git_url(it->sub, &base) && put_git_url(it->value, &prefix))
		put_entry(r->out, it, buf_cstr(&base), buf_cstr(&prefix));
}

/* As git resolves it: "~/" is the home, what is relative lies beside the file. */
static char *included_path(const struct git_reader *r, const char *text)
{
	_free_ char *dir = path_parent(r->path);

	return str_starts(text, "~/") ? path_join(r->place->home, text + 2) : path_join(dir, text);
}

/* "gitdir:PATTERN", about the workspace as the repository: a pattern that ends in a slash means all below it. Other
 * conditions are taken not to hold. */
static bool holds(const struct git_reader *r, const char *condition)
{
	bool is_any_case = str_starts(condition, "gitdir/i:");
	const char *p = is_any_case                        ? condition + 9
			: str_starts(condition, "gitdir:") ? condition + 7
							   : NULL;
	_free_ char *git = mem_fmt("%s/.git/", r->place->workspace);
	_free_ char *want = NULL;

	if (p == NULL || strpbrk(p, "*?["))
		return false;
	if (str_starts(p, "~/"))
		want = mem_fmt("%s/%s", r->place->home, p + 2);
	else if (p[0] == '/')
		want = mem_str(p);
	else
		return false;
	if (!str_ends(want, "/"))
		return is_any_case ? strncasecmp(git, want, strlen(git) - 1) == 0 &&
					     strlen(want) == strlen(git) - 1
				   : strlen(want) == strlen(git) - 1 && str_starts(git, want);
	return is_any_case ? strncasecmp(git, want, strlen(want)) == 0 : str_starts(git, want);
}

static int git_item(void *arg, const struct gitcfg_item *it);

/* What cannot be read of an included file is not there. */
static void include(struct git_reader *r, const char *value)
{
	_cleanup_(buf_done) struct buf text = BUF(HOMECFG_MAX), out = BUF(HOMECFG_MAX);
	_free_ char *path = included_path(r, value);
	struct git_reader next = { r->place, path, &out, r->depth + 1, r->n_files };

	if (r->depth >= DEPTH_MAX || r->place->read == NULL || ++*r->n_files > FILES_MAX ||
	    !r->place->read(r->place->arg, path, &text))
		return;
	if (gitcfg_read(buf_cstr(&text), text.n, GITCFG_GIT, git_item, &next) == 0 && !out.is_over)
		buf_add(r->out, out.p, out.n);
}

static const struct git_key *find_key(const struct gitcfg_item *it)
{
	for (size_t i = 0; i < ARRAY_LEN(git_keys); i++)
		if (str_eq(git_keys[i].section, it->section) &&
		    (git_keys[i].key[0] == '\0' || str_eq(git_keys[i].key, it->key)))
			return &git_keys[i];
	return NULL;
}

static int git_item(void *arg, const struct gitcfg_item *it)
{
	_cleanup_(buf_done) struct buf value = BUF(4 * KIB);
	const struct git_key *k = find_key(it);
	struct git_reader *r = arg;

	if (str_eq(it->section, "include") && it->sub == NULL && str_eq(it->key, "path")) {
		if (it->value)
			include(r, it->value);
	} else if (str_eq(it->section, "includeif") && it->sub && str_eq(it->key, "path")) {
		if (it->value && holds(r, it->sub))
			include(r, it->value);
	} else if (str_eq(it->section, "url")) {
		if (str_eq(it->key, "insteadof") || str_eq(it->key, "pushinsteadof"))
			put_instead(r, it);
	} else if (str_eq(it->section, "alias") && it->sub == NULL) {
		if (it->value && is_plain_alias(it->value) &&
		    homecfg_value(FORM_TEXT, it->value, &value))
			put_entry(r->out, it, NULL, buf_cstr(&value));
	} else if (k && (it->sub == NULL || str_eq(it->section, "color"))) {
		/* "[color "diff"]" is git's own way to write color.diff.*: its names are words. */
		if (it->sub && !homecfg_value(FORM_WORD, it->sub, &value))
			return 0;
		value.n = 0;
		if (homecfg_value(it->value ? k->form : FORM_BOOL, it->value ? it->value : "true",
				  &value))
			put_entry(r->out, it, it->sub, buf_cstr(&value));
	}
	return 0;
}

int homecfg_git(const char *path, const char *text, size_t n, const struct homecfg_place *place,
		struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(HOMECFG_MAX);
	unsigned n_files = 0;
	struct git_reader r = { place, path, &b, 0, &n_files };

	if (n > HOMECFG_MAX || gitcfg_read(text, n, GITCFG_GIT, git_item, &r) != 0 || b.is_over)
		return -EINVAL;
	buf_add(out, b.p, b.n);
	return 0;
}
