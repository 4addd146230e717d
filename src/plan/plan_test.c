/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan_test.c - golden plans for a dozen policies, and every refusal
 *
 * The facts are those of an invented host, so the plans are the same on every machine. VITRINE_GOLDEN names the
 * folder of the expected texts; with VITRINE_GOLDEN_WRITE=1 they are written anew, to be read in the diff.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/test.h"
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
		.hard_open_files = 20000,
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

/* ---- golden ---- */

static void golden(struct setup *s, const char *name)
{
	const char *dir = getenv("VITRINE_GOLDEN");
	_free_ char *path = mem_fmt("%s/%s.txt", dir ? dir : "tests/golden/plan", name);
	_cleanup_(buf_done) struct buf got = BUF(MIB), want = BUF(MIB), again = BUF(MIB);
	struct plan second = { 0 };

	CHECK_INT(setup_build(s), 0);
	if (s->err.kind != ERR_NONE) {
		(void)fprintf(stderr, "%s: %s\n", name, s->err.msg);
		return;
	}
	plan_print(&s->plan, false, &got);
	CHECK_INT(plan_build(&s->policy, &s->facts,
			     &(struct errand){ s->name, command, s->workdir }, &second, &s->err),
		  0);
	plan_print(&second, false, &again);
	CHECK_STR(buf_cstr(&again), buf_cstr(&got));
	CHECK_STR(second.skel_key, s->plan.skel_key);
	plan_done(&second);
	if (getenv("VITRINE_GOLDEN_WRITE")) {
		_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		CHECK_INT(io_write_all(fd, got.p, got.n), 0);
		return;
	}
	CHECK_INT(io_read_file(path, &want, &s->err), 0);
	CHECK_STR(buf_cstr(&got), buf_cstr(&want));
}

TEST(golden_default)
{
	struct setup s;

	setup_init(&s, NULL);
	golden(&s, "default");
	setup_done(&s);
}

TEST(golden_root_maps_ids_away)
{
	struct setup s;

	setup_init(&s, NULL);
	s.facts.is_root = true;
	s.facts.uid = s.facts.gid = 0;
	s.facts.home = "/root";
	s.facts.tools.n = 0;
	s.facts.state_dir = "/root/.local/state/vitrine";
	golden(&s, "root");
	setup_done(&s);
}

TEST(golden_named_keeps_its_home)
{
	struct setup s;

	setup_init(&s, NULL);
	s.name = "box";
	golden(&s, "named");
	setup_done(&s);
}

TEST(golden_named_with_tmp_home)
{
	struct setup s;

	setup_init(&s, "{\"files\": {\"home\": \"tmp\"}}");
	s.name = "box";
	golden(&s, "named-tmp-home");
	setup_done(&s);
}

TEST(golden_covers)
{
	struct cover covers[] = {
		{ .rel = ".env", .rule = ".env", .kind = COVER_HIDE },
		{ .rel = ".git", .rule = "git", .kind = COVER_PIN, .is_dir = true },
		{ .rel = ".git/config", .rule = "git", .kind = COVER_PROTECT },
		{ .rel = ".git/hooks", .rule = "git", .kind = COVER_PROTECT, .is_dir = true },
		{ .rel = "alias", .rule = "git", .kind = COVER_PROTECT, .is_alias = true },
		{ .rel = "secrets", .rule = "secrets", .kind = COVER_HIDE, .is_dir = true },
	};
	struct setup s;

	setup_init(&s, NULL);
	s.facts.covers = covers;
	s.facts.n_covers = ARRAY_LEN(covers);
	golden(&s, "covers");
	setup_done(&s);
}

TEST(golden_grants)
{
	struct entry extra[] = {
		{ .path = "/data/sets", .kind = ENTRY_DIR },
		{ .path = "/data/file", .kind = ENTRY_FILE },
		{ .path = "/srv/out", .kind = ENTRY_DIR },
		{ .path = "/opt/tool",
		  .kind = ENTRY_DIR,
		  .sockets = (char *[]){ "run/s.sock" },
		  .n_sockets = 1 },
	};
	struct setup s;

	setup_init(&s, "{\"files\": {\"read\": [\"/data/sets\", \"/data/file\"], \"write\": "
		       "[\"/srv/out\"]}}");
	CHECK_INT(policy_add(&s.policy, LIST_MOUNT, "/opt/tool:/tool:ro", LAYER_FLAGS, &s.err), 0);
	s.facts.extra = (struct entries){ extra, ARRAY_LEN(extra), 0 };
	golden(&s, "grants");
	setup_done(&s);
}

TEST(golden_limits_by_kernel)
{
	struct setup s;

	setup_init(&s, "{\"limits\": {\"memory\": \"2g\", \"cpus\": 1.5, \"pids\": 200, \"time\": "
		       "\"10m\", \"disk\": \"1g\"}}");
	s.facts.cgroup_usable = BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS);
	golden(&s, "limits-kernel");
	setup_done(&s);
}

TEST(golden_limits_watched)
{
	struct setup s;

	setup_init(&s, "{\"limits\": {\"memory\": \"2g,optional\", \"idle\": \"5m\", \"output\": "
		       "\"10m\", \"cpu_time\": \"30s\"}}");
	golden(&s, "limits-watched");
	setup_done(&s);
}

TEST(golden_env)
{
	struct setup s;

	setup_init(&s, "{\"env\": {\"pass\": [\"AWS_SECRET_ACCESS_KEY\"], \"set\": {\"CI\": \"1\", "
		       "\"HOME\": \"/elsewhere\"}}}");
	golden(&s, "env");
	setup_done(&s);
}

TEST(golden_network)
{
	struct setup s;

	setup_init(&s, "{\"network\": {\"mode\": \"gate\", \"preset\": \"locked\", \"allow\": "
		       "[\"example.org\", \"10.0.0.0/8:5432\"], \"deny\": [\"*.example.org\"], "
		       "\"ports\": [\"8080:80\"], \"host_ports\": [\"5432\"], \"upstream\": "
		       "[\"http://proxy.example:3128\"], \"ask\": true}}");
	golden(&s, "network");
	setup_done(&s);
}

TEST(golden_debug_and_workdir)
{
	struct setup s;

	setup_init(&s, "{\"features\": {\"debug\": true}}");
	s.workdir = "sub/../other";
	golden(&s, "debug-workdir");
	setup_done(&s);
}

TEST(golden_workspace_in_tmp)
{
	struct setup s;

	setup_init(&s, NULL);
	s.facts.workspace = "/tmp/x/proj";
	s.facts.cwd = "/home/dev";
	golden(&s, "workspace-in-tmp");
	setup_done(&s);
}

TEST(golden_vitrine_in_the_workspace_is_protected)
{
	struct setup s;

	setup_init(&s, NULL);
	s.facts.self_exe = "/home/dev/proj/build/vitrine";
	golden(&s, "self");
	setup_done(&s);
}

/* ---- what must hold in every plan ---- */

TEST(parents_come_before_children)
{
	struct setup s;

	setup_init(&s, NULL);
	s.facts.workspace = "/home/dev/.cargo/registry/x";
	CHECK_INT(setup_build(&s), 0);
	for (size_t i = 0; i < s.plan.n_mounts; i++)
		for (size_t k = i + 1; k < s.plan.n_mounts; k++) {
			size_t n = strlen(s.plan.mounts[k].dst);

			CHECK(!(strncmp(s.plan.mounts[i].dst, s.plan.mounts[k].dst, n) == 0 &&
				s.plan.mounts[i].dst[n] == '/'));
		}
	setup_done(&s);
}

TEST(nothing_of_the_host_is_writable_but_what_was_granted)
{
	struct setup s;

	setup_init(&s, NULL);
	CHECK_INT(setup_build(&s), 0);
	for (size_t i = 0; i < s.plan.n_mounts; i++) {
		const struct mount *m = &s.plan.mounts[i];

		if (m->kind == MOUNT_BIND && !(m->flags & MOUNT_RO))
			CHECK_STR(m->dst, "/home/dev/proj");
	}
	setup_done(&s);
}

/* ---- refusals ---- */

static void refused(struct setup *s, int num, const char *part)
{
	CHECK_INT(setup_build(s), -num);
	CHECK(strstr(s->err.msg, part) != NULL);
	if (strstr(s->err.msg, part) == NULL)
		(void)fprintf(stderr, "  message: %s\n", s->err.msg);
	setup_done(s);
}

TEST(system_and_home_are_no_workspace)
{
	static const char *const bad[] = { "/",
					   "/home/dev",
					   "/home",
					   "/usr",
					   "/usr/src/x",
					   "/etc",
					   "/tmp",
					   "/var",
					   "/home/dev/.local/state/vitrine",
					   "/home/dev/.local",
					   "/proc/1",
					   "/root" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct setup s;

		setup_init(&s, NULL);
		s.facts.workspace = bad[i];
		refused(&s, EINVAL, "cannot be a workspace");
	}
}

TEST(a_limit_the_kernel_cannot_enforce_is_refused)
{
	struct setup s;

	setup_init(&s, "{\"limits\": {\"memory\": \"2g\"}}");
	refused(&s, ENOTSUP, "',optional'");
	setup_init(&s, "{\"limits\": {\"cpus\": 2}}");
	refused(&s, ENOTSUP, "limit cpus");
	setup_init(&s, "{\"limits\": {\"io_read\": \"1m\"}}");
	refused(&s, ENOTSUP, "limit io_read");
	setup_init(&s, "{\"limits\": {\"disk\": \"1g\"}}");
	s.name = "box";
	refused(&s, ENOTSUP, "limit disk");
}

static void grant_refused(const char *list, const char *path, const char *part)
{
	_free_ char *text = mem_fmt("{\"files\": {\"%s\": [\"%s\"]}}", list, path);
	struct entry extra = { .path = (char *)(uintptr_t)path, .kind = ENTRY_DIR };
	struct setup s;

	setup_init(&s, text);
	s.facts.extra = (struct entries){ &extra, 1, 0 };
	refused(&s, EINVAL, part);
}

TEST(grants_do_not_undo_the_view)
{
	grant_refused("read", "/home/dev/.local/state", "own state");
	grant_refused("write", "/home/dev/.config", "write your policy");
	grant_refused("write", "/usr/share", "read-only");
	grant_refused("read", "/dev/shm", "kernel file systems");
}

TEST(the_workspace_has_one_place)
{
	static const char *const hosts[] = { "/home/dev/proj", "/home/dev/proj/sub", "/home" };

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		_free_ char *item = mem_fmt("%s:/elsewhere:ro", hosts[i]);
		struct entry extra = { .path = (char *)(uintptr_t)hosts[i], .kind = ENTRY_DIR };
		struct setup s;

		setup_init(&s, NULL);
		CHECK_INT(policy_add(&s.policy, LIST_MOUNT, item, LAYER_FLAGS, &s.err), 0);
		s.facts.extra = (struct entries){ &extra, 1, 0 };
		s.facts.state_dir = "/var/lib/vitrine";
		refused(&s, EINVAL, "second place");
	}
}

TEST(what_is_not_there_yet_is_refused)
{
	struct setup s;

	setup_init(&s, "{\"workspace\": {\"mode\": \"review\"}}");
	refused(&s, ENOTSUP, "not available yet");
	setup_init(&s, "{\"sockets\": [\"/run/x.sock\"]}");
	refused(&s, ENOTSUP, "not available yet");
}

TEST_MAIN()
