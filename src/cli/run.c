/* SPDX-License-Identifier: Apache-2.0 */
/* cli/run.c - vitrine run, vitrine exec, vitrine explain */
#include <sys/stat.h>

#include "base/path.h"
#include "cli/client.h"
#include "cli/run.h"
#include "core/hint.h"

/* ---- how it ended, for people and machines ---- */

static void say_limit(const struct run *r, enum limit_id id, const char *what)
{
	_cleanup_(buf_done) struct buf b = BUF(64);

	limit_format(id, r->plan.limits[id].max, &b);
	(void)fprintf(stderr, "vitrine: ended: %s (limit %s)\n", what, buf_cstr(&b));
}

static bool is_on_host(const char *path)
{
	return access(path, F_OK) == 0;
}

static void say_hint(const struct run *r, const struct outcome *o)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	buf_puts(&b, "hint: ");
	if (hint_find(&r->plan, o->err.msg, strlen(o->err.msg), is_on_host, &b))
		cli_complain(buf_cstr(&b));
}

static void say_end(const struct run *r, const struct outcome *o)
{
	switch (o->why) {
	case END_TIME:
		say_limit(r, LIMIT_TIME, "the time is over");
		break;
	case END_IDLE:
		say_limit(r, LIMIT_IDLE, "nothing happened for too long");
		break;
	case END_MEMORY:
		say_limit(r, LIMIT_MEMORY, "it used more memory than it may");
		break;
	case END_OUTPUT:
		say_limit(r, LIMIT_OUTPUT, "it wrote more output than it may");
		break;
	case END_CPU_TIME:
		say_limit(r, LIMIT_CPU_TIME, "it used more processor time than it may");
		break;
	case END_STOPPED:
		(void)fprintf(stderr, "vitrine: ended: the sandbox was stopped\n");
		break;
	case END_ERROR:
		cli_complain(o->err.msg);
		break;
	case END_EXIT:
		if (o->status != 0)
			say_hint(r, o);
		break;
	case END_SIGNAL:
	case END_REASON_COUNT_:
		break;
	}
}

static void json_limits(const struct plan *p, struct buf *b)
{
	bool is_first = true;

	buf_puts(b, ",\"limits\":{");
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct plan_limit *l = &p->limits[id];

		if (!l->is_set)
			continue;
		buf_printf(b, "%s\"%s\":{\"max\":%llu,\"by\":\"%s\"}", is_first ? "" : ",",
			   limit_name(id), (unsigned long long)l->max, enforcer_name(l->by));
		is_first = false;
	}
	buf_putc(b, '}');
}

/* The keeper's "quarantined PATH (RULE)" as a list. */
static void json_notes(const struct outcome *o, struct buf *b)
{
	bool is_first = true;

	buf_puts(b, ",\"quarantined\":[");
	for (const char *p = o->notes.p; p && p < o->notes.p + o->notes.n; p += strlen(p) + 1) {
		_free_ char *line = mem_str(p);
		char *open = strrchr(line, '(');

		if (!str_starts(line, "quarantined ") || open == NULL || open < line + 13)
			continue;
		open[-1] = '\0';
		open[strcspn(open, ")")] = '\0';
		buf_puts(b, is_first ? "{\"path\":" : ",{\"path\":");
		buf_json(b, line + 12);
		buf_puts(b, ",\"rule\":");
		buf_json(b, open + 1);
		buf_putc(b, '}');
		is_first = false;
	}
	buf_putc(b, ']');
}

static void json_aliases(const struct run *r, struct buf *b)
{
	bool is_first = true;

	buf_puts(b, ",\"aliases\":[");
	for (size_t i = 0; i < r->host.scan.n; i++) {
		if (!r->host.scan.v[i].is_alias)
			continue;
		buf_puts(b, is_first ? "" : ",");
		buf_json(b, r->host.scan.v[i].rel);
		is_first = false;
	}
	buf_putc(b, ']');
}

static void print_json(const struct run *r, const struct outcome *o)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);

	buf_printf(&b, "{\"exit\":%d,\"reason\":\"%s\",\"name\":", o->status,
		   end_reason_name(o->why));
	buf_json(&b, r->plan.name);
	if (o->why == END_ERROR) {
		buf_printf(&b, ",\"error\":\"%s\",\"message\":",
			   o->err.kind < ERR_KIND_COUNT_ ? err_kind_name(o->err.kind) : "bug");
		buf_json(&b, o->err.msg);
	}
	json_limits(&r->plan, &b);
	json_notes(o, &b);
	json_aliases(r, &b);
	buf_puts(&b, "}\n");
	(void)fputs(buf_cstr(&b), stderr);
}

static void print_notes(const struct outcome *o)
{
	for (const char *p = o->notes.p; p && p < o->notes.p + o->notes.n; p += strlen(p) + 1)
		cli_complain(p);
}

/* ---- verbs ---- */

/* The values, handed to the keeper by its birth; ours are wiped as soon as it lives. */
static int spawn_keeper(struct run *r, struct keeper_in *in, struct err *e)
{
	_free_ struct keep_value *values = mem_new(r->secrets.n, sizeof(*values));
	int x = secrets_fetch(&r->secrets, r->host.state_dir, e);

	for (size_t i = 0; x >= 0 && i < r->secrets.n; i++)
		values[i] = (struct keep_value){ r->secrets.v[i].name, &r->secrets.values[i] };
	in->values = values;
	in->n_values = r->secrets.n;
	if (x >= 0)
		x = keeper_spawn(in, e);
	secrets_wipe(&r->secrets);
	return x;
}

static int run_command(struct run *r, struct err *e)
{
	struct keeper_in in = { .plan = &r->plan,
				.policy = &r->policy,
				.scan = &r->host.scan,
				.cgroups = &r->host.cgroups,
				.ws_fd = r->host.ws_fd,
				.stdio = { 0, 1, 2 },
				.flags = r->flags,
				.is_rm = r->is_rm };
	struct outcome o;
	_close_ int conn = spawn_keeper(r, &in, e);
	int x;

	if (conn < 0)
		return conn;
	/* The keeper has its own copy; what we do not need for the report goes while we would wait anyway. */
	if (!r->as_json)
		run_forget(r);
	x = client_serve(conn, r->flags, &o, e);
	if (x < 0)
		return x;
	if (r->as_json) {
		print_json(r, &o);
	} else {
		print_notes(&o);
		say_end(r, &o);
	}
	buf_done(&o.notes);
	return o.status;
}

int cmd_run(int argc, char **argv, struct err *e)
{
	struct run r;
	int x = run_prepare(&r, argc, argv, e);

	if (x == 0 && r.command[0] == NULL)
		x = err_set(e, ERR_USAGE, EINVAL,
			    "run: no command; try 'vitrine run -- CMD' or 'vitrine help run'");
	if (x == 0)
		x = run_command(&r, e);
	run_done(&r);
	return x;
}

/* What the user's file and the flags opened beyond the built-in policy. */
static void print_widenings(const struct policy *p, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	policy_print_widenings(p, &b);
	if (b.n > 0)
		buf_printf(out, "\nwider than built in\n%s", buf_cstr(&b));
}

int cmd_explain(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * MIB);
	struct run r;
	int x = run_prepare(&r, argc, argv, e);

	if (x == 0) {
		plan_print(&r.plan, r.as_json, &b);
		if (!r.as_json)
			print_widenings(&r.policy, &b);
		x = cli_print(&b, e);
	}
	run_done(&r);
	return x;
}

enum { OPT_I = 1, OPT_T, OPT_E, OPT_W, OPT_U };

const struct opt exec_opts[] = {
	{ "interactive", 'i', NULL,
	  "read standard input even where it is a terminal and output is not", OPT_I },
	{ "tty", 't', NULL, "give the command a terminal of its own", OPT_T },
	{ "env", 'e', "K[=V]", "set a variable, or pass the caller's", OPT_E },
	{ "workdir", 'w', "DIR", "where the command starts, inside", OPT_W },
	{ NULL, 0, NULL, NULL, 0 },
};

struct exec_args {
	unsigned flags;
	const char *cwd;
	char **env;
	size_t n_env;
};

static void exec_env(struct exec_args *a, const char *text)
{
	const char *value = strchr(text, '=') ? NULL : getenv(text);

	if (!strchr(text, '=') && value == NULL)
		return;
	a->env = mem_grow(a->env, a->n_env + 2, sizeof(*a->env));
	a->env[a->n_env++] = value ? mem_fmt("%s=%s", text, value) : mem_str(text);
	a->env[a->n_env] = NULL;
}

static int exec_parse(struct exec_args *a, struct opts *o, struct err *e)
{
	int id;

	while ((id = opts_next(o, e)) > 0) {
		if (id == OPT_I)
			a->flags |= KEEP_WANT_STDIN;
		else if (id == OPT_T)
			a->flags |= KEEP_WANT_TTY;
		else if (id == OPT_W)
			a->cwd = o->value;
		else
			exec_env(a, o->value);
	}
	return id;
}

static int exec_command(struct exec_args *a, const char *name, char *const *command, struct err *e)
{
	struct host h;
	struct outcome out;
	_close_ int conn = FD_NONE;
	int x = host_init(&h, NULL, e);

	if (x == 0)
		x = conn = keep_connect(h.state_dir, name, e);
	if (x >= 0)
		x = client_exec(conn, a->flags, command, a->env, a->cwd ? a->cwd : "", e);
	if (x >= 0)
		x = client_serve(conn, a->flags, &out, e);
	if (x >= 0) {
		if (out.why == END_ERROR)
			cli_complain(out.err.msg);
		else if (out.why == END_STOPPED)
			cli_complain("ended: the sandbox was stopped");
		x = out.status;
		buf_done(&out.notes);
	}
	host_done(&h);
	return x;
}

int cmd_exec(int argc, char **argv, struct err *e)
{
	struct exec_args a = { 0 };
	struct opts o;
	char *const *command;
	int x;

	opts_init(&o, exec_opts, argc, argv);
	x = exec_parse(&a, &o, e);
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
	for (size_t i = 0; i < a.n_env; i++)
		free(a.env[i]);
	free(a.env);
	return x;
}
