/* SPDX-License-Identifier: Apache-2.0 */
/* plan/guest_test.c - the guest half of a plan comes out as it went in, and nothing else does */
#include "base/test.h"
#include "plan/guest.h"
#include "plan/testplan.h"

TEST(there_and_back)
{
	for (size_t i = 0; i < ARRAY_LEN(dozen); i++) {
		_cleanup_(buf_done) struct buf b = BUF(GUEST_MAX);
		struct guest_walls in = { .has_own_kernel = i % 2, .umask = 022, .sample_ms = 50 },
				   out;
		struct err e = ERR_INIT;
		struct plan p = { 0 };
		struct setup s;

		dozen[i].make(&s);
		CHECK_INT(setup_build(&s), 0);
		guest_encode(&s.plan, &in, &b);
		CHECK_INT(guest_decode(buf_cstr(&b), b.n, &p, &out, &e), 0);
		CHECK_INT(p.ids.uid_in, s.plan.ids.uid_in);
		CHECK_INT(out.has_own_kernel, i % 2);
		CHECK_INT(p.landlock_abi, i % 2 ? 0 : s.plan.landlock_abi);
		CHECK_INT(p.debug, s.plan.debug);
		CHECK_INT(p.is_named, s.plan.is_named);
		CHECK_INT(out.umask, 022);
		CHECK_INT(p.n_access, s.plan.n_access);
		CHECK_STR(p.cwd, s.plan.cwd);
		for (size_t k = 0; s.plan.env[k]; k++)
			CHECK_STR(p.env[k], s.plan.env[k]);
		for (enum limit_id id = 0; id < LIMIT_COUNT_; id++)
			CHECK(p.limits[id].is_set == s.plan.limits[id].is_set &&
			      (!p.limits[id].is_set || p.limits[id].max == s.plan.limits[id].max));
		plan_done(&p);
		setup_done(&s);
	}
}

static void refused(const char *text, size_t n)
{
	struct guest_walls walls;
	struct err e = ERR_INIT;
	struct plan p = { 0 };

	CHECK(guest_decode(text, n, &p, &walls, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFIG);
}

#define REFUSED(text) refused(text, sizeof(text))

TEST(nothing_else)
{
	refused("", 0);
	refused("cwd /", 5); /* not ended */
	REFUSED("cwd /\0env A=b\0frob 1");
	REFUSED("cwd relative\0env A=b");
	REFUSED("cwd /\0cwd /\0env A=b");
	REFUSED("cwd /\0env novalue");
	REFUSED("cwd /\0env A=b\0access write ../x");
	REFUSED("cwd /\0env A=b\0access own /x");
	REFUSED("cwd /\0env A=b\0uid -1");
	REFUSED("cwd /\0env A=b\0workspace x");
	REFUSED("cwd /\0env A=b\0workspace /x\0workspace /x");
	REFUSED("cwd /\0env A=b\0workspace /x\0ws_ino x");
	REFUSED("cwd /\0env A=b\0pids many");
	REFUSED("cwd /\0env A=b\0");
}

TEST_MAIN()
