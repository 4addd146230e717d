/* SPDX-License-Identifier: Apache-2.0 */
/* policy/policy_fuzz.c - any bytes as a policy file
 *
 * The promise that matters: whatever an untrusted project file says, the policy behind it is nowhere wider than the
 * one before. That is checked here from the outside, by looking at the two policies, not by asking the merge code.
 * The first byte chooses: a user policy to stand on, 0x80 trusted, 0x40 print the result.
 */
#include "policy/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const users[] = {
	"{}",
	"{\"limits\":{\"memory\":\"1g\",\"pids\":\"none\",\"time\":\"10m,optional\"},\"workspace\":"
	"{\"mode\":\"review\"}}",
	"{\"network\":{\"mode\":\"gate\"},\"features\":{\"debug\":true},\"files\":{\"read\":[\"/"
	"opt/a\"],\"home\":\"tmp\"}}",
	"{\"files\":{\"hide\":[\"!.env\",\"x/**\"],\"mount\":[\"/a:/"
	"b\"]},\"env\":{\"pass\":[\"!USER\",\"F_*\"],\"set\":{\"K\":\"v\"}}}",
};

static const char *const paths[] = { ".env", "a/.env.local", ".git",  ".vscode",  "x/y",
				     "a",    "id_rsa",       "a/b/c", ".mcp.json" };
static const char *const vars[] = { "PATH",          "USER",       "LC_ALL", "F_A",
				    "SSH_AUTH_SOCK", "LD_PRELOAD", "K",      "A" };

static void load(struct policy *p, const char *text)
{
	struct err e = ERR_INIT;
	int r;

	policy_init(p);
	r = policy_merge_text(p, "user", text, strlen(text), LAYER_USER, true, &e);
	bug_on(r < 0);
}

static bool has(const struct items *l, const char *text)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i].text, text))
			return true;
	return false;
}

static void check_subset(const struct items *after, const struct items *before)
{
	for (size_t i = 0; i < after->n; i++)
		bug_on(!has(before, after->v[i].text));
}

static void check_not_wider(const struct policy *before, const struct policy *after)
{
	check_subset(&after->read, &before->read);
	check_subset(&after->write, &before->write);
	check_subset(&after->mount, &before->mount);
	check_subset(&after->sockets, &before->sockets);
	check_subset(&after->env_set, &before->env_set);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		bug_on(items_match(&before->hide, paths[i]) >= 0 &&
		       items_match(&after->hide, paths[i]) < 0);
		bug_on(items_match(&before->protect, paths[i]) >= 0 &&
		       items_match(&after->protect, paths[i]) < 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		bug_on(!policy_env_passes(before, vars[i]) && policy_env_passes(after, vars[i]));
	for (unsigned i = 0; i < LIMIT_ALL_; i++) {
		const struct limit *b = &before->limits[i], *a = &after->limits[i];

		bug_on(b->is_set &&
		       (!a->is_set || a->max > b->max || (a->is_optional && !b->is_optional)));
	}
	bug_on(before->mode != WS_DIRECT && after->mode == WS_DIRECT);
	bug_on(before->home == HOME_TMP && after->home != HOME_TMP);
	bug_on(before->network == NET_NONE && after->network != NET_NONE);
	bug_on(!before->debug && after->debug);
	bug_on(!before->containers && after->containers);
	bug_on(!before->live && after->live);
	bug_on(before->check_reads && !after->check_reads);
	bug_on(!before->telemetry && after->telemetry);
	bug_on(!str_eq(before->engine, after->engine));
	bug_on(after->workspace != NULL);
}

static void check_message(const struct err *e, int r)
{
	bug_on(e->kind != ERR_CONFIG || e->num != -r || !str_starts(e->msg, "f.jsonc:"));
	for (const char *c = e->msg; *c; c++)
		bug_on((unsigned char)*c < 0x20 || *c == 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(policy_done) struct policy before, after;
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	const char *user = users[n ? data[0] % ARRAY_LEN(users) : 0];
	struct err e = ERR_INIT;
	int r;

	load(&before, user);
	load(&after, user);
	r = policy_merge_text(&after, "f.jsonc", (const char *)data + (n > 0), n - (n > 0),
			      LAYER_PROJECT, n && data[0] & 0x80, &e);
	if (r < 0)
		check_message(&e, r);
	/* A refused file is not used, but even its first half must not have opened anything. */
	if (!(n && data[0] & 0x80))
		check_not_wider(&before, &after);
	e = ERR_INIT;
	r = policy_validate(&after, &e);
	bug_on((r < 0) != (e.kind != ERR_NONE));
	/* Printing costs more than all the rest; now and then is enough. */
	if (n && data[0] & 0x40) {
		policy_print(&after, false, &out);
		policy_print(&after, true, &out);
	}
	return 0;
}
