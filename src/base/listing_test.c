/* SPDX-License-Identifier: Apache-2.0 */
/* base/listing_test.c - names there and back, and what is none */
#include "base/listing.h"
#include "base/test.h"

static int next(const char *bytes, size_t n, struct listing *l)
{
	const char *name, *target;

	*l = (struct listing){ bytes, n };
	return listing_next(l, &name, &target);
}

TEST(listing)
{
	_cleanup_(buf_done) struct buf b = BUF(LISTING_MAX);
	const char *name, *target;
	char longest[300];
	struct listing l;

	CHECK(listing_add(&b, "one", ""));
	CHECK(listing_add(&b, "two\n", "../away"));
	CHECK(!listing_add(&b, "", "") && !listing_add(&b, ".", "") && !listing_add(&b, "..", ""));
	CHECK(!listing_add(&b, "a/b", ""));
	l = (struct listing){ b.p, b.n };
	CHECK(listing_next(&l, &name, &target) == 1);
	CHECK_STR(name, "one");
	CHECK_STR(target, "");
	CHECK(listing_next(&l, &name, &target) == 1);
	CHECK_STR(name, "two\n");
	CHECK_STR(target, "../away");
	CHECK(listing_next(&l, &name, &target) == 0);

	CHECK(next("", 0, &l) == 0);
	CHECK(next("a\0\0", 3, &l) == 1);
	CHECK(next("a\0", 2, &l) == -EBADMSG);    /* no target */
	CHECK(next("a\0b", 3, &l) == -EBADMSG);   /* not ended */
	CHECK(next("\0\0", 2, &l) == -EBADMSG);   /* no name */
	CHECK(next("..\0\0", 4, &l) == -EBADMSG); /* leads up */
	CHECK(next("a/b\0\0", 5, &l) == -EBADMSG);
	memset(longest, 'x', sizeof(longest));
	longest[298] = longest[299] = '\0';
	CHECK(next(longest, sizeof(longest), &l) == -EBADMSG);
}

TEST_MAIN()
