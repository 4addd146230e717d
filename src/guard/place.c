/* SPDX-License-Identifier: Apache-2.0 */
/* guard/place.c - see place.h */
#include "guard/place.h"

#include "base/path.h"
#include "guard/pattern.h"

/* Paths. */

#define SYSTEM_DIRS                                                                                \
	"bin|boot|dev|etc|home|lib|lib32|lib64|libx32|media|mnt|opt|proc|root|run|sbin|srv|sys|"   \
	"usr|var|tmp|"                                                                             \
	"Users|System|Library|Applications|Volumes|private|cores|nix"

/* Each word is put behind the working directory: thousands of words in a long one are megabytes. No honest command comes
 * near; the one that does is refused as unreadable. */
#define MAX_JOINED MIB

static bool is_too_much(const struct places *p, size_t n)
{
	if (p->joined == NULL)
		return false;
	*p->joined += n;
	p->mem->is_over |= *p->joined > MAX_JOINED;
	return *p->joined > MAX_JOINED;
}

/* Absolute and without "..", up to the first part that is a pattern or made at run time. */
static const char *fixed_part(const struct places *p, const struct value *v, bool *ret_cut)
{
	size_t n = strcspn(v->s, v->is_glob ? "*?[" VALUE_MARKS : VALUE_MARKS);
	char *s = arena_strn(p->mem, v->s, n);
	_free_ char *joined = NULL;
	char *slash;

	*ret_cut = n < v->n;
	if (*ret_cut) {
		slash = strrchr(s, '/');
		if (slash)
			slash[slash == s ? 1 : 0] = '\0';
		else
			s[0] = '\0';
	}
	if ((s[0] != '/' && p->cwd == NULL) ||
	    is_too_much(p, n + (s[0] != '/' ? strlen(p->cwd) : 0)))
		return s;
	joined = path_join(p->cwd ? p->cwd : "/", s[0] ? s : ".");
	return arena_strn(p->mem, joined, strlen(joined));
}

static const char *spot_of(const struct places *p, const struct value *v, bool *ret_cut)
{
	struct spot *spot = v->spot;

	if (spot == NULL)
		return fixed_part(p, v, ret_cut);
	if (!spot->is_known || spot->cwd != p->cwd) {
		spot->path = fixed_part(p, v, &spot->is_cut);
		spot->cwd = p->cwd;
		spot->is_known = true;
	}
	*ret_cut = spot->is_cut;
	return spot->path;
}

static bool is_below(const char *path, const char *dir)
{
	if (dir == NULL || path[0] != '/')
		return false;
	/* Most differ in their first letter. */
	if (dir[0] == '/' && dir[1] && dir[1] != path[1])
		return false;
	return path_is_beneath(path, dir);
}

static bool has_dotdot(const char *s)
{
	for (const char *at = s; (at = strstr(at, "..")) != NULL; at += 2)
		if ((at == s || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
	return false;
}

/* Something unknown, or a pattern, stands in front of a way up: the fixed part says nothing. */
static bool climbs(const struct value *v, bool is_cut)
{
	const char *mark = is_cut ? strpbrk(v->s, VALUE_MARKS "*?[") : NULL;

	return mark && has_dotdot(mark);
}

static bool is_tmp(const struct places *p, const char *path, bool is_cut)
{
	const char *const dirs[] = { "/tmp", "/var/tmp", "/private/tmp", p->tmp };

	/* A workspace in such a directory is a workspace all the same. */
	if (p->workspace && is_below(path, p->workspace))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (is_below(path, dirs[i]) && (is_cut || !str_eq(path, dirs[i]) || i == 3))
			/* The directory itself is the system's, unless it is one's own ($TMPDIR). */
			return i != 3 || !str_eq(path, "/") || is_cut;
	return false;
}

static bool is_root(const char *path, bool is_cut, const char *rest)
{
	const char *name = path + 1;

	if (path[0] != '/')
		return false;
	if (str_eq(path, "/"))
		return !is_cut || rest[0] != '\0';
	if (strchr(name, '/'))
		return false;
	/* Everything in it is as bad as the directory, but for temporary files. */
	return rules_list_has(SYSTEM_DIRS, name) && !(is_cut && str_eq(name, "tmp"));
}

static bool is_system(const struct places *p, const char *path)
{
	static const char *const dirs[] = { "/bin",     "/boot",    "/etc",       "/lib",
					    "/lib32",   "/lib64",   "/sbin",      "/usr",
					    "/var/lib", "/var/log", "/sys",       "/proc/sys",
					    "/opt",     "/srv",     "/var/spool", "/Library",
					    "/System",  "/run",     "/var/run" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (is_below(path, dirs[i]))
			return !str_starts(path, "/run/user/") &&
			       !(p->workspace && is_below(path, p->workspace));
	return false;
}

static bool is_home(const struct places *p, const char *path)
{
	if (path[0] != '/')
		return false;
	if (str_eq(path, p->home) || str_eq(path, "/root"))
		return true;
	if (str_starts(path, "/home/") && !strchr(path + 6, '/'))
		return true;
	if (str_starts(path, "/Users/") && !strchr(path + 7, '/'))
		return true;
	/* Above the workspace. */
	return p->workspace && !str_eq(path, p->workspace) && is_below(p->workspace, path) &&
	       !str_eq(path, "/");
}

static bool is_cwd(const struct places *p, const char *path, const struct value *v, bool is_cut)
{
	const char *name;

	if (!(p->cwd && str_eq(path, p->cwd)) && !(p->workspace && str_eq(path, p->workspace)))
		return false;
	if (!is_cut)
		return true;
	name = strrchr(v->s, '/') ? strrchr(v->s, '/') + 1 : v->s;
	return str_eq(name, "*") || str_eq(name, ".*") || str_eq(name, "**") ||
	       str_eq(name, "{*,.*}");
}

static bool is_git(const char *s)
{
	for (const char *at = s; (at = strstr(at, ".git")) != NULL; at += 4)
		if ((at == s || at[-1] == '/') && (at[4] == '\0' || at[4] == '/'))
			return true;
	return false;
}

static bool is_device(const char *path)
{
	static const char disks[] = "sd[a-z]*|hd[a-z]*|vd[a-z]*|xvd*|nvme*|mmcblk*|disk*|rdisk*|"
				    "mapper/*|md[0-9]*|"
				    "dm-*|loop[0-9]*|mem|kmem|port|sd\\**";

	return str_starts(path, "/dev/") && rules_list_fits(disks, path + 5);
}

/* Secrets. */

/* Either the file's name fits the pattern, or the name is itself a pattern that would find the secret. */
static bool name_fits(const char *pattern, const char *name, size_t n, bool is_glob)
{
	if (pattern_fits_fold(pattern, name, n))
		return true;
	/* "*" finds everything; only what aims counts. */
	return is_glob && n < 64 && !strchr("*?[", name[0]) && pattern_fits(name, n, pattern) &&
	       !strpbrk(pattern, "*?[");
}

static bool any_name(const struct places *p, enum pattern_list which, const char *name,
		     bool is_glob)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->n_sets; i++) {
		const struct patterns *l = &p->sets[i]->lists[which];

		for (size_t k = 0; k < l->n; k++)
			if (name_fits(l->v[k], name, n, is_glob))
				return true;
	}
	return false;
}

/* A path, and what of it stands behind the home directory, for the patterns that begin there. */
struct route {
	const char *path, *rest; /* rest NULL: it does not lie there */
	const char *end;         /* of both */
};

static struct route route_of(const struct places *p, const char *path)
{
	size_t n = strlen(p->home);

	return (struct route){ .path = path,
			       .rest = strncmp(path, p->home, n) == 0 ? path + n : NULL,
			       .end = path + strlen(path) };
}

/* What the pattern is held against, and the pattern without its "~"; NULL when it begins at a home that this is not in. */
static const char *route_for(const struct route *r, const char **pattern)
{
	if (**pattern != '~')
		return r->path;
	++*pattern;
	return r->rest;
}

static bool path_fits(const struct route *r, const char *pattern, bool is_glob)
{
	const char *path = route_for(r, &pattern);
	size_t n;

	if (path == NULL)
		return false;
	n = (size_t)(r->end - path);
	return pattern_fits_fold(pattern, path, n) ||
	       (is_glob && n < 256 && pattern_fits(path, n, pattern));
}

static bool any_path(const struct places *p, enum pattern_list which, const char *path,
		     bool is_glob)
{
	struct route route = route_of(p, path);

	for (size_t i = 0; i < p->n_sets; i++) {
		const struct patterns *l = &p->sets[i]->lists[which];

		for (size_t k = 0; k < l->n; k++)
			if (path_fits(&route, l->v[k], is_glob))
				return true;
	}
	return false;
}

/* Is path a directory on this pattern's way? */
static bool is_on_way(const struct route *r, const char *pattern, const char *name)
{
	const char *rest = pattern, *path = route_for(r, &rest);
	size_t n;

	if (path == NULL || !pattern_leads_below(rest, path))
		return false;
	n = strlen(name);
	for (const char *at = pattern; (at = strstr(at, name)) != NULL; at += n) {
		char dir[256];
		size_t k = (size_t)(at - pattern) + n;

		if (at == pattern || at[-1] != '/' || at[n] != '/' || k >= sizeof(dir))
			continue;
		memcpy(dir, pattern, k);
		dir[k] = '\0';
		/* "bin" is many a directory's name, ".claude" is one's. */
		if ((name[0] == '.' || dir[0] == '~') && path_fits(r, dir, false))
			return true;
	}
	return false;
}

/* A directory that one of them lies in: what is done to all of it is done to that. */
static bool holds_any(const struct places *p, enum pattern_list which, const char *path)
{
	const char *name = strrchr(path, '/');
	struct route route = route_of(p, path);

	if (name == NULL || name[1] == '\0')
		return false;
	for (size_t i = 0; i < p->n_sets; i++) {
		const struct patterns *l = &p->sets[i]->lists[which];

		for (size_t k = 0; k < l->n; k++)
			if (is_on_way(&route, l->v[k], name + 1))
				return true;
	}
	return false;
}

static bool looks_like_url(const char *s)
{
	return strstr(s, "://") != NULL;
}

bool place_is_secret(const struct places *p, const struct value *v)
{
	const char *s = v->s, *name;
	bool is_cut = false;

	if (v->n == 0 || v->n > 4096 || strpbrk(s, " \t\n") || looks_like_url(s))
		return false;
	if (s[0] == '@')
		s++;
	name = strrchr(s, '/');
	name = name ? name + 1 : s;
	if (any_name(p, PATTERNS_NOT_SECRET, name, false))
		return false;
	if (name[0] && any_name(p, PATTERNS_SECRET_NAME, name, v->is_glob))
		return true;
	if (s[0] == VALUE_UNKNOWN || s[0] == VALUE_MANY || (s[0] != '/' && p->cwd == NULL))
		return false;
	/* A pattern is held against secrets as it stands; what was cut off behind one is what it aims at. */
	if (v->is_glob || s != v->s) {
		_free_ char *joined = path_join(p->cwd ? p->cwd : "/", s);

		if (is_too_much(p, strlen(joined)))
			return false;
		return any_path(p, PATTERNS_SECRET, joined, v->is_glob);
	}
	s = spot_of(p, v, &is_cut);
	return any_path(p, PATTERNS_SECRET, is_cut ? v->s : s, false);
}

/* Substitutions. */

static bool node_names(const struct node *n, const char *names, unsigned depth)
{
	for (const struct word *w = n->words; w; w = w->next)
		if (w->first && w->first->kind == PART_TEXT && w->first->next == NULL &&
		    rules_list_has(names, w->first->text))
			return true;
	for (const struct node *i = n->first; i && depth < 8; i = i->next)
		if (node_names(i, names, depth + 1))
			return true;
	return false;
}

bool place_script_names(const struct word *word, const char *names)
{
	for (const struct part *p = word->first; p; p = p->next)
		if (p->script && node_names(p->script, names, 0))
			return true;
	return false;
}

/* Classes. */

/* All that is built in has a name with a dot in front, or one of these words: most paths are turned down here. */
static bool is_plain_name(const struct places *p, const char *path)
{
	static const char *const others[] = { "/etc", "/var", "/root", "/Library" };

	if (p->n_sets != 1 || path[0] != '/')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_starts(path, others[i]))
			return false;
	for (const char *s = path; *s; s++)
		if ((*s == '/' &&
		     (s[1] == '.' || str_starts(s, "/bin") || str_starts(s, "/Library"))) ||
		    (*s == 'v' && str_starts(s, "vitrine")) ||
		    (*s == 'o' && str_starts(s, "opencode")))
			return false;
	return true;
}

static bool spot_fits(const struct places *p, enum place_class class, const struct value *v)
{
	bool is_cut = false;
	const char *path = spot_of(p, v, &is_cut);
	bool is_unknown = v->s[0] == VALUE_UNKNOWN || v->s[0] == VALUE_MANY || climbs(v, is_cut) ||
			  (p->cwd == NULL && v->s[0] != '/');

	if (class == PLACE_UNKNOWN)
		return is_unknown;
	if (class == PLACE_GIT)
		return is_git(v->s) || is_git(path);
	/* rm $(which vitrine) */
	if (class == PLACE_GUARD && v->word && place_script_names(v->word, "vitrine"))
		return true;
	if (is_unknown)
		return false;
	if ((class == PLACE_STARTUP || class == PLACE_GUARD) && is_plain_name(p, path))
		return false;
	switch (class) {
	case PLACE_DEVICE:
		return is_device(v->is_glob || v->s[0] == '/' ? v->s : path);
	case PLACE_TMP:
		return is_tmp(p, path, is_cut);
	case PLACE_STARTUP:
		return any_path(p, PATTERNS_STARTUP, path, false) ||
		       (v->is_glob && any_path(p, PATTERNS_STARTUP, v->s, true));
	case PLACE_GUARD:
		return any_path(p, PATTERNS_GUARD, path, false) ||
		       holds_any(p, PATTERNS_GUARD, path) ||
		       (v->is_glob && any_path(p, PATTERNS_GUARD, v->s, true));
	case PLACE_SYSTEM:
		return is_system(p, path);
	case PLACE_ROOT:
		return is_root(path, is_cut, v->s + strcspn(v->s, "*?[" VALUE_MARKS));
	case PLACE_HOME:
		return is_home(p, path);
	case PLACE_CWD:
		return is_cwd(p, path, v, is_cut);
	case PLACE_OUTSIDE:
		return path[0] == '/' && !is_tmp(p, path, is_cut) &&
		       !(p->workspace && is_below(path, p->workspace));
	case PLACE_ANY:
	case PLACE_CREDENTIALS:
	case PLACE_DYNAMIC:
	case PLACE_GIT:
	case PLACE_MADE:
	case PLACE_SECRET:
	case PLACE_UNKNOWN:
	case PLACE_COUNT_:
		break;
	}
	bug_on(true);
}

/* A directory below the home in which credentials lie. */
static bool holds_secrets(const struct places *p, const struct value *v)
{
	bool is_cut = false;
	const char *path = spot_of(p, v, &is_cut);

	return path[0] == '/' && !value_begins_open(v) && is_below(path, p->home) &&
	       holds_any(p, PATTERNS_SECRET, path) &&
	       !rules_list_fits("*/.config|*/.local|*/.local/share", path);
}

static bool has_made_name(const struct places *p, const struct value *v)
{
	const char *name = strrchr(v->s, '/');

	return any_name(p, PATTERNS_MADE, name ? name + 1 : v->s, false);
}

static bool class_fits(const struct places *p, enum place_class class, const struct value *v);

/* Where a word leads is worked out only for the classes that ask. */
static bool class_decide(const struct places *p, enum place_class class, const struct value *v)
{
	if (class == PLACE_SECRET)
		return place_is_secret(p, v);
	if (class == PLACE_MADE)
		return has_made_name(p, v);
	if (class == PLACE_CREDENTIALS)
		return class_fits(p, PLACE_SECRET, v) || holds_secrets(p, v);
	return spot_fits(p, class, v);
}

/* Dozens of rules ask the same of each word: the answers are kept with it, for one working directory. */
static bool class_fits(const struct places *p, enum place_class class, const struct value *v)
{
	struct spot *spot = v->spot;
	uint32_t bit = UINT32_C(1) << class;
	bool is_fit;

	if (class == PLACE_ANY)
		return true;
	if (class == PLACE_DYNAMIC)
		return v->is_dynamic;
	if (spot == NULL)
		return class_decide(p, class, v);
	if (spot->answered_cwd != p->cwd)
		spot->answered = 0;
	if (spot->answered & bit)
		return spot->answers & bit;
	is_fit = class_decide(p, class, v);
	spot->answered_cwd = p->cwd;
	spot->answered |= bit;
	spot->answers = is_fit ? spot->answers | bit : spot->answers & ~bit;
	return is_fit;
}

bool place_fits(const struct places *p, const char *list, const struct value *v)
{
	while (list && *list) {
		size_t n = 0;

		while (list[n] && list[n] != '|')
			n++;
		if (list[0] == '@' ? class_fits(p, place_class_find(list, n), v)
				   : pattern_fits(list, n, v->s))
			return true;
		list += n + (list[n] == '|');
	}
	return false;
}
