/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-broker.c - vitrine-broker: one privileged command outside, for one request from inside
 *
 * For: git push, git fetch, gh and the commands that the policy declares, under the policy's rules (broker/broker.h). The
 *     keeper starts one process for each connection to the broker's socket.
 * Links: libc alone, statically. git and gh are programs of the host.
 * Talks to: the inside over BROKER_CONN_FD; the keeper, which gives it the policy in BROKER_CONFIG_FD and takes its
 *     events over BROKER_EVENT_FD; the programs that it starts.
 * Must not: run anything in the agent's repository or read a file of the workspace; trust a byte of the connection.
 * Promises: none for this process, which must start programs. Each of those is confined (confine_program in broker/run.c),
 *     and so is the child that carries a pack between git and the inside (confine(0) in broker/repo.c).
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/io.h"
#include "broker/broker.h"
#include "core/workshop.h"

int main(void)
{
	_cleanup_(buf_done) struct buf config = BUF(2 * MIB);
	struct broker b = { .conn = BROKER_CONN_FD, .env = environ };
	struct err e = ERR_INIT;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	/* With the keeper goes what it began. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = io_read_fd(BROKER_CONFIG_FD, &config, &e);
	if (r >= 0)
		r = broker_config(&b, buf_cstr(&config), &e);
	if (r < 0) {
		broker_say(&b, "%s", e.msg);
		return broker_end(&b, 125) < 0;
	}
	workshop_use(b.vitrine);
	return broker_serve(&b);
}
