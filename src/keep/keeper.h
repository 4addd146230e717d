/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keeper.h - the keeper's state, shared by the files of this folder only */
#ifndef VITRINE_KEEP_KEEPER_H
#define VITRINE_KEEP_KEEPER_H

#include "keep/gate.h"
#include "keep/seal.h"
#include "keep/session.h"

/* What a client's watch needs to know. */
struct keeper;
struct client {
	struct keeper *k;
	struct session *s;
};

struct keeper {
	struct keeper_in *in;
	struct native native;
	struct cgroup cgroup;
	struct loop *loop;
	struct watch *on_ctl, *on_pidfd, *on_term, *on_listener;
	struct watch *on_time, *on_sample;
	int dir, lock, listener;
	struct session sessions[INIT_SESSIONS]; /* [0] is the command the sandbox was started for */
	struct client clients[INIT_SESSIONS];
	uint32_t last_id;
	uint64_t n_messages;
	int status; /* of the first command */
	enum end_reason why, main_why;
	struct err err;
	uint64_t started_ns;
	struct gate *gate; /* gate.c; NULL: no network */
	struct seal *seal; /* seal.c; NULL: nothing is inspected */
	/* limits.c */
	int proc; /* the sandbox's own /proc */
	uint64_t cpu_ns, idle_since_ns, memory_peak;
	/* masks.c */
	struct masks *masks;
	struct sweep swept;
};

void keeper_end(struct keeper *k, enum end_reason why);
void keeper_note(struct keeper *k, const char *text);

/* limits.c: what the kernel or the keeper enforces while the sandbox runs. */
int limits_open(struct keeper *k, struct err *e);   /* makes the control groups */
int limits_attach(struct keeper *k, struct err *e); /* puts init into them and lets it go */
void limits_start(struct keeper *k);
void limits_proc(struct keeper *k, int take_proc); /* init sent the sandbox's /proc */
void limits_check_output(void *keeper);
void limits_finish(struct keeper *k);

/* masks.c: hidden and protected names stay so when the host replaces them; what appears is quarantined. */
void masks_start(struct keeper *k);
void masks_on_frozen(struct keeper *k);
void masks_finish(struct keeper *k);

#endif
