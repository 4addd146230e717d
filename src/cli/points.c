/* SPDX-License-Identifier: Apache-2.0 */
/* cli/points.c - the listing of `checkpoints`: of a workspace that is written in place, or of layers under review
 *
 * Both have the same fields for --format. What is printed for people and as JSON ends with what the checkpoints cost
 * together, which is no row.
 */
#include "cli/machine.h"
#include "cli/review.h"
#include "tree/runs.h"

#define OUT_MAX (256 * MIB)

enum { POINT_ID, POINT_KIND, POINT_CREATED, POINT_FILES, POINT_MESSAGE, POINT_COUNT };

static const struct column columns[POINT_COUNT] = {
	[POINT_ID] = { "checkpoint", "Checkpoint", "CHECKPOINT", COLUMN_NUMBER },
	[POINT_KIND] = { "kind", "Kind", "KIND", COLUMN_TEXT },
	[POINT_CREATED] = { "created", "Created", "CREATED", COLUMN_TEXT },
	[POINT_FILES] = { "files", "Files", "FILES", COLUMN_NUMBER },
	[POINT_MESSAGE] = { "message", "Message", "MESSAGE", COLUMN_TEXT },
};

struct one {
	uint64_t id, created; /* seconds */
	enum tree_kind kind;
	const char *message;
	bool has_files; /* layers are not counted */
	size_t files;
	uint64_t live; /* bytes of the machine that was saved with it; 0: none */
};

static void put_json(const struct one *p, struct buf *out)
{
	buf_printf(out, "%s{\"checkpoint\":%llu,\"kind\":\"%s\",\"created\":%llu,",
		   out->n && out->p[out->n - 1] == '}' ? "," : "", (unsigned long long)p->id,
		   tree_kind_name(p->kind), (unsigned long long)p->created);
	if (p->has_files)
		buf_printf(out, "\"files\":%zu,", p->files);
	if (p->live)
		buf_printf(out, "\"live\":%llu,", (unsigned long long)p->live);
	buf_puts(out, "\"message\":");
	buf_json(out, p->message);
	buf_putc(out, '}');
}

static void put_line(const struct one *p, struct buf *out)
{
	char when[64];

	cli_format_time(p->created * NS_PER_SEC, when, sizeof(when));
	buf_printf(out, "%4llu  %s  %-7s ", (unsigned long long)p->id, when,
		   tree_kind_name(p->kind));
	if (p->has_files)
		buf_printf(out, "%7zu files ", p->files);
	if (p->live) {
		buf_puts(out, " live ");
		text_bytes(p->live, out);
	}
	buf_putc(out, ' ');
	buf_esc(out, p->message, strlen(p->message));
	buf_putc(out, '\n');
}

static void add_row(const struct one *p, struct table *t)
{
	struct cell *c = table_row(t);
	char when[64];

	cli_format_time(p->created * NS_PER_SEC, when, sizeof(when));
	c[POINT_ID].num = p->id;
	c[POINT_KIND].text = mem_str(tree_kind_name(p->kind));
	c[POINT_CREATED].text = mem_str(when);
	c[POINT_FILES] = (struct cell){ .num = p->files, .is_null = !p->has_files };
	c[POINT_MESSAGE].text = mem_str(p->message);
}

struct listed {
	const struct table_how *how;
	struct table rows;
	struct buf out;
};

static void put_one(struct listed *l, const struct one *p)
{
	if (table_is_asked(l->how))
		add_row(p, &l->rows);
	else
		(l->how->as_json ? put_json : put_line)(p, &l->out);
}

static void put_index(struct listed *l, const struct spot *s, const struct tree_index *x)
{
	struct one p = { .id = x->id,
			 .created = x->created / NS_PER_SEC,
			 .kind = x->kind,
			 .message = x->message,
			 .has_files = true,
			 .live = machine_bytes(s, x->id) };

	for (size_t i = 0; i < x->n; i++)
		p.files += !S_ISDIR(x->v[i].mode);
	put_one(l, &p);
}

static int put_tree(struct listed *l, struct spot *s, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(s->undo.store, &ids, &n, e);
	uint64_t disk = store_disk(s->undo.store);

	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_(tree_index_done) struct tree_index x = { 0 };
		struct err broken = ERR_INIT;

		if (store_load(s->undo.store, ids[i], &x, &broken) == 0)
			put_index(l, s, &x);
		else
			cli_complain(broken.msg);
	}
	if (l->how->as_json) {
		buf_printf(&l->out, "],\"disk\":%llu}\n", (unsigned long long)disk);
	} else {
		buf_printf(&l->out, "%zu checkpoints of '%s', ", n, s->undo.root);
		text_bytes(disk, &l->out);
		buf_puts(&l->out, " on disk\n");
	}
	return r;
}

static void put_layers(struct listed *l, const struct spot *s)
{
	const struct layers *in = &s->review.layers;

	for (size_t i = 0; i < in->n_points; i++) {
		const struct point *p = &in->points[i];

		put_one(l, &(struct one){ .id = p->id,
					  .created = p->created,
					  .kind = p->kind,
					  .message = p->message,
					  .live = machine_bytes(s, p->id) });
	}
	if (l->how->as_json)
		buf_printf(&l->out, "],\"layers\":%zu}\n", in->ws.n + in->home.n);
	else
		buf_printf(&l->out, "%zu checkpoints of '%s', %zu layers in use\n", in->n_points,
			   s->sandbox, in->ws.n + in->home.n);
}

int points_list(struct spot *s, const struct table_how *how, struct err *e)
{
	struct listed l = { .how = how,
			    .rows = { .columns = columns, .n_columns = POINT_COUNT },
			    .out = BUF(OUT_MAX) };
	int r = 0;

	if (how->as_json)
		buf_puts(&l.out, "{\"checkpoints\":[");
	if (s->is_review)
		put_layers(&l, s);
	else
		r = put_tree(&l, s, e);
	if (r == 0)
		r = table_is_asked(how) ? table_show(&l.rows, how, e) : cli_print(&l.out, e);
	table_done(&l.rows);
	buf_done(&l.out);
	return r;
}
