/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cp_judge.h - what `vitrine cp` may bring to a directory of the host, by the rules of view/outcome */
#ifndef VITRINE_CLI_CP_JUDGE_H
#define VITRINE_CLI_CP_JUDGE_H

#include "core/def.h"
#include "core/facts.h"
#include "view/outcome.h"

struct cp_judge {
	struct policy policy;
	bool has_policy;
	struct outcome_host host;
	struct outcome_tree tree;
	int root;         /* paths are judged from here */
	char *root_path;  /* real */
	int from;         /* holds what comes; borrowed */
	const char *name; /* its name there; borrowed */
	char *at;         /* where it goes, below the root */
};

#define CP_JUDGE_NONE ((struct cp_judge){ .root = FD_NONE, .from = FD_NONE })

/* `dest` (an open directory) is where it goes, under the name `to`; `name` in `from` is what comes. The root is the workspace
 * where `dest` lies in it, else the top of the git work tree around `dest`, else `dest` itself. Must not move. */
struct cp_judged {
	const struct host *host;
	const struct def *def;
	int dest;
	const char *to;
	int from;
	const char *name;
};
int cp_judge_begin(struct cp_judge *j, const struct cp_judged *in, struct err *e);
void cp_judge_done(struct cp_judge *j);

/* Why not, of a path below what comes ("": itself); NULL: it may. To be freed. */
char *cp_judge_why(struct cp_judge *j, const char *below);

#endif
