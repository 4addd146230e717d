/* SPDX-License-Identifier: Apache-2.0 */
/* base/base64_test.c - there and back, and nothing but the one spelling */
#include "base/base64.h"
#include "base/test.h"

TEST(there_and_back)
{
	static const char *const pairs[][2] = {
		{ "", "" },        { "f", "Zg==" },        { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe", "//4=" }
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		_cleanup_(buf_done) struct buf a = BUF(KIB), b = BUF(KIB);

		base64_put(&a, str_of(pairs[i][0]));
		CHECK_STR(buf_cstr(&a), pairs[i][1]);
		CHECK(base64_read(str_of(pairs[i][1]), &b));
		CHECK_STR(buf_cstr(&b), pairs[i][0]);
	}
}

TEST(other_spellings_are_refused)
{
	static const char *const wrong[] = { "Z",      "Zg",   "Zg=",  "Zh==", "Zm9=",    "Zm 9",
					     "Zm9v\n", "Z===", "====", "-_==", "Zg==Zg==" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(buf_done) struct buf b = BUF(KIB);

		if (base64_read(str_of(wrong[i]), &b)) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
	}
}

TEST_MAIN()
