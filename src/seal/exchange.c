/* SPDX-License-Identifier: Apache-2.0 */
/* seal/exchange.c - see exchange.h
 *
 * Every request is judged anew, so a redirect, a second request on the same connection or another stream gains
 * nothing from the one before. What goes on the record is what was asked inside, placeholders and all.
 *
 * On a host for which we hold a secret, a login or git rules, a request has one form: a target that is a path in its canonical
 * spelling, and a body only where its method has one. Everything below compares such paths as bytes. On a host with a
 * secret or a login the answer has one form too: no encoding, no range and no extension is asked for, and one that comes all
 * the same is refused, because a value in it could not be seen.
 */
#include "seal/exchange.h"
#include "base/loop.h"
#include "base/num.h"
#include "base/sabotage.h"
#include "secret/secret.h"

void exchange_begin(struct exchange *x, const struct exchange_way *way, struct terms *rules,
		    exchange_event_fn *event, void *arg)
{
	*x = (struct exchange){ .way = way,
				.rules = terms_ref(rules),
				.event = event,
				.arg = arg,
				.start = clock_now(),
				.is_begun = true };
	x->mask = mask_new(sabotaged("seal-mask") ? words_new()
						  : vault_words(&rules->vault, way->host));
	x->known = rules;
	x->known_changes = rules->vault.changes;
	x->is_masked = way->is_tls && !sabotaged("seal-form") &&
		       (vault_holds_for(&rules->vault, way->host) ||
			logins_concern(&rules->logins, way->host));
	x->is_strict =
		logins_cover(&rules->logins, way->host) || git_rules_cover(&rules->git, way->host);
}

static int refuse(struct exchange *x, unsigned code, const char *why)
{
	exchange_fail(x, code, why);
	return -EACCES;
}

void exchange_fail(struct exchange *x, unsigned code, const char *why)
{
	if (x->is_refused)
		return;
	x->is_refused = true;
	x->code = code;
	(void)snprintf(x->why, sizeof(x->why), "%s", why);
}

static void keep_string(struct exchange *x, char *s)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
	vec_reserve(x->strings, x->n_strings, x->cap_strings);
	x->strings[x->n_strings++] = s;
}

static void add_field(struct http_head *h, struct str name, struct str value)
{
	if (h->n < HTTP_FIELDS_MAX)
		h->v[h->n++] = (struct http_field){ .name = name, .value = value };
}

/* ---- who is asked */

static int check_authority(struct exchange *x, struct str text)
{
	struct http_authority a;
	struct err e = ERR_INIT;
	uint16_t standard = x->way->is_tls ? 443 : 80;

	if (http_parse_authority(text, &a, &e) < 0)
		return refuse(x, 400, e.msg);
	if (!http_authority_is(&a, x->way->host, x->way->port, standard) && !sabotaged("seal-host"))
		return refuse(x, 421,
			      "the host inside the connection is not the host it was opened for");
	return 0;
}

static int check_target(struct exchange *x, const struct http_head *in, struct str *ret_path)
{
	struct http_target t;
	struct err e = ERR_INIT;
	struct str host;

	if (str_is(in->method, "CONNECT") || str_is(in->method, "TRACE"))
		return refuse(x, 405, "the methods CONNECT and TRACE have no place here");
	if (http_parse_target(in->method, in->target, &t, &e) < 0)
		return refuse(x, 400, e.msg);
	if (http_field_one(in, "Host", &host) != 1)
		return refuse(x, 400, "a request has one Host field");
	if (check_authority(x, host) < 0)
		return -EACCES;
	if ((x->is_masked || x->is_strict) && !sabotaged("seal-canonical")) {
		if (t.form != HTTP_ORIGIN)
			return refuse(x, 400,
				      "a request to this host names its path alone, not a whole "
				      "address and not '*'");
		if (http_check_canonical(t.path, x->is_strict, &e) < 0)
			return refuse(x, 400, e.msg);
	}
	if (t.form == HTTP_ABSOLUTE &&
	    (t.is_https != x->way->is_tls ||
	     !http_authority_is(&t.authority, x->way->host, x->way->port, t.is_https ? 443 : 80)))
		return refuse(x, 421, "the target names another host than the connection");
	*ret_path = t.path;
	return 0;
}

static bool only_reads(struct str method)
{
	return str_is(method, "GET") || str_is(method, "HEAD") || str_is(method, "OPTIONS");
}

/* What a method that has no body by custom carries in one is read by some servers and skipped by others. */
static int check_body(struct exchange *x, const struct http_head *in)
{
	static const char *const with_body[] = { "POST", "PUT", "PATCH", "DELETE" };
	bool may_have = !x->is_masked && !x->is_strict;
	struct str length;

	for (size_t i = 0; i < ARRAY_LEN(with_body); i++)
		may_have |= str_is(in->method, with_body[i]);
	x->is_bodiless = !may_have;
	if (x->is_bodiless &&
	    (http_field_first(in, "Transfer-Encoding") ||
	     (http_field_one(in, "Content-Length", &length) != 0 && !str_is(length, "0"))))
		return refuse(x, 400, "a request of this method to this host has no body");
	return 0;
}

/* Fields that some servers take for another method, path, host or framing than the ones that are judged here. An underscore
 * reads as '-': gateways of the CGI kind make one name of both. */
static bool says_otherwise(struct str name)
{
	static const char *const names[] = {
		"X-HTTP-Method-Override",
		"X-HTTP-Method",
		"X-Method-Override",
		"X-Original-Method",
		"X-Forwarded-Method",
		"X-Original-URL",
		"X-Original-URI",
		"X-Rewrite-URL",
		"X-Forwarded-URI",
		"X-Forwarded-Path",
		"X-Forwarded-Prefix",
		"X-Forwarded-Host",
		"X-Forwarded-Server",
		"X-Original-Host",
		"X-Host",
		"Forwarded",
	};
	static const char *const framing[] = { "Transfer-Encoding", "Content-Length" };
	bool has_underscore = str_find(name, '_') < name.n;
	char plain[32];

	/* Most fields are none of these by their first letter. */
	if (name.n == 0 || name.n >= sizeof(plain) ||
	    (!has_underscore && (name.p[0] | 0x20) != 'x' && (name.p[0] | 0x20) != 'f'))
		return false;
	for (size_t i = 0; i < name.n; i++)
		plain[i] = (char)(name.p[i] == '_' ? '-' : name.p[i]);
	name.p = plain;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_is_nocase(name, names[i]))
			return true;
	for (size_t i = 0; has_underscore && i < ARRAY_LEN(framing); i++)
		if (str_is_nocase(name, framing[i]))
			return true;
	return false;
}

static int check_fields(struct exchange *x, const struct http_head *in)
{
	bool is_decided =
		x->is_masked || x->is_strict || path_rules_cover(&x->rules->paths, x->way->host);

	for (size_t i = 0; is_decided && i < in->n && !sabotaged("seal-override"); i++)
		if (says_otherwise(in->v[i].name)) {
			_free_ char *why = mem_fmt("the field '%.*s' means another request to some "
						   "servers than the one that is judged; send the "
						   "request without it",
						   (int)in->v[i].name.n, in->v[i].name.p);

			return refuse(x, 400, why);
		}
	return 0;
}

/* ---- rules */

static int judge_git(struct exchange *x, const struct http_head *in, struct str path,
		     const struct path_rule *rule)
{
	struct err e = ERR_INIT;
	int r;

	if (!git_rules_cover(&x->rules->git, x->way->host) || sabotaged("seal-git"))
		return 0;
	r = git_classify(x->way->host, in->method, path, &x->git, &e);
	if (r >= 0)
		r = git_judge(&x->rules->git, &x->git, &e);
	if (r < 0)
		return refuse(x, 403, e.msg);
	if (x->git.kind == GIT_NOT && rule == NULL && !sabotaged("seal-write"))
		return refuse(x, 403,
			      "this host has git rules, so its other pages are closed; an allow "
			      "rule "
			      "'METHOD HOST/PATH' would open this one");
	if (x->git.kind != GIT_NOT)
		(void)snprintf(x->rule, sizeof(x->rule), "git %.200s", x->git.repo);
	x->is_held = x->git.kind == GIT_PUSH;
	return 0;
}

/* The encodings of a push we can look through: none and gzip. */
static int prepare_push(struct exchange *x, const struct http_head *in)
{
	struct str coding;
	int r = http_field_one(in, "Content-Encoding", &coding);

	git_push_init(&x->push, &x->rules->git, x->git.repo);
	if (r == 0 || (r == 1 && str_is_nocase(coding, "identity")))
		return 0;
	if (r < 0 || !(str_is_nocase(coding, "gzip") || str_is_nocase(coding, "x-gzip")))
		return refuse(x, 415, "a push is encoded in a way that cannot be looked through");
	x->gunzip = gunzip_new();
	return 0;
}

static int judge(struct exchange *x, const struct http_head *in, struct str path,
		 const struct path_rule **ret_rule)
{
	struct err e = ERR_INIT;
	int r = path_judge(&x->rules->paths, x->way->host, in->method, path, ret_rule, &e);
	/* What no path rule lists can still be git's, by a git rule; the other pages of such a host are closed there. */
	bool is_git = r == -ENOENT && git_rules_cover(&x->rules->git, x->way->host);

	if (r < 0 && !is_git && !sabotaged("seal-path"))
		return refuse(x, r == -EBADMSG ? 400 : 403, e.msg);
	if (*ret_rule)
		(void)snprintf(x->rule, sizeof(x->rule), "%s", (*ret_rule)->text);
	if (logins_judge(&x->rules->logins, x->way->host, in->method, path, &e) < 0 &&
	    !sabotaged("seal-login"))
		return refuse(x, 403, e.msg);
	r = judge_git(x, in, path, *ret_rule);
	return r < 0 || !x->is_held ? r : prepare_push(x, in);
}

/* ---- rewriting */

static void copy_field(struct exchange *x, const struct http_field *f, struct http_head *out)
{
	char *swapped = NULL;

	if (x->way->is_tls)
		swapped = vault_swap_field(&x->rules->vault, x->way->host, f->name, f->value,
					   &x->note);
	if (swapped)
		keep_string(x, swapped);
	add_field(out, f->name, swapped ? str_of(swapped) : f->value);
}

/* A part of an answer, or a compressed one: a value in it could not be seen. */
static bool asks_for_another_form(struct str name)
{
	static const char *const names[] = {
		"Range", "If-Range",       "Accept-Encoding", "Sec-WebSocket-Extensions",
		"A-IM",  "Accept-Charset", "Request-Range",   "Available-Dictionary"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_is_nocase(name, names[i]))
			return true;
	return false;
}

static bool is_dropped(const struct exchange *x, const struct http_head *in,
		       const struct http_field *f)
{
	if (str_is_nocase(f->name, "TE"))
		return !str_is_nocase(f->value, "trailers");
	if (x->is_resized && str_is_nocase(f->name, "Content-Length"))
		return true;
	return http_field_is_hop(in, f->name) || str_is_nocase(f->name, "Host") ||
	       (x->is_held && str_is_nocase(f->name, "Expect")) ||
	       (x->is_masked && asks_for_another_form(f->name));
}

static void find_login(struct exchange *x, struct str path)
{
	if (!x->way->is_tls || sabotaged("seal-login"))
		return;
	x->login = logins_find(&x->rules->logins, x->way->host, path);
	x->watch = x->login || sabotaged("seal-watch")
			   ? NULL
			   : logins_watch(&x->rules->logins, x->way->host, path);
}

static bool holds_word(struct str text, const char *word)
{
	for (size_t n = strlen(word), i = 0; i + n <= text.n; i++)
		if (strncasecmp(text.p + i, word, n) == 0)
			return true;
	return false;
}

/* What placeholders in the body become. Nothing in what git sends, which is judged as it came and whose lines have their length
 * before them, nor in the messages of a WebSocket, which are no body. Where a length was announced and may change by this, the
 * body is held. */
static void prepare_body(struct exchange *x, const struct http_head *in, uint64_t closed)
{
	const struct http_field *f = http_field_first(in, "Content-Type");
	struct str type = f ? f->value : STR(""), length;
	struct err ignored = ERR_INIT;
	char digits[24];

	if (!x->way->is_tls || x->is_upgrade || x->git.kind != GIT_NOT ||
	    holds_word(type, "application/x-git-"))
		return;
	x->swap = vault_body_swap(&x->rules->vault, x->way->host,
				  holds_word(type, "json")                    ? VAULT_JSON
				  : holds_word(type, "x-www-form-urlencoded") ? VAULT_FORM
									      : VAULT_PLAIN,
				  x->login != NULL, closed);
	if (!swap_resizes(x->swap) || http_field_one(in, "Content-Length", &length) != 1 ||
	    length.n >= sizeof(digits))
		return;
	memcpy(digits, length.p, length.n);
	digits[length.n] = '\0';
	/* A length that is no number is refused by who reads the body. */
	x->is_resized = num_parse(digits, 1, INT64_MAX, &x->length, &ignored) == 0;
	x->is_held = x->is_resized;
}

/* Servers take heads of 8 to 64 KiB, and HTTP/2 cannot send more. */
enum { HEAD_OUT_MAX = 60 * 1024 };

static size_t head_size(const struct http_head *h)
{
	size_t n = h->target.n;

	for (size_t i = 0; i < h->n; i++)
		n += h->v[i].name.n + h->v[i].value.n + 4;
	return n;
}

static int rewrite(struct exchange *x, const struct http_head *in, struct str path,
		   struct http_head *out)
{
	char *target = NULL;

	*out = (struct http_head){ .minor = 1, .method = in->method, .target = path };
	add_field(out, STR("Host"), http_field_first(in, "Host")->value);
	for (size_t i = 0; i < in->n; i++)
		if (!is_dropped(x, in, &in->v[i]))
			copy_field(x, &in->v[i], out);
	if (x->way->is_tls)
		target = vault_swap_query(&x->rules->vault, x->way->host, path, &x->note);
	if (target) {
		keep_string(x, target);
		out->target = str_of(target);
	}
	if (x->is_masked)
		add_field(out, STR("Accept-Encoding"), STR("identity"));
	if (x->note.is_over || head_size(out) > HEAD_OUT_MAX)
		return refuse(x, 431, "with the values of its secrets the head is too long");
	return out->n > HTTP_FIELDS_MAX - 4 ? refuse(x, 431, "too many header fields") : 0;
}

/* The secrets that do not go out with this request, which writes: one of their hosts has git rules (this one or another of
 * the same service), and no rule lists the request. */
static uint64_t withheld(const struct exchange *x, struct str method, const struct path_rule *rule)
{
	bool is_listed = rule || x->git.kind != GIT_NOT || only_reads(method);

	return is_listed || sabotaged("seal-write") ? 0 : terms_guarded(x->rules);
}

static void remember(struct exchange *x, const struct http_head *in)
{
	struct str path = str_first(in->target, str_find(in->target, '?'));

	(void)snprintf(x->method, sizeof(x->method), "%.*s", (int)in->method.n, in->method.p);
	(void)snprintf(x->path, sizeof(x->path), "%.*s",
		       (int)(path.n < sizeof(x->path) ? path.n : sizeof(x->path) - 1), path.p);
	x->is_head = str_is(in->method, "HEAD");
	x->wants_json = http_field_has(in, "Accept", "application/json");
	x->is_upgrade = http_field_has(in, "Connection", "upgrade") &&
			http_field_has(in, "Upgrade", "websocket") && str_is(in->method, "GET");
}

int exchange_request(struct exchange *x, const struct http_head *in, struct http_head *out)
{
	const struct path_rule *rule = NULL;
	struct str path = STR("/");
	uint64_t closed;
	int r;

	remember(x, in);
	r = check_target(x, in, &path);
	if (r >= 0)
		r = check_body(x, in);
	if (r >= 0)
		r = check_fields(x, in);
	if (r >= 0)
		r = judge(x, in, path, &rule);
	if (r < 0)
		return r;
	closed = withheld(x, in->method, rule);
	find_login(x, path);
	prepare_body(x, in, closed);
	r = rewrite(x, in, path, out);
	if (r < 0)
		return r;
	if (x->note.swapped & closed)
		return refuse(x, 403,
			      "with git rules on this service its secret is for reading; an allow "
			      "rule 'METHOD HOST/PATH' would let it write");
	return x->is_held;
}

/* ---- bodies that are held */

/* How much of a body is kept to learn its new length: as much as of the commands of a push. */
#define BODY_HELD GIT_COMMANDS_BYTES

/* All of the body is here, or as much as is held: its length follows from what was swapped in it. */
static int hold_sized(struct exchange *x, size_t n)
{
	x->held += n;
	x->is_held = x->held < BODY_HELD;
	return !x->is_held;
}

uint64_t exchange_length(struct exchange *x)
{
	x->is_sized = true;
	x->growth = swap_growth(x->swap);
	return x->length + (uint64_t)x->growth;
}

static int feed_push(void *arg, const char *p, size_t n, struct err *e)
{
	return git_push_feed(arg, p, n, e);
}

int exchange_hold(struct exchange *x, const char *p, size_t n)
{
	struct err e = ERR_INIT;
	int r;

	if (x->is_resized)
		return hold_sized(x, n);
	r = x->gunzip ? gunzip_feed(x->gunzip, p, n, feed_push, &x->push, &e)
		      : git_push_feed(&x->push, p, n, &e);
	if (r < 0)
		return refuse(x, 403, e.msg);
	if (r == 0)
		return 0;
	if (x->push.n_refused > 0) {
		_cleanup_(buf_done) struct buf why = BUF(4 * KIB);

		git_push_reason(&x->push, &why);
		return refuse(x, x->push.has_report ? 200 : 403, buf_cstr(&why));
	}
	x->is_held = false;
	return 1;
}

int exchange_hold_end(struct exchange *x)
{
	if (x->is_resized && !x->is_refused) {
		x->is_held = false;
		return 1;
	}
	return x->is_held && !x->is_refused ? refuse(x, 400, "a push without commands") : 0;
}

/* ---- bodies */

static int swap_up(struct exchange *x, const char *p, size_t n, struct str *ret)
{
	*ret = STR("");
	if (swap_feed(x->swap, p, n, ret) < 0)
		return refuse(x, 413,
			      "the values of its secrets make the body of this request too long");
	if (x->is_sized && swap_growth(x->swap) != x->growth) {
		*ret = STR("");
		return refuse(x, 413,
			      "the value of a secret has another length than its placeholder, "
			      "and the placeholder stands too far behind the beginning of this "
			      "body; send the request without a Content-Length, or set the secret "
			      "anew with 'vitrine secret set' and start the sandbox again");
	}
	x->note.swapped |= swap_secrets(x->swap);
	return 0;
}

int exchange_up(struct exchange *x, const char *p, size_t n, struct str *ret)
{
	x->up += n;
	*ret = (struct str){ .p = p, .n = n };
	if (n > 0 && x->is_bodiless && !x->frames)
		return refuse(x, 400, "a request of this method to this host has no body");
	return swap_is_empty(x->swap) ? 0 : swap_up(x, p, n, ret);
}

void exchange_up_end(struct exchange *x, struct str *ret)
{
	*ret = STR("");
	if (!swap_is_empty(x->swap))
		swap_end(x->swap, ret);
}

/* A value that came since: an answer that goes on can hold it, because another request may have sent it. */
static void learn(struct exchange *x)
{
	struct terms *now = terms_newest(x->rules);

	if ((now == x->known && now->vault.changes == x->known_changes) || sabotaged("seal-mask") ||
	    sabotaged("seal-former"))
		return;
	x->known = now;
	x->known_changes = now->vault.changes;
	mask_learn(x->mask, vault_words(&now->vault, x->way->host));
}

int exchange_down(struct exchange *x, const char *p, size_t n, struct str *ret)
{
	learn(x);
	x->down += n;
	*ret = (struct str){ .p = p, .n = n };
	if (x->is_login || x->is_watched) {
		buf_add(&x->answer, p, n);
		*ret = STR("");
	} else if (x->frames) {
		if (frames_feed(x->frames, x->mask, p, n, ret) < 0)
			return refuse(x, 502,
				      "the server sent a message of WebSocket in a form that "
				      "cannot "
				      "be looked through");
	} else if (!mask_is_empty(x->mask)) {
		mask_feed(x->mask, p, n, ret);
	}
	return 0;
}

/* The whole answer is there: its tokens stay here. One that is not understood does not go inside at all. */
static int take_login(struct exchange *x)
{
	_cleanup_(secret_wipe) struct buf whole = secret_buf_of(LOGIN_ANSWER_MAX);
	struct err e = ERR_INIT;
	int r = -EMSGSIZE;

	buf_add(&whole, x->answer.p, x->answer.n);
	if (x->answer.is_over)
		(void)err_set(&e, ERR_DENIED, EMSGSIZE, "it is over %zu bytes", LOGIN_ANSWER_MAX);
	else
		r = login_take(&x->rules->logins, x->login, &x->rules->vault, x->is_success,
			       &x->answer, &e);
	if (r < 0) {
		_free_ char *why = mem_fmt("the tokens of this login could not be taken out of the "
					   "answer: %.200s",
					   e.msg);

		return refuse(x, 502, why);
	}
	if (r > 0 && x->rules->on_login)
		x->rules->on_login(x->rules->arg, x->rules, x->login->name,
				   x->is_success ? (struct str){ .p = whole.p, .n = whole.n }
						 : STR(""));
	x->is_taken = r > 0;
	return 0;
}

/* Another answer of JSON where a login gives out tokens: it holds none. */
static int check_watched(struct exchange *x)
{
	const char *mark;

	if (x->answer.is_over)
		return refuse(x, 502,
			      "an answer of JSON of this host is too long to be looked through");
	mark = login_token_in(x->watch, &x->rules->vault,
			      (struct str){ .p = x->answer.p, .n = x->answer.n }, true);
	if (mark) {
		_free_ char *why = mem_fmt("the answer holds what begins like a token of %s ('%s')",
					   x->watch->name, mark);

		return refuse(x, 502, why);
	}
	return 0;
}

int exchange_down_end(struct exchange *x, struct str *ret)
{
	*ret = STR("");
	if (x->is_login || x->is_watched) {
		if ((x->is_login ? take_login(x) : check_watched(x)) < 0)
			return -EACCES;
		(void)mask_text(x->mask, x->answer.p, x->answer.n); /* of tokens before these */
		*ret = (struct str){ .p = buf_cstr(&x->answer), .n = x->answer.n };
	} else if (!mask_is_empty(x->mask) && !x->frames) {
		mask_end(x->mask, ret);
	} /* What is held of a message that breaks off stays here. */
	return 0;
}

/* ---- the answer */

/* The text without the real values in it: the same one where there were none. */
static struct str masked(struct exchange *x, struct str s)
{
	char *text;

	if (!mask_finds(x->mask, s))
		return s;
	text = mem_strn(s.p, s.n);
	(void)mask_text(x->mask, text, s.n);
	keep_string(x, text);
	return str_of(text);
}

/* A placeholder need not be a token, so a field with a value in its name is left out. */
static void copy_masked(struct exchange *x, const struct http_field *f, struct http_head *out)
{
	if (masked(x, f->name).p == f->name.p)
		add_field(out, f->name, masked(x, f->value));
}

/* Are letters in it something else than bytes of ASCII? */
static bool is_wide(struct str type)
{
	static const char *const wide[] = { "utf-16", "utf16", "utf-32",  "utf32",     "utf-7",
					    "utf7",   "ucs",   "cp037",   "ibm",       "ebcdic",
					    "scsu",   "bocu",  "unicode", "iso-10646", "cesu" };
	static const char word[] = "charset";

	for (size_t i = 0; i + sizeof(word) - 1 <= type.n; i++) {
		struct str name = str_from(type, i + sizeof(word) - 1);

		if (strncasecmp(type.p + i, word, sizeof(word) - 1) != 0)
			continue;
		while (name.n > 0 && strchr(" \t=\"'*", name.p[0]))
			name = str_from(name, 1);
		if (name.n > 2 && strncasecmp(name.p, "x-", 2) == 0)
			name = str_from(name, 2);
		for (size_t k = 0; k < ARRAY_LEN(wide); k++)
			if (name.n >= strlen(wide[k]) &&
			    strncasecmp(name.p, wide[k], strlen(wide[k])) == 0)
				return true;
	}
	return false;
}

static bool has_wide_type(const struct http_head *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (str_is_nocase(in->v[i].name, "Content-Type") && is_wide(in->v[i].value))
			return true;
	return false;
}

/* Did the server send the answer in a form that it was not asked for? */
static const char *form_objection(const struct http_head *in)
{
	struct str coding;
	int r = http_field_one(in, "Content-Encoding", &coding);

	if (in->status >= 200 && (r < 0 || (r > 0 && !str_is_nocase(coding, "identity"))))
		return "the server compressed an answer, although it was asked not to; on a host "
		       "with "
		       "a secret it could hide the secret";
	if (in->status == 206 || in->status == 226 || http_field_first(in, "Content-Range"))
		return "the server sent a part of an answer that nobody asked for; on a host with "
		       "a "
		       "secret it could hide the secret";
	if (has_wide_type(in))
		return "the server sent an answer in a character set that is not made of ASCII; on "
		       "a "
		       "host with a secret it could hide the secret";
	if (http_field_first(in, "Sec-WebSocket-Extensions"))
		return "the server uses an extension of WebSocket that was not asked for; on a "
		       "host "
		       "with a secret it could hide the secret";
	return NULL;
}

/* A token in a field of the answer's head cannot be stood for: the answer is refused. */
static bool has_mark_in_head(const struct exchange *x, const struct http_head *in)
{
	const struct login *l = x->login ? x->login : x->watch;

	for (size_t i = 0; l && i < in->n; i++)
		if (login_token_in(l, &x->rules->vault, in->v[i].value, false) ||
		    login_token_in(l, &x->rules->vault, in->v[i].name, false))
			return true;
	return l && login_token_in(l, &x->rules->vault, in->reason, false);
}

/* JSON, and what can carry it: a form, the parts of a message. Also where the server does not say what it is, or says two
 * things. */
static bool may_be_json(const struct http_head *in)
{
	static const char *const types[] = { "json", "x-www-form-urlencoded", "multipart/" };
	size_t n_fields = 0;
	bool is_meant = false;

	for (size_t i = 0; i < in->n; i++) {
		struct str type = in->v[i].value;

		if (!str_is_nocase(in->v[i].name, "Content-Type"))
			continue;
		n_fields++;
		for (size_t k = 0; k < ARRAY_LEN(types); k++)
			for (size_t at = 0, n = strlen(types[k]); at + n <= type.n; at++)
				is_meant |= strncasecmp(type.p + at, types[k], n) == 0;
	}
	return is_meant || n_fields != 1;
}

/* How the body of this answer is looked through: held as a whole, by frames, or as it comes. */
static void prepare_answer(struct exchange *x, const struct http_head *in)
{
	x->is_success = in->status >= 200 && in->status < 300;
	x->is_login = x->login && in->status >= 200;
	x->is_watched = x->watch && in->status >= 200 && (x->is_watched || may_be_json(in));
	if ((x->is_login || x->is_watched) && x->answer.p == NULL)
		x->answer = secret_buf_of(x->is_login ? LOGIN_ANSWER_MAX : WATCHED_ANSWER_MAX);
	if (in->status == 101 && x->is_masked && x->frames == NULL && !sabotaged("seal-frames"))
		x->frames = frames_new();
}

int exchange_response(struct exchange *x, const struct http_head *in, struct http_head *out)
{
	const char *why = x->is_masked ? form_objection(in) : NULL;

	learn(x);
	if (why)
		return refuse(x, 502, why);
	if (has_mark_in_head(x, in))
		return refuse(x, 502,
			      "a field of the answer holds what begins like a token of a login");
	*out = (struct http_head){ .minor = 1,
				   .status = in->status,
				   .reason = masked(x, in->reason) };
	for (size_t i = 0; i < in->n; i++)
		if (!http_field_is_hop(in, in->v[i].name) && !str_is_nocase(in->v[i].name, "Alt-"
											   "Svc"))
			copy_masked(x, &in->v[i], out);
	if (x->code == 0) /* not of trailers */
		prepare_answer(x, in);
	if (in->status >= 200 || in->status == 101)
		x->code = in->status;
	return out->n > HTTP_FIELDS_MAX - 4 ? refuse(x, 502, "too many header fields in the answer")
					    : 0;
}

unsigned exchange_refusal(struct exchange *x, const char **ret_type, struct buf *body)
{
	_cleanup_(buf_done) struct buf line = BUF(4 * KIB);

	if (x->code == 200 && x->push.n_refused > 0) {
		*ret_type = "application/x-git-receive-pack-result";
		git_push_report(&x->push, body);
		return 200;
	}
	buf_printf(&line, "%s %s%s", x->method, x->way->host, x->path);
	if (!x->wants_json) {
		*ret_type = "text/plain; charset=utf-8";
		buf_puts(body, "vitrine: ");
		buf_esc(body, buf_cstr(&line), line.n);
		buf_printf(body, ": %s\n", x->why);
		return x->code;
	}
	*ret_type = "application/json";
	buf_puts(body, "{\"error\":\"denied\",\"by\":\"vitrine\",\"request\":");
	buf_json(body, buf_cstr(&line));
	buf_puts(body, ",\"message\":");
	buf_json(body, x->why);
	buf_puts(body, "}\n");
	return x->code;
}

/* ---- the record */

static void put_names(struct buf *b, const struct vault *v, const char *key, uint64_t set)
{
	const char *comma = "";

	if (set == 0)
		return;
	buf_printf(b, ",\"%s\":[", key);
	for (size_t i = 0; i < v->n; i++) {
		if (!(set >> i & 1))
			continue;
		buf_puts(b, comma);
		buf_json(b, v->v[i].name);
		comma = ",";
	}
	buf_putc(b, ']');
}

static void put_text(struct buf *b, const char *key, const char *text)
{
	if (text[0] == '\0')
		return;
	buf_printf(b, ",\"%s\":", key);
	buf_json(b, text);
}

static void tell(const struct exchange *x)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	buf_printf(&b, "{\"event\":\"%s\",\"verdict\":\"%s\",\"connection\":%u,\"host\":",
		   x->is_refused ? "net.verdict" : "net.request", x->is_refused ? "deny" : "allow",
		   x->way->id);
	buf_json(&b, x->way->host);
	buf_printf(&b, ",\"port\":%u", x->way->port);
	put_text(&b, "method", x->method);
	put_text(&b, "request", x->path);
	put_text(&b, "rule", x->rule);
	put_text(&b, "message", x->why);
	buf_printf(&b, ",\"code\":%u,\"bytes_out\":%llu,\"bytes_in\":%llu,\"duration_ns\":%llu",
		   x->code, (unsigned long long)x->up, (unsigned long long)x->down,
		   (unsigned long long)(clock_now() - x->start));
	put_names(&b, &x->rules->vault, "secrets", x->note.swapped);
	put_names(&b, &x->rules->vault, "placeholders_elsewhere", x->note.elsewhere);
	put_text(&b, "login", x->is_taken ? x->login->name : "");
	buf_putc(&b, '}');
	if (x->event)
		x->event(x->arg, buf_cstr(&b));
}

void exchange_end(struct exchange *x)
{
	if (!x->is_begun)
		return;
	if (x->method[0] || x->is_refused)
		tell(x);
	for (size_t i = 0; i < x->n_strings; i++)
		wipe_free(x->strings[i]);
	free(x->strings);
	secret_wipe(&x->answer);
	mask_free(x->mask);
	swap_free(x->swap);
	frames_free(x->frames);
	gunzip_free(x->gunzip);
	git_push_done(&x->push);
	terms_unref(x->rules);
	*x = (struct exchange){ 0 };
}
