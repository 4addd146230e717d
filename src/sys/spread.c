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
 * until the command begins. Busy means for a while: the kernel's own workers, who take apart what the start before
 * this one left behind, are gone in a moment.
 */
#include "sys/spread.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/base.h"

static cpu_set_t all;
static bool is_behind;
static enum { SPREAD_NOT, SPREAD_APART, SPREAD_TOGETHER } mode;

static long number(const char **at)
{
	long n = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		n = n * 10 + (**at - '0');
	return n;
}

/* The kernel keeps the average of the last minute in 65536ths. To ask for it is a tenth of what the file below costs. */
static bool was_busy(long n_cpus)
{
	struct sysinfo si;

	return sysinfo(&si) < 0 || si.loads[0] >> SI_LOAD_SHIFT >= (unsigned long)n_cpus;
}

/* "1.84 1.20 0.90 3/210 4711": the last minute's average, and how many are running now, ourselves included. */
static bool is_busy(long n_cpus)
{
	_close_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at = text;
	long load;

	if (n <= 0)
		return false;
	text[n] = '\0';
	load = number(&at) * 100;
	at += *at == '.';
	load += number(&at);
	for (int i = 0; i < 3 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && load >= n_cpus * 100 && number(&at) > n_cpus;
}

/* CPU_COUNT() of libc looks at each of 1,024 bits. */
static int n_cpus_in(const cpu_set_t *set)
{
	unsigned long word[sizeof(*set) / sizeof(unsigned long)];
	int n = 0;

	memcpy(word, set, sizeof(word));
	for (size_t i = 0; i < ARRAY_LEN(word); i++)
		n += __builtin_popcountl(word[i]);
	return n;
}

/* On this processor only. */
static void keep_here(pid_t pid)
{
	int here = sched_getcpu();
	cpu_set_t only;

	if (here < 0 || here >= CPU_SETSIZE)
		return;
	CPU_ZERO(&only);
	CPU_SET((size_t)here, &only);
	(void)sched_setaffinity(pid, sizeof(only), &only);
}

void spread_begin(void)
{
	int n;

	/* It fails on a machine with more processors than fit the set, which is then left to its own ways. */
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	n = n_cpus_in(&all);
	if (n < 2)
		return;
	mode = was_busy(n) && is_busy(n) ? SPREAD_TOGETHER : SPREAD_APART;
	if (mode == SPREAD_TOGETHER)
		keep_here(0);
}

void spread_back(pid_t child)
{
	if (mode == SPREAD_APART)
		keep_here(child);
}

void spread_child(pid_t child)
{
	int here = sched_getcpu();
	cpu_set_t others = all;

	if (mode != SPREAD_APART || here < 0 || here >= CPU_SETSIZE)
		return;
	CPU_CLR((size_t)here, &others);
	if (n_cpus_in(&others) > 0)
		(void)sched_setaffinity(child, sizeof(others), &others);
}

/* The kernel's calls: libc's are about threads and may not be there. */
static void set_policy(int policy)
{
	const struct sched_param none = { 0 };

	(void)syscall(SYS_sched_setscheduler, 0, policy, &none);
}

void spread_behind(bool want)
{
	/* A caller that chose a policy itself keeps it. SCHED_RESET_ON_FORK would be of no use here: children inherit
	 * SCHED_BATCH all the same, and without privileges nobody gets rid of the flag again. */
	if (want == is_behind || (want && syscall(SYS_sched_getscheduler, 0) != SCHED_OTHER))
		return;
	set_policy(want ? SCHED_BATCH : SCHED_OTHER);
	is_behind = want;
}

void spread_before_exec(void)
{
	if (is_behind)
		set_policy(SCHED_OTHER);
}

void spread_free(void)
{
	if (mode != SPREAD_NOT)
		(void)sched_setaffinity(0, sizeof(all), &all);
}

void spread_end(void)
{
	spread_free();
	mode = SPREAD_NOT;
}
