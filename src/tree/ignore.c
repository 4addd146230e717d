/* SPDX-License-Identifier: Apache-2.0 */
/* tree/ignore.c - see ignore.h
 *
 * The file belongs to whoever writes in the workspace, so its size and the number of rules are bounded; what is over
 * is not read, and then more is saved rather than less.
 */
#include "tree/ignore.h"

#include "base/path.h"
#include "policy/policy.h"

#define RULES_MAX 4096
#define LINE_MAX_BYTES 1024

struct rule {
	char *dir;  /* of the file */
	char *glob; /* relative to dir */
	bool is_back;
};

struct ignore {
	struct rule *v;
	size_t n, cap;
};

static bool lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (strncmp(path, dir, n) == 0 && path[n] == '/');
}

static void add_rule(struct ignore *g, const char *dir, const char *line, size_t n)
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
	if (n == 0 || line[0] == '#' || n > LINE_MAX_BYTES || memchr(line, '\0', n) ||
	    g->n >= RULES_MAX)
		return;
	/* A pattern without a slash matches at any depth, unless it began with one. */
	glob = is_anchored && !memchr(line, '/', n) ? mem_fmt("/%.*s", (int)n, line)
						    : mem_strn(line, n);
	if (glob_check(glob + (glob[0] == '/'), &ignored) < 0) {
		free(glob);
		return;
	}
	vec_reserve(g->v, g->n, g->cap);
	g->v[g->n++] = (struct rule){ .dir = mem_str(dir), .glob = glob, .is_back = is_back };
}

void ignore_add(struct ignore **g, const char *dir, const char *text, size_t n)
{
	const char *end = text + n;

	if (*g == NULL)
		*g = mem_new(1, sizeof(**g));
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text);

		if (len > 0 && text[0] != '#')
			add_rule(*g, dir, text, len);
		text += len + 1;
	}
}

void ignore_leave(struct ignore *g, const char *dir)
{
	while (g && g->n > 0) {
		struct rule *r = &g->v[g->n - 1];

		if (str_eq(r->dir, dir) || lies_in(dir, r->dir))
			return;
		free(r->dir);
		free(r->glob);
		g->n--;
	}
}

static bool matches(const struct rule *r, const char *path)
{
	const char *rel = path;

	if (!lies_in(path, r->dir))
		return false;
	if (r->dir[0])
		rel += strlen(r->dir) + 1;
	if (r->glob[0] == '/') /* one component, right here */
		return strchr(rel, '/') == NULL && glob_match(r->glob + 1, rel);
	return glob_match(r->glob, rel);
}

bool ignore_dir(const struct ignore *g, const char *path)
{
	if (g == NULL || str_eq(path_name(path), ".git"))
		return false;
	for (size_t i = g->n; i-- > 0;)
		if (matches(&g->v[i], path))
			return !g->v[i].is_back;
	return false;
}

void ignore_free(struct ignore *g)
{
	for (size_t i = 0; g && i < g->n; i++) {
		free(g->v[i].dir);
		free(g->v[i].glob);
	}
	if (g)
		free(g->v);
	free(g);
}
