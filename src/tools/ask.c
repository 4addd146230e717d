/* SPDX-License-Identifier: Apache-2.0 */
/* tools/ask.c - the inside half of the broker: a request, and what comes back */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/path.h"
#include "tools/ask.h"

#define BROKER_SOCKET "/.vitrine/broker"

int ask_connect(const char *const *words, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * WIRE_BYTES);
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = BROKER_SOCKET };

	if (!request_make(words, n, &b)) {
		(void)fprintf(stderr, "vitrine: more than the broker takes\n");
		return -E2BIG;
	}
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    io_write_all(fd, b.p, b.n) < 0) {
		(void)fprintf(stderr, "vitrine: the broker does not answer: %s\n", strerror(errno));
		return -EPIPE;
	}
	return take_fd(fd);
}

int ask_answer(int fd, struct buf *results)
{
	static char data[WIRE_FRAME_MAX];
	struct frame f;

	while (frame_recv(fd, &f, data) == 1) {
		if (f.kind == WIRE_OUT)
			(void)io_write_all(STDOUT_FILENO, data, f.n);
		else if (f.kind == WIRE_ERR)
			(void)io_write_all(STDERR_FILENO, data, f.n);
		else if (f.kind == WIRE_RESULT && results)
			buf_add(results, data, f.n);
		else if (f.kind == WIRE_END && f.n == 1)
			return (unsigned char)data[0];
		else
			return f.kind == WIRE_SERVE || f.kind == WIRE_CONNECT ? ASK_GO_ON : 125;
	}
	(void)fprintf(stderr, "vitrine: the broker hung up\n");
	return 125;
}

/* `gh ...` and `broker [--commit REVISION] NAME ...`. */
static int ask_checkpoint(int argc, char **argv)
{
	const char *words[] = { "checkpoint", argc > 1 ? argv[1] : "" };
	_close_ int fd = FD_NONE;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		(void)fprintf(stderr, "usage: vitrine-checkpoint [TEXT]; saves the state of this "
				      "sandbox, so that "
				      "its user can go back to it\n");
		return 2;
	}
	fd = ask_connect(words, 2);
	return fd < 0 ? 125 : ask_answer(fd, NULL);
}

int ask_main(int argc, char **argv)
{
	const char *words[WIRE_WORDS];
	bool is_gh = str_eq(path_name(argv[0]), "gh"),
	     has_commit = !is_gh && argc > 3 && str_eq(argv[1], "--commit");
	_free_ char *oid = has_commit ? remote_oid(argv[2]) : NULL, *commit = NULL;
	_close_ int fd = FD_NONE;
	size_t n = 0;
	int r;

	if (str_eq(path_name(argv[0]), "vitrine-checkpoint"))
		return ask_checkpoint(argc, argv);
	if (argc < 2 || argc > WIRE_WORDS - 4) {
		(void)fprintf(stderr, is_gh ? "usage: gh pr create ...; the broker, outside, runs "
					      "nothing else\n"
					    : "usage: broker [--commit REVISION] NAME "
					      "[ARGUMENT...]; the names are in the "
					      "policy, broker.commands\n");
		return 2;
	}
	if (has_commit && oid == NULL) {
		(void)fprintf(stderr, "broker: '%s' is no commit here\n", argv[2]);
		return 2;
	}
	words[n++] = is_gh ? "gh" : "run";
	words[n++] = argv[has_commit ? 3 : 1];
	commit = oid ? mem_fmt("commit=%s", oid) : NULL;
	if (commit)
		words[n++] = commit;
	for (int i = has_commit ? 4 : 2; i < argc; i++)
		words[n++] = argv[i];
	fd = ask_connect(words, n);
	r = fd < 0 ? 125 : ask_answer(fd, NULL);
	while (r == ASK_GO_ON)
		r = remote_serve(fd) == 0 ? ask_answer(fd, NULL) : 125;
	return r;
}
