/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/qmp.c - a machine's monitor: commands and answers, one JSON text a line
 *
 * The program at the other end may have been taken over from inside: what it says is bounded in size and time, and
 * nothing of it is believed but whether a command has worked.
 */
#include <poll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/loop.h"
#include "engine/vm/vm.h"

#define NAP_MS 2

void qmp_done(struct qmp *q)
{
	buf_done(&q->in);
}

static int send_text(struct qmp *q, const char *text, int fd)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd < 0)
		return io_write_all(q->fd, text, strlen(text));
	m.msg_control = &control;
	m.msg_controllen = sizeof(control);
	CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	return sendmsg(q->fd, &m, MSG_NOSIGNAL) == (ssize_t)part.iov_len ? 0 : -EIO;
}

/* The next line, without its end. */
static int take_line(struct qmp *q, struct buf *line, uint64_t deadline)
{
	for (;;) {
		char *end = q->in.n ? memchr(q->in.p, '\n', q->in.n) : NULL;
		struct pollfd p = { .fd = q->fd, .events = POLLIN };
		uint64_t now = clock_now();
		char chunk[4096];
		ssize_t r;

		if (end) {
			size_t n = (size_t)(end - q->in.p);

			line->n = 0;
			buf_add(line, q->in.p, n);
			memmove(q->in.p, end + 1, q->in.n - n - 1);
			q->in.n -= n + 1;
			return 0;
		}
		if (now >= deadline)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) <= 0)
			continue;
		r = io_read(q->fd, chunk, sizeof(chunk));
		if (r <= 0)
			return r < 0 ? (int)r : -EPIPE;
		buf_add(&q->in, chunk, (size_t)r);
		if (q->in.is_over)
			return -EMSGSIZE;
	}
}

static const char *reason_of(const struct json_doc *d)
{
	const struct json *error = json_get(d->root, "error");
	const struct json *text = error ? json_get(error, "desc") : NULL;

	return text && text->type == JSON_STRING ? text->text : "no reason";
}

int qmp_command(struct qmp *q, const char *command, int fd, uint64_t deadline, struct json_doc *ret,
		struct err *e)
{
	_cleanup_(buf_done) struct buf line = BUF(MIB);
	int r = send_text(q, command, fd);

	while (r == 0) {
		_cleanup_(json_done) struct json_doc d = { 0 };

		r = take_line(q, &line, deadline);
		if (r == 0)
			r = json_parse_foreign(buf_cstr(&line), line.n, &d, e);
		if (r < 0 || d.root->type != JSON_OBJECT)
			break;
		if (json_get(d.root, "error"))
			return err_set(e, ERR_SYSTEM, EIO, "the machine refuses: %.300s",
				       reason_of(&d));
		if (json_get(d.root, "return") == NULL)
			continue; /* a greeting, an event */
		if (ret) {
			*ret = d;
			d = (struct json_doc){ 0 };
		}
		return 0;
	}
	return err_set(e, ERR_SYSTEM, r < 0 ? -r : EBADMSG, "the machine's monitor: %s",
		       strerrordesc_np(r < 0 ? -r : EBADMSG));
}

int qmp_wait_running(struct qmp *q, uint64_t deadline, struct err *e)
{
	for (;;) {
		_cleanup_(json_done) struct json_doc d = { 0 };
		int r = qmp_command(q, "{\"execute\":\"query-status\"}\n", FD_NONE, deadline, &d,
				    e);
		const struct json *status;

		if (r < 0)
			return r;
		status = json_get(json_get(d.root, "return"), "status");
		if (status && status->type == JSON_STRING && str_eq(status->text, "running"))
			return 0;
		if (status == NULL || status->type != JSON_STRING ||
		    !str_eq(status->text, "inmigrate"))
			return err_set(e, ERR_SYSTEM, EIO, "the machine does not go on");
		(void)poll(NULL, 0, NAP_MS);
	}
}

static int has_saved(struct qmp *q, uint64_t deadline, struct err *e)
{
	_cleanup_(json_done) struct json_doc d = { 0 };
	int r = qmp_command(q, "{\"execute\":\"query-migrate\"}\n", FD_NONE, deadline, &d, e);
	const struct json *status;

	if (r < 0)
		return r;
	status = json_get(json_get(d.root, "return"), "status");
	if (status == NULL || status->type != JSON_STRING)
		return 0;
	if (str_eq(status->text, "failed") || str_eq(status->text, "cancelled"))
		return err_set(e, ERR_SYSTEM, EIO, "the machine's state could not be written");
	return str_eq(status->text, "completed");
}

int qmp_save(struct qmp *q, int fd, bool ram_is_kept, uint64_t deadline, struct err *e)
{
	const struct {
		const char *command;
		int fd;
	} steps[] = {
		{ "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[{"
		  "\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n",
		  FD_NONE },
		{ "{\"execute\":\"migrate-set-parameters\",\"arguments\":{\"max-bandwidth\":"
		  "9223372036854775807}}\n",
		  FD_NONE },
		{ "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"state\"}}\n", fd },
		{ "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"}}\n", FD_NONE },
	};
	int r = 0;

	for (size_t i = ram_is_kept ? 0 : 1; r == 0 && i < ARRAY_LEN(steps); i++)
		r = qmp_command(q, steps[i].command, steps[i].fd, deadline, NULL, e);
	while (r == 0) {
		r = has_saved(q, deadline, e);
		if (r == 0)
			(void)poll(NULL, 0, NAP_MS);
	}
	return r < 0 ? r : 0;
}
