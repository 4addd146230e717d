/* SPDX-License-Identifier: Apache-2.0 */
/* cli/spot_tell.c - checkpoints on the record of the sandboxes they are about; see spot.h */
#include "cli/spot.h"
#include "keep/journal.h"

#define SANDBOXES_MAX 16

struct told {
	enum event_type type;
	struct event_field f[3];
	size_t n;
};

static void tell_one(const struct spot *s, const char *name, const struct told *t)
{
	(void)journal_once(s->host.state_dir, name, t->type, t->f, t->n);
}

static void tell_all(const struct spot *s, const struct told *t)
{
	struct err ignored = ERR_INIT;
	char **names = NULL;
	size_t n = 0;

	if (def_list(s->host.state_dir, false, &names, &ignored) < 0)
		return;
	for (char **p = names; *p && n < SANDBOXES_MAX; p++) {
		_cleanup_(def_done) struct def d = { 0 };

		if (def_read(s->host.state_dir, *p, &d, &ignored) == 0 &&
		    str_eq(d.workspace, s->undo.root)) {
			tell_one(s, *p, t);
			n++;
		}
	}
	def_list_free(names);
}

void spot_tell(const struct spot *s, bool is_restored, uint64_t id, uint64_t files, uint64_t bytes)
{
	char text[24];
	struct told t = { .type = is_restored ? EV_CHECKPOINT_RESTORED : EV_CHECKPOINT_MADE };

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
	t.f[t.n++] = EVENT_STR(CHECKPOINT, text);
	t.f[t.n++] = EVENT_NUM(COUNT, files);
	if (!is_restored)
		t.f[t.n++] = EVENT_NUM(BYTES, bytes);
	if (s->sandbox)
		tell_one(s, s->sandbox, &t);
	else
		tell_all(s, &t);
}
