/* SPDX-License-Identifier: Apache-2.0 */
/* history/events.c - the verbs `events` and `ingest`, which vitrine-store carries out
 *
 * `events` first takes up what lies in journals, so that verify and listings see all of it; when that fails (a full
 * disk) it says so and shows what is there: the journals are read all the same.
 */
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "base/io.h"
#include "base/num.h"
#include "base/path.h"
#include "cli/store_opts.h"
#include "core/facts.h"
#include "core/settings.h"
#include "history/events_guard.h"
#include "history/events_sessions.h"
#include "store/store.h"

#define OUT_BYTES ((size_t)64 * KIB)

struct events {
	struct store_filter filter;
	uint16_t types[128];
	enum { AS_LINES, AS_JSON, AS_IDS, AS_FORMAT } as;
	const char *format;
	bool is_verify, is_quiet, is_guard, is_sessions;
	char *state_dir;
	struct store_bounds bounds;
	struct buf out;
	struct err *e;
};

/* ---- where and for how long ---- */

static int load_bounds(const char *config_dir, struct store_bounds *ret, struct err *e)
{
	_cleanup_(policy_done) struct policy p = { 0 };
	struct settings_in in = { .config_dir = config_dir };
	const struct limit *age = &p.limits[LIMIT_EVENTS_AGE], *size = &p.limits[LIMIT_EVENTS_SIZE];
	int r;

	policy_init(&p);
	r = settings_load(&p, &in, e);
	if (r < 0)
		return r;
	*ret = (struct store_bounds){ .max_age_ns = age->is_set ? age->max : 0,
				      .max_bytes = size->is_set ? size->max : 0 };
	return 0;
}

/* SQLite refuses links on the way to a file; the user's own are resolved first. */
static int find_state(const char *given, char **ret, struct store_bounds *bounds, struct err *e)
{
	_cleanup_(host_done) struct host host = { .ws_fd = FD_NONE };
	const char *dir;
	char *real;
	int r = host_init(&host, NULL, e);

	if (r == 0)
		r = load_bounds(host.config_dir, bounds, e);
	if (r < 0)
		return r;
	dir = given ? given : host.state_dir;
	real = realpath(dir, NULL);
	*ret = real ? real : mem_str(dir);
	return 0;
}

/* ---- reading the options ---- */

static int bad(struct err *e, const char *what, const char *value, const char *hint)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	buf_esc(&b, value, strnlen(value, 64));
	return err_set(e, ERR_USAGE, EINVAL, "%s '%s' %s", what, buf_cstr(&b), hint);
}

/* A type's name, or the word before the dot for all that begin so. */
static int add_type(struct events *v, const char *text, struct err *e)
{
	const char *names[128] = { NULL }, *near;
	size_t before = v->filter.n_types, n = 0;

	for (size_t i = 0; i < event_types_n; i++) {
		const struct event_type_def *d = &event_types[i];
		size_t len = strlen(text);
		bool is_in = strncmp(d->name, text, len) == 0 &&
			     (d->name[len] == '\0' || d->name[len] == '.');

		if (d->flags & EVENT_INTERNAL)
			continue;
		names[n++] = d->name;
		if (is_in && v->filter.n_types < ARRAY_LEN(v->types))
			v->types[v->filter.n_types++] = d->type;
	}
	if (v->filter.n_types > before)
		return 0;
	near = cli_nearest(text, names);
	if (near) {
		_free_ char *hint = mem_fmt("is not known; did you mean '%s'?", near);

		return bad(e, "--type", text, hint);
	}
	return bad(e, "--type", text, "is not known; docs/EVENTS.md lists them");
}

/* --format is made of pieces: text, or a field as in the other listings: {{.Type}}. Upper or lower case. */
static const char *const head_words[] = { "time", "type", "sandbox", "session", "run", "number" };

static bool same_word(const char *name, const char *p, size_t n)
{
	return strlen(name) == n && strncasecmp(name, p, n) == 0;
}

static bool is_word(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(head_words); i++)
		if (same_word(head_words[i], p, n))
			return true;
	for (size_t i = 0; i < event_keys_n; i++)
		if (same_word(event_keys[i].name, p, n))
			return true;
	return false;
}

/* The field at p: its name's length, or 0 when there is only text. */
static size_t field_at(const char *p)
{
	const char *end = str_starts(p, "{{.") ? strstr(p, "}}") : NULL;

	return end ? (size_t)(end - p) - 3 : 0;
}

static int check_format(const char *text, struct err *e)
{
	for (const char *p = strstr(text, "{{"); p; p = strstr(p + 2, "{{")) {
		size_t n = field_at(p);

		if (n == 0)
			return bad(e, "--format", text, "has a '{{' that is no {{.Field}}");
		if (!is_word(p + 3, n)) {
			_free_ char *word = mem_strn(p + 3, n);

			return bad(e, "--format:", word, "is no field; docs/EVENTS.md lists them");
		}
	}
	return 0;
}

static int take_option(struct events *v, const struct opts *o, int id, struct err *e)
{
	switch (id) {
	case OPT_FOLLOW:
		v->filter.is_following = true;
		return 0;
	case OPT_SINCE:
		return cli_since(o->value, &v->filter.since_ns, e);
	case OPT_TYPE:
		return add_type(v, o->value, e);
	case OPT_SESSION:
		v->filter.session = o->value;
		return 0;
	case OPT_TAIL:
		return num_parse(o->value, 1, 100000, &v->filter.tail, e) < 0
			       ? err_wrap(e, -EINVAL, "--tail")
			       : 0;
	case OPT_VERIFY:
		v->is_verify = true;
		return 0;
	case OPT_SESSIONS:
		v->is_sessions = true;
		return 0;
	case OPT_JSON:
		v->as = AS_JSON;
		return 0;
	case OPT_QUIET:
		v->is_quiet = true;
		v->as = AS_IDS;
		return 0;
	case OPT_FORMAT:
		v->as = AS_FORMAT;
		v->format = o->value;
		return check_format(o->value, e);
	case OPT_GUARD:
		v->is_guard = true;
		return 0;
	case OPT_FILE:
		v->filter.file = o->value;
		return 0;
	default:
		bug_on(true);
	}
}

/* Options up to the first other word; its place, or < 0. */
static int take_options(struct events *v, int argc, char **argv, struct err *e)
{
	struct opts o;
	int id, r;

	opts_init(&o, events_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		r = take_option(v, &o, id, e);
		if (r < 0)
			return r;
	}
	return id < 0 ? id : o.at;
}

static int check_together(const struct events *v, struct err *e)
{
	const struct store_filter *f = &v->filter;

	if (f->sandbox && !store_name_ok(f->sandbox))
		return bad(e, "sandbox", f->sandbox, "is not a name");
	if (v->is_guard &&
	    (v->is_verify || f->is_following || f->session || f->n_types || f->file || f->sandbox))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--guard shows what the guard decided outside of sandboxes; it "
			       "takes "
			       "only --since, --tail and the forms of output");
	if (v->is_verify && (f->is_following || f->session || f->n_types))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--verify looks at every event; it takes only NAME, --file, --json "
			       "and --quiet");
	if (v->is_sessions && (v->is_verify || v->is_guard || f->is_following || f->session ||
			       f->n_types || f->file || v->as == AS_FORMAT))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--sessions lists summaries; it takes only NAME, --since, --tail, "
			       "--json and --quiet");
	if (f->file && (f->is_following || f->sandbox))
		return err_set(e, ERR_USAGE, EINVAL, "--file goes with neither NAME nor --follow");
	return 0;
}

/* The name may stand before the options too, as people type it. */
static int parse(struct events *v, int argc, char **argv, struct err *e)
{
	int at = take_options(v, argc, argv, e);

	if (at > 0 && at < argc) {
		v->filter.sandbox = argv[at];
		argc -= at;
		argv += at;
		at = take_options(v, argc, argv, e);
	}
	if (at < 0)
		return at;
	if (at < argc)
		return bad(e, "events takes one sandbox;", argv[at], "is one too many");
	v->filter.types = v->types;
	return check_together(v, e);
}

/* ---- printing ---- */

static int flush(void *arg)
{
	struct events *v = arg;
	int r = cli_print(&v->out, v->e);

	v->out.n = 0;
	return r;
}

static void put_session(const struct event *ev, const struct event_origin *from, struct buf *out)
{
	if (ev->head.session == EVENT_NO_SESSION)
		buf_putc(out, '-');
	else
		buf_printf(out, "%s-%u", from->run, ev->head.session);
}

static void put_field(const struct event *ev, const char *word, size_t n, struct buf *out)
{
	for (size_t i = 0; i < ev->n; i++) {
		const struct event_field *f = &ev->fields[i];
		const struct event_key_def *d = event_key_def(f->key);

		if (d == NULL || !same_word(d->name, word, n))
			continue;
		if (f->kind == EVENT_U64)
			buf_printf(out, "%llu", (unsigned long long)f->num);
		else if (f->kind == EVENT_BOOL)
			buf_puts(out, f->num ? "true" : "false");
		else if (f->kind == EVENT_TEXT)
			buf_esc(out, f->p, f->n);
		for (size_t at = 0; f->kind == EVENT_LIST && at < f->n;) {
			size_t len = strnlen(f->p + at, f->n - at);

			buf_puts(out, at ? " " : "");
			buf_esc(out, f->p + at, len);
			at += len + 1;
		}
		return;
	}
}

static void put_word(const struct event *ev, const struct event_origin *from, const char *p,
		     size_t n, struct buf *out)
{
	const struct event_type_def *d = event_type_def(ev->head.type);
	size_t i = 0;

	while (i < ARRAY_LEN(head_words) && !same_word(head_words[i], p, n))
		i++;
	if (i == 0)
		event_time(ev->head.time_ns, out);
	else if (i == 1)
		buf_puts(out, d ? d->name : "?");
	else if (i == 2)
		buf_esc(out, from->sandbox, strlen(from->sandbox));
	else if (i == 3)
		put_session(ev, from, out);
	else if (i == 4)
		buf_puts(out, from->run);
	else if (i == 5)
		buf_printf(out, "%u", ev->head.number);
	else
		put_field(ev, p, n, out);
}

static void put_format(const struct events *v, const struct event *ev,
		       const struct event_origin *from, struct buf *out)
{
	for (const char *p = v->format; *p;) {
		size_t n = field_at(p);

		if (n > 0) {
			put_word(ev, from, p + 3, n, out);
			p += n + 5;
		} else if (p[0] == '\\' && (p[1] == 't' || p[1] == 'n')) {
			buf_putc(out, p[1] == 't' ? '\t' : '\n');
			p += 2;
		} else {
			buf_putc(out, *p++);
		}
	}
}

static int print(void *arg, const struct event *ev, const struct event_origin *from)
{
	struct events *v = arg;

	if (v->as == AS_JSON)
		event_json(ev, from, &v->out);
	else if (v->as == AS_IDS)
		buf_printf(&v->out, "%s:%u", from->run, ev->head.number);
	else if (v->as == AS_FORMAT)
		put_format(v, ev, from, &v->out);
	else
		event_line(ev, from, &v->out);
	buf_putc(&v->out, '\n');
	return v->out.n >= OUT_BYTES ? flush(v) : 0;
}

/* ---- progress: a line a second for whoever watches, from the second second on ---- */

static struct {
	const uint64_t *n; /* events so far */
	const char *what;
	volatile sig_atomic_t has_said;
} busy;

/* Only what a signal handler may do. */
static void on_second(int sig)
{
	char text[80] = "\r", digits[24];
	size_t at = 1, n = 0;
	uint64_t v = *(const volatile uint64_t *)busy.n;
	ssize_t r;

	(void)sig;
	do
		digits[n++] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	while (n > 0)
		text[at++] = digits[--n];
	for (const char *p = busy.what; *p && at < sizeof(text); p++)
		text[at++] = *p;
	r = write(STDERR_FILENO, text, at);
	(void)r; /* nobody looks on any more */
	busy.has_said = 1;
}

static void set_timer(time_t seconds)
{
	struct itimerval t = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	(void)setitimer(ITIMER_REAL, &t, NULL);
}

static void progress_begin(const uint64_t *n, const char *what)
{
	struct sigaction act = { .sa_handler = on_second, .sa_flags = SA_RESTART };

	busy.n = n;
	busy.what = what;
	if (isatty(STDERR_FILENO) && sigaction(SIGALRM, &act, NULL) == 0)
		set_timer(1);
}

static void progress_end(void)
{
	set_timer(0);
	if (busy.has_said)
		(void)fputs("\r\033[K", stderr);
	busy.has_said = 0;
}

/* ---- verify ---- */

static void print_wrong(void *arg, const char *where, const char *what)
{
	struct events *v = arg;

	if (v->is_quiet)
		return;
	if (v->as == AS_JSON) {
		buf_puts(&v->out, "{\"where\":");
		buf_json(&v->out, where);
		buf_puts(&v->out, ",\"wrong\":");
		buf_json(&v->out, what);
		buf_puts(&v->out, "}\n");
	} else {
		buf_esc(&v->out, where, strlen(where));
		buf_puts(&v->out, ": ");
		buf_esc(&v->out, what, strlen(what));
		buf_putc(&v->out, '\n');
	}
}

static int verify(struct events *v, struct err *e)
{
	struct verify_done done = { 0 };
	int r;

	progress_begin(&done.events, " events looked at ");
	r = store_verify(v->state_dir, &v->filter, print_wrong, v, &done, e);
	progress_end();
	if (r < 0)
		return r;
	if (v->as == AS_JSON)
		buf_printf(&v->out,
			   "{\"ok\":%s,\"databases\":%llu,\"sessions\":%llu,\"events\":%llu,"
			   "\"dropped\":%llu,\"wrong\":%llu}\n",
			   done.wrong ? "false" : "true", (unsigned long long)done.databases,
			   (unsigned long long)done.streams, (unsigned long long)done.events,
			   (unsigned long long)done.dropped, (unsigned long long)done.wrong);
	else if (!v->is_quiet)
		buf_printf(&v->out,
			   "%s: %llu events in %llu chains of %llu databases%s; %llu dropped by "
			   "policy, %llu wrong\n",
			   done.wrong ? "WRONG" : "ok", (unsigned long long)done.events,
			   (unsigned long long)done.streams, (unsigned long long)done.databases,
			   v->filter.file ? " (without the registry)" : "",
			   (unsigned long long)done.dropped, (unsigned long long)done.wrong);
	r = flush(v);
	return r < 0 ? r : done.wrong > 0;
}

/* ---- summaries ---- */

static int print_session(void *arg, const struct store_session *s)
{
	struct events *v = arg;

	if (s->state != STORE_OPEN && s->ended_ns < v->filter.since_ns)
		return 0;
	session_summary(s,
			v->as == AS_JSON  ? SESSIONS_JSON
			: v->as == AS_IDS ? SESSIONS_IDS
					  : SESSIONS_LINES,
			&v->out);
	return v->out.n > OUT_BYTES ? flush(v) : 0;
}

static int list_sessions(struct events *v, struct err *e)
{
	int r = store_sessions(v->state_dir, v->filter.sandbox, v->filter.tail, print_session, v,
			       e);

	return r < 0 ? r : flush(v);
}

/* ---- verbs ---- */

static int check_sandbox(const struct events *v, struct err *e)
{
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", v->state_dir, v->filter.sandbox);

	if (v->filter.sandbox == NULL || access(dir, F_OK) == 0)
		return 0;
	return err_set(e, ERR_NOTFOUND, ENOENT,
		       "there is no sandbox '%s'; 'vitrine events' without a name shows all, also "
		       "of those that are gone",
		       v->filter.sandbox);
}

static int show_guard(struct events *v, struct err *e)
{
	int r = guard_events(&(struct guard_events){ .since_ns = v->filter.since_ns,
						     .tail = v->filter.tail,
						     .tell = print,
						     .arg = v },
			     v->state_dir, e);

	return r < 0 ? r : flush(v);
}

/* Was it the registry that said so, and is there a new one now? */
static bool is_mended(const char *state_dir, int r)
{
	struct err why = ERR_INIT;

	if (r != -EBADMSG)
		return false;
	r = store_mend(state_dir, &why);
	if (r < 0)
		cli_complain(why.msg);
	if (r > 0)
		cli_complain("the registry was damaged: it is kept as vitrine.db.damaged, and was "
			     "made anew "
			     "from the databases; what it alone remembered, heads of sandboxes "
			     "that were "
			     "removed, is lost");
	return r > 0;
}

static int take_up(struct events *v, struct err *e)
{
	struct ingest_done done = { 0 };
	int r;

	/* Following can begin while another ingest works; verify must see the end of it. */
	progress_begin(&done.events, " events taken up ");
	r = store_ingest(v->state_dir, &v->bounds, !v->filter.is_following, &done, e);
	progress_end();
	return r == 0 && v->is_verify ? store_reconcile(v->state_dir, e) : r;
}

static int tell(struct events *v, struct err *e)
{
	int r;

	if (v->is_verify)
		return verify(v, e);
	if (v->is_sessions)
		return list_sessions(v, e);
	r = store_events(v->state_dir, &v->filter, print, flush, v, e);
	return r < 0 ? r : flush(v);
}

static int show(struct events *v, struct err *e)
{
	struct err why = ERR_INIT;
	bool was_mended = false;
	int r;

	if (v->is_guard)
		return show_guard(v, e);
	if (v->filter.file)
		return tell(v, e);
	r = check_sandbox(v, e);
	if (r < 0)
		return r;
	r = take_up(v, &why);
	if (is_mended(v->state_dir, r)) {
		was_mended = true;
		why = ERR_INIT;
		r = take_up(v, &why);
	}
	if (r < 0)
		cli_complain(why.msg);
	r = tell(v, e);
	if (!was_mended && is_mended(v->state_dir, r)) {
		was_mended = true;
		*e = ERR_INIT;
		r = tell(v, e);
	}
	/* What there is agrees; whether it is what was recorded, nobody can say any more. */
	return was_mended && v->is_verify && r == 0 ? 1 : r;
}

int cmd_events(int argc, char **argv, struct err *e)
{
	struct events v = { .out = BUF(16 * MIB), .e = e };
	_free_ char *file = NULL;
	int r = parse(&v, argc, argv, e);

	if (r == 0)
		r = find_state(NULL, &v.state_dir, &v.bounds, e);
	if (r == 0 && v.filter.file) {
		r = path_real(v.filter.file, &file, e);
		v.filter.file = file;
	}
	if (r == 0)
		r = show(&v, e);
	buf_done(&v.out);
	free(v.state_dir);
	return r;
}

/* Recording must not take time from the sandbox. */
static void step_back(void)
{
	struct sched_param p = { 0 };

	(void)setpriority(PRIO_PROCESS, 0, 19);
	(void)sched_setscheduler(0, SCHED_BATCH, &p);
}

int cmd_ingest(int argc, char **argv, struct err *e)
{
	const char *given = NULL;
	_free_ char *state_dir = NULL;
	struct store_bounds bounds = { 0 };
	struct ingest_done done;
	bool is_waiting = false;
	struct opts o;
	int id, r;

	opts_init(&o, ingest_opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		if (id == OPT_STATE)
			given = o.value;
		else
			is_waiting = true;
	}
	if (id < 0)
		return id;
	if (o.at < argc)
		return bad(e, "ingest takes no", argv[o.at], "");
	r = find_state(given, &state_dir, &bounds, e);
	if (r < 0)
		return r;
	step_back();
	r = store_ingest(state_dir, &bounds, is_waiting, &done, e);
	if (is_mended(state_dir, r)) {
		*e = ERR_INIT;
		r = store_ingest(state_dir, &bounds, is_waiting, &done, e);
	}
	return r < 0 ? r : 0;
}
