/* SPDX-License-Identifier: Apache-2.0 */
/* cli/measure.c - what a start costs with each engine, here and now: `vitrine engines --measure`
 *
 * From our own exec of `vitrine run --engine NAME -- true` to its end, in an empty workspace; the first start makes
 * what is kept (skeleton, image) and is not counted. A figure of a busy machine is a busy machine's figure.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "cli/cli.h"
#include "cli/measure.h"

#define TIMES 7

void measure_last_line(int fd, struct buf *out)
{
	_cleanup_(buf_done) struct buf text = BUF(64 * KIB);
	struct err ignored = ERR_INIT;
	const char *p;
	char *end;

	(void)io_read_fd(fd, &text, &ignored); /* nothing said is nothing to show */
	buf_putc(&text, '\0');
	if (text.is_over)
		return;
	while ((end = strrchr(text.p, '\n')) != NULL && end[1] == '\0')
		*end = '\0';
	p = end ? end + 1 : text.p;
	p += str_starts(p, "vitrine: ") ? strlen("vitrine: ") : 0;
	buf_esc(out, p, strlen(p));
}

/* 0: it did not start. */
static uint64_t start_once(const char *engine, const char *workspace, struct buf *why)
{
	char *const argv[] = { (char *)(uintptr_t) "vitrine",
			       (char *)(uintptr_t) "run",
			       (char *)(uintptr_t) "--engine",
			       (char *)(uintptr_t)engine,
			       (char *)(uintptr_t) "--workspace",
			       (char *)(uintptr_t)workspace,
			       (char *)(uintptr_t) "--",
			       (char *)(uintptr_t) "true",
			       NULL };
	uint64_t before = clock_now(), took;
	int said[2], status = 0;
	pid_t pid;

	if (pipe2(said, O_CLOEXEC) < 0)
		return 0;
	pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int fd = 0; fd < 3; fd++)
			(void)dup2(null,
				   fd); /* NOLINT(android-cloexec-dup): for the program itself */
		(void)dup2(said[1], 2); /* NOLINT(android-cloexec-dup): for its complaints */
		(void)execv("/proc/self/exe", argv);
		_exit(127);
	}
	fd_close(said[1]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		status = -1;
	took = clock_now() - before;
	if (status != 0)
		measure_last_line(said[0], why);
	fd_close(said[0]);
	return status == 0 ? took : 0;
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

bool measure_start(const char *engine, struct measured *ret, struct buf *why)
{
	char dir[] = "/tmp/vitrine-measure-XXXXXX";
	uint64_t v[TIMES] = { 0 };
	bool works;

	if (mkdtemp(dir) == NULL)
		return false;
	works = start_once(engine, dir, why) > 0;
	for (int i = 0; works && i < TIMES; i++) {
		v[i] = start_once(engine, dir, why);
		works = v[i] > 0;
	}
	(void)rmdir(dir); /* what a command left there is not ours to remove */
	if (!works)
		return false;
	qsort(v, TIMES, sizeof(v[0]), cmp_u64);
	*ret = (struct measured){ .best_ns = v[0], .median_ns = v[TIMES / 2] };
	return true;
}
