/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_tree.c - which files an iteration changed
 *
 * `vitrine diff` says how the workspace differs from the host's (review) or from the checkpoint (direct), in git's form.
 * The piece of each file is made into a number; two such lists tell which files are not what they were. A clone (which
 * `vitrine diff` leaves to git) is read in its layers, never by running git on it.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/sha256.h"
#include "core/layers.h"
#include "git/git.h"
#include "loop/loop.h"

#define HEAD "diff --git "
#define DIFF_MAX (64 * MIB)

/* "diff --git a/NAME b/NAME": both are the same but for renames, which are two files here. */
static struct buf name_of(const char *line, size_t n)
{
	struct buf b = BUF(64 * KIB);
	const char *second = NULL;

	for (size_t i = strlen(HEAD); i + 3 < n; i++)
		if (memcmp(line + i, " b/", 3) == 0 || memcmp(line + i, " \"b/", 4) == 0)
			second = line + i + (line[i + 1] == '"' ? 4 : 3);
	if (second)
		buf_add(&b, second, (size_t)(line + n - second));
	else
		buf_add(&b, line, n);
	return b;
}

static void put_piece(const char *piece, size_t n, struct buf *out)
{
	const char *end = memchr(piece, '\n', n);
	struct buf name = name_of(piece, end ? (size_t)(end - piece) : n);
	char hex[SHA256_HEX_BYTES];

	sha256_hex(piece, n, hex);
	buf_printf(out, "%.16s %s\n", hex, buf_cstr(&name));
	buf_done(&name);
}

static const char *next_head(const char *p, const char *end)
{
	for (; p && p < end; p = memchr(p, '\n', (size_t)(end - p)), p = p ? p + 1 : NULL)
		if ((size_t)(end - p) >= strlen(HEAD) && memcmp(p, HEAD, strlen(HEAD)) == 0)
			return p;
	return end;
}

/* ---- a clone ---- */

/* Of git's own files those that say which commits there are; the rest moves whenever git looks at something. */
static bool is_told(const struct tree_entry *en)
{
	if (S_ISDIR(en->mode))
		return false;
	return !str_starts(en->path, ".git/") || str_starts(en->path, ".git/refs/") ||
	       str_eq(en->path, ".git/HEAD") || str_eq(en->path, ".git/packed-refs");
}

static void put_entry(const struct tree_entry *en, struct buf *out)
{
	_free_ char *state = mem_fmt("%u %llu %llu %lld", en->mode, (unsigned long long)en->ino,
				     (unsigned long long)en->size, (long long)en->mtime);
	char hex[SHA256_HEX_BYTES];

	sha256_hex(state, strlen(state), hex);
	buf_printf(out, "%.16s ", hex);
	buf_esc(out, en->path, strlen(en->path));
	buf_putc(out, '\n');
}

/* There is nothing below a clone to compare it with, so it is listed whole. */
static int clone_tree(const struct loop *l, struct buf *out, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_EMPTY, l->host.state_dir, l->name);
	_close_ int empty = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct layers layers = { 0 };
	struct overlay o = { 0 };
	struct overlay_diff d = { 0 };
	int r;

	if (empty < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path); /* not cloned yet */
	r = layers_read(l->host.state_dir, l->name, &layers, e);
	if (r == 0)
		r = layers_open(&layers, &layers.ws, empty, &o, e);
	if (r == 0)
		r = overlay_names(&o, &d, e);
	for (size_t i = 0; r == 0 && i < d.after.n; i++)
		if (is_told(&d.after.v[i]))
			put_entry(&d.after.v[i], out);
	overlay_diff_done(&d);
	layers_close(&o);
	layers_done(&layers);
	return r;
}

/* ---- the others: what `vitrine diff` says ---- */

static int diff_tree(const struct loop *l, uint64_t checkpoint, struct buf *out, struct err *e)
{
	char since[32], diff[] = "diff", flag[] = "--since";
	bool is_review = str_eq(l->def.mode, "review");
	char *argv[] = { diff, l->name, is_review ? NULL : flag, since, NULL };
	_cleanup_(buf_done) struct buf text = BUF(DIFF_MAX);
	int r;

	(void)snprintf(since, sizeof(since), "%llu", (unsigned long long)checkpoint);
	r = loop_tool(l,
		      &(struct tool){ .argv = argv, .out = FD_NONE, .err = FD_NONE, .text = &text },
		      e);
	if (r < 0)
		return r;
	if (r != 0)
		return err_set(e, ERR_SYSTEM, EIO,
			       "what changed could not be found out ('vitrine diff %s')", l->name);
	const char *end = buf_cstr(&text) + text.n, *p = next_head(buf_cstr(&text), end);

	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		const char *next = line ? next_head(line + 1, end) : end;

		put_piece(p, (size_t)(next - p), out);
		p = next;
	}
	return 0;
}

int loop_tree(const struct loop *l, uint64_t checkpoint, struct buf *out, struct err *e)
{
	int r = str_eq(l->def.mode, "clone") ? clone_tree(l, out, e)
					     : diff_tree(l, checkpoint, out, e);

	if (r < 0)
		return r;
	return out->is_over ? err_set(e, ERR_SYSTEM, E2BIG,
				      "more changed than a loop can keep a list of")
			    : 0;
}

/* ---- comparing ---- */

#define NAME_AT 17

struct line {
	const char *p;
	size_t n;
};

static int cmp_names(const struct line *a, const struct line *b)
{
	size_t n = a->n < b->n ? a->n : b->n;
	int r = memcmp(a->p + NAME_AT, b->p + NAME_AT, n - NAME_AT);

	return r ? r : a->n < b->n ? -1 : a->n > b->n;
}

static int cmp_lines(const void *a, const void *b)
{
	return cmp_names(a, b);
}

/* Sorted by name. */
static struct line *lines_of(const char *text, size_t *ret_n)
{
	struct line *v = NULL;
	size_t n = 0, cap = 0;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len <= NAME_AT)
			continue;
		vec_reserve(v, n, cap);
		v[n++] = (struct line){ text, len };
	}
	if (n > 1)
		qsort(v, n, sizeof(*v), cmp_lines);
	*ret_n = n;
	return v;
}

uint64_t loop_tree_compare(const char *before, const char *now, size_t max, char ***ret)
{
	size_t n_a, n_b, i = 0, k = 0, n = 0;
	_free_ struct line *a = lines_of(before, &n_a), *b = lines_of(now, &n_b);
	char **v = mem_new(max + 1, sizeof(*v));
	uint64_t count = 0;

	while (i < n_a || k < n_b) {
		int which = i == n_a ? 1 : k == n_b ? -1 : cmp_names(&a[i], &b[k]);
		const struct line *one = which > 0 ? &b[k] : &a[i];
		bool is_same = which == 0 && memcmp(a[i].p, b[k].p, NAME_AT) == 0;

		if (!is_same && n < max)
			v[n++] = mem_strn(one->p + NAME_AT, one->n - NAME_AT);
		count += !is_same;
		i += which <= 0;
		k += which >= 0;
	}
	*ret = v;
	return count;
}
