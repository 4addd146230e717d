/* SPDX-License-Identifier: Apache-2.0 */
/* gate/config_test.c - the keeper's words to dial */
#include "base/test.h"
#include "gate/config.h"

TEST(all_lines)
{
	char text[] = "name box\nallow ok.test\ndeny *.ok.test:22\nport 8080:80\nhost-port 5432\n"
		      "upstream http://proxy.test:3128\nask\n";
	_cleanup_(config_done) struct config c = { 0 };
	struct err e = ERR_INIT;

	CHECK_INT(config_parse(text, &c, &e), 0);
	CHECK_STR(e.msg, "");
	CHECK_STR(c.name, "box");
	CHECK(c.rules.n == 2 && !c.rules.v[0].is_deny && c.rules.v[1].is_deny);
	CHECK(c.n_ports == 1 && c.ports[0].outside == 8080 && c.ports[0].inside == 80);
	CHECK(c.n_host_ports == 1 && c.host_ports[0] == 5432);
	CHECK(c.upstream.kind == UPSTREAM_HTTP && c.upstream.port == 3128 && c.is_asking);
}

TEST(a_proxy_with_a_login)
{
	static const struct {
		const char *url, *login, *shown;
	} cases[] = {
		{ "http://me:p%40ss%3a@proxy.test:3128", "me:p@ss:", "http://***@proxy.test:3128" },
		{ "socks5://me@proxy.test", "me", "socks5://***@proxy.test" },
		{ "http://proxy.test/", "", "http://proxy.test/" },
		{ "http://a@b@proxy.test", "a@b", "http://***@proxy.test" },
		{ "http://a%4@proxy.test", NULL, "http://***@proxy.test" },
		{ "http://a%0d%0a@proxy.test", NULL, "http://***@proxy.test" },
		{ "http://me@", NULL, "http://***@" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(buf_done) struct buf shown = BUF(KIB);
		struct net_upstream u = { 0 };

		CHECK_INT(net_upstream_parse(cases[i].url, &u), cases[i].login ? 0 : -EINVAL);
		CHECK_STR(u.login, cases[i].login ? cases[i].login : "");
		net_upstream_show(cases[i].url, &shown);
		CHECK_STR(buf_cstr(&shown), cases[i].shown);
	}
}

TEST(paths_are_kept_to_be_shown)
{
	char text[] = "inspect ok.test\npath allow GET ok.test/a\npath deny POST ok.test/b\n";
	_cleanup_(config_done) struct config c = { 0 };
	struct err e = ERR_INIT;

	CHECK_INT(config_parse(text, &c, &e), 0);
	CHECK(c.n_paths == 2 && c.n_inspect == 1);
	CHECK_STR(c.paths[0], "allow GET ok.test/a");
}

TEST(nothing_allows_nothing)
{
	char text[] = "";
	_cleanup_(config_done) struct config c = { 0 };
	struct err e = ERR_INIT;
	struct host_id h = { .name = "ok.test" };

	CHECK_INT(config_parse(text, &c, &e), 0);
	CHECK(!rules_host(&c.rules, &h, 443).is_allowed);
}

TEST(half_understood_is_refused)
{
	static const char *const bad[] = { "allw ok.test\n",     "allow \n",
					   "port x\n",           "host-port 0\n",
					   "upstream ftp://x\n", "allow ok.test\nbogus\n" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_free_ char *text = mem_str(bad[i]);
		struct err e = ERR_INIT;
		struct config c;

		CHECK(config_parse(text, &c, &e) < 0);
	}
}

TEST_MAIN()
