/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/ask.c - does docker have an image? Asked of the daemon itself
 *
 * The client takes a tenth of a whole start to ask this one question. Where the daemon listens on a socket of this machine
 * and nothing says that the client would go elsewhere, we ask there, and only a plain yes counts: whatever else comes, or
 * nothing in a second, the client is called.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/io.h"
#include "engine/container/container.h"

#define YES "HTTP/1.0 200 "

/* What the client would read first, and where a context other than the usual one can be named. */
static char *config_path(char *const *env)
{
	const char *dir = render_word(env, "DOCKER_CONFIG"), *home = render_word(env, "HOME");

	if (dir && *dir)
		return mem_fmt("%s/config.json", dir);
	return mem_fmt("%s/.docker/config.json", home ? home : "");
}

const char *docker_socket(char *const *env, const char *config)
{
	const char *host = render_word(env, "DOCKER_HOST"), *context = render_word(env, "DOCKER_"
											"CONTEXT");

	if (host && *host)
		return str_starts(host, "unix:///") ? host + 7 : NULL;
	if ((context && *context) || strstr(config, "currentContext"))
		return NULL;
	return "/var/run/docker.sock";
}

static int dial(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct timeval second = { .tv_sec = 1 };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(to.sun_path))
		return FD_NONE;
	memcpy(to.sun_path, path, strlen(path));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second)) < 0 ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return FD_NONE;
	return take_fd(fd);
}

static bool says_yes(int fd, const char *image)
{
	_free_ char *ask = mem_fmt("GET /images/%s/json HTTP/1.0\r\nHost: docker\r\n\r\n", image);
	char head[sizeof(YES) - 1];

	return send(fd, ask, strlen(ask), MSG_NOSIGNAL) == (ssize_t)strlen(ask) &&
	       recv(fd, head, sizeof(head), MSG_WAITALL) == (ssize_t)sizeof(head) &&
	       memcmp(head, YES, sizeof(head)) == 0;
}

bool docker_has(char *const *env, const char *image)
{
	_cleanup_(buf_done) struct buf config = BUF(256 * KIB);
	_free_ char *path = config_path(env);
	struct err ignored = ERR_INIT;
	const char *at;
	_close_ int fd = FD_NONE;

	/* Most have none. One that cannot be read may say anything. */
	if (io_read_file(path, &config, &ignored) < 0 && ignored.num != ENOENT)
		return false;
	at = docker_socket(env, buf_cstr(&config));
	if (at == NULL)
		return false;
	fd = dial(at);
	return fd >= 0 && says_yes(fd, image);
}
