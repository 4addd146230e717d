/* SPDX-License-Identifier: Apache-2.0 */
/* cli/spot.c - see spot.h */
#include "cli/spot.h"

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"

/* The workspace that the definition of a sandbox names. -ENOENT: there is no such sandbox. */
static int sandbox_workspace(const char *state_dir, const char *name, char **ret)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/sandbox.json", state_dir, name);
	_cleanup_(buf_done) struct buf b = BUF(256 * KIB);
	struct err ignored;
	struct json_doc doc;
	const struct json *v;

	if (strchr(name, '/') || name[0] == '.' || io_read_file(path, &b, &ignored) < 0 ||
	    json_parse(buf_cstr(&b), b.n, &doc, &ignored) < 0)
		return -ENOENT;
	v = doc.root->type == JSON_OBJECT ? json_get(doc.root, "workspace") : NULL;
	if (v && v->type == JSON_STRING && path_is_clean(v->text))
		*ret = mem_str(v->text);
	json_done(&doc);
	return *ret ? 0 : -ENOENT;
}

int spot_open(struct spot *s, const char *workspace, char *const **words, struct err *e)
{
	_free_ char *found = NULL;
	int r = host_init(&s->host, NULL, e);

	if (r < 0)
		return r;
	if (*words && **words && sandbox_workspace(s->host.state_dir, **words, &found) == 0)
		s->sandbox = mem_str(*(*words)++);
	if (found && workspace)
		return err_set(e, ERR_USAGE, EINVAL,
			       "either the name of a sandbox or --workspace, not both");
	r = host_workspace(&s->host, found ? found : workspace, e);
	if (r == 0)
		r = plan_check_workspace(&s->host.facts, e);
	return r < 0 ? r
		     : undo_open(&s->undo, s->host.state_dir, s->host.workspace, s->host.ws_fd,
				 true, e);
}

void spot_close(struct spot *s)
{
	undo_close(&s->undo);
	host_done(&s->host);
	free(s->sandbox);
}

int spot_paths(const struct spot *s, char *const *words, char ***ret, struct err *e)
{
	char **v = NULL;
	size_t n = 0;

	while (words && words[n])
		n++;
	if (n == 0)
		return 0;
	v = mem_new(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		/* Where the caller stands outside the workspace, names are meant from its top. */
		bool is_in = path_is_beneath(s->host.cwd, s->host.workspace);
		_free_ char *full = path_join(is_in ? s->host.cwd : s->host.workspace, words[i]);

		if (!path_is_beneath(full, s->host.workspace)) {
			spot_paths_free(v);
			return err_set(e, ERR_USAGE, EINVAL, "'%.200s' is not in '%.200s'",
				       words[i], s->host.workspace);
		}
		v[i] = mem_str(path_below(full, s->host.workspace));
	}
	*ret = v;
	return 0;
}

void spot_paths_free(char **paths)
{
	for (char **p = paths; p && *p; p++)
		free(*p);
	free(paths);
}
