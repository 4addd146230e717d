/* SPDX-License-Identifier: Apache-2.0 */
/* broker/decide_test.c - which pushes and pull requests pass, and what is found in what is pushed */
#include "base/test.h"
#include "broker/broker.h"

#define URL "https://h/me/app"

static bool may(const char *old, const char *new, const char *ref, bool is_forced, bool is_ff,
		const char *want)
{
	struct broker_rules r = { 0 };
	struct update u = {
		.old = old, .new = new, .ref = ref, .is_forced = is_forced, .is_ff = is_ff
	};
	struct err e = ERR_INIT;
	char say[256];
	bool ok;

	CHECK(broker_rules_add(&r, BROKER_PUSH, URL " refs/heads/agent/*", &e) == 0);
	CHECK(broker_rules_add(&r, BROKER_PUSH, URL " refs/heads/free force delete", &e) == 0);
	CHECK(broker_rules_add(&r, BROKER_PUSH, URL " refs/tags/agent-* create", &e) == 0);
	ok = decide_push(&r, URL, &u, say) != NULL;
	CHECK(ok == (say[0] == '\0'));
	if (want && !strstr(say, want)) {
		(void)fprintf(stderr, "'%s' does not say '%s'\n", say, want);
		CHECK(false);
	}
	broker_rules_done(&r);
	return ok;
}

TEST(pushes)
{
	CHECK(may("", "b", "refs/heads/agent/x", false, false, NULL));
	CHECK(may("a", "b", "refs/heads/agent/x", false, true, NULL));
	CHECK(may("a", "b", "refs/heads/agent/x", true, true, NULL)); /* forced in words only */
	CHECK(!may("a", "b", "refs/heads/agent/x", false, false, "non-fast-forward"));
	CHECK(!may("a", "b", "refs/heads/agent/x", true, false, "force push refused"));
	CHECK(!may("a", "", "refs/heads/agent/x", false, false, "deleting refused"));
	CHECK(!may("", "b", "refs/heads/main", false, false, "no rule"));
	CHECK(!may("", "b", "refs/tags/v1", false, false, "no rule"));
	CHECK(may("", "b", "refs/tags/agent-1", false, false, NULL));
	CHECK(!may("a", "b", "refs/tags/agent-1", true, true, "force push refused"));
	CHECK(may("a", "b", "refs/heads/free", true, false, NULL));
	CHECK(may("a", "", "refs/heads/free", false, false, NULL));
	CHECK(!may("", "b", "refs/heads/free", false, false, "'create'"));
	CHECK(!may("", "b", "refs/heads/agent/../main", false, false, "not a name"));
	CHECK(!may("", "b", "HEAD", false, false, "not a name"));
}

static bool gh(const char *text, struct gh_call *c)
{
	const char *words[32];
	static char copy[512];
	struct err e = ERR_INIT;
	size_t n = 0;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p;) {
		words[n++] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = '\0';
	}
	return decide_gh(words, n, c, &e) == 0;
}

TEST(pull_requests)
{
	struct gh_call c;

	CHECK(gh("pr create --title x --head agent/y", &c));
	CHECK(gh("pr create -t x -H agent/y -B main -d --label=a -l b -r me --body=text -R me/app",
		 &c));
	CHECK(c.is_draft && c.n_labels == 2 && c.n_reviewers == 1 && str_eq(c.body, "text") &&
	      str_eq(c.repo, "me/app"));
	CHECK(!gh("pr create", &c));
	CHECK(!gh("pr create --title x", &c));
	CHECK(!gh("pr merge 1", &c));
	CHECK(!gh("api /user", &c));
	CHECK(!gh("auth token", &c));
	CHECK(!gh("alias set x y", &c));
	CHECK(!gh("pr create --title x --head y --web", &c));
	CHECK(!gh("pr create --title x --head y --body-file /etc/passwd", &c));
	CHECK(!gh("pr create --title x --head y -F /etc/passwd", &c));
	CHECK(!gh("pr create --title x --head y --fill", &c));
	CHECK(!gh("pr create --title x --head --web", &c));
	CHECK(!gh("pr create --title x --head y -R https://evil/x", &c));
	CHECK(!gh("pr create --title x --head", &c));
}

TEST(secrets)
{
	static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid "
				  "sha256:4d7a\nsize 12\n";
	static const char key[] = "-----BEGIN OPENSSH "
				  "PRIVATE KEY-----\nAAAA\nBBBB\nCCCC\nDDDDDDDDDDDD\n-----END "
				  "OPENSSH "
				  "PRIVATE KEY-----\n";
	char text[256];

	CHECK_STR(scan_secret(key, strlen(key)), "private key");
	/* Put together here, so that nothing in this file looks like one. */
	(void)snprintf(text, sizeof(text), "key = '%s%s'", "AKIA", "Q3EGRJ5LMNPKT7WX");
	CHECK_STR(scan_secret(text, strlen(text)), "AWS access key");
	(void)snprintf(text, sizeof(text), "%s%s", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
	CHECK_STR(scan_secret(text, strlen(text)), "GitHub token");
	(void)snprintf(text, sizeof(text), "K=%s%s\n", "sk-ant-", "api03-abcdefghijklmnopqrstuv");
	CHECK_STR(scan_secret(text, strlen(text)), "Anthropic key");
	(void)snprintf(text, sizeof(text), "%s%s", "AKIA", "IOSFODNN7EXAMPLE");
	CHECK(scan_secret(text, strlen(text)) == NULL);
	CHECK(scan_secret("task-ant-colony of sk-ants, AKIA, ghp_short", 44) == NULL);
	CHECK(scan_secret("-----BEGIN PUBLIC KEY-----\nAAAA", 31) == NULL);
	CHECK(scan_secret("", 0) == NULL);
	CHECK(scan_is_lfs(lfs, strlen(lfs)));
	CHECK(!scan_is_lfs(lfs, 43) && !scan_is_lfs(lfs + 1, strlen(lfs) - 1) &&
	      !scan_is_lfs("", 0));
}

TEST(ports)
{
	CHECK_INT(url_port("https://github.com/a/b", 443), 443);
	CHECK_INT(url_port("https://u@h.test:8443/a:1/b", 443), 8443);
	CHECK_INT(url_port("http://[::1]:81", 80), 81);
	CHECK_INT(url_port("http://[::1]/x", 80), 80);
	CHECK_INT(url_port("http://user:secret@proxy", 80), 80);
	CHECK_INT(url_port("proxy.test:3128", 80), 3128);
	CHECK_INT(url_port("http://h:0/", 80), 0);
	CHECK_INT(url_port("http://h:99999/", 80), 0);
	CHECK_INT(url_port("http://h:x/", 80), 0);
	CHECK_INT(url_port("", 80), 0);
}

TEST_MAIN()
