/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_show.c - what a loop did, for people and machines: lines while it runs, the summary, the report, the status */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/tasks.h"
#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/loop_opts.h"
#include "cli/table.h"
#include "core/def.h"
#include "core/layers.h"
#include "loop/loop.h"

#define OUT_MAX (64 * MIB)
#define TASK_FILE_MAX (4 * MIB)

void loop_put_cost(uint64_t micros, struct buf *out)
{
	buf_printf(out, "%llu.%04llu", (unsigned long long)(micros / 1000000),
		   (unsigned long long)(micros % 1000000 / 100));
}

/* One line of foreign text. */
static void put_said(const char *text, size_t max, struct buf *out)
{
	size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] == '\n') { /* the last line tells most */
			text += i + 1;
			n -= i + 1;
			i = (size_t)-1;
		}
	buf_esc(out, text ? text : "", n < max ? n : max);
}

void loop_put_record(const struct loop *l, const struct loop_record *r, struct buf *out)
{
	buf_printf(out, "loop %s: iteration %llu %s", l->name, (unsigned long long)r->iteration,
		   loop_outcome_name(r->result.outcome));
	if (r->result.status)
		buf_printf(out, " (%s %d)", r->reason ? r->reason : "exit", r->result.status);
	buf_puts(out, ", ");
	text_duration(r->result.duration, out);
	buf_printf(out, ", %llu file%s changed", (unsigned long long)r->result.n_changed,
		   r->result.n_changed == 1 ? "" : "s");
	if (r->has_cost) {
		buf_puts(out, ", $");
		loop_put_cost(r->result.cost, out);
	}
	if (r->has_check)
		buf_printf(out, ", check %s", r->result.is_checked ? "succeeded" : "failed");
	if (r->said) {
		buf_puts(out, ": ");
		put_said(r->said, 100, out);
	}
	buf_putc(out, '\n');
}

void loop_put_repeated(const struct loop *l, const struct loop_sum *s, struct buf *out)
{
	if (s->busy == 0 && s->same == 2)
		buf_printf(out,
			   "loop %s: the last two iterations failed in the same way; 'vitrine loop "
			   "report %s' shows the output\n",
			   l->name, l->name);
}

/* ---- summary ---- */

static const struct column columns[] = {
	{ "try", "Try", "TRY", COLUMN_NUMBER },
	{ "iteration", "Iteration", "ITERATION", COLUMN_NUMBER },
	{ "outcome", "Outcome", "OUTCOME", COLUMN_TEXT },
	{ "status", "Status", "STATUS", COLUMN_NUMBER },
	{ "duration_ns", "Duration", "TIME", COLUMN_NS },
	{ "changed", "Changed", "CHANGED", COLUMN_NUMBER },
	{ "tokens", "Tokens", "TOKENS", COLUMN_NUMBER },
	{ "cost", "Cost", "COST", COLUMN_TEXT },
	{ "check", "Check", "CHECK", COLUMN_TEXT },
	{ "checkpoint", "Checkpoint", "CHECKPOINT", COLUMN_NUMBER },
};

static void add_row(struct table *t, const struct loop_record *r)
{
	struct cell *c = table_row(t);
	struct buf cost = BUF(64);

	c[0].num = r->number;
	c[1].num = r->iteration;
	c[2].text = mem_str(loop_outcome_name(r->result.outcome));
	c[3].num = (uint64_t)r->result.status;
	c[4].num = r->result.duration;
	c[5].num = r->result.n_changed;
	c[6].num = r->result.tokens_in + r->result.tokens_out;
	c[6].is_null = !r->has_tokens;
	if (r->has_cost) {
		loop_put_cost(r->result.cost, &cost);
		c[7].text = buf_take(&cost);
	}
	c[8].text = r->has_check ? mem_str(r->result.is_checked ? "ok" : "no") : NULL;
	c[9].num = r->checkpoint;
}

static int each_record(const struct loop *l, int (*fn)(void *arg, const struct loop_record *r),
		       void *arg, struct err *e)
{
	int r = 0;

	for (uint64_t n = 1; r == 0; n++) {
		_cleanup_(loop_record_done) struct loop_record rec = { 0 };

		r = loopdir_record(&l->dir, n, &rec, e);
		if (r == 0)
			r = fn(arg, &rec);
	}
	return r == -ENOENT ? 0 : r;
}

static int row_of(void *arg, const struct loop_record *r)
{
	add_row(arg, r);
	return 0;
}

static int json_of(void *arg, const struct loop_record *r)
{
	struct buf *out = arg;

	buf_printf(out, "%s{\"try\":%llu,", out->p[out->n - 1] == '[' ? "" : ",",
		   (unsigned long long)r->number);
	_cleanup_(buf_done) struct buf one = BUF(JSON_MAX_BYTES);

	loop_record_print(r, &one);
	buf_puts(out, buf_cstr(&one) + 1);
	return 0;
}

static void json_head(const struct loop *l, enum loop_stop why, struct buf *out)
{
	const struct loop_sum *s = &l->sum;

	buf_puts(out, "{\"name\":");
	buf_json(out, l->name);
	buf_puts(out, ",\"agent\":");
	buf_json(out, l->def.agent);
	buf_puts(out, ",\"workspace\":");
	buf_json(out, l->def.workspace);
	buf_printf(out,
		   ",\"mode\":\"%s\",\"loop\":%llu,\"reason\":\"%s\",\"iterations\":%llu,\"max\":%"
		   "llu,\"tries\":%llu,"
		   "\"failed\":%llu,\"time_ns\":%llu,\"cost_usd\":%llu.%06llu,\"tokens_in\":%llu,"
		   "\"tokens_out\":%llu",
		   l->def.mode, (unsigned long long)l->dir.number, loop_stop_name(why),
		   (unsigned long long)s->iterations, (unsigned long long)l->def.conf.max,
		   (unsigned long long)s->tries, (unsigned long long)s->failed,
		   (unsigned long long)s->time, (unsigned long long)(s->cost / 1000000),
		   (unsigned long long)(s->cost % 1000000), (unsigned long long)s->tokens_in,
		   (unsigned long long)s->tokens_out);
}

static int print_json(const struct loop *l, enum loop_stop why, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	int r;

	json_head(l, why, &out);
	buf_puts(&out, ",\"runs\":[");
	r = each_record(l, json_of, &out, e);
	buf_puts(&out, "]}\n");
	return r < 0 ? r : cli_print(&out, e);
}

int loop_summary(const struct loop *l, enum loop_stop why, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	struct table_how how = { 0 };
	int r;

	if (l->as_json)
		return print_json(l, why, e);
	r = each_record(l, row_of, &t, e);
	if (r == 0 && t.n_rows > 0)
		r = table_print(&t, &how, &out, e);
	if (r < 0)
		return r;
	buf_printf(&out, "%sstopped: %s\n", t.n_rows ? "\n" : "", loop_stop_sentence(why));
	if (str_eq(l->def.mode, "review"))
		buf_printf(&out,
			   "the changes wait: 'vitrine diff %s', 'vitrine apply %s'; 'vitrine loop "
			   "report %s' says more\n",
			   l->name, l->name, l->name);
	if (str_eq(l->def.mode, "clone"))
		buf_printf(&out,
			   "the commits wait: 'git fetch vitrine/%s' in your repository; 'vitrine "
			   "loop "
			   "report %s' says more\n",
			   l->name, l->name);
	if (why == LOOP_SIGNAL || why == LOOP_ASKED || why == LOOP_BUSY)
		buf_printf(&out, "'vitrine loop --resume %s' goes on\n", l->name);
	return cli_print(&out, e);
}

/* ---- report ---- */

/* As a block of code: indented, so that nothing in it can end it. */
static void put_block(const char *text, struct buf *out)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		buf_puts(out, "\n    ");
		buf_esc(out, text, n);
	}
	buf_puts(out, "\n");
}

static int report_of(void *arg, const struct loop_record *r)
{
	struct buf *out = arg;
	char when[64] = "";
	time_t at = (time_t)r->started;
	struct tm tm;

	if (gmtime_r(&at, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	buf_printf(out, "## Iteration %llu (try %llu): %s\n\n", (unsigned long long)r->iteration,
		   (unsigned long long)r->number, loop_outcome_name(r->result.outcome));
	buf_printf(out, "Began %s%s, took ", when,
		   r->attempt > 1 ? " (again: an earlier attempt was cut off)" : "");
	text_duration(r->result.duration, out);
	buf_printf(out, ", ended with %s %d. Checkpoint before it: %llu.",
		   r->reason ? r->reason : "exit", r->result.status,
		   (unsigned long long)r->checkpoint);
	if (r->has_tokens)
		buf_printf(out, " Tokens: %llu in, %llu out.",
			   (unsigned long long)r->result.tokens_in,
			   (unsigned long long)r->result.tokens_out);
	if (r->has_cost) {
		buf_puts(out, " Cost: $");
		loop_put_cost(r->result.cost, out);
		buf_putc(out, '.');
	}
	if (r->has_check)
		buf_printf(out, " The check ended with %d.", r->check_status);
	buf_printf(out, "\n\n%llu file%s changed", (unsigned long long)r->result.n_changed,
		   r->result.n_changed == 1 ? "" : "s");
	for (size_t i = 0; r->files && r->files[i]; i++) {
		buf_puts(out, i ? ", `" : ": `");
		buf_esc(out, r->files[i], strlen(r->files[i]));
		buf_putc(out, '`');
	}
	buf_puts(out, ".\n");
	for (size_t i = 0; r->outside && r->outside[i]; i++) {
		buf_puts(out, i ? "- " : "\nDone outside by an attempt that was cut off:\n\n- ");
		buf_esc(out, r->outside[i], strlen(r->outside[i]));
		buf_putc(out, '\n');
	}
	if (r->said) {
		buf_puts(out, "\nIt said:\n");
		put_block(r->said, out);
	}
	buf_putc(out, '\n');
	return 0;
}

int loop_report(const struct loop *l, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	enum loop_stop why = loopdir_end(&l->dir);
	int r;

	buf_printf(&out,
		   "# Loop of %s in %s\n\nSandbox `%s`, mode %s. %llu of at most %llu iterations, "
		   "%llu failed, ",
		   l->def.agent, l->def.workspace, l->name, l->def.mode,
		   (unsigned long long)l->sum.iterations, (unsigned long long)l->def.conf.max,
		   (unsigned long long)l->sum.failed);
	text_duration(l->sum.time, &out);
	buf_printf(&out, ". Tokens: %llu in, %llu out. Cost: $",
		   (unsigned long long)l->sum.tokens_in, (unsigned long long)l->sum.tokens_out);
	loop_put_cost(l->sum.cost, &out);
	buf_printf(&out, ".\n\n**%s**\n\n",
		   why == LOOP_GOES_ON ? "It has not ended." : loop_stop_sentence(why));
	r = each_record(l, report_of, &out, e);
	return r < 0 ? r : cli_print(&out, e);
}

/* ---- status ---- */

const char *loop_state(const struct loop *l)
{
	enum loop_stop why = loopdir_end(&l->dir);

	if (loopdir_is_locked(&l->dir))
		return loopdir_is_asked(&l->dir) ? "stopping" : "running";
	return why == LOOP_GOES_ON ? "interrupted" : loop_stop_name(why);
}

/* Its layers from the top, then the host's. */
int loop_open_inside(const struct loop *l, char *const *layers, const char *rel)
{
	for (size_t i = 0; layers && layers[i]; i++) {
		_free_ char *fs = i == 0 ? mem_fmt("%s/fs", layers[i]) : mem_str(layers[i]);
		_close_ int dir = open(fs, O_PATH | O_DIRECTORY | O_CLOEXEC);
		_close_ int fd = dir < 0 ? -ENOENT
					 : path_openat2(dir, rel, O_PATH | O_NOFOLLOW | O_CLOEXEC,
							RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		struct stat st;

		if (fd < 0)
			continue;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			return -ENOENT; /* a white-out, or nothing to read */
		return path_openat2(dir, rel, O_RDONLY | O_NONBLOCK | O_CLOEXEC,
				    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	}
	if (str_eq(l->def.mode, "clone"))
		return -ENOENT; /* below its layers there is nothing */
	_close_ int ws = open(l->def.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return ws < 0 ? -ENOENT
		      : path_openat2(ws, rel, O_RDONLY | O_NONBLOCK | O_CLOEXEC,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static void read_tasks(const struct loop *l, char *const *layers, const char *rel, struct tasks *t)
{
	_close_ int fd = loop_open_inside(l, layers, rel);
	_cleanup_(buf_done) struct buf text = BUF(TASK_FILE_MAX);
	struct err e = ERR_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || io_read_fd(fd, &text, &e) < 0)
		return;
	if (str_eq(rel, TASKS_BEADS))
		tasks_beads(t, buf_cstr(&text), text.n);
	else
		tasks_markdown(t, buf_cstr(&text), text.n);
}

static void all_tasks(const struct loop *l, struct tasks *t)
{
	struct layers layers = { 0 };
	struct err e = ERR_INIT;
	char **paths = NULL;

	if (!str_eq(l->def.mode, "direct") &&
	    layers_read(l->host.state_dir, l->name, &layers, &e) == 0)
		paths = layers_paths(&layers, &layers.ws);
	for (const char *const *v = tasks_files; *v; v++)
		read_tasks(l, paths, *v, t);
	read_tasks(l, paths, TASKS_BEADS, t);
	layers_paths_free(paths);
	layers_done(&layers);
}

static void status_json(const struct loop *l, const struct tasks *t, const struct loop_begin *now,
			struct buf *out)
{
	json_head(l, loopdir_end(&l->dir), out);
	buf_printf(out, ",\"state\":\"%s\"", loop_state(l));
	if (now)
		buf_printf(out,
			   ",\"running\":{\"iteration\":%llu,\"attempt\":%llu,\"started\":%llu}",
			   (unsigned long long)now->iteration, (unsigned long long)now->attempt,
			   (unsigned long long)now->started);
	if (t) {
		buf_printf(out, ",\"tasks\":{\"open\":%llu,\"done\":%llu,\"list\":[",
			   (unsigned long long)t->open, (unsigned long long)t->done);
		for (size_t i = 0; i < t->n; i++) {
			buf_printf(out, "%s{\"done\":%s,\"text\":", i ? "," : "",
				   t->v[i].is_done ? "true" : "false");
			buf_json(out, t->v[i].text);
			buf_putc(out, '}');
		}
		buf_puts(out, "]}");
	}
	buf_putc(out, '}');
}

static void status_text(const struct loop *l, const struct tasks *t, const struct loop_begin *now,
			struct buf *out)
{
	unsigned long long tokens = l->sum.tokens_in + l->sum.tokens_out;

	buf_printf(out, "%s: %s, %s; iteration %llu of at most %llu", l->name, l->def.agent,
		   loop_state(l), (unsigned long long)l->sum.iterations,
		   (unsigned long long)l->def.conf.max);
	if (l->sum.failed)
		buf_printf(out, ", %llu failed", (unsigned long long)l->sum.failed);
	buf_puts(out, ", ");
	text_duration(l->sum.time, out);
	if (tokens)
		buf_printf(out, ", %llu tokens", tokens);
	if (l->sum.cost) {
		buf_puts(out, ", $");
		loop_put_cost(l->sum.cost, out);
	}
	buf_putc(out, '\n');
	if (now) {
		buf_printf(out, "  iteration %llu runs since ", (unsigned long long)now->iteration);
		text_duration(((uint64_t)time(NULL) - now->started) * NS_PER_SEC, out);
		buf_putc(out, '\n');
	}
	if (t == NULL)
		return;
	buf_printf(out, "  tasks: %llu done, %llu open\n", (unsigned long long)t->done,
		   (unsigned long long)t->open);
	for (size_t i = 0, shown = 0; i < t->n && shown < 20; i++) {
		if (t->v[i].is_done)
			continue;
		buf_puts(out, "    [ ] ");
		buf_esc(out, t->v[i].text, strlen(t->v[i].text));
		buf_putc(out, '\n');
		shown++;
	}
}

enum {
	ROW_NAME,
	ROW_AGENT,
	ROW_STATE,
	ROW_ITERATIONS,
	ROW_MAX,
	ROW_FAILED,
	ROW_TIME,
	ROW_TOKENS,
	ROW_COST,
	ROW_OPEN,
	ROW_DONE,
	ROW_MODE,
	ROW_WORKSPACE,
	ROW_COUNT
};

static const struct column status_columns[ROW_COUNT] = {
	[ROW_NAME] = { "name", "Name", "SANDBOX", COLUMN_TEXT },
	[ROW_AGENT] = { "agent", "Agent", "AGENT", COLUMN_TEXT },
	[ROW_STATE] = { "state", "State", "STATE", COLUMN_TEXT },
	[ROW_ITERATIONS] = { "iterations", "Iterations", "ITERATIONS", COLUMN_NUMBER },
	[ROW_MAX] = { "max", "Max", "MAX", COLUMN_NUMBER },
	[ROW_FAILED] = { "failed", "Failed", "FAILED", COLUMN_NUMBER },
	[ROW_TIME] = { "time_ns", "Time", "TIME", COLUMN_NS },
	[ROW_TOKENS] = { "tokens", "Tokens", "TOKENS", COLUMN_NUMBER },
	[ROW_COST] = { "cost_usd", "Cost", "COST", COLUMN_TEXT },
	[ROW_OPEN] = { "open", "Open", "OPEN", COLUMN_NUMBER }, /* tasks */
	[ROW_DONE] = { "done", "Done", "DONE", COLUMN_NUMBER },
	[ROW_MODE] = { "mode", "Mode", NULL, COLUMN_TEXT },
	[ROW_WORKSPACE] = { "workspace", "Workspace", NULL, COLUMN_TEXT },
};

static void status_row(const struct loop *l, const struct tasks *t, struct table *to)
{
	struct cell *c = table_row(to);
	struct buf cost = BUF(64);

	loop_put_cost(l->sum.cost, &cost);
	c[ROW_NAME].text = mem_str(l->name);
	c[ROW_AGENT].text = mem_str(l->def.agent);
	c[ROW_STATE].text = mem_str(loop_state(l));
	c[ROW_ITERATIONS].num = l->sum.iterations;
	c[ROW_MAX].num = l->def.conf.max;
	c[ROW_FAILED].num = l->sum.failed;
	c[ROW_TIME].num = l->sum.time;
	c[ROW_TOKENS].num = l->sum.tokens_in + l->sum.tokens_out;
	c[ROW_COST].text = buf_take(&cost);
	c[ROW_OPEN] = (struct cell){ .num = t ? t->open : 0, .is_null = t == NULL };
	c[ROW_DONE] = (struct cell){ .num = t ? t->done : 0, .is_null = t == NULL };
	c[ROW_MODE].text = mem_str(l->def.mode);
	c[ROW_WORKSPACE].text = mem_str(l->def.workspace);
}

/* What was asked for, and what is found: rows for --quiet and --format, else text. */
struct status {
	struct table_how how;
	bool has_tasks, is_watched;
	bool is_list;   /* rows for people too */
	bool has_since; /* a summary of all that happened since then is asked for */
	uint64_t since;
	struct table rows;
	struct buf out;
};

static int status_one(struct loop *l, struct status *s, struct err *e)
{
	_cleanup_(loop_begin_done) struct loop_begin now = { 0 };
	_cleanup_(tasks_done) struct tasks t = { 0 };
	int r = loopdir_def(&l->dir, &l->def, e);
	bool is_now;

	if (r == 0)
		r = loopdir_sum(&l->dir, &l->sum, e);
	if (r < 0)
		return r;
	is_now = loopdir_is_locked(&l->dir) &&
		 loopdir_begin(&l->dir, l->sum.tries + 1, &now, e) == 0;
	*e = ERR_INIT;
	if (s->has_tasks)
		all_tasks(l, &t);
	if (s->is_list || table_is_asked(&s->how))
		status_row(l, s->has_tasks ? &t : NULL, &s->rows);
	else
		(s->how.as_json ? status_json : status_text)(l, s->has_tasks ? &t : NULL,
							     is_now ? &now : NULL, &s->out);
	return 0;
}

/* Those that have a loop, or the one that was named. */
static int status_all(const struct loop *base, const char *name, struct status *s, bool *ret_runs,
		      struct err *e)
{
	char *one[] = { (char *)(uintptr_t)name, NULL }, **names = NULL;
	int r = name ? 0 : def_list(base->host.state_dir, false, &names, e);
	size_t n = 0;

	*ret_runs = false;
	if (s->how.as_json)
		buf_putc(&s->out, '[');
	for (char **v = name ? one : names; r == 0 && *v; v++) {
		struct loop l = { .host = base->host, .name = *v, .dir = LOOPDIR_NONE };

		r = loopdir_open(base->host.state_dir, *v, &l.dir, e);
		if (r == -ENOENT && name == NULL) {
			*e = ERR_INIT;
			r = 0;
			continue;
		}
		if (r == 0 && s->how.as_json && n++)
			buf_putc(&s->out, ',');
		if (r == 0)
			r = status_one(&l, s, e);
		*ret_runs |= r == 0 && loopdir_is_locked(&l.dir);
		loop_def_done(&l.def);
		loopdir_close(&l.dir);
	}
	if (s->how.as_json)
		buf_puts(&s->out, "]\n");
	def_list_free(names);
	return r;
}

static int take_since(struct status *s, const char *text, struct err *e)
{
	s->has_since = true;
	return cli_since(text, &s->since, e);
}

/* Options up to a word that is none, which is the name; and behind it. */
static int status_parse(struct status *s, int argc, char **argv, const char **name, struct err *e)
{
	struct opts o;
	int id, r = 0;

	opts_init(&o, status_opts, argc, argv);
	for (;;) {
		id = r < 0 ? r : opts_next(&o, e);
		if (id < 0)
			return id;
		if (id == LOOP_OPT_WATCH)
			s->is_watched = true;
		else if (id == LOOP_OPT_TASKS)
			s->has_tasks = true;
		else if (id == LOOP_OPT_SINCE)
			r = take_since(s, o.value, e);
		else if (id > 0)
			(void)table_opt(&s->how, &o, id);
		else if (o.at >= argc)
			break;
		else if (*name)
			return err_set(e, ERR_USAGE, EINVAL, "status takes one name");
		else
			*name = argv[o.at++];
	}
	if (s->has_since &&
	    (*name || s->is_watched || s->has_tasks || s->is_list || table_is_asked(&s->how)))
		return err_set(e, ERR_USAGE, EINVAL,
			       "status --since is about everything that happened; it takes only "
			       "--json");
	return 0;
}

static int status_once(const struct loop *l, const char *name, struct status *s, bool *ret_runs,
		       struct err *e)
{
	int r;

	s->rows = (struct table){ .columns = status_columns, .n_columns = ROW_COUNT };
	s->out = BUF(OUT_MAX);
	r = status_all(l, name, s, ret_runs, e);
	if (r == 0 && s->is_watched && !s->how.as_json && isatty(1))
		(void)fputs("\033[H\033[2J", stdout);
	(void)fflush(stdout);
	if (r == 0)
		r = s->is_list || table_is_asked(&s->how) ? table_show(&s->rows, &s->how, e)
							  : cli_print(&s->out, e);
	table_done(&s->rows);
	buf_done(&s->out);
	return r;
}

static int show_status(struct status s, int argc, char **argv, struct err *e)
{
	struct loop l = { .host = { .ws_fd = FD_NONE }, .dir = LOOPDIR_NONE };
	const char *name = NULL;
	bool runs = false;
	int r = status_parse(&s, argc, argv, &name, e);

	if (r < 0)
		return r;
	r = host_init(&l.host, NULL, e);
	if (r == 0 && s.has_since) {
		r = program_find("vitrine", &l.program, e);
		if (r == 0)
			r = loop_since(&l, s.since, s.how.as_json, e);
		free(l.program);
		host_done(&l.host);
		return r;
	}
	while (r == 0) {
		r = status_once(&l, name, &s, &runs, e);
		if (r < 0 || !s.is_watched || !runs)
			break;
		(void)nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	host_done(&l.host);
	return r;
}

int cmd_status(int argc, char **argv, struct err *e)
{
	return show_status((struct status){ 0 }, argc, argv, e);
}

int cmd_loop_ls(int argc, char **argv, struct err *e)
{
	return show_status((struct status){ .is_list = true }, argc, argv, e);
}
