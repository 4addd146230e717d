/* SPDX-License-Identifier: Apache-2.0 */
/* broker/git.c - requests about repositories: list, fetch, push
 *
 * A push, in order: rules, upstream's refs, the commits from inside, what kind of change each is, secrets in what is new,
 * a person where the rule wants one, the record, and only then git push. Each step can only end it.
 */
#include <sys/socket.h>

#include "broker/broker.h"

#define PUSHES_MAX 16

/* The URL of the request, and that some rule is about it. */
static int find_url(const struct broker *b, char **ret, const struct broker_rule **ret_rule,
		    struct err *e)
{
	_free_ char *url = b->req.n > 1 ? broker_url(b->req.words[1]) : NULL;

	*ret_rule = url ? broker_names(&b->rules, url) : NULL;
	if (*ret_rule == NULL)
		return err_set(e, ERR_DENIED, EPERM,
			       "no rule of the broker is about '%.200s'; broker.fetch and "
			       "broker.push in your policy list them",
			       b->req.n > 1 ? b->req.words[1] : "");
	*ret = take(url);
	return 0;
}

/* 3: not ours. */
int serve_about(struct broker *b)
{
	_free_ char *url = NULL;
	const struct broker_rule *rule;
	struct err e = ERR_INIT;

	return broker_end(b, find_url(b, &url, &rule, &e) < 0 ? 3 : 0);
}

/* Whatever rule names a secret for this repository. */
static const char *secret_for(const struct broker *b, const char *url)
{
	for (size_t i = 0; i < b->rules.n; i++) {
		const struct broker_rule *r = &b->rules.v[i];

		if ((r->kind == BROKER_FETCH || r->kind == BROKER_PUSH) && str_eq(r->url, url) &&
		    r->secret)
			return r->secret;
	}
	return NULL;
}

static int tell_reading(const char *word, const char *url, const struct broker_rule *rule,
			struct err *e)
{
	const char *const what[] = { "git", word, url, NULL };

	return broker_tell(
		&(struct told){
			.what = what, .verdict = "allow", .rule = rule->text, .message = "" },
		e);
}

int serve_list(struct broker *b, struct err *e)
{
	_cleanup_(buf_done) struct buf list = BUF(16 * MIB);
	_cleanup_(repo_close) struct repo r = { .lock = FD_NONE };
	const struct broker_rule *rule;
	_free_ char *url = NULL;
	int x = find_url(b, &url, &rule, e);

	if (x == 0)
		x = tell_reading("ls-remote", url, rule, e);
	if (x == 0)
		x = repo_open(&r, b, url, secret_for(b, url), e);
	if (x == 0)
		x = repo_list(&r, &list, e);
	if (x < 0)
		return x;
	for (char *p = list.p; p && *p; p++)
		if (*p == '\t')
			*p = ' ';
	x = list.n ? frame_send(b->conn, WIRE_RESULT, list.p, list.n) : 0;
	return x < 0 ? x : broker_end(b, 0);
}

int serve_fetch(struct broker *b, struct err *e)
{
	_cleanup_(repo_close) struct repo r = { .lock = FD_NONE };
	const struct broker_rule *rule;
	_free_ char *url = NULL;
	int x = find_url(b, &url, &rule, e);

	if (x == 0 && !broker_may_fetch(&b->rules, url))
		x = err_set(e, ERR_DENIED, EPERM,
			    "the broker may push to '%s' but not fetch from it (broker.fetch)",
			    url);
	if (x == 0)
		x = tell_reading("fetch", url, rule, e);
	if (x == 0)
		x = repo_open(&r, b, url, secret_for(b, url), e);
	if (x == 0)
		x = repo_update(&r, e);
	if (x < 0)
		return x;
	/* From here on nothing of ours may be said on the connection. */
	x = frame_send(b->conn, WIRE_CONNECT, NULL, 0);
	if (x == 0)
		x = repo_serve(&r, e);
	if (x < 0)
		*e = ERR_INIT;
	return x < 0 ? x : 0;
}

/* ---- push ---- */

struct push {
	struct broker *b;
	char *url;
	struct repo repo;
	struct buf list; /* upstream's refs */
	struct update v[PUSHES_MAX];
	const struct broker_rule *rules[PUSHES_MAX];
	char say[PUSHES_MAX][256];
	char *texts[PUSHES_MAX];
	char *olds[PUSHES_MAX];
	size_t n;
	bool is_dry;
};

static void push_done(struct push *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->texts[i]);
		free(p->olds[i]);
	}
	repo_close(&p->repo);
	buf_done(&p->list);
	free(p->url);
}

/* "[+]OID:REF", an OID or nothing. */
static int parse_spec(struct push *p, const char *text, struct err *e)
{
	char *copy = mem_str(text), *colon = strchr(copy, ':');
	bool is_forced = copy[0] == '+';
	struct update *u = &p->v[p->n];

	p->texts[p->n++] = copy;
	if (colon)
		*colon = '\0';
	if (colon == NULL || (copy[is_forced] && !is_oid(copy + is_forced)) ||
	    strchr(colon + 1, ':'))
		return err_set(e, ERR_DENIED, EINVAL, "not a push: '%.80s'", text);
	*u = (struct update){
		.old = "", .new = copy + is_forced, .ref = colon + 1, .is_forced = is_forced
	};
	for (size_t i = 0; i + 1 < p->n; i++)
		if (str_eq(p->v[i].ref, u->ref))
			return err_set(e, ERR_DENIED, EINVAL, "a ref is named twice");
	return 0;
}

static int parse_push(struct push *p, struct err *e)
{
	const struct request *req = &p->b->req;
	size_t at = 2;
	int x = 0;

	if (at < req->n && str_eq(req->words[at], "dry-run")) {
		p->is_dry = true;
		at++;
	}
	if (at >= req->n || !str_eq(req->words[at], "--") || at + 1 >= req->n ||
	    req->n - at - 1 > PUSHES_MAX)
		return err_set(e, ERR_DENIED, EINVAL, "a push names one to %d refs", PUSHES_MAX);
	for (at++; x == 0 && at < req->n; at++)
		x = parse_spec(p, req->words[at], e);
	return x;
}

/* What the upstream has under this name. */
static char *old_of(const struct push *p, const char *ref)
{
	_free_ char *key = mem_fmt("\t%s\n", ref);
	const char *at = p->list.n ? strstr(p->list.p, key) : NULL, *line = at;

	while (line && line > p->list.p && line[-1] != '\n')
		line--;
	return at ? mem_strn(line, (size_t)(at - line)) : mem_str("");
}

static bool is_refused(const struct push *p, size_t i)
{
	return p->say[i][0] != '\0';
}

/* Before anything is taken: refs that no rule would let through in any way. */
static bool is_any_possible(struct push *p)
{
	bool is_any = false;

	for (size_t i = 0; i < p->n; i++) {
		struct update u = p->v[i];

		/* The best that could be said of it. */
		u.is_ff = u.is_forced = true;
		if (u.new[0] == '\0' || u.old[0] == '\0' ||
		    broker_may_push(&p->b->rules, p->url, u.ref, BROKER_FORCE) == NULL)
			(void)decide_push(&p->b->rules, p->url, &u, p->say[i]);
		is_any |= !is_refused(p, i);
	}
	return is_any;
}

static int take_commits(struct push *p, struct err *e)
{
	const char *oids[PUSHES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		bool is_new = p->v[i].new[0] && !is_refused(p, i);

		for (size_t k = 0; k < n; k++)
			is_new &= !str_eq(oids[k], p->v[i].new);
		if (is_new)
			oids[n++] = p->v[i].new;
	}
	return n ? repo_take(&p->repo, oids, n, e) : 0;
}

/* Every object the upstream has a ref to; what it does not have of these is of no interest. */
static char **known_oids(const struct push *p)
{
	size_t n = 0, lines = 1;
	char **v;

	for (size_t i = 0; i < p->list.n; i++)
		lines += p->list.p[i] == '\n';
	v = mem_new(lines + 1, sizeof(*v));
	for (const char *s = buf_cstr(&p->list); *s;) {
		size_t len = strcspn(s, "\t\n"), all = strcspn(s, "\n");
		char *oid = mem_strn(s, len);

		if (is_oid(oid))
			v[n++] = oid;
		else
			free(oid);
		s += all + (s[all] == '\n');
	}
	return v;
}

/* Which of the upstream's commits do we have? rev-list would stop at the first it does not know. */
static int scan(struct push *p, size_t i, struct err *e)
{
	char **known = known_oids(p);
	int x = repo_scan(&p->repo, p->v[i].new, (const char *const *)known, e);

	for (char **v = known; *v; v++)
		free(*v);
	free(known);
	return x;
}

static int ask_person(struct push *p, size_t i, struct err *e)
{
	_cleanup_(buf_done) struct buf page = BUF(2 * MIB);
	const struct update *u = &p->v[i];
	_free_ char *title = mem_fmt("push to %s, %s", p->url, u->ref);
	int x = show_push(&p->repo, u, &page, e);

	return x < 0 ? err_wrap(e, x, "what would be pushed cannot be shown to a person")
		     : approve_wait(p->b, title, &page, e);
}

static void refuse_with(struct push *p, size_t i, const struct err *e)
{
	(void)snprintf(p->say[i], sizeof(p->say[i]), "%.250s", e->msg);
}

/* Everything there is to know about one ref, up to the decision. */
static void judge(struct push *p, size_t i)
{
	struct update *u = &p->v[i];
	struct err e = ERR_INIT;
	int x = 0;

	if (u->old[0] && u->new[0]) {
		x = repo_is_ancestor(&p->repo, u->old, u->new, &e);
		u->is_ff = x > 0;
	}
	if (x >= 0)
		p->rules[i] = decide_push(&p->b->rules, p->url, u, p->say[i]);
	if (p->rules[i] == NULL && x >= 0)
		return;
	if (x >= 0 && u->new[0] && !(p->rules[i]->op & BROKER_NO_SCAN))
		x = scan(p, i, &e);
	if (x >= 0 && p->rules[i]->op & BROKER_APPROVE && !p->is_dry)
		x = ask_person(p, i, &e);
	if (x < 0)
		refuse_with(p, i, &e);
}

static void push_one(struct push *p, size_t i)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB), errors = BUF(64 * KIB);
	const struct update *u = &p->v[i];
	_free_ char *spec = mem_fmt("%s:%s", u->new, u->ref),
		    *lease = mem_fmt("--force-with-lease=%s:%s", u->ref, u->old);
	bool is_hard = (u->old[0] && !u->is_ff) || u->new[0] == '\0';
	const char *const words[] = { "push",
				      "--porcelain",
				      "--no-verify",
				      "--no-recurse-submodules",
				      is_hard ? lease : "--no-force",
				      p->url,
				      spec,
				      NULL };
	const char *const what[] = { "git", "push", p->url, spec, NULL };
	struct err e = ERR_INIT;
	char *end;
	struct told t = {
		.what = what, .verdict = "allow", .rule = p->rules[i]->text, .message = ""
	};
	int x = broker_tell(&t, &e);

	if (x == 0)
		x = repo_git(&p->repo, words, true, &out, &errors, &e);
	if (x > 0) {
		/* git's own line about the ref: "!\tSRC:DST\t[rejected] (why)". */
		const char *bang = out.n ? strstr(out.p, "!\t") : NULL,
			   *why = bang ? strrchr(bang, '\t') : NULL;

		end = errors.n ? strchr(errors.p, '\n') : NULL;
		if (end)
			*end = '\0';
		(void)err_set(&e, ERR_DENIED, EIO, "%.240s",
			      why        ? why + 1
			      : errors.n ? errors.p
					 : "the remote refused it");
		end = strchr(e.msg, '\n');
		if (end)
			*end = '\0';
	}
	if (x != 0)
		refuse_with(p, i, &e);
	t.has_status = true;
	t.status = x < 0 ? 125 : x;
	t.message = x ? p->say[i] : "done";
	(void)broker_tell(&t, &e);
}

static void put_result(struct push *p, size_t i, struct buf *out)
{
	if (!is_refused(p, i)) {
		buf_printf(out, "ok %s\n", p->v[i].ref);
		return;
	}
	buf_printf(out, "error %s ", p->v[i].ref);
	buf_esc(out, p->say[i], strlen(p->say[i]));
	buf_putc(out, '\n');
}

static void tell_refusal(struct push *p, size_t i)
{
	_free_ char *spec =
		mem_fmt("%s%s:%s", p->v[i].is_forced ? "+" : "", p->v[i].new, p->v[i].ref);
	struct err ignored = ERR_INIT;

	(void)broker_tell(
		&(struct told){ .what = (const char *const[]){ "git", "push", p->url, spec, NULL },
				.verdict = "deny",
				.rule = "",
				.message = p->say[i] },
		&ignored);
}

static int push_all(struct push *p, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	int x;

	for (size_t i = 0; i < p->n; i++)
		p->v[i].old = p->olds[i] = old_of(p, p->v[i].ref);
	if (is_any_possible(p)) {
		x = take_commits(p, e);
		if (x < 0)
			return x;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (!is_refused(p, i))
			judge(p, i);
		if (is_refused(p, i))
			tell_refusal(p, i);
		else if (!p->is_dry)
			push_one(p, i);
		put_result(p, i, &out);
	}
	x = frame_send(p->b->conn, WIRE_RESULT, out.p, out.n);
	return x < 0 ? x : broker_end(p->b, 0);
}

int serve_push(struct broker *b, struct err *e)
{
	_cleanup_(push_done) struct push p = { .b = b,
					       .repo = { .lock = FD_NONE },
					       .list = BUF(16 * MIB) };
	const struct broker_rule *rule;
	int x = find_url(b, &p.url, &rule, e);

	if (x == 0)
		x = parse_push(&p, e);
	if (x == 0)
		x = repo_open(&p.repo, b, p.url, secret_for(b, p.url), e);
	if (x == 0)
		x = repo_list(&p.repo, &p.list, e);
	return x < 0 ? x : push_all(&p, e);
}
