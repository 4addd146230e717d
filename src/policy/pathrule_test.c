/* SPDX-License-Identifier: Apache-2.0 */
/* policy/pathrule_test.c - methods and paths, and paths that are two things at once */
#include "base/test.h"
#include "policy/pathrule.h"

static int judge(const struct path_rules *r, const char *host, const char *method,
		 const char *target)
{
	const struct path_rule *rule;
	struct err e = ERR_INIT;

	return path_judge(r, host, str_of(method), str_of(target), &rule, &e);
}

static void fill(struct path_rules *r)
{
	struct err e = ERR_INIT;

	CHECK(path_rules_add(r, false, "GET api.test/repos/me/**", &e) == 0);
	CHECK(path_rules_add(r, false, "GET,POST api.test/repos/me/app/pulls", &e) == 0);
	CHECK(path_rules_add(r, true, "* api.test/repos/me/secret/**", &e) == 0);
	CHECK(path_rules_add(r, false, "* api.test/top", &e) == 0);
	CHECK(path_rules_add(r, false, "GET *.wild.test", &e) == 0);
	CHECK(path_rules_add(r, true, "DELETE deny.test", &e) == 0);
	CHECK(path_rules_add(r, false, "GET root.test/", &e) == 0);
}

TEST(rules_decide)
{
	_cleanup_(path_rules_done) struct path_rules r = { 0 };

	fill(&r);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/me/app"), 0);
	CHECK_INT(judge(&r, "api.test", "HEAD", "/repos/me/app/"), 0);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/me/app?x=../..//"), 0);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/me/a%20b"), 0);
	CHECK_INT(judge(&r, "api.test", "POST", "/repos/me/app"), -ENOENT);
	CHECK_INT(judge(&r, "api.test", "POST", "/repos/me/app/pulls"), 0);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/you/app"), -ENOENT);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/me"), -ENOENT);
	CHECK_INT(judge(&r, "api.test", "GET", "/repos/me/secret/x"), -EACCES);
	CHECK_INT(judge(&r, "api.test", "GET", "/top"), 0);
	CHECK_INT(judge(&r, "api.test", "GET", "/a/top"), -ENOENT);
	CHECK_INT(judge(&r, "api.test", "GET", "/"), -ENOENT);
	CHECK_INT(judge(&r, "a.wild.test", "GET", "/anything//at/../all"), -EBADMSG);
	CHECK_INT(judge(&r, "a.wild.test", "GET", "/anything"), 0);
	CHECK_INT(judge(&r, "wild.test", "POST", "/"), 0);
	CHECK_INT(judge(&r, "deny.test", "GET", "/x"), 0);
	CHECK_INT(judge(&r, "deny.test", "DELETE", "/x"), -EACCES);
	CHECK_INT(judge(&r, "root.test", "GET", "/"), 0);
	CHECK_INT(judge(&r, "root.test", "GET", "/x"), -ENOENT);
	CHECK_INT(judge(&r, "other.test", "GET", "/../x"), 0);
}

TEST(double_meanings_are_refused)
{
	static const char *const wrong[] = {
		"/repos/me/../you",  "/repos/me/%2e%2e/you", "/repos/me/.%2E/you",
		"/repos/me/%252e/x", "/repos/me\\x",         "/repos//me/x",
		"/repos/me/x;y",     "/repos/me%2fx",        "/repos/me%5cx",
		"/repos/me/%00",     "/repos/me/./x",        "/repos/me/x/..",
		"/repos/me/x/.",     "/repos/me/%zz",        "/repos/me/x%2",
		"//repos/me/x",      "/repos/me/x//",        "/repos/me/%3bx"
	};
	_cleanup_(path_rules_done) struct path_rules r = { 0 };

	fill(&r);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (judge(&r, "api.test", "GET", wrong[i]) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: %s\n", wrong[i]);
			CHECK(false);
		}
}

TEST(rules_are_checked)
{
	static const char *const wrong[] = { "",          "GET",       "get api.test/",
					     "GET /path", " api.test", "GET, a.test",
					     "G(T a.test" };
	_cleanup_(path_rules_done) struct path_rules r = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err e = ERR_INIT;

		if (path_rules_add(&r, false, wrong[i], &e) != -EINVAL) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
	}
}

TEST_MAIN()
