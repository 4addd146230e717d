/* SPDX-License-Identifier: Apache-2.0 */
/* cli/review.c - apply, discard and fork; and diff, checkpoint, restore where changes wait in layers */
#include "cli/review.h"

#include "base/loop.h"
#include "base/sabotage.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/machine.h"
#include "cli/waits.h"
#include "git/git.h"
#include "tree/runs.h"

/* ---- diff ---- */

struct seen {
	struct waiting w;
	const struct review *r;
	char *why;  /* of the change that is being shown */
	bool moved; /* something was written while it was shown */
};

static void seen_done(struct seen *s)
{
	review_look_done(&s->w);
	free(s->why);
}

/* What is shown is what the token is made of: a file that is another one by now is not shown at all. */
static int read_content(void *arg, const struct tree_entry *en, bool is_new, struct buf *out)
{
	struct seen *s = arg;
	uint8_t sum[SHA256_BYTES];
	int r = overlay_read(&s->w.d, en, is_new, out);

	if (r < 0 || !is_new || en->flags & TREE_UNHASHED)
		return r;
	tree_hash_bytes(buf_cstr(out), out->n, sum);
	if (memcmp(sum, en->hash, sizeof(sum)) == 0)
		return 0;
	s->moved = true;
	return -ESTALE;
}

static const char *note(void *arg, const struct change *c)
{
	static const struct apply_wish all = { .with_links = true, .with_special = true };
	struct seen *s = arg;
	_free_ char *why = takeover_why(&s->w.t, c->b ? c->b->path : c->a->path);

	free(take(s->why));
	if (why) {
		s->why = mem_fmt("%s: programs on the host read or run this", why);
		return s->why;
	}
	if (c->b && c->b->flags & TREE_CLOSED)
		return "closed: what is in it cannot be seen";
	return review_refuses(s->r, &all, c, NULL) == REFUSED_CONFLICT ? "conflict: edited on the "
									 "host since the sandbox "
									 "began with it"
								       : tree_runs(c);
}

int review_refuse_clone(const struct spot *s, struct err *e)
{
	if (!s->is_clone)
		return 0;
	return err_set(e, ERR_USAGE, EINVAL,
		       "'%s' works in a clone of its own: 'vitrine fetch %s' takes its commits "
		       "out, then 'git diff HEAD vitrine/%s/BRANCH'",
		       s->sandbox, s->sandbox, s->sandbox);
}

static void narrow(struct changes *c, char *const *paths)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (tree_is_among(paths, c->v[i].b ? c->v[i].b->path : c->v[i].a->path))
			c->v[n++] = c->v[i];
	c->n = n;
}

/* Adds the token to what is printed. */
static void put_token(const struct spot *s, const struct shown *shown, bool has_paths,
		      enum show_form form, struct buf *out)
{
	char token[SHOWN_TOKEN_BYTES];

	shown_token(shown, token);
	if (form == SHOW_JSON && out->n > 2 && !out->is_over) {
		out->n -= 2; /* "}\n" */
		buf_printf(out, ",\"shown\":\"%s\"}\n", token);
	} else if (form == SHOW_PATCH || form == SHOW_STAT) {
		(void)fprintf(stderr, "to take over exactly this: vitrine apply --shown %s %s%s\n",
			      token, s->sandbox, has_paths ? " (and the same paths)" : "");
	}
}

/* Keeps the changes that `keeps` wants, shows them and remembers that they were shown. */
static int show_waiting(struct spot *s, struct seen *seen, char *const *paths, enum show_form form,
			struct buf *out, struct err *e)
{
	struct show show = { .form = form, .read = read_content, .note = note, .arg = seen };
	_cleanup_(shown_done) struct shown shown = { 0 };

	tree_show(&seen->w.d.changes, &show, out);
	if (seen->moved)
		return err_set(e, ERR_CONFLICT, EAGAIN,
			       "'%s' runs and wrote to files while they were shown; run the "
			       "command "
			       "again",
			       s->sandbox);
	if (out->is_over)
		return 0; /* the caller reports that it was not shown */
	shown_of(&seen->w.d.before, &seen->w.d.after, paths, &shown);
	put_token(s, &shown, paths != NULL, form, out);
	return review_remember_shown(&s->review, &shown, paths == NULL, e);
}

int review_cli_diff(struct spot *s, char *const *words, enum show_form form, struct buf *out,
		    struct err *e)
{
	_cleanup_(seen_done) struct seen seen = { .r = &s->review };
	char **paths = NULL;
	int r = review_refuse_clone(s, e);

	if (r == 0)
		r = spot_paths(s, words, &paths, e);
	if (r == 0)
		r = review_look(&s->review, paths, true, &seen.w, e);
	if (r == 0)
		r = changes_check(&seen.w.d.changes, paths, s->host.ws_fd, e);
	if (r == 0) {
		narrow(&seen.w.d.changes, paths);
		r = show_waiting(s, &seen, paths, form, out, e);
	}
	spot_paths_free(paths);
	return r;
}

static int read_since(void *arg, const struct tree_entry *en, bool is_new, struct buf *out)
{
	return overlay_since_read(arg, en, is_new, out);
}

int review_cli_diff_since(struct spot *s, uint64_t since, char *const *words, enum show_form form,
			  struct buf *out, struct err *e)
{
	const struct layers *l = &s->review.layers;
	const struct point *p = layers_point(l, since);
	struct overlay_since d = { 0 };
	struct show show = { .form = form, .read = read_since, .arg = &d };
	struct overlay then = { 0 };
	char **paths = NULL;
	int r = review_refuse_clone(s, e);

	if (r == 0 && p == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT, "'%s' has no checkpoint %llu", l->name,
			    (unsigned long long)since);
	if (r == 0)
		r = layers_open(l, &p->ws, s->review.overlay.base, &then, e);
	if (r == 0)
		r = spot_paths(s, words, &paths, e);
	if (r == 0)
		r = overlay_since(&then, &s->review.overlay, &d, e);
	if (r == 0)
		r = changes_check(&d.changes, paths, s->host.ws_fd, e);
	if (r == 0) {
		narrow(&d.changes, paths);
		tree_show(&d.changes, &show, out);
	}
	overlay_since_done(&d);
	layers_close(&then);
	spot_paths_free(paths);
	return r;
}

/* ---- checkpoints ---- */

static int reopen(struct spot *s, struct err *e)
{
	/* Who held the lock before us may have changed the layers. */
	review_close(&s->review);
	return review_open(&s->review, s->host.state_dir, s->sandbox, s->host.ws_fd, &s->policy, e);
}

static int own(struct spot *s, struct err *e)
{
	int r = spot_own(s, e);

	return r < 0 ? r : reopen(s, e);
}

/* While it runs: all inside stand still as long as we are connected. */
static int checkpoint_live(struct spot *s, enum tree_kind kind, const char *message, bool as_json,
			   struct err *e)
{
	struct keep_msg m = { .type = KEEP_PAUSE };
	_close_ int conn = keep_connect(s->host.state_dir, s->sandbox, e);
	uint64_t began = clock_now(), id = 0;
	int r = conn < 0 ? conn : client_ask(conn, &m, KEEP_DONE, e);

	if (r == 0)
		r = reopen(s, e);
	if (r == 0)
		r = layers_checkpoint_live(&s->review.layers, kind, message, &id, e);
	if (r < 0)
		return r;
	(void)printf(as_json ? "{\"checkpoint\":%llu,\"paused_ms\":%llu}\n"
			     : "checkpoint %llu; the sandbox stood still for %llu ms\n",
		     (unsigned long long)id,
		     (unsigned long long)((clock_now() - began) / NS_PER_MS));
	return 0;
}

/* And its machine with it. */
static int checkpoint_machine(struct spot *s, enum tree_kind kind, const char *message,
			      bool as_json, struct err *e)
{
	_cleanup_(machine_close) struct machine m = MACHINE_NONE;
	uint64_t id = 0, still_ms = 0;
	int r = machine_save(&m, s, e);

	if (r == 0)
		r = reopen(s, e);
	if (r == 0)
		r = layers_checkpoint_live(&s->review.layers, kind, message, &id, e);
	if (r == 0)
		r = machine_keep(&m, s, id, &still_ms, e);
	if (r < 0)
		return r;
	machine_prune_layers(s);
	spot_tell(s, false, id, 0, 0);
	(void)printf(as_json ? "{\"checkpoint\":%llu,\"paused_ms\":%llu"
			     : "checkpoint %llu; the sandbox stood still for %llu ms\n",
		     (unsigned long long)id, (unsigned long long)still_ms);
	machine_print(&m, as_json);
	if (as_json)
		(void)printf("}\n");
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): what was said on the command line, one by one */
int review_cli_checkpoint(struct spot *s, enum tree_kind kind, const char *message, bool is_live,
			  bool as_json, struct err *e)
{
	uint64_t id = 0;
	int r;

	if (is_live)
		return checkpoint_machine(s, kind, message, as_json, e);
	r = own(s, e);
	if (r == -EBUSY) {
		*e = ERR_INIT;
		return checkpoint_live(s, kind, message, as_json, e);
	}
	if (r == 0)
		r = layers_checkpoint(&s->review.layers, kind, message, 0, &id, e);
	if (r == 0)
		r = layers_merge(&s->review.layers, e);
	if (r < 0)
		return r;
	spot_tell(s, false, id, 0, 0);
	(void)printf(as_json ? "{\"checkpoint\":%llu}\n" : "checkpoint %llu\n",
		     (unsigned long long)id);
	return 0;
}

int review_cli_prune(struct spot *s, uint64_t keep, struct err *e)
{
	uint64_t removed = 0;
	int r = own(s, e);

	if (r == 0)
		r = layers_prune(&s->review.layers, keep, &removed, e);
	if (r == 0)
		machine_prune_layers(s);
	if (r == 0)
		(void)printf("removed %llu checkpoints\n", (unsigned long long)removed);
	return r;
}

/* The start wants the sandbox's lock. */
static int go_on(struct spot *s, uint64_t id, struct err *e)
{
	int r;

	def_let_go(&s->owned);
	r = machine_start(s, id, e);
	return r < 0 ? err_wrap(e, r, "its files are back, the machine does not go on") : 0;
}

int review_cli_restore(struct spot *s, uint64_t id, bool as_json, struct err *e)
{
	uint64_t present = 0;
	bool is_live = false;
	int r = own(s, e);

	if (r < 0)
		return r;
	is_live = id && machine_bytes(s, id) > 0;
	if (id == 0)
		id = layers_undo_target(&s->review.layers);
	if (id == 0)
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "'%s' has no checkpoint to go back to; 'vitrine discard %s' throws "
			       "all its changes away",
			       s->sandbox, s->sandbox);
	r = layers_restore(&s->review.layers, id, &present, e);
	if (r < 0)
		return r;
	spot_tell(s, true, id, 0, 0);
	if (is_live)
		r = go_on(s, id, e);
	if (r < 0)
		return r;
	if (as_json)
		(void)printf("{\"checkpoint\":%llu,\"present\":%llu,\"live\":%s}\n",
			     (unsigned long long)id, (unsigned long long)present,
			     is_live ? "true" : "false");
	else
		(void)printf("back at checkpoint %llu; what was there is checkpoint %llu%s\n",
			     (unsigned long long)id, (unsigned long long)present,
			     is_live ? "; the machine goes on from there" : "");
	return 0;
}

/* ---- apply, discard ---- */

enum { OPT_FORCE = 1, OPT_LINKS, OPT_SPECIAL, OPT_WORKSPACE, OPT_SHOWN, OPT_YES, OPT_DRY };

const struct opt apply_opts[] = {
	{ "force", 'f', NULL, "take the sandbox's version where the host's was edited too",
	  OPT_FORCE },
	{ "links", 0, NULL, "take symbolic links over as well", OPT_LINKS },
	{ "special", 0, NULL, "take named pipes over as well", OPT_SPECIAL },
	{ "shown", 0, "TOKEN", "only if what waits is what the 'diff' with this token showed",
	  OPT_SHOWN },
	{ "yes", 'y', NULL, "take over what waits now, shown or not", OPT_YES },
	{ "workspace", 0, "DIR", "the directory that is meant (default: the current one)",
	  OPT_WORKSPACE },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt discard_opts[] = {
	{ "force", 'f', NULL, "accepted; what is discarded stays as a checkpoint either way",
	  OPT_FORCE },
	{ "dry-run", 0, NULL, "only name the changes that would be discarded", OPT_DRY },
	{ "workspace", 0, "DIR", "the directory that is meant (default: the current one)",
	  OPT_WORKSPACE },
	{ NULL, 0, NULL, NULL, 0 },
};

static void say_kept(void *arg, const char *path, const char *why)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	buf_puts(&b, "not taken over: ");
	buf_esc(&b, path, strlen(path));
	(void)fprintf(stderr, "%s: %s\n", buf_cstr(&b), why);
}

/* Options may stand before and between the words. */
static int parse(struct opts *o, struct apply_wish *w, const char **workspace, char **words,
		 struct err *e)
{
	size_t n = 0;

	for (;;) {
		int id = opts_next(o, e);

		if (id < 0)
			return id;
		if (id == OPT_FORCE)
			w->is_forced = true;
		else if (id == OPT_LINKS)
			w->with_links = true;
		else if (id == OPT_SPECIAL)
			w->with_special = true;
		else if (id == OPT_SHOWN)
			w->shown = o->value;
		else if (id == OPT_YES)
			w->is_unseen = true;
		else if (id == OPT_DRY)
			w->is_dry = true;
		else if (id == OPT_WORKSPACE)
			*workspace = o->value;
		else if (o->at >= o->argc)
			return 0;
		else
			words[n++] = o->argv[o->at++];
	}
}

static int open_review(struct spot *s, const char *workspace, char *const **words, struct err *e)
{
	int r = spot_open(s, workspace, true, words, e);

	if (r == 0)
		r = review_refuse_clone(s, e);
	if (r == 0 && !s->is_review)
		r = err_set(e, ERR_NOTFOUND, ENOENT,
			    "no changes wait for review here; 'vitrine run --mode review' makes a "
			    "sandbox that keeps them back");
	return r;
}

/* When nothing is left to look at, the sandbox goes on from the host's files. */
static int clear_if_done(struct spot *s, struct err *e)
{
	struct err ignored;

	if (!review_is_done(&s->review) || own(s, &ignored) < 0)
		return 0;
	return layers_clear(&s->review.layers, e);
}

/* The changes that were never shown, or are others by now, stay in `c`. */
static void keep_unseen(const struct review *r, struct changes *c)
{
	_cleanup_(shown_done) struct shown shown = { 0 };
	size_t n = 0;

	review_shown(r, &shown);
	for (size_t i = 0; i < c->n; i++)
		if (!shown_has(&shown, &c->v[i]))
			c->v[n++] = c->v[i];
	c->n = n;
}

static int check_token(struct spot *s, const struct seen *seen, const struct apply_wish *w,
		       struct err *e)
{
	_cleanup_(shown_done) struct shown shown = { 0 };
	char token[SHOWN_TOKEN_BYTES];

	shown_of(&seen->w.d.before, &seen->w.d.after, w->paths, &shown);
	shown_token(&shown, token);
	if (str_eq(token, w->shown) || sabotaged("shown"))
		return 0;
	return err_set(e, ERR_CONFLICT, ESTALE,
		       "what waits in '%s' is not what was shown as %.40s; 'vitrine diff %s' shows "
		       "what is there now",
		       s->sandbox, w->shown, s->sandbox);
}

/* What is taken over was shown first. 0: go on. */
static int check_seen(struct spot *s, struct seen *seen, const struct apply_wish *w, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(256 * MIB);
	struct changes *c = &seen->w.d.changes;
	size_t n;
	int r;

	if (w->shown)
		return check_token(s, seen, w, e);
	narrow(c, w->paths);
	keep_unseen(&s->review, c);
	n = c->n;
	if (n == 0 || w->is_unseen || sabotaged("shown"))
		return 0;
	r = show_waiting(s, seen, w->paths, SHOW_PATCH, &out, e);
	if (r == 0)
		r = cli_print_foreign(&out, e);
	if (r < 0)
		return r;
	if (cli_is_agreed("take this over?"))
		return 0;
	return err_set(e, ERR_CONFLICT, ESTALE,
		       "%zu changes in '%s' were not shown before, or are others now; they are "
		       "shown "
		       "above and nothing was taken over. Run the command again to take them over "
		       "(--yes takes over what was not shown)",
		       n, s->sandbox);
}

/* All that waits there now, what no path named included; `refused` where that cannot be read. */
static uint64_t count_left(const struct spot *s, uint64_t refused)
{
	_cleanup_(waits_done) struct waits w = { 0 };

	waits_find(s->host.state_dir, s->sandbox, s->def.workspace, &w);
	return w.is_unknown ? refused : w.changes;
}

static int apply(struct spot *s, struct apply_wish *w, char *const *words, struct err *e)
{
	_cleanup_(seen_done) struct seen seen = { .r = &s->review };
	char **paths = NULL;
	struct applied done = { 0 };
	int r = spot_paths(s, words, &paths, e);

	w->paths = paths;
	w->say = say_kept;
	if (r == 0)
		r = review_look(&s->review, paths, false, &seen.w, e);
	if (r == 0)
		r = changes_check(&seen.w.d.changes, paths, s->host.ws_fd, e);
	if (r == 0)
		r = check_seen(s, &seen, w, e);
	if (r == 0)
		r = review_apply(&s->review, w, &seen.w, &done, e);
	if (r == 0)
		r = clear_if_done(s, e);
	spot_paths_free(paths);
	if (r < 0)
		return r;
	(void)printf("taken over: %llu written, %llu removed; left in the sandbox: %llu\n",
		     (unsigned long long)done.sum.written, (unsigned long long)done.sum.removed,
		     (unsigned long long)count_left(s, done.refused + done.sum.conflicts));
	return done.refused + done.sum.conflicts ? 1 : 0;
}

/* Names what the paths mean, if asked; a path that means nothing is an error. */
static int check_paths(const struct spot *s, char *const *paths, bool is_named, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(256 * MIB);
	struct show show = { .form = SHOW_NAMES };
	struct overlay_diff d = { 0 };
	int r = overlay_compare(&s->review.overlay, false, &d, e);

	if (r == 0)
		r = changes_check(&d.changes, paths, s->host.ws_fd, e);
	if (r == 0 && is_named) {
		narrow(&d.changes, paths);
		tree_show(&d.changes, &show, &out);
		r = cli_print_foreign(&out, e);
	}
	overlay_diff_done(&d);
	return r;
}

static int discard(struct spot *s, struct apply_wish *w, char *const *words, struct err *e)
{
	char **paths = NULL;
	uint64_t present = 0;
	int r = spot_paths(s, words, &paths, e);

	if (r == 0 && !w->is_dry)
		r = own(s, e);
	if (r == 0 && (paths || w->is_dry))
		r = check_paths(s, paths, w->is_dry, e);
	if (r == 0 && !w->is_dry)
		r = layers_discard(&s->review.layers, s->host.ws_fd, paths, &present, e);
	if (r == 0 && !w->is_dry)
		r = reopen(s, e);
	if (r == 0 && !w->is_dry)
		r = review_remember(&s->review, e);
	spot_paths_free(paths);
	if (r == 0 && !w->is_dry)
		(void)printf("discarded; 'vitrine restore %s %llu' brings it back\n", s->sandbox,
			     (unsigned long long)present);
	return r;
}

typedef int review_fn(struct spot *s, struct apply_wish *w, char *const *words, struct err *e);

static int on_review(int argc, char **argv, const struct opt *opts, review_fn *fn, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	_free_ char **words = mem_new((size_t)argc + 1, sizeof(*words));
	struct apply_wish w = { 0 };
	const char *workspace = NULL;
	char *const *rest = words;
	struct opts o;
	int r;

	opts_init(&o, opts, argc, argv);
	r = parse(&o, &w, &workspace, words, e);
	if (r == 0)
		r = open_review(&s, workspace, &rest, e);
	return r < 0 ? r : fn(&s, &w, rest, e);
}

int cmd_apply(int argc, char **argv, struct err *e)
{
	return on_review(argc, argv, apply_opts, apply, e);
}

int cmd_discard(int argc, char **argv, struct err *e)
{
	return on_review(argc, argv, discard_opts, discard, e);
}

/* ---- fork ---- */

static int copy_base(const struct spot *s, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", s->host.state_dir, name);
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (!s->review.has_base)
		return 0;
	return dir < 0 ? err_sys(e, "'%s'", path)
		       : tree_save(dir, REVIEW_BASE_FILE, &s->review.base, e);
}

/* The folder is nobody's sandbox until its definition is there, which comes last. */
static int fork_sandbox(struct spot *s, const char *name, struct err *e)
{
	_cleanup_(def_done) struct def d = { .name = mem_str(name),
					     .agent = mem_str(s->def.agent),
					     .workspace = mem_str(s->def.workspace) };
	_cleanup_(def_done) struct def there = { 0 };
	struct err ignored;
	int r;

	if (def_read(s->host.state_dir, name, &there, &ignored) == 0)
		return err_set(e, ERR_CONFLICT, EEXIST, "there is a sandbox '%s' already", name);
	for (size_t i = 0; i < s->def.n_flags; i++)
		def_add_flag(&d, s->def.flags[i]);
	r = spot_needs_layers(&s->host, &s->def,
			      e); /* what two have in common lies in layers from then on */
	if (r == 0)
		r = own(s, e);
	if (r == 0)
		r = layers_fork(&s->review.layers, name, e);
	if (r == 0)
		r = copy_base(s, name, e);
	if (r == 0)
		r = git_clone_fork(s->host.state_dir, s->sandbox, name, e);
	return r < 0 ? r : def_create(s->host.state_dir, &d, e);
}

int cmd_fork(int argc, char **argv, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	char *const *rest = argv + 1;
	int r;

	if (argc != 3)
		return err_set(e, ERR_USAGE, EINVAL,
			       "fork: which sandbox, and what is the new one's name? "
			       "'vitrine fork NAME NEW'");
	if (!def_is_name(argv[2]))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s' cannot be a name: letters, digits, '_', '.' and '-' only",
			       argv[2]);
	r = spot_open(&s, NULL, false, &rest, e);
	if (r == 0 && s.sandbox == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT,
			    "there is no sandbox '%.64s'; 'vitrine ls' lists them", argv[1]);
	if (r == 0)
		r = fork_sandbox(&s, argv[2], e);
	if (r == 0)
		(void)printf("%s\n", argv[2]);
	return r;
}
