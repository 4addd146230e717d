/* SPDX-License-Identifier: Apache-2.0 */
/* policy/policy_test.c - the built-in layer, single values, and what goes together */
#include "base/json.h"
#include "base/test.h"
#include "policy/table.h"

TEST(builtin_values)
{
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	CHECK(p.workspace == NULL);
	CHECK_INT(p.mode, WS_DIRECT);
	CHECK_INT(p.network, NET_NONE);
	CHECK_STR(p.engine, "native");
	CHECK(!p.debug);
	CHECK(!p.limits[LIMIT_MEMORY].is_set);
	CHECK(p.limits[LIMIT_PIDS].is_set && p.limits[LIMIT_PIDS].is_optional);
	CHECK_INT(p.limits[LIMIT_PIDS].max, 4096);
	CHECK_INT(p.limits[LIMIT_DISK].max, 4 * GIB);
	CHECK_INT(p.read.n + p.write.n + p.mount.n + p.sockets.n + p.env_set.n, 0);
	CHECK_INT(p.widened, 0);
	CHECK_INT(policy_validate(&p, &e), 0);
	CHECK_STR(e.msg, "");
}

TEST(builtin_hide_and_protect)
{
	static const char *const hidden[] = { ".env",       "a/.env.local", "id_ed25519",
					      "x.p12",      ".env~",        "_netrc",
					      "id_rsa.bak", ".dev.vars",    "a/.aws/credentials" };
	static const char *const open[] = { ".env.example", "README.md", "test.pem",  ".npmrc",
					    "env",          ".envrc",    "id_rsa.pub" };
	static const char *const guarded[] = { ".git",
					       "sub/.git",
					       ".vscode",
					       "a/.claude/settings.json",
					       ".mcp.json",
					       ".vitrine.jsonc",
					       "x.code-workspace",
					       ".envrc",
					       ".hg/hgrc",
					       "lefthook-local.toml",
					       ".mise.local.toml",
					       "a/.vimrc",
					       ".github/hooks",
					       ".dir-locals-2.el",
					       "mise.ci.toml",
					       ".factory" };
	static const char *const work[] = {
		"Makefile",  "package.json", ".gitignore",       ".github/workflows", "src",
		"CLAUDE.md", ".claude",      ".claude/notes.md", ".gitmodules"
	};
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		CHECK(items_match(&p.hide, hidden[i]) >= 0);
	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		CHECK_INT(items_match(&p.hide, open[i]), -1);
	for (size_t i = 0; i < ARRAY_LEN(guarded); i++)
		CHECK(items_match(&p.protect, guarded[i]) >= 0);
	for (size_t i = 0; i < ARRAY_LEN(work); i++)
		CHECK_INT(items_match(&p.protect, work[i]), -1);
}

static void limit_ok(enum limit_id id, const char *text, uint64_t want, const char *shown)
{
	_cleanup_(policy_done) struct policy p;
	_cleanup_(buf_done) struct buf b = BUF(64);
	struct err e = ERR_INIT;

	policy_init(&p);
	if (policy_set_limit(&p, id, text, LAYER_FLAGS, &e) < 0)
		CHECK_STR(e.msg, text);
	CHECK_INT(p.limits[id].max, want);
	limit_format(id, p.limits[id].max, &b);
	CHECK_STR(buf_cstr(&b), shown);
}

/* policy_validate() does not look at entries that are part of the program: their check is here. */
static void check_builtin(const struct items *l, int (*check)(const char *text, struct err *e))
{
	for (size_t i = 0; i < l->n; i++) {
		struct err e = ERR_INIT;

		CHECK(l->v[i].is_static);
		CHECK_INT(check(l->v[i].text + (l->v[i].text[0] == '!'), &e), 0);
		CHECK_STR(e.msg, "");
	}
}

TEST(builtin_entries_are_well_formed)
{
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	CHECK(p.hide.n > 100 && p.protect.n > 100 && p.env_pass.n > 5);
	check_builtin(&p.hide, glob_check);
	check_builtin(&p.protect, glob_check);
	check_builtin(&p.env_pass, check_env_name);
}

/* What the build worked out about each name is what a start would find out itself. */
static void check_rows(const struct items *l, const char *names)
{
	size_t i = 0;

	for_names(name, names) {
		_free_ char *text = mem_str(name);
		struct item it = { .text = text };

		item_prepare(&it);
		CHECK(i < l->n);
		if (i == l->n)
			return;
		CHECK_STR(l->v[i].text, name);
		CHECK_INT(l->v[i].n, it.n);
		CHECK_INT(l->v[i].is_path, it.is_path);
		CHECK_INT(l->v[i].first, it.first);
		CHECK_INT(l->v[i].last, it.last);
		CHECK_INT(l->v[i].is_literal, it.is_literal);
		CHECK_INT(l->v[i].name_at, it.name_at);
		CHECK_INT(l->v[i].name_hash, it.name_hash);
		i++;
	}
	CHECK_INT(i, l->n);
}

TEST(builtin_names_are_prepared)
{
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	check_rows(&p.hide, names_hide);
	check_rows(&p.protect, names_protect);
}

TEST(last_names)
{
	static const struct {
		const char *text, *name; /* NULL: not one plain name */
	} cases[] = { { ".env", ".env" }, { "a/b", "b" },       { "a*/b", "b" }, { "a/b*", NULL },
		      { "!.env", NULL },  { "a/**", NULL },     { "**", NULL },  { "[ab]", NULL },
		      { "a/\\*x", NULL }, { "**/.git", ".git" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_free_ char *text = mem_str(cases[i].text);
		struct item it = { .text = text };

		item_prepare(&it);
		CHECK_INT(it.is_literal, cases[i].name != NULL);
		if (cases[i].name == NULL)
			continue;
		CHECK_STR(it.text + it.name_at, cases[i].name);
		CHECK_INT(it.name_hash, name_hash(cases[i].name, strlen(cases[i].name)));
	}
}

/* An entry that came from outside is looked at, whatever stands before it. */
TEST(entries_from_outside_are_checked)
{
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	items_add(&p.hide, "a//b", LAYER_PROJECT);
	CHECK_INT(policy_validate(&p, &e), -EINVAL);
}

TEST(limit_values)
{
	limit_ok(LIMIT_MEMORY, "2g", 2 * GIB, "2g");
	limit_ok(LIMIT_MEMORY, "1536m", 1536 * MIB, "1536m");
	limit_ok(LIMIT_MEMORY, "5000000", 5000000, "5000000");
	limit_ok(LIMIT_CPUS, "1.5", 1500, "1.5");
	limit_ok(LIMIT_CPUS, "2", 2000, "2");
	limit_ok(LIMIT_CPUS, "0.05", 50, "0.05");
	limit_ok(LIMIT_TIME, "90", 90 * NS_PER_SEC, "90s");
	limit_ok(LIMIT_TIME, "10m", 600 * NS_PER_SEC, "10m");
	limit_ok(LIMIT_IDLE, "1500ms", 1500 * NS_PER_MS, "1500ms");
	limit_ok(LIMIT_PIDS, "200", 200, "200");
	limit_ok(LIMIT_EVENTS_AGE, "30d", 30 * (uint64_t)86400 * NS_PER_SEC, "30d");
	limit_ok(LIMIT_EVENTS_SIZE, "64m", 64 * MIB, "64m");
}

TEST(limit_refusals)
{
	static const struct {
		enum limit_id id;
		const char *text;
	} bad[] = {
		{ LIMIT_MEMORY, "" },
		{ LIMIT_MEMORY, "3m" },
		{ LIMIT_MEMORY, "2x" },
		{ LIMIT_MEMORY, "-1" },
		{ LIMIT_MEMORY, "2g," },
		{ LIMIT_MEMORY, "2g,optional," },
		{ LIMIT_MEMORY, "2g, optional" },
		{ LIMIT_MEMORY, "none,optional" },
		{ LIMIT_MEMORY, ",optional" },
		{ LIMIT_CPUS, "0" },
		{ LIMIT_CPUS, "1.2345" },
		{ LIMIT_PIDS, "1k" },
		{ LIMIT_PIDS, "0" },
		{ LIMIT_TIME, "0" },
		{ LIMIT_TIME, "1w" },
	};
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		if (policy_set_limit(&p, bad[i].id, bad[i].text, LAYER_FLAGS, &e) >= 0)
			CHECK_STR("accepted", bad[i].text);
		CHECK_INT(e.kind, ERR_USAGE);
	}
	CHECK(!p.limits[LIMIT_MEMORY].is_set);
}

TEST(limit_widening_is_recorded)
{
	_cleanup_(policy_done) struct policy p;
	const struct limit *l = &p.limits[LIMIT_PIDS];
	struct err e = ERR_INIT;

	policy_init(&p);
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "100", LAYER_USER, &e), 0);
	CHECK(!l->is_widened && !l->is_optional && l->origin == LAYER_USER);
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "100", LAYER_FLAGS, &e), 0);
	CHECK_INT(l->origin, LAYER_USER); /* nothing changed */
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "100,optional", LAYER_PRESET, &e), 0);
	CHECK(l->is_widened);
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "none", LAYER_PRESET, &e), 0);
	CHECK(l->is_widened && !l->is_set);
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "8000", LAYER_FLAGS, &e), 0);
	CHECK(l->is_widened); /* less than the layer before, still more than the built-in one */
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "50", LAYER_FLAGS, &e), 0);
	CHECK(!l->is_widened);
}

TEST(settings)
{
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	CHECK_INT(policy_set(&p, SETTING_MODE, "review", LAYER_USER, &e), 0);
	CHECK(p.mode == WS_REVIEW && p.mode_origin == LAYER_USER && p.widened == 0);
	CHECK_INT(policy_set(&p, SETTING_MODE, "direct", LAYER_FLAGS, &e), 0);
	CHECK_INT(p.widened, BIT(SETTING_MODE));
	CHECK_INT(policy_set(&p, SETTING_NETWORK, "gate", LAYER_FLAGS, &e), 0);
	CHECK(p.network == NET_GATE && (p.widened & BIT(SETTING_NETWORK)));
	CHECK_INT(policy_set(&p, SETTING_NETWORK, "none", LAYER_FLAGS, &e), 0);
	CHECK_INT(p.widened & BIT(SETTING_NETWORK), 0);
	CHECK_INT(policy_set(&p, SETTING_DEBUG, "true", LAYER_USER, &e), 0);
	CHECK(p.debug && (p.widened & BIT(SETTING_DEBUG)));
	CHECK(policy_set(&p, SETTING_MODE, "reviw", LAYER_USER, &e) < 0);
	CHECK_STR(e.msg, "unknown value \"reviw\"; did you mean \"review\"?");
	CHECK(policy_set(&p, SETTING_ENGINE, "zzz", LAYER_USER, &e) < 0);
	CHECK_STR(e.msg, "unknown value \"zzz\"; known: native, auto, bwrap, nsjail, firejail, "
			 "systemd, "
			 "systemd-system, crun, runc, gvisor, podman, podman-remote, docker, vm, "
			 "vm-emulated, "
			 "seatbelt");
}

static void entry(struct policy *p, enum list_id id, const char *text, bool is_good)
{
	struct err e = ERR_INIT;
	int r = policy_add(p, id, text, LAYER_FLAGS, &e);

	if ((r >= 0) != is_good) {
		(void)fprintf(stderr, "'%s' (%s)\n", text, e.msg);
		CHECK(false);
	}
}

TEST(entries)
{
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	entry(&p, LIST_READ, "/opt/data", true);
	entry(&p, LIST_READ, "/opt/data", true);
	CHECK_INT(p.read.n, 1);
	entry(&p, LIST_READ, "~/x", true);
	entry(&p, LIST_READ, "!/opt/data", true);
	CHECK_INT(p.read.n, 1);
	CHECK_STR(p.read.v[0].text, "~/x");
	entry(&p, LIST_READ, "/", false);
	entry(&p, LIST_READ, "~", false);
	entry(&p, LIST_READ, "~/", false);
	entry(&p, LIST_READ, "~user/x", false);
	entry(&p, LIST_READ, "rel", false);
	entry(&p, LIST_READ, "/a/../b", false);
	entry(&p, LIST_READ, "~/../x", false);
	entry(&p, LIST_READ, "/a/", false);
	entry(&p, LIST_READ, "/proc/1", false);
	entry(&p, LIST_READ, "/processes", true);
	entry(&p, LIST_WRITE, "/sys", false);
	entry(&p, LIST_SOCKETS, "/run/x.sock", true);
	entry(&p, LIST_SOCKETS, "~/x.sock", false);
	entry(&p, LIST_MOUNT, "/a:/b", true);
	entry(&p, LIST_MOUNT, "/a:/b:rw", true);
	CHECK_INT(p.mount.n, 1);
	CHECK_STR(p.mount.v[0].text, "/a:/b:rw");
	entry(&p, LIST_MOUNT, "/a:/c:ro", true);
	entry(&p, LIST_MOUNT, "!/a:/b", true);
	CHECK_INT(p.mount.n, 1);
	entry(&p, LIST_MOUNT, "/a", false);
	entry(&p, LIST_MOUNT, "/a:b", false);
	entry(&p, LIST_MOUNT, "a:/b", false);
	entry(&p, LIST_MOUNT, "/a:/b:xx", false);
	entry(&p, LIST_MOUNT, "/a:/b:ro:ro", false);
	entry(&p, LIST_MOUNT, "/a:/", false);
	entry(&p, LIST_MOUNT, "/a:/dev/x", false);
	entry(&p, LIST_HIDE, "secret/**", true);
	entry(&p, LIST_HIDE, "!.env", true);
	entry(&p, LIST_HIDE, "/abs", false);
	entry(&p, LIST_HIDE, "!", false);
	CHECK_INT(items_match(&p.hide, ".env"), -1);
}

TEST(environment)
{
	_cleanup_(policy_done) struct policy p;

	policy_init(&p);
	CHECK(policy_env_passes(&p, "PATH"));
	CHECK(policy_env_passes(&p, "LC_ALL"));
	CHECK(!policy_env_passes(&p, "LC"));
	CHECK(!policy_env_passes(&p, "PATHX"));
	CHECK(!policy_env_passes(&p, "SSH_AUTH_SOCK"));
	CHECK(!policy_env_passes(&p, "AWS_SECRET_ACCESS_KEY"));
	CHECK(!policy_env_passes(&p, "LD_PRELOAD"));
	CHECK(!policy_env_passes(&p, ""));
	entry(&p, LIST_ENV_PASS, "FOO_*", true);
	entry(&p, LIST_ENV_PASS, "!FOO_KEY", true);
	CHECK(policy_env_passes(&p, "FOO_A"));
	CHECK(!policy_env_passes(&p, "FOO_KEY"));
	entry(&p, LIST_ENV_PASS, "*", false);
	entry(&p, LIST_ENV_PASS, "A*B", false);
	entry(&p, LIST_ENV_PASS, "A**", false);
	entry(&p, LIST_ENV_PASS, "1A", false);
	entry(&p, LIST_ENV_PASS, "A-B", false);
	entry(&p, LIST_ENV_PASS, "", false);
	entry(&p, LIST_ENV_SET, "A=1", true);
	entry(&p, LIST_ENV_SET, "AB=1", true);
	entry(&p, LIST_ENV_SET, "A=2=3", true);
	CHECK_INT(p.env_set.n, 2);
	CHECK_STR(p.env_set.v[1].text, "A=2=3");
	entry(&p, LIST_ENV_SET, "A=", true);
	CHECK_INT(p.env_set.n, 2);
	entry(&p, LIST_ENV_SET, "A", false);
	entry(&p, LIST_ENV_SET, "=1", false);
}

TEST(list_has_a_ceiling)
{
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;
	int r = 0;

	policy_init(&p);
	for (int i = 0; r == 0 && i < 100000; i++) {
		_free_ char *path = mem_fmt("/p/%d", i);

		r = policy_add(&p, LIST_READ, path, LAYER_USER, &e);
	}
	CHECK_INT(r, -E2BIG);
	CHECK_INT(p.read.n, LIST_MAX_ITEMS);
}

TEST(combinations)
{
	_cleanup_(policy_done) struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	CHECK_INT(policy_set_workspace(&p, "/home/u/w", LAYER_FLAGS, &e), 0);
	CHECK(policy_set_workspace(&p, "w", LAYER_FLAGS, &e) < 0);
	entry(&p, LIST_MOUNT, "/data:/mnt/x", true);
	CHECK_INT(policy_validate(&p, &e), 0);
	entry(&p, LIST_MOUNT, "/other:/mnt/x:ro", true);
	CHECK(policy_validate(&p, &e) < 0);
	CHECK_STR(e.msg, "two mounts at '/mnt/x'");
	entry(&p, LIST_MOUNT, "!/other:/mnt/x:ro", true);
	entry(&p, LIST_MOUNT, "/home/u:/mnt/y", true);
	CHECK(policy_validate(&p, &e) < 0);
	CHECK_STR(e.msg, "mount '/home/u' would show the workspace a second time, without hide and "
			 "protect");
	entry(&p, LIST_MOUNT, "!/home/u:/mnt/y", true);
	entry(&p, LIST_MOUNT, "/x:/home/u", true);
	CHECK(policy_validate(&p, &e) < 0);
	CHECK_STR(e.msg, "a mount at '/home/u' would cover the workspace");
	entry(&p, LIST_MOUNT, "!/x:/home/u", true);
	CHECK_INT(policy_validate(&p, &e), 0);
	items_add(&p.hide, "[", LAYER_FLAGS); /* past the checks of policy_add */
	CHECK(policy_validate(&p, &e) < 0);
}

TEST(trust_lines)
{
	static const char hex[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85"
				  "5";
	_free_ char *line = NULL, *none = NULL;
	struct err e = ERR_INIT;

	CHECK_INT(policy_trust_line(hex, "/w/.vitrine.jsonc", &line, &e), 0);
	CHECK(line && str_starts(line, hex) && str_ends(line, "  /w/.vitrine.jsonc"));
	CHECK(policy_trust_line("abc", "/w", &none, &e) < 0);
	CHECK(policy_trust_line(hex, "w", &none, &e) < 0);
	CHECK(policy_trust_line(hex, "/w\nx", &none, &e) < 0);
}

static void has_row(const struct buf *text, const char *key, const char *value, const char *origin)
{
	_free_ char *row = mem_fmt("%-18s  %-32s  %s\n", key, value, origin);

	if (!strstr(buf_cstr(text), row))
		CHECK_STR(buf_cstr(text), row);
}

TEST(printing)
{
	_cleanup_(policy_done) struct policy p;
	_cleanup_(buf_done) struct buf text = BUF(MIB), json = BUF(MIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *v;
	struct err e = ERR_INIT;

	policy_init(&p);
	entry(&p, LIST_READ, "/opt/\x1b[2Jx", true);
	CHECK_INT(policy_set_limit(&p, LIMIT_PIDS, "none", LAYER_USER, &e), 0);
	policy_print(&p, false, &text);
	has_row(&text, "files.read", "/opt/\\x1b[2Jx", "flags  widens");
	has_row(&text, "limits.pids", "none", "user  widens");
	has_row(&text, "limits.disk", "4g,optional", "built-in");
	policy_print(&p, true, &json);
	if (json_parse(buf_cstr(&json), json.n, &doc, &e) < 0)
		CHECK_STR(e.msg, "");
	CHECK(doc.root != NULL);
	for (size_t i = 0; doc.root && i < key_defs_n; i++) {
		const struct json *section =
			key_defs[i].section ? json_get(doc.root, key_defs[i].section) : doc.root;

		v = section ? json_get(section, key_defs[i].name) : NULL;
		CHECK(v != NULL);
		CHECK(v && (v->type == JSON_ARRAY || json_get(v, "origin")));
	}
	v = doc.root ? json_get(json_get(doc.root, "files"), "read") : NULL;
	CHECK(v && v->n == 1);
	CHECK_STR(v ? json_get(v->first, "value")->text : NULL, "/opt/\x1b[2Jx");
	CHECK(v && json_get(v->first, "widens")->is_true);
}

TEST(near_names)
{
	static const char *const names[] = { "memory", "cpus", "cpu_time", "io_read" };

	CHECK_STR(near_name("memroy", names, 4), "memory");
	CHECK_STR(near_name("mem", names, 4) ? "found" : "none", "none");
	CHECK_STR(near_name("cpu", names, 4), "cpus");
	CHECK_STR(near_name("cputime", names, 4), "cpu_time");
	CHECK(near_name("", names, 4) == NULL);
	CHECK(near_name("a", names, 4) == NULL);
	CHECK(near_name("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", names, 4) == NULL);
}

TEST_MAIN()
