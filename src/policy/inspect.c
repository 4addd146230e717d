/* SPDX-License-Identifier: Apache-2.0 */
/* policy/inspect.c - checks of the sections inspect, git and secrets, and which hosts they make inspected */
#include "policy/inspect.h"
#include "policy/gitrule.h"
#include "policy/pathrule.h"
#include "policy/table.h"

int check_inspect_host(const char *text, struct err *e)
{
	const char *name = str_starts(text, "*.") ? text + 2 : text;

	if (*name == '\0' ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != strlen(name))
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be a host name in lower case, or *.name");
	return 0;
}

int check_inspect_rule(const char *text, struct err *e)
{
	struct path_rules r = { 0 };
	int n = path_rules_add(&r, false, text, e);

	path_rules_done(&r);
	if (n < 0)
		e->kind = ERR_USAGE;
	return n;
}

static int check_git(const char *text, bool is_push, struct err *e)
{
	struct git_rules r = { 0 };
	int n = git_rules_add(&r, is_push, text, e);

	git_rules_done(&r);
	if (n < 0)
		e->kind = ERR_USAGE;
	return n;
}

int check_git_fetch(const char *text, struct err *e)
{
	return check_git(text, false, e);
}

int check_git_push(const char *text, struct err *e)
{
	return check_git(text, true, e);
}

int check_secret_name(const char *text, struct err *e)
{
	if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
		    strlen(text) ||
	    strlen(text) > 64 || text[0] == '\0')
		return err_set(e, ERR_USAGE, EINVAL, "must be the name of a secret");
	return 0;
}

static bool is_never(const struct policy *p, const char *host)
{
	for (size_t i = 0; i < p->inspect_never.n; i++)
		if (str_eq(p->inspect_never.v[i].text, host) ||
		    host_matches(p->inspect_never.v[i].text, host))
			return true;
	return false;
}

void inspect_add(const struct policy *p, const char *host, inspect_fn *fn, void *arg)
{
	if (!is_never(p, host))
		fn(arg, host);
}

/* The host of a rule: behind the methods, before the path. */
static void add_rules(const struct policy *p, const struct items *l, bool has_method,
		      inspect_fn *fn, void *arg)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *at = has_method ? strchr(l->v[i].text, ' ') : l->v[i].text;
		_free_ char *host = NULL;

		at += strspn(at, " ");
		host = mem_strn(at, strcspn(at, "/"));
		inspect_add(p, host, fn, arg);
	}
}

void inspect_each(const struct policy *p, inspect_fn *fn, void *arg)
{
	for (size_t i = 0; i < p->inspect_hosts.n; i++)
		inspect_add(p, p->inspect_hosts.v[i].text, fn, arg);
	add_rules(p, &p->inspect_allow, true, fn, arg);
	add_rules(p, &p->inspect_deny, true, fn, arg);
	add_rules(p, &p->git_fetch, false, fn, arg);
	add_rules(p, &p->git_push, false, fn, arg);
}

int inspect_validate(const struct policy *p, struct err *e)
{
	const struct items *const lists[] = { &p->inspect_allow, &p->inspect_deny, &p->git_fetch,
					      &p->git_push };

	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (size_t i = 0; i < lists[k]->n; i++) {
			const char *at =
				k < 2 ? strchr(lists[k]->v[i].text, ' ') : lists[k]->v[i].text;
			_free_ char *host = NULL;

			at += strspn(at, " ");
			host = mem_strn(at, strcspn(at, "/"));
			if (is_never(p, host))
				return err_set(e, ERR_CONFIG, EINVAL,
					       "'%s' cannot hold: inspect.never leaves %s "
					       "uninspected",
					       lists[k]->v[i].text, host);
		}
	return 0;
}

void inspect_show(const struct policy *p, const char *word, struct buf *out)
{
	const struct {
		const struct items *list;
		const char *verdict, *act;
	} parts[] = {
		{ &p->inspect_allow, "allow", "" },
		{ &p->inspect_deny, "deny", "" },
		{ &p->git_fetch, "allow", "git fetch " },
		{ &p->git_push, "allow", "git push " },
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (size_t k = 0; k < parts[i].list->n; k++)
			buf_printf(out, "%s%s %s%s\n", word, parts[i].verdict, parts[i].act,
				   parts[i].list->v[k].text);
}
