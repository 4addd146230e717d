/* SPDX-License-Identifier: Apache-2.0 */
/* cli/demo.c - the verb `demo`: watch a scripted agent work, misbehave and be stopped
 *
 * One row for each thing the agent does. A row is judged from outside wherever something can be seen there: a secret
 * in the agent's output, a call at our listener, a file on the host. The agent's own word counts only where there is
 * no other witness, and --json says which it was. A row the agent never came to is a failure, so an agent that dies
 * early proves nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/demo.h"

extern const struct opt json_opts[];

#define SAW_WIDTH 44 /* in the table; --json has all of it */

/* What the agent says of a row. */
enum word { WORD_NONE, WORD_DID, WORD_FAILED, WORD_CANNOT, WORD_COUNT_ };

enum result {
	RESULT_WORKED,
	RESULT_FAILED,
	RESULT_STOPPED,
	RESULT_OUT,
	RESULT_SKIPPED,
	RESULT_COUNT_
};

struct row {
	const char *id;
	const char *what;
	const char *wall;    /* NULL: it is work, and shall succeed */
	const char *instead; /* why it came to nothing, if the agent believes it did it */
	bool (*has_happened)(const struct stage *s); /* NULL: nobody outside can tell */
	const char *path;                            /* what quarantine should hold */
};

struct verdict {
	enum result result;
	char saw[96];
};

static const struct {
	const char *name, *sign, *colour;
	bool is_good;
} looks[RESULT_COUNT_] = {
	[RESULT_WORKED] = { "worked", "\xe2\x9c\x93", "\033[32m", true },
	[RESULT_FAILED] = { "failed", "\xe2\x9c\x97", "\033[31m", false },
	[RESULT_STOPPED] = { "stopped", "\xe2\x9c\x93", "\033[32m", true },
	[RESULT_OUT] = { "got out", "\xe2\x9c\x97", "\033[31m", false },
	[RESULT_SKIPPED] = { "not tried", "\xe2\x80\x93", "\033[33m", true },
};

/* ---- witnesses ---- */

static bool is_seen(const struct stage *s, enum secret_id id)
{
	return s->out.n > 0 && memmem(s->out.p, s->out.n, s->secret[id], SECRET_TEXT - 1) != NULL;
}

static bool exists(const char *dir, const char *name)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_text(const char *dir, const char *name, const char *text)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err ignored;

	return io_read_file(path, &b, &ignored) == 0 && str_eq(buf_cstr(&b), text);
}

static bool saw_task(const struct stage *s)
{
	return is_seen(s, SECRET_TASK);
}

static bool saw_sum(const struct stage *s)
{
	_free_ char *text = mem_fmt("%llu\n", (unsigned long long)s->sum);

	return is_text(s->project, "sum.txt", text);
}

static bool saw_commit(const struct stage *s)
{
	return s->is_committed;
}

static bool saw_beside(const struct stage *s)
{
	return is_seen(s, SECRET_BESIDE);
}

static bool saw_neighbour(const struct stage *s)
{
	return is_seen(s, SECRET_NEIGHBOUR);
}

static bool saw_overwritten(const struct stage *s)
{
	return !is_text(s->outside, "neighbour/plan.txt", s->secret[SECRET_NEIGHBOUR]);
}

static bool saw_dotenv(const struct stage *s)
{
	return is_seen(s, SECRET_DOTENV);
}

static bool saw_environment(const struct stage *s)
{
	return is_seen(s, SECRET_ENVIRONMENT);
}

static bool saw_in_tmp(const struct stage *s)
{
	return exists("/tmp", s->name);
}

static bool saw_in_usr(const struct stage *s)
{
	return exists("/usr/bin", s->name);
}

static bool saw_hook(const struct stage *s)
{
	return exists(s->project, ".git/hooks/pre-commit");
}

static bool saw_config(const struct stage *s)
{
	return s->has_git && !s->is_config_same;
}

static bool saw_settings(const struct stage *s)
{
	return exists(s->project, ".vscode/tasks.json");
}

static bool saw_policy(const struct stage *s)
{
	return exists(s->project, ".vitrine.jsonc");
}

static bool saw_call(const struct stage *s)
{
	return s->was_called;
}

static bool saw_local_call(const struct stage *s)
{
	return s->was_called_local;
}

static bool saw_dead(const struct stage *s)
{
	return !s->is_victim_alive;
}

static bool saw_device(const struct stage *s)
{
	return exists(s->project, "disk");
}

static bool saw_left(const struct stage *s)
{
	return !s->has_end;
}

/* Each process that started left a file. */
static bool saw_many(const struct stage *s)
{
	_free_ char *path = mem_fmt("%s/forks", s->project);
	DIR *d = opendir(path);
	size_t n = 0;

	while (d && readdir(d) != NULL)
		n++;
	if (d)
		(void)closedir(d);
	return n > DEMO_PIDS + 2; /* "." and ".." */
}

static const struct row rows[] = {
	{ "task", "read the project's task", NULL, NULL, saw_task },
	{ "program", "write a program, build it, run it", NULL, NULL, saw_sum },
	{ "commit", "commit the result with git", NULL, NULL, saw_commit },
	{ "scratch", "use /tmp and its home for scratch files", NULL, NULL, NULL },
	{ "keys", "look into ~/.ssh, ~/.aws and the like", "file view", NULL, NULL },
	{ "beside", "read a file outside the project", "file view", NULL, saw_beside },
	{ "neighbour", "read another project's file", "file view", NULL, saw_neighbour },
	{ "link", "the same through a symbolic link", "file view", NULL, saw_neighbour },
	{ "overwrite", "overwrite another project's file", "file view", NULL, saw_overwritten },
	{ "dotenv", "read the project's .env", "hidden file", NULL, saw_dotenv },
	{ "environment", "read an API key from your environment", "environment allowlist", NULL,
	  saw_environment },
	{ "tmp", "leave a file in the host's /tmp", "private /tmp", "it lay in its own",
	  saw_in_tmp },
	{ "system", "put a program into /usr/bin", "read-only system", NULL, saw_in_usr },
	{ "hook", "plant a git hook", "protected file", NULL, saw_hook },
	{ "config", "make git run a program (.git/config)", "protected file", NULL, saw_config },
	{ "settings", "plant editor tasks (.vscode)", "quarantine", NULL, saw_settings,
	  ".vscode/tasks.json" },
	{ "policy", "loosen its own policy (.vitrine.jsonc)", "quarantine", NULL, saw_policy,
	  ".vitrine.jsonc" },
	{ "connect", "connect to a server on this machine", "network namespace", NULL, saw_call },
	{ "socket", "talk to a service by Unix socket", "network namespace", NULL, saw_local_call },
	{ "route", "find a way to the internet", "network namespace", NULL, NULL },
	{ "kill", "kill a process of yours", "process namespace", NULL, saw_dead },
	{ "device", "make a device node for the disk", "no capabilities", NULL, saw_device },
	{ "mount", "mount a file system", "no capabilities", NULL, NULL },
	{ "userns", "become root in a namespace of its own", "system call filter", NULL, NULL },
	{ "kernel", "read the kernel's log", "system call filter", NULL, NULL },
	{ "fill", "fill the disk from /tmp", "disk limit", NULL, NULL },
	{ "stay", "leave a process behind", "process namespace", "it ended with the sandbox",
	  saw_left },
	{ "forks", "start 300 processes at once", "process limit", NULL, saw_many },
};

/* ---- verdicts ---- */

/* The agent's line "@ID<tab>WORD<tab>TEXT". */
static enum word agent_word(const struct stage *s, const char *id, char *saw, size_t size)
{
	static const char *const words[WORD_COUNT_] = { "", "did", "failed", "cannot" };
	_free_ char *want = mem_fmt("\n@%s\t", id);
	const char *p = strstr(buf_cstr(&s->out), want);
	const char *text;

	if (p == NULL)
		return WORD_NONE;
	p += strlen(want);
	text = p + strcspn(p, "\t\n");
	if (*text == '\t')
		(void)snprintf(saw, size, "%.*s", (int)strcspn(text + 1, "\n"), text + 1);
	for (enum word w = WORD_DID; w < WORD_COUNT_; w++)
		if (strncmp(p, words[w], (size_t)(text - p)) == 0 && words[w][text - p] == '\0')
			return w;
	return WORD_NONE;
}

static bool has_keys(const struct stage *s)
{
	for (size_t i = 0; demo_keys[i]; i++)
		if (exists(s->host.home, demo_keys[i]))
			return true;
	return false;
}

/* The last line the run wrote to standard error, without its end. */
static const char *run_json(const struct stage *s)
{
	const char *p = buf_cstr(&s->err), *end = strrchr(p, '\n');

	while (end && end > p && end[-1] != '\n')
		end--;
	return end ? end : p;
}

static bool is_quarantined(const struct stage *s, const char *path)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const char *text = run_json(s);
	const struct json *list, *name;
	struct err ignored;

	if (json_parse(text, strlen(text), &doc, &ignored) < 0)
		return false;
	list = json_get(doc.root, "quarantined");
	for (list = list ? list->first : NULL; list; list = list->next) {
		name = json_get(list, "path");
		if (name && name->type == JSON_STRING && str_starts(path, name->text))
			return true;
	}
	return false;
}

/* What is said of something that did not happen. */
static void say_stopped(const struct stage *s, const struct row *row, enum word word,
			struct verdict *v)
{
	if (row->path && is_quarantined(s, row->path))
		(void)snprintf(v->saw, sizeof(v->saw), "taken away as it appeared");
	else if (word == WORD_DID)
		(void)snprintf(v->saw, sizeof(v->saw), "%s",
			       row->instead ? row->instead : "it only thinks it did");
	if (str_eq(row->id, "keys") && !has_keys(s)) {
		v->result = RESULT_SKIPPED;
		(void)snprintf(v->saw, sizeof(v->saw), "you have none of them");
	}
}

static struct verdict judge(const struct stage *s, const struct row *row)
{
	struct verdict v = { .saw = "" };
	enum word word = agent_word(s, row->id, v.saw, sizeof(v.saw));
	bool has_happened = row->has_happened ? row->has_happened(s) : word == WORD_DID;

	if (row->wall == NULL)
		v.result = has_happened ? RESULT_WORKED : RESULT_FAILED;
	else
		v.result = has_happened ? RESULT_OUT : RESULT_STOPPED;
	if (word == WORD_CANNOT && (!has_happened || row->wall == NULL))
		v.result = RESULT_SKIPPED;
	else if (v.result == RESULT_STOPPED)
		say_stopped(s, row, word, &v);
	if (word == WORD_NONE) {
		v.result = has_happened && row->wall ? RESULT_OUT : RESULT_FAILED;
		(void)snprintf(v.saw, sizeof(v.saw), "the agent never came to it");
	}
	return v;
}

/* ---- telling ---- */

struct tally {
	size_t n[RESULT_COUNT_];
	uint64_t ns;
};

static bool is_fine(const struct tally *t)
{
	return t->n[RESULT_FAILED] == 0 && t->n[RESULT_OUT] == 0;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && isatty(STDOUT_FILENO) && term && !str_eq(term, "dumb");
}

static void put_row(const struct row *row, const struct verdict *v, bool has_colour,
		    struct buf *out)
{
	buf_printf(out, "%s%s %-9s%s  %-40s", has_colour ? looks[v->result].colour : "",
		   looks[v->result].sign, looks[v->result].name, has_colour ? "\033[0m" : "",
		   row->what);
	if (row->wall)
		buf_printf(out, "  %-22s", row->wall);
	else if (v->saw[0])
		buf_printf(out, "  %-22s", "");
	buf_esc(out, v->saw, strnlen(v->saw, SAW_WIDTH));
	while (out->n > 0 && out->p[out->n - 1] == ' ')
		out->p[--out->n] = '\0';
	buf_putc(out, '\n');
}

static void put_table(const struct verdict *v, const struct tally *t, struct buf *out)
{
	bool has_colour = wants_colour();

	buf_printf(out, "  %-9s  %-40s  %-22s%s\n", "result", "what the agent did", "stopped by",
		   "what it saw");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (i > 0 && rows[i].wall && !rows[i - 1].wall)
			buf_putc(out, '\n');
		put_row(&rows[i], &v[i], has_colour, out);
	}
	buf_printf(out, "\n%zu things worked, %zu were stopped, %zu got out", t->n[RESULT_WORKED],
		   t->n[RESULT_STOPPED], t->n[RESULT_OUT]);
	if (t->n[RESULT_FAILED])
		buf_printf(out, ", %zu FAILED", t->n[RESULT_FAILED]);
	if (t->n[RESULT_SKIPPED])
		buf_printf(out, ", %zu not tried", t->n[RESULT_SKIPPED]);
	buf_printf(out, " (%llu.%llu s)\n", (unsigned long long)(t->ns / NS_PER_SEC),
		   (unsigned long long)(t->ns / (NS_PER_SEC / 10) % 10));
}

static void put_json(const struct verdict *v, const struct tally *t, struct buf *out)
{
	buf_printf(out,
		   "{\"ok\":%s,\"worked\":%zu,\"stopped\":%zu,\"got_out\":%zu,\"failed\":%zu,\"not_"
		   "tried\":%zu,",
		   is_fine(t) ? "true" : "false", t->n[RESULT_WORKED], t->n[RESULT_STOPPED],
		   t->n[RESULT_OUT], t->n[RESULT_FAILED], t->n[RESULT_SKIPPED]);
	buf_printf(out, "\"milliseconds\":%llu,\"rows\":[",
		   (unsigned long long)(t->ns / NS_PER_MS));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];

		buf_printf(out, "%s\n{\"id\":\"%s\",\"what\":", i ? "," : "", row->id);
		buf_json(out, row->what);
		buf_printf(out, ",\"expected\":\"%s\",\"result\":\"%s\",\"wall\":",
			   row->wall ? "stopped" : "worked", looks[v[i].result].name);
		buf_json(out, row->wall ? row->wall : "");
		buf_printf(out, ",\"judged_by\":\"%s\",\"saw\":",
			   row->has_happened ? "outside" : "agent");
		buf_json(out, v[i].saw);
		buf_putc(out, '}');
	}
	buf_puts(out, "\n]}\n");
}

/* ---- the verb ---- */

/* The last line of the run is its JSON; a run that never began may have only a complaint. */
static int check_run(const struct stage *s, struct err *e)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const char *text = run_json(s);
	const struct json *message;
	struct err ignored;

	if (s->out.n > 0)
		return 0;
	if (json_parse(text, strlen(text), &doc, &ignored) == 0) {
		message = json_get(doc.root, "message");
		text = message && message->type == JSON_STRING ? message->text : text;
	} else if (str_starts(text, "vitrine: ")) {
		text += 9;
	}
	return err_set(e, ERR_SYSTEM, EIO, "the sandbox did not start: %.300s", text);
}

static int play(struct stage *s, bool as_json, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct verdict v[ARRAY_LEN(rows)];
	struct tally t = { 0 };
	uint64_t start = clock_now();
	int r = stage_open(s, e);

	if (r == 0)
		r = stage_run(s, e);
	if (r < 0)
		return r;
	if (s->signo)
		return 128 + s->signo;
	r = check_run(s, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		v[i] = judge(s, &rows[i]);
		t.n[v[i].result]++;
	}
	t.ns = clock_now() - start;
	if (as_json)
		put_json(v, &t, &out);
	else
		put_table(v, &t, &out);
	r = cli_print(&out, e);
	return r < 0 ? r : !is_fine(&t);
}

int cmd_demo(int argc, char **argv, struct err *e)
{
	struct stage s;
	struct opts o;
	bool as_json = false;
	int r;

	opts_init(&o, json_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0)
		as_json = true;
	if (r == 0 && o.at < argc)
		r = err_set(e, ERR_USAGE, EINVAL, "demo takes no arguments");
	if (r < 0)
		return r;
	r = play(&s, as_json, e);
	stage_close(&s);
	return r;
}
