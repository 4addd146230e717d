/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_since.c - vitrine status --since: the page for the morning
 *
 * What ran and what was refused is in the events, what a loop did in its records, what waits in `vitrine ls`. Commits are
 * read from the log that git keeps in the repository itself (.git/logs/HEAD), never by running git on it: those that
 * were made while a session of the sandbox ran. That log, the agent's telemetry and what a loop's agent reported are the
 * word of whoever works inside; events and `ls` are not.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/night.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/waits.h"
#include "core/def.h"
#include "core/layers.h"
#include "loop/loop.h"

#define OUT_MAX (64 * MIB)
#define EVENTS_MAX (64 * MIB)
#define REFLOG_MAX (8 * MIB)
#define ENTRIES_MAX 5000
#define SHOWN_MAX 8

/* Where something ran: a sandbox, or all runs without a name in one directory. */
struct night_place {
	char *name, *workspace;
	bool is_named, has_loop;
	uint64_t sessions, failed, open;
	char *command; /* the last one */
	uint64_t (*spans)[2];
	size_t n_spans, cap_spans;
};

/* A line of a section: said so often. */
struct night_line {
	char *name, *text, *more;
	uint64_t count;
};

struct night_lines {
	struct night_line *v;
	size_t n, cap;
};

struct night {
	struct loop *l;
	uint64_t since; /* ns */
	struct night_place *places;
	size_t n_places, cap_places;
	struct night_lines ran, done, refused, waits;
	struct night_spent spent;
	bool has_spent, is_cut;
};

static void entries_done(struct night_lines *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].name);
		free(t->v[i].text);
		free(t->v[i].more);
	}
	free(t->v);
}

static void night_done(struct night *n)
{
	for (size_t i = 0; i < n->n_places; i++) {
		free(n->places[i].name);
		free(n->places[i].workspace);
		free(n->places[i].command);
		free(n->places[i].spans);
	}
	free(n->places);
	entries_done(&n->ran);
	entries_done(&n->done);
	entries_done(&n->refused);
	entries_done(&n->waits);
}

/* ---- gathering ---- */

static void add(struct night *n, struct night_lines *to, const char *name, const char *text,
		const char *more)
{
	for (size_t i = 0; i < to->n; i++)
		if (str_eq(to->v[i].name, name) && str_eq(to->v[i].text, text) &&
		    str_eq(to->v[i].more, more)) {
			to->v[i].count++;
			return;
		}
	if (to->n == ENTRIES_MAX) {
		n->is_cut = true;
		return;
	}
	vec_reserve(to->v, to->n, to->cap);
	to->v[to->n++] = (struct night_line){ mem_str(name), mem_str(text), mem_str(more), 1 };
}

static struct night_place *place_of(struct night *n, const char *name)
{
	for (size_t i = 0; i < n->n_places; i++)
		if (str_eq(n->places[i].name, name))
			return &n->places[i];
	vec_reserve(n->places, n->n_places, n->cap_places);
	n->places[n->n_places] = (struct night_place){ .name = mem_str(name) };
	return &n->places[n->n_places++];
}

static uint64_t time_of(const struct json *o, const char *key, uint64_t otherwise)
{
	const char *text = json_text(o, key, NULL);
	struct tm tm = { 0 };

	return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (uint64_t)timegm(&tm) : otherwise;
}

static void take_session(struct night *n, const struct json *v)
{
	const char *name = json_text(v, "sandbox", NULL), *command = json_text(v, "command", NULL),
		   *state = json_text(v, "state", NULL);
	const struct json *named = json_get(v, "named"), *status = json_get(v, "status");
	struct night_place *p;
	uint64_t code;

	if (name == NULL || state == NULL)
		return;
	p = place_of(n, name);
	p->is_named = named && named->type == JSON_BOOL && named->is_true;
	p->sessions++;
	if (str_eq(state, "open"))
		p->open++;
	else if (str_eq(state, "lost") || (status && json_u64(status, &code) && code != 0))
		p->failed++;
	if (p->command == NULL && command)
		p->command = mem_str(command); /* the newest comes first */
	vec_reserve(p->spans, p->n_spans, p->cap_spans);
	p->spans[p->n_spans][0] = time_of(v, "started", 0);
	p->spans[p->n_spans++][1] = time_of(v, "ended", UINT64_MAX - 1);
}

static void take_event(struct night *n, const struct json *v)
{
	_cleanup_(buf_done) struct buf what = BUF(4 * KIB);
	const char *type = json_text(v, "type", NULL), *name = json_text(v, "sandbox", NULL);
	struct night_spent s;

	if (type == NULL || name == NULL)
		return;
	if (str_eq(type, "sandbox.started")) {
		const char *workspace = json_text(json_get(v, "data"), "workspace", NULL);
		struct night_place *p = place_of(n, name);

		free(p->workspace);
		p->workspace = workspace ? mem_str(workspace) : NULL;
	} else if (night_refusal(v, &what)) {
		add(n, &n->refused, name, buf_cstr(&what), "");
	} else if (!place_of(n, name)->has_loop && night_spent(v, &s)) {
		/* A loop's records have it already. */
		n->has_spent = true;
		n->spent.cost += s.cost;
		n->spent.tokens_in += s.tokens_in;
		n->spent.tokens_out += s.tokens_out;
	}
}

/* One JSON object per line, as `vitrine events --json` prints them. */
static int each_line(struct night *n, char *const *argv,
		     void (*fn)(struct night *n, const struct json *v), struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(EVENTS_MAX), why = BUF(4 * KIB);
	int r = loop_tool(n->l,
			  &(struct tool){ .argv = argv,
					  .out = FD_NONE,
					  .err = FD_NONE,
					  .text = &text,
					  .errors = &why },
			  e);

	if (r < 0)
		return r;
	if (r > 0)
		return err_set(e, ERR_SYSTEM, EIO, "'vitrine %s' failed: %.300s", argv[0],
			       buf_cstr(&why));
	n->is_cut |= text.n > EVENTS_MAX - 64 * KIB;
	for (const char *p = buf_cstr(&text); *p;) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		struct err none = ERR_INIT;
		size_t len = strcspn(p, "\n");

		if (json_parse_foreign(p, len, &doc, &none) == 0 && doc.root->type == JSON_OBJECT)
			fn(n, doc.root);
		p += len + (p[len] == '\n');
	}
	return 0;
}

static int take_events(struct night *n, struct err *e)
{
	char at[64] = "";
	time_t then = (time_t)(n->since / NS_PER_SEC);
	struct tm tm;
	char verb[] = "events", sessions[] = "--sessions", json[] = "--json", since[] = "--since",
	     type[] = "--type", started[] = "sandbox.started", net[] = "net.verdict",
	     wall[] = "wall.refused", guard[] = "guard.decision", file[] = "file.quarantined",
	     broker[] = "broker.ran", limit[] = "limit.hit", otel[] = "otel";
	char *of_sessions[] = { verb, sessions, json, since, at, NULL };
	char *of_events[] = { verb, json,   since, at,    type,  started, type,
			      net,  type,   wall,  type,  guard, type,    file,
			      type, broker, type,  limit, type,  otel,    NULL };
	int r;

	if (gmtime_r(&then, &tm))
		(void)strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	r = each_line(n, of_sessions, take_session, e);
	return r < 0 ? r : each_line(n, of_events, take_event, e);
}

/* ---- loops ---- */

struct tally {
	struct night *n;
	struct loop_sum sum;
	char **files;
	size_t n_files, cap_files;
};

static void add_file(struct tally *t, const char *name)
{
	for (size_t i = 0; i < t->n_files; i++)
		if (str_eq(t->files[i], name))
			return;
	vec_reserve(t->files, t->n_files, t->cap_files);
	t->files[t->n_files++] = mem_str(name);
}

static int tally_records(struct tally *t, const struct loop *l, struct err *e)
{
	for (uint64_t number = 1;; number++) {
		_cleanup_(loop_record_done) struct loop_record rec = { 0 };
		int r = loopdir_record(&l->dir, number, &rec, e);

		if (r < 0)
			return r == -ENOENT ? 0 : r;
		if (rec.started * NS_PER_SEC + rec.result.duration < t->n->since)
			continue;
		loop_fold(&t->sum, &rec.result);
		t->n->has_spent |= rec.has_cost || rec.has_tokens;
		for (char **f = rec.files; f && *f; f++)
			if (!str_starts(*f, ".git/"))
				add_file(t, *f);
	}
}

static void put_files(const struct tally *t, struct buf *out)
{
	buf_printf(out, "%zu file%s changed", t->n_files, t->n_files == 1 ? "" : "s");
	for (size_t i = 0; i < t->n_files && i < SHOWN_MAX; i++)
		buf_printf(out, "%s%s", i ? ", " : ": ", t->files[i]);
	if (t->n_files > SHOWN_MAX)
		buf_printf(out, " and %zu more", t->n_files - SHOWN_MAX);
}

static void put_loop(const struct tally *t, const struct loop *l, struct buf *out)
{
	buf_printf(out, "loop of %s (%s): %llu iteration%s", l->def.agent, loop_state(l),
		   (unsigned long long)t->sum.iterations, t->sum.iterations == 1 ? "" : "s");
	if (t->sum.failed)
		buf_printf(out, ", %llu failed", (unsigned long long)t->sum.failed);
	buf_puts(out, ", ");
	text_duration(t->sum.time, out);
}

static int take_loop(struct night *n, struct loop *l, bool is_newest, struct err *e)
{
	_cleanup_(buf_done) struct buf ran = BUF(64 * KIB), files = BUF(MIB);
	struct tally t = { .n = n };
	int r = loopdir_def(&l->dir, &l->def, e);

	if (r == 0)
		r = tally_records(&t, l, e);
	if (r == 0 && (t.sum.tries > 0 || loopdir_is_locked(&l->dir))) {
		place_of(n, l->name)->has_loop = true;
		put_loop(&t, l, &ran);
		add(n, &n->ran, l->name, buf_cstr(&ran), "");
		put_files(&t, &files);
		if (t.n_files)
			add(n, &n->done, l->name, buf_cstr(&files), "");
		n->spent.cost += t.sum.cost;
		n->spent.tokens_in += t.sum.tokens_in;
		n->spent.tokens_out += t.sum.tokens_out;
	}
	if (r == 0 && is_newest && loopdir_is_interrupted(&l->dir)) {
		_free_ char *how = mem_fmt("vitrine loop --resume %s", l->name);

		add(n, &n->waits, l->name, "an interrupted loop", how);
	}
	for (size_t i = 0; i < t.n_files; i++)
		free(t.files[i]);
	free(t.files);
	return r;
}

static void take_loops(struct night *n, char *const *names)
{
	for (; *names; names++) {
		struct loop newest = { .host = n->l->host, .name = *names, .dir = LOOPDIR_NONE };
		struct err none = ERR_INIT;

		if (loopdir_open(n->l->host.state_dir, *names, &newest.dir, &none) < 0)
			continue;
		for (uint64_t i = 1; i <= newest.dir.number; i++) {
			struct loop one = { .host = n->l->host,
					    .name = *names,
					    .dir = LOOPDIR_NONE };

			/* One that was never begun, or is damaged, has nothing to say. */
			none = ERR_INIT;
			if (loopdir_open_old(n->l->host.state_dir, *names, i, &one.dir, &none) == 0)
				(void)take_loop(n, &one, i == newest.dir.number, &none);
			loop_def_done(&one.def);
			loopdir_close(&one.dir);
		}
		loopdir_close(&newest.dir);
	}
}

/* ---- commits ---- */

static bool was_running(const struct night_place *p, uint64_t at)
{
	for (size_t i = 0; i < p->n_spans; i++)
		if (at >= p->spans[i][0] && at <= p->spans[i][1] + 1)
			return true;
	return false;
}

/* Once: the log of a sandbox begins with the host's, and several may have run in one directory. */
static void add_commit(struct night *n, const char *name, const char *text)
{
	for (size_t i = 0; i < n->done.n; i++)
		if (str_eq(n->done.v[i].text, text))
			return;
	add(n, &n->done, name, text, "");
}

static void take_reflog(struct night *n, const struct night_place *p, const char *name, int fd)
{
	_cleanup_(buf_done) struct buf text = BUF(REFLOG_MAX);
	struct err none = ERR_INIT;
	struct stat st;

	/* What is longer keeps its end. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_size > (off_t)(REFLOG_MAX / 2) &&
	     lseek(fd, st.st_size - (off_t)(REFLOG_MAX / 2), SEEK_SET) < 0) ||
	    io_read_fd(fd, &text, &none) < 0)
		return;
	for (size_t at = 0; at < text.n;) {
		const char *line = text.p + at, *end = memchr(line, '\n', text.n - at);
		size_t len = end ? (size_t)(end - line) : text.n - at;
		struct night_commit c;

		if (night_commit(line, len, &c) && c.time * NS_PER_SEC >= n->since &&
		    was_running(p, c.time)) {
			_cleanup_(buf_done) struct buf b = BUF(4 * KIB);

			buf_printf(&b, "commit %s ", c.id);
			buf_esc(&b, c.subject, c.n < 100 ? c.n : 100);
			add_commit(n, name, buf_cstr(&b));
		}
		at += len + 1;
	}
}

/* In the layers of the sandbox alone; below them is the host's repository, which take_host_commits() has read. */
static void take_layer_commits(struct night *n, const struct night_place *p)
{
	/* A clone has nothing below its layers. */
	char clone[] = "clone";
	struct loop l = { .host = n->l->host, .name = p->name, .def.mode = clone };
	struct layers layers = { 0 };
	struct err none = ERR_INIT;
	char **paths = NULL;
	int fd;

	if (!p->is_named || layers_read(n->l->host.state_dir, p->name, &layers, &none) < 0)
		return;
	paths = layers_paths(&layers, &layers.ws);
	fd = paths ? loop_open_inside(&l, paths, ".git/logs/HEAD") : -ENOENT;
	if (fd >= 0)
		take_reflog(n, p, p->name, fd);
	fd_close(fd);
	layers_paths_free(paths);
	layers_done(&layers);
}

static char *directory_name(const struct night_place *p)
{
	return mem_fmt("in %s", p->workspace ? p->workspace : "?");
}

static void take_host_commits(struct night *n, const struct night_place *p)
{
	char direct[] = "direct";
	struct loop l = { .host = n->l->host,
			  .name = p->name,
			  .def = { .mode = direct, .workspace = p->workspace } };
	_free_ char *name = directory_name(p);
	int fd = p->workspace ? loop_open_inside(&l, NULL, ".git/logs/HEAD") : -ENOENT;

	if (fd >= 0)
		take_reflog(n, p, name, fd);
	fd_close(fd);
}

static void put_place(const struct night_place *p, struct buf *out)
{
	if (p->is_named)
		buf_printf(out, "%llu session%s", (unsigned long long)p->sessions,
			   p->sessions == 1 ? "" : "s");
	else
		buf_puts(out, "a run");
	if (p->failed && p->is_named)
		buf_printf(out, ", %llu failed", (unsigned long long)p->failed);
	else if (p->failed)
		buf_puts(out, " that failed");
	if (p->open)
		buf_puts(out, ", still running");
	buf_printf(out, ": %s", p->command ? p->command : "?");
}

static void take_places(struct night *n)
{
	for (size_t i = 0; i < n->n_places; i++)
		take_host_commits(n, &n->places[i]);
	for (size_t i = 0; i < n->n_places; i++) {
		const struct night_place *p = &n->places[i];
		_free_ char *name = p->is_named ? mem_str(p->name) : directory_name(p);
		_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

		take_layer_commits(n, p);
		if (p->sessions == 0 || p->has_loop)
			continue;
		put_place(p, &b);
		add(n, &n->ran, name, buf_cstr(&b), "");
	}
}

/* ---- what waits ---- */

/* `ls` and `broker` print one array. */
static void each_row(struct night *n, char *const *argv,
		     void (*fn)(struct night *n, const struct json *v))
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_FOREIGN_MAX_BYTES - KIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	struct tool t = { .argv = argv, .out = FD_NONE, .err = FD_NONE, .text = &text };

	if (loop_tool(n->l, &t, &e) != 0 ||
	    json_parse_foreign(buf_cstr(&text), text.n, &doc, &e) < 0 ||
	    doc.root->type != JSON_ARRAY) {
		_free_ char *what =
			mem_fmt("'vitrine %s' failed, so waiting work is not shown", argv[0]);
		_free_ char *how = mem_fmt("vitrine %s", argv[0]);

		add(n, &n->waits, "", what, how);
		return;
	}
	for (const struct json *v = doc.root->first; v; v = v->next)
		fn(n, v);
}

static void take_waiting(struct night *n, const struct json *v)
{
	const char *name = json_text(v, "name", NULL), *waits = json_text(v, "waits", NULL);
	_free_ char *how = NULL;

	if (name == NULL || waits == NULL || waits[0] == '\0')
		return;
	how = str_starts(waits, WAITS_UNKNOWN) ? mem_fmt("vitrine inspect %s", name)
	      : str_starts(waits, WAITS_COMMITS)
		      ? mem_fmt("vitrine fetch %s", name)
		      : mem_fmt("vitrine diff %s; vitrine apply %s", name, name);
	add(n, &n->waits, name, waits, how);
}

static void take_question(struct night *n, const struct json *v)
{
	const char *name = json_text(v, "sandbox", NULL), *id = json_text(v, "id", NULL),
		   *title = json_text(v, "title", NULL);
	_free_ char *how = name && id ? mem_fmt("vitrine broker show %s %s", name, id) : NULL;
	_free_ char *what = mem_fmt("the question '%s'", title ? title : "?");

	if (how)
		add(n, &n->waits, name, what, how);
}

static void take_waits(struct night *n)
{
	char ls[] = "ls", json[] = "--json", broker[] = "broker";
	char *of_ls[] = { ls, json, NULL }, *of_broker[] = { broker, ls, json, NULL };

	each_row(n, of_ls, take_waiting);
	each_row(n, of_broker, take_question);
}

/* ---- telling ---- */

static void put_section(const char *title, const char *none, const struct night_lines *t,
			struct buf *out)
{
	size_t width = 0;

	for (size_t i = 0; i < t->n; i++)
		if (strlen(t->v[i].name) > width)
			width = strlen(t->v[i].name);
	buf_printf(out, "%s\n", title);
	if (t->n == 0)
		buf_printf(out, "  %s\n", none);
	for (size_t i = 0; i < t->n; i++) {
		const struct night_line *en = &t->v[i];
		bool is_same = i > 0 && str_eq(t->v[i - 1].name, en->name);

		buf_puts(out, "  ");
		buf_esc(out, is_same ? "" : en->name, is_same ? 0 : strlen(en->name));
		buf_printf(out, "%*s  ", (int)(width - (is_same ? 0 : strlen(en->name))), "");
		buf_esc(out, en->text, strlen(en->text));
		if (en->count > 1)
			buf_printf(out, " (%llu times)", (unsigned long long)en->count);
		if (en->more[0])
			buf_printf(out, ": %s", en->more);
		buf_putc(out, '\n');
	}
	buf_putc(out, '\n');
}

static void put_text(const struct night *n, struct buf *out)
{
	char at[64] = "", utc[64] = "";
	time_t then = (time_t)(n->since / NS_PER_SEC);
	struct tm tm;

	if (localtime_r(&then, &tm))
		(void)strftime(at, sizeof(at), "%Y-%m-%d %H:%M", &tm);
	if (gmtime_r(&then, &tm))
		(void)strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(out, "Since %s\n\n", at);
	put_section("What ran", "nothing", &n->ran, out);
	put_section("What was done", "no commits, and no files changed by loops", &n->done, out);
	put_section("What was refused", "nothing", &n->refused, out);
	put_section("What waits for you", "nothing", &n->waits, out);
	buf_puts(out, "What it cost\n  ");
	if (n->has_spent) {
		buf_putc(out, '$');
		loop_put_cost(n->spent.cost, out);
		buf_printf(out, ", %llu tokens in, %llu out, as far as the agents say\n",
			   (unsigned long long)n->spent.tokens_in,
			   (unsigned long long)n->spent.tokens_out);
	} else {
		buf_puts(out, "no agent said what it spent\n");
	}
	if (n->is_cut)
		buf_printf(out,
			   "\nThis page is incomplete (too many events). 'vitrine events --since "
			   "%s' lists all of them\n",
			   utc);
}

static void put_entries(const char *key, const char *text, const char *more,
			const struct night_lines *t, struct buf *out)
{
	buf_printf(out, ",\n\"%s\":[", key);
	for (size_t i = 0; i < t->n; i++) {
		buf_puts(out, i ? ",\n {\"name\":" : "\n {\"name\":");
		buf_json(out, t->v[i].name);
		buf_printf(out, ",\"%s\":", text);
		buf_json(out, t->v[i].text);
		if (more) {
			buf_printf(out, ",\"%s\":", more);
			buf_json(out, t->v[i].more);
		}
		buf_printf(out, ",\"count\":%llu}", (unsigned long long)t->v[i].count);
	}
	buf_putc(out, ']');
}

static void put_json(const struct night *n, struct buf *out)
{
	buf_printf(out, "{\"since\":%llu", (unsigned long long)(n->since / NS_PER_SEC));
	put_entries("ran", "what", NULL, &n->ran, out);
	put_entries("done", "what", NULL, &n->done, out);
	put_entries("refused", "what", NULL, &n->refused, out);
	put_entries("waits", "what", "command", &n->waits, out);
	buf_printf(out,
		   ",\n\"cost\":{\"known\":%s,\"usd\":%llu.%06llu,\"tokens_in\":%llu,\"tokens_"
		   "out\":%llu},"
		   "\"complete\":%s}\n",
		   n->has_spent ? "true" : "false", (unsigned long long)(n->spent.cost / 1000000),
		   (unsigned long long)(n->spent.cost % 1000000),
		   (unsigned long long)n->spent.tokens_in, (unsigned long long)n->spent.tokens_out,
		   n->is_cut ? "false" : "true");
}

int loop_since(struct loop *l, uint64_t since_ns, bool as_json, struct err *e)
{
	_cleanup_(night_done) struct night n = { .l = l, .since = since_ns };
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	char **names = NULL;
	int r = def_list(l->host.state_dir, false, &names, e);

	if (r == 0)
		take_loops(&n, names);
	def_list_free(names);
	if (r == 0)
		r = take_events(&n, e);
	if (r < 0)
		return r;
	take_places(&n);
	take_waits(&n);
	(as_json ? put_json : put_text)(&n, &out);
	return cli_print(&out, e);
}
