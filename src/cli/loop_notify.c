/* SPDX-License-Identifier: Apache-2.0 */
/* cli/loop_notify.c - loop --notify: a command of the user's own, told on the end, a question or a limit
 *
 * The command is the user's, from the command line that began the loop; no policy has a key for it. It is run on the host
 * as the user, and what there is to say comes as one JSON object on its standard input, never in a word of a command: parts
 * of it are the word of whoever works inside. 'desktop' means notify-send, which gets sentences of ours alone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/loop.h"

#define PATIENCE_S 30
#define ID_CHARS 8

static time_t now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

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

/* Its status; -1: it took too long and was ended, with all that it had started. */
static int wait_for(pid_t pid)
{
	time_t end = now_s() + PATIENCE_S;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_s() > end) {
			(void)kill(-pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			return -1;
		}
		(void)poll(NULL, 0, 20);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct loop *l, const char *what, const char *reason, const char *sentence)
{
	_cleanup_(buf_done) struct buf facts = BUF(64 * KIB);
	_free_ char *title = mem_fmt("Vitrine: %s", l->name);
	int ends[2];
	pid_t pid;

	put_facts(l, what, reason, sentence, &facts);
	/* A pipe holds 64 KiB, so nobody has to read for us to go on. */
	if (facts.is_over || pipe2(ends, O_CLOEXEC) < 0)
		return 127;
	pid = fork();
	if (pid == 0)
		child(l->def.notify, title, sentence, ends[0]);
	fd_close(ends[0]);
	if (pid > 0)
		(void)io_write_all(ends[1], facts.p, facts.n);
	fd_close(ends[1]);
	return pid < 0 ? 127 : wait_for(pid);
}

void loop_notify(const struct loop *l, const char *what, const char *reason, const char *sentence)
{
	int status = l->def.notify ? run(l, what, reason, sentence) : 0;

	if (status != 0) {
		_free_ char *text =
			status < 0 ? mem_fmt("--notify: the command took longer than %d s and was "
					     "ended",
					     PATIENCE_S)
				   : mem_fmt("--notify: the command failed (exit %d)", status);

		cli_complain(text);
	}
}

/* ---- questions ---- */

/* A name of 8 hex digits is a question (broker/approve.c); what stands beside it has a longer one. */
static bool is_new(struct loop_asked *a, const char *id)
{
	if (strlen(id) != ID_CHARS || strspn(id, "0123456789abcdef") != ID_CHARS)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->ids[i], id))
			return false;
	memcpy(a->ids[a->n % ARRAY_LEN(a->ids)], id, ID_CHARS + 1);
	a->n = a->n < ARRAY_LEN(a->ids) ? a->n + 1 : a->n;
	return true;
}

void loop_look_for_questions(const struct loop *l)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/broker/pending", l->host.state_dir, l->name);
	int fd;
	DIR *d;

	if (l->def.notify == NULL || l->asked == NULL || now_s() == l->asked->looked)
		return;
	l->asked->looked = now_s();
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *en; d && (en = readdir(d));)
		if (is_new(l->asked, en->d_name)) {
			_free_ char *sentence = mem_fmt("A question waits: 'vitrine broker show %s "
							"%s'",
							l->name, en->d_name);

			loop_notify(l, "question", en->d_name, sentence);
		}
	if (d)
		(void)closedir(d);
}
