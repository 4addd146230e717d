/* SPDX-License-Identifier: Apache-2.0 */
/* base/err_test.c - what an error says, and that a long story stays within its box */
#include "base/err.h"
#include "base/test.h"

TEST(set_returns_the_number)
{
	struct err e = ERR_INIT;

	CHECK_INT(err_set(&e, ERR_DENIED, EPERM, "no %s", "way"), -EPERM);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK_INT(e.num, EPERM);
	CHECK_STR(e.msg, "no way");
}

TEST(sys_takes_errno)
{
	struct err e = ERR_INIT;

	errno = ENOENT;
	CHECK_INT(err_sys(&e, "open '%s'", "x"), -ENOENT);
	CHECK_INT(e.kind, ERR_SYSTEM);
	CHECK_STR(e.msg, "open 'x': No such file or directory");
	errno = 0; /* a failure that forgot to say why is still a failure */
	CHECK_INT(err_sys(&e, "x"), -EIO);
}

TEST(wrap_goes_in_front)
{
	struct err e = ERR_INIT;
	int r = err_set(&e, ERR_CONFIG, EINVAL, "bad");

	CHECK_INT(err_wrap(&e, r, "file %d", 3), -EINVAL);
	CHECK_STR(e.msg, "file 3: bad");
	CHECK_INT(e.kind, ERR_CONFIG);
}

TEST(long_messages_are_cut_and_ended)
{
	struct err e = ERR_INIT;
	char big[2000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)err_set(&e, ERR_USAGE, EINVAL, "%s", big);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	CHECK_INT(err_wrap(&e, -1, "%s", big), -1);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	errno = EPERM;
	CHECK_INT(err_sys(&e, "%s", big), -EPERM);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
}

TEST(exit_codes)
{
	static const int want[ERR_KIND_COUNT_] = {
		[ERR_NONE] = 125,     [ERR_USAGE] = 2,         [ERR_CONFIG] = 2,
		[ERR_DENIED] = 125,   [ERR_UNSUPPORTED] = 125, [ERR_NOTFOUND] = 125,
		[ERR_CONFLICT] = 125, [ERR_SYSTEM] = 125,      [ERR_BUG] = 125,
	};

	for (enum err_kind k = 0; k < ERR_KIND_COUNT_; k++) {
		struct err e = { .kind = k };

		CHECK_INT(err_exit_code(&e), want[k]);
		CHECK(err_kind_name(k) != NULL && err_kind_name(k)[0] != '\0');
	}
	CHECK_STR(err_kind_name(ERR_UNSUPPORTED), "unsupported");
}

TEST_MAIN()
