/* SPDX-License-Identifier: Apache-2.0 */
/* cli/engines.c - the verb `engines`: which walls there are, what each can honour, and which work here
 *
 * What an engine can honour is the very table that refuses plans (engine/engine.h). Whether it works here is found out by
 * starting it (cli/tried.h), where what it needs is there at all: the checks of sys/host.h for the native engine, for
 * the others their program.
 */
#include "base/program.h"
#include "cli/cli.h"
#include "cli/measure.h"
#include "cli/table.h"
#include "cli/tried.h"
#include "core/facts.h"
#include "core/workshop.h"
#include "engine/engine.h"
#include "sys/host.h"

enum { OPT_MEASURE = 1, OPT_QUICK };

const struct opt engines_opts[] = {
	TABLE_OPTS("print JSON", "print the names only; with --measure of those that start"),
	{ "measure", 0, NULL, "start each of them a few times and say what it costs", OPT_MEASURE },
	{ "quick", 0, NULL, "try nothing: say only what is installed", OPT_QUICK },
	{ NULL, 0, NULL, NULL, 0 },
};

/* What is known of this host. */
struct here {
	struct host_check *v;
	size_t n;
	struct tried tried[TRIED_MAX];
	bool is_quick;
};

static bool is_available(const struct engine *en, const struct host_check *v, size_t n)
{
	return en->render ? engine_is_here(en) : host_can_run(v, n);
}

/* May whoever asks use it as it is? */
static bool is_usable(const struct engine *en, const struct host_check *v, size_t n)
{
	return is_available(en, v, n) && (geteuid() != 0 || en->steps & BIT(STEP_ROOT));
}

/* A machine without KVM takes minutes; it is for tests. */
static void try_them(struct here *h, const char *state_dir)
{
	bool wanted[TRIED_MAX] = { false };

	for (size_t i = 0; engines[i].name; i++)
		wanted[i] = is_usable(&engines[i], h->v, h->n) && !engines[i].is_emulated;
	tried_all(state_dir, wanted, h->tried);
}

static const struct tried *tried_of(const struct here *h, const struct engine *en)
{
	return &h->tried[en - engines];
}

/* In one word. */
static const char *state_of(const struct here *h, const struct engine *en)
{
	if (!is_available(en, h->v, h->n))
		return "missing";
	if (!is_usable(en, h->v, h->n))
		return "not root";
	switch (tried_of(h, en)->state) {
	case TRIED_WORKS:
		return "works";
	case TRIED_FAILS:
		return "fails";
	case TRIED_NOT:
		break;
	}
	return "not tried";
}

/* The first number that its --version says; 0: none. */
static unsigned version_of(const char *tool)
{
	_cleanup_(buf_done) struct buf said = BUF(64 * KIB);
	struct err ignored = ERR_INIT;
	unsigned n = 0;
	const char *p;

	if (program_hear((const char *const[]){ tool, "--version", NULL }, &said, &ignored) < 0)
		return 0;
	for (p = buf_cstr(&said); *p && (*p < '0' || *p > '9');)
		p++;
	for (; *p >= '0' && *p <= '9' && n < 100000; p++)
		n = n * 10 + (unsigned)(*p - '0');
	return n;
}

/* What a client says of its daemon: the line that begins with "ERROR: " where there is one (docker's last line is about
 * printing), else the last line. */
static char *said_of_daemon(struct buf *heard)
{
	static const char mark[] = "ERROR: ";
	const char *at = strstr(buf_cstr(heard), mark);
	_free_ char *line = NULL;

	if (at)
		heard->n = (size_t)(at - heard->p) + strcspn(at, "\n");
	line = workshop_last_line(heard);
	return mem_str(str_starts(line, mark) ? line + strlen(mark) : line);
}

/* It did not start: what it lacks, where that can be asked; else what it said itself. */
static char *why_failed(const struct engine *en, const char *tool, const char *said)
{
	const char *const info[] = { tool, en->first ? en->first : "info",
				     en->first ? "info" : NULL, NULL };
	_cleanup_(buf_done) struct buf heard = BUF(MIB);
	struct err ignored = ERR_INIT;
	unsigned version = en->least ? version_of(tool) : 0;

	if (version && version < en->least)
		return mem_fmt("its version here is %u, and %u is the least that it needs", version,
			       en->least);
	if (en->is_told && program_hear(info, &heard, &ignored) < 0) {
		_free_ char *last = said_of_daemon(&heard);

		if (last[0])
			return mem_fmt("no daemon or service answers: %s", last);
	}
	return mem_str(said ? said : "it ended without a word");
}

/* Why it does not work; NULL: it does. */
static char *why_not(const struct here *h, const struct engine *en)
{
	_free_ char *tool = engine_tool(en);
	const struct tried *t = tried_of(h, en);

	if (en->render == NULL && !host_can_run(h->v, h->n))
		return mem_str("'vitrine doctor' names what this host lacks");
	if (en->tool && tool == NULL)
		return mem_fmt("the program '%s' is not installed", en->tool);
	if (en->needs_root && geteuid() != 0)
		return mem_str("only root can start it");
	if (!is_available(en, h->v, h->n))
		return mem_str("/dev/kvm is not there, or this user may not open it");
	if (!is_usable(en, h->v, h->n))
		return mem_str("for an ordinary user, or for root with --user NAME");
	if (t->state == TRIED_FAILS)
		return why_failed(en, tool, t->why);
	if (t->state == TRIED_NOT && !h->is_quick)
		return mem_str("too slow to be tried each time");
	return NULL;
}

static const char *honours(const struct engine *en, enum engine_step s)
{
	if (!(en->steps & BIT(s)))
		return "no";
	if (s == STEP_DISK && en->counts_no_files)
		return "bytes";
	if (s == STEP_PIDS && en->strength == STRENGTH_KERNEL)
		return "watched";
	return en->ends & BIT(s) ? "ends" : "yes";
}

static int width_of(const struct engine *en)
{
	size_t most = strlen(en->name);

	for (enum engine_step s = 0; s < STEP_COUNT_; s++)
		if (strlen(honours(en, s)) > most)
			most = strlen(honours(en, s));
	return (int)most;
}

static void put_steps(struct buf *out)
{
	buf_printf(out, "\n%-32s", "can honour");
	for (const struct engine *en = engines; en->name; en++)
		buf_printf(out, "  %*s", width_of(en), en->name);
	buf_putc(out, '\n');
	for (enum engine_step s = 0; s < STEP_COUNT_; s++) {
		buf_printf(out, "%-32s", engine_step_name(s));
		/* Right-aligned below the name, so that no line ends in blanks. */
		for (const struct engine *en = engines; en->name; en++)
			buf_printf(out, "  %*s", width_of(en), honours(en, s));
		buf_putc(out, '\n');
	}
}

static void put_table(const struct here *h, struct buf *out)
{
	buf_printf(out, "%-16s%-20s%-11s%s\n", "engine", "kernel", "here", "what it is");
	for (const struct engine *en = engines; en->name; en++)
		buf_printf(out, "%-16s%-20s%-11s%s%s\n", en->name,
			   engine_strength_name(en->strength), state_of(h, en), en->summary,
			   en->needs_root ? " (needs root)" : "");
	buf_putc(out, '\n');
	for (const struct engine *en = engines; en->name; en++) {
		_free_ char *why = why_not(h, en);

		if (why)
			buf_printf(out, "%-16s%s: %s\n", en->name, state_of(h, en), why);
	}
	put_steps(out);
	buf_puts(out, "\n\"works\": it was started here within the last hour. "
		      "A plan that asks for what its engine cannot honour is refused.\n"
		      "\"ends\": when it comes to it the sandbox is ended rather than left "
		      "without. "
		      "\"bytes\": of private files, not\nhow many there are; say ',optional'. "
		      "\"watched\": counted now and then, not by its kernel; say ',optional'.\n");
	for (const struct engine *en = engines; en->name; en++)
		if (en->unfit)
			buf_printf(out, "%s: %s; --engine auto does not pick it.\n", en->name,
				   en->unfit);
}

/* null: nobody tried, and it might. */
static const char *works_json(const struct here *h, const struct engine *en)
{
	if (h->is_quick && is_usable(en, h->v, h->n))
		return "null";
	return tried_of(h, en)->state == TRIED_WORKS ? "true" : "false";
}

static void put_json_steps(const struct engine *en, struct buf *out)
{
	buf_puts(out, ",\"steps\":{");
	for (enum engine_step s = 0; s < STEP_COUNT_; s++)
		buf_printf(out, "%s\"%s\":\"%s\"", s ? "," : "", engine_step_name(s),
			   honours(en, s));
	buf_puts(out, "}}");
}

static void put_json(const struct here *h, struct buf *out)
{
	buf_puts(out, "{\"engines\":[");
	for (const struct engine *en = engines; en->name; en++) {
		_free_ char *why = why_not(h, en);

		buf_printf(out, "%s\n{\"name\":\"%s\",\"summary\":", en == engines ? "" : ",",
			   en->name);
		buf_json(out, en->summary);
		buf_printf(out,
			   ",\"kernel\":\"%s\",\"needs_root\":%s,\"here\":%s,\"works\":%s,"
			   "\"untested\":%s,\"why\":",
			   engine_strength_name(en->strength), en->needs_root ? "true" : "false",
			   is_available(en, h->v, h->n) ? "true" : "false", works_json(h, en),
			   en->is_untested ? "true" : "false");
		if (why)
			buf_json(out, why);
		else
			buf_puts(out, "null");
		put_json_steps(en, out);
	}
	buf_puts(out, "\n]}\n");
}

static const struct column columns[] = {
	{ "name", "Name", "engine", COLUMN_TEXT },
	{ "kernel", "Kernel", "kernel", COLUMN_TEXT },
	{ "works", "Works", "works", COLUMN_BOOL },
	{ "needs_root", "NeedsRoot", NULL, COLUMN_BOOL },
	{ "untested", "Untested", NULL, COLUMN_BOOL },
	{ "summary", "Summary", "what it is", COLUMN_TEXT },
	{ "why", "Why", NULL, COLUMN_TEXT },
};

static int show_rows(const struct here *h, const struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };

	for (const struct engine *en = engines; en->name; en++) {
		struct cell *c = table_row(&t);

		c[0].text = mem_str(en->name);
		c[1].text = mem_str(engine_strength_name(en->strength));
		c[2] = (struct cell){ .num = tried_of(h, en)->state == TRIED_WORKS,
				      .is_null = h->is_quick };
		c[3].num = en->needs_root;
		c[4].num = en->is_untested;
		c[5].text = mem_str(en->summary);
		c[6].text = why_not(h, en);
	}
	return table_show(&t, how, e);
}

/* ---- --measure ---- */

/* No names: all of them. */
static bool is_asked(char *const *names, const char *name)
{
	char *const *at = names;

	while (*at && !str_eq(*at, name))
		at++;
	return *names == NULL || *at;
}

static const struct column cost_columns[] = {
	{ "name", "Name", "engine", COLUMN_TEXT },
	{ "best_ms", "BestMs", "best", COLUMN_TEXT },
	{ "median_ms", "MedianMs", "median", COLUMN_TEXT },
};

static void add_cost(struct table *t, const char *name, const struct measured *m)
{
	struct cell *c = table_row(t);

	c[0].text = mem_str(name);
	c[1].text = mem_fmt("%.2f", (double)m->best_ns / 1e6);
	c[2].text = mem_fmt("%.2f", (double)m->median_ns / 1e6);
}

/* For people and as JSON into `out`, else as rows of those that start. */
static void put_costs(const struct host_check *v, size_t n, char *const *names, bool is_json,
		      struct table *t, struct buf *out)
{
	bool has_one = false;

	buf_puts(out, is_json ? "{\"engines\":["
			      : "engine          best      median    of a start and end of "
				"'true'\n");
	for (const struct engine *en = engines; en->name; en++) {
		struct measured m = { 0 };

		if (!is_asked(names, en->name))
			continue;
		_cleanup_(buf_done) struct buf why = BUF(4 * KIB);
		bool starts = is_available(en, v, n) && !en->is_untested &&
			      measure_start(en->name, &m, &why);

		if (is_json && starts)
			buf_printf(out, "%s\n{\"name\":\"%s\",\"best_ms\":%.2f,\"median_ms\":%.2f}",
				   has_one ? "," : "", en->name, (double)m.best_ns / 1e6,
				   (double)m.median_ns / 1e6);
		else if (!is_json && starts)
			buf_printf(out, "%-16s%6.1f ms %6.1f ms\n", en->name,
				   (double)m.best_ns / 1e6, (double)m.median_ns / 1e6);
		else if (!is_json)
			buf_printf(out, "%-16sdoes not start here%s%s\n", en->name,
				   why.n ? ": " : "", buf_cstr(&why));
		if (starts)
			add_cost(t, en->name, &m);
		has_one |= starts;
	}
	buf_puts(out, is_json ? "\n]}\n" : "");
}

static int show_costs(const struct host_check *v, size_t n, char *const *names,
		      const struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = cost_columns,
						 .n_columns = ARRAY_LEN(cost_columns) };
	_cleanup_(buf_done) struct buf out = BUF(MIB);

	put_costs(v, n, names, how->as_json, &t, &out);
	return table_is_asked(how) ? table_show(&t, how, e) : cli_print(&out, e);
}

static int show_engines(struct here *h, const struct table_how *how, struct err *e)
{
	_cleanup_(host_done) struct host host = { .ws_fd = FD_NONE };
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	int r = host_init(&host, NULL, e);

	if (r < 0)
		return r;
	/* Names are the same whatever works. */
	if (!h->is_quick && !how->is_quiet)
		try_them(h, host.state_dir);
	if (table_is_asked(how))
		return show_rows(h, how, e);
	if (how->as_json)
		put_json(h, &out);
	else
		put_table(h, &out);
	return cli_print(&out, e);
}

int cmd_engines(int argc, char **argv, struct err *e)
{
	_free_ struct host_check *v = mem_new(HOST_CHECKS_MAX, sizeof(*v));
	struct here h = { .v = v };
	struct table_how how = { 0 };
	bool measures = false;
	struct opts o;
	int r;

	opts_init(&o, engines_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0) {
		if (table_opt(&how, &o, r))
			continue;
		measures |= r == OPT_MEASURE;
		h.is_quick |= r == OPT_QUICK;
	}
	if (r == 0 && o.at < argc && !measures)
		r = err_set(e, ERR_USAGE, EINVAL, "engines takes no arguments");
	for (int i = o.at; r == 0 && i < argc; i++)
		if (engine_find(argv[i]) == NULL)
			r = err_set(e, ERR_NOTFOUND, ENOENT,
				    "there is no engine '%.40s'; 'vitrine engines' lists them",
				    argv[i]);
	if (r < 0)
		return r;
	h.n = host_checks(v, HOST_CHECKS_MAX);
	if (measures)
		return show_costs(v, h.n, argv + o.at, &how, e);
	r = show_engines(&h, &how, e);
	tried_done(h.tried);
	return r;
}
