/* SPDX-License-Identifier: Apache-2.0 */
/* keep/jks_test.c - what is a certificate is in the store, and nothing else */
#include "base/test.h"
#include "keep/jks.h"

TEST(certificates_are_taken_over)
{
	static const char pem[] = "# a comment\n"
				  "-----BEGIN CERTIFICATE-----\nAQID\r\nBAUG\n-----END "
				  "CERTIFICATE-----\n"
				  "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END "
				  "CERTIFICATE-----\n"
				  "-----BEGIN CERTIFICATE-----\n/w==\n-----END CERTIFICATE-----\n"
				  "-----BEGIN CERTIFICATE-----\nAQID\n";
	static const uint8_t want[] = { 0xfe, 0xed, 0xfe, 0xed, 0,   0,   0, 2,   0,   0,   0,
					2,    0,    0,    0,    2,   0,   4, 'c', 'a', '-', '0',
					0,    0,    0,    0,    0,   0,   0, 0,   0,   5,   'X',
					'.',  '5',  '0',  '9',  0,   0,   0, 6,   1,   2,   3,
					4,    5,    6,    0,    0,   0,   2, 0,   4,   'c', 'a',
					'-',  '1',  0,    0,    0,   0,   0, 0,   0,   0,   0,
					5,    'X',  '.',  '5',  '0', '9', 0, 0,   0,   1,   0xff };
	_cleanup_(buf_done) struct buf b = BUF(4096);

	jks_put(&b, STR(pem));
	CHECK_INT(b.n, sizeof(want) + 20);
	CHECK(b.n >= sizeof(want) && memcmp(b.p, want, sizeof(want)) == 0);
}

TEST(nothing_is_an_empty_store)
{
	_cleanup_(buf_done) struct buf b = BUF(4096);

	jks_put(&b, STR(""));
	CHECK_INT(b.n, 12 + 20);
}

TEST_MAIN()
