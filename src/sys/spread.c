/* SPDX-License-Identifier: Apache-2.0 */
/* sys/spread.c - which processor the few processes of a start begin on
 *
 * The kernel leaves a newborn on its parent's processor more often than not, where it waits until the parent blocks or
 * an idle processor comes and fetches it. For work that is meant to be done beside the parent's that is half a
 * millisecond lost, a tenth of a whole start. So where a processor is idle the parent moves it there: for a moment
 * the child may run anywhere but here. To wake a processor that sleeps costs a tenth of that.
 *
 * Where all are busy it is the other way round. Our processes do little and then wait for each other; on a
 * processor that somebody else uses each of them would wait for its turn every time, milliseconds on end. Kept
 * together on one they hand it to each other, and the whole start takes a third of the time. So there they all stay
 * until the command begins.
 */
#include "sys/spread.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static cpu_set_t all;
static enum { SPREAD_NOT, SPREAD_APART, SPREAD_TOGETHER } mode;

/* Of all processes of the machine, ourselves included: the fourth field, "running/there". */
static long count_running(void)
{
	_close_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at = text;
	long running = 0;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	for (int i = 0; i < 3 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	for (; at && *at >= '0' && *at <= '9'; at++)
		running = running * 10 + (*at - '0');
	return running;
}

static void allow_only(int cpu)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((size_t)cpu, &here);
	(void)sched_setaffinity(0, sizeof(here), &here);
}

void spread_begin(void)
{
	int here = sched_getcpu();
	long running;

	/* It fails on a machine with more processors than fit the set, which is then left to its own ways. */
	if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) < 0 ||
	    CPU_COUNT(&all) < 2)
		return;
	running = count_running();
	if (running <= 0)
		return;
	mode = running > CPU_COUNT(&all) ? SPREAD_TOGETHER : SPREAD_APART;
	if (mode == SPREAD_TOGETHER)
		allow_only(here);
}

void spread_child(pid_t child)
{
	int here = sched_getcpu();
	cpu_set_t others = all;

	if (mode != SPREAD_APART || here < 0 || here >= CPU_SETSIZE)
		return;
	CPU_CLR((size_t)here, &others);
	if (CPU_COUNT(&others) > 0)
		(void)sched_setaffinity(child, sizeof(others), &others);
}

void spread_end(void)
{
	if (mode != SPREAD_NOT)
		(void)sched_setaffinity(0, sizeof(all), &all);
	mode = SPREAD_NOT;
}
