/* SPDX-License-Identifier: Apache-2.0 */
/* seal/pkt_fuzz.c - any bytes as the body of a push: cut anywhere, judged the same; never more allowed than listed */
#include "seal/git.h"
#include "seal/gunzip.h"
#include "seal/pkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int feed(struct git_push *p, const char *b, size_t n, size_t step)
{
	struct err e = ERR_INIT;
	int r = 0;

	for (size_t at = 0; at < n && r == 0; at += step)
		r = git_push_feed(p, b + at, n - at < step ? n - at : step, &e);
	return r;
}

static int feed_push(void *arg, const char *p, size_t n, struct err *e)
{
	return git_push_feed(arg, p, n, e);
}

static void as_gzip(const struct git_rules *rules, const char *b, size_t n)
{
	_cleanup_(git_push_done) struct git_push p;
	struct gunzip *g = gunzip_new();
	struct err e = ERR_INIT;

	git_push_init(&p, rules, "git.test/me/app");
	(void)gunzip_feed(g, b, n, feed_push, &p, &e);
	gunzip_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(git_rules_done) struct git_rules rules = { 0 };
	_cleanup_(git_push_done) struct git_push whole = { 0 }, cut = { 0 };
	_cleanup_(buf_done) struct buf out = BUF(4 * MIB);
	struct err e = ERR_INIT;
	int r;

	if (n < 1)
		return 0;
	bug_on(git_rules_add(&rules, true, "git.test/me/app:refs/heads/agent/*", &e) < 0);
	git_push_init(&whole, &rules, "git.test/me/app");
	git_push_init(&cut, &rules, "git.test/me/app");
	r = feed(&whole, (const char *)data + 1, n - 1, n);
	bug_on(feed(&cut, (const char *)data + 1, n - 1, 1 + data[0] % 64U) != r);
	bug_on(whole.n != cut.n || whole.n_refused != cut.n_refused);
	for (size_t i = 0; i < whole.n; i++)
		bug_on(whole.v[i].is_allowed &&
		       (!str_starts(whole.v[i].ref, "refs/heads/agent/") ||
			strstr(whole.v[i].ref, "..") || whole.v[i].op == GIT_DELETE));
	if (r == 1)
		git_push_report(&whole, &out);
	as_gzip(&rules, (const char *)data + 1, n - 1);
	return 0;
}
