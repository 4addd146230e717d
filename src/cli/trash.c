/* SPDX-License-Identifier: Apache-2.0 */
/* cli/trash.c - the verb `trash`: what the safe rm kept in a sandbox
 *
 * The trash lies in the sandbox's home and is its own: looking and restoring is done by the tool inside (tools/trash.c),
 * so that nothing the sandbox has put there is ever read or followed out here. For --json, --quiet and --format the tool
 * is asked for JSON; what it prints comes from inside, so it is parsed as foreign text and made anew from the rows.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "cli/run.h"
#include "cli/table.h"

const struct opt trash_opts[] = {
	TABLE_OPTS("ls: print JSON", "ls: print the ids only"),
	{ NULL, 0, NULL, NULL, 0 },
};

static const char tool[] = PLAN_TOOLS "/trash";

static const struct column columns[] = {
	{ "id", "Id", "ID", COLUMN_TEXT },
	{ "removed", "Removed", "REMOVED", COLUMN_AGO },
	{ "bytes", "Bytes", "BYTES", COLUMN_BYTES },
	{ "directory", "Directory", "DIRECTORY", COLUMN_BOOL },
	{ "path", "Path", "PATH", COLUMN_TEXT },
};

/* Looking must not make one. */
static int must_be_there(const char *name, struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	_cleanup_(def_done) struct def d = { 0 };
	int r = host_init(&h, NULL, e);

	return r < 0 ? r : def_read(h.state_dir, name, &d, e);
}

/* ---- rows ---- */

static bool add_row(struct table *t, const struct json *v)
{
	const struct json *id, *path, *directory;
	uint64_t removed, bytes;
	struct cell *c;

	if (v->type != JSON_OBJECT)
		return false;
	id = json_get(v, "id");
	path = json_get(v, "path");
	directory = json_get(v, "directory");
	if (id == NULL || id->type != JSON_STRING || path == NULL || path->type != JSON_STRING ||
	    directory == NULL || directory->type != JSON_BOOL ||
	    !json_u64(json_get(v, "removed"), &removed) || !json_u64(json_get(v, "bytes"), &bytes))
		return false;
	c = table_row(t);
	c[0].text = mem_str(id->text);
	c[1].num = removed;
	c[2].num = bytes;
	c[3].num = directory->is_true;
	c[4].text = mem_str(path->text);
	return true;
}

static int read_rows(const struct buf *text, struct table *t, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	int r = json_parse_foreign(buf_cstr(text), text->n, &doc, e);
	bool is_ok = r == 0 && doc.root->type == JSON_ARRAY;

	for (const struct json *v = is_ok ? doc.root->first : NULL; v && is_ok; v = v->next)
		is_ok = add_row(t, v);
	return is_ok ? 0
		     : err_set(e, ERR_SYSTEM, EPROTO,
			       "the answer from inside is not a list of the trash");
}

/* As `vitrine run` would be called; its exit status, and what it printed. */
static int ask_inside(const char *name, struct buf *text, struct err *e)
{
	const char *argv[] = { "vitrine", "run", "--name", name, "--", tool, "ls", "--json", NULL };
	int pipes[2], status = 0, r;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		(void)dup2(null, 0);
		(void)dup2(pipes[1], 1);
		(void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
		_exit(125);
	}
	fd_close(pipes[1]);
	r = pid < 0 ? err_sys(e, "fork") : io_read_fd(pipes[0], text, e);
	fd_close(pipes[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	if (r < 0)
		return r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int show_rows(const char *name, const struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_cleanup_(buf_done) struct buf text = BUF(JSON_FOREIGN_MAX_BYTES);
	int r = ask_inside(name, &text, e);

	if (r == 0)
		r = read_rows(&text, &t, e);
	return r == 0 ? table_show(&t, how, e) : r;
}

/* ---- words ---- */

/* Behind `restore` all are words: paths may begin with anything. */
static int parse(int argc, char **argv, struct table_how *how, char **words, int *ret_n,
		 struct err *e)
{
	struct opts o;
	int n = 0;

	for (opts_init(&o, trash_opts, argc, argv);;) {
		int id = n == 0 || str_eq(words[0], "ls") ? opts_next(&o, e) : 0;

		if (id < 0)
			return id;
		if (id > 0)
			(void)table_opt(how, &o, id);
		else if (o.at >= argc)
			break;
		else
			words[n++] = argv[o.at++];
	}
	*ret_n = n;
	return 0;
}

static int check(char *const *words, int n, bool is_form_asked, struct err *e)
{
	if (n < 2 ||
	    (!str_eq(words[0], "ls") && !str_eq(words[0], "empty") &&
	     !str_eq(words[0], "restore")) ||
	    (str_eq(words[0], "restore") ? n < 3 : n != 2))
		return err_set(e, ERR_USAGE, EINVAL,
			       "trash ls NAME, trash restore NAME ID|PATH..., trash empty NAME");
	if (is_form_asked && !str_eq(words[0], "ls"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--json, --quiet and --format belong to 'trash ls'");
	return must_be_there(words[1], e);
}

int cmd_trash(int argc, char **argv, struct err *e)
{
	_free_ char **words = mem_new((size_t)argc + 1, sizeof(*words));
	const char *run[64] = { "run", "--name", NULL, "--", tool };
	struct table_how how = { 0 };
	bool is_form_asked;
	size_t n = 5;
	int given = 0, r = parse(argc, argv, &how, words, &given, e);

	is_form_asked = how.as_json || table_is_asked(&how);
	if (r == 0)
		r = check(words, given, is_form_asked, e);
	if (r < 0)
		return r;
	if (is_form_asked)
		return show_rows(words[1], &how, e);
	run[2] = words[1];
	run[n++] = words[0];
	for (int i = 2; i < given && n < ARRAY_LEN(run) - 1; i++)
		run[n++] = words[i];
	return cmd_run((int)n, (char **)(uintptr_t)run, e);
}
