/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/hint.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#else
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif

static bool on_host(const char *path)
{
	return str_eq(path, "/opt/tool/bin/x") || str_eq(path, "/data/set");
}

static void expect(const char *tail, const char *want)
{
	struct mount mounts[] = {
		{ .kind = MOUNT_BIND, .dst = "/usr" },
		{ .kind = MOUNT_BIND, .dst = "/w", .flags = MOUNT_DIR },
		{ .kind = MOUNT_PROTECT, .dst = "/w/.git/config", .why = "git" },
		{ .kind = MOUNT_HIDE, .dst = "/w/.env", .why = ".env" },
		{ .kind = MOUNT_PIN, .dst = "/w/vendor", .why = "ancestor" },
		{ .kind = MOUNT_OVERLAY, .dst = "/w" },
	};
	struct plan p = { .workspace = "/w", .mounts = mounts, .n_mounts = ARRAY_LEN(mounts) };
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	p.limits[LIMIT_PIDS] = (struct plan_limit){ .is_set = true, .max = 64 };
	CHECK(hint_find(&p, tail, strlen(tail), on_host, &b) == (want[0] != '\0'));
	CHECK(strstr(buf_cstr(&b), want) != NULL);
	if (!strstr(buf_cstr(&b), want))
		(void)fprintf(stderr, "  '%s' gave '%s'\n", tail, buf_cstr(&b));
}

TEST(walls_are_named)
{
	expect("curl: (6) Could not resolve host: example.org\n", "no network");
	expect("error: could not write config file .git/config: Read-only file system\n", "--"
											  "protect "
											  "'!."
											  "git'");
	expect("cat: .env: Permission denied\n", "--hide '!.env'");
	expect("mv: cannot move 'vendor' to 'v2': Device or resource busy\n", "'vendor' cannot be "
									      "renamed");
	expect("sh: 1: /opt/tool/bin/x: not found\n", "--read '/opt/tool/bin/x'");
	expect("open '/data/set': Read-only file system\n", "--write '/data/set'");
	expect("sh: 1: cannot create f: Value too large for defined data type\n", "another owner "
										  "or group");
	expect("sh: 1: Cannot fork\n", "--pids raises it");
}

TEST(other_failures_get_no_hint)
{
	expect("make: *** [all] Error 1\n", "");
	expect("cat: /nowhere/x: No such file or directory\n", "");
	expect("/usr/bin/env: not found\n", "");
	expect("", "");
	expect("Permission denied\n", "");
}

TEST_MAIN()
