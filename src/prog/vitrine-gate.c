/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-gate.c - vitrine-gate: the only way from a sandbox to a network
 *
 * For: two processes of one program. `front` parses what the sandbox sends; `dial` knows rules, names and addresses,
 *     and connects. The keeper starts both for each sandbox that has a network.
 * Links: libc alone, statically: it is started beside every such sandbox.
 * Talks to: the keeper on descriptor 3 and each other on descriptor 4 (gate/wire.h); front also to vitrine-seal, and to
 *     vitrine-link where the sandbox is behind other walls.
 * Must not: open a file or start a program. Front must not make or connect a socket; dial must not see payload.
 * Promises: front CONFINE_ACCEPT (gate/front.c); dial CONFINE_ACCEPT, CONFINE_CONNECT and CONFINE_LISTEN (gate/dial.c).
 *     Both are given and proved before the first foreign byte.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "gate/dial.h"
#include "gate/front.h"

int main(int argc, char **argv)
{
	const char *role = argc == 2 ? argv[1] : "";
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	if ((!str_eq(role, "front") && !str_eq(role, "dial")) ||
	    getpeername(GATE_KEEPER_FD, (struct sockaddr *)&peer, &n) < 0) {
		(void)fprintf(stderr, "vitrine-gate: started by 'vitrine run' when a sandbox has a "
				      "network; not by hand\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the keeper's end is seen by its socket too */
	if (str_eq(role, "front"))
		front_main();
	dial_main();
}
