/* SPDX-License-Identifier: Apache-2.0 */
/* cli/undo.c - checkpoint, checkpoints, restore, undo, diff
 *
 * Without a name the checkpoints of the current directory's workspace are meant; a sandbox's name means those of its
 * workspace.
 */
#include <time.h>

#include "base/num.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/review.h"
#include "cli/whole.h"
#include "tree/runs.h"

#define OUT_MAX (256 * MIB)

enum {
	OPT_MESSAGE = 1,
	OPT_ALL,
	OPT_JSON,
	OPT_KEEP,
	OPT_FORCE,
	OPT_GENTLE,
	OPT_STAT,
	OPT_NAMES,
	OPT_SINCE,
	OPT_WORKSPACE,
	OPT_LIVE,
	OPT_INSIDE,
};

#define WORKSPACE_OPT                                                                              \
	{                                                                                          \
		"workspace", 0, "DIR", "the directory that is meant (default: the current one)",   \
			OPT_WORKSPACE                                                              \
	}
#define ALL_OPT                                                                                    \
	{                                                                                          \
		"all", 'a', NULL, "with directories that .gitignore names and files of any size",  \
			OPT_ALL                                                                    \
	}

const struct opt checkpoint_opts[] = {
	{ "message", 'm', "TEXT", "what to call it in the list", OPT_MESSAGE },
	{ "live", 0, NULL,
	  "with the running machine, memory included (made with --engine vm --live)", OPT_LIVE },
	{ "inside", 0, NULL,
	  "record that the sandbox asked for it: 'undo' then never chooses it by itself",
	  OPT_INSIDE },
	ALL_OPT,
	WORKSPACE_OPT,
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt checkpoints_opts[] = {
	{ "keep", 0, "N", "remove all but the newest N and free what only they needed", OPT_KEEP },
	WORKSPACE_OPT,
	TABLE_OPTS("print JSON", "print the numbers only"),
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt restore_opts[] = {
	{ "force", 'f', NULL, "overwrite files edited since the sandbox ended", OPT_FORCE },
	{ "leave", 0, NULL, "leave such files as they are and restore the rest", OPT_GENTLE },
	ALL_OPT,
	WORKSPACE_OPT,
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt diff_opts[] = {
	{ "stat", 0, NULL, "one line per file", OPT_STAT },
	{ "name-only", 0, NULL, "only the names", OPT_NAMES },
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "since", 0, "CHECKPOINT",
	  "compare with this one (default: the newest; under review: the host's workspace)",
	  OPT_SINCE },
	ALL_OPT,
	WORKSPACE_OPT,
	{ NULL, 0, NULL, NULL, 0 },
};

struct args {
	const char *message, *workspace;
	bool is_all, as_json, is_forced, is_gentle, is_live;
	enum tree_kind kind;  /* of a checkpoint */
	struct table_how how; /* of the listing */
	enum show_form form;
	const char *since; /* a number, or what was said with -m */
	uint64_t keep;
	bool has_keep;
	char **words; /* NULL-ended */
};

static int take_opt(struct args *a, int id, const char *value, struct err *e)
{
	switch (id) {
	case OPT_MESSAGE:
		a->message = value;
		return strlen(value) < 1000
			       ? 0
			       : err_set(e, ERR_USAGE, EINVAL, "--message is too long");
	case OPT_ALL:
		a->is_all = true;
		return 0;
	case OPT_JSON:
		a->as_json = true;
		a->form = SHOW_JSON;
		return 0;
	case OPT_KEEP:
		a->has_keep = true;
		return num_parse(value, 1, 1000000, &a->keep, e) < 0
			       ? err_wrap(e, -EINVAL, "--keep")
			       : 0;
	case OPT_FORCE:
		a->is_forced = true;
		return 0;
	case OPT_GENTLE:
		a->is_gentle = true;
		return 0;
	case OPT_STAT:
		a->form = SHOW_STAT;
		return 0;
	case OPT_NAMES:
		a->form = SHOW_NAMES;
		return 0;
	case OPT_SINCE:
		a->since = value;
		return 0;
	case OPT_WORKSPACE:
		a->workspace = value;
		return 0;
	case OPT_LIVE:
		a->is_live = true;
		return 0;
	case OPT_INSIDE:
		a->kind = TREE_INSIDE;
		return 0;
	default:
		bug_on(true);
		return 0;
	}
}

/* Options may stand before or behind the words. */
static int parse(struct args *a, const struct opt *table, int argc, char **argv, struct err *e)
{
	struct opts o;
	size_t n = 0;
	int id, r = 0;

	*a = (struct args){ .message = "", .form = SHOW_PATCH, .kind = TREE_MANUAL };
	a->words = mem_new((size_t)argc + 1, sizeof(*a->words));
	opts_init(&o, table, argc, argv);
	while (r == 0) {
		id = opts_next(&o, e);
		if (id < 0)
			return id;
		if (id > 0) {
			r = table_opt(&a->how, &o, id) ? 0 : take_opt(a, id, o.value, e);
			continue;
		}
		if (o.at >= argc)
			break;
		a->words[n++] = argv[o.at++];
	}
	return r;
}

static struct tree_options options(const struct args *a, struct tree_progress progress)
{
	struct tree_options o = { .with_ignored = a->is_all,
				  .max_file = a->is_all ? 0 : UNDO_FILE_MAX,
				  .max_new = a->is_all ? 0 : UNDO_NEW_MAX,
				  .progress = progress };

	return o;
}

/* ---- telling ---- */

void cli_format_time(uint64_t ns, char *out, size_t size)
{
	time_t t = (time_t)(ns / NS_PER_SEC);
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL || strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)snprintf(out, size, "-");
}

static void say_resumed(const struct undone *d)
{
	_free_ char *text =
		mem_fmt("an earlier restore of checkpoint %llu had been cut off; it is "
			"finished now (%llu written, %llu removed, %llu left alone)",
			(unsigned long long)d->target, (unsigned long long)d->sum.written,
			(unsigned long long)d->sum.removed,
			(unsigned long long)d->sum.conflicts + d->sum.kept);

	cli_complain(text);
}

/* Opens what is meant; what an earlier command left unfinished is finished first. */
static int begin(struct spot *s, const struct args *a, bool wants_review, char *const **words,
		 struct err *e)
{
	struct undone resumed;
	int r = spot_open(s, a->workspace, wants_review, words, e);

	if (r == 0 && !s->is_review) {
		r = undo_resume(&s->undo, &resumed, e);
		if (r > 0)
			say_resumed(&resumed);
	}
	return r < 0 ? r : 0;
}

static int no_more(char *const *words, struct err *e)
{
	if (words[0] == NULL)
		return 0;
	return err_set(e, ERR_NOTFOUND, ENOENT,
		       "there is no sandbox '%.64s'; 'vitrine ls' lists them", words[0]);
}

/* ---- checkpoint ---- */

/* What else was saved, and what it cost. */
struct also {
	const char *home; /* of this sandbox; NULL: of none */
	uint64_t still_ms;
	const struct machine *machine; /* NULL: it was not asked for */
};

static void print_saved(const struct tree_saved *s, const struct also *also, bool as_json)
{
	char size[32];

	if (as_json) {
		(void)printf("{\"checkpoint\":%llu,\"files\":%llu,\"read\":%llu,\"bytes_added\":%"
			     "llu,"
			     "\"left_out\":%llu,\"unsaved\":%llu,\"gitignore_cut\":%s,"
			     "\"unchanged\":%s,\"home\":%s,"
			     "\"paused_ms\":%llu",
			     (unsigned long long)s->id, (unsigned long long)s->files,
			     (unsigned long long)s->new_files, (unsigned long long)s->new_bytes,
			     (unsigned long long)s->left_out, (unsigned long long)s->unsaved,
			     s->is_ignore_cut ? "true" : "false", s->is_same ? "true" : "false",
			     also->home ? "true" : "false", (unsigned long long)also->still_ms);
		if (also->machine)
			machine_print(also->machine, true);
		(void)printf("}\n");
		return;
	}
	progress_size(s->new_bytes, size, sizeof(size));
	(void)printf("checkpoint %llu: %llu files, %llu new or changed (%s added)\n",
		     (unsigned long long)s->id, (unsigned long long)s->files,
		     (unsigned long long)s->new_files, size);
	if (also->home)
		(void)printf("  with the home of '%s' and what was installed there\n", also->home);
	if (also->machine)
		machine_print(also->machine, false);
	if (also->still_ms)
		(void)printf("  what runs there stood still for %llu ms\n",
			     (unsigned long long)also->still_ms);
	if (s->left_out)
		(void)printf("  %llu directories left out: ignored by .gitignore or not readable "
			     "(--all takes the ignored ones)\n",
			     (unsigned long long)s->left_out);
	if (s->is_ignore_cut)
		(void)printf("  the .gitignore files are too long or too costly to follow; "
			     "directories "
			     "that only the rest of them names were saved\n");
	if (s->unsaved)
		(void)printf("  %llu files not saved: over the size cap or not readable (--all "
			     "lifts the cap)\n",
			     (unsigned long long)s->unsaved);
}

static struct tree_note note_of(struct spot *s, const struct args *a)
{
	return (struct tree_note){ .root_fd = s->undo.fd,
				   .kind = a->kind,
				   .is_alone = undo_is_alone,
				   .arg = &s->undo,
				   .message = a->message,
				   .root = s->undo.root };
}

/* The machine and its files, at one moment. */
static int checkpoint_live(struct spot *s, const struct args *a, struct err *e)
{
	_cleanup_(machine_close) struct machine m = MACHINE_NONE;
	uint64_t last;
	struct tree_options o = options(a, progress_show(&last));
	struct tree_note note = note_of(s, a);
	struct tree_saved saved = { 0 };
	struct also also = { .machine = &m };
	int r = machine_save(&m, s, e);

	if (r == 0)
		r = tree_checkpoint(s->undo.store, &note, &o, &saved, NULL, e);
	progress_end(last);
	if (r == 0)
		r = whole_checkpoint_still(s, saved.id, a->message, e);
	if (r == 0)
		r = machine_keep(&m, s, saved.id, &also.still_ms, e);
	if (r < 0)
		return r;
	also.home = s->sandbox;
	spot_tell(s, false, saved.id, saved.files, saved.new_bytes);
	print_saved(&saved, &also, a->as_json);
	return 0;
}

static int checkpoint(struct spot *s, const struct args *a, struct err *e)
{
	uint64_t last;
	struct tree_options o = options(a, progress_show(&last));
	struct tree_note note = note_of(s, a);
	struct tree_saved saved = { 0 };
	struct also also = { 0 };
	struct still still;
	bool with_home = false;
	int r = still_begin(&still, s, e);

	if (r < 0)
		return r;
	r = tree_checkpoint(s->undo.store, &note, &o, &saved, NULL, e);
	also.still_ms = still_end(&still);
	progress_end(last);
	if (r == 0)
		r = whole_checkpoint(s, saved.id, a->message, &with_home, e);
	if (r < 0)
		return r;
	also.home = with_home ? s->sandbox : NULL;
	spot_tell(s, false, saved.id, saved.files, saved.new_bytes);
	print_saved(&saved, &also, a->as_json);
	return 0;
}

int cmd_checkpoint(int argc, char **argv, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	struct args a;
	char *const *words = NULL;
	int r = parse(&a, checkpoint_opts, argc, argv, e);

	words = a.words;
	if (r == 0)
		r = begin(&s, &a, false, &words, e);
	if (r == 0)
		r = no_more(words, e);
	if (r == 0 && s.is_review)
		r = review_cli_checkpoint(&s, a.kind, a.message, a.is_live, a.as_json, e);
	else if (r == 0)
		r = a.is_live ? checkpoint_live(&s, &a, e) : checkpoint(&s, &a, e);
	free(a.words);
	return r;
}

/* ---- checkpoints ---- */

static int prune(struct spot *s, uint64_t keep, struct err *e)
{
	uint64_t removed = 0, freed = 0;
	char size[32];
	int r = undo_prune(&s->undo, keep, &removed, &freed, e);

	if (r == 0)
		r = whole_prune(s, e);
	if (r == 0)
		r = machine_prune(s, e);
	if (r < 0)
		return r;
	progress_size(freed, size, sizeof(size));
	(void)printf("removed %llu checkpoints, freed %s\n", (unsigned long long)removed, size);
	return 0;
}

int cmd_checkpoints(int argc, char **argv, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	struct args a;
	char *const *words = NULL;
	int r = parse(&a, checkpoints_opts, argc, argv, e);

	words = a.words;
	if (r == 0)
		r = begin(&s, &a, false, &words, e);
	if (r == 0)
		r = no_more(words, e);
	if (r == 0 && a.has_keep)
		r = s.is_review ? review_cli_prune(&s, a.keep, e) : prune(&s, a.keep, e);
	else if (r == 0)
		r = points_list(&s, &a.how, e);
	free(a.words);
	return r;
}

/* ---- restore, undo ---- */

static void say_conflict(void *arg, const char *path, const char *why)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	buf_puts(&b, "kept ");
	buf_esc(&b, path, strlen(path));
	buf_printf(&b, ": %s", why);
	(void)fprintf(stderr, "%s\n", buf_cstr(&b));
}

/* `home`: of which sandbox it came back as well; NULL: of none. `is_live`: and its machine. */
static int report_restore(const struct undone *d, const char *home, bool is_live, bool as_json,
			  struct err *e)
{
	if (d->host_edits > 0)
		return err_set(e, ERR_CONFLICT, EEXIST,
			       "%llu files above were edited since the sandbox ended, on the host "
			       "or by a run without a name, which saves nothing before it starts; "
			       "so nothing was changed; --leave restores the rest, --force "
			       "overwrites them (the present is saved first)",
			       (unsigned long long)d->host_edits);
	if (as_json)
		(void)printf("{\"checkpoint\":%llu,\"present\":%llu,\"written\":%llu,\"removed\":%"
			     "llu,"
			     "\"kept\":%llu,\"refused\":%llu,\"conflicts\":%llu,\"home\":%s,"
			     "\"live\":%s,\"skipped\":%llu}\n",
			     (unsigned long long)d->target, (unsigned long long)d->present,
			     (unsigned long long)d->sum.written, (unsigned long long)d->sum.removed,
			     (unsigned long long)d->sum.kept, (unsigned long long)d->refused,
			     (unsigned long long)d->sum.conflicts, home ? "true" : "false",
			     is_live ? "true" : "false", (unsigned long long)d->skipped);
	else
		(void)printf("back at checkpoint %llu: %llu written, %llu removed, %llu left "
			     "alone%s\n"
			     "what was there is checkpoint %llu; 'vitrine restore %s%s%llu' takes "
			     "this "
			     "back\n",
			     (unsigned long long)d->target, (unsigned long long)d->sum.written,
			     (unsigned long long)d->sum.removed,
			     (unsigned long long)d->sum.kept + d->sum.conflicts,
			     is_live ? "; the machine goes on from there"
			     : home  ? "; the home is back too"
				     : "",
			     (unsigned long long)d->present, home ? home : "", home ? " " : "",
			     (unsigned long long)d->present);
	return d->sum.conflicts + d->refused ? 1 : 0;
}

/* The newest that was given this text by somebody outside: the inside chooses the text of its own. */
static uint64_t find_said(struct spot *s, const char *text)
{
	_free_ uint64_t *ids = NULL;
	struct err ignored;
	size_t n = 0;

	for (size_t i = s->is_review ? s->review.layers.n_points : 0; i-- > 0;)
		if (s->review.layers.points[i].kind != TREE_INSIDE &&
		    str_eq(s->review.layers.points[i].message, text))
			return s->review.layers.points[i].id;
	if (s->is_review || store_list(s->undo.store, &ids, &n, &ignored) < 0)
		return 0;
	for (size_t i = n; i-- > 0;) {
		_cleanup_(tree_index_done) struct tree_index x = { 0 };

		if (store_load(s->undo.store, ids[i], &x, &ignored) == 0 && x.kind != TREE_INSIDE &&
		    str_eq(x.message, text))
			return ids[i];
	}
	return 0;
}

/* A checkpoint is meant by its number or by the text it was given. */
static int find_point(struct spot *s, const char *word, uint64_t *ret, struct err *e)
{
	struct err ignored;

	if (num_parse(word, 1, INT64_MAX, ret, &ignored) == 0)
		return 0;
	*ret = word[0] ? find_said(s, word) : 0;
	return *ret ? 0
		    : err_set(e, ERR_NOTFOUND, ENOENT,
			      "'%.80s' is neither the number of a checkpoint nor the text of one; "
			      "'vitrine checkpoints' lists them",
			      word);
}

/* The rest of a checkpoint with a machine: its home, and the machine itself, which is whose lock we have until now. */
static int go_on(struct spot *s, const struct undone *done, struct err *e)
{
	bool with_home = false;
	int r = machine_home_back(s, done->target, e);

	if (r == 0)
		r = whole_restore(s, done->target, done->present, &with_home, e);
	/* A start wants both: the sandbox's lock, and the one of the checkpoints. */
	def_let_go(&s->owned);
	undo_close(&s->undo);
	if (r == 0)
		r = machine_start(s, done->target, e);
	return r < 0 ? err_wrap(e, r, "the workspace is back, the machine does not go on") : 0;
}

/* A run that changed nothing: its checkpoint is as the present, and the one before it is meant. */
static void say_skipped(struct spot *s, const struct undone *d)
{
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	struct err ignored = ERR_INIT;
	char when[32];

	if (d->skipped == 0 || d->skipped <= d->target ||
	    store_load(s->undo.store, d->skipped, &x, &ignored) < 0)
		return;
	cli_format_time(x.created, when, sizeof(when));
	buf_puts(&b, "skipped: nothing changed since checkpoint ");
	buf_printf(&b, "%llu of %s", (unsigned long long)d->skipped, when);
	if (x.message && x.message[0]) {
		buf_puts(&b, ", '");
		buf_esc(&b, x.message, strlen(x.message));
		buf_putc(&b, '\'');
	}
	(void)printf("%s\n", buf_cstr(&b));
}

/* Which run it was: its checkpoint is called "before NAME". */
static void say_since(struct spot *s, const struct undone *d)
{
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	struct err ignored = ERR_INIT;
	char when[32];

	if (store_load(s->undo.store, d->target, &x, &ignored) < 0)
		return;
	cli_format_time(x.created, when, sizeof(when));
	buf_printf(&b, "taken back: all since %s", when);
	if (x.message && x.message[0]) {
		buf_puts(&b, ", '");
		buf_esc(&b, x.message, strlen(x.message));
		buf_putc(&b, '\'');
	}
	(void)printf("%s\n", buf_cstr(&b));
}

static int restore_in_place(const struct args *a, uint64_t id, char *const *words, struct spot *s,
			    struct err *e)
{
	struct tree_options o = options(a, (struct tree_progress){ 0 });
	struct undo_wish w = { .is_forced = a->is_forced,
			       .is_gentle = a->is_gentle,
			       .say = a->as_json ? NULL : say_conflict };
	struct undone done = { 0 };
	char **paths = NULL;
	bool with_home = false, is_live = false;
	int r = spot_paths(s, words, &paths, e);

	is_live = r == 0 && paths == NULL && id && machine_bytes(s, id) > 0;
	if (is_live) /* the machine that runs would write on */
		r = spot_own(s, e);
	w.only = paths;
	w.newest = paths ? 0 : whole_target(s);
	if (r == 0)
		r = undo_restore(&s->undo, id, &o, &w, &done, e);
	if (r == 0 && done.host_edits == 0 && paths == NULL)
		r = is_live ? go_on(s, &done, e)
			    : whole_restore(s, done.target, done.present, &with_home, e);
	if (r == 0 && done.host_edits == 0 && id == 0 && !a->as_json) {
		say_skipped(s, &done);
		say_since(s, &done);
	}
	spot_paths_free(paths);
	if (r >= 0 && done.host_edits == 0)
		spot_tell(s, true, done.target, done.sum.written + done.sum.removed, 0);
	return r < 0 ? r
		     : report_restore(&done, with_home || is_live ? s->sandbox : NULL, is_live,
				      a->as_json, e);
}

static int restore(const struct args *a, bool is_undo, char *const *words, struct spot *s,
		   struct err *e)
{
	uint64_t id = 0;
	int r = 0;

	if (!is_undo && words[0] == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "restore: which checkpoint? 'vitrine checkpoints' lists them");
	if (!is_undo)
		r = find_point(s, *words++, &id, e);
	if (r < 0)
		return r;
	if (!s->is_review)
		return restore_in_place(a, id, words, s, e);
	if (words[0])
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.64s': a sandbox under review goes back as a whole; "
			       "'vitrine discard' takes paths",
			       words[0]);
	return review_cli_restore(s, id, a->as_json, e);
}

static int cmd_back(int argc, char **argv, bool is_undo, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	struct args a;
	char *const *words = NULL;
	int r = parse(&a, restore_opts, argc, argv, e);

	words = a.words;
	if (r == 0)
		r = begin(&s, &a, false, &words, e);
	if (r == 0)
		r = restore(&a, is_undo, words, &s, e);
	free(a.words);
	return r;
}

int cmd_restore(int argc, char **argv, struct err *e)
{
	return cmd_back(argc, argv, false, e);
}

int cmd_undo(int argc, char **argv, struct err *e)
{
	return cmd_back(argc, argv, true, e);
}

/* ---- diff ---- */

/* Only what lies below one of the paths. */
static void narrow(struct changes *c, char *const *only)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (tree_is_among(only, c->v[i].b ? c->v[i].b->path : c->v[i].a->path))
			c->v[n++] = c->v[i];
	c->n = n;
}

/* File contents are foreign: to a terminal they go with their control characters shown, not obeyed. */
int cli_print_foreign(const struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf safe = BUF(4 * OUT_MAX);
	const char *p = buf_cstr(out), *end = p + out->n;

	if (out->is_over)
		return err_set(e, ERR_SYSTEM, EMSGSIZE,
			       "too much differs to be shown; try --stat or name some paths");
	if (!isatty(STDOUT_FILENO))
		return cli_print(out, e);
	while (p < end) {
		size_t n = strcspn(p, "\n\t");

		if (n == 0 && *p != '\n' && *p != '\t')
			n = 1; /* a NUL */
		buf_esc(&safe, p, n);
		p += n;
		if (p < end && (*p == '\n' || *p == '\t'))
			buf_putc(&safe, *p++);
	}
	return cli_print(&safe, e);
}

static const char *runs_note(void *arg, const struct change *c)
{
	(void)arg;
	return tree_runs(c);
}

static int diff(const struct args *a, char *const *words, struct spot *s, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	struct tree_options o = options(a, (struct tree_progress){ 0 });
	struct undo_diff d = { 0 };
	struct show show = { .form = a->form, .read = undo_read, .note = runs_note, .arg = &d };
	char **paths = NULL;
	uint64_t since = 0;
	int r = spot_paths(s, words, &paths, e);

	if (r == 0 && a->since)
		r = find_point(s, a->since, &since, e);
	if (r == 0)
		r = undo_compare(&s->undo, since, &o, &d, e);
	if (r == 0)
		r = changes_check(&d.changes, paths, s->undo.fd, e);
	if (r == 0) {
		narrow(&d.changes, paths);
		tree_show(&d.changes, &show, &out);
		r = cli_print_foreign(&out, e);
	}
	undo_diff_done(&d);
	spot_paths_free(paths);
	return r;
}

static int diff_review(const struct args *a, char *const *words, struct spot *s, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(OUT_MAX);
	uint64_t since = 0;
	int r = a->since ? find_point(s, a->since, &since, e) : 0;

	if (r == 0)
		r = since ? review_cli_diff_since(s, since, words, a->form, &out, e)
			  : review_cli_diff(s, words, a->form, &out, e);
	return r < 0 ? r : cli_print_foreign(&out, e);
}

int cmd_diff(int argc, char **argv, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	struct args a;
	char *const *words = NULL;
	int r = parse(&a, diff_opts, argc, argv, e);

	words = a.words;
	if (r == 0)
		r = begin(&s, &a, true, &words, e);
	if (r == 0)
		r = s.is_review ? diff_review(&a, words, &s, e) : diff(&a, words, &s, e);
	free(a.words);
	return r;
}
