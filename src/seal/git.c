/* SPDX-License-Identifier: Apache-2.0 */
/* seal/git.c - see git.h
 *
 * Smart HTTP is four requests: info/refs for either service, and a POST for each. The repository is in the path, the
 * refs of a push are pkt-lines at the start of the body, before the pack. Fetching is judged by repository alone, so
 * protocol versions 0, 1 and 2 are one to us. A push is judged as a whole: one refused ref and nothing is forwarded,
 * and the answer is the report git expects, so that git prints the reason beside each ref.
 */
#include "seal/git.h"
#include "seal/pkt.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

/* ---- what a request is */

static bool ends_with(struct str s, const char *end, struct str *ret_before)
{
	size_t n = strlen(end);

	if (s.n < n || memcmp(s.p + s.n - n, end, n) != 0)
		return false;
	*ret_before = str_first(s, s.n - n);
	return true;
}

static struct str before_word(struct str path, const char *word)
{
	const char *at = memmem(path.p, path.n, word, strlen(word));

	return str_first(path, at ? (size_t)(at - path.p) : path.n);
}

/* Is one of git's words in the path in another spelling, which a server that minds neither case nor a slash at the end takes
 * for the word itself? */
static bool has_odd_word(struct str path)
{
	static const char *const words[] = { "/info/refs/",        "/git-upload-pack/",
					     "/git-receive-pack/", "/git-upload-archive/",
					     "/info/lfs/",         "/objects/" };
	_cleanup_(buf_done) struct buf plain = BUF(path.n + 1);

	for (size_t i = 0; i < path.n; i++)
		buf_putc(&plain, (char)(path.p[i] >= 'A' && path.p[i] <= 'Z' ? path.p[i] | 0x20
									     : path.p[i]));
	if (path.n == 0 || path.p[path.n - 1] != '/')
		buf_putc(&plain, '/');
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(plain.p, plain.n, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Components of plain characters: what the server's path decoder would make of anything else is its secret. */
static int check_repo_path(struct str s, struct err *e)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_.~+@";
	size_t component = 0;

	if (s.n < 2 || s.p[0] != '/')
		return bad(e, "a git request without a repository");
	for (size_t i = 1; i <= s.n; i++) {
		if (i == s.n || s.p[i] == '/') {
			const char *c = s.p + i - component;

			if (component == 0 || (component == 1 && c[0] == '.') ||
			    (component == 2 && c[0] == '.' && c[1] == '.'))
				return bad(e, "the path of a git request has an empty, '.' or '..' "
					      "part");
			component = 0;
		} else if (strchr(plain, s.p[i]) == NULL) {
			return bad(e, "the path of a git request holds '%c'", s.p[i]);
		} else {
			component++;
		}
	}
	return 0;
}

static int set_repo(const char *host, struct str path, struct git_request *q, struct err *e)
{
	int r = check_repo_path(path, e);

	if (r < 0)
		return r;
	if (path.n > 5 && memcmp(path.p + path.n - 4, ".git", 4) == 0)
		path.n -= 4;
	if (strlen(host) + path.n >= sizeof(q->repo))
		return bad(e, "the path of a git request is too long");
	(void)snprintf(q->repo, sizeof(q->repo), "%s%.*s", host, (int)path.n, path.p);
	return 0;
}

/* The kind of a path and query, and what of it names the repository; GIT_KIND_COUNT_ for the dumb protocol and for git's words
 * in another spelling. */
static enum git_kind kind_of(struct str path, struct str query, struct str *ret_repo)
{
	if (ends_with(path, "/info/refs", ret_repo)) {
		if (str_is(query, "service=git-upload-pack"))
			return GIT_FETCH;
		return str_is(query, "service=git-receive-pack") ? GIT_PUSH_REFS : GIT_KIND_COUNT_;
	}
	if (ends_with(path, "/git-upload-pack", ret_repo))
		return query.n == 0 ? GIT_FETCH : GIT_KIND_COUNT_;
	if (ends_with(path, "/git-receive-pack", ret_repo))
		return query.n == 0 ? GIT_PUSH : GIT_KIND_COUNT_;
	*ret_repo = before_word(path, "/info/lfs/");
	if (ret_repo->n < path.n)
		return GIT_LFS;
	return has_odd_word(path) ? GIT_KIND_COUNT_ : GIT_NOT;
}

/* The words that make a path git's, hidden behind an encoding: %67it-receive-pack. */
static bool hides_service(struct str path)
{
	return str_find(path, '%') < path.n || str_find(path, '\\') < path.n ||
	       str_find(path, ';') < path.n;
}

int git_classify(const char *host, struct str method, struct str target, struct git_request *ret,
		 struct err *e)
{
	size_t mark = str_find(target, '?');
	struct str path = str_first(target, mark), repo = path;
	struct str query = str_from(target, mark < target.n ? mark + 1 : mark);
	bool is_post = str_is(method, "POST");
	struct git_request q = { 0 };
	int r;

	q.kind = kind_of(path, query, &repo);
	if (q.kind == GIT_KIND_COUNT_)
		return bad(e,
			   "git's dumb protocol and other ways to the objects of a repository are "
			   "closed on %s, which has git rules",
			   host);
	if (q.kind == GIT_NOT && is_post && hides_service(path))
		return bad(e, "a POST to %s, which has git rules, with an encoded path", host);
	if ((q.kind == GIT_PUSH && !is_post) || (q.kind == GIT_PUSH_REFS && is_post))
		return bad(e, "not a method for this request of git");
	if (q.kind != GIT_NOT) {
		r = set_repo(host, repo, &q, e);
		if (r < 0)
			return r;
	}
	*ret = q;
	return 0;
}

/* ---- decisions */

int git_judge(const struct git_rules *r, const struct git_request *q, struct err *e)
{
	switch (q->kind) {
	case GIT_NOT:
		return 0;
	case GIT_FETCH:
		return git_may_fetch(r, q->repo) ? 0
						 : err_set(e, ERR_DENIED, EACCES,
							   "fetching %s is not listed; git.fetch "
							   "[\"%s\"] would allow it",
							   q->repo, q->repo);
	case GIT_PUSH_REFS:
	case GIT_PUSH:
		return git_may_push_any(r, q->repo) ? 0
						    : err_set(e, ERR_DENIED, EACCES,
							      "pushing to %s is not listed; "
							      "git.push "
							      "[\"%s:refs/heads/BRANCH\"] would "
							      "allow "
							      "it",
							      q->repo, q->repo);
	case GIT_LFS:
		return git_may_fetch(r, q->repo) && git_may_push_any(r, q->repo)
			       ? 0
			       : err_set(e, ERR_DENIED, EACCES,
					 "large files of %s need both a git.fetch and a git.push "
					 "rule: their requests do not say which of the two they "
					 "are",
					 q->repo);
	case GIT_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return -EACCES;
}

void git_push_init(struct git_push *p, const struct git_rules *rules, const char *repo)
{
	*p = (struct git_push){ .rules = rules,
				.repo = mem_str(repo),
				.in = BUF(GIT_COMMANDS_BYTES + PKT_MAX) };
}

void git_push_done(struct git_push *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].ref);
	free(p->v);
	free(p->repo);
	buf_done(&p->in);
	*p = (struct git_push){ 0 };
}

/* Hex digits of an object name, 40 or 64 of them; *ret_zero: the name of nothing. */
static bool is_object(struct str s, bool *ret_zero)
{
	*ret_zero = true;
	for (size_t i = 0; i < s.n; i++) {
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
		*ret_zero &= s.p[i] == '0';
	}
	return s.n == 40 || s.n == 64;
}

/* What git itself takes for a ref, and nothing a terminal or a path could take for something else. */
static bool is_ref(struct str s)
{
	if (!str_has_prefix(s, "refs/") || s.n > 1000 || s.p[s.n - 1] == '/')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7f || strchr("~^:?*[\\", (char)c) ||
		    (i > 0 && ((c == '.' && s.p[i - 1] == '.') || (c == '/' && s.p[i - 1] == '/'))))
			return false;
	}
	return true;
}

static bool has_capability(struct str caps, const char *name)
{
	while (caps.n > 0) {
		size_t space = str_find(caps, ' ');

		if (str_is(str_first(caps, space), name))
			return true;
		caps = str_from(caps, space < caps.n ? space + 1 : space);
	}
	return false;
}

static void take_capabilities(struct git_push *p, struct str *line)
{
	size_t nul = str_find(*line, '\0');
	struct str caps = str_from(*line, nul < line->n ? nul + 1 : nul);

	if (caps.n > 0 && caps.p[caps.n - 1] == '\n')
		caps.n--;
	p->has_report = has_capability(caps, "report-status") || has_capability(caps, "report-"
										      "status-v2");
	p->has_sideband = has_capability(caps, "side-band-64k");
	*line = str_first(*line, nul);
	p->has_first = true;
}

static int take_command(struct git_push *p, struct str line, struct err *e)
{
	struct git_command c = { 0 };
	struct str old, new, ref;
	bool is_old_zero, is_new_zero;

	if (line.n > 0 && line.p[line.n - 1] == '\n')
		line.n--;
	old = str_first(line, str_find(line, ' '));
	line = str_from(line, old.n < line.n ? old.n + 1 : old.n);
	new = str_first(line, str_find(line, ' '));
	ref = str_from(line, new.n < line.n ? new.n + 1 : new.n);
	if (!is_object(old, &is_old_zero) || !is_object(new, &is_new_zero) || old.n != new.n ||
	    !is_ref(ref) || (is_old_zero && is_new_zero))
		return bad(e, "a command of a push is malformed");
	c.op = is_old_zero ? GIT_CREATE : is_new_zero ? GIT_DELETE : GIT_UPDATE;
	if (p->n == GIT_COMMANDS_MAX)
		return err_set(e, ERR_DENIED, EMSGSIZE, "a push of more than %d refs",
			       GIT_COMMANDS_MAX);
	c.ref = mem_strn(ref.p, ref.n);
	c.is_allowed = git_may_push(p->rules, p->repo, c.ref, c.op);
	p->n_refused += !c.is_allowed;
	vec_reserve(p->v, p->n, p->cap);
	p->v[p->n++] = c;
	return 0;
}

static int take_line(struct git_push *p, struct str line, struct err *e)
{
	if (str_has_prefix(line, "shallow ") && p->n == 0)
		return 0;
	if (str_has_prefix(line, "push-cert"))
		return bad(e, "signed pushes are not understood here; push without --signed");
	if (!p->has_first)
		take_capabilities(p, &line);
	else if (str_find(line, '\0') < line.n)
		return bad(e, "a command of a push is malformed");
	return take_command(p, line, e);
}

int git_push_feed(struct git_push *p, const char *data, size_t n, struct err *e)
{
	size_t at = 0;

	if (p->is_complete || n == 0)
		return p->is_complete;
	buf_add(&p->in, data, n < GIT_COMMANDS_BYTES ? n : GIT_COMMANDS_BYTES);
	while (!p->is_complete) {
		struct pkt k = { 0 };
		ssize_t len = pkt_next(p->in.p + at, p->in.n - at, &k, e);
		int r = 0;

		if (len < 0)
			return (int)len;
		if (len == 0)
			break;
		at += (size_t)len;
		if (k.kind == PKT_FLUSH)
			p->is_complete = true;
		else
			r = k.kind == PKT_LINE ? take_line(p, k.data, e)
					       : bad(e, "an unexpected packet in a push");
		if (r < 0)
			return r;
	}
	p->taken += at;
	memmove(p->in.p, p->in.p + at, p->in.n - at);
	p->in.n -= at;
	if (!p->is_complete &&
	    (p->in.is_over || p->taken > GIT_COMMANDS_BYTES || n > GIT_COMMANDS_BYTES))
		return err_set(e, ERR_DENIED, EMSGSIZE, "the commands of a push are over %zu bytes",
			       GIT_COMMANDS_BYTES);
	return p->is_complete;
}

static const char *op_name(enum git_op op)
{
	return op == GIT_CREATE ? "creating" : op == GIT_DELETE ? "deleting" : "updating";
}

static const char *op_suffix(enum git_op op)
{
	return op == GIT_DELETE ? ":delete" : "";
}

void git_push_reason(const struct git_push *p, struct buf *out)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].is_allowed)
			continue;
		buf_printf(out, "%s ", op_name(p->v[i].op));
		buf_esc(out, p->v[i].ref, strlen(p->v[i].ref));
		buf_printf(out, " in %s is not listed; git.push [\"%s:", p->repo, p->repo);
		buf_esc(out, p->v[i].ref, strlen(p->v[i].ref));
		buf_printf(out, "%s\"] would allow it", op_suffix(p->v[i].op));
		return;
	}
}

/* "unpack ok", then "ng REF REASON" for each: nothing has been forwarded. */
static void put_status(const struct git_push *p, struct buf *out)
{
	_cleanup_(buf_done) struct buf line = BUF(4 * KIB);

	pkt_put(out, STR("unpack ok\n"));
	for (size_t i = 0; i < p->n; i++) {
		line.n = 0;
		buf_printf(&line, "ng %s %s\n", p->v[i].ref,
			   p->v[i].is_allowed ? "refused with the others of this push"
					      : "refused by the sandbox's git rules");
		pkt_put(out, (struct str){ .p = line.p, .n = line.n });
	}
	pkt_put_flush(out);
}

static void put_band(struct buf *out, char band, struct str data)
{
	enum { MOST = PKT_MAX - 5 };

	while (data.n > 0) {
		_cleanup_(buf_done) struct buf part = BUF(PKT_MAX);
		struct str now = str_first(data, MOST);

		buf_putc(&part, band);
		buf_add(&part, now.p, now.n);
		pkt_put(out, (struct str){ .p = part.p, .n = part.n });
		data = str_from(data, now.n);
	}
}

void git_push_report(const struct git_push *p, struct buf *out)
{
	_cleanup_(buf_done) struct buf status = BUF(2 * MIB), say = BUF(8 * KIB);

	if (!p->has_report)
		return;
	put_status(p, &status);
	if (!p->has_sideband) {
		buf_add(out, status.p, status.n);
		return;
	}
	buf_puts(&say, "vitrine: ");
	git_push_reason(p, &say);
	buf_putc(&say, '\n');
	put_band(out, 2, (struct str){ .p = say.p, .n = say.n });
	put_band(out, 1, (struct str){ .p = status.p, .n = status.n });
	pkt_put_flush(out);
}
