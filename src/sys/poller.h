/* SPDX-License-Identifier: Apache-2.0 */
/* sys/poller.h - readiness of thousands of descriptors; base/loop is for a dozen
 *
 * Level-triggered. Take a descriptor out before closing it: while another process still holds a copy, closing alone
 * would leave it here with a pointer to what is gone.
 */
#ifndef VITRINE_SYS_POLLER_H
#define VITRINE_SYS_POLLER_H

#include "base/base.h"

enum { POLLER_READ = 1, POLLER_WRITE = 2, POLLER_GONE = 4 };

struct poller_hit {
	void *p;
	unsigned ready;
};

#define POLLER_HITS 128

int poller_open(void);
int poller_add(int poller, int fd, unsigned what, void *p);
int poller_change(int poller, int fd, unsigned what, void *p);
void poller_remove(int poller, int fd);
/* The number of hits, 0 at the time-out. */
int poller_wait(int poller, struct poller_hit hits[POLLER_HITS], int timeout_ms);

#endif
