/* SPDX-License-Identifier: Apache-2.0 */
/* sys/host.h - what this host can do for us, found out by doing it
 *
 * A check tries the very thing the native engine will do, in a child with a deadline; a file that merely claims
 * a feature is believed only where nothing can be tried. Nothing on the host is changed. `vitrine doctor` prints
 * the result; the engine does not ask here, it finds out by itself at the moment it matters.
 */
#ifndef VITRINE_SYS_HOST_H
#define VITRINE_SYS_HOST_H

#include "base/base.h"

enum host_state {
	HOST_WORKS,
	HOST_WEAKER,  /* Vitrine runs, with less: `detail` says what */
	HOST_MISSING, /* not there */
	HOST_STATE_COUNT_
};

struct host_check {
	const char *id;   /* stable, for machines: "namespaces", "landlock", ... */
	const char *what; /* for people */
	bool is_needed;   /* without it the native engine does not start for this user */
	bool is_tool;     /* another program that is found or not; none is required */
	enum host_state state;
	char detail[192]; /* what was seen */
	char fix[256];    /* what to do about it; "" when nothing need be done */
};

#define HOST_CHECKS_MAX ((size_t)48)

const char *host_state_name(enum host_state state); /* "works", "weaker", "missing" */

/* Fills at most max entries and returns how many. Takes some milliseconds, a few seconds on a host that hangs. */
size_t host_checks(struct host_check *v, size_t max);

/* The running kernel's version, from its release; cheap enough for every start. */
#define HOST_KERNEL(major, minor) ((major) << 16 | (minor))
unsigned host_kernel(void);

/* Field `i` of our own line in /etc/passwd, or NULL. getpwuid() would load libraries into a static program. */
char *host_passwd_field(size_t i);

/* No needed check is missing. */
bool host_can_run(const struct host_check *v, size_t n);

#endif
