/* SPDX-License-Identifier: Apache-2.0 */
/* base/sha256_test.c - the published vectors, and every length around the edge of a block */
#include "base/sha256.h"
#include "base/test.h"

static void check(const char *text, const char *want)
{
	char hex[SHA256_HEX_BYTES];

	sha256_hex(text, strlen(text), hex);
	CHECK_STR(hex, want);
}

TEST(vectors)
{
	check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c02693"
									  "0c3e6039a33ce45964ff2167"
									  "f6ecedd419db06c1");
	check("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmn"
	      "opqrlmnopqrsmnopqrstnopqrstu",
	      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST(million)
{
	_free_ char *a = mem_new(1000000, 1);
	char hex[SHA256_HEX_BYTES];

	memset(a, 'a', 1000000);
	sha256_hex(a, 1000000, hex);
	CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The hash of the hashes of "", "a", "aa", ... up to 200 letters; the value comes from sha256sum of coreutils. */
TEST(all_short_lengths)
{
	uint8_t sums[200 * SHA256_BYTES];
	char a[200], hex[SHA256_HEX_BYTES];

	memset(a, 'a', sizeof(a));
	for (size_t n = 0; n < 200; n++)
		sha256(a, n, sums + n * SHA256_BYTES);
	sha256_hex(sums, sizeof(sums), hex);
	CHECK_STR(hex, "752c007f38611cfbf5fa42cb1cea3d8e086491c844d0cc4defd632cb81423506");
}

/* Both ways agree, at every length around the blocks' edges and at every alignment. */
TEST(instructions_agree)
{
	_free_ uint8_t *p = mem_new(70000, 1);
	uint8_t a[SHA256_BYTES], b[SHA256_BYTES];

	sha256_expect_much();
	for (size_t i = 0; i < 70000; i++)
		p[i] = (uint8_t)(i * 2654435761U >> 13);
	for (size_t n = 0; n < 300; n++) {
		sha256(p + n % 17, n, a);
		sha256_plain(p + n % 17, n, b);
		CHECK(memcmp(a, b, sizeof(a)) == 0);
	}
	for (size_t n = 65536 - 70; n < 65536 + 70; n++) {
		sha256(p + n % 17, n, a);
		sha256_plain(p + n % 17, n, b);
		CHECK(memcmp(a, b, sizeof(a)) == 0);
	}
}

TEST_MAIN()
