/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loopdir_test.c - a loop on disk: what is written is read, tries, sums, hints, locks, damage */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/loopdir.h"
#include "base/path.h"
#include "base/test.h"

static char dir[64];

static void setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/loopdir-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	_free_ char *box = mem_fmt("%s/sandboxes/box", dir);
	CHECK_INT(path_make(box, 0700), 0);
}

static void teardown(void)
{
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

static struct loop_def a_def(void)
{
	return (struct loop_def){
		.agent = mem_str("claude"),
		.workspace = mem_str("/w"),
		.mode = mem_str("review"),
		.prompt = mem_str("do \"it\"\nnow"),
		.until = mem_str("make test"),
		.created = 5,
		.conf = { .max = 3, .cost = 1500000, .backoff = 7, .has_check = true }
	};
}

TEST(definition)
{
	_cleanup_(loop_def_done) struct loop_def d = a_def(), back = { 0 };
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE, again = LOOPDIR_NONE;
	struct err e = ERR_INIT;

	setup();
	CHECK_INT(loopdir_open(dir, "box", &l, &e), -ENOENT);
	CHECK_STR(e.msg, "the sandbox 'box' has no loop");
	e = ERR_INIT;
	CHECK_INT(loopdir_open(dir, "nobox", &l, &e), -ENOENT);
	CHECK_STR(e.msg, "there is no sandbox 'nobox'");
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK_INT(l.number, 1);
	CHECK_INT(loopdir_def(&l, &back, &e), 0);
	CHECK_STR(back.prompt, d.prompt);
	CHECK_STR(back.until, "make test");
	CHECK(back.marker == NULL && back.conf.has_check && !back.conf.has_marker);
	CHECK_INT(back.conf.cost, 1500000);
	CHECK_INT(back.conf.max, 3);
	loopdir_close(&l);
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK_INT(l.number, 2);
	CHECK_INT(loopdir_open(dir, "box", &again, &e), 0);
	CHECK_INT(again.number, 2);
	teardown();
}

/* The loop locks and forks; who it forked says that all is ready, and lives on as long as `go_on` is open. */
static _Noreturn void lock_and_fork(struct loopdir *l, int ready, int go_on)
{
	struct err e = ERR_INIT;
	char c = 0;

	if (loopdir_lock(l, &e) < 0)
		_exit(1);
	if (fork() == 0)
		_exit(write(ready, "x", 1) == 1 && read(go_on, &c, 1) == 0 ? 0 : 1);
	for (;;)
		(void)pause();
}

TEST(one_at_a_time_and_no_longer_than_it_lives)
{
	_cleanup_(loop_def_done) struct loop_def d = a_def();
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE;
	struct err e = ERR_INIT;
	int ready[2] = { FD_NONE, FD_NONE }, go_on[2] = { FD_NONE, FD_NONE };
	char c = 0;
	pid_t pid;

	setup();
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK(!loopdir_is_locked(&l));
	CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go_on, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		fd_close(go_on[1]);
		lock_and_fork(&l, ready[1], go_on[0]);
	}
	CHECK_INT(read(ready[0], &c, 1), 1);
	CHECK(loopdir_is_locked(&l));
	CHECK_INT(loopdir_lock(&l, &e), -EBUSY);
	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	/* What it was just starting is not the loop. */
	CHECK(!loopdir_is_locked(&l));
	CHECK_INT(loopdir_lock(&l, &e), 0);
	for (size_t i = 0; i < 2; i++) {
		fd_close(ready[i]);
		fd_close(go_on[i]);
	}
	teardown();
}

/* From inside a pid namespace the holder outside has no number: 0 if the lock is seen, 2 if not, 3 where the host has no
 * such namespaces for us. */
static int ask_from_elsewhere(const struct loopdir *l)
{
	pid_t pid;
	int status;

	if (unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return 3;
	pid = fork();
	if (pid == 0)
		_exit(loopdir_is_locked(l) && loopdir_holder(l) == 0 ? 0 : 2);
	return pid < 0 || waitpid(pid, &status, 0) != pid ? 3 : WEXITSTATUS(status);
}

TEST(a_lock_of_another_pid_namespace)
{
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE;
	_cleanup_(loop_def_done) struct loop_def d = a_def();
	struct err e = ERR_INIT;
	int status = 0;
	pid_t pid;

	setup();
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK_INT(loopdir_lock(&l, &e), 0);
	pid = fork();
	if (pid == 0)
		_exit(ask_from_elsewhere(&l));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
	teardown();
}

TEST(another_definition)
{
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE;
	_cleanup_(loop_def_done) struct loop_def d = a_def(), got = { 0 };
	struct err e = ERR_INIT;

	setup();
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	d.notify = mem_str("cat >facts");
	CHECK_INT(loopdir_write_def(&l, &d, &e), 0);
	CHECK_INT(loopdir_def(&l, &got, &e), 0);
	CHECK_STR(got.notify, "cat >facts");
	CHECK_STR(got.until, "make test");
	teardown();
}

TEST(tries)
{
	_cleanup_(loop_def_done) struct loop_def d = a_def();
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE;
	char a[] = "a b", b[] = "c\"d";
	char *files[] = { a, b, NULL };
	struct loop_record r = { .number = 1,
				 .iteration = 1,
				 .attempt = 2,
				 .checkpoint = 9,
				 .files = files,
				 .has_cost = true,
				 .result = { .outcome = LOOP_FAILED,
					     .status = -3,
					     .cost = 12345678,
					     .failure = UINT64_MAX,
					     .n_changed = 2 } };
	struct loop_begin begin = { .iteration = 1, .attempt = 1, .checkpoint = 9, .hints = files };
	_cleanup_(loop_record_done) struct loop_record back = { 0 };
	_cleanup_(loop_begin_done) struct loop_begin began = { 0 };
	struct loop_sum s;
	struct err e = ERR_INIT;

	setup();
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK_INT(loopdir_begin(&l, 1, &began, &e), -ENOENT);
	CHECK_INT(loopdir_write_begin(&l, 1, &begin, &e), 0);
	CHECK_INT(loopdir_record(&l, 1, &back, &e), -ENOENT);
	CHECK_INT(loopdir_sum(&l, &s, &e), 0);
	CHECK_INT(s.tries, 0); /* begun is not finished */
	CHECK_INT(loopdir_begin(&l, 1, &began, &e), 0);
	CHECK_STR(began.hints[1], b);
	CHECK_INT(loopdir_write_record(&l, &r, &e), 0);
	CHECK_INT(loopdir_record(&l, 1, &back, &e), 0);
	CHECK_INT(back.result.outcome, LOOP_FAILED);
	CHECK_INT(back.result.status, -3);
	CHECK_INT(back.result.cost, 12345678);
	CHECK(back.result.failure == UINT64_MAX && back.number == 1 && back.attempt == 2 &&
	      back.has_cost);
	CHECK_STR(back.files[0], a);
	CHECK(back.files[2] == NULL && back.said == NULL);
	CHECK_INT(loopdir_sum(&l, &s, &e), 0);
	CHECK_INT(s.iterations, 1);
	CHECK_INT(s.failed, 1);
	teardown();
}

TEST(end_stop_and_hints)
{
	_cleanup_(loop_def_done) struct loop_def d = a_def();
	_cleanup_(loopdir_close) struct loopdir l = LOOPDIR_NONE;
	_cleanup_(buf_done) struct buf text = BUF(KIB);
	char **names = NULL;
	struct err e = ERR_INIT;

	setup();
	CHECK_INT(loopdir_create(dir, "box", &d, &l, &e), 0);
	CHECK_INT(loopdir_end(&l), LOOP_GOES_ON);
	CHECK_INT(loopdir_write_end(&l, LOOP_STILL, &e), 0);
	CHECK_INT(loopdir_end(&l), LOOP_STILL);
	CHECK(!loopdir_is_asked(&l));
	CHECK_INT(loopdir_ask_stop(&l, &e), 0);
	CHECK(loopdir_is_asked(&l));
	loopdir_forget_stop(&l);
	CHECK(!loopdir_is_asked(&l) && loopdir_end(&l) == LOOP_GOES_ON);
	CHECK_INT(loopdir_add_hint(&l, "first", &e), 0);
	CHECK_INT(loopdir_add_hint(&l, "second", &e), 0);
	CHECK_INT(loopdir_hints(&l, &names, &e), 0);
	CHECK(names[0] && names[1] && names[2] == NULL);
	CHECK_INT(loopdir_read_hint(&l, names[0], &text, &e), 0);
	CHECK_STR(buf_cstr(&text), "first");
	loopdir_drop_hints(&l, names);
	loop_texts_free(names);
	CHECK_INT(loopdir_hints(&l, &names, &e), 0);
	CHECK(names[0] == NULL);
	loop_texts_free(names);
	teardown();
}

TEST(damage)
{
	struct loop_record r = { 0 };
	struct err e = ERR_INIT;
	static const char *const bad[] = { "",
					   "[]",
					   "{\"files\":1}",
					   "{\"files\":[1]}",
					   "{\"outcome\":9}",
					   "{\"status\":\"x\"}",
					   "{\"failure\":\"xyz\"}",
					   "{\"cost_usd\":-1}",
					   "{\"marked\":1}" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(loop_record_parse(bad[i], strlen(bad[i]), &r, &e) < 0);
	CHECK_INT(loop_record_parse("{}", 2, &r, &e), 0);
	loop_record_done(&r);
}

TEST_MAIN()
