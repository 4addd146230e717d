/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop.c - vitrine loop, vitrine hint: words and options -> a loop that is begun, gone on with, told or asked
 *
 * A loop works in a sandbox of its own, "loop-AGENT-DIRECTORY", unless a name is given: what it installs and breaks is not
 * in the way of the one a person uses.
 */
#include <sys/stat.h>
#include <time.h>

#include "agent/report.h"
#include "base/num.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/loop_opts.h"
#include "core/def.h"
#include "loop/loop.h"

#define HINT_MAX (16 * KIB)

struct wish {
	const char *prompt, *name, *until, *marker, *mode, *notify;
	uint64_t run_time;
	struct loop_conf conf;
	bool is_resumed, is_new, has_limits, is_detached, is_followed, is_now;
	const char *words[2];
	size_t n_words;
	char *const *run_opts; /* behind "--" */
};

static int number(const struct opts *o, uint64_t max, uint64_t *ret, struct err *e)
{
	int r = num_parse(o->value, 0, max, ret, e);

	return r < 0 ? err_wrap(e, r, "--%s", o->opt->name) : 0;
}

static int duration(const struct opts *o, uint64_t *ret, struct err *e)
{
	int r = num_duration(o->value, ret, e);

	return r < 0 ? err_wrap(e, r, "--%s", o->opt->name) : 0;
}

static int take_limit(struct wish *w, const struct opts *o, int id, struct err *e)
{
	w->has_limits = true;
	switch (id) {
	case LOOP_OPT_MAX:
		return number(o, 100000, &w->conf.max, e) < 0 ? -EINVAL
		       : w->conf.max == 0
			       ? err_set(e, ERR_USAGE, EINVAL, "--max must be at least 1")
			       : 0;
	case LOOP_OPT_TIME:
		return duration(o, &w->conf.time, e);
	case LOOP_OPT_COST:
		return report_dollars(o->value, &w->conf.cost)
			       ? 0
			       : err_set(e, ERR_USAGE, EINVAL,
					 "--cost '%.40s' is no amount such as 2.50", o->value);
	case LOOP_OPT_TOKENS:
		return number(o, INT64_MAX, &w->conf.tokens, e);
	case LOOP_OPT_STILL:
		return number(o, 100000, &w->conf.still, e);
	case LOOP_OPT_FAILURES:
		return number(o, 100000, &w->conf.failures, e);
	case LOOP_OPT_BACKOFF:
		return duration(o, &w->conf.backoff, e);
	case LOOP_OPT_RUN_TIME:
		return duration(o, &w->run_time, e);
	default:
		bug_on(true);
		return -EINVAL;
	}
}

static int take_opt(struct loop *l, struct wish *w, const struct opts *o, int id, struct err *e)
{
	switch (id) {
	case LOOP_OPT_PROMPT:
		w->prompt = o->value;
		return 0;
	case LOOP_OPT_UNTIL:
		w->until = o->value;
		return 0;
	case LOOP_OPT_MARKER:
		w->marker = o->value;
		return o->value[0] ? 0 : err_set(e, ERR_USAGE, EINVAL, "--marker is empty");
	case LOOP_OPT_MODE:
		w->mode = o->value;
		return str_eq(o->value, "review") || str_eq(o->value, "direct") ||
				       str_eq(o->value, "clone")
			       ? 0
			       : err_set(e, ERR_USAGE, EINVAL,
					 "--mode '%.40s': review, direct or clone", o->value);
	case LOOP_OPT_NAME:
		w->name = o->value;
		return def_is_name(o->value) ? 0
					     : err_set(e, ERR_USAGE, EINVAL,
						       "--name '%.64s' is no name", o->value);
	case LOOP_OPT_RESUME:
		w->is_resumed = true;
		return 0;
	case LOOP_OPT_NEW:
		w->is_new = true;
		return 0;
	case LOOP_OPT_NOTIFY:
		w->notify = o->value;
		return o->value[0] ? 0 : err_set(e, ERR_USAGE, EINVAL, "--notify is empty");
	case LOOP_OPT_DETACH:
		w->is_detached = true;
		return 0;
	case LOOP_OPT_FOLLOW:
		w->is_followed = true;
		return 0;
	case LOOP_OPT_NOW:
		w->is_now = true;
		return 0;
	case LOOP_OPT_JSON:
		l->as_json = l->is_quiet = true;
		return 0;
	case LOOP_OPT_QUIET:
		l->is_quiet = true;
		return 0;
	default:
		return take_limit(w, o, id, e);
	}
}

static int parse(struct loop *l, struct wish *w, int argc, char **argv, struct err *e)
{
	struct opts o;
	int id, r = 0;

	*w = (struct wish){
		.conf = { .max = 30, .still = 3, .failures = 3, .backoff = 30 * NS_PER_SEC }
	};
	opts_init(&o, loop_opts, argc, argv);
	while (r == 0) {
		id = opts_next(&o, e);
		if (id < 0)
			return id;
		if (id > 0) {
			r = take_opt(l, w, &o, id, e);
			continue;
		}
		if (o.saw_dashdash || o.at >= argc)
			break;
		if (w->n_words == ARRAY_LEN(w->words))
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%.64s' is one word too many; options of 'run' stand "
				       "behind '--'",
				       argv[o.at]);
		w->words[w->n_words++] = argv[o.at++];
	}
	w->run_opts = argv + o.at;
	return r;
}

/* ---- which sandbox ---- */

/* Does its newest loop wait for --resume? A sandbox without a loop does not. */
static bool is_interrupted(const struct loop *l, const char *name)
{
	_cleanup_(loopdir_close) struct loopdir d = LOOPDIR_NONE;
	struct err none = ERR_INIT;

	return loopdir_open(l->host.state_dir, name, &d, &none) == 0 && loopdir_is_interrupted(&d);
}

#define BESIDE_MAX 99

/* The one for loops of this agent and directory; a directory of the same name elsewhere makes it a longer name. is_beside:
 * not one whose loop was interrupted, whose files and records are needed to go on with it. */
static int find_name(struct loop *l, const char *agent, const char *workspace, bool is_beside,
		     bool *ret_exists, struct err *e)
{
	_free_ char *kind = mem_fmt("loop-%s", agent);

	for (int i = 0; i < (is_beside ? BESIDE_MAX : 2); i++) {
		_free_ char *base = def_default_name(kind, workspace, i > 0);
		_free_ char *name = i < 2 ? mem_str(base) : mem_fmt("%s-%d", base, i);
		_cleanup_(def_done) struct def d = { 0 };
		int r = def_read(l->host.state_dir, name, &d, e);

		if (r < 0 && r != -ENOENT)
			return r;
		*ret_exists = r == 0;
		if (r == 0 && (!str_eq(d.workspace, workspace) || !str_eq(d.agent, agent)))
			continue;
		if (is_beside && r == 0 && is_interrupted(l, name))
			continue;
		*e = ERR_INIT;
		l->name = take(name);
		return 0;
	}
	return err_set(e, ERR_CONFLICT, EEXIST,
		       "other sandboxes have the names that this loop would get; choose one with "
		       "--name");
}

static int find_named(struct loop *l, const char *name, const char *agent, const char *workspace,
		      bool *ret_exists, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	int r = def_read(l->host.state_dir, name, &d, e);

	l->name = mem_str(name);
	*ret_exists = r == 0;
	if (r == -ENOENT) {
		*e = ERR_INIT;
		return 0;
	}
	if (r == 0 && (!str_eq(d.workspace, workspace) || !str_eq(d.agent, agent)))
		r = err_set(e, ERR_CONFLICT, EEXIST, "the sandbox '%s' is one of '%s' for '%.200s'",
			    name, d.agent, d.workspace);
	return r;
}

/* Made as `vitrine create` makes it, started once: so that it has layers to keep changes in, and what cannot work is
 * known before the night. */
static int make_sandbox(struct loop *l, const struct wish *w, bool *ret_is_made, struct err *e)
{
	char create[] = "create", name[] = "--name", mode[] = "--mode", run[] = "run",
	     dash[] = "--", command[] = "true";
	char *first[] = { run, l->name, dash, command, NULL };
	_free_ char **argv = NULL;
	size_t n = 0, more = 0;
	int r;

	while (w->run_opts[more])
		more++;
	argv = mem_new(more + 8, sizeof(*argv));
	argv[n++] = create;
	argv[n++] = name;
	argv[n++] = l->name;
	argv[n++] = mode;
	argv[n++] = l->def.mode;
	for (size_t i = 0; i < more; i++)
		argv[n++] = w->run_opts[i];
	argv[n++] = l->def.agent;
	argv[n] = l->def.workspace;
	r = loop_tool(l, &(struct tool){ .argv = argv, .out = FD_NONE, .err = 2 }, e);
	*ret_is_made = r == 0;
	if (r == 0)
		r = loop_tool(l, &(struct tool){ .argv = first, .out = FD_NONE, .err = 2 }, e);
	return r > 0 ? err_set(e, r == 2 ? ERR_USAGE : ERR_SYSTEM, EINVAL,
			       "the sandbox '%s' could not be made", l->name)
		     : r;
}

/* Of a sandbox that was made for this loop, when the loop does not begin. */
static void remove_sandbox(const struct loop *l)
{
	const char *rm[] = { "rm", "--force", l->name, NULL };
	struct tool t = { .argv = (char *const *)(uintptr_t)rm,
			  .out = FD_NONE,
			  .err = FD_NONE,
			  .is_last = true };
	struct err ignored = ERR_INIT;

	(void)loop_tool(l, &t, &ignored); /* it was never used, and 'vitrine ls' lists it */
}

/* Why `run --json` failed: the message of its last line, else what it printed first. */
static char *failure_of(struct buf *errors)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err none = ERR_INIT;
	const char *text = buf_cstr(errors), *last;
	size_t n = errors->n;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	last = n ? memrchr(text, '\n', n) : NULL;
	last = last ? last + 1 : text;
	if (json_parse_foreign(last, (size_t)(text + n - last), &doc, &none) == 0 &&
	    json_text(doc.root, "message", NULL))
		return mem_str(json_text(doc.root, "message", NULL));
	if (str_starts(text, "vitrine: "))
		text += strlen("vitrine: ");
	return mem_strn(text, strcspn(text, "\n"));
}

/* Asked inside, where the agent will be looked for. */
static int check_agent(const struct loop *l, struct err *e)
{
	_free_ const char **words = NULL;
	const char *script = "command -v -- \"$1\" >/dev/null";
	int r = preset_prompt(&l->preset, "", &words, e);

	if (r < 0)
		return r;
	const char *find[] = { "run", l->name, "--json", "--",     "sh",
			       "-c",  script,  "sh",     words[0], NULL };
	_cleanup_(buf_done) struct buf errors = BUF(MIB);

	r = loop_tool(l,
		      &(struct tool){ .argv = (char *const *)(uintptr_t)find,
				      .out = FD_NONE,
				      .err = FD_NONE,
				      .errors = &errors },
		      e);
	if (loop_signal)
		return err_set(e, ERR_SYSTEM, EINTR, "interrupted");
	if (r <= 0)
		return r;
	/* What `command -v` ends with, by the shell, where the program is not found. */
	if (r != 1 && r != 127) {
		_free_ char *why = failure_of(&errors);

		return err_set(e, ERR_SYSTEM, EIO,
			       "the program '%.64s' could not be looked for in sandbox '%s': "
			       "%.300s (exit %d)",
			       words[0], l->name, why, r);
	}
	return err_set(e, ERR_NOTFOUND, ENOENT,
		       "the program '%.64s' was not found in sandbox '%s'%s%.200s", words[0],
		       l->name, l->preset.install ? ". Install it on this host: " : "",
		       l->preset.install ? l->preset.install : "");
}

/* Makes the sandbox where it does not exist, and looks for the agent in it. */
static int prepare_sandbox(struct loop *l, const struct wish *w, bool exists, struct err *e)
{
	bool is_made = false;
	int r = exists ? 0 : make_sandbox(l, w, &is_made, e);

	if (r == 0)
		r = check_agent(l, e);
	if (r < 0 && is_made)
		remove_sandbox(l);
	return r;
}

/* ---- begin or go on ---- */

/* One word that is written like a path: no user wants an agent to read "PROMPT.md" as its task. "/review" is a command of
 * the agent. */
static bool is_file_name(const char *text)
{
	static const char *const ends[] = { ".md", ".txt", ".markdown", ".prompt" };
	bool is_like = (text[0] == '/' && strchr(text + 1, '/')) || str_starts(text, "./") ||
		       str_starts(text, "../") || str_starts(text, "~/");

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		is_like |= str_ends(text, ends[i]);
	return is_like && strpbrk(text, " \t\n") == NULL;
}

static int take_prompt(struct loop *l, const char *text, struct err *e)
{
	struct stat st;

	if (text == NULL || text[0] == '\0')
		return err_set(e, ERR_USAGE, EINVAL, "loop: --prompt FILE or TEXT says what to do");
	if (is_file_name(text) && stat(text, &st) < 0)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "--prompt: the file '%.200s' does not exist. To give a text, write "
			       "a sentence with spaces",
			       text);
	if (stat(text, &st) == 0 && S_ISREG(st.st_mode)) {
		_free_ char *cwd = getcwd(NULL, 0);

		l->def.prompt_file = path_join(cwd ? cwd : "/", text);
	} else {
		l->def.prompt = mem_str(text);
	}
	return 0;
}

static int check_unfinished(const struct loop *l, const struct wish *w, struct err *e)
{
	_cleanup_(loopdir_close) struct loopdir old = LOOPDIR_NONE;
	struct err none = ERR_INIT;

	if (loopdir_open(l->host.state_dir, l->name, &old, &none) < 0)
		return 0;
	if (loopdir_is_locked(&old))
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "a loop runs in '%s' already; 'vitrine status %s' shows it", l->name,
			       l->name);
	if (loopdir_is_interrupted(&old))
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "the loop in '%s' was interrupted. 'vitrine loop --resume %s' "
			       "continues it; %s",
			       l->name, l->name,
			       w->name ? "for a separate loop choose another --name"
				       : "'vitrine loop --new ...' starts a separate loop in a new "
					 "sandbox");
	return 0;
}

/* A budget that nothing is ever counted against would be a promise. */
static int check_budgets(const struct loop *l, const struct wish *w, struct err *e)
{
	const struct preset_report *says = &l->preset.report;

	if (w->conf.cost && says->cost == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "--cost: the agent '%s' does not report what it spends, so --cost "
			       "cannot be enforced. Use --time, which works with every agent%s",
			       w->words[0],
			       says->tokens_in ? ", or --tokens, which this agent reports" : "");
	if (w->conf.tokens && says->tokens_in == NULL && says->tokens_out == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "--tokens: the agent '%s' does not report its tokens, so --tokens "
			       "cannot be enforced. Use --time, which works with every agent",
			       w->words[0]);
	return 0;
}

static int begin(struct loop *l, const struct wish *w, struct err *e)
{
	const char *path = w->n_words > 1 ? w->words[1] : ".";
	bool exists = false;
	int r;

	if (w->n_words == 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "loop: which agent? 'vitrine loop claude . --prompt TEXT'");
	r = preset_load(l->host.config_dir, w->words[0], &l->preset, e);
	if (r == -ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "'%.64s' is no agent; 'vitrine agents' lists them", w->words[0]);
	if (r == 0)
		r = check_budgets(l, w, e);
	if (r == 0)
		r = take_prompt(l, w->prompt, e);
	if (r == 0)
		r = path_real(path, &l->def.workspace, e);
	if (r < 0) {
		e->kind = e->kind == ERR_SYSTEM ? ERR_USAGE : e->kind;
		return r;
	}
	l->def.agent = mem_str(w->words[0]);
	l->def.mode = mem_str(w->mode ? w->mode : "review");
	l->def.until = w->until ? mem_str(w->until) : NULL;
	l->def.marker = w->marker ? mem_str(w->marker) : NULL;
	l->def.notify = w->notify ? mem_str(w->notify) : NULL;
	l->def.run_time = w->run_time;
	l->def.created = (uint64_t)time(NULL);
	l->def.conf = w->conf;
	l->def.conf.has_marker = w->marker != NULL;
	l->def.conf.has_check = w->until != NULL;
	r = w->name ? find_named(l, w->name, l->def.agent, l->def.workspace, &exists, e)
		    : find_name(l, l->def.agent, l->def.workspace, w->is_new, &exists, e);
	if (r == 0)
		r = check_unfinished(l, w, e);
	if (r == 0 && exists && w->run_opts[0])
		r = err_set(e, ERR_CONFLICT, EEXIST,
			    "the sandbox '%s' exists already, with the options it was made with; "
			    "'vitrine rm %s' first",
			    l->name, l->name);
	if (r == 0)
		r = prepare_sandbox(l, w, exists, e);
	if (r == 0)
		r = loopdir_create(l->host.state_dir, l->name, &l->def, &l->dir, e);
	return r;
}

/* The only one that was interrupted. */
static int find_only(struct loop *l, struct err *e)
{
	char **names = NULL;
	int r = def_list(l->host.state_dir, false, &names, e);

	for (char **v = names; r == 0 && *v; v++) {
		if (!is_interrupted(l, *v))
			continue;
		if (l->name)
			r = err_set(e, ERR_USAGE, EINVAL,
				    "several loops were interrupted; name one: '%s', '%s'", l->name,
				    *v);
		else
			l->name = mem_str(*v);
	}
	def_list_free(names);
	if (r == 0 && l->name == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT, "no loop was interrupted");
	return r;
}

/* --resume NAME, --resume AGENT [PATH], or --resume alone where there is only one to go on with. */
static int find_old(struct loop *l, const struct wish *w, struct err *e)
{
	_free_ char *workspace = NULL;
	bool exists = false;
	int r;

	if (w->name || (w->n_words == 1 && !preset_is_there(l->host.config_dir, w->words[0]))) {
		l->name = mem_str(w->name ? w->name : w->words[0]);
		return 0;
	}
	if (w->n_words == 0)
		return find_only(l, e);
	r = path_real(w->n_words > 1 ? w->words[1] : ".", &workspace, e);
	return r < 0 ? r : find_name(l, w->words[0], workspace, false, &exists, e);
}

static int go_on(struct loop *l, const struct wish *w, struct err *e)
{
	int r = find_old(l, w, e);

	if (r == 0 && (w->prompt || w->until || w->marker || w->mode || w->is_new ||
		       w->has_limits || w->run_opts[0]))
		r = err_set(e, ERR_USAGE, EINVAL,
			    "--resume continues a loop with the options it was begun with, and "
			    "takes only --notify, --name, --detach, --json and --quiet; 'vitrine "
			    "loop --new ...' starts a separate loop in a new sandbox");
	if (r == 0)
		r = loopdir_open(l->host.state_dir, l->name, &l->dir, e);
	if (r == 0)
		r = loopdir_def(&l->dir, &l->def, e);
	if (r == 0)
		r = preset_load(l->host.config_dir, l->def.agent, &l->preset, e);
	/* A loop that runs keeps its command: this --resume fails when it asks for the lock. */
	if (r == 0 && w->notify && !loopdir_is_locked(&l->dir)) {
		free(l->def.notify);
		l->def.notify = mem_str(w->notify);
		r = loopdir_write_def(&l->dir, &l->def, e);
	}
	return r == -ENOENT && e->msg[0] == '\0'
		       ? err_set(e, ERR_CONFIG, ENOENT, "the agent '%s' is not known any more",
				 l->def.agent)
		       : r;
}

int loop_exit_status(const struct loop *l, enum loop_stop why)
{
	bool has_goal = l->def.conf.has_marker || l->def.conf.has_check;

	if (why == LOOP_SIGNAL && loop_signal)
		return 128 + loop_signal;
	/* Where no goal was set, one iteration that worked is what a loop can reach. */
	if (why == LOOP_MAX && !has_goal)
		return l->sum.failed < l->sum.iterations ? 0 : 3;
	return why == LOOP_MARKER || why == LOOP_CHECK ? 0 : 3;
}

static int say_detached(const struct loop *l, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(4 * KIB);

	if (l->as_json) {
		buf_puts(&out, "{\"name\":");
		buf_json(&out, l->name);
		buf_printf(&out, ",\"loop\":%llu}\n", (unsigned long long)l->dir.number);
	} else {
		buf_printf(&out, "%s\n", l->name);
	}
	return cli_print(&out, e);
}

/* From its beginning to its end, or to where another process goes on with it. */
static int work(struct loop *l, const struct wish *w, struct err *e)
{
	int why, r = w->is_resumed ? go_on(l, w, e) : begin(l, w, e);

	if (r == 0 && w->is_resumed && !loopdir_is_locked(&l->dir))
		loopdir_forget_stop(&l->dir);
	if (r == 0 && w->is_detached) {
		r = loop_detach(l, e);
		if (r == 0)
			return say_detached(l, e);
	} else if (r == 0) {
		r = loopdir_lock(&l->dir, e);
	}
	/* The loop has not begun, so there is nothing to continue and nothing to report. */
	if (r < 0 && loop_signal)
		*e = ERR_INIT;
	if (r < 0)
		return loop_signal ? 128 + loop_signal : r;
	why = loop_drive(l, e);
	loop_notify(l, "end", why < 0 ? "error" : loop_stop_name((enum loop_stop)why),
		    why < 0 ? e->msg : loop_stop_sentence((enum loop_stop)why));
	if (why < 0)
		return why;
	r = loop_summary(l, (enum loop_stop)why, e);
	return r < 0 ? r : loop_exit_status(l, (enum loop_stop)why);
}

/* ---- words for a loop that is there ---- */

static int report(struct loop *l, const struct wish *w, struct err *e)
{
	int r = loopdir_def(&l->dir, &l->def, e);

	(void)w;
	if (r == 0)
		r = loopdir_sum(&l->dir, &l->sum, e);
	if (r < 0)
		return r;
	return l->as_json ? loop_summary(l, loopdir_end(&l->dir), e) : loop_report(l, e);
}

static int stop(struct loop *l, const struct wish *w, struct err *e)
{
	return loop_ask_stop(l, w->is_now, e);
}

static int logs(struct loop *l, const struct wish *w, struct err *e)
{
	int r = loop_logs(l, w->is_followed, false, e);

	return r < 0 ? r : 0;
}

static int attach(struct loop *l, const struct wish *w, struct err *e)
{
	(void)w;
	loop_signals(); /* Ctrl-C leaves it */
	return loop_logs(l, true, true, e);
}

static const struct {
	const char *name;
	int (*fn)(struct loop *l, const struct wish *w, struct err *e);
} words[] = { { "report", report }, { "stop", stop }, { "logs", logs }, { "attach", attach } };

static int do_word(struct loop *l, const struct wish *w, size_t i, struct err *e)
{
	int r;

	if (w->n_words != 2)
		return err_set(e, ERR_USAGE, EINVAL, "loop %s NAME: which loop?", words[i].name);
	l->name = mem_str(w->words[1]);
	r = loopdir_open(l->host.state_dir, l->name, &l->dir, e);
	return r < 0 ? r : words[i].fn(l, w, e);
}

static void done(struct loop *l)
{
	host_done(&l->host);
	loopdir_close(&l->dir);
	loop_def_done(&l->def);
	preset_done(&l->preset);
	free(l->name);
	free(l->program);
}

/* `loop --json ls`: the options before the word `ls` are options of the list. */
static int list_loops(int argc, char **argv, const char *word, struct err *e)
{
	_free_ char **v = mem_new((size_t)argc + 1, sizeof(*v));
	int n = 1;

	v[0] = (char *)(uintptr_t)word;
	for (int i = 1; i < argc; i++)
		if (argv[i] != word)
			v[n++] = argv[i];
	return cmd_loop_ls(n, v, e);
}

int cmd_loop(int argc, char **argv, struct err *e)
{
	struct loop_asked asked = { 0 };
	struct loop l = { .host = { .ws_fd = FD_NONE }, .dir = LOOPDIR_NONE, .asked = &asked };
	struct wish w;
	size_t i = 0;
	int r;

	if (argc > 1 && str_eq(argv[1], "ls"))
		return cmd_loop_ls(argc - 1, argv + 1, e);
	r = parse(&l, &w, argc, argv, e);
	if (r == 0 && w.n_words > 0 && str_eq(w.words[0], "ls"))
		return list_loops(argc, argv, w.words[0], e);
	while (i < ARRAY_LEN(words) && !(w.n_words > 0 && str_eq(w.words[0], words[i].name)))
		i++;
	if (r == 0)
		r = host_init(&l.host, NULL, e);
	if (r == 0)
		r = program_find("vitrine", &l.program, e);
	if (r == 0 && i < ARRAY_LEN(words)) {
		r = do_word(&l, &w, i, e);
	} else if (r == 0) {
		loop_signals();
		r = work(&l, &w, e);
	}
	done(&l);
	return r;
}

/* A loop that has reached its end will not read it, gone on with or not. */
static int check_listens(struct loop *l, struct err *e)
{
	enum loop_stop why;
	uint64_t wait;
	int r = loopdir_def(&l->dir, &l->def, e);

	if (loopdir_is_locked(&l->dir))
		return 0;
	if (r == 0)
		r = loopdir_sum(&l->dir, &l->sum, e);
	if (r < 0)
		return r;
	l->sum.busy = 0; /* --resume continues such a loop */
	why = loop_decide(&l->def.conf, &l->sum, &wait);
	if (why != LOOP_GOES_ON)
		return err_set(e, ERR_CONFLICT, ESRCH,
			       "the loop in '%s' has ended (%s), so nobody would be told", l->name,
			       loop_stop_name(why));
	(void)fprintf(stderr, "vitrine: it is told when 'vitrine loop --resume %s' goes on\n",
		      l->name);
	return 0;
}

int cmd_hint(int argc, char **argv, struct err *e)
{
	struct loop l = { .host = { .ws_fd = FD_NONE }, .dir = LOOPDIR_NONE };
	struct buf text = BUF(HINT_MAX);
	struct opts o;
	int id, r;

	opts_init(&o, hint_opts, argc, argv);
	id = opts_next(&o, e);
	if (id < 0)
		return id;
	if (argc - o.at < 2)
		return err_set(e, ERR_USAGE, EINVAL,
			       "hint NAME TEXT: which loop, and what to tell it?");
	l.name = mem_str(argv[o.at++]);
	for (; o.at < argc; o.at++)
		buf_printf(&text, "%s%s", text.n ? " " : "", argv[o.at]);
	r = text.is_over ? err_set(e, ERR_USAGE, E2BIG, "a hint holds at most 16 KiB")
			 : host_init(&l.host, NULL, e);
	if (r == 0)
		r = loopdir_open(l.host.state_dir, l.name, &l.dir, e);
	if (r == 0)
		r = check_listens(&l, e);
	if (r == 0)
		r = loopdir_add_hint(&l.dir, buf_cstr(&text), e);
	buf_done(&text);
	done(&l);
	return r;
}
