/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg_keys.c - which entries of a git configuration do no harm, and which name something; see gitcfg.h
 *
 * The one decision about keys, for all that reads a configuration from inside. A key is judged by what git can execute
 * because of it. What is harmless is a list, not a search for harm: a key that is not in `allowed` is an objection. The
 * families of keys that run something (filter.*, diff.*, merge.*, alias.*, ...) are open-ended and grow with git.
 *
 * commit.gpgSign and its like are in the list: they run the program that the user's own configuration names, with the
 * user's own key. Left out though their names sound like data:
 *   rebase.instructionFormat    becomes lines of a list of steps, of which one may be "exec"
 *   branch.*.mergeOptions, pull.twohead, pull.octopus    a merge strategy is a program git-merge-NAME
 *   remotes.*, remote.*.vcs, url.*    a remote that has no URL is its name, and "helper::address" runs a helper
 *   merge.tool, diff.tool, help.autoCorrect    choose what is run
 * Left out though they run nothing: what makes a later push or clean-up destructive (remote.*.mirror, remote.*.push,
 * clean.requireForce, gc.pruneExpire, gc.reflogExpire), what weakens a check (http.sslVerify, core.protectNTFS, protocol.*,
 * core.ignoreStat, core.trustctime, core.checkStat, transfer.credentialsInUrl) and what writes elsewhere
 * (format.outputDirectory). Checks that a user may have ordered for all repositories (fsckObjects, verifySignatures) may be
 * switched on, not off.
 */
#include "base/buf.h"
#include "view/gitcfg.h"

/* What a value may be. */
enum rule {
	V_ANY,  /* text that git only shows or compares */
	V_BOOL, /* true, false, yes, no, on, off, or nothing */
	V_TRUE, /* a check: it may be switched on */
	V_NUMBER,
	V_WORD,     /* letters, digits, - . _ only: no path, no command, no "!" */
	V_URL,      /* a transport built into git, or a path */
	V_FILE,     /* a file to read, below the work tree */
	V_WORKTREE, /* a path that stays in the workspace */
	V_NAMED,    /* text, of a subsection that cannot be taken for an address: see is_name() */
};

static const struct allow {
	char section[16]; /* no pointers: they would cost every start of the program */
	bool has_sub;
	enum rule rule;
	char keys[160]; /* words; "*": any */
} allowed[] = {
	{ "add", false, V_BOOL, "ignoreerrors" },
	{ "advice", false, V_BOOL, "*" },
	{ "am", false, V_BOOL, "keepcr threeway" },
	{ "apply", false, V_WORD, "ignorewhitespace whitespace" },
	{ "author", false, V_ANY, "name email" },
	{ "blame", false, V_BOOL,
	  "blankboundary markignoredlines markunblamablelines showemail showroot" },
	{ "blame", false, V_ANY, "coloring date" },
	{ "blame", false, V_FILE, "ignorerevsfile" },
	/* A remote may be given as its URL. */
	{ "branch", true, V_URL, "remote pushremote" },
	{ "branch", true, V_ANY, "merge description gh-merge-base vscode-merge-base" },
	{ "branch", true, V_WORD, "rebase" },
	{ "branch", false, V_WORD, "autosetupmerge autosetuprebase" },
	{ "branch", false, V_ANY, "sort" },
	{ "checkout", false, V_ANY, "defaultremote" },
	{ "checkout", false, V_BOOL, "guess" },
	{ "checkout", false, V_WORD, "workers thresholdforparallelism" },
	{ "color", false, V_WORD, "*" },
	{ "color", true, V_ANY, "*" },
	{ "column", false, V_ANY, "*" },
	{ "commit", false, V_BOOL, "gpgsign status" },
	{ "commit", false, V_WORD, "cleanup verbose" },
	{ "commit", false, V_FILE, "template" },
	{ "commitgraph", false, V_WORD, "generationversion maxnewfilters readchangedpaths" },
	{ "committer", false, V_ANY, "name email" },
	{ "core", false, V_BOOL,
	  "bare filemode ignorecase precomposeunicode symlinks quotepath commitgraph "
	  "multipackindex longpaths sparsecheckout sparsecheckoutcone" },
	{ "core", false, V_BOOL,
	  "fscache fsyncobjectfiles preloadindex splitindex usereplacerefs "
	  "warnambiguousrefs" },
	{ "core", false, V_NUMBER,
	  "repositoryformatversion bigfilethreshold deltabasecachelimit packedgitlimit "
	  "packedgitwindowsize" },
	{ "core", false, V_WORD,
	  "logallrefupdates autocrlf safecrlf eol abbrev compression loosecompression "
	  "untrackedcache fsyncmethod hidedotfiles" },
	{ "core", false, V_WORD, "filesreflocktimeout packedrefstimeout createobject" },
	{ "core", false, V_ANY, "fsync notesref whitespace" },
	/* Patterns, as in .gitignore, which everybody inside writes. */
	{ "core", false, V_FILE, "excludesfile" },
	{ "core", false, V_WORKTREE, "worktree" },
	{ "diff", false, V_BOOL,
	  "autorefreshindex indentheuristic mnemonicprefix noprefix relative suppressblankempty" },
	{ "diff", false, V_WORD,
	  "algorithm colormoved context ignoresubmodules interhunkcontext renamelimit renames "
	  "statgraphwidth submodule" },
	{ "diff", false, V_ANY, "colormovedws dirstat wordregex wserrorhighlight" },
	{ "diff", true, V_BOOL, "binary cachetextconv" },
	{ "diff", true, V_ANY, "funcname wordregex xfuncname" },
	{ "difftool", false, V_BOOL, "prompt trustexitcode" },
	{ "extensions", false, V_WORD, "objectformat compatobjectformat refstorage" },
	{ "extensions", false, V_URL, "partialclone" },
	/* config.worktree is held to this list as well. */
	{ "extensions", false, V_BOOL, "preciousobjects relativeworktrees worktreeconfig" },
	{ "feature", false, V_BOOL, "experimental manyfiles" },
	{ "fetch", false, V_BOOL, "prune prunetags showforcedupdates writecommitgraph" },
	{ "fetch", false, V_TRUE, "fsckobjects" },
	{ "fetch", false, V_WORD,
	  "negotiationalgorithm output parallel recursesubmodules unpacklimit" },
	{ "format", false, V_BOOL, "numbered signoff" },
	{ "format", false, V_ANY, "pretty" },
	{ "gc", false, V_BOOL, "autodetach cruftpacks writecommitgraph" },
	{ "gc", false, V_WORD,
	  "aggressivedepth aggressivewindow auto autopacklimit bigpackthreshold packrefs" },
	{ "grep", false, V_BOOL, "column extendedregexp fullname linenumber" },
	{ "grep", false, V_WORD, "patterntype threads" },
	{ "gui", false, V_WORD, "encoding wmstate" },
	{ "http", false, V_NUMBER, "lowspeedlimit lowspeedtime maxrequests postbuffer" },
	{ "http", false, V_ANY, "version" },
	{ "i18n", false, V_WORD, "commitencoding logoutputencoding" },
	{ "index", false, V_WORD,
	  "recordendofindexentries recordoffsettable skiphash sparse threads version" },
	{ "init", false, V_ANY, "defaultbranch" },
	{ "interactive", false, V_BOOL, "singlekey" },
	{ "lfs", false, V_NUMBER, "repositoryformatversion" },
	{ "lfs", true, V_WORD, "access locksverify" },
	{ "log", false, V_BOOL, "abbrevcommit follow mailmap showroot showsignature" },
	{ "log", false, V_ANY,
	  "date decorate diffmerges excludedecoration graphcolors initialdecorationset" },
	{ "mailmap", false, V_FILE, "file" },
	{ "mailmap", false, V_ANY, "blob" },
	{ "maintenance", false, V_WORD, "auto strategy" },
	{ "merge", false, V_BOOL, "autostash branchdesc defaulttoupstream renormalize" },
	{ "merge", false, V_TRUE, "verifysignatures" },
	{ "merge", false, V_WORD,
	  "conflictstyle directoryrenames ff log renamelimit renames stat verbosity" },
	{ "merge", true, V_ANY, "name" },
	{ "mergetool", false, V_BOOL,
	  "hideresolved keepbackup keeptemporaries prompt writetotemp" },
	{ "notes", false, V_ANY, "displayref mergestrategy rewritemode rewriteref" },
	{ "pack", false, V_WORD,
	  "compression deltacachelimit deltacachesize depth indexversion packsizelimit threads "
	  "usebitmaps usesparse window windowmemory writereverseindex" },
	{ "pager", false, V_BOOL, "*" },
	{ "pretty", false, V_ANY, "*" },
	{ "protocol", false, V_NUMBER, "version" },
	{ "pull", false, V_WORD, "ff rebase" },
	{ "push", false, V_BOOL,
	  "autosetupremote followtags negotiate usebitmaps useforceifincludes" },
	{ "push", false, V_WORD, "default gpgsign recursesubmodules" },
	{ "rebase", false, V_BOOL,
	  "abbreviatecommands autosquash autostash forkpoint reschedulefailedexec stat "
	  "updaterefs" },
	{ "rebase", false, V_WORD, "backend missingcommitscheck" },
	{ "receive", false, V_WORD,
	  "autogc denycurrentbranch denydeletecurrent denydeletes denynonfastforwards "
	  "unpacklimit" },
	{ "receive", false, V_TRUE, "fsckobjects" },
	{ "remote", true, V_URL, "url pushurl" },
	{ "remote", true, V_ANY, "fetch gh-resolved" },
	{ "remote", true, V_BOOL, "prune prunetags skipdefaultupdate skipfetchall" },
	{ "remote", true, V_WORD, "followremotehead tagopt" },
	{ "remote", true, V_NAMED, "partialclonefilter promisor" },
	{ "remote", false, V_URL, "pushdefault" },
	{ "repack", false, V_BOOL, "updateserverinfo usedeltabaseoffset writebitmaps" },
	{ "rerere", false, V_BOOL, "autoupdate enabled" },
	{ "revert", false, V_BOOL, "reference" },
	{ "stash", false, V_BOOL, "showincludeuntracked showpatch showstat" },
	{ "status", false, V_WORD, "*" },
	{ "submodule", true, V_URL, "url" },
	{ "submodule", true, V_BOOL, "active shallow" },
	{ "submodule", true, V_ANY, "branch path" },
	{ "submodule", true, V_WORD, "fetchrecursesubmodules ignore update" },
	{ "submodule", false, V_ANY, "active" },
	{ "submodule", false, V_BOOL, "propagatebranches recurse" },
	{ "submodule", false, V_WORD, "alternateerrorstrategy alternatelocation fetchjobs" },
	{ "tag", false, V_BOOL, "forcesignannotated gpgsign" },
	{ "tag", false, V_ANY, "sort" },
	{ "transfer", false, V_TRUE, "fsckobjects" },
	{ "transfer", false, V_NUMBER, "unpacklimit" },
	{ "uploadpack", false, V_BOOL,
	  "allowanysha1inwant allowfilter allowreachablesha1inwant allowrefinwant "
	  "allowtipsha1inwant" },
	{ "user", false, V_ANY, "name email" },
	{ "user", false, V_BOOL, "useconfigonly" },
	{ "versionsort", false, V_ANY, "suffix" },
	{ "worktree", false, V_BOOL, "guessremote userelativepaths" },
};

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

static bool is_word_value(const char *v)
{
	return v[strspn(v, WORD_CHARS)] == '\0';
}

static bool is_true_value(const char *v)
{
	static const char *const words[] = { "true", "yes", "on", "1" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(v, words[i]) == 0)
			return true;
	return false;
}

static bool is_bool_value(const char *v)
{
	static const char *const words[] = { "false", "no", "off", "0", "" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(v, words[i]) == 0)
			return true;
	return is_true_value(v);
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

/* Relative to the top of the work tree, and not above it. Links on the way are no matter: git reads a list of commits, of
 * names or a text there, and shows it to nobody but the user. */
static bool is_file_value(const char *v)
{
	if (v[0] == '/' || v[0] == '~' || v[0] == ':' || v[0] == '%')
		return false;
	for (const char *p = v; p; p = strchr(p, '/'), p = p ? p + 1 : NULL)
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return false;
	return true;
}

/* git fetches from a remote of this name without being asked, and where no URL is given the name is the URL. */
static bool is_name(const char *sub)
{
	return sub && sub[0] && sub[0] != '-' && sub[strspn(sub, WORD_CHARS "/")] == '\0';
}

struct objection {
	gitcfg_path_fn is_beneath;
	void *arg;
	char *why;
};

static bool value_ok(const struct objection *o, enum rule rule, const struct gitcfg_item *it)
{
	const char *v = it->value;

	if (v == NULL)
		return rule == V_BOOL || rule == V_TRUE || (rule == V_NAMED && is_name(it->sub));
	switch (rule) {
	case V_ANY:
		return true;
	case V_BOOL:
		return is_bool_value(v);
	case V_TRUE:
		return is_true_value(v);
	case V_NUMBER:
		return is_number_value(v);
	case V_WORD:
		return is_word_value(v);
	case V_URL:
		return is_url_value(v);
	case V_FILE:
		return is_file_value(v);
	case V_NAMED:
		return is_name(it->sub);
	case V_WORKTREE:
		return o->is_beneath && o->is_beneath(o->arg, v);
	}
	return false;
}

static bool has_key(const char *keys, const char *key)
{
	size_t n = strlen(key);

	if (str_eq(keys, "*"))
		return true;
	for (const char *p = keys; *p; p += *p == ' ') {
		size_t len = strcspn(p, " ");

		if (len == n && memcmp(p, key, n) == 0)
			return true;
		p += len;
	}
	return false;
}

static bool is_allowed(const struct objection *o, const struct gitcfg_item *it, bool *ret_is_known)
{
	*ret_is_known = false;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		const struct allow *a = &allowed[i];

		if (!str_eq(a->section, it->section) || a->has_sub != (it->sub != NULL) ||
		    !has_key(a->keys, it->key))
			continue;
		if (value_ok(o, a->rule, it))
			return true;
		*ret_is_known = true;
	}
	return false;
}

static int check_item(void *arg, const struct gitcfg_item *it)
{
	struct objection *o = arg;
	struct buf text = BUF(4 * KIB);
	bool is_known;

	if (is_allowed(o, it, &is_known))
		return 0;
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
	const struct objection o = { 0 };
	bool is_known;

	return is_allowed(&o, it, &is_known);
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

static bool may_stay(void *arg, const struct gitcfg_item *it)
{
	bool is_known;

	return is_allowed(arg, it, &is_known);
}

bool gitcfg_rest(const char *text, size_t n, gitcfg_path_fn is_beneath, void *arg, struct buf *ret)
{
	struct objection o = { .is_beneath = is_beneath, .arg = arg };
	_free_ char *why = NULL;

	if (gitcfg_cut(text, n, may_stay, &o, ret) < 0)
		return false;
	/* Whatever was cut, what is left is judged like any other. */
	why = gitcfg_objection(buf_cstr(ret), ret->n, is_beneath, arg);
	return why == NULL;
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
