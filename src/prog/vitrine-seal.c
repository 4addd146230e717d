/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-seal.c - vitrine-seal: TLS for inspected hosts, the sandbox's CA, and its secrets
 *
 * For: reading requests to the hosts that a policy inspects: path rules, git pushes, secrets in place of placeholders. The
 *     keeper starts it when something inside first opens the bundle of certificates or reaches such a host.
 * Links: libc, OpenSSL, nghttp2 and zlib.
 * Talks to: the keeper over SEAL_KEEPER_FD (seal/wire.h), which sends the trust store, rules and secrets; the gate's front
 *     (gate/wire.h), which sends connected sockets.
 * Must not: open a file, make or connect a socket, start a program; leave memory in a dump; outlive its keeper.
 * Promises: none, confine(0), given and proved in seal_serve() before the first foreign byte.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "seal/serve.h"
#include "seal/wire.h"

static void no_traces(void)
{
	const struct rlimit none = { 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_FSIZE, &none);
	bug_on(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0);
	bug_on(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0);
	(void)signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int r;

	(void)argv;
	if (argc != 1) {
		(void)fprintf(stderr, "vitrine-seal: started by the keeper, with no arguments\n");
		return 2;
	}
	no_traces();
	r = seal_serve(&e);
	if (r < 0) {
		(void)seal_send(SEAL_KEEPER_FD, SEAL_FAILED, 0, NULL, e.msg, strlen(e.msg));
		(void)fprintf(stderr, "vitrine-seal: %s\n", e.msg);
	}
	return r < 0 ? err_exit_code(&e) : 0;
}
