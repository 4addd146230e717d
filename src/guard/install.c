/* SPDX-License-Identifier: Apache-2.0 */
/* guard/install.c - see install.h
 *
 * Settings belong to the user: everything that is not ours is printed again as it was, in its order, and a file with
 * comments, which would be lost, is left alone. Our entry is known by the words "hook --agent NAME" in its command,
 * and the command line never changes from one version to the next, because an agent may have been told to trust
 * exactly that line.
 */
#include "guard/install.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"

/* Extensions that agents load into their own process; @VITRINE@ is the program. */
static const char opencode_js[] =
#include "opencode_js.h"
	;
static const char pi_js[] =
#include "pi_js.h"
	;

struct place {
	enum agent agent;
	const char *file;      /* below the home directory */
	const char *events[3]; /* none: the whole file is ours */
	const char *entry;     /* %C is the command */
	const char *empty;     /* what a new file begins as */
	const char *shim;      /* the whole file, where it is ours */
};

static const struct place installs[] = {
	{ AGENT_CLAUDE,
	  ".claude/settings.json",
	  { "PreToolUse" },
	  "{\"matcher\":\"Bash|Read|Write|Edit|MultiEdit|NotebookEdit\",\"hooks\":[{\"type\":"
	  "\"command\",\"command\":%C,"
	  "\"timeout\":10,\"onFailure\":\"block\"}]}",
	  "{}" },
	{ AGENT_CODEX,
	  ".codex/hooks.json",
	  { "PreToolUse" },
	  "{\"matcher\":\"Bash|apply_patch\",\"hooks\":[{\"type\":\"command\",\"command\":%C,"
	  "\"timeout\":10}]}",
	  "{}" },
	{ AGENT_GEMINI,
	  ".gemini/settings.json",
	  { "BeforeTool" },
	  "{\"matcher\":\"run_shell_command|read_file|write_file|replace\",\"hooks\":[{\"type\":"
	  "\"command\","
	  "\"name\":\"vitrine\",\"command\":%C,\"timeout\":10000}]}",
	  "{}" },
	{ AGENT_COPILOT,
	  ".copilot/hooks/vitrine.json",
	  { "preToolUse" },
	  "{\"type\":\"command\",\"bash\":%C,\"timeoutSec\":10}",
	  "{\"version\":1}" },
	{ AGENT_CURSOR,
	  ".cursor/hooks.json",
	  { "beforeShellExecution", "beforeReadFile" },
	  "{\"command\":%C,\"timeout\":10,\"failClosed\":true}",
	  "{\"version\":1}" },
	{ AGENT_DROID,
	  ".factory/settings.json",
	  { "PreToolUse" },
	  "{\"matcher\":\"Execute|Read|Create|Edit|ApplyPatch\",\"hooks\":[{\"type\":\"command\","
	  "\"command\":%C,\"timeout\":10}]}",
	  "{}" },
	/* Versions before 0.24 count the time limit in milliseconds; later ones take so large a number for that. */
	{ AGENT_QWEN,
	  ".qwen/settings.json",
	  { "PreToolUse" },
	  "{\"matcher\":\"run_shell_command|read_file|write_file|edit\",\"hooks\":[{\"type\":"
	  "\"command\","
	  "\"name\":\"vitrine\",\"command\":%C,\"timeout\":10000}]}",
	  "{}" },
	{ AGENT_GOOSE,
	  ".agents/plugins/vitrine/hooks/hooks.json",
	  { "PreToolUse" },
	  "{\"matcher\":\"^(developer__)?(shell|write|edit)$\",\"hooks\":[{\"type\":\"command\","
	  "\"command\":%C,\"timeout\":10,\"on_failure\":\"block\"}]}",
	  "{}" },
	{ .agent = AGENT_OPENCODE,
	  .file = ".config/opencode/plugins/vitrine.js",
	  .shim = opencode_js },
	{ .agent = AGENT_PI, .file = ".pi/agent/extensions/vitrine.js", .shim = pi_js },
};

static const struct place *find_place(enum agent a)
{
	for (size_t i = 0; i < ARRAY_LEN(installs); i++)
		if (installs[i].agent == a)
			return &installs[i];
	return NULL;
}

/* The tree is changed by unlinking and adding nodes; new ones come out of parsing our own text. */

struct edit {
	const struct place *place;
	const char *program; /* NULL: take out */
	const char *mark;    /* "hook --agent NAME" */
	struct json_doc extra[4];
	size_t n_extra;
	struct err *e;
};

static bool is_ours(const struct edit *d, const struct json *v)
{
	if (v->type == JSON_STRING)
		return strstr(v->text, d->mark) != NULL;
	for (const struct json *m = v->first; m; m = m->next)
		if (is_ours(d, m))
			return true;
	return false;
}

static struct json *parse_own(struct edit *d, const char *text, const char *key)
{
	struct json_doc *doc = &d->extra[d->n_extra++];

	bug_on(d->n_extra > ARRAY_LEN(d->extra));
	bug_on(json_parse(text, strlen(text), doc, d->e) < 0);
	doc->root->key = key;
	return doc->root;
}

static void link_last(struct json *parent, struct json *child)
{
	struct json **end = &parent->first;

	while (*end)
		end = &(*end)->next;
	*end = child;
	parent->n++;
}

static void unlink_ours(const struct edit *d, struct json *list)
{
	for (struct json **at = &list->first; *at;)
		if (is_ours(d, *at)) {
			*at = (*at)->next;
			list->n--;
		} else {
			at = &(*at)->next;
		}
}

static void unlink_key(struct json *object, const char *key)
{
	for (struct json **at = &object->first; *at;)
		if (str_eq((*at)->key, key)) {
			*at = (*at)->next;
			object->n--;
		} else {
			at = &(*at)->next;
		}
}

/* The member called key, made when it is missing and may be. */
static struct json *member(struct edit *d, struct json *object, const char *key, const char *empty,
			   bool may_add)
{
	struct json *m = object->first;

	while (m && !str_eq(m->key, key))
		m = m->next;
	if (m == NULL && may_add) {
		m = parse_own(d, empty, key);
		link_last(object, m);
	}
	return m;
}

static struct json *own_entry(struct edit *d)
{
	_cleanup_(buf_done) struct buf command = BUF(16 * KIB), text = BUF(64 * KIB);

	/* The agent gives it to a shell. */
	buf_putc(&command, '\'');
	buf_puts(&command, d->program);
	buf_printf(&command, "' %s", d->mark);
	for (const char *s = d->place->entry; *s; s++)
		if (s[0] == '%' && s[1] == 'C') {
			buf_json(&text, buf_cstr(&command));
			s++;
		} else {
			buf_putc(&text, *s);
		}
	return parse_own(d, buf_cstr(&text), NULL);
}

static int edit_event(struct edit *d, struct json *root, const char *event)
{
	struct json *hooks = member(d, root, "hooks", "{}", d->program != NULL);
	struct json *list;

	if (hooks == NULL)
		return 0;
	if (hooks->type != JSON_OBJECT)
		return err_set(d->e, ERR_CONFIG, EINVAL, "\"hooks\" is not an object");
	list = member(d, hooks, event, "[]", d->program != NULL);
	if (list == NULL)
		return 0;
	if (list->type != JSON_ARRAY)
		return err_set(d->e, ERR_CONFIG, EINVAL, "\"hooks.%s\" is not a list", event);
	unlink_ours(d, list);
	if (d->program)
		link_last(list, own_entry(d));
	else if (list->n == 0)
		unlink_key(hooks, event);
	if (hooks->n == 0)
		unlink_key(root, "hooks");
	return 0;
}

static bool has_comments(const char *text)
{
	bool in_string = false;

	for (const char *s = text; *s; s++) {
		if (in_string && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			in_string = !in_string;
		else if (!in_string && *s == '/')
			return true;
	}
	return false;
}

static int edit_tree(const struct place *p, const char *text, size_t n, const char *program,
		     struct buf *out, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_free_ char *mark = mem_fmt("hook --agent %s", agent_name(p->agent));
	int r = json_parse(text, n, &doc, e);

	if (r >= 0 && doc.root->type != JSON_OBJECT)
		r = err_set(e, ERR_CONFIG, EINVAL, "not an object");
	for (size_t i = 0; r >= 0 && p->events[i]; i++) {
		struct edit d = { .place = p, .program = program, .mark = mark, .e = e };
		_cleanup_(buf_done) struct buf copy = BUF(MIB);

		r = edit_event(&d, doc.root, p->events[i]);
		/* Printed and read again, so that one document owns all of it. */
		json_print(doc.root, &copy);
		for (size_t k = 0; k < d.n_extra; k++)
			json_done(&d.extra[k]);
		json_done(&doc);
		if (r >= 0)
			r = json_parse(buf_cstr(&copy), copy.n, &doc, e);
	}
	if (r < 0)
		return r;
	json_print(doc.root, out);
	buf_putc(out, '\n');
	return 0;
}

int install_edit(enum agent a, const char *text, size_t n, const char *program, struct buf *out,
		 struct err *e)
{
	const struct place *p = find_place(a);

	if (p == NULL || p->entry == NULL)
		return err_set(e, ERR_USAGE, EINVAL, "no settings are known for '%s'",
			       agent_name(a));
	if (has_comments(text))
		return err_set(e, ERR_CONFIG, EINVAL,
			       "it has comments, which would be lost; add the hook by hand "
			       "(docs/GUARD.md)");
	return edit_tree(p, text, n, program, out, e);
}

/* Files. */

static int replace_file(const char *path, const struct buf *text, struct err *e)
{
	_free_ char *dir = path_parent(path);
	_free_ char *tmp = mem_fmt("%s.vitrine-XXXXXX", path);
	_close_ int fd = FD_NONE;
	struct stat st;
	mode_t mode = stat(path, &st) == 0 ? st.st_mode & 07777 : 0600;
	int r = path_make(dir, 0700);

	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s'", dir);
	}
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "'%s'", tmp);
	r = io_write_all(fd, text->p, text->n);
	if (r < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(tmp, path) < 0) {
		errno = r < 0 ? -r : errno;
		r = err_sys(e, "'%s'", path);
		(void)unlink(tmp);
		return r;
	}
	return 0;
}

/* Where settings are a link into somebody's dotfiles, the file behind it is what is meant. */
static int settings_path(const struct place *p, char **ret, struct err *e)
{
	const char *home = getenv("HOME");
	_free_ char *path = NULL;

	if (home == NULL || home[0] != '/')
		return err_set(e, ERR_SYSTEM, ENOENT, "HOME is not an absolute path");
	path = mem_fmt("%s/%s", home, p->file);
	if (access(path, F_OK) == 0)
		return path_real(path, ret, e);
	*ret = take(path);
	return 0;
}

static void put_shim(const char *shim, const char *program, struct buf *text)
{
	const char *mark = strstr(shim, "@VITRINE@");

	bug_on(mark == NULL);
	buf_add(text, shim, (size_t)(mark - shim));
	for (const char *s = program; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_putc(text, '\\');
		buf_putc(text, *s);
	}
	buf_puts(text, mark + strlen("@VITRINE@"));
}

const char *install_file(enum agent a)
{
	const struct place *p = find_place(a);

	return p ? p->file : NULL;
}

int install_text(enum agent a, const char *before, const char *program, struct buf *out,
		 struct err *e)
{
	const struct place *p = find_place(a);

	bug_on(p == NULL);
	if (p->entry == NULL) {
		put_shim(p->shim, program, out);
		return 0;
	}
	before = before ? before : p->empty;
	return install_edit(a, before, strlen(before), program, out, e);
}

static int whole_file(const struct place *p, const char *path, const char *program, bool is_dry,
		      struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);

	if (program == NULL) {
		if (!is_dry && unlink(path) < 0 && errno != ENOENT)
			return err_sys(e, "'%s'", path);
		buf_printf(out, "removed %s\n", path);
		return 0;
	}
	put_shim(p->shim, program, &text);
	if (is_dry) {
		buf_add(out, text.p, text.n);
		return 0;
	}
	buf_printf(out, "wrote %s\n", path);
	return replace_file(path, &text, e);
}

static int change(enum agent a, const char *program, bool is_dry, struct buf *out, struct err *e)
{
	const struct place *p = find_place(a);
	_cleanup_(buf_done) struct buf before = BUF(MIB), after = BUF(MIB);
	_free_ char *path = NULL;
	bool is_new = false;
	int r = p ? settings_path(p, &path, e) : err_set(e, ERR_USAGE, EINVAL, "no such agent");

	if (r < 0)
		return r;
	if (p->entry == NULL)
		return whole_file(p, path, program, is_dry, out, e);
	r = io_read_file(path, &before, e);
	if (r == -ENOENT) {
		if (program == NULL) {
			buf_printf(out, "%s: there is nothing to remove\n", path);
			return 0;
		}
		is_new = true;
		buf_puts(&before, p->empty);
	} else if (r < 0) {
		return r;
	}
	r = install_edit(a, buf_cstr(&before), before.n, program, &after, e);
	if (r < 0)
		return err_wrap(e, r, "%s", path);
	if (is_dry) {
		buf_add(out, after.p, after.n);
		return 0;
	}
	if (!is_new && after.n == before.n && memcmp(after.p, before.p, after.n) == 0) {
		buf_printf(out, "%s: %s\n", path,
			   program ? "the guard is there already" : "there is nothing to remove");
		return 0;
	}
	buf_printf(out, "%s %s\n", program ? "wrote" : "cleaned", path);
	if (program && a == AGENT_CODEX)
		buf_puts(out, "Codex asks about hooks that are new: trust it once with /hooks\n");
	return replace_file(path, &after, e);
}

int guard_install(enum agent a, const char *program, bool is_dry, struct buf *out, struct err *e)
{
	if (strchr(program, '\''))
		return err_set(e, ERR_UNSUPPORTED, EINVAL,
			       "the path of vitrine has a quote in it: %s", program);
	return change(a, program, is_dry, out, e);
}

int guard_uninstall(enum agent a, bool is_dry, struct buf *out, struct err *e)
{
	return change(a, NULL, is_dry, out, e);
}
