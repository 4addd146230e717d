/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_night.c - a loop that nobody waits for: loop -d, and logs, attach and stop for looking at it
 *
 * The process that goes on is forked when everything that can be refused has been refused, and takes the lock itself: the
 * lock belongs to a process. Its caller ends when the lock is held, so that `loop ls` shows the loop at once. What it has
 * to complain about goes to `log.txt` beside the records; what the iterations did is read from the records, for a loop
 * that somebody waits for as well.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "cli/cli.h"
#include "loop/loop.h"
#include "sys/lasting.h"

#define LOG "log.txt"
#define LOG_MAX MIB
#define LOOK_MS 200

/* ---- going on alone ---- */

/* Standard input from nowhere, everything that is printed into the log. */
static int take_log(const struct loop *l, struct err *e)
{
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	_close_ int log = openat(l->dir.fd, LOG,
				 O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0)
		return err_sys(e, "loop: '%s'", LOG);
	return 0;
}

static void tell(int fd, const char *text)
{
	(void)io_write_all(fd, text, strlen(text) + 1); /* a caller that has died is not told */
}

/* The child's half: 0, or its complaint went to the caller. */
static int settle(struct loop *l, int to)
{
	struct err e = ERR_INIT, why = ERR_INIT;
	int r;

	(void)setsid();
	(void)signal(SIGHUP, SIG_IGN);
	(void)lasting_enter(&why);
	r = loopdir_lock(&l->dir, &e);
	if (r == 0)
		r = take_log(l, &e);
	tell(to, r < 0 ? "!" : "");
	tell(to, r < 0 ? e.msg : why.msg);
	return r;
}

/* "" or "!" and then a sentence, each with its NUL; nothing: it was killed before. */
static int heard(const struct loop *l, const struct buf *said, struct err *e)
{
	const char *text = buf_cstr(said);

	if (said->n < 2)
		return err_set(e, ERR_SYSTEM, ECHILD,
			       "the background process of loop '%s' ended before it took over; "
			       "run the command without -d to see why",
			       l->name);
	if (text[0] == '!')
		return err_set(e, ERR_SYSTEM, EBUSY, "%.400s", text + 2);
	if (text[1])
		cli_complain(text + 1);
	return 0;
}

int loop_detach(struct loop *l, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF(4 * KIB);
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		fd_close(ends[0]);
		if (settle(l, ends[1]) < 0)
			_exit(125);
		fd_close(ends[1]);
		l->is_behind = l->is_quiet = true;
		l->as_json = false;
		return 1;
	}
	fd_close(ends[1]);
	r = pid < 0 ? err_sys(e, "fork") : io_read_fd(ends[0], &said, e);
	fd_close(ends[0]);
	return r < 0 ? r : heard(l, &said, e);
}

/* ---- looking at it ---- */

/* How far somebody has read. */
struct reader {
	uint64_t next;       /* number of the record */
	struct loop_sum sum; /* of those before */
	off_t at;            /* in the output of the try that has none yet */
};

/* Lines and tabs stay what they are; whatever else a terminal would obey is shown. */
static void put_foreign(const char *p, size_t n, struct buf *out)
{
	for (size_t i = 0, from = 0; i <= n; i++) {
		if (i < n && p[i] != '\n' && p[i] != '\t')
			continue;
		buf_esc(out, p + from, i - from);
		if (i < n)
			buf_putc(out, p[i]);
		from = i + 1;
	}
}

static int flush(struct buf *out, struct err *e)
{
	int r = out->n ? cli_print(out, e) : 0;

	out->n = 0;
	return r;
}

static int put_output(const struct loop *l, struct reader *at, struct buf *out, struct err *e)
{
	char path[64], piece[16 * KIB];
	struct stat st;
	int r = 0;

	(void)snprintf(path, sizeof(path), "runs/%04llu/output.txt", (unsigned long long)at->next);
	_close_ int fd = openat(l->dir.fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	if (st.st_size < at->at)
		at->at = 0; /* another attempt */
	for (ssize_t n; r == 0 && (n = pread(fd, piece, sizeof(piece), at->at)) > 0; at->at += n) {
		put_foreign(piece, (size_t)n, out);
		r = flush(out, e);
	}
	return r;
}

static int put_news(const struct loop *l, struct reader *at, bool has_output, struct buf *out,
		    struct err *e)
{
	for (;;) {
		_cleanup_(loop_record_done) struct loop_record rec = { 0 };
		int found = loopdir_record(&l->dir, at->next, &rec, e);
		int r = has_output ? put_output(l, at, out, e) : 0;

		if (r < 0 || found < 0)
			return r < 0 ? r : found == -ENOENT ? 0 : found;
		loop_put_record(l, &rec, out);
		loop_fold(&at->sum, &rec.result);
		loop_put_repeated(l, &at->sum, out);
		at->next++;
		at->at = 0;
	}
}

static void put_end(const struct loop *l, struct buf *out)
{
	_cleanup_(buf_done) struct buf log = BUF(LOG_MAX);
	struct err none = ERR_INIT;
	enum loop_stop why = loopdir_end(&l->dir);

	if (loopdir_get(l->dir.fd, LOG, &log, &none) == 0)
		put_foreign(log.p ? log.p : "", log.n, out);
	if (why != LOOP_GOES_ON)
		buf_printf(out, "loop %s stopped: %s\n", l->name, loop_stop_sentence(why));
	if (loop_stop_is_interruption(why))
		buf_printf(out, "loop %s can go on: 'vitrine loop --resume %s'\n", l->name,
			   l->name);
}

int loop_logs(struct loop *l, bool is_followed, bool has_output, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB);
	struct reader at = { .next = 1 };
	int r = loopdir_def(&l->dir, &l->def, e);

	while (r == 0) {
		bool runs = loopdir_is_locked(
			&l->dir); /* before the look: the last record is not missed */

		r = put_news(l, &at, has_output, &out, e);
		if (r == 0 && !runs)
			put_end(l, &out);
		if (r == 0)
			r = flush(&out, e);
		if (r < 0 || !runs)
			break;
		if (!is_followed)
			return 0;
		if (loop_signal) {
			(void)fprintf(stderr,
				      "vitrine: the loop goes on; 'vitrine loop stop %s' ends it\n",
				      l->name);
			return 0;
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (r < 0 || !is_followed)
		return r;
	r = loopdir_sum(&l->dir, &l->sum, e);
	return r < 0 ? r : loop_exit_status(l, loopdir_end(&l->dir));
}

/* ---- ending it ---- */

/* The holder is asked again when its handle is open: a number may have gone to somebody else in between. */
static int interrupt(const struct loop *l, struct err *e)
{
	pid_t pid = loopdir_holder(&l->dir);
	_close_ int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : FD_NONE;
	const char *why = pid == 0 ? "it is a process of another pid namespace"
			  : fd < 0 ? strerrordesc_np(errno)
				   : "another process took over";

	if (fd >= 0 && loopdir_holder(&l->dir) == pid) {
		if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0)
			return 0;
		why = strerrordesc_np(errno);
	}
	if (!loopdir_is_locked(&l->dir))
		return 0;
	return err_set(e, ERR_SYSTEM, ESRCH,
		       "loop '%s' runs, but its process could not be signalled (%s); run 'vitrine "
		       "loop stop --now %s' again",
		       l->name, why, l->name);
}

int loop_ask_stop(struct loop *l, bool is_now, struct err *e)
{
	if (!loopdir_is_locked(&l->dir))
		return err_set(e, ERR_CONFLICT, ESRCH, "the loop in '%s' does not run", l->name);
	return is_now ? interrupt(l, e) : loopdir_ask_stop(&l->dir, e);
}
