/* SPDX-License-Identifier: Apache-2.0 */
/* cli/run.c - vitrine run, vitrine exec, vitrine explain */
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/client.h"
#include "cli/live.h"
#include "cli/run.h"
#include "cli/waits.h"
#include "core/hint.h"
#include "sys/spread.h"

#define UNDO_WAIT (2 * NS_PER_SEC)

/* ---- how it ended, for people and machines ---- */

static void say_limit(const struct run *r, enum limit_id id, const char *what)
{
	_cleanup_(buf_done) struct buf b = BUF(64);

	/* In a sandbox that was running already the limit is that of whoever started it. */
	if (!r->has_plan) {
		(void)fprintf(stderr, "vitrine: ended: %s\n", what);
		return;
	}
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

	if (!r->has_plan || o->has_hint)
		return;
	buf_puts(&b, HINT_WORD);
	if (hint_find(&r->plan, o->err.msg, strlen(o->err.msg), is_on_host, &b))
		cli_complain(buf_cstr(&b));
}

/* An agent that is not there. */
static void say_install(const struct run *r, const struct outcome *o)
{
	if (o->status == 127 && r->has_def && r->preset.install)
		(void)fprintf(stderr,
			      "vitrine: hint: '%s' installs it; 'vitrine agents' shows what is "
			      "there\n",
			      r->preset.install);
}

static void say_end(const struct run *r, const struct outcome *o)
{
	/* It may have had the time to end by itself. */
	if (o->was_stopped && (o->why == END_EXIT || o->why == END_SIGNAL)) {
		(void)fprintf(stderr, "vitrine: ended: the sandbox was stopped\n");
		return;
	}
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
	case END_DISK:
		say_limit(r, LIMIT_DISK,
			  "it keeps more on the disk than it may; nothing of it was removed");
		break;
	case END_STOPPED:
		(void)fprintf(stderr, "vitrine: ended: the sandbox was stopped\n");
		break;
	case END_ERROR:
		cli_complain(o->err.msg);
		say_install(r, o);
		break;
	case END_EXIT:
		if (o->status != 0)
			say_hint(r, o);
		break;
	case END_SIGNAL:
	case END_CLOSING:
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

/* Where the keeper could not name all: those of this run are the last in its list. */
static bool json_listed(const struct run *r, const struct outcome *o, struct buf *b)
{
	_cleanup_(buf_done) struct buf list = BUF(64 * MIB);
	_free_ char *path = mem_fmt("%s/quarantine/%s/" QUARANTINE_LIST, r->host.state_dir,
				    r->has_def ? r->def.name : r->plan.name);
	struct err ignored = ERR_INIT;
	size_t total = 0;

	for (const char *p = o->notes.p; p && p < o->notes.p + o->notes.n; p += strlen(p) + 1)
		if (str_starts(p, QUARANTINE_TOTAL))
			for (p += strlen(QUARANTINE_TOTAL); *p >= '0' && *p <= '9'; p++)
				total = total * 10 + (size_t)(*p - '0');
	if (total == 0 || io_read_file(path, &list, &ignored) < 0 || list.n == 0)
		return false;
	for (char *end = list.p + list.n - 1; total > 0 && end > list.p; total--) {
		char *line = memrchr(list.p, '\n', (size_t)(end - list.p));

		line = line ? line + 1 : list.p;
		buf_puts(b, b->p[b->n - 1] == '[' ? "" : ",");
		buf_add(b, line, (size_t)(end - line));
		end = line - (line > list.p);
	}
	return true;
}

/* The keeper's "WORD PATH (RULE)" as a list. */
static void json_notes(const struct run *r, const struct outcome *o, const char *word,
		       struct buf *b)
{
	size_t n = strlen(word);
	bool is_first = true;

	buf_printf(b, ",\"%s\":[", word);
	if (str_eq(word, "quarantined") && json_listed(r, o, b)) {
		buf_putc(b, ']');
		return;
	}
	for (const char *p = o->notes.p; p && p < o->notes.p + o->notes.n; p += strlen(p) + 1) {
		_free_ char *line = mem_str(p);
		char *open = strrchr(line, '(');

		if (!str_starts(line, word) || line[n] != ' ' || open == NULL ||
		    open < line + n + 2)
			continue;
		open[-1] = '\0';
		open[strcspn(open, ")")] = '\0';
		buf_puts(b, is_first ? "{\"path\":" : ",{\"path\":");
		buf_json(b, line + n + 1);
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

static void json_use(const struct outcome *o, struct buf *b)
{
	buf_printf(b,
		   ",\"session\":%u,\"used\":{\"wall_ns\":%llu,\"cpu_ns\":%llu,\"max_rss\":%llu,"
		   "\"memory_peak\":%llu,\"net_in\":%llu,\"net_out\":%llu}",
		   o->session, (unsigned long long)o->v[VALUE_WALL_NS],
		   (unsigned long long)o->v[VALUE_CPU_NS], (unsigned long long)o->v[VALUE_MEMORY],
		   (unsigned long long)o->v[VALUE_PEAK], (unsigned long long)o->v[VALUE_NET_IN],
		   (unsigned long long)o->v[VALUE_NET_OUT]);
}

/* null: nothing waits. */
static void json_waits(const struct run *r, struct buf *b)
{
	_cleanup_(waits_done) struct waits w = { 0 };
	_free_ char *text = NULL;

	waits_find(r->host.state_dir, r->def.name, r->def.workspace, &w);
	text = waits_text(&w);
	buf_puts(b, ",\"waits\":");
	if (text)
		buf_json(b, text);
	else
		buf_puts(b, "null");
}

static void print_json(const struct run *r, const struct outcome *o)
{
	_cleanup_(buf_done) struct buf b = BUF(128 * MIB);

	buf_printf(&b, "{\"exit\":%d,\"reason\":\"%s\",\"name\":", o->status,
		   end_reason_name(o->why));
	buf_json(&b, r->has_def ? r->def.name : r->plan.name);
	if (o->why == END_ERROR) {
		buf_printf(&b, ",\"error\":\"%s\",\"message\":",
			   o->err.kind < ERR_KIND_COUNT_ ? err_kind_name(o->err.kind) : "bug");
		buf_json(&b, o->err.msg);
	}
	if (r->has_plan)
		json_limits(&r->plan, &b);
	json_notes(r, o, "quarantined", &b);
	json_notes(r, o, "unprivileged", &b);
	json_aliases(r, &b);
	if (o->why != END_ERROR)
		json_use(o, &b);
	if (o->why != END_ERROR && r->has_def)
		changed_json(r->def.name, &b);
	if (r->has_def)
		json_waits(r, &b);
	buf_puts(&b, "}\n");
	(void)fputs(buf_cstr(&b), stderr);
}

static void print_notes(const struct outcome *o, const char *name)
{
	bool is_taken = false;

	for (const char *p = o->notes.p; p && p < o->notes.p + o->notes.n; p += strlen(p) + 1) {
		is_taken |= str_starts(p, "quarantined ");
		cli_complain(p);
	}
	if (is_taken)
		(void)fprintf(stderr,
			      "vitrine: 'vitrine quarantine ls %s' lists what was quarantined, "
			      "'vitrine "
			      "quarantine restore %s PATH' brings it back\n",
			      name, name);
}

/* ---- verbs ---- */

static int report(struct run *r, struct outcome *o)
{
	const char *name = r->has_def ? r->def.name : r->plan.name;

	if (o->is_detached) {
		/* From a terminal that is gone nobody reads this. */
		if (r->flags & KEEP_BEHIND)
			(void)printf("%s\n", name);
		else
			(void)fprintf(stderr,
				      "\nvitrine: left running; 'vitrine attach %s' comes back\n",
				      name);
		(void)fflush(stdout);
		o->status = 0;
	} else if (r->as_json) {
		print_json(r, o);
	} else {
		print_notes(o, name);
		say_end(r, o);
	}
	buf_done(&o->notes);
	return o->status;
}

static struct talk talk_of(const struct run *r)
{
	return (struct talk){ .flags = r->flags, .keys = r->keys, .leaves_on_hangup = r->has_def };
}

/* A keeper that was begun early takes a plan that lies in shared memory as a whole and needs nothing from before its
 * time: control groups are entered at birth, and the namespaces it made are the native engine's. What was given once is read-only; a second try forks anew. */
static int hand_over(struct run *r, struct keeper_in *in, bool is_again, struct err *e)
{
	int x;

	if (!is_again)
		masks_mark(in);
	if (!is_again && r->early.conn >= 0 && mem_share_is_whole() && !r->plan.has_cgroup &&
	    r->engine->render == NULL && in->n_values == 0) {
		x = keeper_give(&r->early, in, e);
		return x < 0 ? x : r->early.conn;
	}
	if (!is_again) {
		keeper_drop(&r->early);
		if (!r->is_eager)
			run_last(r);
		if (mem_is_shared(r))
			mem_share_give(in);
	}
	return keeper_spawn(in, e);
}

/* The keeper forgets its environment; a secret that is read anew while it runs may need it. */
static char **copy_env(void)
{
	size_t n = 0, k = 0;
	char **v;

	while (environ && environ[n])
		n++;
	v = mem_new(n + 1, sizeof(*v));
	for (; k < n; k++)
		v[k] = mem_str(environ[k]);
	v[n] = NULL;
	return v;
}

/* The values of secrets are handed to the keeper by its birth, in memory that nobody shares; ours are wiped as soon as
 * it lives. */
static int hand_over_secrets(struct run *r, struct keeper_in *in, bool is_again, struct err *e)
{
	struct keep_secret given[SECRETS_MAX];
	struct buf values[SECRETS_MAX] = { 0 };
	int x;

	spread_end(); /* commands of the host may be run */
	x = secrets_fetch(&r->secrets, r->host.state_dir, values, e);

	for (size_t i = 0; i < r->secrets.n; i++)
		given[i] = (struct keep_secret){ r->secrets.v[i].name, &values[i] };
	in->values = given;
	in->n_values = r->secrets.n;
	in->env = r->secrets.n > 0 ? copy_env() : NULL;
	if (x >= 0)
		x = hand_over(r, in, is_again, e);
	secrets_wipe(values);
	return x;
}

int run_hand_over(struct run *r, struct keeper_in *in, bool is_again, struct err *e)
{
	return r->secrets.n ? hand_over_secrets(r, in, is_again, e) : hand_over(r, in, is_again, e);
}

static int run_start(struct run *r, bool is_again, struct outcome *o, struct err *e)
{
	struct keeper_in *in = mem_new(1, sizeof(*in));
	struct talk t = talk_of(r);
	_close_ int conn = FD_NONE;

	*in = (struct keeper_in){ .plan = &r->plan,
				  .policy = &r->policy,
				  .scan = &r->host.scan,
				  .grounds = r->host.grounds,
				  .n_grounds = r->host.n_grounds,
				  .cgroups = &r->host.cgroups,
				  .ws_fd = r->host.ws_fd,
				  .stdio = { 0, 1, 2 },
				  .flags = r->flags,
				  .saved = r->saved,
				  .is_rm = r->is_rm };
	memcpy(in->keys, r->keys, KEEP_KEYS);
	conn = run_hand_over(r, in, is_again, e);
	if (conn < 0)
		return conn;
	/* The keeper has its own copy; what we do not need for the report goes while we would wait anyway. */
	if (!r->as_json && !r->has_def)
		run_forget(r);
	return client_serve(conn, &t, o, e);
}

static int refuse_flag(struct run *r, const char *text, struct err *e)
{
	return err_set(e, ERR_CONFLICT, EBUSY,
		       "'%.120s': the sandbox '%s' is running, and its walls stand; 'vitrine stop "
		       "%s' first",
		       text, r->def.name, r->def.name);
}

static int run_join(struct run *r, int conn, struct outcome *o, struct err *e)
{
	struct talk t = talk_of(r);
	_cleanup_(words_free) struct words env = { 0 };
	_free_ char *cwd = NULL;
	int x;

	if (r->host.cwd == NULL)
		r->host.cwd = getcwd(NULL, 0);
	x = run_each_flag(r, r->argc, r->argv, refuse_flag, e);
	if (x < 0)
		return x;
	cwd = live_cwd(&r->def, r->host.cwd, r->workdir);
	live_terminal_env(&env);
	x = client_exec(conn, &t, r->command, env.v, cwd, e);
	return x < 0 ? x : client_serve(conn, &t, o, e);
}

/* Somebody else was faster: with starting it, or with ending it. */
static bool is_to_be_repeated(const struct run *r, const struct outcome *o)
{
	if (!r->has_def)
		return false;
	return o->why == END_CLOSING ||
	       (o->why == END_ERROR && o->err.kind == ERR_CONFLICT && o->err.num == EBUSY);
}

static int run_once(struct run *r, bool *was_given, struct outcome *o, struct err *e)
{
	_close_ int conn = FD_NONE;
	int x = 0;

	if (r->has_def && !r->is_new) {
		conn = keep_connect(r->host.state_dir, r->def.name, e);
		if (conn >= 0)
			return run_join(r, conn, o, e);
		if (conn != -ENOENT)
			return conn;
		*e = ERR_INIT;
	}
	if (!r->has_plan)
		x = run_freeze(r, e);
	if (x == 0 && !r->has_plan)
		x = run_plan(r, e);
	if (x == 0 && r->is_new)
		x = run_create(r, e);
	if (x < 0)
		return x;
	if (!*was_given)
		x = run_begin(r, e);
	if (x < 0)
		return x;
	if (!*was_given && r->policy.network == NET_GATE && r->policy.net_preset == LEVEL_OPEN)
		cli_complain("network: everything public is open to it; '--net balanced' or "
			     "'--allow HOST' say what it needs");
	x = run_start(r, *was_given, o, e);
	*was_given = true;
	return x;
}

static int run_all(struct run *r, struct err *e)
{
	struct outcome o = { 0 };
	bool was_given = false, is_undone;
	int x = 0;

	for (int i = 0; x == 0; i++) {
		x = run_once(r, &was_given, &o, e);
		if (x < 0 || i == 500 || !is_to_be_repeated(r, &o))
			break;
		buf_done(&o.notes);
		(void)usleep(i < 20 ? 500 : 10000);
	}
	if (x < 0)
		run_begin_not(r);
	if (x < 0 && !was_given)
		keeper_drop(&r->early);
	/* A command that never began leaves no sandbox that was made for it. */
	is_undone = r->is_made &&
		    ((x < 0 && !was_given) || (x == 0 && o.why == END_ERROR && !o.has_begun));
	if (is_undone) {
		struct err ignored = ERR_INIT;

		/* The keeper that reported the failure may still be ending. */
		(void)live_wait_free(r->host.state_dir, r->def.name, UNDO_WAIT, &ignored);
		run_uncreate(r);
	}
	if (x < 0)
		return x;
	x = report(r, &o);
	if (!o.is_detached && !is_undone)
		run_end(r);
	return x;
}

int cmd_run(int argc, char **argv, struct err *e)
{
	bool is_eager = mem_share(RUN_SHARE_MAX) == 0;
	struct run *r = mem_new(1, sizeof(*r));
	int x;

	r->is_eager = is_eager;
	x = run_parse(r, argc, argv, e);
	if (x == 0 && r->command[0] == NULL)
		x = err_set(e, ERR_USAGE, EINVAL,
			    "run: no command; try 'vitrine run -- CMD', 'vitrine run shell' or "
			    "'vitrine help run'");
	if (r->has_def)
		r->flags |= KEEP_RECORD;
	r->is_starting = true;
	if (x < 0)
		keeper_drop(&r->early);
	else
		x = run_all(r, e);
	run_done(r);
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
	struct run r = { 0 };
	int x = run_parse(&r, argc, argv, e);

	if (x == 0)
		x = run_plan(&r, e);
	if (x == 0) {
		plan_print(&r.plan, r.as_json, &b);
		if (!r.as_json)
			print_widenings(&r.policy, &b);
		x = cli_print(&b, e);
	}
	run_done(&r);
	return x;
}
