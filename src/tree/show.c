/* SPDX-License-Identifier: Apache-2.0 */
/* tree/show.c - see show.h */
#include "tree/show.h"
#include "base/path.h"

struct lines {
	struct text_count count;
	bool is_binary;
};

bool show_is_silent(const struct changes *c, size_t i)
{
	const struct change *at = &c->v[i];
	const struct tree_entry *en = at->b ? at->b : at->a;
	size_t n = strlen(en->path);

	if ((at->kind != CHANGE_ADDED && at->kind != CHANGE_REMOVED) || !S_ISDIR(en->mode) ||
	    en->flags & TREE_OPAQUE)
		return false;
	for (size_t k = i + 1; k < c->n; k++) {
		const struct tree_entry *next = c->v[k].b ? c->v[k].b : c->v[k].a;

		if (strncmp(next->path, en->path, n) == 0 && next->path[n] == '/')
			return true;
		if (path_cmp(next->path, en->path) > 0 && next == c->v[k].b)
			break;
	}
	return false;
}

void show_path(struct buf *out, const char *prefix, const char *path)
{
	bool is_odd = false;

	for (const char *p = path; *p; p++)
		is_odd |= (unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f || *p == '"' ||
			  *p == '\\';
	if (!is_odd) {
		buf_printf(out, "%s%s", prefix, path);
		return;
	}
	buf_printf(out, "\"%s", prefix);
	for (const char *p = path; *p; p++) {
		if (*p == '\n')
			buf_puts(out, "\\n");
		else if (*p == '\t')
			buf_puts(out, "\\t");
		else if (*p == '"' || *p == '\\')
			buf_printf(out, "\\%c", *p);
		else if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			buf_printf(out, "\\%03o", (unsigned char)*p);
		else
			buf_putc(out, *p);
	}
	buf_putc(out, '"');
}

static const struct tree_entry *any(const struct change *c)
{
	return c->b ? c->b : c->a;
}

static const char *note_of(const struct show *s, const struct change *c)
{
	return s->note ? s->note(s->arg, c) : NULL;
}

/* ---- contents ---- */

static bool read_side(const struct show *s, const struct tree_entry *en, bool is_new,
		      struct buf *out)
{
	if (en == NULL || S_ISDIR(en->mode))
		return true;
	if (S_ISLNK(en->mode)) {
		buf_add(out, en->target, en->target_len);
		return true;
	}
	return S_ISREG(en->mode) && en->size <= SHOW_TEXT_MAX &&
	       s->read(s->arg, en, is_new, out) >= 0 && !out->is_over;
}

/* Lines that differ; into out when it is not NULL. */
static struct lines compare(const struct show *s, const struct change *c, struct buf *out)
{
	_cleanup_(buf_done) struct buf a = BUF(SHOW_TEXT_MAX);
	_cleanup_(buf_done) struct buf b = BUF(SHOW_TEXT_MAX);
	struct lines l = { 0 };

	if (c->kind == CHANGE_MODE || (any(c)->mode & S_IFMT) == S_IFDIR)
		return l;
	if (!read_side(s, c->a, false, &a) || !read_side(s, c->b, true, &b) ||
	    text_is_binary(buf_cstr(&a), a.n) || text_is_binary(buf_cstr(&b), b.n))
		l.is_binary = true;
	else
		text_diff(buf_cstr(&a), a.n, buf_cstr(&b), b.n, &l.count, out);
	return l;
}

/* ---- patch ---- */

static unsigned git_mode(const struct tree_entry *en)
{
	if (S_ISLNK(en->mode))
		return 0120000;
	if (S_ISDIR(en->mode))
		return 0040000;
	return S_ISREG(en->mode) ? 0100000 | (en->mode & 0111 ? 0755 : 0644) : en->mode;
}

static void patch_head(const struct change *c, struct buf *out)
{
	buf_puts(out, "diff --git ");
	show_path(out, "a/", c->a ? c->a->path : c->b->path);
	buf_putc(out, ' ');
	show_path(out, "b/", any(c)->path);
	buf_putc(out, '\n');
	if (c->a == NULL)
		buf_printf(out, "new file mode %06o\n", git_mode(c->b));
	else if (c->b == NULL)
		buf_printf(out, "deleted file mode %06o\n", git_mode(c->a));
	else if (git_mode(c->a) != git_mode(c->b))
		buf_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(c->a), git_mode(c->b));
	else if (c->a->mode != c->b->mode)
		buf_printf(out, "# mode %04o to %04o\n", c->a->mode & 07777, c->b->mode & 07777);
	if (c->kind == CHANGE_RENAMED && c->a && c->b) {
		buf_puts(out, "similarity index 100%\nrename from ");
		show_path(out, "", c->a->path);
		buf_puts(out, "\nrename to ");
		show_path(out, "", c->b->path);
		buf_putc(out, '\n');
	}
}

static void patch_names(const struct change *c, struct buf *out)
{
	buf_puts(out, "--- ");
	if (c->a)
		show_path(out, "a/", c->a->path);
	else
		buf_puts(out, "/dev/null");
	buf_puts(out, "\n+++ ");
	if (c->b)
		show_path(out, "b/", c->b->path);
	else
		buf_puts(out, "/dev/null");
	buf_putc(out, '\n');
}

static void patch_binary(const struct change *c, struct buf *out)
{
	buf_puts(out, "Binary files ");
	show_path(out, "a/", c->a ? c->a->path : c->b->path);
	buf_puts(out, " and ");
	show_path(out, "b/", any(c)->path);
	buf_printf(out, " differ (%llu -> %llu bytes)\n",
		   (unsigned long long)(c->a ? c->a->size : 0),
		   (unsigned long long)(c->b ? c->b->size : 0));
}

static void patch_one(const struct show *s, const struct change *c, struct buf *out)
{
	_cleanup_(buf_done) struct buf body = BUF(16 * MIB);
	const char *note = note_of(s, c);
	struct lines l;

	/* git has no name for a change of type: it goes and comes. */
	if (c->kind == CHANGE_TYPE && !S_ISDIR(c->a->mode) && !S_ISDIR(c->b->mode)) {
		patch_one(s, &(struct change){ .kind = CHANGE_REMOVED, .a = c->a }, out);
		patch_one(s, &(struct change){ .kind = CHANGE_ADDED, .b = c->b }, out);
		return;
	}
	if (note)
		buf_printf(out, "# %s\n", note);
	patch_head(c, out);
	if (c->kind == CHANGE_RENAMED)
		return;
	l = compare(s, c, &body);
	if (l.is_binary) {
		patch_binary(c, out);
	} else if (body.n > 0) {
		patch_names(c, out);
		buf_add(out, body.p, body.n);
	}
}

/* ---- other forms ---- */

static char letter_of(enum change_kind kind)
{
	static const char letters[CHANGE_KIND_COUNT_ + 1] = "ADMmTR";

	return letters[kind];
}

static void stat_one(const struct show *s, const struct change *c, struct buf *out,
		     struct text_count *sum)
{
	const char *note = note_of(s, c);
	struct lines l = { 0 };

	if (c->kind != CHANGE_RENAMED)
		l = compare(s, c, NULL);
	buf_printf(out, "%c ", letter_of(c->kind));
	if (c->kind == CHANGE_RENAMED) {
		show_path(out, "", c->a->path);
		buf_puts(out, " -> ");
	}
	show_path(out, "", any(c)->path);
	if (l.is_binary)
		buf_printf(out, "  binary %llu -> %llu bytes",
			   (unsigned long long)(c->a ? c->a->size : 0),
			   (unsigned long long)(c->b ? c->b->size : 0));
	else if (l.count.added || l.count.removed)
		buf_printf(out, "  +%llu -%llu", (unsigned long long)l.count.added,
			   (unsigned long long)l.count.removed);
	if (c->a && c->b && (c->a->mode & 07777) != (c->b->mode & 07777))
		buf_printf(out, "  mode %04o -> %04o", c->a->mode & 07777, c->b->mode & 07777);
	if (note)
		buf_printf(out, "  ! %s", note);
	buf_putc(out, '\n');
	sum->added += l.count.added;
	sum->removed += l.count.removed;
}

static const char *type_name(const struct tree_entry *en)
{
	if (S_ISREG(en->mode))
		return "file";
	if (S_ISDIR(en->mode))
		return "directory";
	return S_ISLNK(en->mode) ? "link" : "special";
}

static void json_side(const char *key, const struct tree_entry *en, struct buf *out)
{
	if (en == NULL)
		return;
	buf_printf(out, ",\"%s\":{\"type\":\"%s\",\"mode\":\"%04o\",\"size\":%llu", key,
		   type_name(en), en->mode & 07777, (unsigned long long)en->size);
	if (S_ISLNK(en->mode)) {
		buf_puts(out, ",\"target\":");
		buf_json(out, en->target);
	}
	buf_putc(out, '}');
}

static void json_one(const struct show *s, const struct change *c, struct buf *out)
{
	struct lines l = compare(s, c, NULL);
	const char *note = note_of(s, c);

	buf_puts(out, "{\"path\":");
	buf_json(out, any(c)->path);
	buf_printf(out, ",\"kind\":\"%s\"", change_kind_name(c->kind));
	if (c->kind == CHANGE_RENAMED) {
		buf_puts(out, ",\"from\":");
		buf_json(out, c->a->path);
	}
	json_side("old", c->a, out);
	json_side("new", c->b, out);
	buf_printf(out, ",\"added\":%llu,\"removed\":%llu,\"binary\":%s",
		   (unsigned long long)l.count.added, (unsigned long long)l.count.removed,
		   l.is_binary ? "true" : "false");
	if (note) {
		buf_puts(out, ",\"note\":");
		buf_json(out, note);
	}
	buf_putc(out, '}');
}

void tree_show(const struct changes *c, const struct show *s, struct buf *out)
{
	struct text_count sum = { 0 };
	size_t shown = 0;

	if (s->form == SHOW_JSON)
		buf_puts(out, "{\"changes\":[");
	for (size_t i = 0; i < c->n; i++) {
		if (show_is_silent(c, i))
			continue;
		switch (s->form) {
		case SHOW_PATCH:
			patch_one(s, &c->v[i], out);
			break;
		case SHOW_STAT:
			stat_one(s, &c->v[i], out, &sum);
			break;
		case SHOW_NAMES:
			show_path(out, "", any(&c->v[i])->path);
			buf_putc(out, '\n');
			break;
		case SHOW_JSON:
			buf_puts(out, shown ? "," : "");
			json_one(s, &c->v[i], out);
			break;
		case SHOW_FORM_COUNT_:
			bug_on(true);
		}
		shown++;
	}
	if (s->form == SHOW_JSON)
		buf_puts(out, "]}\n");
	else if (s->form == SHOW_STAT)
		buf_printf(out, "%zu changed, +%llu -%llu lines\n", shown,
			   (unsigned long long)sum.added, (unsigned long long)sum.removed);
}
