/* SPDX-License-Identifier: Apache-2.0 */
/* base/sabotage.c - see sabotage.h
 *
 * The list is read once, before the environment is wiped, and asked again between clone and exec.
 */
#include "base/sabotage.h"

#ifdef VITRINE_SABOTAGE
static char walls[512];

__attribute__((constructor)) static void read_list(void)
{
	const char *v = getenv("VITRINE_SABOTAGE");

	(void)snprintf(walls, sizeof(walls), ",%s,", v ? v : "");
}

bool sabotaged(const char *wall)
{
	char needle[64];

	(void)snprintf(needle, sizeof(needle), ",%s,", wall);
	return *wall != '\0' && strstr(walls, needle) != NULL; /* an empty list is ",," */
}
void sabotage_env(char *to, size_t size)
{
	(void)snprintf(to, size, "VITRINE_SABOTAGE=%s", walls);
}
#endif

char *const *sabotage_bare_env(void)
{
#ifdef VITRINE_SABOTAGE
	static char list[512];
	static char *env[] = { list, NULL };

	sabotage_env(list, sizeof(list));
#else
	static char *env[] = { NULL };
#endif
	return env;
}
