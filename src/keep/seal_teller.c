/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal_teller.c - what seal must know, told by a child of the keeper
 *
 * The teller reads the trust store and the secrets where they are and may take its time; it ends when all is said, or
 * says through its pipe why it could not.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "keep/seal_parts.h"

/* The plan's terms begin with both lists, of strings alone (plan/net.c): what was added goes in front. */
static void put_terms(const struct seal *s, struct buf *out)
{
	static const char *const keys[2] = { "\"allow\":[", "\"deny\":[" };
	const char *at = s->k->in->plan->net.terms;

	for (int k = 0; k < 2; k++) {
		const char *list = strstr(at, keys[k]);

		bug_on(list == NULL);
		list += strlen(keys[k]);
		buf_add(out, at, (size_t)(list - at));
		for (size_t i = 0; i < s->n_added[k]; i++) {
			buf_json(out, s->added[k][i]);
			if (i + 1 < s->n_added[k] || *list != ']')
				buf_putc(out, ',');
		}
		at = list;
	}
	buf_puts(out, at);
}

/* The values that came with the keeper's birth are as good as those that lie on the host, and there already. */
int seal_tell_all(struct seal *s, struct err *e)
{
	_cleanup_(buf_done) struct buf trust = BUF(4 * MIB), terms = BUF(MIB);
	struct keeper_in *in = s->k->in;
	int r = bundle_trust(&in->plan->net, &trust, e);

	if (r >= 0)
		r = seal_send_all(s->fd, SEAL_TRUST, NULL, trust.p, trust.n);
	put_terms(s, &terms);
	if (r >= 0)
		r = seal_send_all(s->fd, SEAL_RULES, NULL, buf_cstr(&terms), terms.n);
	for (size_t i = 0; i < in->n_values && r >= 0; i++) {
		const struct keep_secret *v = &in->values[i];

		r = s->n_starts > 1
			    ? seal_tell_value(s, v->name, e)
			    : seal_send_all(s->fd, SEAL_VALUE, v->name, v->value->p, v->value->n);
	}
	return r < 0 ? r : seal_send(s->fd, SEAL_COMMIT, 0, NULL, NULL, 0);
}

void seal_forget_teller(struct seal *s)
{
	watch_free(s->on_teller);
	s->on_teller = NULL;
	fd_close(s->telling);
	s->telling = FD_NONE;
	if (s->teller > 0) {
		(void)kill(s->teller, SIGKILL);
		(void)waitpid(s->teller, NULL, 0);
	}
	s->teller = 0;
}

/* It says why it failed through the pipe. */
void seal_tell(struct seal *s, seal_tell_fn *what)
{
	struct err e = ERR_INIT;
	int end[2];

	if (pipe2(end, O_CLOEXEC) < 0)
		return;
	s->teller = fork();
	if (s->teller == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)signal(SIGPIPE, SIG_IGN);
		if (s->k->in->env)
			environ = s->k->in->env; /* a command's or a variable's */
		if (what(s, &e) < 0)
			(void)io_write_all(end[1], e.msg, strlen(e.msg));
		_exit(0);
	}
	fd_close(end[1]);
	s->telling = end[0];
	s->on_teller = watch_fd(s->k->loop, s->telling, WATCH_READ, seal_told, s);
}
