/* SPDX-License-Identifier: Apache-2.0 */
/* seal/wire.c - see wire.h; linked by the keeper too, so nothing but libc is used */
#include "seal/wire.h"

int seal_send(int fd, enum seal_type type, uint32_t id, const char *name, const void *data,
	      size_t n)
{
	struct seal_msg m = { .type = type, .id = id, .n = (uint32_t)n };
	int r;

	bug_on(n > sizeof(m.data));
	if (name)
		(void)snprintf(m.name, sizeof(m.name), "%s", name);
	if (n > 0)
		memcpy(m.data, data, n);
	r = packet_send(fd, &m, sizeof(m), NULL, 0);
	explicit_bzero(&m, sizeof(m)); /* it may have been a secret */
	return r;
}

int seal_send_all(int fd, enum seal_type type, const char *name, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		size_t now = n < SEAL_DATA ? n : SEAL_DATA;
		int r = seal_send(fd, type, 0, name, p, now);

		if (r < 0)
			return r;
		p += now;
		n -= now;
	}
	return 0;
}

int seal_recv(int fd, struct seal_msg *m, int fds[PACKET_FDS])
{
	int r = packet_recv(fd, m, sizeof(*m), fds);

	if (r <= 0)
		return r;
	if (m->type > 0 && m->type < SEAL_TYPE_COUNT_ && m->n <= SEAL_DATA && m->spare == 0 &&
	    memchr(m->name, '\0', sizeof(m->name)))
		return 1;
	for (int i = 0; i < PACKET_FDS; i++) {
		fd_close(fds[i]);
		fds[i] = FD_NONE;
	}
	return -EBADMSG;
}
