/* SPDX-License-Identifier: Apache-2.0 */
/* engine/render_test.c - every renderer over the dozen plans, and what must hold in each of its words
 *
 * The golden texts lie in VITRINE_GOLDEN/ENGINE/PLAN.txt; VITRINE_GOLDEN_WRITE=1 writes them anew, to be read in the
 * diff.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/test.h"
#include "engine/container/container.h"
#include "engine/engine.h"
#include "engine/mapped.h"
#include "engine/seatbelt/seatbelt.h"
#include "engine/vm/vm.h"
#include "plan/parts.h"
#include "plan/testplan.h"

static int render_one(const struct engine *en, const struct setup *s, struct rendering *out,
		      struct err *e)
{
	_free_ char *tool = mem_fmt("/usr/bin/%s", en->tool);
	_free_ char *dir = mem_fmt("%s/engine/vitrine-x-1", s->plan.state_dir);
	bool is_placed = s->plan.ids.is_root && en->steps & BIT(STEP_ROOT);
	struct render_in in = { .plan = &s->plan,
				.tool = tool,
				/* its name changes with every entry */
				.skel = is_placed ? MAPPED_SKEL : "/state/skel",
				.place = is_placed ? MAPPED_PLACE : NULL,
				.dir = is_placed ? MAPPED_DIR : dir,
				.kernel = "/boot/vmlinuz-6",
				/* one boots, the other goes on */
				.kept = en->is_emulated ? NULL : "/state/vm/KEY",
				.id = "vitrine-x-1" };

	return en->render(&in, out, e);
}

static void make_for(const struct engine *en, size_t i, struct setup *s)
{
	dozen[i].make(s);
	s->facts.init_exe = "/usr/local/libexec/vitrine/vitrine-init";
	engine_tell(en, &s->facts);
	/* Refused otherwise, where files or processes are not counted. */
	s->policy.limits[LIMIT_DISK].is_optional = s->policy.limits[LIMIT_PIDS].is_optional = true;
	free(s->policy.engine);
	s->policy.engine = mem_str(en->name);
	CHECK_INT(setup_build(s), 0);
	(void)snprintf(s->plan.skel_key, sizeof(s->plan.skel_key), "KEY");
}

static void compare(const char *dir, const char *engine, const char *name, const struct buf *got)
{
	_free_ char *folder = mem_fmt("%s/%s", dir, engine);
	_free_ char *path = mem_fmt("%s/%s.txt", folder, name);
	_cleanup_(buf_done) struct buf want = BUF(MIB);
	struct err e = ERR_INIT;

	if (getenv("VITRINE_GOLDEN_WRITE")) {
		_close_ int fd = FD_NONE;

		CHECK_INT(path_make(folder, 0755), 0);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		CHECK_INT(io_write_all(fd, got->p, got->n), 0);
		return;
	}
	CHECK_INT(io_read_file(path, &want, &e), 0);
	if (!str_eq(buf_cstr(got), buf_cstr(&want)))
		(void)fprintf(stderr, "%s:\n", path);
	CHECK_STR(buf_cstr(got), buf_cstr(&want));
}

TEST(golden_words_of_every_engine)
{
	const char *dir = getenv("VITRINE_GOLDEN");

	for (const struct engine *en = engines; en->name; en++)
		for (size_t i = 0; en->render && i < ARRAY_LEN(dozen); i++) {
			_cleanup_(rendering_done) struct rendering out = RENDERING;
			_cleanup_(buf_done) struct buf got = BUF(MIB);
			struct err e = ERR_INIT;
			struct setup s;

			make_for(en, i, &s);
			CHECK_INT(render_one(en, &s, &out, &e), 0);
			args_print(&out.args, &got);
			for (size_t k = 0; k < out.env.n; k++)
				buf_printf(&got, "%s%s\n", k ? "" : "\n", out.env.v[k]);
			/* The profile of system calls is the same for all of them, and in the table's own tests. */
			if (out.file && str_eq(out.file, "config.json")) {
				buf_printf(&got, "\n%s\n", out.file);
				buf_add(&got, out.text.p, out.text.n);
			}
			compare(dir ? dir : "tests/golden/engine", en->name, dozen[i].name, &got);
			setup_done(&s);
		}
}

/* ---- what must hold in every rendering ---- */

static bool says(const struct rendering *r, const char *word)
{
	for (size_t i = 0; i < r->args.n; i++)
		if (strstr(r->args.v[i], word))
			return true;
	return r->file && str_eq(r->file, "config.json") && strstr(buf_cstr(&r->text), word);
}

/* A machine's view is built by vm/view.c, and shown as one directory. */
static bool is_all_words(const struct engine *en)
{
	return en->steps & BIT(STEP_MOUNTS) && en->strength != STRENGTH_VM;
}

TEST(every_mount_is_rendered)
{
	for (const struct engine *en = engines; en->name; en++)
		for (size_t i = 0; en->render && is_all_words(en) && i < ARRAY_LEN(dozen); i++) {
			_cleanup_(rendering_done) struct rendering out = RENDERING;
			struct err e = ERR_INIT;
			struct setup s;

			make_for(en, i, &s);
			CHECK_INT(render_one(en, &s, &out, &e), 0);
			for (size_t k = 0; k < s.plan.n_mounts; k++) {
				const struct mount *m = &s.plan.mounts[k];
				/* Tools that make /proc and /dev themselves say so in their own words. */
				bool is_theirs =
					path_is_beneath(m->dst, "/proc") || render_is_dev(m);

				if (!is_theirs && !says(&out, m->dst))
					(void)fprintf(stderr, "%s, %s: no %s\n", en->name,
						      dozen[i].name, m->dst);
				CHECK(is_theirs || says(&out, m->dst));
			}
			setup_done(&s);
		}
}

TEST(bundles_are_json)
{
	for (const struct engine *en = engines; en->name; en++)
		for (size_t i = 0; en->render && i < ARRAY_LEN(dozen); i++) {
			_cleanup_(rendering_done) struct rendering out = RENDERING;
			struct json_doc doc = { 0 };
			struct err e = ERR_INIT;
			struct setup s;

			make_for(en, i, &s);
			CHECK_INT(render_one(en, &s, &out, &e), 0);
			if (out.file)
				CHECK_INT(json_parse(buf_cstr(&out.text), out.text.n, &doc, &e), 0);
			json_done(&doc);
			setup_done(&s);
		}
}

TEST(names_that_have_vanished_are_left_out)
{
	const struct engine *en = engine_find("bwrap");
	_cleanup_(rendering_done) struct rendering out = RENDERING;
	struct err e = ERR_INIT;
	struct setup s;

	make_for(en, 4, &s);
	_free_ bool *gone = mem_new(s.plan.n_mounts, sizeof(*gone));
	struct render_in in = { .plan = &s.plan,
				.tool = "bwrap",
				.skel = "/skel",
				.dir = "/dir",
				.id = "x",
				.gone = gone };

	for (size_t i = 0; i < s.plan.n_mounts; i++)
		gone[i] = str_ends(s.plan.mounts[i].dst, "/.env");
	CHECK_INT(render_bwrap(&in, &out, &e), 0);
	CHECK(!says(&out, "/.env"));
	CHECK(says(&out, "/secrets"));
	setup_done(&s);
}

TEST(paths_that_a_tool_cannot_say_are_refused)
{
	static const char *const cannot[] = { "nsjail", "podman", "podman-remote", "docker" };

	for (size_t i = 0; i < ARRAY_LEN(cannot); i++) {
		const struct engine *en = engine_find(cannot[i]);
		_cleanup_(rendering_done) struct rendering out = RENDERING;
		struct err e = ERR_INIT;
		struct setup s;

		dozen[0].make(&s);
		s.facts.home = "/home/a:b";
		s.facts.workspace = s.facts.cwd = "/home/a:b/proj";
		s.facts.tools.n = 0;
		s.facts.init_exe = "/usr/local/libexec/vitrine/vitrine-init";
		free(s.policy.engine);
		s.policy.engine = mem_str(en->name);
		CHECK_INT(setup_build(&s), 0);
		CHECK(render_one(en, &s, &out, &e) < 0);
		CHECK_INT(e.kind, ERR_UNSUPPORTED);
		setup_done(&s);
	}
}

TEST(docker_mounts_are_quoted)
{
	const struct engine *en = engine_find("docker");
	_cleanup_(rendering_done) struct rendering out = RENDERING;
	struct err e = ERR_INIT;
	struct setup s;

	dozen[0].make(&s);
	s.facts.workspace = s.facts.cwd = "/home/dev/a,\"b";
	s.facts.init_exe = "/usr/local/libexec/vitrine/vitrine-init";
	free(s.policy.engine);
	s.policy.engine = mem_str("docker");
	CHECK_INT(setup_build(&s), 0);
	CHECK_INT(render_one(en, &s, &out, &e), 0);
	CHECK(says(&out, ",\"src=/home/dev/a,\"\"b\",\"dst=/home/dev/a,\"\"b\""));
	setup_done(&s);
}

/* Root's: nothing is named where root's directories would have to be entered, and a name over itself is taken from the
 * mapped tree that it lies in. */
TEST(roots_sources_lie_by_number_in_one_place)
{
	const struct engine *en = engine_find("bwrap");
	struct render_in in = { .place = "/place", .skel = "/place/skel" };
	struct setup s;

	make_for(en, 1, &s);
	in.plan = &s.plan;
	plan_add_mount(&s.plan, MOUNT_BIND, "/root/proj/sub", "/elsewhere", MOUNT_DIR, "granted");
	plan_add_mount(&s.plan, MOUNT_PROTECT, "/root/proj/sub/f", "/root/proj/sub/f", MOUNT_RO,
		       "x");
	plan_add_mount(&s.plan, MOUNT_HIDE, "dir", "/root/proj/vault", MOUNT_DIR, "x");
	for (size_t i = 0; i < s.plan.n_mounts; i++) {
		const struct mount *m = &s.plan.mounts[i];
		_free_ char *src = render_source(&in, m), *own = mem_fmt("/place/%zu", i);

		if (m->kind == MOUNT_BIND)
			CHECK_STR(src, own);
		if (m->kind == MOUNT_HIDE && m->flags & MOUNT_DIR)
			CHECK_STR(src, "/place/cover");
		else if (m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN || m->kind == MOUNT_HIDE)
			CHECK(str_starts(src, "/place/") && str_ends(src, path_name(m->src)));
		if (m->kind == MOUNT_PROTECT && str_ends(m->src, "sub/f")) {
			_free_ char *below = mem_fmt("/place/%zu/f", i - 1);

			CHECK_STR(src, below);
		}
	}
	setup_done(&s);
}

/* Where somebody became another user it still names the old one's, and podman would fail on it. */
TEST(a_runtime_directory_of_somebody_else_is_not_passed_on)
{
	static char *from[] = { "XDG_RUNTIME_DIR=/run/user/1000", "DOCKER_HOST=unix:///x", NULL };

	for (int is_own = 0; is_own < 2; is_own++) {
		struct setup s;
		const char *got;

		dozen[0].make(&s);
		s.facts.init_exe = "/init";
		s.facts.environ = from;
		s.facts.has_runtime_dir = is_own;
		s.policy.limits[LIMIT_DISK].is_optional = true;
		s.facts.engine_counts_no_files = true;
		free(s.policy.engine);
		s.policy.engine = mem_str("podman");
		CHECK_INT(setup_build(&s), 0);
		got = render_word(s.plan.engine_env, "XDG_RUNTIME_DIR");
		CHECK((got != NULL) == is_own);
		CHECK_STR(render_word(s.plan.engine_env, "DOCKER_HOST"), "unix:///x");
		setup_done(&s);
	}
}

/* ---- refusals, by name ---- */

TEST(engines_refuse_what_they_cannot_honour)
{
	struct err e = ERR_INIT;
	struct setup s;

	make_for(engine_find("firejail"), 0, &s);
	CHECK(engine_check(engine_find("firejail"), &s.plan, &e) < 0);
	CHECK_STR(e.msg, "engine 'firejail' cannot honour: mounts; --engine native can");
	setup_done(&s);
	make_for(engine_find("docker"), 1, &s);
	CHECK(engine_check(engine_find("docker"), &s.plan, &e) < 0);
	CHECK(strstr(e.msg, "root's ids mapped away") && strstr(e.msg, "--user NAME"));
	CHECK_INT(engine_check(engine_find("native"), &s.plan, &e), 0);
	setup_done(&s);
	/* A machine stacks layers, but all of its files have one owner. */
	make_for(engine_find("vm-emulated"), 0, &s);
	plan_add_mount(&s.plan, MOUNT_LAYER, "/layer", "/usr", MOUNT_DIR, "written");
	plan_add_mount(&s.plan, MOUNT_OVERLAY, "overlay", "/usr", MOUNT_DIR, "template, kept");
	CHECK_INT(engine_check(engine_find("vm-emulated"), &s.plan, &e), 0);
	CHECK(engine_check(engine_find("crun"), &s.plan, &e) < 0);
	CHECK_STR(e.msg, "engine 'crun' cannot honour: layers; --engine native can");
	s.plan.ids.root = ROOT_SETUID;
	CHECK(engine_check(engine_find("vm-emulated"), &s.plan, &e) < 0);
	CHECK_STR(e.msg, "engine 'vm-emulated' cannot honour: a template's own ids; --engine "
			 "native can");
	setup_done(&s);
}

TEST(never_weaker_than_asked)
{
	const struct engine *en = NULL;
	struct err e = ERR_INIT;

	CHECK_INT(engine_pick("native", STRENGTH_PROCESS, 0, &en, &e), 0);
	CHECK(engine_pick("native", STRENGTH_KERNEL, 0, &en, &e) < 0);
	CHECK(strstr(e.msg, "isolation \"kernel\"") != NULL);
	CHECK(engine_pick("bwrap", STRENGTH_VM, 0, &en, &e) < 0);
	CHECK(engine_pick("warp", STRENGTH_PROCESS, 0, &en, &e) < 0);
	for (enum engine_strength least = 0; least < STRENGTH_COUNT_; least++)
		if (engine_pick("auto", least, 0, &en, &e) == 0)
			CHECK(en->strength >= least && !en->is_untested && en->unfit == NULL);
	/* What cannot honour a step is not offered to who needs it. */
	CHECK_INT(engine_pick("auto", STRENGTH_PROCESS, BIT(STEP_ROOT), &en, &e), 0);
	CHECK(en->steps & BIT(STEP_ROOT));
	CHECK_INT(engine_pick("auto", STRENGTH_PROCESS, BIT(STEP_OWN_IDS), &en, &e), 0);
	CHECK_STR(en->name, "native");
}

TEST(every_engine_is_a_word_of_the_policy)
{
	struct policy p;
	struct err e = ERR_INIT;

	policy_init(&p);
	for (const struct engine *en = engines; en->name; en++)
		CHECK_INT(policy_set(&p, SETTING_ENGINE, en->name, LAYER_FLAGS, &e), 0);
	policy_done(&p);
}

/* ---- the image and the profile ---- */

TEST(image_is_a_tar_of_the_skeleton)
{
	_cleanup_(buf_done) struct buf tar = BUF(16 * MIB);
	struct err e = ERR_INIT;
	struct setup s;
	size_t n = 0;

	make_for(engine_find("docker"), 0, &s);
	for (size_t i = 0; i < s.plan.n_skel; i++) /* no host of ours has that file */
		if (s.plan.skel[i].kind == SKEL_COPY)
			s.plan.skel[i].kind = SKEL_FILE;
	CHECK_INT(image_tar(&s.plan, &tar, &e), 0);
	CHECK_INT(tar.n % 512, 0);
	for (size_t at = 0; at + 512 <= tar.n && tar.p[at]; n++) {
		_free_ char *size = mem_strn(tar.p + at + 124, 11);
		size_t bytes = 0;

		CHECK(memcmp(tar.p + at + 257, "ustar", 6) == 0);
		for (const char *p = size; *p >= '0' && *p <= '7'; p++)
			bytes = bytes * 8 + (size_t)(*p - '0');
		at += 512 + (bytes + 511) / 512 * 512;
	}
	CHECK_INT(n, s.plan.n_skel);
	setup_done(&s);
}

TEST(podman_goes_where_its_client_would)
{
	static const struct {
		char *env[3];
		const char *name, *want;
	} cases[] = {
		{ { (char *)(uintptr_t) "HOME=/h", NULL }, "podman", "podman" },
		{ { (char *)(uintptr_t) "CONTAINER_HOST=", NULL }, "podman", "podman" },
		{ { (char *)(uintptr_t) "CONTAINER_HOST=ssh://x", NULL },
		  "podman",
		  "podman-remote" },
		{ { (char *)(uintptr_t) "CONTAINER_CONNECTION=x", NULL },
		  "podman",
		  "podman-remote" },
		{ { (char *)(uintptr_t) "CONTAINER_HOST=ssh://x", NULL }, "crun", "crun" },
		{ { (char *)(uintptr_t) "CONTAINER_HOST=ssh://x", NULL }, "auto", "auto" },
		{ { NULL }, "podman-remote", "podman-remote" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_STR(engine_led(cases[i].name, cases[i].env), cases[i].want);
}

/* What podman itself would follow never reaches it; its client has it, and the user's own settings. */
TEST(only_the_client_is_led_away)
{
	static char *const env[] = { (char *)(uintptr_t) "CONTAINER_HOST=unix:///s",
				     (char *)(uintptr_t) "XDG_CONFIG_HOME=/c", NULL };
	static const char *const names[] = { "podman", "podman-remote", "docker" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct engine *en = engine_find(names[i]);
		bool is_remote = str_eq(names[i], "podman-remote");
		const char *config;
		struct setup s;

		dozen[0].make(&s);
		s.facts.environ = env;
		s.facts.init_exe = "/usr/local/libexec/vitrine/vitrine-init";
		free(s.policy.engine);
		s.policy.engine = mem_str(en->name);
		CHECK_INT(setup_build(&s), 0);
		CHECK((render_word(s.plan.engine_env, "CONTAINER_HOST") != NULL) == is_remote);
		config = render_word(s.plan.engine_env, "XDG_CONFIG_HOME");
		CHECK((config && str_eq(config, "/c")) == is_remote);
		setup_done(&s);
	}
}

TEST(advice_is_for_what_may_be_elsewhere)
{
	CHECK(*engine_advice("podman-remote", "Error: statfs /x: no such file or directory"));
	CHECK(*engine_advice("docker", "bind source path does not exist: /x."));
	CHECK_STR(engine_advice("docker", "no space left on device"), "");
	CHECK_STR(engine_advice("podman", "Error: statfs /x: no such file or directory"), "");
}

TEST(docker_is_asked_where_its_client_would_go)
{
	static const struct {
		char *env[4];
		const char *config, *want;
	} cases[] = {
		{ { (char *)(uintptr_t) "HOME=/h", NULL }, "", "/var/run/docker.sock" },
		{ { (char *)(uintptr_t) "DOCKER_HOST=unix:///run/d.sock", NULL },
		  "",
		  "/run/d.sock" },
		{ { (char *)(uintptr_t) "DOCKER_HOST=tcp://10.0.0.1:2376", NULL }, "", NULL },
		{ { (char *)(uintptr_t) "DOCKER_HOST=ssh://x", NULL }, "", NULL },
		{ { (char *)(uintptr_t) "DOCKER_CONTEXT=far", NULL }, "", NULL },
		{ { (char *)(uintptr_t) "HOME=/h", NULL }, "{\"currentContext\":\"far\"}", NULL },
		{ { (char *)(uintptr_t) "HOME=/h", NULL },
		  "{\"auths\":{}}",
		  "/var/run/docker.sock" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *got = docker_socket(cases[i].env, cases[i].config);

		CHECK((got == NULL) == (cases[i].want == NULL));
		if (got && cases[i].want)
			CHECK_STR(got, cases[i].want);
	}
}

TEST(profile_allows_the_lock_and_refuses_mounts)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	const char *refused;

	seccomp_profile(false, &b);
	refused = strstr(buf_cstr(&b), "\"errnoRet\":1");
	CHECK(refused != NULL);
	CHECK(strstr(buf_cstr(&b), "\"landlock_restrict_self\"") < refused);
	CHECK(strstr(buf_cstr(&b), "\"read\"") < refused);
	CHECK(strstr(buf_cstr(&b), "\"mount\"") > refused);
	CHECK(strstr(buf_cstr(&b), "\"unshare\"") > refused);
	CHECK(strstr(buf_cstr(&b), "\"ptrace\"") > refused);
}

/* ---- machines ---- */

TEST(modules_come_after_what_they_need)
{
	static const char dep[] = "kernel/b.ko: kernel/c.ko kernel/d.ko\nkernel/d.ko:\n"
				  "kernel/c.ko: kernel/d.ko\nkernel/bb.ko:\n";
	static const char *const want[] = { "b", "none", "c", NULL };
	_cleanup_(args_done) struct args a = { 0 };
	_cleanup_(buf_done) struct buf got = BUF(KIB);

	vm_modules(dep, want, &a);
	args_print(&a, &got);
	CHECK_STR(buf_cstr(&got), "kernel/d.ko kernel/c.ko kernel/b.ko\n");
}

TEST(a_module_loses_its_signature_and_nothing_else)
{
	static const char mark[] = "~Module signature appended~\n";
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	buf_puts(&b, "code");
	vm_unsign(&b);
	CHECK_INT(b.n, 4);
	buf_puts(&b, "sign");
	buf_add(&b, "\0\0\2\0\0\0\0\0\0\0\0\4", 12);
	buf_puts(&b, mark);
	vm_unsign(&b);
	CHECK_INT(b.n, 4);
	CHECK(memcmp(b.p, "code", 4) == 0);
	/* a length that cannot be: left alone */
	buf_add(&b, "\0\0\2\0\0\0\0\0\x7f\0\0\4", 12);
	buf_puts(&b, mark);
	vm_unsign(&b);
	CHECK_INT(b.n, 4 + 12 + strlen(mark));
	b.n = 0;
	buf_puts(&b, mark);
	vm_unsign(&b);
	CHECK_INT(b.n, strlen(mark));
}

static char *key_for(size_t i, const char *image, const char *tool, bool is_emulated)
{
	struct vm_kernel k = { (char *)(uintptr_t)image, (char *)(uintptr_t) "/nonexistent" };
	struct setup s;
	char *key;

	make_for(engine_find("vm"), i, &s);
	key = vm_key(&(struct vm_kind){ &s.plan, &k, tool, is_emulated, false });
	setup_done(&s);
	return key;
}

TEST(a_kept_machine_is_named_by_all_that_makes_it)
{
	size_t limited = 0;

	while (!str_eq(dozen[limited].name, "limits-kernel"))
		limited++;
	_free_ char *one = key_for(0, "/proc/self/exe", "/usr/bin/qemu", true);
	_free_ char *same = key_for(0, "/proc/self/exe", "/usr/bin/qemu", true);
	_free_ char *board = key_for(0, "/proc/self/exe", "/usr/bin/qemu", false);
	_free_ char *kernel = key_for(0, "/dev/null", "/usr/bin/qemu", true);
	_free_ char *tool = key_for(0, "/proc/self/exe", "/usr/local/bin/qemu", true);
	_free_ char *memory = key_for(limited, "/proc/self/exe", "/usr/bin/qemu", true);
	const char *const others[] = { board, kernel, tool, memory };

	CHECK_INT(strlen(one), 32);
	CHECK_STR(one, same);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK(!str_eq(one, others[i]));
}

/* QEMU keeps none with the device in it: a kept one has the place, and a copy the connection too. */
TEST(a_kept_machine_has_a_place_for_virtiofs)
{
	struct setup s;

	make_for(engine_find("vm"), 0, &s);
	for (int i = 0; i < 4; i++) {
		_cleanup_(args_done) struct args words = { 0 };
		_cleanup_(buf_done) struct buf got = BUF(MIB);
		bool is_emulated = i & 1, is_copy = i & 2;
		struct render_in in = { .plan = &s.plan,
					.tool = "/usr/bin/qemu",
					.dir = "/state/x",
					.kernel = "/boot/vmlinuz-6",
					.kept = "/state/vm/key",
					.is_virtiofs = true };

		vm_words(&in, is_copy ? VM_WARM : VM_KEEP, is_emulated, &words);
		args_print(&words, &got);
		CHECK(strstr(buf_cstr(&got), "pcie-root-port,id=later0,bus=pcie.0") != NULL);
		CHECK(strstr(buf_cstr(&got), "vhost-user-fs") == NULL);
		CHECK(strstr(buf_cstr(&got), "9p") == NULL);
		CHECK((strstr(buf_cstr(&got), "pcie=on") != NULL) == !is_emulated);
		CHECK((strstr(buf_cstr(&got), "socket,id=view,fd=40") != NULL) == is_copy);
		CHECK(strstr(buf_cstr(&got), is_copy ? "mem-path=/proc/self/fd/5,share=on"
						     : "mem-path=/state/vm/key/ram,share=on"));
	}
	CHECK(strstr(vm_plug_words(0), "\"later0\"") && strstr(vm_plug_words(0), "\"view\""));
	CHECK(strstr(vm_plug_words(1), "\"later1\"") && strstr(vm_plug_words(1), "\"system\""));
	setup_done(&s);
}

/* Memory as a file: what is zero becomes a hole, a copy has the same bytes. */
TEST(a_copy_of_memory)
{
	const size_t n = 8 * MIB;
	_close_ int from = memfd_create("from", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC);
	_free_ char *bytes = mem_new(n, 1), *got = mem_new(n, 1);
	struct stat before, after;

	bytes[0] = 1;
	memset(bytes + 5 * MIB + 4096, 7, 12345);
	CHECK_INT(pwrite(from, bytes, n, 0), (ssize_t)n);
	CHECK_INT(ftruncate(from, (off_t)(n + MIB)), 0); /* it ends with a hole */
	CHECK_INT(fstat(from, &before), 0);
	CHECK_INT(vm_ram_thin(from), 0);
	CHECK_INT(fstat(from, &after), 0);
	CHECK(after.st_blocks * 10 < before.st_blocks);
	CHECK_INT(vm_ram_copy(from, to), 0);
	CHECK_INT(fstat(to, &after), 0);
	CHECK_INT(after.st_size, (ssize_t)(n + MIB));
	CHECK(after.st_blocks * 10 < before.st_blocks);
	CHECK_INT(pread(to, got, n, 0), (ssize_t)n);
	CHECK(memcmp(bytes, got, n) == 0);
	/* what is no file is no memory */
	CHECK(vm_ram_copy(from, FD_NONE) < 0);
	CHECK(vm_ram_copy(FD_NONE, to) < 0);
}

TEST(a_kernel_knows_its_modules)
{
	char dir[] = "/tmp/vitrine-modules-XXXXXX";
	struct vm_kernel k = { .modules = dir };
	_free_ char *dep = NULL, *builtin = NULL;
	FILE *f;

	CHECK(mkdtemp(dir) != NULL);
	dep = mem_fmt("%s/modules.dep", dir);
	builtin = mem_fmt("%s/modules.builtin", dir);
	CHECK(!vm_kernel_has(&k, "virtiofs")); /* there are no lists */
	f = fopen(dep, "we");
	CHECK(f && fputs("kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko\n", f) >= 0 && fclose(f) == 0);
	CHECK(vm_kernel_has(&k, "9p"));
	CHECK(!vm_kernel_has(&k, "virtiofs"));
	f = fopen(builtin, "we");
	CHECK(f && fputs("kernel/fs/fuse/virtiofs.ko\n", f) >= 0 && fclose(f) == 0);
	CHECK(vm_kernel_has(&k, "virtiofs"));
	(void)unlink(dep);
	(void)unlink(builtin);
	(void)rmdir(dir);
}

TEST(a_machine_with_virtiofs)
{
	static const char *const boards[] = { "device", "pci" };
	struct setup s;

	make_for(engine_find("vm"), 0, &s);
	for (size_t i = 0; i < ARRAY_LEN(boards); i++) {
		_cleanup_(args_done) struct args words = { 0 };
		_cleanup_(buf_done) struct buf got = BUF(MIB);
		_free_ char *device = mem_fmt("vhost-user-fs-%s,chardev=view,tag=view", boards[i]);
		struct render_in in = { .plan = &s.plan,
					.tool = "/usr/bin/qemu",
					.dir = "/state/x",
					.kernel = "/boot/vmlinuz-6",
					.is_virtiofs = true };

		vm_words(&in, VM_COLD, i == 1, &words);
		args_print(&words, &got);
		CHECK(strstr(buf_cstr(&got), device) != NULL);
		CHECK(strstr(buf_cstr(&got), "memory-backend-memfd,id=ram,size=2048M,share=on"));
		CHECK(strstr(buf_cstr(&got), ",memory-backend=ram") != NULL);
		CHECK(strstr(buf_cstr(&got), "9p") == NULL);
		CHECK((strstr(buf_cstr(&got), "force-legacy=false") != NULL) == (i == 0));
		CHECK(strstr(buf_cstr(&got), "pcie-root-port") == NULL);
	}
	setup_done(&s);
	CHECK_INT(vm_share_said(NULL), VM_SHARE_AUTO);
	CHECK_INT(vm_share_said("9p"), VM_SHARE_9P);
	CHECK_INT(vm_share_said("virtiofs"), VM_SHARE_VIRTIOFS);
	CHECK_INT(vm_share_said("auto"), VM_SHARE_AUTO);
	CHECK_INT(vm_share_said("nfs"), VM_SHARE_COUNT_);
	CHECK_INT(vm_share_said(""), VM_SHARE_COUNT_);
}

/* What is opened for reading, and what for writing, by whoever is in a machine's program: "rw", "r", "" */
static void try_file(const char *path, char *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *at = ret;

	if (fd >= 0)
		*at++ = 'r';
	fd_close(fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		*at++ = 'w';
	fd_close(fd);
	*at = '\0';
}

static void make_file(const char *dir, const char *name)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_free_ char *parent = path_parent(path);
	int fd;

	bug_on(path_make(parent, 0700) < 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bug_on(fd < 0);
	fd_close(fd);
}

static const char *const jail_names[] = { "x/view/f", "x/initrd", "kept/initrd", "kept/ram",
					  "kernel",   "secret",   "x/other" };
/* virtiofsd serves the files; QEMU does; it boots and QEMU does */
static const char *const jail_want[3][ARRAY_LEN(jail_names)] = {
	{ "", "", "r", "", "r", "", "" },
	{ "rw", "", "r", "rw", "r", "", "" },
	{ "rw", "r", "", "", "r", "", "" },
};

/* In a process of its own, which ends with 0 when all is as it should be. */
static _Noreturn void try_jail(const char *dir, int k)
{
	_free_ char *own = mem_fmt("%s/x", dir), *kept = mem_fmt("%s/kept", dir);
	_free_ char *kernel = mem_fmt("%s/kernel", dir);
	struct render_in in = {
		.dir = own, .kernel = kernel, .kept = k < 2 ? kept : NULL, .is_virtiofs = k == 0
	};
	struct err e = ERR_INIT;
	char got[4];

	if (vm_jail(&in, k > 0, &e) < 0)
		_exit(100);
	for (size_t i = 0; i < ARRAY_LEN(jail_names); i++) {
		_free_ char *path = mem_fmt("%s/%s", dir, jail_names[i]);

		try_file(path, got);
		if (!str_eq(got, jail_want[k][i]))
			_exit((int)i + 1);
	}
	try_file("/usr/bin/env", got);
	if (got[0] != 'r')
		_exit(50);
	try_file("/etc/passwd", got);
	_exit(got[0] == 'r' ? 51 : 0);
}

TEST(whoever_breaks_out_of_a_machine_finds_what_it_is_made_of)
{
	char dir[] = "/var/tmp/vitrine-jail-XXXXXX";

	bug_on(mkdtemp(dir) == NULL);
	for (size_t i = 0; i < ARRAY_LEN(jail_names); i++)
		make_file(dir, jail_names[i]);
	for (int k = 0; k < 3; k++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0)
			try_jail(dir, k);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(WEXITSTATUS(status), 0);
	}
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

/* What a monitor says is bounded and only half believed: answers, refusals, noise, the end. */
TEST(a_monitor_is_heard_but_not_trusted)
{
	static const struct {
		const char *said;
		int is_good;
	} cases[] = {
		{ "{\"QMP\":{}}\n{\"return\":{}}\n", 1 },
		{ "{\"event\":\"RESUME\"}\n{\"return\":{\"status\":\"active\"}}\n", 1 },
		{ "{\"error\":{\"class\":\"x\",\"desc\":\"no such thing\"}}\n", 0 },
		{ "{\"error\":7}\n", 0 },
		{ "[]\n", 0 },
		{ "{\n", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_INIT;
		int pair[2];

		CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		_cleanup_(qmp_done) struct qmp q = QMP(pair[0]);
		CHECK_INT(io_write_all(pair[1], cases[i].said, strlen(cases[i].said)), 0);
		CHECK_INT(shutdown(pair[1], SHUT_WR), 0);
		CHECK_INT(qmp_command(&q, "{}\n", FD_NONE, clock_now() + NS_PER_SEC, NULL, &e) == 0,
			  cases[i].is_good);
		fd_close(pair[0]);
		fd_close(pair[1]);
	}
}

/* ---- macOS ---- */

TEST(golden_profiles)
{
	const char *dir = getenv("VITRINE_GOLDEN");

	for (size_t i = 0; i < ARRAY_LEN(dozen); i++) {
		_cleanup_(buf_done) struct buf got = BUF(MIB);
		struct err e = ERR_INIT;
		struct setup s;
		size_t n_mounts;

		dozen[i].make(&s);
		n_mounts = s.policy.mount.n;
		s.facts.extra.n = s.facts.extra.n ? 3 : 0; /* no path at another place */
		s.policy.mount.n = 0;
		CHECK_INT(setup_build(&s), 0);
		CHECK_INT(seatbelt_profile(&s.plan, "/state/private", &got, &e), 0);
		CHECK(seatbelt_is_profile(buf_cstr(&got)));
		s.policy.mount.n = n_mounts;
		compare(dir ? dir : "tests/golden/engine", "seatbelt", dozen[i].name, &got);
		setup_done(&s);
	}
}

#define PROFILE(rest) "(version 1)\n(deny default)\n" rest

TEST(profiles_are_read_strictly)
{
	static const char *const good[] = {
		PROFILE(""),
		PROFILE("(allow file-read* (literal \"a\\\"b)\"))\n"),
		PROFILE("; a word (\n(deny network*)\n(allow signal (target same-sandbox))"),
		PROFILE("(allow file-read* file-ioctl (subpath \"/a\") (regex #\"^/b$\"))"),
	};
	static const char *const bad[] = {
		"(version 1)\n(allow default)\n",
		PROFILE("(allow default)\n"),
		PROFILE("(allow file-raed* (literal \"a\"))\n"),
		PROFILE("(allow file-read* (litteral \"a\"))\n"),
		PROFILE("(allow file-read* (literal a))\n"),
		PROFILE("(allow file-read* (literal \"a\\n\"))\n"),
		PROFILE("(allow file-read* (literal \"a\")\n"),
		PROFILE("(allow file-read* (literal \"a\")))\n"),
		PROFILE("(allow (literal \"a\"))\n"),
		PROFILE("(allow signal (target anybody))\n"),
		PROFILE("(allow file-read* (literal \"a)\n"),
		PROFILE("stray\n"),
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(seatbelt_is_profile(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!seatbelt_is_profile(bad[i]));
}

TEST(a_profile_is_one_word_of_the_launch)
{
	char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL };
	_cleanup_(args_done) struct args a = { 0 };

	seatbelt_args("(version 1) (x)", argv, &a);
	CHECK_INT(a.n, 6);
	CHECK_STR(a.v[0], "/usr/bin/sandbox-exec");
	CHECK_STR(a.v[2], "(version 1) (x)");
	CHECK_STR(a.v[3], "--");
	CHECK_STR(a.v[5], "-c");
}

TEST(a_quote_in_a_path_stays_in_its_string)
{
	_cleanup_(buf_done) struct buf got = BUF(MIB);
	struct err e = ERR_INIT;
	struct setup s;

	dozen[0].make(&s);
	s.facts.workspace = s.facts.cwd = "/home/dev/a\")) (allow default) (x (\"";
	CHECK_INT(setup_build(&s), 0);
	CHECK_INT(seatbelt_profile(&s.plan, "/state/private", &got, &e), 0);
	CHECK(seatbelt_is_profile(buf_cstr(&got)));
	CHECK(strstr(buf_cstr(&got), "a\\\")) (allow default)") != NULL);
	setup_done(&s);
}

TEST_MAIN()
