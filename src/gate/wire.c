/* SPDX-License-Identifier: Apache-2.0 */
/* gate/wire.c - see wire.h */
#include <stdarg.h>

#include "gate/wire.h"

int gate_send(int fd, const struct gate_msg *m, const int *fds, size_t n_fds)
{
	return packet_send(fd, m, sizeof(*m), fds, n_fds);
}

int gate_recv(int fd, struct gate_msg *m, int fds[PACKET_FDS])
{
	int r = packet_recv(fd, m, sizeof(*m), fds);

	if (r != 1)
		return r;
	m->host[sizeof(m->host) - 1] = '\0';
	m->rule[sizeof(m->rule) - 1] = '\0';
	m->method[sizeof(m->method) - 1] = '\0';
	if (m->type != GATE_GONE)
		m->path[sizeof(m->path) - 1] = '\0';
	m->text[sizeof(m->text) - 1] = '\0';
	if (m->type > 0 && (m->type != GATE_GONE || m->id <= GATE_IDS) &&
	    m->type < GATE_TYPE_COUNT_ && m->via < VIA_COUNT_ && m->verdict < GATE_VERDICT_COUNT_ &&
	    m->event < GATE_EVENT_COUNT_)
		return 1;
	for (int i = 0; i < PACKET_FDS; i++) {
		fd_close(fds[i]);
		fds[i] = FD_NONE;
	}
	return -EBADMSG;
}

void gate_say(char *to, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(to, size, fmt, ap);
	va_end(ap);
}

const char *gate_via_name(unsigned via)
{
	static const char *const names[VIA_COUNT_] = { "",       "http", "connect",   "socks",
						       "direct", "dns",  "host-port", "published" };

	return via < VIA_COUNT_ ? names[via] : "";
}

const char *gate_verdict_name(unsigned verdict)
{
	static const char *const names[GATE_VERDICT_COUNT_] = { "refused", "allowed", "failed" };

	return verdict < GATE_VERDICT_COUNT_ ? names[verdict] : "";
}

const char *gate_event_name(unsigned event)
{
	static const char *const names[GATE_EVENT_COUNT_] = { "connect", "lookup", "request",
							      "close", "alert" };

	return event < GATE_EVENT_COUNT_ ? names[event] : "";
}
