/* SPDX-License-Identifier: Apache-2.0 */
/* gate/main.c - vitrine-gate: `front` and `dial`, started by the keeper with their sockets in place
 *
 * Both confine themselves before they read a foreign byte. Nothing here is for people to type.
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
