/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/night.h"

#include "base/test.h"

#define A "0123456789012345678901234567890123456789"
#define B "abcdefabcdefabcdefabcdefabcdefabcdefabcd"

static bool commit(const char *line, struct night_commit *c)
{
	return night_commit(line, strlen(line), c);
}

TEST(reflog_lines)
{
	static const char *const others[] = {
		"",
		"\t",
		"commit: x",
		A " " B " me <me@x> 17 +0000",
		A " " B " me <me@x> 17 +0000\tclone: from /x",
		A " " B " me <me@x> 17 +0000\tcommit",
		A " " B " me <me@x> x +0000\tcommit: no time",
		A " " B " me <me@x> 1234567890123 +0000\tcommit: a time that is too long",
		A " xyz me <me@x> 17 +0000\tcommit: no id",
		"g" A " " B " m 17 +0\tcommit: x",
		A " " B "\tcommit: nobody",
	};
	struct night_commit c;

	CHECK(commit(A " " B " A B <me@x> 1794982102 +0100\tcommit: fix: it", &c));
	CHECK_INT((long)c.time, 1794982102);
	CHECK_STR(c.id, "abcdefabcdef");
	CHECK_INT((long)c.n, (long)strlen("fix: it"));
	CHECK(memcmp(c.subject, "fix: it", c.n) == 0);
	CHECK(commit(A " " B " A <a> 5 +0\tcommit (amend): again", &c));
	CHECK(memcmp(c.subject, "again", c.n) == 0 && c.n == 5);
	CHECK(commit(A " " B " A <a> 5 +0\tcommit (initial):", &c) && c.n == 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK(!commit(others[i], &c));
}

static char *refused(const char *text)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct buf b = BUF(4 * KIB);
	struct err e = ERR_INIT;

	bug_on(json_parse_foreign(text, strlen(text), &doc, &e) < 0);
	if (!night_refusal(doc.root, &b)) {
		buf_done(&b);
		return mem_str("");
	}
	return buf_take(&b);
}

TEST(refusals)
{
	static const char *const v[][2] = {
		{ "{\"type\":\"net.verdict\",\"data\":{\"verdict\":\"deny\",\"host\":\"x.org\","
		  "\"port\":443}}",
		  "network: x.org:443" },
		{ "{\"type\":\"net.verdict\",\"data\":{\"verdict\":\"allow\",\"host\":\"x.org\"}}",
		  "" },
		{ "{\"type\":\"guard.decision\",\"data\":{\"verdict\":\"deny\",\"input\":\"rm -rf "
		  "/\"}}",
		  "guard: rm -rf /" },
		{ "{\"type\":\"guard.decision\",\"data\":{\"verdict\":\"ask\",\"input\":\"ls\"}}",
		  "" },
		{ "{\"type\":\"wall.refused\",\"data\":{\"wall\":\"files\",\"path\":\"/etc/"
		  "shadow\"}}",
		  "wall: /etc/shadow" },
		{ "{\"type\":\"file.quarantined\",\"data\":{\"path\":\".envrc\"}}", "quarantined: "
										    ".envrc" },
		{ "{\"type\":\"broker.ran\",\"data\":{\"verdict\":\"deny\",\"argv\":[\"git\","
		  "\"push\"]}}",
		  "broker: git push" },
		{ "{\"type\":\"limit.hit\",\"data\":{\"limit\":\"memory\"}}", "limit: memory" },
		{ "{\"type\":\"session.ended\",\"data\":{}}", "" },
		{ "{\"type\":7,\"data\":[]}", "" },
		{ "{}", "" },
		{ "[]", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		_free_ char *got = refused(v[i][0]);

		CHECK_STR(got, v[i][1]);
	}
}

TEST(telemetry_of_requests)
{
	static const char *const text = "{\"type\":\"otel\",\"data\":{\"signal\":\"%s\","
					"\"attributes\":\"{\\\"cost_usd\\\":%s,"
					"\\\"input_tokens\\\":\\\"12\\\",\\\"output_tokens\\\":3}"
					"\"}}";
	static const char *const v[][3] = { { "logs", "0.25", "y" },
					    { "logs", "\\\"0.25\\\"", "y" },
					    { "metrics", "0.25", "n" } };

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		_free_ char *line = mem_fmt(text, v[i][0], v[i][1]);
		struct night_spent s = { 0 };
		struct err e = ERR_INIT;

		CHECK_INT(json_parse_foreign(line, strlen(line), &doc, &e), 0);
		CHECK_INT(night_spent(doc.root, &s), v[i][2][0] == 'y');
		if (v[i][2][0] == 'y')
			CHECK(s.cost == 250000 && s.tokens_in == 12 && s.tokens_out == 3);
	}
}

TEST_MAIN()
