/* SPDX-License-Identifier: Apache-2.0 */
/* seal/git.h - what git may do on the wire: which repositories are fetched, which refs are pushed
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
#ifndef VITRINE_SEAL_GIT_H
#define VITRINE_SEAL_GIT_H

#include "http/head.h"

#define GIT_COMMANDS_MAX 1000
#define GIT_COMMANDS_BYTES ((size_t)256 * 1024)

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

enum git_kind {
	GIT_NOT,       /* not a request of git */
	GIT_FETCH,     /* refs for a fetch, or the fetch */
	GIT_PUSH_REFS, /* refs for a push */
	GIT_PUSH,      /* the commands and the pack */
	GIT_LFS,       /* large files of a repository */
	GIT_KIND_COUNT_
};

struct git_request {
	enum git_kind kind;
	char repo[1024]; /* HOST/PATH without ".git" */
};

/* What a request to a covered host is. -EBADMSG for what cannot be told for sure, the dumb protocol among it. */
int git_classify(const char *host, struct str method, struct str target, struct git_request *ret,
		 struct err *e);

/* 0, or -EACCES and the reason. GIT_PUSH is decided by its commands; here only whether anything may be pushed. */
int git_judge(const struct git_rules *r, const struct git_request *q, struct err *e);

struct git_command {
	char *ref;
	enum git_op op;
	bool is_allowed;
};

struct git_push {
	const struct git_rules *rules;
	char *repo;
	struct buf in; /* commands not yet read */
	size_t taken;  /* bytes of commands so far */
	struct git_command *v;
	size_t n, cap;
	bool is_complete, has_report, has_sideband, has_first;
	size_t n_refused;
};

void git_push_init(struct git_push *p, const struct git_rules *rules, const char *repo);
void git_push_done(struct git_push *p);

/* More of the (decoded) request body. 1 when all commands are known and judged, 0 when more must come, -EBADMSG,
 * -EMSGSIZE. Bytes behind the commands are not looked at. */
int git_push_feed(struct git_push *p, const char *data, size_t n, struct err *e);

/* One sentence: what is refused and what would allow it. */
void git_push_reason(const struct git_push *p, struct buf *out);

/* The body of an answer of git-receive-pack that makes git itself say so for every ref. */
void git_push_report(const struct git_push *p, struct buf *out);

#endif
