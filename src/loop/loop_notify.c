/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_notify.c - loop --notify: a command of the user's own, told on the end, a question or a limit
 *
 * The command is the user's, from the command line that began the loop; no policy has a key for it. It is run on the host
 * as the user, and what there is to say comes as one JSON object on its standard input, never in a word of a command: parts
 * of it are the word of whoever works inside. 'desktop' means notify-send, which gets sentences of ours alone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "cli/cli.h"
#include "cli/pending.h"
#include "loop/loop.h"

#define PATIENCE_S 30
#define LOOK_NS NS_PER_SEC

static void put_facts(const struct loop *l, const char *what, const char *reason,
		      const char *sentence, struct buf *out)
{
	buf_printf(out, "{\"what\":\"%s\",\"reason\":", what);
	buf_json(out, reason);
	buf_puts(out, ",\"sentence\":");
	buf_json(out, sentence);
	buf_puts(out, ",\"name\":");
	buf_json(out, l->name);
	buf_puts(out, ",\"agent\":");
	buf_json(out, l->def.agent);
	buf_puts(out, ",\"workspace\":");
	buf_json(out, l->def.workspace);
	buf_printf(out,
		   ",\"iterations\":%llu,\"max\":%llu,\"failed\":%llu,\"time_ns\":%llu,\"cost_"
		   "usd\":%llu."
		   "%06llu,\"tokens_in\":%llu,\"tokens_out\":%llu}\n",
		   (unsigned long long)l->sum.iterations, (unsigned long long)l->def.conf.max,
		   (unsigned long long)l->sum.failed, (unsigned long long)l->sum.time,
		   (unsigned long long)(l->sum.cost / 1000000),
		   (unsigned long long)(l->sum.cost % 1000000),
		   (unsigned long long)l->sum.tokens_in, (unsigned long long)l->sum.tokens_out);
}

static _Noreturn void child(const char *command, const char *title, const char *sentence, int in)
{
	bool is_desktop = str_eq(command, "desktop");
	const char *desktop[] = {
		"notify-send", "--app-name=vitrine", "--", title, sentence, NULL
	};
	const char *shell[] = { "/bin/sh", "-c", command, NULL };
	const char **argv = is_desktop ? desktop : shell;

	(void)setpgid(0, 0);
	(void)signal(SIGPIPE, SIG_DFL);
	if (dup2(in, 0) < 0 || dup2(2, 1) < 0)
		_exit(127);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* The process has ended, or its time is over: then it is killed, with all that it had started. A failure is a complaint. */
static bool has_ended(pid_t pid, uint64_t until)
{
	_free_ char *text = NULL;
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_now() <= until)
			return false;
		(void)kill(-pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		text = mem_fmt("--notify: the command took longer than %d s and was ended",
			       PATIENCE_S);
	} else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		text = mem_fmt("--notify: the command failed (exit %d)",
			       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	if (text)
		cli_complain(text);
	return true;
}

/* The process, or < 0. */
static pid_t start(const struct loop *l, const char *what, const char *reason, const char *sentence)
{
	_cleanup_(buf_done) struct buf facts = BUF(64 * KIB);
	_free_ char *title = mem_fmt("Vitrine: %s", l->name);
	int ends[2];
	pid_t pid;

	put_facts(l, what, reason, sentence, &facts);
	/* A pipe holds 64 KiB, so nobody has to read for us to go on. */
	if (facts.is_over || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		child(l->def.notify, title, sentence, ends[0]);
	fd_close(ends[0]);
	if (pid > 0)
		(void)io_write_all(ends[1], facts.p, facts.n);
	fd_close(ends[1]);
	if (pid < 0)
		cli_complain("--notify: the command could not be started");
	return pid;
}

static void wait_for(pid_t pid, uint64_t until)
{
	while (!has_ended(pid, until))
		(void)poll(NULL, 0, 20);
}

void loop_notify(const struct loop *l, const char *what, const char *reason, const char *sentence)
{
	pid_t pid = l->def.notify ? start(l, what, reason, sentence) : -1;

	if (pid > 0)
		wait_for(pid, clock_now() + PATIENCE_S * NS_PER_SEC);
	for (size_t i = 0; l->asked && i < LOOP_NOTIFIERS_MAX; i++)
		if (l->asked->running[i].pid > 0) {
			wait_for(l->asked->running[i].pid, l->asked->running[i].until);
			l->asked->running[i].pid = 0;
		}
}

/* ---- questions ---- */

static bool is_new(const struct loop_asked *a, const char *id)
{
	if (!pending_is_id(id))
		return false;
	for (size_t i = 0; i < LOOP_TOLD_MAX; i++)
		if (str_eq(a->ids[i], id))
			return false;
	return true;
}

static void reap(struct loop_asked *a)
{
	for (size_t i = 0; i < LOOP_NOTIFIERS_MAX; i++)
		if (a->running[i].pid > 0 && has_ended(a->running[i].pid, a->running[i].until))
			a->running[i].pid = 0;
}

/* Where as many commands run as may, the question waits for the next look. */
static void report(const struct loop *l, const char *id)
{
	_free_ char *sentence =
		mem_fmt("A question waits: 'vitrine broker show %s %s'", l->name, id);
	struct loop_asked *a = l->asked;
	size_t i = 0;

	while (i < LOOP_NOTIFIERS_MAX && a->running[i].pid > 0)
		i++;
	if (i == LOOP_NOTIFIERS_MAX)
		return;
	memcpy(a->ids[a->n++ % LOOP_TOLD_MAX], id, PENDING_ID_CHARS + 1);
	a->running[i].pid = start(l, "question", id, sentence);
	a->running[i].until = clock_now() + PATIENCE_S * NS_PER_SEC;
}

void loop_look_for_questions(const struct loop *l)
{
	int fd;
	DIR *d;

	if (l->def.notify == NULL || l->asked == NULL || clock_now() < l->asked->looked + LOOK_NS)
		return;
	l->asked->looked = clock_now();
	reap(l->asked);
	fd = pending_open(l->host.state_dir, l->name);
	d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *en; d && (en = readdir(d));)
		if (is_new(l->asked, en->d_name))
			report(l, en->d_name);
	if (d)
		(void)closedir(d);
}
