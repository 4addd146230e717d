/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/lasting.h"

#include "base/test.h"

TEST(every_kind_of_host)
{
	static const struct {
		struct login l;
		enum lasting first,
			refused; /* before lingering was tried, and after it was refused */
	} v[] = {
		/* no systemd: nothing ends with a login, whatever the rest says */
		{ { .kills = true }, LASTING_SESSION, LASTING_SESSION },
		{ { .is_root = true }, LASTING_SESSION, LASTING_SESSION },
		/* root's manager is the system's */
		{ { .has_systemd = true, .has_manager = true, .is_root = true, .kills = true },
		  LASTING_UNIT,
		  LASTING_UNIT },
		{ { .has_systemd = true, .has_manager = true, .lingers = true, .kills = true },
		  LASTING_UNIT,
		  LASTING_UNIT },
		/* without lingering a unit ends with the manager: stay in the login's group unless that is killed */
		{ { .has_systemd = true, .has_manager = true }, LASTING_LINGER, LASTING_SESSION },
		{ { .has_systemd = true, .has_manager = true, .kills = true },
		  LASTING_LINGER,
		  LASTING_NOT },
		/* no manager to ask: cron, su without PAM */
		{ { .has_systemd = true }, LASTING_SESSION, LASTING_SESSION },
		{ { .has_systemd = true, .kills = true }, LASTING_NOT, LASTING_NOT },
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		CHECK_INT(lasting_decide(&v[i].l, true), v[i].first);
		CHECK_INT(lasting_decide(&v[i].l, false), v[i].refused);
	}
}

TEST(logind_files)
{
	CHECK_INT(lasting_kills(""), -1);
	CHECK_INT(lasting_kills("#KillUserProcesses=yes\n"), -1);
	CHECK_INT(lasting_kills("[Login]\nKillUserProcesses=yes\n"), 1);
	CHECK_INT(lasting_kills("[Login]\n  KillUserProcesses=no\nKillUserProcesses=1"), 1);
	CHECK_INT(lasting_kills("KillUserProcesses=yes\nKillUserProcesses=no\n"), 0);
	CHECK_INT(lasting_kills("KillUserProcesses = True\n"), 1);
	CHECK_INT(lasting_kills("KillUserProcesses=\tON\n"), 1);
	CHECK_INT(lasting_kills("KillUserProcesses=off\n"), 0);
	CHECK_INT(lasting_kills("KillUserProcessesX=yes\n"), -1);
}

TEST_MAIN()
