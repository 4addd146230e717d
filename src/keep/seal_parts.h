/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal_parts.h - what the files of the keeper's side of vitrine-seal share; for nobody else
 *
 *   seal.c         its life: starts it, hands it to front, closes it
 *   seal_teller.c  what it is told, by a child of the keeper that may take its time
 *   seal_values.c  the values of secrets among that, and when they are read anew
 *   seal_rules.c   rules that are added while it runs
 *   seal_events.c  what it says, on record
 */
#ifndef VITRINE_KEEP_SEAL_PARTS_H
#define VITRINE_KEEP_SEAL_PARTS_H

#include "keep/bundle.h"
#include "keep/keeper.h"
#include "seal/wire.h"
#include "secret/secret.h"

enum seal_state {
	SEAL_SLEEPS, /* nobody has needed it */
	SEAL_BEGINS, /* has not sent its certificate */
	SEAL_TOLD,   /* the teller is at work */
	SEAL_SERVES,
	SEAL_CLOSED,
};

/* Where a value can be read anew. */
struct source {
	char *path;          /* a file... */
	uint64_t mark;       /* ...as it was */
	uint64_t every, due; /* of a command's output */
};

struct seal {
	struct keeper *k;
	int fd;
	pid_t pid;
	struct watch *on, *on_way;
	enum seal_state state;
	unsigned n_starts;
	struct bundle bundle;
	int way;       /* front's, held back until the terms are in force */
	struct buf ca; /* as far as it has come */
	pid_t teller;
	int telling; /* ends with the teller */
	struct watch *on_teller;
	bool is_due[SECRETS_MAX]; /* to be read anew */
	char **added[2];          /* rules since the start: allow, deny */
	size_t n_added[2];
	char *due_host; /* inspected as soon as the rule for it is in force */
	bool is_due_reached;
	struct source *sources; /* of each value; NULL: not looked at yet */
	struct watch *on_refresh;
	struct capture *capture;
};

/* What a teller does: 0, or why it could not. */
typedef int seal_tell_fn(struct seal *s, struct err *e);

/* Starts the teller; one at a time: what two say would be mixed. seal_told() is called when it has ended. */
void seal_tell(struct seal *s, seal_tell_fn *what);
/* Trust, rules and values, and that they are in force. */
int seal_tell_all(struct seal *s, struct err *e);
void seal_told(void *arg);
void seal_forget_teller(struct seal *s);

/* One value as it is on the host now. For the teller. */
int seal_tell_value(const struct seal *s, const char *name, struct err *e);
/* From now on values that change are told anew. */
void seal_values_watch(struct seal *s);
/* Those that came with the keeper's birth. */
void seal_values_wipe(const struct keeper_in *in);

/* SEAL_EVENT: what it says, as an event like the gate's. */
void seal_event(struct seal *s, const struct seal_msg *m);

/* After seal has a rule: the host it names is inspected from here on; until then it is what it was. */
void seal_inspect_due(struct seal *s);

#endif
