/* SPDX-License-Identifier: Apache-2.0 */
/* base/md5_test.c - the vectors of RFC 1321 */
#include "base/md5.h"
#include "base/test.h"

static void check(const char *text, const char *want)
{
	char hex[MD5_HEX_BYTES];

	md5_hex(text, strlen(text), hex);
	CHECK_STR(hex, want);
}

TEST(vectors)
{
	check("", "d41d8cd98f00b204e9800998ecf8427e");
	check("a", "0cc175b9c0f1b6a831c399e269772661");
	check("abc", "900150983cd24fb0d6963f7d28e17f72");
	check("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
	check("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5"
										"611c2c9f419d9f");
	check("12345678901234567890123456789012345678901234567890123456789012345678901234567890",
	      "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_MAIN()
