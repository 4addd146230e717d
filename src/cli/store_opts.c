/* SPDX-License-Identifier: Apache-2.0 */
/* cli/store_opts.c - options of the verbs that vitrine-store carries out
 *
 * `vitrine` prints their help and completions, vitrine-store parses them: the tables are linked into both.
 */
#include "cli/store_opts.h"

const struct opt events_opts[] = {
	{ "follow", 'f', NULL, "go on and print new events as they happen", OPT_FOLLOW },
	{ "since", 0, "TIME",
	  "only from then on: 10m, 2h, 3d ago, today, yesterday, or 2026-01-31[T12:00[:00]]",
	  OPT_SINCE },
	{ "type", 0, "TYPE",
	  "only events of this type; a group such as 'net' means all of it; may be repeated",
	  OPT_TYPE },
	{ "session", 0, "ID", "only this session, or with 'sandbox' only what belongs to none",
	  OPT_SESSION },
	{ "tail", 'n', "N", "only the last N of those already there", OPT_TAIL },
	{ "sessions", 0, NULL,
	  "the summary of each session instead, newest first: how it ended, what it used, how many "
	  "events it has and the hash of the last",
	  OPT_SESSIONS },
	{ "verify", 0, NULL,
	  "check that every event is there and unchanged, and print what was found", OPT_VERIFY },
	{ "json", 0, NULL, "one JSON object per line", OPT_JSON },
	{ "quiet", 'q', NULL, "only ids, RUN:NUMBER; with --verify only the exit status",
	  OPT_QUIET },
	{ "format", 0, "TEXT",
	  "one line per event, with {{.Time}} {{.Type}} {{.Sandbox}} {{.Session}} {{.Run}} "
	  "{{.Number}} or a field such as {{.status}}",
	  OPT_FORMAT },
	{ "guard", 0, NULL, "what the guard decided on this host, outside of sandboxes",
	  OPT_GUARD },
	{ "file", 0, "PATH", "read this events.db instead of the state directory", OPT_FILE },
	{ NULL },
};

const struct opt ingest_opts[] = {
	{ "state", 0, "PATH", "state directory", OPT_STATE },
	{ "wait", 0, NULL, "wait for another ingest to end, then do one", OPT_WAIT },
	{ NULL },
};
