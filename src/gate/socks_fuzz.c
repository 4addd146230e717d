/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks_fuzz.c - any bytes as a SOCKS5 hello and request */
#include "gate/socks_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct socks_request r;
	ssize_t used = socks_parse_hello(data, n);

	bug_on(used > (ssize_t)n);
	used = socks_parse_request(data, n, &r);
	bug_on(used > (ssize_t)n);
	if (used > 0 && r.code == SOCKS_OK) {
		struct host_id h;
		const char *why;

		bug_on(r.port == 0 || host_parse(r.host.name, strlen(r.host.name), &h, &why) < 0);
		bug_on(h.is_addr != r.host.is_addr);
	}
	return 0;
}
