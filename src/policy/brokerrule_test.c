/* SPDX-License-Identifier: Apache-2.0 */
/* policy/brokerrule_test.c - what a rule of the broker covers, and what it must not */
#include "base/test.h"
#include "policy/brokerrule.h"

static int add(struct broker_rules *r, enum broker_kind kind, const char *text)
{
	struct err e = ERR_INIT;

	return broker_rules_add(r, kind, text, &e);
}

static bool is_url(const char *text, const char *want)
{
	_free_ char *got = broker_url(text);

	return got && str_eq(got, want);
}

TEST(urls)
{
	static const char *const bad[] = {
		"",
		"-u",
		"--upload-pack=x",
		"ext::sh -c x",
		"ext::x",
		"fd::3",
		"https://user:secret@host/x",
		"https://user@host/x",
		"https://host",
		"https://host/",
		"https://host/a b",
		"https://-host/x",
		"http://example.org/x",
		"http://127.0.0.1.example.org/x",
		"ssh://-oProxyCommand=x/y",
		"ssh://a@-oProxyCommand=x/y",
		"git@-oProxyCommand=x:y",
		"host:path",
		"git@host:a:b",
		"git@host:",
		"/a/../b",
		"relative/path",
		"file://relative",
		"https://host/a\nb",
		"https://host/$(x)",
		"https://host/`x`",
		"https://host/%2e%2e/x",
	};

	CHECK(is_url("https://github.com/me/app.git", "https://github.com/me/app"));
	CHECK(is_url("https://github.com/me/app/", "https://github.com/me/app"));
	CHECK(is_url("git@github.com:me/app.git", "git@github.com:me/app"));
	CHECK(is_url("ssh://git@host:2222/me/app", "ssh://git@host:2222/me/app"));
	CHECK(is_url("/srv/app.git", "/srv/app.git"));
	CHECK(is_url("file:///srv/app.git", "/srv/app.git"));
	CHECK(is_url("http://127.0.0.1:8080/app", "http://127.0.0.1:8080/app"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(broker_url(bad[i]) == NULL);
}

TEST(refs)
{
	static const char *const bad[] = { "refs/heads/",       "refs/heads/-x", "refs/heads/a..b",
					   "heads/x",           "refs/x",        "refs/heads/a b",
					   "refs/heads/x.lock", "refs/heads//x", "refs/heads/.x",
					   "refs/heads/x:y",    "refs/heads/*",  "HEAD" };

	CHECK(broker_is_ref("refs/heads/agent/fix-1"));
	CHECK(broker_is_ref("refs/tags/v1.0"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!broker_is_ref(bad[i]));
}

TEST(push)
{
	struct broker_rules r = { 0 };
	const char *u = "https://h/me/app";

	CHECK(add(&r, BROKER_PUSH, "https://h/me/app.git refs/heads/agent/*") == 0);
	CHECK(add(&r, BROKER_PUSH,
		  "https://h/me/app refs/heads/scratch force delete secret=forge approve") == 0);
	CHECK(broker_may_push(&r, u, "refs/heads/agent/a/b", BROKER_CREATE) != NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/agent/x", BROKER_UPDATE) != NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/agent/x", BROKER_FORCE) == NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/agent/x", BROKER_DELETE) == NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/main", BROKER_UPDATE) == NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/agent", BROKER_CREATE) == NULL);
	CHECK(broker_may_push(&r, u, "refs/tags/agent/x", BROKER_CREATE) == NULL);
	CHECK(broker_may_push(&r, "https://h/me/app2", "refs/heads/agent/x", BROKER_CREATE) ==
	      NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/scratch", BROKER_FORCE) != NULL);
	CHECK(broker_may_push(&r, u, "refs/heads/scratch", BROKER_DELETE) != NULL);
	CHECK_STR(broker_may_push(&r, u, "refs/heads/scratch", BROKER_FORCE)->secret, "forge");
	CHECK(broker_may_fetch(&r, u) == NULL);
	CHECK(broker_names(&r, u) != NULL);
	broker_rules_done(&r);
}

TEST(bad_rules)
{
	static const char *const push[] = {
		"https://h/x",
		"https://h/x refs/*",
		"https://h/x refs/*/x",
		"https://h/x *",
		"https://h/x main",
		"https://h/x refs/heads/x sometimes",
		"https://h/x refs/heads/x secret=../x",
		"x refs/heads/x",
		"",
	};
	struct broker_rules r = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(push); i++)
		CHECK(add(&r, BROKER_PUSH, push[i]) < 0);
	CHECK(add(&r, BROKER_FETCH, "https://h/x force") < 0);
	CHECK(add(&r, BROKER_GH, "owner") < 0);
	CHECK(add(&r, BROKER_GH, "owner/re/po") < 0);
	CHECK(add(&r, BROKER_COMMAND, "x=make") < 0);
	CHECK(add(&r, BROKER_COMMAND, "x=/usr/../bin/make") < 0);
	CHECK(add(&r, BROKER_COMMAND, "x y=/bin/make") < 0);
	CHECK(add(&r, BROKER_COMMAND, "x=/bin/make ...") < 0);
	CHECK(r.n == 0);
}

static bool takes(const struct broker_rule *r, const char *const *argv)
{
	struct err e = ERR_INIT;
	size_t n = 0;

	while (argv[n])
		n++;
	return broker_check_args(r, argv, n, &e) == 0;
}

#define ARGS(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

TEST(commands)
{
	struct broker_rules r = { 0 };
	const struct broker_rule *c;

	CHECK(add(&r, BROKER_COMMAND,
		  "deploy=/usr/bin/deploy --env staging agent/* [--dry-run] pkg-? ...") == 0);
	c = broker_command(&r, "deploy");
	CHECK(c && !c->is_checkout && str_eq(c->words[0], "/usr/bin/deploy"));
	CHECK(takes(c, ARGS("--env", "staging", "agent/x", "pkg-a")));
	CHECK(takes(c,
		    ARGS("--env", "staging", "agent/x", "--dry-run", "pkg-a", "pkg-b", "pkg-c")));
	CHECK(!takes(c, ARGS("--env", "production", "agent/x", "pkg-a")));
	CHECK(!takes(c, ARGS("--env", "staging", "agent/x", "--force", "pkg-a")));
	CHECK(!takes(c, ARGS("--env", "staging", "agent/x", "pkg-a", "--force")));
	CHECK(!takes(c, ARGS("--env", "staging", "agent/x\n", "pkg-a")));
	CHECK(!takes(c, ARGS("--env", "staging")));
	/* A pattern leads nowhere above what it names. */
	CHECK(!takes(c, ARGS("--env", "staging", "agent/../main", "pkg-a")));
	CHECK(!takes(c, ARGS("--env", "staging", "agent/..", "pkg-a")));
	CHECK(!takes(c, ARGS("--env", "staging", "agent/x", "pkg-a", "..")));
	CHECK(takes(c, ARGS("--env", "staging", "agent/x.y", "pkg-a")));
	CHECK(broker_command(&r, "other") == NULL);
	CHECK(add(&r, BROKER_COMMAND, "rel=checkout /usr/bin/rel") == 0);
	CHECK(broker_command(&r, "rel")->is_checkout);
	CHECK(!takes(broker_command(&r, "rel"), ARGS("x")));
	CHECK(!broker_command(&r, "rel")->has_network);
	CHECK(add(&r, BROKER_COMMAND, "net=network /usr/bin/net network") == 0);
	CHECK(broker_command(&r, "net")->has_network && !broker_command(&r, "net")->is_checkout);
	CHECK(takes(broker_command(&r, "net"), ARGS("network")));
	CHECK(add(&r, BROKER_COMMAND, "two=network checkout /usr/bin/two") == 0);
	CHECK(broker_command(&r, "two")->has_network && broker_command(&r, "two")->is_checkout);
	CHECK(add(&r, BROKER_COMMAND, "bad=network network /usr/bin/bad") < 0);
	CHECK(add(&r, BROKER_COMMAND, "bad=network") < 0);
	broker_rules_done(&r);
}

TEST_MAIN()
