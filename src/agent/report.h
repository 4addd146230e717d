/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report.h - what an agent's output says about the run: cost, tokens, its last words; pure, for foreign bytes */
#ifndef VITRINE_AGENT_REPORT_H
#define VITRINE_AGENT_REPORT_H

#include "agent/preset.h"

struct report {
	uint64_t cost; /* millionths of a dollar */
	uint64_t tokens_in, tokens_out;
	bool has_cost, has_tokens, is_failed;
	struct buf text; /* what it said, as far as the output tells; at most REPORT_TEXT_MAX */
};

#define REPORT_TEXT_MAX (64 * KIB)
#define REPORT_LINE_MAX MIB

/* Lines that are no JSON, or are longer, say nothing. Numbers of several lines are added up, texts follow each other. */
void report_read(const struct preset_report *how, const char *output, size_t n, struct report *ret);
void report_done(struct report *r);

/* "12", "0.0125": whole dollars and millionths; false when it is no such number. */
bool report_dollars(const char *text, uint64_t *ret);

#endif
