/* SPDX-License-Identifier: Apache-2.0 */
/* keep/clients_file.c - what `vitrine cp` asks for: put on record, asked of init, and looked at before it is handed on
 *
 * The native init gives out descriptors of plain files and directories. Behind other walls it is vitrine-link that answers,
 * with one end of a socket through which the bytes go.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/sabotage.h"
#include "keep/keeper.h"

void client_file(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct init_msg ask = { .type = INIT_FILE, .a = m->a, .b = m->b };
	struct keep_msg no = { .type = KEEP_FILE_DONE };
	char path[4096];
	ssize_t n;

	if (!request_is_sealed(fds[0]) || (n = pread(fds[0], path, sizeof(path), 0)) <= 0) {
		client_drop(c);
		return;
	}
	path[n < (ssize_t)sizeof(path) ? n : (ssize_t)sizeof(path) - 1] = '\0';
	/* On record before a byte goes anywhere, or not done. */
	if ((m->a == FILE_OPEN || m->a == FILE_CREATE) && m->err.msg[0]) {
		int r = tell_copied(c->k, path, m->err.msg, m->a == FILE_OPEN);

		no.a = -r;
		if (r < 0) {
			client_say(c, &no);
			return;
		}
	}
	c->token = ask.session = ++c->k->last_token;
	c->state = CLIENT_FILE;
	if (init_send(c->k->native.ctl, &ask, fds, 1) < 0)
		keeper_end(c->k, END_ERROR);
}

/* A file or a directory, nothing that does something when it is opened or read; of vitrine-link a socket of no name. */
static bool is_plain(const struct keeper *k, int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (k->native.tool == 0)
		return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

void clients_file_done(struct keeper *k, const struct init_msg *said, int take_fd)
{
	_close_ int fd = take_fd;
	struct keep_msg m = { .type = KEEP_FILE_DONE, .a = said->a, .b = said->b };

	m.v[VALUE_FILE_SIZE] = said->written;
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (!c->is_used || c->state != CLIENT_FILE || c->token != said->session)
			continue;
		c->state = CLIENT_NEW;
		if (fd >= 0 && !is_plain(k, fd) && !sabotaged("cp"))
			m.a = EINVAL;
		(void)keep_send(c->fd, &m, &fd, fd >= 0 && m.a == 0 ? 1 : 0);
	}
}
