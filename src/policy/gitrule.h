/* SPDX-License-Identifier: Apache-2.0 */
/* policy/gitrule.h - which repositories git may fetch and which refs it may push
 *
 * Rules are text:
 *
 *     fetch   HOST/PATH                       github.com/me/app, or github.com/me and a star for all of me
 *     push    HOST/PATH:REF[:OPERATIONS]      github.com/me/app:refs/heads/agent-*:create,update
 *
 * In a PATH, * stands for one component or a part of it and ** for any number of them.
 * In a REF, * stands for anything, slashes too, as in git's own refspecs. Operations are create, update, delete;
 * create and update when none is named. A host that any rule names is covered: on it git does what is listed and
 * nothing else. Everything here is pure.
 */
#ifndef VITRINE_POLICY_GITRULE_H
#define VITRINE_POLICY_GITRULE_H

#include "base/err.h"

enum git_op { GIT_CREATE = 1, GIT_UPDATE = 2, GIT_DELETE = 4 };

struct git_rule {
	char *host;  /* lower case */
	char *repo;  /* glob of HOST/PATH without ".git" */
	char *ref;   /* NULL in a fetch rule */
	unsigned op; /* enum git_op, of a push rule */
	char *text;  /* as it was given */
};

struct git_rules {
	struct git_rule *v;
	size_t n, cap;
};

int git_rules_add(struct git_rules *r, bool is_push, const char *text, struct err *e);
void git_rules_done(struct git_rules *r);
bool git_rules_cover(const struct git_rules *r, const char *host);

/* repo is HOST/PATH without ".git". */
bool git_may_fetch(const struct git_rules *r, const char *repo);
bool git_may_push_any(const struct git_rules *r, const char *repo);
bool git_may_push(const struct git_rules *r, const char *repo, const char *ref, enum git_op op);

#endif
