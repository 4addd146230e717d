/* SPDX-License-Identifier: Apache-2.0 */
/* store_main.c - vitrine-store: the verbs that need SQLite
 *
 * `vitrine` executes this in its place for verbs with VERB_STORE (cli/verbs.c), and keepers start `ingest`. Help, man
 * pages and completions are made by `vitrine`, from the tables in cli/.
 */
#include <sys/stat.h>

#include "cli/store_opts.h"

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv, struct err *e);
} table[] = {
	{ "events", cmd_events },
	{ "ingest", cmd_ingest },
};

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int r;

	(void)umask(077); /* what happened is nobody else's business */
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(table); i++) {
		if (!str_eq(table[i].name, argv[1]))
			continue;
		r = table[i].fn(argc - 1, argv + 1, &e);
		if (r >= 0)
			return r;
		cli_complain(e.msg);
		return err_exit_code(&e);
	}
	cli_complain("vitrine-store is run by 'vitrine'; see 'vitrine help'");
	return 2;
}
