/* SPDX-License-Identifier: Apache-2.0 */
/* base/listing_fuzz.c - any bytes: what is accepted is a name that stays where it is, and says the same again */
#include "base/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(buf_done) struct buf again = BUF(LISTING_MAX);
	struct listing l = { (const char *)data, n };
	const char *name, *target;
	int r;

	while ((r = listing_next(&l, &name, &target)) == 1) {
		bug_on(name[0] == '\0' || strchr(name, '/') || str_eq(name, ".."));
		bug_on(!listing_add(&again, name, target));
	}
	bug_on(again.n > n || (again.n > 0 && memcmp(again.p, data, again.n) != 0));
	bug_on(r == 0 && again.n != n);
	return 0;
}
