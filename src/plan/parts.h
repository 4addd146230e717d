/* SPDX-License-Identifier: Apache-2.0 */
/* plan/parts.h - between the files that make a plan; everyone else includes plan/plan.h
 *
 * plan_build() calls what follows the builders in the order in which it stands here.
 */
#ifndef VITRINE_PLAN_PARTS_H
#define VITRINE_PLAN_PARTS_H

#include "plan/plan.h"

/* ---- builders (parts.c) ---- */

struct mount *plan_add_mount(struct plan *p, enum mount_kind kind, const char *src, const char *dst,
			     unsigned flags, const char *why);

/* A path that is there already keeps its first entry, which is returned. */
struct skel *plan_add_skel(struct plan *p, enum skel_kind kind, const char *path, const char *text);
void plan_add_access(struct plan *p, enum access_kind kind, const char *path);

/* host: the directory that c->rel is relative to, inside: where that is seen. */
void plan_add_cover(struct plan *p, const struct cover *c, const char *host, const char *inside);

/* The last value of a variable counts. */
void plan_add_env(struct plan *p, const char *kv);
void plan_add_env_kv(struct plan *p, const char *key, const char *value);

/* ---- the view (view.c, grants.c, tools.c) ---- */

void plan_root(struct plan *p, const struct facts *f);
void plan_etc(struct plan *p, const struct policy *pol, const struct facts *f);
void plan_dev(struct plan *p);
void plan_private(struct plan *p, const struct policy *pol, const struct facts *f);
void plan_toolchains(struct plan *p, const struct facts *f);
void plan_workspace(struct plan *p, const struct policy *pol, const struct facts *f);
int plan_grants(struct plan *p, const struct policy *pol, const struct facts *f, struct err *e);
void plan_add_worktree(struct plan *p, const struct facts *f);
void plan_sockets(struct plan *p, const struct policy *pol);
void plan_safe_tools(struct plan *p, const struct policy *pol, const struct facts *f);

/* ---- limits.c, trust.c, skel.c, env.c ---- */

int plan_limits(struct plan *p, const struct policy *pol, const struct facts *f, struct err *e);
/* Where the file of a variable of the caller's is inside. */
char *plan_own_trust_path(const struct facts *f, size_t i);
void plan_trust(struct plan *p, const struct facts *f);
void plan_logins(struct plan *p, const struct facts *f);
void plan_engine(struct plan *p, const struct facts *f);
void plan_mount_points(struct plan *p);
void plan_layers(struct plan *p);
void plan_skel_name(struct plan *p);
/* Settings of npm and pip as they are inside; empty: none. */
char *plan_home_text(const struct facts *f, enum home_file what);
void plan_env(struct plan *p, const struct policy *pol, const struct facts *f);

#endif
