/* SPDX-License-Identifier: Apache-2.0 */
/* cli/hook.c - the verb `hook`: one tool call from an agent on stdin, one answer on stdout
 *
 * To most agents a hook that crashes, hangs or ends oddly has said yes. So before the first byte is read everything is
 * prepared for saying no: a refusal in the agent's own form lies ready, and the signals of a crash, of a time limit and
 * of being ended write it and exit. Whatever else goes wrong ends in the same place. This verb never returns an error
 * to main(), whose exit status would not be a refusal.
 */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/io.h"
#include "cli/cli.h"
#include "guard/record.h"
#include "guard/report.h"

/* Below any agent's own limit, after which it would run the tool. */
#define LIMIT_SECONDS 3

enum { OPT_AGENT = 1, OPT_UNATTENDED };

const struct opt hook_opts[] = {
	{ "agent", 0, "NAME", "who asks: " AGENT_NAMES, OPT_AGENT },
	{ "unattended", 0, NULL, "nobody is there to be asked: a question is a refusal",
	  OPT_UNATTENDED },
	{ NULL, 0, NULL, NULL, 0 },
};

/* For the handlers: filled in before they are set. */
static char ready_out[512];
static char ready_err[256];
static int ready_status = 2;

static void prepare(enum agent a, const char *why)
{
	ready_status = hook_refusal(a, why, ready_out, sizeof(ready_out));
	(void)snprintf(ready_err, sizeof(ready_err), "Vitrine guard refuses: %s\n", why);
}

static void refuse_now(int sig)
{
	ssize_t out = write(STDOUT_FILENO, ready_out, strlen(ready_out));
	ssize_t err = write(STDERR_FILENO, ready_err, strlen(ready_err));

	/* There is nobody left to tell; the status says it. */
	(void)sig;
	(void)out;
	(void)err;
	_exit(ready_status);
}

static void arm(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS,  SIGFPE, SIGILL, SIGABRT, SIGSYS,
				       SIGALRM, SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXCPU };
	static char stack[32768];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_handler = refuse_now, .sa_flags = SA_ONSTACK | SA_RESETHAND };
	struct itimerval limit = { .it_value = { .tv_sec = LIMIT_SECONDS } };
	sigset_t none;

	(void)sigaltstack(&alt, NULL);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &act, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setitimer(ITIMER_REAL, &limit, NULL);
}

/* A refusal that knows more than the one prepared. */
static int refuse(enum agent a, const char *why)
{
	_cleanup_(buf_done) struct buf safe = BUF(4 * KIB);

	buf_esc(&safe, why, strnlen(why, 400));
	prepare(a, buf_cstr(&safe));
	refuse_now(0);
	return 2;
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int judge(struct arena *mem, const struct hook_call *call, struct judgement *ret,
		 struct err *e)
{
	static struct guard g;
	int r = guard_init(&g, call->cwd, e);

	if (r < 0)
		return r;
	if (call->kind == TOOL_SHELL)
		guard_command(&g, mem, call->command, strlen(call->command), ret);
	else
		guard_tool(&g, mem, call->acts, call->n_acts, call->is_cut, ret);
	return 0;
}

static int answer(const struct hook_call *call, const struct judgement *j)
{
	_cleanup_(buf_done) struct buf out = BUF(256 * KIB), err = BUF(256 * KIB);
	int status = hook_answer(call, j, &out, &err);

	if (out.is_over || err.is_over)
		return refuse(call->agent, "the answer is too long");
	if (err.n)
		(void)io_write_all(STDERR_FILENO, err.p, err.n);
	if (out.n && io_write_all(STDOUT_FILENO, out.p, out.n) < 0 && j->verdict != VERDICT_ALLOW)
		return refuse(call->agent, "the answer could not be written");
	return status;
}

static int serve(enum agent told, bool is_unattended)
{
	static struct arena mem = { .max = 64 * MIB };
	_cleanup_(buf_done) struct buf text = BUF(JSON_FOREIGN_MAX_BYTES);
	uint64_t begin = now_us(), took;
	struct hook_call call;
	struct judgement j;
	struct err e = ERR_INIT;

	if (io_read_fd(STDIN_FILENO, &text, &e) < 0 ||
	    hook_read(&mem, buf_cstr(&text), text.n, told, &call, &e) < 0)
		return refuse(told, e.msg);
	prepare(call.agent, "it failed while it judged this call");
	call.is_unattended |= is_unattended;
	if (judge(&mem, &call, &j, &e) < 0)
		return refuse(call.agent, e.msg);
	/* The record is for people; that it cannot be kept is said, and does not change the verdict. */
	took = now_us() - begin;
	if (guard_report(&call, &j, took, &e) < 0 || guard_record(&call, &j, took, &e) < 0)
		(void)fprintf(stderr, "vitrine: the decision was not recorded: %s\n", e.msg);
	return answer(&call, &j);
}

int cmd_hook(int argc, char **argv, struct err *e)
{
	enum agent told = AGENT_UNKNOWN;
	bool is_unattended = getenv("VITRINE_UNATTENDED") != NULL;
	struct opts o;
	int r;

	prepare(AGENT_UNKNOWN, "it failed before it knew the call");
	arm();
	opts_init(&o, hook_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0) {
		if (r == OPT_UNATTENDED)
			is_unattended = true;
		else
			told = agent_find(o.value);
		if (r == OPT_AGENT && told == AGENT_UNKNOWN)
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%.40s' is no agent whose hooks the guard "
				       "speaks: " AGENT_NAMES,
				       o.value);
	}
	if (r < 0)
		return r;
	if (o.at < argc)
		return err_set(e, ERR_USAGE, EINVAL,
			       "hook takes no arguments; the call comes on stdin");
	prepare(told, "it failed before it knew the call");
	return serve(told, is_unattended);
}
