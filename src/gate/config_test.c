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
