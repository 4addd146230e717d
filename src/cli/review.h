/* SPDX-License-Identifier: Apache-2.0 */
/* cli/review.h - the verbs of undo for a sandbox whose changes wait in layers */
#ifndef VITRINE_CLI_REVIEW_H
#define VITRINE_CLI_REVIEW_H

#include "cli/spot.h"
#include "cli/table.h"

/* A clone's changes are commits. */
int review_refuse_clone(const struct spot *s, struct err *e);
int review_cli_diff(struct spot *s, char *const *words, enum show_form form, struct buf *out,
		    struct err *e);
/* With a checkpoint instead of the host's workspace. */
int review_cli_diff_since(struct spot *s, uint64_t since, char *const *words, enum show_form form,
			  struct buf *out, struct err *e);
int review_cli_checkpoint(struct spot *s, enum tree_kind kind, const char *message, bool is_live,
			  bool as_json, struct err *e);
int review_cli_prune(struct spot *s, uint64_t keep, struct err *e);
/* id 0: undo. */
int review_cli_restore(struct spot *s, uint64_t id, bool as_json, struct err *e);

/* points.c: the checkpoints, of either kind */
int points_list(struct spot *s, const struct table_how *how, struct err *e);

/* undo.c */
void cli_format_time(uint64_t ns, char *out, size_t size);
int cli_print_foreign(const struct buf *out, struct err *e);

#endif
