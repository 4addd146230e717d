/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-store.c - vitrine-store: the verbs that need SQLite
 *
 * For: `events`, executed in place of `vitrine` for the verbs with VERB_STORE (cli/verbs.c), and `ingest`, started by
 *     keepers, which takes journals into the databases. Help, man pages and completions are made by `vitrine`, from the
 *     tables in cli/.
 * Links: libc and SQLite. No other program links SQLite.
 * Talks to: files in the state directory only: journals, databases, the registry.
 * Must not: be needed for the start of a sandbox, stay resident, or create a file that other users can read.
 * Promises: none. It runs with the user's rights on files of the user's own state directory.
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
