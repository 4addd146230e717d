/* SPDX-License-Identifier: Apache-2.0 */
/* seal/git.h - what git may do on the wire: which repositories are fetched, which refs are pushed
 *
 * The rules are in policy/gitrule.h. Everything here is pure.
 */
#ifndef VITRINE_SEAL_GIT_H
#define VITRINE_SEAL_GIT_H

#include "http/head.h"
#include "policy/gitrule.h"

#define GIT_COMMANDS_MAX 1000
#define GIT_COMMANDS_BYTES ((size_t)256 * 1024)

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
