/* SPDX-License-Identifier: Apache-2.0 */
/* policy/pathrule.h - which methods and paths of an inspected host are asked for
 *
 *     GET api.github.com/repos/me/ and two stars      * in place of the method: any;  GET,POST: either;  GET stands for HEAD too
 *
 * A host with an allow rule gets nothing but what one of them covers; deny wins. A query is not looked at. Where any
 * rule names the host, a path that two servers could read differently is refused: empty, "." and ".." parts, ';',
 * '\', and '/', '.', '%', '\' or control characters behind a percent sign.
 */
#ifndef VITRINE_POLICY_PATHRULE_H
#define VITRINE_POLICY_PATHRULE_H

#include "base/err.h"
#include "base/str.h"

#define PATH_RULE_TARGET_MAX ((size_t)32 * 1024)

struct path_rule {
	char *methods; /* "GET,POST" or "*" */
	char *host;    /* name or *.name */
	char *path;    /* glob with "/" in front, or NULL: all */
	char *text;
	bool is_deny;
};

struct path_rules {
	struct path_rule *v;
	size_t n, cap;
};

int path_rules_add(struct path_rules *r, bool is_deny, const char *text, struct err *e);
void path_rules_done(struct path_rules *r);
bool path_rules_cover(const struct path_rules *r, const char *host);

/* 0 and the allowing rule (NULL: none names the host); the reason and -EACCES (a rule denies it), -ENOENT (the host has
 * allow rules, and none is for this) or -EBADMSG. */
int path_judge(const struct path_rules *r, const char *host, struct str method, struct str target,
	       const struct path_rule **ret, struct err *e);

/* A name against a name, or against *.name, which covers subdomains only. */
bool host_matches(const char *pattern, const char *host);

#endif
