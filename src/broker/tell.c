/* SPDX-License-Identifier: Apache-2.0 */
/* broker/tell.c - what the broker decides and does, for the sandbox's journal and for who asked */
#include <stdarg.h>
#include <sys/socket.h>

#include "base/io.h"
#include "broker/broker.h"
#include "event/event.h"

int broker_tell(const struct told *t, struct err *e)
{
	_cleanup_(buf_done) struct buf frame = BUF(EVENT_MAX_BYTES), words = BUF(EVENT_MAX_BYTES);
	struct event_head head = { .type = EV_BROKER_RAN, .session = EVENT_NO_SESSION };
	struct event_field f[] = { event_list(EK_ARGV, t->what, &words),
				   EVENT_STR(VERDICT, t->verdict), EVENT_STR(RULE, t->rule),
				   EVENT_STR(MESSAGE, t->message), EVENT_NUM(STATUS, t->status) };
	char answer = 1;

	event_encode(&head, f, t->has_status ? ARRAY_LEN(f) : ARRAY_LEN(f) - 1, &frame);
	if (send(BROKER_EVENT_FD, frame.p, frame.n, MSG_NOSIGNAL) != (ssize_t)frame.n ||
	    io_read(BROKER_EVENT_FD, &answer, 1) != 1 || answer != 0)
		return err_set(e, ERR_SYSTEM, EIO, "it cannot be put on record, so it is not done");
	return 0;
}

void broker_say(const struct broker *b, const char *fmt, ...)
{
	_cleanup_(buf_done) struct buf line = BUF(8 * KIB);
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_puts(&line, "vitrine: ");
	buf_esc(&line, text, strlen(text));
	buf_putc(&line, '\n');
	(void)frame_send(b->conn, WIRE_ERR, line.p, line.n); /* nobody is left to be told */
}

int broker_end(const struct broker *b, int status)
{
	uint8_t byte = (uint8_t)status;

	return frame_send(b->conn, WIRE_END, &byte, 1);
}
