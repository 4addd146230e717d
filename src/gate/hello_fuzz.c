/* SPDX-License-Identifier: Apache-2.0 */
/* gate/hello_fuzz.c - any bytes as the beginning of a connection
 *
 * A verdict does not change when more bytes come: what was one name stays that name.
 */
#include "gate/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char name[HOST_TEXT], again[HOST_TEXT];
	enum hello_result whole = hello_parse(data, n, name);
	size_t half = n / 2;
	enum hello_result part = hello_parse(data, half, again);
	struct host_id h;
	const char *why;

	bug_on(part != HELLO_MORE && part != whole);
	if (whole == HELLO_NAME) {
		bug_on(host_parse(name, strlen(name), &h, &why) < 0 || !str_eq(h.name, name));
		bug_on(part == HELLO_NAME && !str_eq(name, again));
	}
	return 0;
}
