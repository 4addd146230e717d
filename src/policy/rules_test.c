/* SPDX-License-Identifier: Apache-2.0 */
/* policy/rules_test.c - which rule decides, and what no rule for a name can open */
#include "base/test.h"
#include "policy/policy.h"
#include "policy/rules.h"

/* "+rule" allows, "-rule" denies. */
static void load(struct rules *r, const char *const *list)
{
	struct err e = ERR_INIT;

	*r = (struct rules){ 0 };
	for (; *list; list++)
		if (rules_add(r, *list + 1, **list == '-', &e) < 0)
			CHECK_STR(e.msg, *list);
}

#define RULES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static bool may(const char *const *list, const char *target)
{
	_cleanup_(rules_done) struct rules r;
	struct host_id h;
	const char *why;
	uint16_t port;

	load(&r, list);
	if (host_port_parse(target, strlen(target), 443, &h, &port, &why) < 0)
		return false;
	return rules_host(&r, &h, port).is_allowed;
}

TEST(an_address_of_a_page_is_none)
{
	struct err e = ERR_INIT;
	struct rule r;

	CHECK_INT(rule_parse("https://ok.test/x", false, false, &r, &e), -EINVAL);
	CHECK(strstr(e.msg, "the host alone"));
}

TEST(label_boundaries)
{
	const char *const *r = RULES("+*.github.test", "+ok.test", "+**.tree.test");

	CHECK(may(r, "ok.test"));
	CHECK(may(r, "OK.test."));
	CHECK(may(r, "a.github.test") && may(r, "a.b.github.test"));
	CHECK(may(r, "tree.test") && may(r, "a.tree.test"));
	CHECK(!may(r, "github.test"));
	CHECK(!may(r, "evil-github.test"));
	CHECK(!may(r, "github.test.evil.test"));
	CHECK(!may(r, "xok.test"));
	CHECK(!may(r, "ok.test.evil"));
	CHECK(!may(r, "a.ok.test"));
	CHECK(!may(r, "xtree.test"));
}

TEST(most_specific_wins)
{
	CHECK(!may(RULES("+*.ok.test", "-bad.ok.test"), "bad.ok.test"));
	CHECK(!may(RULES("+*.ok.test", "-bad.ok.test"), "BAD.ok.test."));
	CHECK(!may(RULES("+*.ok.test", "-bad.ok.test"), "bad.ok.test:8443"));
	CHECK(may(RULES("-*.ok.test", "+good.ok.test"), "good.ok.test"));
	CHECK(may(RULES("-*.test", "+*.ok.test"), "a.ok.test"));
	CHECK(!may(RULES("-*.test", "+*.ok.test", "+other.example"), "ok.test"));
	CHECK(!may(RULES("+*.ok.test", "-*.a.ok.test"), "x.a.ok.test"));
	CHECK(!may(RULES("+ok.test", "-ok.test"), "ok.test"));
	CHECK(!may(RULES("-ok.test", "+ok.test"), "ok.test"));
	CHECK(may(RULES("-ok.test", "+ok.test:443"), "ok.test:443"));
	CHECK(!may(RULES("-ok.test:443", "+ok.test"), "ok.test:443"));
	CHECK(may(RULES("-ok.test:400-500", "+ok.test:443"), "ok.test:443"));
	/* The host comes before the port. */
	CHECK(may(RULES("+ok.test", "-*.ok.test:443", "-*:443"), "ok.test:443"));
}

TEST(ports)
{
	CHECK(may(RULES("+ok.test:443"), "ok.test:443"));
	CHECK(!may(RULES("+ok.test:443"), "ok.test:80"));
	CHECK(may(RULES("+ok.test:8000-8099"), "ok.test:8042"));
	CHECK(!may(RULES("+ok.test:8000-8099"), "ok.test:8100"));
}

static bool is_raw(const char *text)
{
	struct err e = ERR_INIT;
	struct rule r;

	return rule_parse(text, false, false, &r, &e) == 0 && r.is_raw;
}

TEST(raw_ports)
{
	struct err e = ERR_INIT;
	struct rule r;

	CHECK(may(RULES("+ok.test:80/raw"), "ok.test:80"));
	CHECK(is_raw("ok.test:80/raw"));
	CHECK(is_raw("*.ok.test:8000-8099/raw"));
	CHECK(is_raw("[2606:4700::1]:80/raw"));
	CHECK(!is_raw("ok.test:80"));
	CHECK(rule_parse("ok.test/raw", false, false, &r, &e) < 0);
	CHECK(rule_parse("ok.test:/raw", false, false, &r, &e) < 0);
	CHECK(rule_parse("ok.test:80/RAW", false, false, &r, &e) < 0);
	CHECK(rule_parse("ok.test:80/raw", true, false, &r, &e) < 0);
}

TEST(addresses_need_a_rule)
{
	CHECK(!may(RULES("+ok.test"), "93.184.216.34"));
	CHECK(may(RULES("+93.184.216.0/24"), "93.184.216.34"));
	CHECK(!may(RULES("+93.184.216.0/24:80"), "93.184.216.34:443"));
	CHECK(may(RULES("+*"), "93.184.216.34"));
	CHECK(!may(RULES("+*", "-93.184.216.0/24"), "93.184.216.34"));
	CHECK(may(RULES("+2606:4700::/32"), "[2606:4700::1]:443"));
	CHECK(may(RULES("+[2606:4700::1]:443"), "[2606:4700::1]:443"));
	CHECK(!may(RULES("+0.0.0.0/0"), "[2606:4700::1]:443"));
}

TEST(closed_ranges_need_their_name)
{
	static const char *const closed[] = { "127.0.0.1",
					      "10.0.0.5",
					      "169.254.169.254",
					      "100.100.100.200",
					      "224.0.0.1",
					      "[::1]",
					      "[fd00:ec2::254]",
					      "[fe80::1]",
					      "[::ffff:127.0.0.1]",
					      "[64:ff9b::a9fe:a9fe]",
					      "0.0.0.0",
					      "[2002:7f00:1::]" };

	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		CHECK(!may(RULES("+*"), closed[i]));
		CHECK(!may(RULES("+0.0.0.0/0", "+::/0"), closed[i]));
	}
	CHECK(may(RULES("+10.0.0.0/8"), "10.0.0.5"));
	CHECK(may(RULES("+10.0.0.5:5432"), "10.0.0.5:5432"));
	CHECK(!may(RULES("+10.0.0.5:5432"), "10.0.0.5:22"));
	CHECK(!may(RULES("+10.0.0.0/7"), "10.0.0.5"));
	CHECK(may(RULES("+169.254.169.254"), "169.254.169.254"));
	CHECK(!may(RULES("+10.0.0.0/8", "-10.0.0.5"), "10.0.0.5"));
}

static bool may_dial(const char *const *list, const char *address, bool is_own)
{
	_cleanup_(rules_done) struct rules r;
	struct addr a;

	load(&r, list);
	CHECK_INT(addr_parse(address, strlen(address), &a), 0);
	return rules_address(&r, &a, 443, is_own).is_allowed;
}

TEST(addresses_of_allowed_names)
{
	CHECK(may_dial(RULES("+ok.test"), "93.184.216.34", false));
	CHECK(!may_dial(RULES("+ok.test"), "93.184.216.34", true));
	CHECK(may_dial(RULES("+ok.test", "+93.184.216.34"), "93.184.216.34", true));
	CHECK(!may_dial(RULES("+ok.test", "+93.184.216.0/24"), "93.184.216.34", true));
	CHECK(!may_dial(RULES("+ok.test"), "127.0.0.1", false));
	CHECK(!may_dial(RULES("+*"), "10.0.0.5", false));
	CHECK(may_dial(RULES("+ok.test", "+10.0.0.0/8"), "10.0.0.5", false));
	CHECK(!may_dial(RULES("+ok.test", "-93.184.0.0/16"), "93.184.216.34", false));
}

TEST(any_port)
{
	_cleanup_(rules_done) struct rules r;
	struct host_id h;
	const char *why;

	load(&r, RULES("+ok.test:443", "-ok.test:22", "-no.test", "+no.test"));
	CHECK_INT(host_parse("ok.test", 7, &h, &why), 0);
	CHECK(rules_host(&r, &h, 0).is_allowed);
	CHECK_INT(host_parse("no.test", 7, &h, &why), 0);
	CHECK(!rules_host(&r, &h, 0).is_allowed);
}

TEST(wrong_rules)
{
	static const char *const bad[] = {
		"",
		"*.com",
		"a*.test",
		"*a.test",
		"a.*.test",
		"ok.test:0",
		"ok.test:99999",
		"ok.test:9-1",
		"ok.test:",
		"1.2.3.4/33",
		"1.2.3.4/24",
		"127.1",
		"http://a.test",
		"a.test/x",
		"ok test",
		"*.1.2.3.4",
		"::1:80:",
		"2001:db8::1/32",
		"**.com",
		"user@a.test",
		"b\303\274cher.test",
		"0x7f.1",
	};
	struct rule r;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = ERR_INIT;
		if (rule_parse(bad[i], false, false, &r, &e) == 0)
			CHECK_STR(bad[i], "refused");
		CHECK(e.msg[0] != '\0');
	}
	e = ERR_INIT;
	CHECK(rule_parse("*", false, false, &r, &e) < 0 && strstr(e.msg, "open"));
	CHECK(rule_parse("*", true, false, &r, &e) == 0);
	e = ERR_INIT;
	CHECK(rule_parse("*.com", true, false, &r, &e) == 0); /* closing much is nobody's mistake */
	CHECK(rule_parse("*:443", false, true, &r, &e) == 0);
}

TEST(presets_are_rules)
{
	for (const struct net_preset *p = net_presets; p->name; p++)
		for (const char *const *v = p->allow; *v; v++) {
			struct err e = ERR_INIT;
			struct rule r;

			if (rule_parse(*v, false, str_eq(p->name, "open"), &r, &e) < 0)
				CHECK_STR(e.msg, *v);
		}
}

TEST(groups)
{
	size_t n = 0;

	for (const struct net_preset *g = net_groups; g->name; g++) {
		CHECK(g->allow[0] != NULL);
		for (const char *const *v = g->allow; *v; v++, n++) {
			struct err e = ERR_INIT;
			struct rule r;

			if (rule_parse(*v, false, false, &r, &e) < 0)
				CHECK_STR(e.msg, *v);
		}
	}
	CHECK(n > 50);
	CHECK_STR(net_group_of("x.y.npmjs.org"), "npm");
	CHECK_STR(net_group_of("npmjs.org"), "npm");
	CHECK_STR(net_group_of("oauth2.googleapis.com"), "ai");
	CHECK(net_group_of("notnpmjs.org") == NULL && net_group_of("org") == NULL);
	CHECK_STR(net_group_find("rust")->allow[0], "**.crates.io");
	CHECK(net_group_find("np") == NULL);
}

TEST(groups_stand_for_their_hosts)
{
	struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	CHECK_INT(policy_add(&p, LIST_NET_ALLOW, "npm", LAYER_FLAGS, &e), 0);
	CHECK_INT(policy_add(&p, LIST_NET_ALLOW, "pypi", LAYER_FLAGS, &e), 0);
	CHECK_INT(p.net_allow.n, 5);
	CHECK_STR(p.net_allow.v[0].text, "**.npmjs.org");
	CHECK_INT(policy_add(&p, LIST_NET_ALLOW, "!npm", LAYER_FLAGS, &e), 0);
	CHECK_INT(p.net_allow.n, 2);
	CHECK_INT(policy_add(&p, LIST_NET_DENY, "npm", LAYER_FLAGS, &e), 0);
	CHECK_INT(p.net_deny.n, 3);
	CHECK_INT(policy_add(&p, LIST_NET_ALLOW, "intranet", LAYER_FLAGS, &e), 0);
	CHECK_STR(p.net_allow.v[2].text, "intranet");
	CHECK_INT(policy_add(&p, LIST_HIDE, "npm", LAYER_FLAGS, &e),
		  0); /* a name like any other there */
	policy_done(&p);
}

TEST_MAIN()
