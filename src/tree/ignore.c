/* SPDX-License-Identifier: Apache-2.0 */
/* tree/ignore.c - see ignore.h
 *
 * The files belong to whoever writes in the workspace, so what they cost is bounded: the bytes that are read of them all,
 * the number of rules in force, and the comparisons for one directory, which patterns full of stars could drive up. What is
 * over a bound is not followed, and then more is saved rather than less. Rules in force are those of the directories on the
 * way to the one being read, so a rule needs no look at the path above it, however deep that is.
 */
#include "tree/ignore.h"

#include "base/path.h"
#include "base/sabotage.h"
#include "policy/policy.h"

#define RULES_MAX 4096
#define LINE_MAX_BYTES 1024
#define BYTES_MAX (8 * MIB)
/* For one directory: a thousand plain rules, or some microseconds of the worst. */
#define STEPS_MAX 32768

struct rule {
	char *glob; /* relative to the directory of its file */
	bool is_back;
};

struct file {
	char *dir;
	size_t dir_len, first; /* its first rule */
};

struct ignore {
	struct rule *v;
	size_t n, cap;
	struct file *files;
	size_t n_files, cap_files;
	size_t bytes; /* of all files so far */
	bool is_cut;
};

static bool lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (strncmp(path, dir, n) == 0 && path[n] == '/');
}

static void add_rule(struct ignore *g, const char *line, size_t n)
{
	bool is_back = n > 0 && line[0] == '!';
	bool is_anchored;
	struct err ignored;
	char *glob;

	line += is_back;
	n -= is_back;
	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\r' || line[n - 1] == '\t'))
		n--;
	if (n > 0 && line[n - 1] == '/')
		n--;
	is_anchored = n > 0 && line[0] == '/';
	line += is_anchored;
	n -= is_anchored;
	if (n == 0 || line[0] == '#' || n > LINE_MAX_BYTES || memchr(line, '\0', n))
		return;
	if (g->n >= RULES_MAX) {
		g->is_cut = true;
		return;
	}
	/* A pattern without a slash matches at any depth, unless it began with one. */
	glob = is_anchored && !memchr(line, '/', n) ? mem_fmt("/%.*s", (int)n, line)
						    : mem_strn(line, n);
	if (glob_check(glob + (glob[0] == '/'), &ignored) < 0) {
		free(glob);
		return;
	}
	vec_reserve(g->v, g->n, g->cap);
	g->v[g->n++] = (struct rule){ .glob = glob, .is_back = is_back };
}

void ignore_add(struct ignore **ig, const char *dir, const char *text, size_t n)
{
	const char *end = text + n;
	struct ignore *g = *ig ? *ig : mem_new(1, sizeof(*g));

	*ig = g;
	g->bytes += n;
	if (g->bytes > BYTES_MAX && !sabotaged("ignore")) {
		g->is_cut = true;
		return;
	}
	vec_reserve(g->files, g->n_files, g->cap_files);
	g->files[g->n_files++] =
		(struct file){ .dir = mem_str(dir), .dir_len = strlen(dir), .first = g->n };
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text);

		if (len > 0 && text[0] != '#')
			add_rule(g, text, len);
		text += len + 1;
	}
}

size_t ignore_room(const struct ignore *g)
{
	if (sabotaged("ignore"))
		return BYTES_MAX;
	return g == NULL ? BYTES_MAX : g->bytes < BYTES_MAX ? BYTES_MAX - g->bytes : 0;
}

static void drop_file(struct ignore *g)
{
	struct file *f = &g->files[--g->n_files];

	while (g->n > f->first)
		free(g->v[--g->n].glob);
	free(f->dir);
}

void ignore_leave(struct ignore *g, const char *dir)
{
	while (g && g->n_files > 0) {
		const char *top = g->files[g->n_files - 1].dir;

		if (str_eq(top, dir) || lies_in(dir, top))
			return;
		drop_file(g);
	}
}

/* `rel` is the path below the directory of the rule's file. */
static bool matches(const struct rule *r, const char *rel, uint64_t *steps)
{
	if (r->glob[0] == '/') /* one component, right here */
		return strchr(rel, '/') == NULL && glob_match_within(r->glob + 1, rel, steps);
	return glob_match_within(r->glob, rel, steps);
}

bool ignore_dir(struct ignore *g, const char *path)
{
	uint64_t steps = sabotaged("ignore") ? UINT64_MAX : STEPS_MAX;
	size_t at = g ? g->n : 0;

	if (g == NULL || str_eq(path_name(path), ".git"))
		return false;
	for (size_t f = g->n_files; f-- > 0;) {
		const struct file *from = &g->files[f];
		const char *rel = path + from->dir_len + (from->dir_len > 0);

		while (at > from->first) {
			const struct rule *r = &g->v[--at];

			if (matches(r, rel, &steps) && steps > 0)
				return !r->is_back;
			if (steps == 0) {
				g->is_cut = true;
				return false;
			}
			steps--;
		}
	}
	return false;
}

void ignore_skip(struct ignore **ig)
{
	if (*ig == NULL)
		*ig = mem_new(1, sizeof(**ig));
	(*ig)->is_cut = true;
}

bool ignore_is_cut(const struct ignore *g)
{
	return g && g->is_cut;
}

void ignore_free(struct ignore *g)
{
	while (g && g->n_files > 0)
		drop_file(g);
	if (g) {
		free(g->v);
		free(g->files);
	}
	free(g);
}
