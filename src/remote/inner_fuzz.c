/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_fuzz.c - requests to init; what would lock the process or start a command is only looked at */
#include <fcntl.h>
#include <sys/mman.h>

#include "remote/inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct command_session only;

int server_lock(struct server *sv, const struct buf *guest, struct err *e)
{
	int r = guest_decode(buf_cstr(guest), guest->n, &sv->plan, &sv->walls, e);

	sv->is_locked = r == 0;
	return r;
}

struct command_session *session_get(struct server *sv, uint32_t id, bool may_make)
{
	only.server = sv;
	only.id = id;
	return may_make ? &only : NULL;
}

const struct command_session *session_led(const struct server *sv, uint64_t sid)
{
	return NULL;
}

int session_pipe(struct command_session *s, struct part *part, int which)
{
	bug_on(which < 0 || which > 2);
	return -EBUSY;
}

int session_tty(struct command_session *s, struct part *part, uint16_t rows, uint16_t cols)
{
	return -EBUSY;
}

int keys_put(struct part *part, const void *p, size_t n)
{
	return sink_put(part->to, p, n);
}

bool park_keep(struct part *part)
{
	return false;
}

int park_again(struct command_session *s, struct part *part, int which)
{
	bug_on(which < 0 || which > 3);
	return -ENOENT;
}

int park_ask(struct part *part)
{
	return -EBADMSG;
}

void park_parted(void *server)
{
}

int session_again(struct command_session *s)
{
	return 0;
}

int session_start(struct command_session *s, const char *stdio, struct buf *request)
{
	_cleanup_(request_done) struct request q = { 0 };
	struct request_head head;

	if (request->n < sizeof(head))
		return -EBADMSG;
	memcpy(&head, request->p, sizeof(head));
	if (!request_is_head(&head) || request->n != sizeof(head) + head.bytes)
		return -EBADMSG;
	return request_parse(&head, mem_strn(request->p + sizeof(head), head.bytes),
			     s->server->plan.env, &q);
}

void session_part_gone(struct part *part)
{
	if (only.main == part)
		only.main = NULL;
}

void session_signal(struct command_session *s, int signo)
{
	bug_on(signo < 1 || signo > 31);
}

void session_size(struct command_session *s, uint16_t rows, uint16_t cols)
{
}

void sessions_all(int signo)
{
}

/* Files of nobody: there to be read, made, or not. */
int session_file(enum file_op op, mode_t mode, const char *text, size_t n, int *ret_fd)
{
	*ret_fd = FD_NONE;
	bug_on(n == 0 || n > FILE_PATHS);
	if (text[0] == '/' && op == FILE_OPEN && n % 2)
		*ret_fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else if (text[0] == '/' && (op == FILE_OPEN || op == FILE_CREATE))
		*ret_fd = memfd_create("x", MFD_CLOEXEC);
	return text[0] == '/' ? 0 : -EINVAL;
}

ssize_t part_pull(void *part, void *p, size_t n)
{
	return PULL_END;
}

static void no_end(void *arg, const char *why)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *no_env[] = { NULL };
	struct link_ops ops = server_ops;
	struct server *sv = mem_new(1, sizeof(*sv));

	ops.on_down = no_end; /* the real one ends the process */
	*sv = (struct server){
		.loop = loop_new(), .proc = FD_NONE, .net.owner.diag = FD_NONE, .is_locked = n % 2
	};
	sv->plan.env = sv->is_locked ? no_env : NULL;
	only = (struct command_session){ 0 };
	sv->link = link_new(LINK_INNER, sv->loop, FD_NONE, FD_NONE, &ops, sv);
	(void)link_feed(sv->link, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	(void)link_feed(sv->link, data, n);
	link_free(sv->link);
	samples_free(sv->samples);
	fd_close(sv->proc);
	if (sv->plan.env == no_env)
		sv->plan.env = NULL;
	plan_done(&sv->plan);
	loop_free(sv->loop);
	free(sv);
	return 0;
}
