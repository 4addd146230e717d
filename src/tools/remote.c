/* SPDX-License-Identifier: Apache-2.0 */
/* tools/remote.c - git-remote-vitrine: git's own fetch and push, by way of the broker
 *
 * git starts this for a URL "vitrine::URL" and speaks its protocol for remote helpers on stdin and stdout. Fetching is a
 * `connect`: the connection to the broker becomes one to git-upload-pack on the broker's repository. A push is a list of
 * refs; the broker takes what it lacks by asking us to run git-upload-pack here, on our own repository, and reads
 * nothing but that stream. What it says about each ref git shows as any other server's answer.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "tools/ask.h"

#define LINE_MAX_BYTES 4096
#define PUSHES_MAX 128

/* One line of git's, without its newline; byte by byte, because what follows may not be for us. */
static bool get_line(char line[LINE_MAX_BYTES])
{
	for (size_t n = 0; n < LINE_MAX_BYTES; n++) {
		if (io_read(STDIN_FILENO, line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

static void say(const char *text)
{
	(void)io_write_all(STDOUT_FILENO, text, strlen(text)); /* git is gone then, and so are we */
}

/* ---- fetch: bytes both ways ---- */

static bool pump(int from, int to)
{
	static char data[65536];
	ssize_t n = read(from, data, sizeof(data));

	return n > 0 && io_write_all(to, data, (size_t)n) == 0;
}

static int carry(int fd)
{
	struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 125;
		if (p[1].revents && !pump(fd, STDOUT_FILENO))
			return 0;
		if (p[0].revents && !pump(STDIN_FILENO, fd)) {
			(void)shutdown(fd, SHUT_WR);
			p[0].fd = -1;
		}
	}
}

static int do_connect(const char *url)
{
	const char *words[] = { "git-fetch", url };
	_close_ int fd = ask_connect(words, ARRAY_LEN(words));
	int r = fd < 0 ? 125 : ask_answer(fd, NULL);

	if (r != ASK_GO_ON)
		return r ? r : 125;
	say("\n");
	return carry(fd);
}

/* ---- push: git-upload-pack, framed ---- */

static pid_t start_upload_pack(int *ret_in, int *ret_out)
{
	_free_ char *git = real_path("git");
	char *const argv[] = { (char[]){ "git" },
			       (char[]){ "-c" },
			       (char[]){ "uploadpack.allowAnySHA1InWant=true" },
			       (char[]){ "upload-pack" },
			       (char[]){ "." },
			       NULL };
	static const char *const ask[] = { "git", "rev-parse", "--absolute-git-dir", NULL };
	_cleanup_(buf_done) struct buf found = BUF(8 * KIB);
	const char *dir = getenv("GIT_DIR"); /* from git, where git started us */
	int in[2], out[2];
	pid_t pid;

	if (dir == NULL && real_run("git", ask, &found) == 0)
		dir = buf_cstr(&found);
	if (git == NULL || dir == NULL || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		/* NOLINTNEXTLINE(android-cloexec-dup): these are its stdin and stdout */
		if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || chdir(dir) < 0)
			_exit(126);
		/* The broker hangs up when it has what it needs, and upload-pack would complain of that. */
		(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
		(void)unsetenv("GIT_DIR");
		(void)unsetenv("GIT_PROTOCOL"); /* the first version, in which the broker asks */
		(void)execv(git, argv);
		_exit(127);
	}
	fd_close(in[0]);
	fd_close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

struct serving {
	int conn, in, out; /* of upload-pack: in is what it reads */
	bool is_out;       /* it may still say something */
	char data[WIRE_FRAME_MAX];
};

static int say_on(struct serving *s)
{
	ssize_t n = read(s->out, s->data, sizeof(s->data));

	s->is_out = n > 0;
	return frame_send(s->conn, WIRE_DATA, s->data, n > 0 ? (size_t)n : 0);
}

static int hear_on(struct serving *s)
{
	struct frame f;

	if (frame_recv(s->conn, &f, s->data) != 1 || f.kind != WIRE_DATA)
		return -EBADMSG;
	if (f.n == 0 || io_write_all(s->in, s->data, f.n) < 0)
		fd_close(take_fd(s->in));
	return 0;
}

/* Until upload-pack has ended and said so, and the broker has too. */
int remote_serve(int fd)
{
	static struct serving s;
	int r = 0;
	pid_t pid;

	s = (struct serving){ .conn = fd, .in = FD_NONE, .out = FD_NONE, .is_out = true };
	pid = start_upload_pack(&s.in, &s.out);
	while (pid > 0 && r == 0 && (s.is_out || s.in >= 0)) {
		struct pollfd p[2] = { { .fd = s.is_out ? s.out : -1, .events = POLLIN },
				       { .fd = s.in >= 0 ? fd : -1, .events = POLLIN } };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			r = -errno;
		if (r == 0 && p[0].revents)
			r = say_on(&s);
		if (r == 0 && p[1].revents)
			r = hear_on(&s);
	}
	fd_close(s.in);
	fd_close(s.out);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return pid > 0 && r == 0 ? 0 : 125;
}

char *remote_oid(const char *revision)
{
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	const char *argv[] = { "git",    "rev-parse", "--verify", "--quiet", "--end-of-options",
			       revision, NULL };

	return real_run("git", argv, &out) == 0 && out.n >= 40 ? mem_str(buf_cstr(&out)) : NULL;
}

/* "[+]SRC:DST" with SRC as the object it names here. */
static char *resolve(const char *spec)
{
	bool is_forced = spec[0] == '+';
	const char *src = spec + is_forced, *colon = strrchr(spec, ':');
	_free_ char *what =
		colon && colon > src ? mem_strn(src, (size_t)(colon - src)) : mem_str("");
	_free_ char *oid = what[0] ? remote_oid(what) : mem_str("");

	return colon && oid ? mem_fmt("%s%s:%s", is_forced ? "+" : "", oid, colon + 1) : NULL;
}

static int do_push(const char *url, char **specs, size_t n_specs, bool is_dry)
{
	_cleanup_(buf_done) struct buf results = BUF(MIB);
	const char *words[PUSHES_MAX + 4];
	_close_ int fd = FD_NONE;
	size_t n = 0;
	int r;

	words[n++] = "git-push";
	words[n++] = url;
	if (is_dry)
		words[n++] = "dry-run";
	words[n++] = "--";
	for (size_t i = 0; i < n_specs; i++)
		words[n++] = specs[i];
	fd = ask_connect(words, n);
	r = fd < 0 ? 125 : ask_answer(fd, &results);
	while (r == ASK_GO_ON)
		r = remote_serve(fd) == 0 ? ask_answer(fd, &results) : 125;
	if (r != 0)
		return r;
	say(buf_cstr(&results));
	say("\n");
	return 0;
}

/* A batch of push lines ends with an empty one. */
static int push_batch(const char *url, char *line, bool is_dry)
{
	char *specs[PUSHES_MAX];
	size_t n = 0;
	int r = 0;

	do {
		char *spec = str_starts(line, "push ") && n < PUSHES_MAX ? resolve(line + 5) : NULL;

		if (spec == NULL)
			r = 125;
		else
			specs[n++] = spec;
	} while (r == 0 && get_line(line) && line[0]);
	if (r == 0)
		r = do_push(url, specs, n, is_dry);
	for (size_t i = 0; i < n; i++)
		free(specs[i]);
	return r;
}

static int do_list(const char *url)
{
	_cleanup_(buf_done) struct buf results = BUF(16 * MIB);
	const char *words[] = { "git-list", url };
	_close_ int fd = ask_connect(words, ARRAY_LEN(words));
	int r = fd < 0 ? 125 : ask_answer(fd, &results);

	if (r != 0)
		return r;
	say(buf_cstr(&results));
	say("\n");
	return 0;
}

/* No rule is about it: the way it would have gone without a broker. */
static void maybe_pass(const char *remote, const char *url)
{
	const char *words[] = { "about", url };
	_close_ int fd = ask_connect(words, ARRAY_LEN(words));
	char *const argv[] = { (char[]){ "git" }, (char[]){ "remote-https" },
			       (char *)(uintptr_t)remote, (char *)(uintptr_t)url, NULL };

	if (fd >= 0 && ask_answer(fd, NULL) == 3 &&
	    (str_starts(url, "https://") || str_starts(url, "http://")))
		real_exec("git", argv);
}

int remote_main(int argc, char **argv)
{
	char line[LINE_MAX_BYTES];
	bool is_dry = false;
	int r = 0;

	if (argc < 3) {
		(void)fprintf(stderr, "git-remote-vitrine is run by git\n");
		return 2;
	}
	maybe_pass(argv[1], argv[2]);
	while (r == 0 && get_line(line)) {
		if (str_eq(line, "capabilities")) {
			say("connect\npush\noption\n\n");
		} else if (str_starts(line, "option dry-run ")) {
			is_dry = str_eq(line + 15, "true");
			say("ok\n");
		} else if (str_starts(line, "option ")) {
			say("unsupported\n");
		} else if (str_eq(line, "connect git-upload-pack")) {
			return do_connect(argv[2]);
		} else if (str_starts(line, "connect ")) {
			say("fallback\n");
		} else if (str_starts(line, "list")) {
			r = do_list(argv[2]);
		} else if (str_starts(line, "push ")) {
			r = push_batch(argv[2], line, is_dry);
		} else if (line[0]) {
			(void)fprintf(stderr, "git-remote-vitrine: '%.40s' is not known\n", line);
			r = 125;
		} else {
			break;
		}
	}
	return r;
}
