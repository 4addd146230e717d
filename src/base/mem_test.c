/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "base/test.h"

/* Once in a program's life: so one test, from the beginning to the end. */
TEST(a_child_sees_what_its_parent_makes)
{
	int go[2], status;
	char *before = mem_str("before"), *a, *b, *c, byte;
	pid_t pid;

	bug_on(pipe2(go, O_CLOEXEC) < 0);
	CHECK(!mem_share_is_whole());
	CHECK_INT(mem_share(64 * KIB), 0);
	pid = fork();
	if (pid == 0) {
		const char *root;

		mem_share_end();
		bug_on(read(go[0], &byte, 1) != 1 || mem_share_take() < 0);
		root = mem_share_root();
		a = mem_str("the child's own");
		bug_on(mem_is_shared(a));
		/* What it writes there nobody else sees. */
		(void)snprintf(mem_share_root(), 4, "new");
		_exit(str_eq(root, "new") ? 7 : 1);
	}
	a = mem_str("one");
	CHECK(mem_is_shared(a) && !mem_is_shared(before));
	free(before);
	/* The last one grows where it is and is given back; its place comes back empty. */
	b = mem_grow(mem_str("two"), 1000, 1);
	CHECK_STR(b, "two");
	memset(b, 'x', 1000);
	free(b);
	c = mem_new(500, 1);
	CHECK(c == b);
	for (size_t i = 0; i < 500; i++)
		CHECK(c[i] == 0);
	/* One that is not the last moves. */
	b = mem_grow(a, 100, 1);
	CHECK(b != a && str_eq(b, "one"));
	CHECK(mem_share_is_whole());
	b = mem_new(65, KIB);
	CHECK(!mem_is_shared(b) && !mem_share_is_whole());
	free(b);
	mem_share_give(a);
	b = mem_str("after");
	CHECK(!mem_is_shared(b));
	free(b);
	free(c); /* nothing happens to it */
	bug_on(write(go[1], "", 1) != 1);
	bug_on(waitpid(pid, &status, 0) != pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_STR(a, "one");
}

TEST_MAIN()
