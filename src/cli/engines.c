/* SPDX-License-Identifier: Apache-2.0 */
/* cli/engines.c - the verb `engines`: which walls there are, what each can honour, and which work here
 *
 * What an engine can honour is the very table that refuses plans (engine/engine.h). Whether it works here is what
 * the checks of sys/host.h found for the native engine; for the others, whether their program is there.
 */
#include "cli/cli.h"
#include "cli/measure.h"
#include "cli/table.h"
#include "engine/engine.h"
#include "sys/host.h"

enum { OPT_MEASURE = 1 };

const struct opt engines_opts[] = {
	TABLE_OPTS("print JSON", "print the names only; with --measure of those that start"),
	{ "measure", 0, NULL, "start each of them a few times and say what it costs", OPT_MEASURE },
	{ NULL, 0, NULL, NULL, 0 },
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

static void put_table(const struct host_check *v, size_t n, struct buf *out)
{
	buf_printf(out, "%-16s%-20s%-10s%s\n", "engine", "kernel", "here", "what it is");
	for (const struct engine *en = engines; en->name; en++)
		buf_printf(out, "%-16s%-20s%-10s%s%s\n", en->name,
			   engine_strength_name(en->strength),
			   is_usable(en, v, n)      ? "works"
			   : is_available(en, v, n) ? "not root"
						    : "missing",
			   en->summary, en->needs_root ? " (needs root)" : "");
	put_steps(out);
	buf_puts(out, "\nA plan that asks for what its engine cannot honour is refused. \"ends\": "
		      "when "
		      "it comes to it the\nsandbox is ended rather than left without. \"bytes\": "
		      "of "
		      "private files, not how many there are; say ',optional'. \"watched\": "
		      "counted\nnow and then, not by its kernel; say ',optional'.\n"
		      "`vitrine doctor` says why something is missing here.\n");
	for (const struct engine *en = engines; en->name; en++)
		if (en->unfit)
			buf_printf(out, "%s: %s; --engine auto does not pick it.\n", en->name,
				   en->unfit);
	if (geteuid() == 0)
		buf_puts(out, "\"not root\": it is here for an ordinary user, or for root with "
			      "--user NAME.\n");
}

static void put_json(const struct host_check *v, size_t n, struct buf *out)
{
	buf_puts(out, "{\"engines\":[");
	for (const struct engine *en = engines; en->name; en++) {
		buf_printf(out, "%s\n{\"name\":\"%s\",\"summary\":", en == engines ? "" : ",",
			   en->name);
		buf_json(out, en->summary);
		buf_printf(out,
			   ",\"kernel\":\"%s\",\"needs_root\":%s,\"here\":%s,\"works\":%s,"
			   "\"untested\":%s,\"steps\":{",
			   engine_strength_name(en->strength), en->needs_root ? "true" : "false",
			   is_available(en, v, n) ? "true" : "false",
			   is_usable(en, v, n) ? "true" : "false",
			   en->is_untested ? "true" : "false");
		for (enum engine_step s = 0; s < STEP_COUNT_; s++)
			buf_printf(out, "%s\"%s\":\"%s\"", s ? "," : "", engine_step_name(s),
				   honours(en, s));
		buf_puts(out, "}}");
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
};

static int show_rows(const struct host_check *v, size_t n, const struct table_how *how,
		     struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };

	for (const struct engine *en = engines; en->name; en++) {
		struct cell *c = table_row(&t);

		c[0].text = mem_str(en->name);
		c[1].text = mem_str(engine_strength_name(en->strength));
		c[2].num = is_usable(en, v, n);
		c[3].num = en->needs_root;
		c[4].num = en->is_untested;
		c[5].text = mem_str(en->summary);
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

int cmd_engines(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	_free_ struct host_check *v = mem_new(HOST_CHECKS_MAX, sizeof(*v));
	struct table_how how = { 0 };
	bool measures = false;
	struct opts o;
	size_t n;
	int r;

	opts_init(&o, engines_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0)
		measures |= !table_opt(&how, &o, r);
	if (r == 0 && o.at < argc && !measures)
		r = err_set(e, ERR_USAGE, EINVAL, "engines takes no arguments");
	for (int i = o.at; r == 0 && i < argc; i++)
		if (engine_find(argv[i]) == NULL)
			r = err_set(e, ERR_NOTFOUND, ENOENT,
				    "there is no engine '%.40s'; 'vitrine engines' lists them",
				    argv[i]);
	if (r < 0)
		return r;
	n = host_checks(v, HOST_CHECKS_MAX);
	if (measures)
		return show_costs(v, n, argv + o.at, &how, e);
	if (table_is_asked(&how))
		return show_rows(v, n, &how, e);
	if (how.as_json)
		put_json(v, n, &out);
	else
		put_table(v, n, &out);
	return cli_print(&out, e);
}
