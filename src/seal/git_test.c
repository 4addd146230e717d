/* SPDX-License-Identifier: Apache-2.0 */
/* seal/git_test.c - which requests are git's, and what of them is allowed */
#include <zlib.h>

#include "base/test.h"
#include "seal/git.h"
#include "seal/gunzip.h"
#include "seal/pkt.h"

#define ZERO "0000000000000000000000000000000000000000"
#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"

static void rules(struct git_rules *r)
{
	struct err e = ERR_INIT;

	CHECK(git_rules_add(r, false, "Git.test/me/*", &e) == 0);
	CHECK(git_rules_add(r, false, "git.test/deep/**", &e) == 0);
	CHECK(git_rules_add(r, true, "git.test/me/app.git:refs/heads/agent/*", &e) == 0);
	CHECK(git_rules_add(r, true, "git.test/me/app:refs/heads/old:delete", &e) == 0);
	CHECK(git_rules_add(r, true, "git.test/me/new:refs/tags/*:create", &e) == 0);
}

TEST(rules_are_checked)
{
	static const char *const wrong[] = { "",
					     "git.test",
					     "git.test/",
					     "/me/app",
					     "*.test/me",
					     "git.test/me/app",
					     "git.test/me/app:heads/x",
					     "git.test/me/app:refs/heads/x:rewind",
					     "git.test/me/app:refs/heads/x:",
					     "u@git.test/me/app:refs/heads/x" };
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK_INT(git_rules_add(&r, true, wrong[i], &e), -EINVAL);
	CHECK_INT(git_rules_add(&r, false, "git.test/me:refs/heads/x", &e), -EINVAL);
	CHECK_INT(r.n, 0);
	rules(&r);
	CHECK(git_rules_cover(&r, "git.test") && !git_rules_cover(&r, "other.test"));
}

static int classify(const char *method, const char *target, struct git_request *q)
{
	struct err e = ERR_INIT;

	*q = (struct git_request){ 0 };
	return git_classify("git.test", str_of(method), str_of(target), q, &e);
}

TEST(requests_are_told_apart)
{
	struct git_request q;

	CHECK(classify("GET", "/me/app.git/info/refs?service=git-upload-pack", &q) == 0);
	CHECK(q.kind == GIT_FETCH);
	CHECK_STR(q.repo, "git.test/me/app");
	CHECK(classify("POST", "/me/app/git-upload-pack", &q) == 0 && q.kind == GIT_FETCH);
	CHECK(classify("GET", "/me/app/info/refs?service=git-receive-pack", &q) == 0);
	CHECK(q.kind == GIT_PUSH_REFS);
	CHECK(classify("POST", "/me/app.git/git-receive-pack", &q) == 0 && q.kind == GIT_PUSH);
	CHECK(classify("POST", "/me/app.git/info/lfs/objects/batch", &q) == 0 && q.kind == GIT_LFS);
	CHECK(classify("GET", "/me/app", &q) == 0 && q.kind == GIT_NOT);
	CHECK(classify("GET", "/me/app/blob/a%20b", &q) == 0 && q.kind == GIT_NOT);
}

TEST(doubtful_requests_are_refused)
{
	static const char *const wrong[][2] = {
		{ "GET", "/me/app/info/refs" },
		{ "GET", "/me/app/info/refs?service=git-receive-pack&x" },
		{ "GET", "/me/app/info/refs?x=1&service=git-upload-pack" },
		{ "GET", "/me/app/info/refs?service=git%2dreceive-pack" },
		{ "GET", "/me/app.git/objects/info/packs" },
		{ "GET", "/me/app.git/objects/ab/cdef" },
		{ "GET", "/me/app.git/Objects/ab/cdef" },
		{ "GET", "/me/app.git/objects" },
		{ "GET", "/me/app.git/INFO/refs" },
		{ "GET", "/me/app.git/info/refs/?service=git-upload-pack" },
		{ "POST", "/me/app.git/Git-Receive-Pack" },
		{ "POST", "/me/app.git/git-upload-pack/" },
		{ "POST", "/me/app.git/git-upload-archive" },
		{ "POST", "/me/app/git-receive-pack?x" },
		{ "GET", "/me/app/git-receive-pack" },
		{ "PUT", "/me/app/git-receive-pack" },
		{ "POST", "/me/app/%67it-receive-pack" },
		{ "POST", "/me/app/git-receive-pack;x" },
		{ "POST", "/me\\app\\git-receive-pack" },
		{ "POST", "/me/../you/app/git-receive-pack" },
		{ "POST", "/me//app/git-receive-pack" },
		{ "POST", "/me/./app/git-upload-pack" },
		{ "POST", "/m%65/app/git-upload-pack" },
		{ "POST", "/git-upload-pack" },
	};
	struct git_request q;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (classify(wrong[i][0], wrong[i][1], &q) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: %s %s\n", wrong[i][0], wrong[i][1]);
			CHECK(false);
		}
}

static bool may(const struct git_rules *r, const char *method, const char *target)
{
	struct git_request q;
	struct err e = ERR_INIT;

	return classify(method, target, &q) == 0 && git_judge(r, &q, &e) == 0;
}

TEST(repositories_are_judged)
{
	_cleanup_(git_rules_done) struct git_rules r = { 0 };

	rules(&r);
	CHECK(may(&r, "POST", "/me/app.git/git-upload-pack"));
	CHECK(may(&r, "POST", "/deep/a/b/c/git-upload-pack"));
	CHECK(!may(&r, "POST", "/me/sub/app/git-upload-pack"));
	CHECK(!may(&r, "POST", "/you/app/git-upload-pack"));
	CHECK(!may(&r, "POST", "/me/git-upload-pack"));
	CHECK(may(&r, "GET", "/me/app/info/refs?service=git-receive-pack"));
	CHECK(!may(&r, "GET", "/me/other/info/refs?service=git-receive-pack"));
	CHECK(may(&r, "POST", "/me/app/info/lfs/objects/batch"));
	CHECK(!may(&r, "POST", "/me/other/info/lfs/objects/batch"));
}

/* A push of one command after another, each given as "OLD NEW REF". */
static void body(struct buf *b, const char *const *commands, size_t n, const char *caps)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(buf_done) struct buf line = BUF(2 * KIB);

		buf_puts(&line, commands[i]);
		if (i == 0) {
			buf_putc(&line, '\0');
			buf_puts(&line, caps);
		}
		pkt_put(b, (struct str){ .p = line.p, .n = line.n });
	}
	pkt_put_flush(b);
	buf_puts(b, "PACK....");
}

static int feed(struct git_push *p, const struct buf *b, size_t step)
{
	struct err e = ERR_INIT;
	int r = 0;

	for (size_t at = 0; at < b->n && r == 0; at += step)
		r = git_push_feed(p, b->p + at, b->n - at < step ? b->n - at : step, &e);
	return r;
}

static bool push(const char *repo, const char *command)
{
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	_cleanup_(git_push_done) struct git_push p;
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	rules(&r);
	git_push_init(&p, &r, repo);
	body(&b, &command, 1, " report-status side-band-64k agent=git/2");
	for (size_t step = 1; step < 300; step += 37) {
		git_push_done(&p);
		git_push_init(&p, &r, repo);
		if (feed(&p, &b, step) != 1 || p.n != 1)
			return false;
	}
	CHECK(p.has_report && p.has_sideband);
	return p.n_refused == 0;
}

TEST(refs_are_judged)
{
	CHECK(push("git.test/me/app", ZERO " " ONE " refs/heads/agent/x"));
	CHECK(push("git.test/me/app", ONE " " TWO " refs/heads/agent/x/y"));
	CHECK(!push("git.test/me/app", ONE " " ZERO " refs/heads/agent/x"));
	CHECK(push("git.test/me/app", ONE " " ZERO " refs/heads/old"));
	CHECK(!push("git.test/me/app", ONE " " TWO " refs/heads/old"));
	CHECK(!push("git.test/me/app", ONE " " TWO " refs/heads/main"));
	CHECK(!push("git.test/me/app", ONE " " TWO " refs/heads/agent"));
	CHECK(!push("git.test/me/app", ONE " " TWO " refs/heads/xagent/y"));
	CHECK(!push("git.test/me/other", ONE " " TWO " refs/heads/agent/x"));
	CHECK(push("git.test/me/new", ZERO " " TWO " refs/tags/v1"));
	CHECK(!push("git.test/me/new", ONE " " TWO " refs/tags/v1"));
}

TEST(malformed_pushes_are_refused)
{
	static const char *const wrong[] = { ZERO " " ZERO " refs/heads/agent/x",
					     ZERO " " ONE " heads/agent/x",
					     ZERO " " ONE " refs/heads/agent/../main",
					     ZERO " " ONE " refs/heads/agent//x",
					     ZERO " " ONE " refs/heads/a b",
					     ZERO " " ONE " refs/heads/a\x1b",
					     ZERO " " ONE,
					     ZERO,
					     "00 11 refs/heads/agent/x",
					     "push-cert",
					     "" };
	_cleanup_(git_rules_done) struct git_rules r = { 0 };

	rules(&r);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(git_push_done) struct git_push p;
		_cleanup_(buf_done) struct buf b = BUF(KIB);

		git_push_init(&p, &r, "git.test/me/app");
		body(&b, &wrong[i], 1, "report-status");
		if (feed(&p, &b, 1000) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
	}
}

TEST(commands_are_bounded)
{
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	_cleanup_(git_push_done) struct git_push p;
	_cleanup_(buf_done) struct buf b = BUF(16 * MIB);

	rules(&r);
	git_push_init(&p, &r, "git.test/me/app");
	for (size_t i = 0; i < GIT_COMMANDS_MAX + 2; i++)
		pkt_put(&b, STR(ZERO " " ONE " refs/heads/agent/x"));
	CHECK_INT(feed(&p, &b, 4096), -EMSGSIZE);
	git_push_done(&p);
	git_push_init(&p, &r, "git.test/me/app");
	b.n = 0;
	while (b.n < 2 * GIT_COMMANDS_BYTES)
		pkt_put(&b, STR("shallow " ONE));
	CHECK_INT(feed(&p, &b, 4096), -EMSGSIZE);
	CHECK_INT(feed(&p, &b, b.n), -EMSGSIZE);
}

TEST(a_refusal_is_a_report)
{
	static const char *const two[] = { ZERO " " ONE " refs/heads/agent/x", ONE " " TWO " refs/"
										   "heads/"
										   "main" };
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	_cleanup_(git_push_done) struct git_push p;
	_cleanup_(buf_done) struct buf b = BUF(KIB), out = BUF(KIB), why = BUF(KIB);

	rules(&r);
	git_push_init(&p, &r, "git.test/me/app");
	body(&b, two, 2, "report-status");
	CHECK_INT(feed(&p, &b, 1000), 1);
	CHECK_INT(p.n_refused, 1);
	git_push_report(&p, &out);
	CHECK_STR(buf_cstr(&out), "000eunpack ok\n"
				  "003fng refs/heads/agent/x refused with the others of this push\n"
				  "003ang refs/heads/main refused by the sandbox's git "
				  "rules\n0000");
	git_push_reason(&p, &why);
	CHECK_STR(buf_cstr(&why), "updating refs/heads/main in git.test/me/app is not listed; "
				  "git.push "
				  "[\"git.test/me/app:refs/heads/main\"] would allow it");
}

TEST(the_probe_of_a_large_push_passes)
{
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	_cleanup_(git_push_done) struct git_push p;
	struct err e = ERR_INIT;

	rules(&r);
	git_push_init(&p, &r, "git.test/me/app");
	CHECK_INT(git_push_feed(&p, "0000", 4, &e), 1);
	CHECK(p.n == 0 && p.n_refused == 0);
}

static int feed_push(void *arg, const char *p, size_t n, struct err *e)
{
	return git_push_feed(arg, p, n, e);
}

TEST(gzip_is_seen_through)
{
	static const char *const one[] = { ONE " " TWO " refs/heads/main" };
	_cleanup_(git_rules_done) struct git_rules r = { 0 };
	_cleanup_(git_push_done) struct git_push p;
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct gunzip *g = gunzip_new();
	struct err e = ERR_INIT;
	char packed[2048];
	z_stream z = { 0 };
	int n = 0;

	rules(&r);
	git_push_init(&p, &r, "git.test/me/app");
	body(&b, one, 1, "report-status");
	CHECK_INT(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)b.p;
	z.avail_in = (uInt)b.n;
	z.next_out = (Bytef *)packed;
	z.avail_out = sizeof(packed);
	CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
	for (size_t i = 0; i < sizeof(packed) - z.avail_out && n == 0; i++)
		n = gunzip_feed(g, packed + i, 1, feed_push, &p, &e);
	CHECK_INT(n, 1);
	CHECK_INT(p.n_refused, 1);
	gunzip_free(g);
	(void)deflateEnd(&z);
	g = gunzip_new();
	CHECK_INT(gunzip_feed(g, "not gzip", 8, feed_push, &p, &e), -EBADMSG);
	gunzip_free(g);
}

TEST(pkt_lines)
{
	static const char *const wrong[] = { "0003", "g000", "00g", "fff1", "-001", "+005a" };
	struct pkt k;
	struct err e = ERR_INIT;

	CHECK_INT(pkt_next("0000", 4, &k, &e), 4);
	CHECK_INT(k.kind, PKT_FLUSH);
	CHECK_INT(pkt_next("0001", 4, &k, &e), 4);
	CHECK_INT(k.kind, PKT_DELIM);
	CHECK_INT(pkt_next("0008abcdX", 9, &k, &e), 8);
	CHECK(k.kind == PKT_LINE && str_is(k.data, "abcd"));
	CHECK_INT(pkt_next("0004", 4, &k, &e), 4);
	CHECK(k.kind == PKT_LINE && k.data.n == 0);
	CHECK_INT(pkt_next("0008abc", 7, &k, &e), 0);
	CHECK_INT(pkt_next("00", 2, &k, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK_INT(pkt_next(wrong[i], strlen(wrong[i]), &k, &e), -EBADMSG);
}

TEST_MAIN()
