/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine_test.c - each door is open before and closed after, in a child of its own */
#include <fcntl.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/test.h"
#include "sys/confine.h"

/* Exit status of a child that confines itself to `promises` and then proves against `proof`. */
static int try_it(unsigned promises, unsigned proof, bool is_confined)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e = ERR_INIT;

		if (is_confined && confine(promises, &e) < 0)
			_exit(2);
		_exit(confine_prove(proof, &e) < 0 ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(nothing_holds_without_it)
{
	CHECK_INT(try_it(0, 0, false), 1);
}

TEST(each_set_of_promises_holds)
{
	for (unsigned p = 0; p < 8; p++)
		CHECK_INT(try_it(p, p, true), 0);
}

TEST(the_proof_notices_one_promise_too_many)
{
	CHECK_INT(try_it(CONFINE_ACCEPT, 0, true), 1);
	CHECK_INT(try_it(CONFINE_CONNECT, 0, true), 1);
	CHECK_INT(try_it(CONFINE_LISTEN, 0, true), 1);
}

/* ---- programs that are not ours ---- */

/* A listener on the loopback, and its port. */
static int listener(uint16_t *ret_port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(bind(fd, (const struct sockaddr *)&sa, n) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&sa, &n) == 0);
	*ret_port = ntohs(sa.sin_port);
	return fd;
}

static bool can_make(int family, int type)
{
	_close_ int fd = socket(family, type | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

static bool can_reach(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0;
}

static bool can_listen(void)
{
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && listen(fd, 1) == 0;
}

#define DOORS "tunmols"

/* One letter for each door that is open behind these walls: tcp, unix, netlink, its port, another port, listening, a user
 * namespace. */
static void doors(enum confine_net net, char out[static sizeof(DOORS)])
{
	const char *const all[] = { "/", NULL }, *const none[] = { NULL };
	uint16_t mine = 0, other = 0;
	_close_ int a = listener(&mine), b = listener(&other);
	struct confine_program c = { .read = all, .write = none, .net = net, .ports = { mine } };
	int p[2], status = 0;
	ssize_t n;
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0 && a >= 0 && b >= 0);
	pid = fork();
	if (pid == 0) {
		struct err e = ERR_INIT;
		char said[sizeof(DOORS)];
		size_t k = 0;

		if (confine_program(&c, &e) < 0)
			_exit(2);
		if (can_make(AF_INET, SOCK_STREAM))
			said[k++] = 't';
		if (can_make(AF_UNIX, SOCK_STREAM))
			said[k++] = 'u';
		if (can_make(AF_NETLINK, SOCK_RAW))
			said[k++] = 'n';
		if (can_reach(mine))
			said[k++] = 'm';
		if (can_reach(other))
			said[k++] = 'o';
		if (can_listen())
			said[k++] = 'l';
		if (unshare(CLONE_NEWUSER) == 0)
			said[k++] = 's';
		_exit(write(p[1], said, k) == (ssize_t)k ? 0 : 1);
	}
	fd_close(p[1]);
	n = read(p[0], out, sizeof(DOORS) - 1);
	out[n > 0 ? n : 0] = '\0';
	fd_close(p[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(programs_get_the_network_they_need)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	char out[sizeof(DOORS)];

	if (abi < 1)
		return; /* nothing is run at all where the kernel has none */
	doors(CONFINE_OFFLINE, out);
	CHECK_STR(out, "");
	doors(CONFINE_WEB, out);
	CHECK_STR(out, abi >= 4 ? "tnm" : "tnmo"); /* ports are known since 6.7 */
	doors(CONFINE_ONLINE, out);
	CHECK_STR(out, "tunmo");
	doors(CONFINE_FREE, out);
	CHECK(str_starts(out, "tunmol")); /* the control: all of it works here */
}

TEST_MAIN()
