/* SPDX-License-Identifier: Apache-2.0 */
/* cli/list.c - ls, ps, inspect, stats
 *
 * Folders say which sandboxes there are, live keepers what they do. Nothing else is asked, so a listing is right even
 * where a database is not.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/live.h"
#include "cli/past.h"
#include "cli/table.h"
#include "cli/waits.h"

enum { OPT_FOLLOW = 1, OPT_ALL, OPT_SIZE };

const struct opt list_opts[] = {
	TABLE_OPTS("print JSON", "print the names only"),
	{ "all", 'a', NULL, "runs without a name too", OPT_ALL },
	{ "size", 's', NULL, "ls: what each keeps on the disk, layers and checkpoints too",
	  OPT_SIZE },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt stats_opts[] = {
	TABLE_OPTS("print JSON", "print the names only"),
	{ "follow", 'f', NULL, "again every second", OPT_FOLLOW },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt inspect_opts[] = {
	{ "json", 0, NULL, "print JSON, as it does anyway", TABLE_OPT_JSON },
	{ "format", 0, "TEXT", "print each by a text with {{.Field}}s of 'vitrine ls'",
	  TABLE_OPT_FORMAT },
	{ NULL, 0, NULL, NULL, 0 },
};

struct list {
	struct host host;
	struct table_how how;
	bool is_followed, is_all, is_sized;
	char *const *names;
	size_t n;
	char **found;              /* owned */
	struct column columns[16]; /* of ls: one is shown only when it was looked at */
};

static int parse(struct list *l, const struct opt *opts, int argc, char **argv, struct err *e)
{
	struct opts o;
	int id;

	*l = (struct list){ .host = { .ws_fd = FD_NONE } };
	opts_init(&o, opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		if (table_opt(&l->how, &o, id))
			continue;
		if (id == OPT_FOLLOW)
			l->is_followed = true;
		else if (id == OPT_SIZE)
			l->is_sized = true;
		else
			l->is_all = true;
	}
	if (id < 0)
		return id;
	l->names = argv + o.at;
	l->n = (size_t)(argc - o.at);
	return host_init(&l->host, NULL, e);
}

static void done(struct list *l)
{
	def_list_free(l->found);
	host_done(&l->host);
}

static int run_is_there(const char *state_dir, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, name);

	if (strchr(name, '/') == NULL && access(path, F_OK) == 0)
		return 0;
	return err_set(e, ERR_NOTFOUND, ENOENT, "there is no sandbox '%.64s'; it may have ended",
		       name);
}

/* The names that were given, or all there are. */
static int names_of(struct list *l, bool runs, char *const **ret, struct err *e)
{
	int x = 0;

	if (l->n == 0 && l->found == NULL)
		x = def_list(l->host.state_dir, runs, &l->found, e);
	for (size_t i = 0; x == 0 && i < l->n; i++) {
		_cleanup_(def_done) struct def d = { 0 };

		/* A run without a name has no definition, and no folder when it is over. */
		if (str_starts(l->names[i], "run-"))
			x = run_is_there(l->host.state_dir, l->names[i], e);
		else
			x = def_read(l->host.state_dir, l->names[i], &d, e);
	}
	*ret = l->n ? l->names : l->found;
	return x;
}

/* ---- ls ---- */

enum {
	LS_NAME,
	LS_AGENT,
	LS_STATUS,
	LS_EXIT,
	LS_WAITS,
	LS_SESSIONS,
	LS_CREATED,
	LS_WORKSPACE,
	LS_DISK,
	LS_ID,
	LS_COUNT
};

static const struct column ls_columns[LS_COUNT] = {
	[LS_NAME] = { "name", "Name", "SANDBOX", COLUMN_TEXT },
	[LS_AGENT] = { "agent", "Agent", "AGENT", COLUMN_TEXT },
	[LS_STATUS] = { "status", "Status", "STATUS", COLUMN_TEXT },
	[LS_EXIT] = { "exit", "Exit", "EXIT", COLUMN_NUMBER },
	[LS_WAITS] = { "waits", "Waits", "WAITS", COLUMN_TEXT },
	[LS_SESSIONS] = { "sessions", "Sessions", "SESSIONS", COLUMN_NUMBER },
	[LS_CREATED] = { "created", "Created", "CREATED", COLUMN_AGO },
	[LS_WORKSPACE] = { "workspace", "Workspace", "WORKSPACE", COLUMN_TEXT },
	[LS_DISK] = { "disk", "Disk", NULL, COLUMN_BYTES },
	[LS_ID] = { "id", "Id", NULL, COLUMN_TEXT },
};

static uint64_t disk_of(const struct list *l, const char *name, uint64_t max_names)
{
	const char *state_dir = l->host.state_dir;
	struct id_map uids, gids;
	struct err ignored;

	if (!layers_is_rooted(state_dir, name) || account_id_maps(&uids, &gids, &ignored) < 0)
		return layers_disk(state_dir, name, max_names).bytes;
	return layers_disk_rooted(state_dir, name, max_names, &uids, &gids).bytes;
}

static const char *status_of(const struct live *live, const struct past *v, size_t n)
{
	if (live->is_running)
		return live->state.flags & STATE_KEPT ? "started" : "running";
	return past_is_lost(v, n) ? "lost" : "stopped";
}

/* The newest session that has ended. */
static struct cell last_exit(const struct past *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].has_ended)
			return (struct cell){ .num = (uint64_t)v[i].status };
	return (struct cell){ .is_null = true };
}

static char *what_waits(const struct list *l, const char *name, const char *workspace)
{
	_cleanup_(waits_done) struct waits w = { 0 };

	waits_find(l->host.state_dir, name, workspace, &w);
	return waits_text(&w);
}

static int ls_row(struct list *l, const char *name, struct table *t, struct err *e)
{
	_cleanup_(live_done) struct live live = { 0 };
	_cleanup_(def_done) struct def d = { 0 };
	bool is_run = str_starts(name, "run-");
	struct past *past = NULL;
	size_t n_past = 0;
	struct cell *row;
	int x = live_ask(l->host.state_dir, name, &live, e);

	if (x < 0 || (is_run && !live.is_running))
		return x;
	/* One that cannot be read is listed all the same: it is there. */
	if (!is_run && def_read(l->host.state_dir, name, &d, e) < 0) {
		if (e->kind == ERR_NOTFOUND)
			return l->n ? -ENOENT : 0;
		cli_complain(e->msg);
		*e = ERR_INIT;
	}
	if (past_read(l->host.state_dir, name, &past, &n_past, e) < 0)
		*e = ERR_INIT; /* what cannot be read is not known */
	row = table_row(t);
	row[LS_NAME].text = mem_str(name);
	row[LS_AGENT].text = d.agent ? mem_str(d.agent) : NULL;
	row[LS_STATUS].text = mem_str(status_of(&live, past, n_past));
	row[LS_EXIT] = last_exit(past, n_past);
	if (!is_run && table_wants(&l->how, "Waits"))
		row[LS_WAITS].text = what_waits(l, name, d.workspace);
	past_free(past, n_past);
	row[LS_SESSIONS].num = live.n;
	row[LS_CREATED].num = d.id ? d.created : live.state.v[VALUE_STARTED];
	row[LS_WORKSPACE].text = d.workspace ? mem_str(d.workspace) : NULL;
	row[LS_DISK] = (struct cell){ .num = l->is_sized ? disk_of(l, name, DISK_NAMES_ALL) : 0,
				      .is_null = !l->is_sized };
	row[LS_ID].text = d.id ? mem_str(d.id) : NULL;
	return 0;
}

static int ls_table(struct list *l, struct table *t, struct err *e)
{
	char *const *names = NULL;
	int x = names_of(l, l->is_all, &names, e);

	memcpy(l->columns, ls_columns, sizeof(ls_columns));
	l->columns[LS_DISK].title = l->is_sized ? "DISK" : NULL;
	*t = (struct table){ .columns = l->columns, .n_columns = LS_COUNT };
	for (; x == 0 && *names; names++)
		x = ls_row(l, *names, t, e);
	return x;
}

int cmd_ls(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	_cleanup_(table_done) struct table t = { 0 };
	struct list l;
	int x = parse(&l, list_opts, argc, argv, e);

	if (x == 0)
		x = ls_table(&l, &t, e);
	if (x == 0)
		x = table_print(&t, &l.how, &out, e);
	done(&l);
	return x < 0 ? x : cli_print(&out, e);
}

/* ---- ps ---- */

enum {
	PS_NAME,
	PS_SESSION,
	PS_PID,
	PS_TTY,
	PS_STARTED,
	PS_CPU,
	PS_MEMORY,
	PS_PROCESSES,
	PS_OUTPUT,
	PS_VIEWERS,
	PS_COMMAND,
	PS_COUNT
};

static const struct column ps_columns[PS_COUNT] = {
	[PS_NAME] = { "name", "Name", "SANDBOX", COLUMN_TEXT },
	[PS_SESSION] = { "session", "Session", "SESSION", COLUMN_NUMBER },
	[PS_PID] = { "pid", "Pid", NULL, COLUMN_NUMBER },
	[PS_TTY] = { "tty", "Tty", "TTY", COLUMN_BOOL },
	[PS_STARTED] = { "started", "Started", "STARTED", COLUMN_AGO },
	[PS_CPU] = { "cpu_ns", "Cpu", "CPU", COLUMN_NS },
	[PS_MEMORY] = { "memory", "Memory", "MEMORY", COLUMN_BYTES },
	[PS_PROCESSES] = { "processes", "Processes", "PROCESSES", COLUMN_NUMBER },
	[PS_OUTPUT] = { "output", "Output", NULL, COLUMN_BYTES },
	[PS_VIEWERS] = { "viewers", "Viewers", "VIEWERS", COLUMN_NUMBER },
	[PS_COMMAND] = { "command", "Command", "COMMAND", COLUMN_TEXT },
};

static int ps_rows(struct list *l, const char *name, struct table *t, struct err *e)
{
	_cleanup_(live_done) struct live live = { 0 };
	int x = live_ask(l->host.state_dir, name, &live, e);

	/* The first question makes the keeper look; a second one gets what it saw. */
	if (x == 0 && live.is_running && live.state.v[VALUE_PROCESSES] == 0) {
		live_done(&live);
		x = live_ask(l->host.state_dir, name, &live, e);
	}
	for (size_t i = 0; x == 0 && i < live.n; i++) {
		const struct keep_msg *s = &live.sessions[i];
		struct cell *row = table_row(t);

		row[PS_NAME].text = mem_str(name);
		row[PS_SESSION] = (struct cell){ .num = s->session, .is_null = s->session == 0 };
		row[PS_PID].num = (uint64_t)s->a;
		row[PS_TTY].num = s->flags & STATE_TTY;
		row[PS_STARTED].num = s->v[VALUE_STARTED];
		row[PS_CPU].num = s->v[VALUE_CPU_NS];
		row[PS_MEMORY].num = s->v[VALUE_MEMORY];
		row[PS_PROCESSES].num = s->v[VALUE_PROCESSES];
		row[PS_OUTPUT].num = s->v[VALUE_OUTPUT];
		row[PS_VIEWERS].num = s->v[VALUE_VIEWERS];
		row[PS_COMMAND].text = mem_str(s->err.msg);
	}
	return x;
}

int cmd_ps(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	_cleanup_(table_done) struct table t = { .columns = ps_columns, .n_columns = PS_COUNT };
	struct list l;
	char *const *names = NULL;
	int x = parse(&l, list_opts, argc, argv, e);

	if (x == 0)
		x = names_of(&l, true, &names, e);
	for (; x == 0 && *names; names++)
		x = ps_rows(&l, *names, &t, e);
	if (x == 0)
		x = table_print(&t, &l.how, &out, e);
	done(&l);
	return x < 0 ? x : cli_print(&out, e);
}

/* ---- stats ---- */

enum {
	ST_NAME,
	ST_CPU,
	ST_PERCENT,
	ST_MEMORY,
	ST_PEAK,
	ST_PROCESSES,
	ST_DISK,
	ST_IN,
	ST_OUT,
	ST_SESSIONS,
	ST_COUNT
};

static const struct column st_columns[ST_COUNT] = {
	[ST_NAME] = { "name", "Name", "SANDBOX", COLUMN_TEXT },
	[ST_CPU] = { "cpu_ns", "Cpu", "CPU", COLUMN_NS },
	[ST_PERCENT] = { "cpu_percent", "CpuPercent", "CPU%", COLUMN_NUMBER },
	[ST_MEMORY] = { "memory", "Memory", "MEMORY", COLUMN_BYTES },
	[ST_PEAK] = { "memory_peak", "Peak", "PEAK", COLUMN_BYTES },
	[ST_PROCESSES] = { "processes", "Processes", "PROCESSES", COLUMN_NUMBER },
	[ST_DISK] = { "disk", "Disk", "DISK", COLUMN_BYTES },
	[ST_IN] = { "net_in", "NetIn", NULL, COLUMN_BYTES },
	[ST_OUT] = { "net_out", "NetOut", NULL, COLUMN_BYTES },
	[ST_SESSIONS] = { "sessions", "Sessions", "SESSIONS", COLUMN_NUMBER },
};

/* Processor time of a quarter of a second, in per cent of one processor. */
static uint64_t percent(uint64_t before, const struct live *now, uint64_t ns)
{
	uint64_t cpu = now->state.v[VALUE_CPU_NS];

	return ns && cpu > before ? (cpu - before) * 100 / ns : 0;
}

static int st_row(struct list *l, const char *name, uint64_t *cpu_before, uint64_t ns,
		  struct table *t, struct err *e)
{
	_cleanup_(live_done) struct live live = { 0 };
	struct cell *row;
	int x = live_ask(l->host.state_dir, name, &live, e);

	if (x < 0 || !live.is_running)
		return x;
	row = table_row(t);
	row[ST_NAME].text = mem_str(name);
	row[ST_CPU].num = live.state.v[VALUE_CPU_NS];
	row[ST_PERCENT].num = percent(*cpu_before, &live, ns);
	row[ST_MEMORY].num = live.state.v[VALUE_MEMORY];
	row[ST_PEAK].num = live.state.v[VALUE_PEAK];
	row[ST_PROCESSES].num = live.state.v[VALUE_PROCESSES];
	row[ST_DISK] = (struct cell){ .num = disk_of(l, name, DISK_NAMES_SOME) };
	/* Nothing goes out where there is no gate. */
	row[ST_IN].is_null = row[ST_OUT].is_null = !(live.state.flags & STATE_NET);
	row[ST_IN].num = live.state.v[VALUE_NET_IN];
	row[ST_OUT].num = live.state.v[VALUE_NET_OUT];
	row[ST_SESSIONS].num = live.n;
	*cpu_before = live.state.v[VALUE_CPU_NS];
	return 0;
}

static int st_once(struct list *l, char *const *names, uint64_t *cpu, uint64_t ns, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	_cleanup_(table_done) struct table t = { .columns = st_columns, .n_columns = ST_COUNT };
	int x = 0;

	for (size_t i = 0; x == 0 && names[i]; i++)
		x = st_row(l, names[i], &cpu[i], ns, &t, e);
	if (x == 0 && ns == 0)
		return 0; /* the first look is what the second is compared with */
	if (x == 0 && l->is_followed && isatty(1) && !l->how.as_json)
		buf_puts(&out, "\033[H\033[J");
	if (x == 0)
		x = table_print(&t, &l->how, &out, e);
	if (x == 0)
		x = cli_print(&out, e);
	return x;
}

int cmd_stats(int argc, char **argv, struct err *e)
{
	struct list l;
	char *const *names = NULL;
	_free_ uint64_t *cpu = NULL;
	size_t n = 0;
	int x = parse(&l, stats_opts, argc, argv, e);

	if (x == 0)
		x = names_of(&l, true, &names, e);
	for (; x == 0 && names[n];)
		n++;
	cpu = mem_new(n + 1, sizeof(*cpu));
	if (x == 0)
		x = st_once(&l, names, cpu, 0, e);
	for (uint64_t ns = 250 * NS_PER_MS; x == 0; ns = NS_PER_SEC) {
		(void)usleep((useconds_t)(ns / 1000));
		x = st_once(&l, names, cpu, ns, e);
		if (!l.is_followed)
			break;
	}
	done(&l);
	return x;
}

/* ---- inspect ---- */

static void inspect_live(const struct live *live, struct buf *out)
{
	buf_printf(out, ",\n  \"sessions\": [");
	for (size_t i = 0; i < live->n; i++) {
		const struct keep_msg *s = &live->sessions[i];

		buf_printf(out,
			   "%s{\"id\": %u, \"pid\": %d, \"tty\": %s, \"started\": %llu, "
			   "\"command\": ",
			   i ? ", " : "", s->session, s->a, s->flags & STATE_TTY ? "true" : "false",
			   (unsigned long long)s->v[VALUE_STARTED]);
		buf_json(out, s->err.msg);
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
}

static int inspect_one(struct list *l, const char *name, struct buf *out, struct err *e)
{
	_cleanup_(live_done) struct live live = { 0 };
	_cleanup_(def_done) struct def d = { 0 };
	struct past *past = NULL;
	size_t n_past = 0;
	int x = def_read(l->host.state_dir, name, &d, e);

	if (x == 0)
		x = live_ask(l->host.state_dir, name, &live, e);
	if (x < 0)
		return x;
	if (past_read(l->host.state_dir, name, &past, &n_past, e) < 0)
		*e = ERR_INIT; /* what cannot be read is not known */
	buf_puts(out, "{\n  \"name\": ");
	buf_json(out, d.name);
	buf_puts(out, ",\n  \"id\": ");
	buf_json(out, d.id);
	buf_puts(out, ",\n  \"agent\": ");
	buf_json(out, d.agent);
	buf_puts(out, ",\n  \"workspace\": ");
	buf_json(out, d.workspace);
	buf_printf(out, ",\n  \"created\": %llu,\n  \"status\": \"%s\",\n  \"flags\": [",
		   (unsigned long long)d.created, status_of(&live, past, n_past));
	for (size_t i = 0; i < d.n_flags; i++) {
		buf_puts(out, i ? ", " : "");
		buf_json(out, d.flags[i]);
	}
	buf_puts(out, "],\n  \"folder\": ");
	{
		_free_ char *folder = mem_fmt("%s/sandboxes/%s", l->host.state_dir, name);

		buf_json(out, folder);
	}
	buf_printf(out, ",\n  \"disk\": %llu",
		   (unsigned long long)disk_of(l, name, DISK_NAMES_SOME));
	inspect_live(&live, out);
	past_print(past, n_past, &live, out);
	past_free(past, n_past);
	buf_puts(out, "\n}");
	return 0;
}

int cmd_inspect(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	_cleanup_(table_done) struct table t = { 0 };
	struct list l;
	int x = parse(&l, inspect_opts, argc, argv, e);

	if (x == 0 && l.n == 0)
		x = err_set(e, ERR_USAGE, EINVAL,
			    "inspect: which sandbox? 'vitrine ls' lists them");
	if (x == 0 && l.how.format) {
		x = ls_table(&l, &t, e);
		if (x == 0)
			x = table_print(&t, &l.how, &out, e);
	} else if (x == 0) {
		buf_putc(&out, '[');
		for (size_t i = 0; x == 0 && i < l.n; i++) {
			buf_puts(&out, i ? ",\n" : "");
			x = inspect_one(&l, l.names[i], &out, e);
		}
		buf_puts(&out, "]\n");
	}
	done(&l);
	return x < 0 ? x : cli_print(&out, e);
}
