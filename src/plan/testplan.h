/* SPDX-License-Identifier: Apache-2.0 */
/* plan/testplan.h - an invented host and a dozen policies, for the tests of what makes plans and of what reads them */
#ifndef VITRINE_PLAN_TESTPLAN_H
#define VITRINE_PLAN_TESTPLAN_H

#include "plan/plan.h"
#include "sys/cgroup.h"

/* The facts own their strings; the invented ones are literals. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#else
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif

static struct entry host_root[] = {
	{ .path = "/usr", .kind = ENTRY_DIR },
	{ .path = "/bin", .kind = ENTRY_LINK, .target = "usr/bin" },
	{ .path = "/lib64", .kind = ENTRY_LINK, .target = "usr/lib64" },
};
static struct entry host_etc[] = {
	{ .path = "/etc/ssl", .kind = ENTRY_DIR },
	{ .path = "/etc/ld.so.cache", .kind = ENTRY_FILE, .size = 100, .mtime_ns = 7, .ino = 3 },
	{ .path = "/etc/localtime", .kind = ENTRY_LINK, .target = "/usr/share/zoneinfo/UTC" },
};
static struct entry host_tools[] = {
	{ .path = "/home/dev/.cargo", .kind = ENTRY_DIR },
	{ .path = "/home/dev/.cargo/credentials.toml", .kind = ENTRY_FILE },
	{ .path = "/home/dev/.nvm", .kind = ENTRY_LINK, .target = "elsewhere" },
};
static char *host_env[] = { "PATH=/usr/bin:/bin",
			    "AWS_SECRET_ACCESS_KEY=canary",
			    "LANG=C.UTF-8",
			    "TERM=xterm",
			    "LD_PRELOAD=/evil.so",
			    "NOVALUE",
			    NULL };

static struct facts a_host(void)
{
	return (struct facts){
		.uid = 1001,
		.gid = 1002,
		.user = "dev",
		.home = "/home/dev",
		.shell = "/bin/bash",
		.workspace = "/home/dev/proj",
		.ws_dev = 5,
		.ws_ino = 6,
		.cwd = "/home/dev/proj/sub",
		.self_exe = "/usr/local/bin/vitrine",
		.state_dir = "/home/dev/.local/state/vitrine",
		.config_dir = "/home/dev/.config/vitrine",
		.root = { host_root, ARRAY_LEN(host_root), 0 },
		.etc = { host_etc, ARRAY_LEN(host_etc), 0 },
		.tools = { host_tools, ARRAY_LEN(host_tools), 0 },
		.environ = host_env,
		.landlock_abi = 7,
		.cgroup_why = "no delegation",
		.hard_open_files = 40000,
	};
}

static char *const command[] = { "make", "test", NULL };

struct setup {
	struct policy policy;
	struct facts facts;
	struct plan plan;
	struct err err;
	const char *name, *workdir;
};

static void setup_init(struct setup *s, const char *jsonc)
{
	*s = (struct setup){ .facts = a_host(), .name = "-run-0", .err = ERR_INIT };
	policy_init(&s->policy);
	if (jsonc)
		CHECK_INT(policy_merge_text(&s->policy, "p", jsonc, strlen(jsonc), LAYER_USER, true,
					    &s->err),
			  0);
}

static int setup_build(struct setup *s)
{
	return plan_build(&s->policy, &s->facts, &(struct errand){ s->name, command, s->workdir },
			  &s->plan, &s->err);
}

static void setup_done(struct setup *s)
{
	plan_done(&s->plan);
	policy_done(&s->policy);
}

/* ---- the dozen ---- */

static UNUSED void make_default(struct setup *s)
{
	setup_init(s, NULL);
}

static UNUSED void make_root(struct setup *s)
{
	setup_init(s, NULL);
	s->facts.is_root = true;
	s->facts.uid = s->facts.gid = 0;
	s->facts.home = "/root";
	s->facts.tools.n = 0;
	s->facts.state_dir = "/root/.local/state/vitrine";
}

static UNUSED void make_named(struct setup *s)
{
	setup_init(s, NULL);
	s->name = "box";
}

static UNUSED void make_named_tmp_home(struct setup *s)
{
	setup_init(s, "{\"files\": {\"home\": \"tmp\"}}");
	s->name = "box";
}

static UNUSED void make_covers(struct setup *s)
{
	static struct cover covers[] = {
		{ .rel = ".env", .rule = ".env", .kind = COVER_HIDE },
		{ .rel = ".git", .rule = "git", .kind = COVER_PIN, .is_dir = true },
		{ .rel = ".git/config", .rule = "git", .kind = COVER_PROTECT },
		{ .rel = ".git/hooks", .rule = "git", .kind = COVER_PROTECT, .is_dir = true },
		{ .rel = "alias", .rule = "git", .kind = COVER_PROTECT, .is_alias = true },
		{ .rel = "secrets", .rule = "secrets", .kind = COVER_HIDE, .is_dir = true },
	};

	setup_init(s, NULL);
	s->facts.covers = covers;
	s->facts.n_covers = ARRAY_LEN(covers);
}

static UNUSED void make_grants(struct setup *s)
{
	static char *sockets[] = { "run/s.sock" };
	static struct entry extra[] = {
		{ .path = "/data/sets", .kind = ENTRY_DIR },
		{ .path = "/data/file", .kind = ENTRY_FILE },
		{ .path = "/srv/out", .kind = ENTRY_DIR },
		{ .path = "/opt/tool", .kind = ENTRY_DIR, .sockets = sockets, .n_sockets = 1 },
	};

	setup_init(s, "{\"files\": {\"read\": [\"/data/sets\", \"/data/file\"], \"write\": "
		      "[\"/srv/out\"]}}");
	CHECK_INT(policy_add(&s->policy, LIST_MOUNT, "/opt/tool:/tool:ro", LAYER_FLAGS, &s->err),
		  0);
	s->facts.extra = (struct entries){ extra, ARRAY_LEN(extra), 0 };
}

static UNUSED void make_limits_kernel(struct setup *s)
{
	setup_init(s, "{\"limits\": {\"memory\": \"2g\", \"cpus\": 1.5, \"pids\": 200, \"time\": "
		      "\"10m\", \"disk\": \"1g\"}}");
	s->facts.cgroup_usable = BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS);
}

static UNUSED void make_limits_watched(struct setup *s)
{
	setup_init(s, "{\"limits\": {\"memory\": \"2g,optional\", \"idle\": \"5m\", \"output\": "
		      "\"10m\", \"cpu_time\": \"30s\"}}");
}

static UNUSED void make_env(struct setup *s)
{
	setup_init(s, "{\"env\": {\"pass\": [\"AWS_SECRET_ACCESS_KEY\"], \"set\": {\"CI\": \"1\", "
		      "\"HOME\": \"/elsewhere\"}}}");
}

static UNUSED void make_debug_workdir(struct setup *s)
{
	setup_init(s, "{\"features\": {\"debug\": true}}");
	s->workdir = "sub/../other";
}

static UNUSED void make_workspace_in_tmp(struct setup *s)
{
	setup_init(s, NULL);
	s->facts.workspace = "/tmp/x/proj";
	s->facts.cwd = "/home/dev";
}

static UNUSED void make_self(struct setup *s)
{
	setup_init(s, NULL);
	s->facts.self_exe = "/home/dev/proj/build/vitrine";
}

static UNUSED const struct {
	const char *name;
	void (*make)(struct setup *s);
} dozen[] = {
	{ "default", make_default },
	{ "root", make_root },
	{ "named", make_named },
	{ "named-tmp-home", make_named_tmp_home },
	{ "covers", make_covers },
	{ "grants", make_grants },
	{ "limits-kernel", make_limits_kernel },
	{ "limits-watched", make_limits_watched },
	{ "env", make_env },
	{ "debug-workdir", make_debug_workdir },
	{ "workspace-in-tmp", make_workspace_in_tmp },
	{ "self", make_self },
};

#endif
