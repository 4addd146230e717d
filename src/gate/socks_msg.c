/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks_msg.c - see socks_msg.h */
#include "gate/socks_msg.h"

#define VERSION 5
#define CONNECT 1
enum { TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };

ssize_t socks_parse_hello(const uint8_t *p, size_t n)
{
	if (n > 0 && p[0] != VERSION)
		return -EBADMSG;
	if (n < 2 || n < 2U + p[1])
		return 0;
	return memchr(p + 2, 0, p[1]) ? (ssize_t)(2 + p[1]) : -EPROTO;
}

/* Of the whole request, known from its first five bytes; 0: there is no such type of address. */
static size_t length_of(const uint8_t *p)
{
	return p[3] == TYPE_V4 ? 10 : p[3] == TYPE_V6 ? 22 : p[3] == TYPE_NAME ? 7U + p[4] : 0;
}

static bool read_host(const uint8_t *p, struct host_id *h)
{
	const char *why;

	if (p[3] == TYPE_NAME)
		return host_parse((const char *)p + 5, p[4], h, &why) == 0;
	h->is_addr = true;
	if (p[3] == TYPE_V4)
		h->addr = addr_from_v4(p + 4);
	else
		memcpy(h->addr.b, p + 4, 16);
	addr_text(&h->addr, h->name);
	return true;
}

ssize_t socks_parse_request(const uint8_t *p, size_t n, struct socks_request *ret)
{
	size_t all;

	*ret = (struct socks_request){ .code = SOCKS_FAILED };
	if (n > 0 && p[0] != VERSION)
		return -EBADMSG;
	if (n < 5)
		return 0;
	all = length_of(p);
	if (all == 0 || p[2] != 0) {
		ret->code = all == 0 ? SOCKS_ADDRESS : SOCKS_FAILED;
		return -EBADMSG;
	}
	if (n < all)
		return 0;
	ret->port = (uint16_t)(p[all - 2] << 8 | p[all - 1]);
	if (p[1] != CONNECT)
		ret->code = SOCKS_COMMAND;
	else if (read_host(p, &ret->host) && ret->port != 0)
		ret->code = SOCKS_OK;
	return (ssize_t)all;
}
