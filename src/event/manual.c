/* SPDX-License-Identifier: Apache-2.0 */
/* event/manual.c - docs/EVENTS.md and docs/events.schema.json, from the table
 *
 * The files are committed so that people and editors find them; event/manual_test compares them with what this
 * makes, and writes them anew when VITRINE_UPDATE is set (`make docs`).
 */
#include "event/event.h"

static bool is_shown(const struct event_type_def *d)
{
	return !(d->flags & EVENT_INTERNAL);
}

/* ---- JSON Schema ---- */

static const char *schema_type(unsigned kind)
{
	switch ((enum event_kind)kind) {
	case EVENT_TEXT:
		return "{ \"type\": \"string\"";
	case EVENT_U64:
		return "{ \"type\": \"integer\", \"minimum\": 0";
	case EVENT_BOOL:
		return "{ \"type\": \"boolean\"";
	case EVENT_LIST:
		return "{ \"type\": \"array\", \"items\": { \"type\": \"string\" }";
	case EVENT_KIND_COUNT_:
		break;
	}
	return "{";
}

static void schema_keys(struct buf *out)
{
	for (size_t i = 0; i < event_keys_n; i++) {
		const struct event_key_def *k = &event_keys[i];

		buf_printf(out, "    \"%s\": %s, \"description\": ", k->name, schema_type(k->kind));
		buf_json(out, k->help);
		buf_puts(out, i + 1 < event_keys_n ? " },\n" : " }\n");
	}
}

static void schema_one(const struct event_type_def *d, struct buf *out)
{
	buf_puts(out, "    {\n      \"description\": ");
	buf_json(out, d->help);
	buf_printf(out,
		   ",\n      \"properties\": {\n        \"type\": { \"const\": \"%s\" },\n"
		   "        \"data\": {\n          \"type\": \"object\",\n          \"required\": "
		   "[",
		   d->name);
	for (size_t i = 0; i < d->n_needed; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : "", event_key_def(d->keys[i])->name);
	buf_puts(out, "],\n          \"properties\": {\n");
	for (size_t i = 0; i < d->n_keys; i++) {
		const char *name = event_key_def(d->keys[i])->name;

		buf_printf(out, "            \"%s\": { \"$ref\": \"#/$defs/%s\" }%s\n", name, name,
			   i + 1 < d->n_keys ? "," : "");
	}
	buf_puts(out, "          }\n        }\n      }\n    }");
}

void event_schema(struct buf *out)
{
	bool is_first = true;

	buf_puts(out, "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
		      "  \"title\": \"Vitrine event\",\n"
		      "  \"description\": \"One line of 'vitrine events --json'. Made from the "
		      "table of "
		      "events; see EVENTS.md. A newer Vitrine may add types and fields.\",\n"
		      "  \"type\": \"object\",\n"
		      "  \"required\": [\"time\", \"type\", \"sandbox\", \"session\", \"run\", "
		      "\"number\", \"data\"],\n"
		      "  \"properties\": {\n"
		      "    \"time\": { \"type\": \"string\", \"format\": \"date-time\", "
		      "\"description\": "
		      "\"when it was put on record, UTC, with nanoseconds\" },\n"
		      "    \"type\": { \"type\": \"string\" },\n"
		      "    \"sandbox\": { \"type\": \"string\" },\n"
		      "    \"session\": { \"type\": [\"string\", \"null\"], \"description\": \"id "
		      "of the "
		      "session; null: about the sandbox as a whole\" },\n"
		      "    \"run\": { \"type\": \"string\", \"description\": \"id of the keeper's "
		      "run\" "
		      "},\n"
		      "    \"number\": { \"type\": \"integer\", \"minimum\": 0, \"description\": "
		      "\"strictly increasing within a run, whatever the clock does\" },\n"
		      "    \"data\": { \"type\": \"object\" }\n  },\n  \"oneOf\": [\n");
	for (size_t i = 0; i < event_types_n; i++) {
		if (!is_shown(&event_types[i]))
			continue;
		if (!is_first)
			buf_puts(out, ",\n");
		is_first = false;
		schema_one(&event_types[i], out);
	}
	buf_puts(out, "\n  ],\n  \"$defs\": {\n");
	schema_keys(out);
	buf_puts(out, "  }\n}\n");
}

/* ---- the page for people ---- */

static void manual_type(const struct event_type_def *d, struct buf *out)
{
	buf_printf(out, "### %s\n\n%s%s\n\n", d->name, d->help,
		   d->flags & EVENT_VERDICT ? " Written before the act." : "");
	buf_puts(out, "| field | kind | |\n|---|---|---|\n");
	for (size_t i = 0; i < d->n_keys; i++) {
		static const char *const kinds[EVENT_KIND_COUNT_] = { "", "text", "number",
								      "yes or no", "list of text" };
		const struct event_key_def *k = event_key_def(d->keys[i]);

		buf_printf(out, "| `%s`%s | %s | %s |\n", k->name, i < d->n_needed ? " *" : "",
			   kinds[k->kind], k->help);
	}
	buf_putc(out, '\n');
}

static const char manual_head[] =
	"# Events\n"
	"\n"
	"*Made from `src/event/types.def` by `make docs`; a test fails when the two differ.*\n"
	"\n"
	"Everything that happens in a sandbox is an event: one typed record, written outside the "
	"agent's reach. `vitrine\n"
	"events` prints them as lines for people, or with `--json` as one JSON object per line "
	"(`docs/events.schema.json`).\n"
	"\n"
	"- **When it is on record.** What says \"written before the act\" below is: if it cannot "
	"be "
	"written, the act is refused\n"
	"  (but a file is taken into quarantine all the same). A connection is made when the "
	"gate's verdict about it is written;\n"
	"  requests on an inspected one do not wait. Observations are written in batches, at most "
	"50 ms after they were\n"
	"  made. What is written survives `kill -9` of the keeper.\n"
	"- **Order.** `number` increases strictly within a run, whatever the clock does. `time` is "
	"the keeper's clock.\n"
	"- **Text from inside** is kept as it was, up to 16 KiB for each field; a longer one ends "
	"in `[+N bytes]`. Control\n"
	"  characters, terminal escapes and bidirectional overrides are escaped wherever a person "
	"sees them; in JSON, bytes\n"
	"  that are no UTF-8 become U+FFFD.\n"
	"- **Whole and unchanged.** In the store each event carries a hash over itself and the one "
	"before it in the same\n"
	"  session; head and count are in the session's summary (`vitrine events --sessions`) and "
	"in the registry.\n"
	"  `vitrine events --verify` finds edited, missing, reordered and cut-off events and says "
	"where. This protects\n"
	"  against the agent, against accidents and against edits after the fact; whoever may "
	"write both database and\n"
	"  registry as you can write both anew.\n"
	"- **How long.** `events.max_age` and `events.max_size` of the policy bound it. Whole "
	"ended "
	"sessions go first, the\n"
	"  oldest before the others, and `events.dropped` says what went.\n"
	"- **Said by the inside.** With `features.telemetry` in a policy (or `--telemetry`) a "
	"receiver listens on the sandbox's\n"
	"  loopback, network or none: OpenTelemetry at `/v1/logs`, `/v1/metrics`, `/v1/traces` "
	"(`OTEL_EXPORTER_OTLP_ENDPOINT`\n"
	"  points there), reports of tool calls at `POST /vitrine/v1/calls` (`VITRINE_EVENTS` "
	"holds the port; `vitrine hook` uses\n"
	"  it). What a session prints as JSON lines (Claude Code, Codex, Gemini CLI, opencode) is "
	"looked through for tool calls\n"
	"  too. It becomes `otel`, `tool.call` and `guard.decision` and nothing else, marked "
	"`inside`: an agent may say there what\n"
	"  it likes, and leave out what it likes. At most an eighth of `events.max_size` is kept "
	"of "
	"one run; then the port is\n"
	"  closed, and a `note` says so. A report is one JSON object: `tool`, and where known "
	"`call`, `agent`, `input`, `output`,\n"
	"  `code`, `duration_ns`, `verdict`, `rule`, `message`.\n"
	"- **What is not seen.** The native engine asks the kernel nothing at each system call: a "
	"refusal by mounts, Landlock or\n"
	"  the filter is an error code inside and no event. `wall.refused` is what the gate and "
	"the limits refuse and what is found\n"
	"  at the end (a killed process); `wall.hinted` is a guess made from a command's last "
	"words. "
	"`process.exec` is a program\n"
	"  that ran when the sandbox was looked at, after a second and then every five, with the "
	"arguments it showed; one that\n"
	"  came and went between two looks has none.\n"
	"\n"
	"Each object has `time`, `type`, `sandbox`, `session` (null: about the sandbox as a "
	"whole), "
	"`run`, `number` and\n"
	"`data`; the fields below are those of `data`, and the ones with a star are always there. "
	"A newer Vitrine may add\n"
	"types and fields: skip what you do not know.\n"
	"\n"
	"## Types\n"
	"\n";

void event_manual(struct buf *out)
{
	buf_puts(out, manual_head);
	for (size_t i = 0; i < event_types_n; i++)
		if (is_shown(&event_types[i]))
			manual_type(&event_types[i], out);
	/* One newline at the end of the file. */
	if (out->n > 0 && !out->is_over)
		out->p[--out->n] = '\0';
}
