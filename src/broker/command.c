/* SPDX-License-Identifier: Apache-2.0 */
/* broker/command.c - gh pr create, and the commands the user has declared
 *
 * Both run in an empty directory of their own, with arguments that the policy's words let through. A command declared
 * with `checkout` finds in it the files of one commit, which was taken from inside, searched and approved by a person; its
 * links are files, nothing in it has been run, and there is no repository around it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/path.h"
#include "broker/broker.h"

#define OUTPUT_MAX ((size_t)256 * 1024)

/* An empty directory; the caller removes it. */
static int make_desk(const struct broker *b, char **ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/desk-XXXXXX", b->dir);
	int r = path_make(b->dir, 0700);

	if (r < 0 || mkdtemp(path) == NULL)
		return err_sys(e, "'%s'", path);
	*ret = take(path);
	return 0;
}

static void remove_desk(char **desk)
{
	_free_ char *parent = *desk ? path_parent(*desk) : NULL;
	_close_ int dir = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : FD_NONE;

	if (dir >= 0)
		(void)path_remove(dir, path_name(*desk)); /* it goes with the sandbox otherwise */
	free(*desk);
}

/* Runs it, passes on what it said, and its status. */
int run_and_tell(struct broker *b, struct task *j, const char *rule, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(OUTPUT_MAX), errors = BUF(OUTPUT_MAX);
	struct told t = { .what = j->argv, .verdict = "allow", .rule = rule, .message = "" };
	int status, r = broker_tell(&t, e);

	if (r < 0)
		return r;
	j->text = &out;
	j->errors = &errors;
	status = task_run(b, j, e);
	j->text = j->errors = NULL;
	t.has_status = true;
	t.status = status < 0 ? 125 : status;
	t.message = status < 0 ? e->msg : "done";
	(void)broker_tell(&t, &(struct err){ 0 });
	if (status < 0)
		return status;
	if (out.n)
		(void)frame_send(b->conn, WIRE_OUT, out.p, out.n);
	if (errors.n)
		(void)frame_send(b->conn, WIRE_ERR, errors.p, errors.n);
	return broker_end(b, status);
}

/* ---- gh ---- */

static const struct broker_rule *gh_rule(const struct broker *b, const struct gh_call *c)
{
	const struct broker_rule *only = NULL;

	if (c->repo)
		return broker_gh(&b->rules, c->repo);
	for (size_t i = 0; i < b->rules.n; i++)
		if (b->rules.v[i].kind == BROKER_GH) {
			if (only)
				return NULL; /* which one is meant must be said */
			only = &b->rules.v[i];
		}
	return only;
}

static int find_gh(const struct broker *b, const struct broker_rule *rule, const char **ret,
		   struct err *e)
{
	static const char *const places[] = { "/usr/bin/gh", "/usr/local/bin/gh" };

	*ret = rule->n_words ? rule->words[0] : NULL;
	for (size_t i = 0; *ret == NULL && i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			*ret = places[i];
	if (*ret == NULL)
		return err_set(e, ERR_NOTFOUND, ENOENT, "this host has no gh");
	return task_check_program(b, *ret, e);
}

static size_t gh_words(const struct gh_call *c, const struct broker_rule *rule, const char **v)
{
	size_t n = 0;

	v[n++] = "gh";
	v[n++] = "pr";
	v[n++] = "create";
	v[n++] = "--repo";
	v[n++] = rule->url;
	v[n++] = "--head";
	v[n++] = c->head;
	v[n++] = "--title";
	v[n++] = c->title;
	v[n++] = "--body";
	v[n++] = c->body;
	if (c->base[0]) {
		v[n++] = "--base";
		v[n++] = c->base;
	}
	if (c->is_draft)
		v[n++] = "--draft";
	for (size_t i = 0; i < c->n_labels; i++) {
		v[n++] = "--label";
		v[n++] = c->labels[i];
	}
	for (size_t i = 0; i < c->n_reviewers; i++) {
		v[n++] = "--reviewer";
		v[n++] = c->reviewers[i];
	}
	v[n] = NULL;
	return n;
}

static int approve_words(const struct broker *b, const char *const *v, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(256 * KIB);

	for (size_t i = 0; v[i]; i++)
		buf_printf(&text, "%s\n", v[i]);
	return approve_wait(b, v[0], &text, e);
}

int serve_gh(struct broker *b, struct err *e)
{
	_cleanup_(remove_desk) char *desk = NULL;
	const struct broker_rule *rule = NULL;
	const char *words[64],
		*env[8] = { "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "NO_COLOR=1" };
	static const char *const gh_hosts[] = { "api.github.com", "github.com", NULL };
	_cleanup_(token_free) char *token = NULL;
	_free_ char *config = NULL;
	struct task j = TASK_NONE;
	struct gh_call c;
	int r = decide_gh(b->req.words + 1, b->req.n - 1, &c, e);

	if (r == 0) {
		rule = gh_rule(b, &c);
		r = rule ? find_gh(b, rule, &j.program, e)
			 : err_set(e, ERR_DENIED, EPERM, "no rule of broker.gh is about %s",
				   c.repo ? c.repo : "this; name it with --repo");
	}
	if (r == 0)
		r = make_desk(b, &desk, e);
	if (r < 0 || rule == NULL)
		return r;
	(void)gh_words(&c, rule, words);
	if (rule->secret)
		r = token_load(b, rule->secret, gh_hosts, false, &token, e);
	if (r == 0 && rule->op & BROKER_APPROVE)
		r = approve_words(b, words, e);
	if (r < 0)
		return r;
	config = mem_fmt("GH_CONFIG_DIR=%s", desk);
	env[3] =
		token ? config : NULL; /* without a token it is the user's own login that is used */
	env[4] = token;
	j.argv = words;
	j.env = env;
	j.cwd = desk;
	j.write[0] = desk;
	j.read[0] = j.program;
	j.reads_all = token == NULL;
	j.net = CONFINE_WEB;
	j.port = 443;
	return run_and_tell(b, &j, rule->text, e);
}

/* ---- the user's own ---- */

/* The files of one commit into the desk. No filter is configured in the broker's repository, so none runs. */
static int check_out(const struct repo *repo, const char *oid, const char *desk, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB), errors = BUF(64 * KIB);
	_free_ char *index = mem_fmt("GIT_INDEX_FILE=%s.index", desk),
		    *prefix = mem_fmt("--prefix=%s/", desk);
	const char *const read_tree[] = { "git", "--git-dir", repo->dir, "read-tree", oid, NULL };
	const char *const files[] = { "git",
				      "--git-dir",
				      repo->dir,
				      "-c",
				      "core.symlinks=false",
				      "-c",
				      "core.bare=false",
				      "--work-tree",
				      desk,
				      "checkout-index",
				      "--all",
				      prefix,
				      NULL };
	const char *const env[] = { "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
				    "GIT_ATTR_NOSYSTEM=1", index, NULL };
	struct task j = TASK_NONE;
	int r;

	j.program = repo->git;
	j.argv = read_tree;
	j.env = env;
	j.cwd = desk;
	j.read[0] = repo->dir;
	j.write[0] = repo->b->dir;
	j.text = &out;
	j.errors = &errors;
	r = task_run(repo->b, &j, e);
	if (r == 0) {
		j.argv = files;
		r = task_run(repo->b, &j, e);
	}
	(void)unlink(index + strlen("GIT_INDEX_FILE="));
	return r <= 0 ? r
		      : err_set(e, ERR_SYSTEM, EIO, "the commit cannot be checked out: %.200s",
				buf_cstr(&errors));
}

static int prepare_checkout(struct broker *b, const char *oid, const char *desk, struct err *e)
{
	_cleanup_(repo_close) struct repo repo = { .lock = FD_NONE };
	_cleanup_(buf_done) struct buf page = BUF(2 * MIB);
	const char *const none[] = { NULL };
	int r = repo_open(&repo, b, "checkout", NULL, e);

	if (r == 0)
		r = repo_take(&repo, &oid, 1, e);
	if (r == 0)
		r = repo_scan(&repo, oid, none, e);
	if (r == 0)
		r = show_commit(&repo, oid, &page, e);
	if (r == 0)
		r = approve_wait(b, b->req.words[1], &page, e);
	return r < 0 ? r : check_out(&repo, oid, desk, e);
}

int serve_run(struct broker *b, struct err *e)
{
	const struct broker_rule *rule =
		b->req.n > 1 ? broker_command(&b->rules, b->req.words[1]) : NULL;
	bool has_commit = b->req.n > 2 && str_starts(b->req.words[2], "commit=");
	size_t first = has_commit ? 3 : 2;
	_cleanup_(remove_desk) char *desk = NULL;
	const char *argv[WIRE_WORDS];
	struct task j = TASK_NONE;
	size_t n = 0;
	int r;

	if (rule == NULL)
		return err_set(e, ERR_DENIED, EPERM,
			       "no command '%.60s' is declared; broker.commands in your policy "
			       "lists them",
			       b->req.n > 1 ? b->req.words[1] : "");
	if (rule->is_checkout != has_commit || (has_commit && !is_oid(b->req.words[2] + 7)))
		return err_set(e, ERR_DENIED, EINVAL,
			       rule->is_checkout ? "this command works on a commit: 'broker "
						   "--commit HEAD %s ...'"
						 : "'%s' takes no commit",
			       rule->url);
	r = broker_check_args(rule, b->req.words + first, b->req.n - first, e);
	if (r == 0)
		r = task_check_program(b, rule->words[0], e);
	if (r == 0)
		r = make_desk(b, &desk, e);
	if (r == 0 && has_commit)
		r = prepare_checkout(b, b->req.words[2] + 7, desk, e);
	if (r < 0)
		return r;
	argv[n++] = rule->words[0];
	for (size_t i = first; i < b->req.n; i++)
		argv[n++] = b->req.words[i];
	argv[n] = NULL;
	j.program = rule->words[0];
	j.argv = argv;
	j.cwd = desk;
	j.write[0] = desk;
	j.reads_all = true;
	j.net = rule->has_network ? CONFINE_ONLINE : CONFINE_OFFLINE;
	return run_and_tell(b, &j, rule->text, e);
}
