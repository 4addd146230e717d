/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine_test.c - each door is open before and closed after, in a child of its own */
#include <sys/wait.h>

#include "base/test.h"
#include "sys/confine.h"

/* Exit status of a child that confines itself to `promises` and then proves against `proof`. */
static int try_it(unsigned promises, unsigned proof, bool is_confined)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e = ERR_INIT;

		if (is_confined && confine(promises, &e) < 0)
			_exit(2);
		_exit(confine_prove(proof, &e) < 0 ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(nothing_holds_without_it)
{
	CHECK_INT(try_it(0, 0, false), 1);
}

TEST(each_set_of_promises_holds)
{
	for (unsigned p = 0; p < 8; p++)
		CHECK_INT(try_it(p, p, true), 0);
}

TEST(the_proof_notices_one_promise_too_many)
{
	CHECK_INT(try_it(CONFINE_ACCEPT, 0, true), 1);
	CHECK_INT(try_it(CONFINE_CONNECT, 0, true), 1);
	CHECK_INT(try_it(CONFINE_LISTEN, 0, true), 1);
}

TEST_MAIN()
