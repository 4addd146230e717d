/* SPDX-License-Identifier: Apache-2.0 */
/* keep/capture.c - see capture.h
 *
 * Only a login that the plan found missing is kept, and only the first time without a question: once this run has made
 * it, what its refreshing gives follows. A login that another sandbox has made meanwhile stays: nobody inside can put
 * an account of its own in the place of one that is there. Of every other login the tokens stay in seal's memory, and
 * work until the sandbox ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "keep/capture.h"
#include "keep/keeper.h"
#include "secret/secret.h"

#define ANSWER_MAX ((size_t)64 * 1024)

struct capture {
	struct keeper *k;
	struct buf text; /* of the answer, so far */
	const struct secret_login *login;
	uint64_t made; /* bits of those that this run has made, by their place in secret_logins */
	pid_t writer;
	int said; /* what the writer says: one letter, or why it failed */
	struct watch *on_said;
};

struct capture *capture_new(struct keeper *k)
{
	struct capture *c = mem_new(1, sizeof(*c));

	*c = (struct capture){ .k = k, .said = FD_NONE };
	return c;
}

static void forget_writer(struct capture *c)
{
	watch_free(c->on_said);
	c->on_said = NULL;
	fd_close(c->said);
	c->said = FD_NONE;
	if (c->writer > 0)
		(void)waitpid(c->writer, NULL,
			      0); /* it has closed its end: it is about to be over */
	c->writer = 0;
}

void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	forget_writer(c);
	secret_wipe(&c->text);
	free(c);
}

static bool is_open(const struct capture *c, const char *name)
{
	for (char *const *v = c->k->in->plan->net.open_logins; v && *v; v++)
		if (str_eq(*v, name))
			return true;
	return false;
}

static uint64_t bit_of(const struct secret_login *l)
{
	return UINT64_C(1) << (l - secret_logins);
}

static void on_said(void *arg)
{
	struct capture *c = arg;
	char why[400];
	ssize_t n = io_read(c->said, why, sizeof(why) - 1);
	_free_ char *line = NULL;

	forget_writer(c);
	why[n > 0 ? n : 0] = '\0';
	if (str_eq(why, "+") && !(c->made & bit_of(c->login)))
		line = mem_fmt("network: logged in; '%s' is kept for the next sandboxes "
			       "('vitrine secret rm %s' forgets it)",
			       c->login->name, c->login->name);
	else if (n > 1)
		line = mem_fmt("network: '%s' works in this run and was not kept: %s",
			       c->login->name, why);
	if (str_eq(why, "+"))
		c->made |= bit_of(c->login);
	if (line)
		keeper_note(c->k, line);
}

static _Noreturn void write_it(const struct capture *c, int to)
{
	struct err e = ERR_INIT;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); /* it finishes what it began */
	r = secret_login_keep(c->login, c->k->in->plan->state_dir,
			      (struct str){ .p = c->text.p, .n = c->text.n },
			      (c->made & bit_of(c->login)) != 0, &e);
	if (r > 0)
		(void)io_write_all(to, "+", 1);
	else if (r == -EEXIST)
		(void)io_write_all(to, "another one is there already", 28);
	else if (r < 0)
		(void)io_write_all(to, e.msg, strlen(e.msg));
	_exit(0);
}

static void keep(struct capture *c)
{
	int end[2];

	if (c->writer > 0 || pipe2(end, O_CLOEXEC) < 0)
		return; /* two at once: the next refreshing brings it */
	c->writer = fork();
	if (c->writer == 0)
		write_it(c, end[1]);
	fd_close(end[1]);
	c->said = end[0];
	c->on_said = watch_fd(c->k->loop, c->said, WATCH_READ, on_said, c);
}

void capture_take(struct capture *c, const struct seal_msg *m)
{
	const struct secret_login *l = secret_login_find(m->name);

	if (l == NULL || !is_open(c, m->name) || c->writer > 0)
		return;
	if (c->text.p == NULL || c->login != l) {
		secret_wipe(&c->text);
		c->text = secret_buf_of(ANSWER_MAX);
		c->login = l;
	}
	buf_add(&c->text, m->data, m->n);
	if (m->id != 1)
		return;
	if (!c->text.is_over)
		keep(c);
	secret_wipe(&c->text);
}
