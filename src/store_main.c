/* SPDX-License-Identifier: Apache-2.0 */
/* store_main.c - vitrine-store: the verbs that need SQLite
 *
 * `vitrine` executes this in its place for verbs with VERB_STORE (cli/verbs.c), and keepers start `ingest`. Help, man
 * pages and completions are made by `vitrine`, from the tables in cli/.
 */
#include <sys/stat.h>

#include "cli/store_opts.h"

static const struct sibling_verb table[] = {
	{ "events", cmd_events },
	{ "ingest", cmd_ingest },
	{ NULL },
};

int main(int argc, char **argv)
{
	(void)umask(077); /* what happened is nobody else's business */
	return cli_sibling(table, "vitrine-store", argc, argv);
}
