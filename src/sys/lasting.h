/* SPDX-License-Identifier: Apache-2.0 */
/* sys/lasting.h - how a process outlives the login that started it
 *
 * Without systemd a session of its own is enough. With systemd a process of a login belongs to the login's control group:
 * logind kills that group when KillUserProcesses=yes, and stops the user's manager after the last logout unless the user
 * lingers. So a process that is to last is moved into a transient unit (a scope) of the manager, and lingering is
 * switched on where it is off. root's manager is the system's own, which no logout stops.
 */
#ifndef VITRINE_SYS_LASTING_H
#define VITRINE_SYS_LASTING_H

#include "base/err.h"

struct login {
	bool has_systemd; /* the host was booted with it */
	bool has_manager; /* a manager of this user can be asked for a unit */
	bool is_root;
	bool lingers; /* the manager lives on without a login */
	bool kills;   /* KillUserProcesses=yes */
};

enum lasting {
	LASTING_SESSION, /* a session of its own; no logout ends it */
	LASTING_UNIT,    /* a transient unit of the manager */
	LASTING_LINGER,  /* the same, once lingering is switched on */
	LASTING_NOT,     /* the last logout ends it */
	LASTING_COUNT_
};

/* Pure. may_linger: lingering has not been refused yet. */
enum lasting lasting_decide(const struct login *l, bool may_linger);

void lasting_look(struct login *ret);

/* Moves the calling process to where no logout ends it, as lasting_decide() says. Returns what was reached. `why` has a
 * sentence for the user: it does not last, or lingering was switched on; else it is empty. setsid() is the caller's. */
enum lasting lasting_enter(struct err *why);

/* Of a text in logind's form: KillUserProcesses=yes (1), =no (0), not there (-1). The last one counts. */
int lasting_kills(const char *text);

#endif
