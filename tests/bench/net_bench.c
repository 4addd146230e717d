/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/net_bench.c - what the gate costs: bytes a second, connections a second, a small request
 *
 *      net_bench serve PORT [ADDRESS]
 *      net_bench send ADDRESS PORT MIB [proxy]       MB/s of one connection
 *      net_bench rate ADDRESS PORT SECONDS CLIENTS [proxy]    connections a second: connect, one byte there and back, close
 *      net_bench count ADDRESS PORT COUNT [proxy]    so many connections one after the other, silently
 *      net_bench ping ADDRESS PORT COUNT [proxy]     median microseconds of one byte there and back on one connection
 *
 * With `proxy` a connection is asked for with CONNECT at 127.0.0.1:3128, and what $HTTPS_PROXY has before its '@' is
 * told as a password.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 18];

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };

	(void)inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static void serve_one(int fd)
{
	ssize_t n = recv(fd, block, 1, 0);

	if (n == 1 && block[0] == 'U') {
		unsigned long long left = 0;

		n = recv(fd, &left, sizeof(left), MSG_WAITALL);
		while (left > 0 && (n = recv(fd, block, sizeof(block), 0)) > 0)
			left -= (unsigned long long)n < left ? (unsigned long long)n : left;
		(void)send(fd, "k", 1, MSG_NOSIGNAL);
		n = 0;
	}
	while (n > 0 && block[0] == 'P') {
		(void)send(fd, "k", 1, MSG_NOSIGNAL);
		n = recv(fd, block, 1, 0);
	}
	(void)close(fd);
}

static int serve(const char *port, const char *host)
{
	struct sockaddr_in a = address(host, port);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)signal(SIGCHLD, SIG_IGN);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0)
		return 1;
	(void)puts("up");
	(void)fflush(stdout);
	/* Several servers wait on the one listener; a connection is short or has one to itself. */
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			for (;;) {
				int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

				if (c < 0)
					continue;
				(void)setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				serve_one(c);
			}
	for (;;)
		(void)pause();
}

/* "Proxy-Authorization: Basic ..." for what stands between "//" and '@', or nothing. */
static const char *authorization(void)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"
				     "9+/";
	static char text[1024];
	const char *proxy = getenv("HTTPS_PROXY"), *from = proxy ? strstr(proxy, "//") : NULL;
	const char *at = from ? strchr(from, '@') : NULL;
	size_t n, k;

	if (at == NULL || at - from > 512 || text[0])
		return text;
	n = (size_t)(at - from) - 2;
	from += 2;
	k = (size_t)snprintf(text, sizeof(text), "Proxy-Authorization: Basic ");
	for (size_t i = 0; i < n; i += 3) {
		unsigned long v = (unsigned long)(unsigned char)from[i] << 16;

		v |= i + 1 < n ? (unsigned long)(unsigned char)from[i + 1] << 8 : 0;
		v |= i + 2 < n ? (unsigned long)(unsigned char)from[i + 2] : 0;
		text[k++] = digits[v >> 18];
		text[k++] = digits[v >> 12 & 63];
		text[k++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		text[k++] = i + 2 < n ? digits[v & 63] : '=';
	}
	(void)snprintf(text + k, sizeof(text) - k, "\r\n");
	return text;
}

static int dial(const char *host, const char *port, int is_proxy)
{
	struct sockaddr_in a = is_proxy ? address("127.0.0.1", "3128") : address(host, port);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[2048];
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!is_proxy)
		return fd;
	n = snprintf(text, sizeof(text), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s\r\n", host,
		     port, host, port, authorization());
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n || recv(fd, text, sizeof(text), 0) < 12 ||
	    memcmp(text, "HTTP/1.1 200", 12) != 0)
		return -1;
	return fd;
}

static int send_much(const char *host, const char *port, size_t mib, int is_proxy)
{
	int fd = dial(host, port, is_proxy);
	unsigned long long left = (unsigned long long)mib << 20;
	double t0;
	char k;

	if (fd < 0)
		return 1;
	/* The end is a count: not every proxy passes on that one side has closed. */
	(void)send(fd, "U", 1, MSG_NOSIGNAL);
	(void)send(fd, &left, sizeof(left), MSG_NOSIGNAL);
	t0 = now();
	while (left > 0) {
		ssize_t n =
			send(fd, block, left < sizeof(block) ? left : sizeof(block), MSG_NOSIGNAL);

		if (n < 0)
			return 1;
		left -= (unsigned long long)n;
	}
	if (recv(fd, &k, 1, 0) != 1)
		return 1;
	(void)printf("%.0f\n", (double)mib * 1.048576 / (now() - t0));
	return 0;
}

static int rate(const char *host, const char *port, double seconds, int clients, int is_proxy)
{
	unsigned long *count =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long all = 0;

	for (int i = 0; i < clients; i++)
		if (fork() == 0) {
			double end = now() + seconds;

			while (now() < end) {
				int fd = dial(host, port, is_proxy);
				char k;

				if (fd >= 0 && send(fd, "P", 1, MSG_NOSIGNAL) == 1 &&
				    recv(fd, &k, 1, 0) == 1)
					count[i]++;
				if (fd >= 0)
					(void)close(fd);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < clients; i++)
		all += count[i];
	(void)printf("%.0f\n", (double)all / seconds);
	return 0;
}

static int count(const char *host, const char *port, size_t n, int is_proxy)
{
	char k;

	for (size_t i = 0; i < n; i++) {
		int fd = dial(host, port, is_proxy);

		if (fd < 0 || send(fd, "P", 1, MSG_NOSIGNAL) != 1 || recv(fd, &k, 1, 0) != 1)
			return 1;
		(void)close(fd);
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int ping(const char *host, const char *port, size_t n, int is_proxy)
{
	double *v = calloc(n, sizeof(*v));
	int fd = dial(host, port, is_proxy);
	char k;

	if (fd < 0 || v == NULL)
		return 1;
	for (size_t i = 0; i < n; i++) {
		double t0 = now();

		if (send(fd, "P", 1, MSG_NOSIGNAL) != 1 || recv(fd, &k, 1, 0) != 1)
			return 1;
		v[i] = (now() - t0) * 1e6;
	}
	qsort(v, n, sizeof(*v), by_size);
	(void)printf("%.1f\n", v[n / 2]);
	free(v);
	return 0;
}

int main(int argc, char **argv)
{
	int is_proxy = argc > 2 && strcmp(argv[argc - 1], "proxy") == 0;

	if (argc >= 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], argc > 3 ? argv[3] : "127.0.0.1");
	if (argc >= 5 && strcmp(argv[1], "send") == 0)
		return send_much(argv[2], argv[3], strtoul(argv[4], NULL, 10), is_proxy);
	if (argc >= 6 && strcmp(argv[1], "rate") == 0)
		return rate(argv[2], argv[3], strtod(argv[4], NULL),
			    (int)strtoul(argv[5], NULL, 10), is_proxy);
	if (argc >= 5 && strcmp(argv[1], "count") == 0)
		return count(argv[2], argv[3], strtoul(argv[4], NULL, 10), is_proxy);
	if (argc >= 5 && strcmp(argv[1], "ping") == 0)
		return ping(argv[2], argv[3], strtoul(argv[4], NULL, 10), is_proxy);
	(void)fprintf(stderr, "net_bench: see the head of its source\n");
	return 2;
}
