/* SPDX-License-Identifier: Apache-2.0 */
/* policy/brokerrule.c - see brokerrule.h */
#include "policy/brokerrule.h"

#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"

#define WORDS_MAX 64

static void rule_done(struct broker_rule *r)
{
	free(r->url);
	free(r->ref);
	free(r->secret);
	for (size_t i = 0; i < r->n_words; i++)
		free(r->words[i]);
	free(r->words);
	free(r->text);
}

void broker_rules_done(struct broker_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		rule_done(&r->v[i]);
	free(r->v);
	*r = (struct broker_rules){ 0 };
}

/* ---- URLs ---- */

/* Nothing that a shell, a URL parser or a terminal could take for something else. */
static bool is_plain(const char *s)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "._~:/@+,=-";

	return s[0] && s[0] != '-' && s[strspn(s, ok)] == '\0' && strlen(s) <= 1024;
}

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || s[i] == '.' || s[i] == '-' || s[i] == '_'))
			return false;
	return n > 0 && s[0] != '-' && s[0] != '.';
}

/* [USER@]HOST[:PORT] of length n. A password in it would be a secret in the policy. */
static bool is_authority(const char *s, size_t n, bool may_have_user)
{
	const char *at = memchr(s, '@', n);
	size_t user = at ? (size_t)(at - s) : 0, host;
	const char *colon;

	if (at && (!may_have_user || !is_name(s, user)))
		return false;
	s += at ? user + 1 : 0;
	n -= at ? user + 1 : 0;
	colon = memchr(s, ':', n);
	host = colon ? (size_t)(colon - s) : n;
	for (size_t i = host + 1; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return is_name(s, host);
}

static bool has_dots(const char *path)
{
	return strstr(path, "/../") || str_ends(path, "/..") || strstr(path, "/./") ||
	       strstr(path, "//");
}

/* The part behind "SCHEME://": an authority and a path. */
static bool is_remote(const char *s, bool may_have_user)
{
	const char *slash = strchr(s, '/');

	return slash && slash[1] && is_authority(s, (size_t)(slash - s), may_have_user) &&
	       !has_dots(slash);
}

static bool is_loopback(const char *s)
{
	return str_starts(s, "127.0.0.1:") || str_starts(s, "127.0.0.1/") ||
	       str_starts(s, "localhost:") || str_starts(s, "localhost/");
}

static bool is_scp(const char *s)
{
	const char *at = strchr(s, '@'), *colon = strchr(s, ':');

	return at && colon && at < colon && colon[1] && colon[1] != ':' &&
	       !strchr(colon + 1, ':') && is_authority(s, (size_t)(colon - s), true) &&
	       !has_dots(colon);
}

static bool is_known_form(const char *url)
{
	if (str_starts(url, "https://"))
		return is_remote(url + 8, false);
	if (str_starts(url, "http://"))
		return is_loopback(url + 7) && is_remote(url + 7, false);
	if (str_starts(url, "ssh://"))
		return is_remote(url + 6, true);
	if (str_starts(url, "file://"))
		return path_is_clean(url + 7);
	return url[0] == '/' ? !has_dots(url) : is_scp(url);
}

char *broker_url(const char *url)
{
	size_t n;

	if (!is_plain(url) || !is_known_form(url))
		return NULL;
	if (str_starts(url, "file://"))
		url += 7;
	n = strlen(url);
	while (n > 1 && url[n - 1] == '/')
		n--;
	if (url[0] != '/' && n > 4 && memcmp(url + n - 4, ".git", 4) == 0)
		n -= 4;
	return mem_strn(url, n);
}

/* ---- refs ---- */

bool broker_is_ref(const char *ref)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+"
				 "/=-";
	size_t n = strlen(ref);

	if (!str_starts(ref, "refs/") || n > 250 || ref[strspn(ref, ok)] ||
	    strchr(ref + 5, '/') == NULL)
		return false;
	return !strstr(ref, "..") && !strstr(ref, "//") && !strstr(ref, "/.") &&
	       !strstr(ref, "/-") && !strstr(ref, ".lock") && ref[n - 1] != '/' &&
	       ref[n - 1] != '.';
}

/* * is any run of characters: only the last star is ever retried. */
static bool fits(const char *pattern, const char *s)
{
	const char *star = NULL, *resume = s;

	while (*s) {
		if (*pattern == '*') {
			star = pattern++;
			resume = s;
		} else if (*pattern == *s || *pattern == '?') {
			pattern++;
			s++;
		} else if (star) {
			pattern = star + 1;
			s = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

/* refs/heads/, refs/tags/ and so on: up to the second slash. */
static size_t space_length(const char *ref)
{
	const char *slash = str_starts(ref, "refs/") ? strchr(ref + 5, '/') : NULL;

	return slash ? (size_t)(slash - ref) + 1 : 0;
}

static bool ref_fits(const char *pattern, const char *ref)
{
	size_t n = space_length(pattern);

	return n > 0 && strncmp(pattern, ref, n) == 0 && fits(pattern, ref);
}

static int check_ref_pattern(const char *ref, struct err *e)
{
	_free_ char *plain = mem_str(ref);

	for (char *p = plain; *p; p++)
		if (*p == '*')
			*p = 'x';
	if (!broker_is_ref(plain) || memchr(ref, '*', space_length(plain)))
		return err_set(e, ERR_CONFIG, EINVAL,
			       "a ref is refs/heads/NAME or refs/tags/NAME; * stands for anything "
			       "behind that");
	return 0;
}

/* ---- parsing ---- */

static unsigned op_bit(const char *word)
{
	static const struct {
		const char *name;
		unsigned bit;
	} words[] = { { "create", BROKER_CREATE },   { "update", BROKER_UPDATE },
		      { "delete", BROKER_DELETE },   { "force", BROKER_FORCE },
		      { "approve", BROKER_APPROVE }, { "no-scan", BROKER_NO_SCAN } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i].name, word))
			return words[i].bit;
	return 0;
}

static unsigned ops_of(enum broker_kind kind)
{
	return kind == BROKER_PUSH ? BROKER_CREATE | BROKER_UPDATE | BROKER_DELETE | BROKER_FORCE |
					     BROKER_APPROVE | BROKER_NO_SCAN
	       : kind == BROKER_GH ? BROKER_APPROVE
				   : 0;
}

static bool is_secret_name(const char *s)
{
	return is_name(s, strlen(s)) && strlen(s) <= 64;
}

static int take_option(struct broker_rule *r, const char *word, struct err *e)
{
	unsigned bit = op_bit(word);

	if (str_starts(word, "secret=") && is_secret_name(word + 7)) {
		free(r->secret);
		r->secret = mem_str(word + 7);
		return 0;
	}
	if (r->kind == BROKER_GH && str_starts(word, "program=") && path_is_clean(word + 8) &&
	    r->n_words == 0) {
		r->words = mem_new(2, sizeof(*r->words));
		r->words[r->n_words++] = mem_str(word + 8);
		return 0;
	}
	if ((bit & ops_of(r->kind)) == 0)
		return err_set(e, ERR_CONFIG, EINVAL, "'%.40s' means nothing here%s", word,
			       r->kind == BROKER_PUSH ? "; known: create, update, delete, force, "
							"approve, no-scan, "
							"secret=NAME"
						      : "; known: secret=NAME");
	r->op |= bit;
	return 0;
}

static int take_repo(struct broker_rule *r, const char *word, struct err *e)
{
	const char *slash = strchr(word, '/');

	if (slash == NULL || !is_name(word, (size_t)(slash - word)) ||
	    !is_name(slash + 1, strlen(slash + 1)))
		return err_set(e, ERR_CONFIG, EINVAL, "a repository is OWNER/NAME");
	r->url = mem_str(word);
	return 0;
}

static int take_url(struct broker_rule *r, const char *word, struct err *e)
{
	r->url = broker_url(word);
	return r->url ? 0
		      : err_set(e, ERR_CONFIG, EINVAL,
				"'%.120s' is no URL the broker takes: https://HOST/PATH, "
				"ssh://[USER@]HOST/PATH, "
				"USER@HOST:PATH, or an absolute path; no password in it",
				word);
}

static int take_rule(struct broker_rule *r, char *const *words, size_t n, struct err *e)
{
	size_t at = 1;
	int x = n == 0                 ? err_set(e, ERR_CONFIG, EINVAL, "an empty rule")
		: r->kind == BROKER_GH ? take_repo(r, words[0], e)
				       : take_url(r, words[0], e);

	if (x == 0 && r->kind == BROKER_PUSH) {
		x = n < 2 ? err_set(e, ERR_CONFIG, EINVAL, "a push rule is URL REF [WORD...]")
			  : check_ref_pattern(words[1], e);
		if (x == 0)
			r->ref = mem_str(words[1]);
		at = 2;
	}
	for (; x == 0 && at < n; at++)
		x = take_option(r, words[at], e);
	if (!(r->op & (BROKER_CREATE | BROKER_UPDATE | BROKER_DELETE | BROKER_FORCE)))
		r->op |= BROKER_CREATE | BROKER_UPDATE;
	/* Who may rewrite a branch may move it. */
	if (r->op & BROKER_FORCE)
		r->op |= BROKER_UPDATE;
	return x;
}

/* true: a word in front of the program, taken. */
static bool take_leading(struct broker_rule *r, const char *word)
{
	bool *flag = str_eq(word, "checkout")  ? &r->is_checkout
		     : str_eq(word, "network") ? &r->has_network
					       : NULL;

	if (flag == NULL || *flag)
		return false;
	return *flag = true;
}

/* NAME=[checkout] [network] /PROGRAM WORD... */
static int take_command(struct broker_rule *r, char *const *words, size_t n, struct err *e)
{
	char *eq = n ? strchr(words[0], '=') : NULL;
	const char *first = eq ? eq + 1 : "";

	if (eq == NULL || !is_name(words[0], (size_t)(eq - words[0])) || eq - words[0] > 64)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "a command has a name of letters, digits, '.', '-' and '_'");
	r->url = mem_strn(words[0], (size_t)(eq - words[0]));
	r->words = mem_new(n + 1, sizeof(*r->words));
	for (size_t i = 0; i < n; i++) {
		const char *word = i ? words[i] : first;

		if (r->n_words || !take_leading(r, word))
			r->words[r->n_words++] = mem_str(word);
	}
	if (r->n_words == 0 || !path_is_clean(r->words[0]) || str_eq(r->words[0], "/"))
		return err_set(e, ERR_CONFIG, EINVAL,
			       "command '%s' needs the absolute path of its program", r->url);
	if (str_eq(r->words[r->n_words - 1], "...") && r->n_words < 3)
		return err_set(e, ERR_CONFIG, EINVAL,
			       "command '%s': '...' repeats the word before it", r->url);
	return 0;
}

static size_t split(char *text, char **words)
{
	size_t n = 0;

	for (char *p = text; *p && n < WORDS_MAX;) {
		p += strspn(p, " \t");
		if (*p == '\0')
			break;
		words[n++] = p;
		p += strcspn(p, " \t");
		if (*p)
			*p++ = '\0';
	}
	return n;
}

int broker_rules_add(struct broker_rules *r, enum broker_kind kind, const char *text, struct err *e)
{
	struct broker_rule rule = { .kind = kind, .text = mem_str(text) };
	_free_ char *copy = mem_str(text);
	char *words[WORDS_MAX];
	size_t n = split(copy, words);
	int x = 0;

	for (const char *p = text; *p && x == 0; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			x = err_set(e, ERR_CONFIG, EINVAL, "a control character");
	if (x == 0)
		x = kind == BROKER_COMMAND ? take_command(&rule, words, n, e)
					   : take_rule(&rule, words, n, e);
	if (x < 0) {
		rule_done(&rule);
		return err_wrap(e, x, "broker rule '%.120s'", text);
	}
	vec_reserve(r->v, r->n, r->cap);
	r->v[r->n++] = rule;
	return 0;
}

/* ---- asking ---- */

static bool is_about(const struct broker_rule *r, enum broker_kind kind, const char *url)
{
	return r->kind == kind && str_eq(r->url, url);
}

const struct broker_rule *broker_may_fetch(const struct broker_rules *r, const char *url)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_about(&r->v[i], BROKER_FETCH, url))
			return &r->v[i];
	return NULL;
}

const struct broker_rule *broker_names(const struct broker_rules *r, const char *url)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_about(&r->v[i], BROKER_FETCH, url) || is_about(&r->v[i], BROKER_PUSH, url))
			return &r->v[i];
	return NULL;
}

const struct broker_rule *broker_gh(const struct broker_rules *r, const char *repo)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_about(&r->v[i], BROKER_GH, repo))
			return &r->v[i];
	return NULL;
}

const struct broker_rule *broker_command(const struct broker_rules *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_about(&r->v[i], BROKER_COMMAND, name))
			return &r->v[i];
	return NULL;
}

const struct broker_rule *broker_may_push(const struct broker_rules *r, const char *url,
					  const char *ref, enum broker_op op)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_about(&r->v[i], BROKER_PUSH, url) && (r->v[i].op & op) &&
		    ref_fits(r->v[i].ref, ref))
			return &r->v[i];
	return NULL;
}

/* Options are only what the rule spells out; and what looks like nothing at all is nothing. */
static bool word_fits(const char *pattern, const char *arg)
{
	/* A pattern that names a directory does not lead out of it; one that is written with ".." does. */
	if (strstr(arg, "..") && strstr(pattern, "..") == NULL)
		return false;
	if (arg[0] == '-' && pattern[0] != '-')
		return false;
	return fits(pattern, arg);
}

static bool args_fit(char *const *words, size_t n_words, const char *const *argv, size_t n)
{
	for (size_t w = 0, a = 0;; w++) {
		const char *word = w < n_words ? words[w] : NULL;
		size_t len = word ? strlen(word) : 0;

		if (word == NULL)
			return a == n;
		if (str_eq(word, "...")) {
			while (a < n && word_fits(words[w - 1], argv[a]))
				a++;
			return a == n;
		}
		if (len > 2 && word[0] == '[' && word[len - 1] == ']') {
			_free_ char *inner = mem_strn(word + 1, len - 2);

			a += a < n && word_fits(inner, argv[a]);
			continue;
		}
		if (a == n || !word_fits(word, argv[a]))
			return false;
		a++;
	}
}

int broker_check_args(const struct broker_rule *r, const char *const *argv, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	for (size_t i = 0; i < n; i++)
		for (const char *p = argv[i]; *p; p++)
			if ((unsigned char)*p < 32 || *p == 127)
				return err_set(e, ERR_DENIED, EPERM,
					       "an argument holds a control character");
	if (args_fit(r->words + 1, r->n_words - 1, argv, n))
		return 0;
	for (size_t i = 1; i < r->n_words; i++)
		buf_printf(&b, " %s", r->words[i]);
	return err_set(e, ERR_DENIED, EPERM, "its arguments must look like '%s%.300s'", r->url,
		       buf_cstr(&b));
}
