/* SPDX-License-Identifier: Apache-2.0 */
/* cli/exec.c - vitrine exec, vitrine attach */
#include "base/num.h"
#include "cli/live.h"
#include "keep/keys.h"

enum { OPT_I = 1, OPT_T, OPT_D, OPT_E, OPT_W, OPT_U, OPT_KEYS, OPT_VIEW, OPT_ENV_FILE };

const struct opt exec_opts[] = {
	{ "interactive", 'i', NULL,
	  "read standard input even where it is a terminal and output is not", OPT_I },
	{ "tty", 't', NULL, "give the command a terminal of its own", OPT_T },
	{ "detach", 'd', NULL, "run behind the scenes", OPT_D },
	{ "detach-keys", 0, "KEYS",
	  "keys that leave the session running (default: ctrl-p,ctrl-q; 'none')", OPT_KEYS },
	{ "env", 'e', "K[=V]", "set a variable, or pass the caller's", OPT_E },
	{ "env-file", 0, "FILE", "set variables from a file of K=V lines", OPT_ENV_FILE },
	{ "workdir", 'w', "DIR", "where the command starts, inside", OPT_W },
	{ "user", 'u', "NAME", "the sandbox has one user; any other is refused", OPT_U },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt attach_opts[] = {
	{ "detach-keys", 0, "KEYS",
	  "keys that leave the session running (default: ctrl-p,ctrl-q; 'none')", OPT_KEYS },
	{ "no-stdin", 0, NULL, "look and do not touch", OPT_VIEW },
	{ NULL, 0, NULL, NULL, 0 },
};

struct exec_args {
	unsigned flags;
	const char *cwd, *user, *keys;
	struct words env;
};

/* Its name is the command's affair: the policy is that of the sandbox. */
static int add_env(void *arg, const char *text, struct err *e)
{
	struct exec_args *a = arg;

	(void)e;
	if (text[0] == '=')
		return -EINVAL;
	words_add_env(&a->env, text);
	return 0;
}

static int parse(struct exec_args *a, struct opts *o, struct err *e)
{
	int id;

	while ((id = opts_next(o, e)) > 0) {
		if (id == OPT_I)
			a->flags |= KEEP_WANT_STDIN;
		else if (id == OPT_T)
			a->flags |= KEEP_WANT_TTY;
		else if (id == OPT_D)
			a->flags |= KEEP_BEHIND;
		else if (id == OPT_VIEW)
			a->flags |= KEEP_VIEW_ONLY;
		else if (id == OPT_KEYS)
			a->keys = o->value;
		else if (id == OPT_W)
			a->cwd = o->value;
		else if (id == OPT_U)
			a->user = o->value;
		else if (id == OPT_E)
			words_add_env(&a->env, o->value);
		else if (env_file_each(o->value, add_env, a, e) < 0)
			return -EINVAL;
	}
	return id;
}

/* One id is mapped into the sandbox, so there is nobody else to be. Root's sandboxes have another user than root. */
static int check_user(const struct host *h, const char *user, struct err *e)
{
	const char *inside = geteuid() == 0 ? "agent" : h->user;
	struct err ignored;
	uint64_t uid;

	if (user == NULL || str_eq(user, inside) ||
	    (num_parse(user, 0, UINT32_MAX, &uid, &ignored) == 0 && uid == geteuid() && uid != 0))
		return 0;
	return err_set(e, ERR_USAGE, EPERM,
		       "--user '%.64s': a sandbox has one user, '%s'; another would need ids that "
		       "are not mapped into it",
		       user, inside);
}

static int finish(struct outcome *o, const char *name, bool is_behind)
{
	int status = o->status;

	if (o->is_detached) {
		if (is_behind)
			(void)printf("%u\n", o->session);
		else
			(void)fprintf(stderr,
				      "\nvitrine: left running; 'vitrine attach %s %u' comes "
				      "back\n",
				      name, o->session);
		status = 0;
	} else if (o->why == END_ERROR) {
		cli_complain(o->err.msg);
	} else if (o->why == END_STOPPED || o->was_stopped) {
		cli_complain("ended: the sandbox was stopped");
	}
	buf_done(&o->notes);
	return status;
}

static int exec_once(struct exec_args *a, const struct host *h, const char *name,
		     char *const *command, struct outcome *o, struct err *e)
{
	struct talk t = { .flags = a->flags, .leaves_on_hangup = true };
	uint8_t keys[KEEP_KEYS];
	_cleanup_(def_done) struct def d = { 0 };
	_free_ char *here = getcwd(NULL, 0);
	_free_ char *cwd = NULL;
	_close_ int conn = FD_NONE;
	int x = keys_parse(a->keys ? a->keys : "ctrl-p,ctrl-q", keys, e);

	t.keys = keys;
	if (x == 0)
		x = check_user(h, a->user, e);
	if (x < 0)
		return x;
	/* A run without a name can be reached while it runs; it has no definition. */
	if (str_starts(name, "run-")) {
		cwd = mem_str(a->cwd ? a->cwd : "");
		x = conn = keep_connect(h->state_dir, name, e);
	} else {
		x = def_read(h->state_dir, name, &d, e);
		if (x == 0) {
			cwd = live_cwd(&d, here, a->cwd);
			x = conn = live_wake(h, name, false, e);
		}
	}
	if (x >= 0)
		x = client_exec(conn, &t, command, a->env.v, cwd, e);
	return x < 0 ? x : client_serve(conn, &t, o, e);
}

static int exec_command(struct exec_args *a, const char *name, char *const *command, struct err *e)
{
	struct host h;
	struct outcome o = { 0 };
	int x = host_init(&h, NULL, e);

	if (isatty(0) && isatty(1))
		live_terminal_env(&a->env);
	for (int i = 0; x >= 0; i++) {
		x = exec_once(a, &h, name, command, &o, e);
		if (x < 0 || i == 500 || o.why != END_CLOSING)
			break;
		buf_done(&o.notes);
		(void)usleep(i < 20 ? 500 : 10000);
	}
	if (x >= 0)
		x = finish(&o, name, a->flags & KEEP_BEHIND);
	host_done(&h);
	return x;
}

int cmd_exec(int argc, char **argv, struct err *e)
{
	struct exec_args a = { .flags = KEEP_RECORD };
	struct opts o;
	char *const *command;
	int x;

	/* Without "--" the command begins behind the name, and its options are its own. */
	for (x = 1; x < argc && !str_eq(argv[x], "--"); x++)
		;
	x = x < argc ? opts_arrange(exec_opts, x, argv, e) : 0;
	if (x < 0)
		return x;
	opts_init(&o, exec_opts, argc, argv);
	x = parse(&a, &o, e);
	command = argv + o.at;
	if (x == 0 && (command[0] == NULL || strchr(command[0], '/') || command[0][0] == '.'))
		x = err_set(e, ERR_USAGE, EINVAL,
			    "exec: which sandbox? 'vitrine exec NAME -- CMD'");
	if (x == 0) {
		const char *name = *command++;

		if (command[0] && str_eq(command[0], "--"))
			command++;
		if (command[0] == NULL)
			x = err_set(e, ERR_USAGE, EINVAL,
				    "exec: no command; 'vitrine exec %.64s -- CMD'", name);
		else
			x = exec_command(&a, name, command, e);
	}
	words_free(&a.env);
	return x;
}

/* The only one that runs. */
static int find_running(const struct host *h, char **ret, struct err *e)
{
	char **names;
	size_t n = 0;
	int x = def_list(h->state_dir, true, &names, e);

	if (x < 0)
		return x;
	for (char **p = names; *p; p++) {
		_close_ int conn = keep_connect(h->state_dir, *p, e);

		if (conn < 0)
			continue;
		if (n++ == 0)
			*ret = mem_str(*p);
	}
	def_list_free(names);
	*e = ERR_INIT;
	if (n != 1) {
		free(take(*ret));
		return err_set(e, ERR_USAGE, EINVAL,
			       n == 0 ? "no sandbox is running"
				      : "several sandboxes are running; name one: 'vitrine ls'");
	}
	return 0;
}

static int attach(struct exec_args *a, const char *word, uint32_t session, struct err *e)
{
	struct host h;
	struct outcome o = { 0 };
	uint8_t keys[KEEP_KEYS];
	struct talk t = { .flags = a->flags, .keys = keys, .leaves_on_hangup = true };
	_free_ char *name = word ? mem_str(word) : NULL;
	_close_ int conn = FD_NONE;
	int x = host_init(&h, NULL, e);

	if (x == 0)
		x = keys_parse(a->keys ? a->keys : "ctrl-p,ctrl-q", keys, e);
	if (x == 0 && name == NULL)
		x = find_running(&h, &name, e);
	if (x == 0)
		x = conn = keep_connect(h.state_dir, name, e);
	if (x >= 0)
		x = client_attach(conn, &t, session, e);
	if (x >= 0)
		x = client_serve(conn, &t, &o, e);
	if (x >= 0)
		x = finish(&o, name, false);
	host_done(&h);
	return x;
}

int cmd_attach(int argc, char **argv, struct err *e)
{
	struct exec_args a = { 0 };
	struct opts o;
	uint64_t session = 0;
	int x;

	opts_init(&o, attach_opts, argc, argv);
	x = parse(&a, &o, e);
	if (x == 0 && argc - o.at > 2)
		x = err_set(e, ERR_USAGE, EINVAL, "attach: at most a sandbox and a session");
	if (x == 0 && argc - o.at == 2)
		x = num_parse(argv[o.at + 1], 1, UINT32_MAX, &session, e);
	return x < 0 ? x : attach(&a, argv[o.at], (uint32_t)session, e);
}
