/* SPDX-License-Identifier: Apache-2.0 */
/* guard/report.c - see report.h */
#include "guard/report.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/num.h"
#include "base/redact.h"

/* The receiver is started by the first report. */
#define WAIT_SECONDS 1
#define INPUT_MAX ((size_t)8 * 1024)

static void put_report(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		       struct buf *out)
{
	_cleanup_(buf_done) struct buf text = BUF(64 * KIB);
	const char *what = c->command ? c->command : c->path ? c->path : "";

	redact(what, INPUT_MAX, &text);
	buf_puts(out, "{\"tool\":");
	buf_json(out, c->tool);
	buf_printf(out, ",\"agent\":\"%s\",\"verdict\":\"%s\",\"duration_ns\":%llu,\"rule\":",
		   agent_name(c->agent), verdict_name(j->verdict),
		   (unsigned long long)took_us * 1000);
	buf_json(out, j->rule);
	buf_puts(out, ",\"message\":");
	buf_json(out, j->say);
	buf_puts(out, ",\"input\":");
	buf_json(out, buf_cstr(&text));
	buf_putc(out, '}');
}

static int post(uint16_t port, const struct buf *body)
{
	_cleanup_(buf_done) struct buf b = BUF(256 * KIB);
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval wait = { .tv_sec = WAIT_SECONDS };
	char answer[16] = "";

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	buf_printf(&b,
		   "POST /vitrine/v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
		   "application/json\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		   body->n);
	buf_add(&b, buf_cstr(body), body->n);
	if (send(fd, b.p, b.n, MSG_NOSIGNAL) != (ssize_t)b.n)
		return -EIO;
	if (recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) < 12)
		return -EIO;
	return memcmp(answer, "HTTP/1.1 200", 12) == 0 ? 0 : -EBADMSG;
}

int guard_report(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		 struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF(128 * KIB);
	const char *text = getenv("VITRINE_EVENTS");
	struct err ignored = ERR_INIT;
	uint64_t port;
	int r;

	if (text == NULL)
		return 0;
	if (num_parse(text, 1, 65535, &port, &ignored) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "VITRINE_EVENTS is not a port");
	put_report(c, j, took_us, &body);
	r = body.is_over ? -E2BIG : post((uint16_t)port, &body);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "the keeper does not take it: %s",
			       strerrordesc_np(-r))
		     : 0;
}
