/* SPDX-License-Identifier: Apache-2.0 */
/* cli/changed.c - what of the files that a run changed will run on the host later, for the report at its end
 *
 * Compared with the checkpoint that was made before the run, as `vitrine diff NAME` does it, so only a sandbox with a name
 * has it, and only who asks for a report pays for the walk. Changes that wait for a review are named where they are reviewed.
 */
#include "cli/cli.h"
#include "cli/run.h"
#include "cli/spot.h"
#include "tree/runs.h"

#define MOST 500

static void put(const struct changes *c, struct buf *b)
{
	size_t n = 0;

	buf_puts(b, ",\"runs\":[");
	for (size_t i = 0; i < c->n && n < MOST; i++) {
		const char *why = tree_runs(&c->v[i]);

		if (why == NULL)
			continue;
		buf_puts(b, n++ > 0 ? ",{\"path\":" : "{\"path\":");
		buf_json(b, c->v[i].b->path);
		buf_puts(b, ",\"why\":");
		buf_json(b, why);
		buf_putc(b, '}');
	}
	buf_putc(b, ']');
}

void changed_json(const char *name, struct buf *b)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	char *const words[] = { (char *)(uintptr_t)name, NULL };
	char *const *left = words;
	struct tree_options o = { .with_ignored = true };
	struct undo_diff d = { 0 };
	struct err ignored = ERR_INIT;

	/* Where nothing can be compared nothing is said: an empty list would be a claim. */
	if (spot_open(&s, NULL, true, &left, &ignored) < 0 || s.is_review)
		return;
	if (undo_compare(&s.undo, 0, &o, &d, &ignored) == 0)
		put(&d.changes, b);
	undo_diff_done(&d);
}
