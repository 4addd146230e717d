/* SPDX-License-Identifier: Apache-2.0 */
/* seal/terms.c - see terms.h */
#include "seal/terms.h"

struct terms *terms_new(void)
{
	struct terms *r = mem_new(1, sizeof(*r));

	r->refs = 1;
	vault_init(&r->vault, VAULT_BYTES);
	return r;
}

struct terms *terms_ref(struct terms *r)
{
	r->refs++;
	return r;
}

void terms_unref(struct terms *r)
{
	while (r && --r->refs == 0) {
		struct terms *newer = r->newer;

		path_rules_done(&r->paths);
		git_rules_done(&r->git);
		vault_done(&r->vault);
		logins_done(&r->logins);
		free(r);
		r = newer;
	}
}

typedef int add_fn(struct terms *r, const char *text, struct err *e);

static int add_allow(struct terms *r, const char *text, struct err *e)
{
	return path_rules_add(&r->paths, false, text, e);
}

static int add_deny(struct terms *r, const char *text, struct err *e)
{
	return path_rules_add(&r->paths, true, text, e);
}

static int add_fetch(struct terms *r, const char *text, struct err *e)
{
	return git_rules_add(&r->git, false, text, e);
}

static int add_push(struct terms *r, const char *text, struct err *e)
{
	return git_rules_add(&r->git, true, text, e);
}

static int add_list(struct terms *r, const struct json *list, add_fn *add, struct err *e)
{
	if (list == NULL)
		return 0;
	if (list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is a list", list->key);
	for (const struct json *m = list->first; m; m = m->next) {
		int n = m->type == JSON_STRING
				? add(r, m->text, e)
				: err_set(e, ERR_CONFIG, EINVAL, "'%s' holds strings", list->key);

		if (n < 0)
			return n;
	}
	return 0;
}

static int add_git(struct terms *r, const struct json *git, struct err *e)
{
	int n;

	if (git == NULL)
		return 0;
	if (git->type != JSON_OBJECT)
		return err_set(e, ERR_CONFIG, EINVAL, "'git' is {fetch, push}");
	n = add_list(r, json_get(git, "fetch"), add_fetch, e);
	return n < 0 ? n : add_list(r, json_get(git, "push"), add_push, e);
}

static int add_secrets(struct terms *r, const struct json *list, struct err *e)
{
	if (list == NULL)
		return 0;
	if (list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "'secrets' is a list");
	for (const struct json *m = list->first; m; m = m->next) {
		int n = vault_add(&r->vault, m, e);

		if (n < 0)
			return n;
	}
	return 0;
}

static int add_logins(struct terms *r, const struct json *list, struct err *e)
{
	int n = 0;

	if (list && list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "'logins' is a list");
	for (const struct json *m = list ? list->first : NULL; m && n >= 0; m = m->next)
		n = logins_add(&r->logins, m, e);
	return n;
}

int terms_parse(struct terms *r, const char *text, size_t n, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	int k = json_parse(text, n, &doc, e);

	if (k < 0)
		return k;
	if (doc.root->type != JSON_OBJECT)
		return err_set(e, ERR_CONFIG, EINVAL, "rules are an object");
	k = add_list(r, json_get(doc.root, "allow"), add_allow, e);
	if (k >= 0)
		k = add_list(r, json_get(doc.root, "deny"), add_deny, e);
	if (k >= 0)
		k = add_git(r, json_get(doc.root, "git"), e);
	if (k >= 0)
		k = add_secrets(r, json_get(doc.root, "secrets"), e);
	return k < 0 ? k : add_logins(r, json_get(doc.root, "logins"), e);
}

uint64_t terms_guarded(const struct terms *r)
{
	uint64_t set = 0;

	for (size_t i = 0; i < r->vault.n; i++)
		for (size_t k = 0; k < r->git.n; k++)
			if (vault_is_for(&r->vault.v[i], r->git.v[k].host))
				set |= UINT64_C(1) << i;
	return set;
}

struct terms *terms_newest(struct terms *r)
{
	while (r->newer)
		r = r->newer;
	return r;
}
