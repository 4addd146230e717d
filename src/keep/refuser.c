/* SPDX-License-Identifier: Apache-2.0 */
/* keep/refuser.c - the name server of a sandbox that has no network: no name exists
 *
 * Without an answer a program asks again for seconds, and a package manager that hears "try again later" retries for
 * minutes. Init makes one UDP socket on 127.0.0.1:53 and hands it out. The keeper waits until a datagram lies there and
 * then forks a child that answers: the datagrams are foreign bytes, so the child confines itself before it reads one.
 * Where that fails, nothing answers. The child writes the first name that was asked for into a pipe; the keeper shows it
 * to the person once, while the command still runs.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "core/hint.h"
#include "gate/dns.h"
#include "keep/keeper.h"
#include "sys/confine.h"

struct refuser {
	struct keeper *k;
	int socket, said; /* said: the pipe with the first name */
	pid_t pid;
	struct watch *on_socket, *on_said;
};

/* One datagram; the name of the first question goes to `out`. */
static void answer(int fd, int *out)
{
	_cleanup_(buf_done) struct buf b = BUF(DNS_MAX);
	struct sockaddr_storage from;
	socklen_t from_n = sizeof(from);
	uint8_t p[DNS_MAX];
	struct dns_query q;
	ssize_t n = recvfrom(fd, p, sizeof(p), 0, (struct sockaddr *)&from, &from_n);

	if (n <= 0 || dns_parse_query(p, (size_t)n, &q) < 0)
		return;
	dns_put_answer(&b, &q, DNS_NXDOMAIN, NULL, 0, "this sandbox has no network");
	/* Whoever asked may be gone. */
	(void)sendto(fd, b.p, b.n, MSG_DONTWAIT, (struct sockaddr *)&from, from_n);
	/* A pipe takes a name whole; the keeper reads one. */
	if (*out >= 0 && q.is_host) {
		(void)io_write_all(*out, q.name, strlen(q.name));
		*out = FD_NONE;
	}
}

static _Noreturn void serve(const struct keeper_in *in, int fd, int out)
{
	struct err e = ERR_INIT;
	int flags = fcntl(fd, F_GETFL);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* Of the keeper's memory and descriptors this process needs none. */
	for (size_t i = 0; i < in->n_values; i++)
		explicit_bzero(in->values[i].value->p, in->values[i].value->n);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 || dup2(fd, 0) != 0 ||
	    dup2(out, 1) != 1 || syscall(SYS_close_range, 2, ~0U, 0) < 0 || confine(0, &e) < 0 ||
	    confine_prove(0, &e) < 0)
		_exit(125);
	for (out = 1;;)
		answer(0, &out);
}

static void on_said(void *arg)
{
	struct refuser *f = arg;
	_cleanup_(buf_done) struct buf line = BUF(KIB);
	char name[HOST_TEXT];
	ssize_t n = read(f->said, name, sizeof(name) - 1);

	watch_set(f->on_said, false);
	if (n <= 0)
		return;
	name[n] = '\0';
	hint_no_network(name, &line);
	keeper_note_now(f->k, buf_cstr(&line));
}

static void on_socket(void *arg)
{
	struct refuser *f = arg;
	int end[2];

	watch_set(f->on_socket, false); /* one try: a child that fails would fail again */
	if (pipe2(end, O_CLOEXEC) < 0)
		return;
	f->pid = fork();
	if (f->pid == 0)
		serve(f->k->in, f->socket, end[1]);
	fd_close(end[1]);
	f->said = end[0];
	f->on_said = watch_fd(f->k->loop, f->said, WATCH_READ, on_said, f);
}

void refuser_take(struct keeper *k, int take_socket)
{
	struct refuser *f;

	if (k->refuser || k->in->plan->net.has_gate || take_socket < 0) {
		fd_close(take_socket);
		return;
	}
	f = k->refuser = mem_new(1, sizeof(*f));
	*f = (struct refuser){ .k = k, .socket = take_socket, .said = FD_NONE };
	f->on_socket = watch_fd(k->loop, f->socket, WATCH_READ, on_socket, f);
}

void refuser_finish(struct keeper *k)
{
	struct refuser *f = k->refuser;

	if (f == NULL)
		return;
	watch_free(f->on_socket);
	watch_free(f->on_said);
	if (f->pid > 0) {
		(void)kill(f->pid, SIGKILL);
		(void)waitpid(f->pid, NULL, 0);
	}
	fd_close(f->socket);
	fd_close(f->said);
	free(f);
	k->refuser = NULL;
}
