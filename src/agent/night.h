/* SPDX-License-Identifier: Apache-2.0 */
/* agent/night.h - what events and a repository's own log say about a night; pure, for foreign bytes */
#ifndef VITRINE_AGENT_NIGHT_H
#define VITRINE_AGENT_NIGHT_H

#include "base/buf.h"
#include "base/json.h"

/* One line of a reflog (.git/logs/HEAD): "OLD NEW NAME <MAIL> SECONDS ZONE<tab>commit: SUBJECT". */
struct night_commit {
	uint64_t time;       /* seconds since 1970 */
	char id[13];         /* its first 12 digits */
	const char *subject; /* in the line */
	size_t n;
};

/* False: the line is about something else than a new commit, or is none. */
bool night_commit(const char *line, size_t n, struct night_commit *ret);

/* Something was refused, or a limit was hit: which, in a few words that are the same for the same thing. */
bool night_refusal(const struct json *event, struct buf *out);

/* A request to a model, as the agent's own telemetry tells it. */
struct night_spent {
	uint64_t cost; /* millionths of a dollar */
	uint64_t tokens_in, tokens_out;
};
bool night_spent(const struct json *event, struct night_spent *ret);

#endif
