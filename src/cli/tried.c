/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tried.c - see tried.h
 *
 * Remembered in STATE/engines.tried, a line for each engine: its name, the identity of our program and of the engine's, the
 * time. A line that cannot be read, a time before the last boot or of the future, and other programs count as
 * nothing: the engine is started again.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/measure.h"
#include "cli/tried.h"

#define REMEMBERED 3600 /* seconds */
#define DEADLINE_NS (60 * NS_PER_SEC)

struct
try {
	pid_t pid; /* 0: none runs */
	int said;
	char dir[32];
};

/* ---- what is remembered ---- */

static void put_identity(const char *path, struct buf *out)
{
	struct stat st;

	if (path == NULL || stat(path, &st) < 0)
		buf_puts(out, " -");
	else
		buf_printf(out, " %llx:%llx:%llx", (unsigned long long)st.st_ino,
			   (unsigned long long)st.st_mtim.tv_sec, (unsigned long long)st.st_size);
}

/* How the line of an engine begins: the time follows. */
static char *head_of(const struct engine *en)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	_free_ char *tool = engine_tool(en);

	buf_printf(&b, "%s %u", en->name, (unsigned)geteuid());
	put_identity("/proc/self/exe", &b);
	put_identity(tool, &b);
	buf_putc(&b, ' ');
	return buf_take(&b);
}

/* 0: it is not remembered. */
static uint64_t when_tried(const char *text, const struct engine *en)
{
	_free_ char *head = head_of(en);
	struct timespec up = { 0 };
	uint64_t now = (uint64_t)time(NULL), then = 0, n = strlen(head);
	struct err ignored = ERR_INIT;

	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		_free_ char *line = mem_strn(p, strcspn(p, "\n"));

		if (str_starts(line, head) && num_parse(line + n, 1, now, &then, &ignored) == 0 &&
		    now - then < REMEMBERED && now - then < (uint64_t)up.tv_sec)
			return then;
	}
	return 0;
}

/* What is not written is tried again. */
static void write_anew(const char *path, const struct buf *b)
{
	_free_ char *new = mem_fmt("%s.new", path);
	_close_ int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || io_write_all(fd, b->p, b->n) < 0 || rename(new, path) < 0)
		(void)unlink(new);
}

static void remember(const char *path, const struct tried v[TRIED_MAX],
		     const uint64_t when[TRIED_MAX])
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	bool is_new = false;

	for (size_t i = 0; engines[i].name; i++) {
		_free_ char *head = head_of(&engines[i]);

		if (v[i].state != TRIED_WORKS)
			continue;
		buf_printf(&b, "%s%llu\n", head,
			   (unsigned long long)(when[i] ? when[i] : (uint64_t)time(NULL)));
		is_new |= when[i] == 0;
	}
	if (is_new)
		write_anew(path, &b);
}

/* ---- trying ---- */

static void start(const struct engine *en, struct try *t)
{
	char *const argv[] = { (char *)(uintptr_t) "vitrine",
			       (char *)(uintptr_t) "run",
			       (char *)(uintptr_t) "--engine",
			       (char *)(uintptr_t)en->name,
			       (char *)(uintptr_t) "--workspace",
			       t->dir,
			       (char *)(uintptr_t) "--",
			       (char *)(uintptr_t) "true",
			       NULL };
	int said[2];

	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/vitrine-try-XXXXXX");
	if (mkdtemp(t->dir) == NULL || pipe2(said, O_CLOEXEC) < 0)
		return;
	t->pid = fork();
	if (t->pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int fd = 0; fd < 2; fd++)
			(void)dup2(null,
				   fd); /* NOLINT(android-cloexec-dup): for the program itself */
		(void)dup2(said[1], 2); /* NOLINT(android-cloexec-dup): for its complaints */
		(void)execv("/proc/self/exe", argv);
		_exit(127);
	}
	fd_close(said[1]);
	t->said = said[0];
}

static void finish(struct try *t, uint64_t deadline, struct tried *ret)
{
	_cleanup_(buf_done) struct buf why = BUF(4 * KIB);
	int status = 0;
	pid_t got;

	while ((got = waitpid(t->pid, &status, WNOHANG)) == 0 && clock_now() < deadline)
		(void)usleep(2000);
	if (got == 0) {
		(void)kill(t->pid, SIGKILL);
		(void)waitpid(t->pid, &status, 0);
		buf_puts(&why, "it did not start within a minute");
	} else if (status != 0) {
		measure_last_line(t->said, &why);
	}
	ret->state = got > 0 && status == 0 ? TRIED_WORKS : TRIED_FAILS;
	ret->why = ret->state == TRIED_FAILS && why.n ? buf_take(&why) : NULL;
	fd_close(t->said);
}

void tried_all(const char *state_dir, const bool wanted[TRIED_MAX], struct tried v[TRIED_MAX])
{
	_free_ char *path = mem_fmt("%s/engines.tried", state_dir);
	_cleanup_(buf_done) struct buf known = BUF(64 * KIB);
	struct try tries[TRIED_MAX] = { 0 };
	uint64_t when[TRIED_MAX] = { 0 };
	struct err ignored = ERR_INIT;
	uint64_t deadline = clock_now() + DEADLINE_NS;

	(void)io_read_file(path, &known, &ignored); /* there need be none */
	for (size_t i = 0; engines[i].name; i++) {
		bug_on(i >= TRIED_MAX);
		when[i] = wanted[i] ? when_tried(buf_cstr(&known), &engines[i]) : 0;
		v[i] = (struct tried){ .state = when[i] ? TRIED_WORKS : TRIED_NOT };
		if (wanted[i] && when[i] == 0)
			start(&engines[i], &tries[i]);
	}
	for (size_t i = 0; engines[i].name; i++) {
		if (tries[i].pid > 0)
			finish(&tries[i], deadline, &v[i]);
		if (tries[i].dir[0])
			(void)rmdir(tries[i].dir); /* what was left there is not ours to remove */
	}
	remember(path, v, when);
}

void tried_done(struct tried v[TRIED_MAX])
{
	for (size_t i = 0; i < TRIED_MAX; i++)
		free(v[i].why);
}
