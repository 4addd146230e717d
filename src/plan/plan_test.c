/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan_test.c - golden plans for a dozen policies, and every refusal
 *
 * The facts are those of an invented host, so the plans are the same on every machine. VITRINE_GOLDEN names the
 * folder of the expected texts; with VITRINE_GOLDEN_WRITE=1 they are written anew, to be read in the diff.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "plan/testplan.h"

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

TEST(golden_dozen)
{
	for (size_t i = 0; i < ARRAY_LEN(dozen); i++) {
		struct setup s;

		dozen[i].make(&s);
		golden(&s, dozen[i].name);
		setup_done(&s);
	}
}

/* The host's directory is the lowest layer, read-only; what is written goes to the first. */
TEST(golden_review)
{
	static char top[] = "/s/layers/2", below[] = "/s/layers/1/fs", home[] = "/s/layers/3";
	static char *const ws_layers[] = { top, below, NULL };
	static char *const home_layers[] = { home, below, NULL };
	struct setup s;

	setup_init(&s, "{\"workspace\": {\"mode\": \"review\"}}");
	s.name = "box";
	s.facts.ws_layers = ws_layers;
	s.facts.home_layers = home_layers;
	golden(&s, "review");
	CHECK(plan_is_review(&s.plan));
	for (size_t i = 0; i < s.plan.n_mounts; i++)
		if (s.plan.mounts[i].kind == MOUNT_LAYER && !str_eq(s.plan.mounts[i].src, top) &&
		    !str_eq(s.plan.mounts[i].src, home))
			CHECK(s.plan.mounts[i].flags & MOUNT_RO);
	setup_done(&s);
}

static const struct mount *mount_of(const struct plan *p, enum mount_kind kind, const char *dst)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == kind && str_eq(p->mounts[i].dst, dst))
			return &p->mounts[i];
	return NULL;
}

/* A served git dir comes before its covers, which count when it is not served after all; those in what is attached as it is
 * always count. */
TEST(a_git_dir_is_served_where_it_can_be)
{
	static struct cover covers[] = {
		{ .rel = ".git", .kind = COVER_PIN, .is_dir = true },
		{ .rel = ".git/config", .kind = COVER_PROTECT, .rule = "git" },
		{ .rel = ".git/objects/info/alternates", .kind = COVER_PROTECT, .rule = "git" },
		{ .rel = "sub/.git/config", .kind = COVER_PROTECT, .rule = "git" },
	};
	struct setup s;

	for (int can = 0; can < 2; can++) {
		_free_ char *git = NULL, *config = NULL, *alternates = NULL, *sub = NULL;
		const struct mount *m;

		setup_init(&s, "{}");
		s.facts.covers = covers;
		s.facts.n_covers = ARRAY_LEN(covers);
		s.facts.can_serve = can;
		s.facts.git_ino = 77;
		CHECK_INT(setup_build(&s), 0);
		git = mem_fmt("%s/.git", s.plan.workspace);
		config = mem_fmt("%s/config", git);
		alternates = mem_fmt("%s/objects/info/alternates", git);
		sub = mem_fmt("%s/sub/.git/config", s.plan.workspace);
		m = mount_of(&s.plan, MOUNT_SERVE, git);
		CHECK((m != NULL) == can && s.plan.serves_git == can);
		CHECK(m == NULL || (m->ino == 77 && m < mount_of(&s.plan, MOUNT_PIN, git)));
		m = mount_of(&s.plan, MOUNT_PROTECT, config);
		CHECK(m && !(m->flags & MOUNT_SERVED) == !can);
		m = mount_of(&s.plan, MOUNT_PROTECT, alternates);
		CHECK(m && !(m->flags & MOUNT_SERVED));
		m = mount_of(&s.plan, MOUNT_PROTECT, sub);
		CHECK(m && !(m->flags & MOUNT_SERVED));
		setup_done(&s);
	}
}

/* A small tree is looked at in no time, and every opening of a file would pay for the notices. */
TEST(notices_are_for_big_trees)
{
	static const struct {
		const char *policy;
		uint64_t n_files;
		bool wants;
	} cases[] = { { "{}", 0, false },
		      { "{}", PLAN_NOTICE_FILES - 1, false },
		      { "{}", PLAN_NOTICE_FILES, true } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct setup s;

		setup_init(&s, cases[i].policy);
		s.facts.n_files = cases[i].n_files;
		CHECK_INT(setup_build(&s), 0);
		CHECK_INT(s.plan.wants_notices, cases[i].wants);
		setup_done(&s);
	}
}

/* Nothing of the host's workspace is in it, not even to read. */
TEST(golden_clone)
{
	static char top[] = "/s/layers/2", below[] = "/s/layers/1/fs";
	static char *const ws_layers[] = { top, below, NULL };
	struct setup s;

	setup_init(&s, "{\"workspace\": {\"mode\": \"clone\"}}");
	s.name = "box";
	s.facts.ws_layers = ws_layers;
	s.facts.ws_repo = "/s/sandboxes/box/repo.git";
	golden(&s, "clone");
	CHECK(plan_is_review(&s.plan));
	for (size_t i = 0; i < s.plan.n_mounts; i++)
		CHECK(!path_is_beneath(s.plan.mounts[i].src, s.plan.workspace) ||
		      s.plan.mounts[i].kind == MOUNT_PROTECT);
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

/* The same gate and the same receiver behind other walls: what differs is who hands connections to them. */
TEST(golden_network_elsewhere)
{
	struct setup s;

	setup_init(&s, "{\"network\": {\"mode\": \"gate\", \"allow\": [\"example.org\"], "
		       "\"ports\": "
		       "[\"8080:80\"], \"host_ports\": [\"5432\"]}, "
		       "\"features\": {\"telemetry\": true}}");
	free(s.policy.engine);
	s.policy.engine = mem_str("crun");
	s.facts.init_exe = "/usr/local/libexec/vitrine/vitrine-init";
	golden(&s, "network-crun");
	CHECK(s.plan.net.has_gate && s.plan.net.has_receiver);
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

/* Between the look and the mount another directory may come to lie at the name. */
TEST(what_is_granted_is_that_inode)
{
	struct setup s;
	size_t n = 0;

	make_grants(&s);
	for (size_t i = 0; i < s.facts.extra.n; i++) {
		s.facts.extra.v[i].dev = 5;
		s.facts.extra.v[i].ino = 100 + i;
	}
	CHECK_INT(setup_build(&s), 0);
	for (size_t i = 0; i < s.plan.n_mounts; i++) {
		const struct mount *m = &s.plan.mounts[i];

		if (!str_eq(m->why, "granted"))
			continue;
		CHECK(m->flags & MOUNT_VERIFY && m->ino >= 100);
		n++;
	}
	CHECK_INT(n, s.facts.extra.n);
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

/* Else one sandbox could have as many descriptors in flight as we may have open. */
TEST(open_files_leave_us_half)
{
	static const struct {
		const char *policy;
		uint64_t hard, want;
	} table[] = { { NULL, 1 << 20, 65536 },
		      { NULL, 20000, 10000 },
		      { "{\"limits\": {\"open_files\": 20000}}", 20000, 10000 },
		      { "{\"limits\": {\"open_files\": 64}}", 20000, 64 },
		      { "{\"limits\": {\"open_files\": \"none\"}}", 20000, 10000 } };

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct setup s;

		setup_init(&s, table[i].policy);
		s.facts.hard_open_files = table[i].hard;
		CHECK(setup_build(&s) == 0);
		CHECK(s.plan.limits[LIMIT_OPEN_FILES].is_set);
		CHECK(s.plan.limits[LIMIT_OPEN_FILES].max == table[i].want);
		setup_done(&s);
	}
}

/* What the kernel counts for an id is then a sandbox's own. */
TEST(each_of_roots_sandboxes_has_an_id)
{
	struct facts f = { .is_root = true, .root_slot = 7 }, g = { .is_root = true };

	CHECK(plan_ids(&f).uid_out == plan_ids(&g).uid_out + 7);
	CHECK(plan_ids(&f).uid_in == plan_ids(&g).uid_in);
	f.root_slot = PLAN_ROOT_SLOTS;
	CHECK(plan_ids(&f).uid_out < PLAN_ROOT_SUBIDS);
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

/* Settings of a preset lie in /etc inside, read-only as all of the skeleton, before a file of the host with that name. */
TEST(a_preset_gives_files_to_etc)
{
	static char path[] = "x/managed.json", text[] = "{}\n";
	static const struct etc_text given[] = { { path, text } };
	struct setup s;
	size_t n = 0;

	setup_init(&s, "{}");
	CHECK_INT(setup_build(&s), 0);
	_free_ char *without = mem_str(s.plan.skel_key);
	setup_done(&s);
	setup_init(&s, "{}");
	s.facts.etc_texts = given;
	s.facts.n_etc_texts = ARRAY_LEN(given);
	CHECK_INT(setup_build(&s), 0);
	for (size_t i = 0; i < s.plan.n_skel; i++)
		if (str_eq(s.plan.skel[i].path, "etc/x/managed.json")) {
			CHECK_INT(s.plan.skel[i].kind, SKEL_FILE);
			CHECK_STR(s.plan.skel[i].text, text);
			n++;
		}
	CHECK_INT(n, 1);
	CHECK(!str_eq(without, s.plan.skel_key));
	setup_done(&s);
}

#define CERT(x) "-----BEGIN CERTIFICATE-----\nMIIB" x "==\n-----END CERTIFICATE-----\n"

TEST(of_a_file_only_certificates)
{
	static const char mixed[] = "# my company\ntoken = hush\n" CERT(
		"a") "-----BEGIN PRIVATE KEY-----\nhush\n-----END "
		     "PRIVATE KEY-----\n" CERT("b") "-----BEGIN CERTIFICATE-----\nhush "
						    "hush\n-----END "
						    "CERTIFICATE-----\n-----BEGIN "
						    "CERTIFICATE-----\nMIIBc\n-----END PRIVATE "
						    "KEY-----\n"
						    "-----BEGIN RSA PRIVATE KEY-----\n" CERT("d");
	_cleanup_(buf_done) struct buf b = BUF(KIB), none = BUF(KIB);

	CHECK_INT(plan_certificates(mixed, sizeof(mixed) - 1, &b), 3);
	CHECK_STR(buf_cstr(&b), CERT("a") CERT("b") CERT("d"));
	CHECK_INT(plan_certificates("-----BEGIN ", 11, &none), 0);
	CHECK_INT(plan_certificates("", 0, &none), 0);
}

static const char *env_of(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (str_starts(p->env[i], name) && p->env[i][strlen(name)] == '=')
			return p->env[i] + strlen(name) + 1;
	return "";
}

TEST(the_callers_certificates)
{
	static char one[] = CERT("a"), two[] = CERT("b"), a[] = "/x/a", b[] = "/x/b",
		    shown[] = "/etc/ssl/certs/c";
	static const struct own_trust own[] = { { "SSL_CERT_FILE", a, one },
						{ "NODE_EXTRA_CA_CERTS", b, two },
						{ "PIP_CERT", a, NULL },
						{ "DENO_CERT", shown, NULL } };
	struct setup s;
	size_t n = 0;

	setup_init(&s, "{}");
	s.facts.own_trust = own;
	s.facts.n_own_trust = ARRAY_LEN(own);
	CHECK_INT(setup_build(&s), 0);
	CHECK_STR(env_of(&s.plan, "SSL_CERT_FILE"), PLAN_OWN_TRUST "/SSL_CERT_FILE.pem");
	CHECK_STR(env_of(&s.plan, "NODE_EXTRA_CA_CERTS"), PLAN_OWN_TRUST "/NODE_EXTRA_CA_CERTS."
									 "pem");
	CHECK_STR(env_of(&s.plan, "PIP_CERT"), PLAN_OWN_TRUST "/SSL_CERT_FILE.pem");
	CHECK_STR(env_of(&s.plan, "DENO_CERT"), shown);
	for (size_t i = 0; i < s.plan.n_skel; i++)
		n += strstr(s.plan.skel[i].path, ".vitrine/certificates/") != NULL &&
		     s.plan.skel[i].kind == SKEL_FILE;
	CHECK_INT(n, 2);
	setup_done(&s);
	/* Where hosts are inspected there is one bundle for all. */
	setup_init(&s, "{\"network\": {\"mode\": \"gate\", \"allow\": [\"h.test\"]}, \"inspect\": "
		       "{\"hosts\": [\"h.test\"]}}");
	s.facts.own_trust = own;
	s.facts.n_own_trust = ARRAY_LEN(own);
	CHECK_INT(setup_build(&s), 0);
	CHECK_STR(env_of(&s.plan, "SSL_CERT_FILE"), PLAN_BUNDLE);
	CHECK_STR(env_of(&s.plan, "NODE_EXTRA_CA_CERTS"), PLAN_BUNDLE);
	CHECK_STR(s.plan.net.extra_trust, two);
	setup_done(&s);
}

TEST(layers_need_a_sandbox_that_lasts)
{
	struct setup s;

	setup_init(&s, "{\"workspace\": {\"mode\": \"clone\"}}");
	refused(&s, EINVAL, "needs a sandbox that lasts");
	setup_init(&s, "{\"workspace\": {\"mode\": \"review\"}}");
	refused(&s, EINVAL, "needs a sandbox that lasts");
}

TEST_MAIN()
