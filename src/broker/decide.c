/* SPDX-License-Identifier: Apache-2.0 */
/* broker/decide.c - may this be done? Pure: rules and facts in, a rule or a sentence out */
#include "base/num.h"
#include "broker/broker.h"

static const char *op_name(enum broker_op op)
{
	return op == BROKER_DELETE   ? "delete"
	       : op == BROKER_FORCE  ? "force"
	       : op == BROKER_CREATE ? "create"
				     : "update";
}

/* Which right the change needs. A tag that moves is rewritten, wherever it moves to. */
static enum broker_op op_of(const struct update *u)
{
	if (u->new[0] == '\0')
		return BROKER_DELETE;
	if (u->old[0] == '\0')
		return BROKER_CREATE;
	return u->is_ff && !str_starts(u->ref, "refs/tags/") ? BROKER_UPDATE : BROKER_FORCE;
}

const struct broker_rule *decide_push(const struct broker_rules *r, const char *url,
				      const struct update *u, char say[static 256])
{
	enum broker_op op = op_of(u);
	const struct broker_rule *rule =
		broker_is_ref(u->ref) ? broker_may_push(r, url, u->ref, op) : NULL;

	say[0] = '\0';
	if (!broker_is_ref(u->ref))
		(void)snprintf(say, 256, "not a name of a branch or tag");
	else if (op == BROKER_FORCE && !u->is_forced)
		(void)snprintf(say, 256, "non-fast-forward; fetch and merge first");
	else if (rule == NULL && op == BROKER_FORCE)
		(void)snprintf(say, 256,
			       "force push refused: the policy allows none here (broker.push needs "
			       "'force'); push to "
			       "a new branch");
	else if (rule == NULL && op == BROKER_DELETE)
		(void)snprintf(say, 256,
			       "deleting refused: the policy allows none here (broker.push needs "
			       "'delete')");
	else if (rule == NULL &&
		 !broker_may_push(r, url, u->ref, BROKER_CREATE | BROKER_UPDATE | BROKER_DELETE))
		(void)snprintf(say, 256, "no rule of broker.push covers this ref");
	else if (rule == NULL)
		(void)snprintf(say, 256, "refused: broker.push has no '%s' for this ref",
			       op_name(op));
	else
		return rule;
	return NULL;
}

/* ---- gh ---- */

/* OWNER/NAME, branches: nothing that gh could take for an option or a host. */
static bool is_gh_name(const char *s)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/"
				 "+-";

	return s[0] && s[0] != '-' && s[0] != '/' && strlen(s) <= 250 && s[strspn(s, ok)] == '\0' &&
	       !strstr(s, "..");
}

/* What one option is called and where its value goes; a list where there may be several. */
struct gh_option {
	const char *short_name, *long_name;
	const char **to;
	size_t *n;
};

/* 1: taken, 2: with the next word, 0: another option, -errno. */
static int take_gh_option(const struct gh_option *o, const char *word, const char *next,
			  struct err *e)
{
	size_t n = strlen(o->long_name);
	bool uses_next = str_eq(word, o->short_name) || str_eq(word, o->long_name);
	const char *value = uses_next ? next : word + n + 1;

	if (!uses_next && (strncmp(word, o->long_name, n) != 0 || word[n] != '='))
		return 0;
	if (value == NULL)
		return err_set(e, ERR_DENIED, EINVAL, "%s needs a value", o->long_name);
	if (o->n && *o->n == GH_LIST_MAX)
		return err_set(e, ERR_DENIED, E2BIG, "too many of %s", o->long_name);
	o->to[o->n ? (*o->n)++ : 0] = value;
	return uses_next ? 2 : 1;
}

static int take_gh_word(const struct gh_option *table, size_t n_table, const char *word,
			const char *next, struct err *e)
{
	for (size_t k = 0; k < n_table; k++) {
		int r = take_gh_option(&table[k], word, next, e);

		if (r != 0)
			return r;
	}
	return err_set(e, ERR_DENIED, EPERM,
		       "'%.60s' is not among what the broker passes to gh: --repo, --head, --base, "
		       "--title, --body, --draft, --label, --reviewer",
		       word);
}

static int check_gh(const struct gh_call *c, struct err *e)
{
	if (c->title[0] == '\0' || c->head[0] == '\0')
		return err_set(e, ERR_DENIED, EINVAL,
			       "'gh pr create' by the broker needs --title and --head BRANCH");
	if (!is_gh_name(c->head) || (c->base[0] && !is_gh_name(c->base)) ||
	    (c->repo && !is_gh_name(c->repo)))
		return err_set(e, ERR_DENIED, EINVAL, "not a name of a branch or repository");
	for (size_t i = 0; i < c->n_labels; i++)
		if (c->labels[i][0] == '-')
			return err_set(e, ERR_DENIED, EINVAL, "not a label");
	for (size_t i = 0; i < c->n_reviewers; i++)
		if (!is_gh_name(c->reviewers[i]))
			return err_set(e, ERR_DENIED, EINVAL, "not a reviewer");
	return 0;
}

int decide_gh(const char *const *words, size_t n, struct gh_call *ret, struct err *e)
{
	struct gh_call c = { .head = "", .base = "", .title = "", .body = "" };
	const struct gh_option table[] = {
		{ "-R", "--repo", &c.repo, NULL },
		{ "-H", "--head", &c.head, NULL },
		{ "-B", "--base", &c.base, NULL },
		{ "-t", "--title", &c.title, NULL },
		{ "-b", "--body", &c.body, NULL },
		{ "-l", "--label", c.labels, &c.n_labels },
		{ "-r", "--reviewer", c.reviewers, &c.n_reviewers },
	};
	int r = 0;

	if (n < 2 || !str_eq(words[0], "pr") || !str_eq(words[1], "create"))
		return err_set(e, ERR_DENIED, EPERM,
			       "of gh the broker runs 'gh pr create' and nothing else");
	for (size_t i = 2; r >= 0 && i < n; i += r == 2 ? 2 : 1) {
		r = 1;
		if (str_eq(words[i], "-d") || str_eq(words[i], "--draft"))
			c.is_draft = true;
		else
			r = take_gh_word(table, ARRAY_LEN(table), words[i],
					 i + 1 < n ? words[i + 1] : NULL, e);
	}
	if (r >= 0)
		r = check_gh(&c, e);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}

/* "[SCHEME://][USER@]HOST[:PORT][/...]", HOST a name, an address or [an IPv6 one]. */
uint16_t url_port(const char *url, uint16_t usual)
{
	const char *slashes = strstr(url, "://"), *host = slashes ? slashes + 3 : url;
	size_t n = strcspn(host, "/?#");
	const char *at = memrchr(host, '@', n), *colon = memrchr(host, ':', n),
		   *bracket = memrchr(host, ']', n);
	_free_ char *digits = NULL;
	struct err e = ERR_INIT;
	uint64_t port = 0;

	if (n == 0)
		return 0;
	if (colon == NULL || (at && colon < at) || (bracket && colon < bracket))
		return usual;
	digits = mem_strn(colon + 1, n - (size_t)(colon + 1 - host));
	return num_parse(digits, 1, 65535, &port, &e) < 0 ? 0 : (uint16_t)port;
}
