/* SPDX-License-Identifier: Apache-2.0 */
/* policy/gitrule.c - see gitrule.h */
#include "policy/gitrule.h"
#include "base/str.h"
#include "policy/policy.h"

static void rule_done(struct git_rule *r)
{
	free(r->host);
	free(r->repo);
	free(r->ref);
	free(r->text);
}

void git_rules_done(struct git_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		rule_done(&r->v[i]);
	free(r->v);
	*r = (struct git_rules){ 0 };
}

static unsigned op_bit(struct str word)
{
	if (str_is(word, "create"))
		return GIT_CREATE;
	if (str_is(word, "update"))
		return GIT_UPDATE;
	return str_is(word, "delete") ? GIT_DELETE : 0;
}

static int parse_ops(struct str s, unsigned *ret, struct err *e)
{
	unsigned op = 0;

	for (;;) {
		size_t comma = str_find(s, ',');
		unsigned bit = op_bit(str_first(s, comma));

		if (bit == 0)
			return err_set(e, ERR_CONFIG, EINVAL,
				       "operations are create, update and delete");
		op |= bit;
		if (comma == s.n)
			break;
		s = str_from(s, comma + 1);
	}
	*ret = op;
	return 0;
}

/* HOST/PATH into host and glob. */
static int parse_repo(struct str s, struct git_rule *r, struct err *e)
{
	size_t slash = str_find(s, '/');

	if (slash == 0 || slash + 1 >= s.n)
		return err_set(e, ERR_CONFIG, EINVAL, "a repository is HOST/PATH");
	if (s.n > 4 && memcmp(s.p + s.n - 4, ".git", 4) == 0)
		s.n -= 4;
	r->repo = mem_strn(s.p, s.n);
	r->host = mem_strn(s.p, slash);
	for (size_t i = 0; i < slash; i++) {
		char c = s.p[i];

		if (c >= 'A' && c <= 'Z')
			r->repo[i] = r->host[i] = (char)(c - 'A' + 'a');
		if (c == '*' || c == '?' || c == '[' || c == '@' || c == ':')
			return err_set(e, ERR_CONFIG, EINVAL, "the host of a git rule is a name");
	}
	return glob_check(r->repo, e);
}

static int parse_rule(const char *text, bool is_push, struct git_rule *r, struct err *e)
{
	struct str s = str_of(text);
	size_t colon = str_find(s, ':');
	struct str ref = str_from(s, colon < s.n ? colon + 1 : colon);
	int n = parse_repo(str_first(s, colon), r, e);

	r->text = mem_str(text);
	if (n < 0)
		return n;
	if (!is_push)
		return colon == s.n ? 0
				    : err_set(e, ERR_CONFIG, EINVAL,
					      "a fetch rule names a repository, no ref");
	if (!str_has_prefix(ref, "refs/"))
		return err_set(e, ERR_CONFIG, EINVAL,
			       "a push rule is HOST/PATH:refs/...[:create,update,delete]");
	r->op = GIT_CREATE | GIT_UPDATE;
	colon = str_find(ref, ':');
	if (colon < ref.n) {
		n = parse_ops(str_from(ref, colon + 1), &r->op, e);
		if (n < 0)
			return n;
	}
	r->ref = mem_strn(ref.p, colon);
	return 0;
}

int git_rules_add(struct git_rules *r, bool is_push, const char *text, struct err *e)
{
	struct git_rule rule = { 0 };
	int n = parse_rule(text, is_push, &rule, e);

	if (n < 0) {
		rule_done(&rule);
		return err_wrap(e, n, "git rule '%s'", text);
	}
	vec_reserve(r->v, r->n, r->cap);
	r->v[r->n++] = rule;
	return 0;
}

bool git_rules_cover(const struct git_rules *r, const char *host)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->v[i].host, host))
			return true;
	return false;
}

bool git_may_fetch(const struct git_rules *r, const char *repo)
{
	for (size_t i = 0; i < r->n; i++)
		if (!r->v[i].ref && glob_match(r->v[i].repo, repo))
			return true;
	return false;
}

bool git_may_push_any(const struct git_rules *r, const char *repo)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].ref && glob_match(r->v[i].repo, repo))
			return true;
	return false;
}

/* * is any run of characters. Linear in the product of both lengths: only the last star is ever retried. */
static bool ref_matches(const char *pattern, const char *ref)
{
	const char *star = NULL, *resume = ref;

	while (*ref) {
		if (*pattern == '*') {
			star = pattern++;
			resume = ref;
		} else if (*pattern == *ref) {
			pattern++;
			ref++;
		} else if (star) {
			pattern = star + 1;
			ref = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool git_may_push(const struct git_rules *r, const char *repo, const char *ref, enum git_op op)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].ref && (r->v[i].op & op) && glob_match(r->v[i].repo, repo) &&
		    ref_matches(r->v[i].ref, ref))
			return true;
	return false;
}
