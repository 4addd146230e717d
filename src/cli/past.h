/* SPDX-License-Identifier: Apache-2.0 */
/* cli/past.h - what lies in a sandbox's folder: sessions that were, their output, its size */
#ifndef VITRINE_CLI_PAST_H
#define VITRINE_CLI_PAST_H

#include "cli/live.h"

/* One session as its file tells of it. */
struct past {
	uint32_t id;
	bool has_ended;
	int64_t status;
	uint64_t started, ended, cpu_ns;
	uint64_t first; /* number of the first session of the same keeper */
	char *command, *reason;
};

/* Newest first. */
int past_read(const char *state_dir, const char *name, struct past **ret, size_t *ret_n,
	      struct err *e);
void past_free(struct past *v, size_t n);
void past_done(struct past *p);

/* How a sandbox ended whose folder went with it: a run without a name, or one with --rm, that somebody left running.
 * False: nothing is known of it. */
bool past_left(const char *state_dir, const char *name, struct past *ret);

/* Its last keeper died before all of its sessions had ended. Only of one that does not run. */
bool past_is_lost(const struct past *v, size_t n);

/* ,"past": [...] - all but those that run. */
void past_print(const struct past *v, size_t n, const struct live *live, struct buf *out);

#endif
