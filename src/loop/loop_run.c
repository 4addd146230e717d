/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_run.c - the loop itself: decide, then one try
 *
 * A try is: checkpoint, begin.json, `vitrine run`, the check, what changed, record.json. Killed before begin.json,
 * nothing has happened; killed behind it, the next one stops what still runs, puts the files back to the checkpoint and
 * tries again, in the same folder; killed behind record.json, it is finished. What a try that was cut off did outside
 * (pushes) cannot be put back: it is listed in the record.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/report.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "cli/cli.h"
#include "loop/loop.h"

#define PROMPT_MAX (100 * KIB) /* one argument of a command holds 128 KiB */
#define TAIL_MAX (8 * MIB)
#define SAID_MAX 2000
#define OUTSIDE_MAX 100
#define KEPT_CHECKPOINTS 100
#define TRIES_MAX 100

/* One try while it is being made. */
struct
try {
	uint64_t number;
	int dir;
	struct loop_begin begin;
	struct loop_record record;
	struct buf prompt;
};

static void try_done(struct try *t)
{
	fd_close(t->dir);
	loop_begin_done(&t->begin);
	loop_record_done(&t->record);
	buf_done(&t->prompt);
}

/* ---- the prompt ---- */

/* In the workspace the agent may have written it, and may have made it a link to what it cannot read itself. */
static int open_prompt(const struct loop *l, struct err *e)
{
	const char *path = l->def.prompt_file;
	_close_ int ws = FD_NONE;
	int fd;

	if (!path_is_beneath(path, l->def.workspace)) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		return fd < 0 ? err_sys(e, "--prompt '%s'", path) : fd;
	}
	ws = open(l->def.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ws < 0)
		return err_sys(e, "'%s'", l->def.workspace);
	return path_open_beneath(ws, path_below(path, l->def.workspace),
				 O_RDONLY | O_NONBLOCK | O_NOCTTY, e);
}

static int read_prompt(const struct loop *l, struct buf *out, struct err *e)
{
	_close_ int fd = FD_NONE;
	struct stat st;
	int r;

	if (l->def.prompt) {
		buf_puts(out, l->def.prompt);
		return 0;
	}
	fd = open_prompt(l, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFIG, EINVAL, "--prompt '%s' is not a regular file",
			       l->def.prompt_file);
	r = io_read_fd(fd, out, e);
	return r < 0 ? err_wrap(e, r, "--prompt '%s'", l->def.prompt_file) : 0;
}

/* For a shell a hint is a comment; an agent reads it. */
static void put_hint(const struct loop *l, const char *text, struct buf *out)
{
	bool is_agent = l->preset.free != NULL;

	buf_puts(out, is_agent ? "\n\nHint from the user: " : "\n# Hint: ");
	for (; *text; text++) {
		buf_putc(out, *text);
		if (*text == '\n' && !is_agent)
			buf_puts(out, "# ");
	}
}

static int make_prompt(const struct loop *l, struct try *t, struct err *e)
{
	int r;

	t->prompt = BUF(PROMPT_MAX);
	r = read_prompt(l, &t->prompt, e);
	if (r < 0)
		return r;
	if (l->def.marker && l->preset.free)
		buf_printf(&t->prompt,
			   "\n\nWhen everything is done, and only then, end your answer with this "
			   "line: %s",
			   l->def.marker);
	for (char **v = t->begin.hints; v && *v; v++) {
		_cleanup_(buf_done) struct buf text = BUF(64 * KIB);

		r = loopdir_read_hint(&l->dir, *v, &text, e);
		if (r < 0 && r != -ENOENT)
			return r;
		put_hint(l, buf_cstr(&text), &t->prompt);
	}
	if (t->prompt.is_over)
		return err_set(e, ERR_CONFIG, E2BIG,
			       "the prompt with its hints is longer than %llu bytes",
			       (unsigned long long)PROMPT_MAX);
	/* The beginning, which is written next, takes its name to the disk. */
	return loopdir_note(t->dir, "prompt.txt", t->prompt.p ? t->prompt.p : "", t->prompt.n, true,
			    e);
}

/* ---- before ---- */

static int quietly(const struct loop *l, char *const *argv, struct buf *text, struct err *e)
{
	return loop_tool(
		l, &(struct tool){ .argv = argv, .out = FD_NONE, .err = FD_NONE, .text = text }, e);
}

/* For what needs a sandbox that does not run: it may still be ending, or somebody may look into it for a moment. What it
 * complained about last is in `why`. */
static int patiently(const struct loop *l, char *const *argv, struct buf *text, struct buf *why,
		     struct err *e)
{
	struct tool t = {
		.argv = argv, .out = FD_NONE, .err = FD_NONE, .text = text, .errors = why
	};
	int r = 0;

	for (int i = 0; i < TRIES_MAX && !loop_signal; i++) {
		why->n = 0;
		r = loop_tool(l, &t, e);
		if (r <= 0)
			return r;
		if (text)
			text->n = 0;
		(void)nanosleep(&(struct timespec){ .tv_nsec = 50000000L }, NULL);
	}
	return r;
}

/* Without the name of the program that says it. */
static const char *first_line(struct buf *b)
{
	char *end = b->n ? memchr(b->p, '\n', b->n) : NULL;
	const char *text = buf_cstr(b);

	if (end)
		*end = '\0';
	return str_starts(text, "vitrine: ") ? text + strlen("vitrine: ") : text;
}

static int save_checkpoint(const struct loop *l, struct try *t, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(64 * KIB), why = BUF(4 * KIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_free_ char *message =
		mem_fmt("before try %llu of the loop", (unsigned long long)t->number);
	char verb[] = "checkpoint", json[] = "--json", flag[] = "-m";
	char *argv[] = { verb, l->name, json, flag, message, NULL };
	int r = patiently(l, argv, &text, &why, e);

	if (r < 0)
		return r;
	if (r == 0 && json_parse(buf_cstr(&text), text.n, &doc, e) == 0 &&
	    json_u64(json_get(doc.root, "checkpoint"), &t->begin.checkpoint))
		return 0;
	return err_set(e, ERR_SYSTEM, EIO, "no checkpoint of '%s' could be made: %.300s", l->name,
		       why.n ? first_line(&why) : "is it in use?");
}

/* What was cut off may still run: whoever ran it was killed, not it. */
static void end_session(const struct loop *l, struct err *e)
{
	char stop[] = "stop", flag[] = "-t", grace[] = "1s"; /* what it writes now is put back */
	char *argv[] = { stop, flag, grace, l->name, NULL };
	struct tool t = { .argv = argv, .out = FD_NONE, .err = FD_NONE, .is_last = true };

	(void)loop_tool(l, &t, e); /* nothing runs, as a rule */
	*e = ERR_INIT;
}

static int restore(const struct loop *l, const struct try *t, struct err *e)
{
	_free_ char *id = mem_fmt("%llu", (unsigned long long)t->begin.checkpoint);
	char verb[] = "restore", force[] = "--force";
	bool is_direct = str_eq(l->def.mode, "direct");
	char *argv[] = { verb, l->name, id, is_direct ? force : NULL, NULL };
	_cleanup_(buf_done) struct buf why = BUF(4 * KIB);
	int r = patiently(l, argv, NULL, &why, e);

	if (r < 0)
		return r;
	return r == 0 ? 0
		      : err_set(e, ERR_SYSTEM, EIO, "checkpoint %s could not be restored: %.300s",
				id, first_line(&why));
}

static void add_outside(struct loop_record *r, size_t *n, char *take_text)
{
	r->outside = mem_grow(r->outside, *n + 2, sizeof(*r->outside));
	r->outside[(*n)++] = take_text;
	r->outside[*n] = NULL;
}

/* A push through the gate, or anything the broker ran. */
static char *outside_text(const struct json *event)
{
	const struct json *type = json_get(event, "type"), *data = json_get(event, "data");
	const struct json *request = data ? json_get(data, "request") : NULL,
			  *host = data ? json_get(data, "host") : NULL;
	struct buf b = BUF(4 * KIB);

	if (type == NULL || data == NULL || type->type != JSON_STRING)
		return NULL;
	if (str_eq(type->text, "broker.ran")) {
		const struct json *argv = json_get(data, "argv");

		buf_puts(&b, "broker:");
		for (const struct json *v = argv && argv->type == JSON_ARRAY ? argv->first : NULL;
		     v && b.n < KIB; v = v->next)
			buf_printf(&b, " %.200s", v->type == JSON_STRING ? v->text : "");
	} else if (host && request && host->type == JSON_STRING && request->type == JSON_STRING &&
		   strstr(request->text, "/git-receive-pack")) {
		buf_printf(&b, "push: %.200s%.400s", host->text, request->text);
	}
	return b.n ? buf_take(&b) : NULL;
}

static void list_outside(const struct loop *l, struct try *t, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(8 * MIB);
	uint64_t ago = (uint64_t)time(NULL) - t->begin.started + 1;
	_free_ char *since = mem_fmt("%llus", (unsigned long long)ago);
	char verb[] = "events", json[] = "--json", flag[] = "--since", type[] = "--type",
	     broker[] = "broker.ran", net[] = "net.request";
	char *argv[] = { verb, l->name, json, flag, since, type, broker, type, net, NULL };
	size_t n = 0;

	if (quietly(l, argv, &text, e) != 0) {
		add_outside(&t->record, &n, mem_str("unknown: the events could not be read"));
		return;
	}
	for (const char *p = buf_cstr(&text); *p && n < OUTSIDE_MAX;) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		size_t len = strcspn(p, "\n");
		char *line =
			json_parse_foreign(p, len, &doc, e) == 0 ? outside_text(doc.root) : NULL;

		if (line)
			add_outside(&t->record, &n, line);
		p += len + (p[len] == '\n');
	}
	*e = ERR_INIT;
}

/* Hints that the try before this one has used and could not remove. */
static void drop_used_hints(const struct loop *l, uint64_t number)
{
	_cleanup_(loop_begin_done) struct loop_begin before = { 0 };
	struct err e = ERR_INIT;

	if (number > 1 && loopdir_begin(&l->dir, number - 1, &before, &e) == 0)
		loopdir_drop_hints(&l->dir, before.hints);
}

static int begin_try(struct loop *l, struct try *t, struct err *e)
{
	int r;

	t->number = l->sum.tries + 1;
	t->dir = loopdir_run(&l->dir, t->number, e);
	if (t->dir < 0)
		return t->dir;
	r = loopdir_begin(&l->dir, t->number, &t->begin, e);
	if (r == 0) {
		end_session(l, e); /* and all that it did is on record */
		list_outside(l, t, e);
		r = restore(l, t, e);
		loop_texts_free(t->begin.hints);
		t->begin.hints = NULL;
	} else if (r == -ENOENT) {
		t->begin.iteration = l->sum.iterations + 1;
		r = save_checkpoint(l, t, e);
	}
	if (r < 0)
		return r;
	drop_used_hints(l, t->number);
	r = loopdir_hints(&l->dir, &t->begin.hints, e);
	if (r == 0)
		r = make_prompt(l, t, e);
	if (r < 0)
		return r;
	t->begin.attempt++;
	t->begin.started = (uint64_t)time(NULL);
	return loopdir_write_begin(&l->dir, t->number, &t->begin, e);
}

/* ---- the session ---- */

static int open_output(const struct try *t, const char *name, struct err *e)
{
	int fd = openat(t->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(e, "loop: '%s'", name) : fd;
}

static int session(const struct loop *l, const struct try *t, const char *const *words,
		   const char *base, struct err *e)
{
	_free_ char *out_name = mem_fmt("%s.txt", base),
		    *err_name = mem_fmt("%s",
					str_eq(base, "output") ? "errors.txt" : "check-errors.txt");
	_free_ char *env =
		mem_fmt("VITRINE_ITERATION=%llu", (unsigned long long)t->begin.iteration);
	_free_ char *limit = mem_fmt("%llums", (unsigned long long)(l->def.run_time / NS_PER_MS));
	_close_ int out = open_output(t, out_name, e), err = open_output(t, err_name, e);
	/* The number goes before the command and not with -e: options of walls are refused where somebody has started the
	 * sandbox meanwhile. */
	const char *limits[] = { "run", l->name, "--json", "--time", limit, "--", "env", env };
	const char *plain[] = { "run", l->name, "--json", "--", "env", env };
	const char **head = l->def.run_time ? limits : plain;
	size_t n = 0, fixed = l->def.run_time ? ARRAY_LEN(limits) : ARRAY_LEN(plain);
	_free_ const char **argv = NULL;

	if (out < 0 || err < 0)
		return out < 0 ? out : err;
	bug_on(words == NULL);
	while (words[n])
		n++;
	argv = mem_new(fixed + n + 1, sizeof(*argv));
	memcpy(argv, head, fixed * sizeof(*argv));
	memcpy(argv + fixed, words, n * sizeof(*argv));
	return loop_tool(l,
			 &(struct tool){ .argv = (char *const *)(uintptr_t)argv,
					 .out = out,
					 .err = err,
					 .may_ask = true },
			 e);
}

/* The end of a file of ours; what is before it says nothing that counts. */
static void read_tail(const struct try *t, const char *name, struct buf *out)
{
	_close_ int fd = openat(t->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct stat st;

	*out = BUF(TAIL_MAX + KIB);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if ((uint64_t)st.st_size > TAIL_MAX)
		(void)lseek(fd, st.st_size - (off_t)TAIL_MAX, SEEK_SET);
	(void)io_read_fd(fd, out, &e);
	/* Words are looked for in it as in a string. */
	for (size_t i = 0; i < out->n; i++)
		if (out->p[i] == '\0')
			out->p[i] = ' ';
}

/* The last line on stderr is the one of `run --json`. */
static char *end_reason(const struct buf *errors)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	const struct json *v = NULL;
	size_t end = errors->n, from;

	while (end > 0 && errors->p[end - 1] == '\n')
		end--;
	for (from = end; from > 0 && errors->p[from - 1] != '\n'; from--)
		;
	if (end > from && errors->p[from] == '{' &&
	    json_parse_foreign(errors->p + from, end - from, &doc, &e) == 0)
		v = json_get(doc.root, "reason");
	return mem_str(v && v->type == JSON_STRING ? v->text : "error");
}

static char *busy_words(const struct preset *p)
{
	struct buf b = BUF(64 * KIB);

	for (const struct json *v = p->busy ? p->busy->first : NULL; v; v = v->next)
		buf_add(&b, v->text, v->n + 1);
	buf_putc(&b, '\0');
	return buf_take(&b);
}

static char *last_words(const struct buf *b)
{
	size_t n = b->n;
	const char *p = buf_cstr(b);

	while (n > 0 && (p[n - 1] == '\n' || p[n - 1] == ' '))
		n--;
	if (n > SAID_MAX) {
		p += n - SAID_MAX;
		n = SAID_MAX;
		while (n > 0 &&
		       ((unsigned char)*p & 0xc0) == 0x80) { /* not in the middle of a character */
			p++;
			n--;
		}
	}
	return n ? mem_strn(p, n) : NULL;
}

/* What the output says, and what the iteration therefore was. */
static void judge(const struct loop *l, struct try *t, int status)
{
	_cleanup_(buf_done) struct buf output = { 0 }, errors = { 0 };
	_cleanup_(report_done) struct report rep;
	_free_ char *busy = busy_words(&l->preset);
	struct loop_result *r = &t->record.result;
	const struct buf *said;

	read_tail(t, "output.txt", &output);
	read_tail(t, "errors.txt", &errors);
	report_read(&l->preset.report, buf_cstr(&output), output.n, &rep);
	said = l->preset.report.text ? &rep.text : &output;
	t->record.reason = end_reason(&errors);
	t->record.said = last_words(said);
	t->record.has_cost = rep.has_cost;
	t->record.has_tokens = rep.has_tokens;
	r->status = status;
	r->cost = rep.cost;
	r->tokens_in = rep.tokens_in;
	r->tokens_out = rep.tokens_out;
	r->is_marked = l->def.marker && strstr(buf_cstr(said), l->def.marker) != NULL;
	r->outcome = status != 0 || rep.is_failed ? LOOP_FAILED : LOOP_OK;
	if (r->outcome == LOOP_OK)
		return;
	r->failure = errors.n > 0 && !str_eq(t->record.reason, "exit")
			     ? loop_failure(status, t->record.reason, strlen(t->record.reason))
			     : loop_failure(status, buf_cstr(said), said->n);
	if (loop_is_busy(buf_cstr(&output), busy) || loop_is_busy(buf_cstr(&errors), busy))
		r->outcome = LOOP_LIMITED;
}

static int check(const struct loop *l, struct try *t, struct err *e)
{
	const char *words[] = { "sh", "-c", l->def.until, NULL };
	int r;

	if (l->def.until == NULL || t->record.result.outcome == LOOP_LIMITED)
		return 0;
	r = session(l, t, words, "check", e);
	if (r < 0)
		return r;
	t->record.has_check = true;
	t->record.check_status = r;
	t->record.result.is_checked = r == 0;
	return 0;
}

static int what_changed(const struct loop *l, struct try *t, struct err *e)
{
	_cleanup_(buf_done) struct buf before = BUF(8 * MIB), now = BUF(8 * MIB);
	int r = loopdir_get(t->dir, "before.txt", &before, e);

	if (r == 0)
		r = loop_tree(l, t->begin.checkpoint, &now, e);
	if (r == 0)
		t->record.result.n_changed = loop_tree_compare(buf_cstr(&before), buf_cstr(&now),
							       LOOPDIR_FILES_MAX, &t->record.files);
	return r;
}

/* As it is when the try begins; in direct mode that is the checkpoint itself. */
static int look_before(const struct loop *l, const struct try *t, struct err *e)
{
	_cleanup_(buf_done) struct buf tree = BUF(8 * MIB);
	int r = !str_eq(l->def.mode, "direct") ? loop_tree(l, t->begin.checkpoint, &tree, e) : 0;

	return r < 0 ? r : loopdir_note(t->dir, "before.txt", buf_cstr(&tree), tree.n, false, e);
}

static int one_try(struct loop *l, struct err *e)
{
	_cleanup_(try_done) struct try t = { .dir = FD_NONE };
	_free_ const char **words = NULL;
	uint64_t from;
	int r = begin_try(l, &t, e);

	if (r == 0)
		r = look_before(l, &t, e);
	if (r == 0)
		r = preset_prompt(&l->preset, buf_cstr(&t.prompt), &words, e);
	if (r < 0)
		return r;
	from = clock_now();
	r = session(l, &t, words, "output", e);
	if (r < 0 || loop_signal)
		return r < 0 ? r : 0;
	judge(l, &t, r);
	r = check(l, &t, e);
	if (r == 0)
		r = what_changed(l, &t, e);
	if (r < 0 || loop_signal)
		return r;
	t.record.number = t.number;
	t.record.iteration = t.begin.iteration;
	t.record.attempt = t.begin.attempt;
	t.record.checkpoint = t.begin.checkpoint;
	t.record.started = t.begin.started;
	t.record.result.duration = clock_now() - from;
	r = loopdir_write_record(&l->dir, &t.record, e);
	if (r < 0)
		return r;
	loopdir_drop_hints(&l->dir, t.begin.hints);
	loop_fold(&l->sum, &t.record.result);
	if (!l->is_quiet) {
		_cleanup_(buf_done) struct buf line = BUF(64 * KIB);

		loop_put_record(l, &t.record, &line);
		loop_put_repeated(l, &l->sum, &line);
		(void)fputs(buf_cstr(&line), stderr);
	}
	return 0;
}

/* ---- the loop ---- */

/* Sandboxes keep a few hundred checkpoints; a long night makes more. */
static void thin_out(const struct loop *l, struct err *e)
{
	_free_ char *keep = mem_fmt("%d", KEPT_CHECKPOINTS);
	char verb[] = "checkpoints", flag[] = "--keep";
	char *argv[] = { verb, l->name, flag, keep, NULL };

	if (l->sum.tries > 0 && l->sum.tries % KEPT_CHECKPOINTS == 0)
		(void)quietly(l, argv, NULL,
			      e); /* too many of them are the next checkpoint's own failure */
}

static void wait_ns(const struct loop *l, uint64_t ns)
{
	uint64_t end = clock_now() + ns;

	if (l->sum.busy == 1)
		loop_notify(l, "limit", "busy",
			    "The service is busy; the loop waits and tries again.");
	if (ns && !l->is_quiet)
		(void)fprintf(stderr, "loop: the service is busy; trying again in %llu s\n",
			      (unsigned long long)((ns + NS_PER_SEC - 1) / NS_PER_SEC));
	while (clock_now() < end && !loop_signal && !loopdir_is_asked(&l->dir)) {
		uint64_t left = end - clock_now();
		uint64_t step = left < 200 * NS_PER_MS ? left : 200 * NS_PER_MS;

		(void)nanosleep(&(struct timespec){ .tv_nsec = (long)step }, NULL);
	}
}

int loop_drive(struct loop *l, struct err *e)
{
	int r = loopdir_sum(&l->dir, &l->sum, e);

	/* A loop that ended because the service was busy tries again: the busy answers before --resume do not count. */
	l->sum.busy = 0;
	while (r == 0) {
		uint64_t wait;
		enum loop_stop why = loop_decide(&l->def.conf, &l->sum, &wait);

		if (why == LOOP_GOES_ON && wait)
			wait_ns(l, wait);
		if (why == LOOP_GOES_ON && loop_signal)
			why = LOOP_SIGNAL;
		else if (why == LOOP_GOES_ON && loopdir_is_asked(&l->dir))
			why = LOOP_ASKED;
		if (why == LOOP_SIGNAL)
			end_session(l, e);
		if (why != LOOP_GOES_ON) {
			r = loopdir_write_end(&l->dir, why, e);
			return r < 0 ? r : (int)why;
		}
		thin_out(l, e);
		r = one_try(l, e);
		if (r < 0 && loop_signal) {
			*e = ERR_INIT; /* what failed was ended by the signal, like us */
			r = 0;
		}
	}
	return r;
}
