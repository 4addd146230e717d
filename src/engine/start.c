/* SPDX-License-Identifier: Apache-2.0 */
/* engine/start.c - one running sandbox, whatever its engine: the native one directly, the others through wall.c */
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/engine.h"

int engine_start(const struct plan *p, const struct stdio *io, const struct cgroup *cg,
		 const char *again, struct native *ret, struct err *e)
{
	const struct engine *en = engine_find(p->engine);
	int ctl[2], r = 0;

	if (en == NULL)
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no engine '%.40s'", p->engine);
	if (en->render) {
		engine_done(ret); /* namespaces that were made before the engine was known */
		return wall_start(p, io, cg, again, ret, e);
	}
	if (ret->pidfd < 0) {
		r = native_pair(ctl, e);
		if (r == 0)
			r = native_begin(&p->ids, cg, ctl, FD_NONE, ret, e);
	}
	return r < 0 ? r : native_go(ret, p, io, e);
}

int engine_exec(const struct native *n, const struct init_msg *start, int request, const int fd[3])
{
	int fds[PACKET_FDS] = { request, FD_NONE, FD_NONE, FD_NONE };
	size_t n_fds = 1;

	if (n->tool > 0)
		return wall_exec(n, start, request, fd);
	for (int i = 0; i < 3; i++)
		if (!(start->flags & BIT(i)))
			fds[n_fds++] = fd[i];
	return init_send(n->ctl, start, fds, n_fds);
}

/* For the native engine this is init, the first process of the namespace, which takes every other with it. For the
 * others it is vitrine-link: with it the stream to init ends, and then init does. */
void engine_kill(const struct native *n)
{
	(void)syscall(SYS_pidfd_send_signal, n->pidfd, SIGKILL, NULL,
		      0); /* it may be dead already */
}

bool engine_is_empty(const struct native *n, const struct plan *p)
{
	const struct engine *en = engine_find(p->engine);

	return n->tool > 0 && en && en->dies_by_child && wall_is_empty(n);
}

bool engine_reap(struct native *n, const struct plan *p)
{
	int status = 0;
	bool has_left = waitpid(n->pid, &status, 0) > 0 && WIFEXITED(status);

	if (n->tool > 0)
		wall_reap(n, p);
	return has_left;
}

void engine_tidy(const struct plan *p)
{
	const struct engine *en = engine_find(p->engine);

	if (en && en->render)
		wall_tidy(p);
}

void engine_done(struct native *n)
{
	native_done(n);
}

int engine_cover(const struct native *n, const struct mount *m, struct err *e)
{
	if (n->tool > 0)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "the host replaced '%s', and this engine cannot cover it again; the "
			       "native engine can",
			       m->dst);
	return native_cover(n, m, e);
}

void engine_words(const struct native *n, struct buf *out)
{
	char text[4096];
	ssize_t r = n->words < 0 ? 0 : read(n->words, text, sizeof(text));
	ssize_t from;

	for (; r > 0 && (text[r - 1] == '\n' || text[r - 1] == ' '); r--)
		;
	/* The last line: what comes before are warnings. */
	for (from = r; from > 0 && text[from - 1] != '\n'; from--)
		;
	if (r > 0)
		buf_esc(out, text + from, (size_t)(r - from));
}

/* What is shown lies where the engine is. "No such file" (podman) and "path does not exist" (docker) are names of ours. */
const char *engine_advice(const char *engine, const char *words)
{
	const struct engine *en = engine_find(engine);

	if (en && en->is_told && (strstr(words, "no such file") || strstr(words, "does not exist")))
		return "; the engine's side must have this machine's files under the same names";
	return "";
}
