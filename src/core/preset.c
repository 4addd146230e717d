/* SPDX-License-Identifier: Apache-2.0 */
/* core/preset.c - see preset.h */
#include "core/preset.h"

static const char *const shell_argv[] = { "bash", "-l", NULL };

const struct preset presets[] = {
	{ "shell", shell_argv, NULL, "a login shell" },
	{ NULL, NULL, NULL, NULL },
};

const struct preset *preset_find(const char *name)
{
	for (const struct preset *p = presets; p->name; p++)
		if (str_eq(p->name, name))
			return p;
	return NULL;
}

static size_t count(const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

const char **preset_command(const struct preset *p, char *const *words)
{
	size_t more = count((const char *const *)words);
	bool is_added = more == 0 || words[0][0] == '-';
	size_t own = is_added ? count(p->argv) : 0;
	const char **argv = mem_new(own + more + 1, sizeof(*argv));

	for (size_t i = 0; i < own; i++)
		argv[i] = p->argv[i];
	for (size_t i = 0; i < more; i++)
		argv[own + i] = words[i];
	return argv;
}
