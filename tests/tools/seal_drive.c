/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/seal_drive.c - a keeper, front and dial in one, for tests of vitrine-seal alone
 *
 *     seal-drive SEAL DIR [NAME=VALUE...]
 *
 * DIR holds trust.pem, rules.json and map ("HOST:PORT ADDRESS:PORT" lines). Writes DIR/ca.pem and DIR/bundle.pem and
 * then prints the port of a proxy that knows CONNECT; each tunnel is handed to seal. Events are lines on stdout. A line
 * "commit" on stdin reads rules.json again, "value NAME=VALUE" changes the value of a secret. Ends with its stdin.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/num.h"
#include "gate/wire.h"
#include "http/head.h"
#include "http/uri.h"
#include "seal/wire.h"

struct drive {
	const char *dir;
	char **values;
	int n_values;
	int keeper, front, listener;
	pid_t pid;
	struct buf ca, map;
	uint32_t next_id;
};

static void die(const char *what, const struct err *e)
{
	(void)fprintf(stderr, "seal-drive: %s: %s\n", what, e ? e->msg : strerror(errno));
	exit(1);
}

static void read_all(const char *dir, const char *name, struct buf *b)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	struct err e = ERR_INIT;

	b->n = 0;
	if (io_read_file(path, b, &e) < 0)
		die(path, &e);
}

static void write_all(const char *dir, const char *name, const struct buf *a, const struct buf *b)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || io_write_all(fd, buf_cstr(a), a->n) < 0 ||
	    (b && io_write_all(fd, buf_cstr(b), b->n) < 0))
		die(path, NULL);
}

static void start(struct drive *d, const char *program)
{
	int pair[2], front[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, front) < 0)
		die("socketpair", NULL);
	d->pid = fork();
	if (d->pid == 0) {
		if (dup2(pair[1], SEAL_KEEPER_FD) < 0)
			_exit(126);
		(void)close_range(SEAL_KEEPER_FD + 1, ~0U, 0);
		(void)execl(program, program, (char *)NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	d->keeper = pair[0];
	d->front = front[0];
	struct seal_msg m = { .type = SEAL_FRONT };
	if (packet_send(d->keeper, &m, sizeof(m), &front[1], 1) < 0)
		die("front", NULL);
	(void)close(front[1]);
}

/* Rules, values, commit; then whatever comes until seal has taken or refused it. */
static void commit(struct drive *d, bool has_trust)
{
	_cleanup_(buf_done) struct buf trust = BUF(4 * MIB), rules = BUF(MIB);
	struct seal_msg m;
	int fds[PACKET_FDS];

	read_all(d->dir, "rules.json", &rules);
	read_all(d->dir, "trust.pem", &trust);
	if (has_trust)
		(void)seal_send_all(d->keeper, SEAL_TRUST, NULL, trust.p, trust.n);
	(void)seal_send_all(d->keeper, SEAL_RULES, NULL, rules.p, rules.n);
	for (int i = 0; i < d->n_values; i++) {
		_free_ char *name = mem_strn(d->values[i], strcspn(d->values[i], "="));
		const char *value = d->values[i] + strlen(name) + 1;

		(void)seal_send_all(d->keeper, SEAL_VALUE, name, value, strlen(value));
	}
	(void)seal_send(d->keeper, SEAL_COMMIT, 0, NULL, NULL, 0);
	for (;;) {
		if (seal_recv(d->keeper, &m, fds) != 1)
			die("seal is gone", NULL);
		if (m.type == SEAL_CA)
			buf_add(&d->ca, m.data, m.n);
		else if (m.type == SEAL_READY || m.type == SEAL_FAILED)
			break;
	}
	(void)printf("%s%.*s\n", m.type == SEAL_READY ? "ready" : "failed ", (int)m.n, m.data);
	(void)fflush(stdout);
	write_all(d->dir, "ca.pem", &d->ca, NULL);
	write_all(d->dir, "bundle.pem", &trust, &d->ca);
}

/* A value that changed, as the keeper sends it. */
static void change_value(const struct drive *d, const char *text)
{
	_free_ char *name = mem_strn(text, strcspn(text, "="));
	const char *value = text + strlen(name) + 1;

	(void)seal_send_all(d->keeper, SEAL_VALUE, name, value, strcspn(value, "\n"));
	(void)seal_send(d->keeper, SEAL_REFRESH, 0, name, NULL, 0);
}

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		die("listen", NULL);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* The address the map gives a name; the port of it. */
static int dial(struct drive *d, const struct http_authority *to)
{
	_free_ char *key = mem_fmt("%s:%u ", to->host, to->port);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *line, *colon;
	_free_ char *port = NULL;
	uint64_t n;
	struct err e = ERR_INIT;
	_close_ int fd = FD_NONE;

	read_all(d->dir, "map", &d->map);
	line = strstr(buf_cstr(&d->map), key);
	colon = line ? strchr(line + strlen(key), ':') : NULL;
	if (colon == NULL)
		return -ENOENT;
	port = mem_strn(colon + 1, strspn(colon + 1, "0123456789"));
	if (num_parse(port, 1, 65535, &n, &e) < 0)
		return -EINVAL;
	a.sin_port = htons((uint16_t)n);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return take_fd(fd);
}

/* One byte at a time: what follows the head is not ours to read. */
static int read_connect(int fd, struct http_authority *ret)
{
	char text[2048];
	static struct http_head h;
	struct http_target t;
	struct err e = ERR_INIT;

	for (size_t n = 0; n < sizeof(text);) {
		if (read(fd, text + n, 1) != 1)
			return -EIO;
		if (http_parse_request(text, ++n, &h, &e) == 0)
			continue;
		if (http_parse_target(h.method, h.target, &t, &e) < 0 || t.form != HTTP_AUTHORITY)
			return -EINVAL;
		*ret = t.authority;
		return 0;
	}
	return -EMSGSIZE;
}

static void accept_one(struct drive *d)
{
	_close_ int client = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	_close_ int server = FD_NONE;
	struct http_authority to;
	struct gate_msg m = { .type = GATE_INSPECT, .id = ++d->next_id, .via = VIA_CONNECT };

	if (client < 0 || read_connect(client, &to) < 0)
		return;
	server = dial(d, &to);
	if (server < 0) {
		(void)io_write_all(client, "HTTP/1.1 502 no\r\n\r\n", 19);
		return;
	}
	(void)io_write_all(client, "HTTP/1.1 200 OK\r\n\r\n", 19);
	m.port = to.port;
	(void)snprintf(m.host, sizeof(m.host), "%s", to.host);
	if (gate_send(d->front, &m, (int[]){ client, server }, 2) < 0)
		die("handing over", NULL);
}

static void show_event(struct drive *d)
{
	struct seal_msg m;
	int fds[PACKET_FDS];

	if (seal_recv(d->keeper, &m, fds) != 1)
		die("seal is gone", NULL);
	if (m.type == SEAL_EVENT)
		(void)printf("%.*s\n", (int)m.n, m.data);
	else if (m.type == SEAL_LOGIN && m.n > 0)
		(void)printf("login %s %.*s\n", m.name, (int)m.n, m.data);
	(void)fflush(stdout);
}

static void show_done(struct drive *d)
{
	struct gate_msg m;
	int fds[PACKET_FDS];

	if (gate_recv(d->front, &m, fds) != 1)
		die("seal is gone", NULL);
	(void)printf("{\"done\":%u,\"up\":%llu,\"down\":%llu}\n", m.id, (unsigned long long)m.up,
		     (unsigned long long)m.down);
	(void)fflush(stdout);
}

/* A line of stdin, byte by byte: a long one comes in pieces. False: the end. */
static bool read_line(char *line, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && (n == 0 || line[n - 1] != '\n')) {
		if (read(STDIN_FILENO, line + n, 1) != 1)
			return false;
		n++;
	}
	line[n] = '\0';
	return true;
}

int main(int argc, char **argv)
{
	struct drive d = { .ca = BUF(64 * KIB), .map = BUF(64 * KIB) };
	uint16_t port;

	if (argc < 3)
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	d.dir = argv[2];
	d.values = argv + 3;
	d.n_values = argc - 3;
	start(&d, argv[1]);
	commit(&d, true);
	d.listener = listen_here(&port);
	(void)printf("port %u pid %d\n", port, (int)d.pid);
	(void)fflush(stdout);
	for (;;) {
		struct pollfd p[] = { { .fd = d.listener, .events = POLLIN },
				      { .fd = d.keeper, .events = POLLIN },
				      { .fd = d.front, .events = POLLIN },
				      { .fd = STDIN_FILENO, .events = POLLIN } };
		static char line[32 * 1024];

		if (poll(p, ARRAY_LEN(p), -1) < 0)
			continue;
		if (p[1].revents)
			show_event(&d);
		if (p[2].revents)
			show_done(&d);
		if (p[0].revents)
			accept_one(&d);
		if (p[3].revents) {
			if (!read_line(line, sizeof(line)))
				return 0;
			if (strncmp(line, "value ", 6) == 0)
				change_value(&d, line + 6);
			else
				commit(&d, false);
		}
	}
}
