/* SPDX-License-Identifier: Apache-2.0 */
/* cli/engines.c - the verb `engines`: which walls there are, what each can honour, and which work here
 *
 * What an engine can honour is the very table that refuses plans (engine/engine.h). Whether it works here is what
 * the checks of sys/host.h found for the native engine; for the others, whether their program is there.
 */
#include "cli/cli.h"
#include "cli/measure.h"
#include "engine/engine.h"
#include "sys/host.h"

enum { OPT_JSON = 1, OPT_MEASURE };

const struct opt engines_opts[] = {
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ "measure", 0, NULL, "start each of them a few times and say what it costs", OPT_MEASURE },
	{ NULL, 0, NULL, NULL, 0 },
};

static bool is_available(const struct engine *en, const struct host_check *v, size_t n)
{
	return en->render ? engine_is_here(en) : host_can_run(v, n);
}

static const char *honours(const struct engine *en, enum engine_step s)
{
	return !(en->steps & BIT(s)) ? "no" : en->ends & BIT(s) ? "ends" : "yes";
}

static void put_steps(struct buf *out)
{
	buf_printf(out, "\n%-24s", "can honour");
	for (const struct engine *en = engines; en->name; en++)
		buf_printf(out, "  %s", en->name);
	buf_putc(out, '\n');
	for (enum engine_step s = 0; s < STEP_COUNT_; s++) {
		buf_printf(out, "%-24s", engine_step_name(s));
		/* Right-aligned below the name, so that no line ends in blanks. */
		for (const struct engine *en = engines; en->name; en++)
			buf_printf(out, "  %*s", (int)strlen(en->name), honours(en, s));
		buf_putc(out, '\n');
	}
}

static void put_table(const struct host_check *v, size_t n, struct buf *out)
{
	buf_printf(out, "%-16s%-20s%-10s%s\n", "engine", "kernel", "here", "what it is");
	for (const struct engine *en = engines; en->name; en++)
		buf_printf(out, "%-16s%-20s%-10s%s%s\n", en->name,
			   engine_strength_name(en->strength),
			   is_available(en, v, n) ? "works" : "missing", en->summary,
			   en->needs_root ? " (needs root)" : "");
	put_steps(out);
	buf_puts(out, "\nA plan that asks for what its engine cannot honour is refused. \"ends\": "
		      "when "
		      "it comes to it the\nsandbox is ended rather than left without. `vitrine "
		      "doctor` says why something is missing here.\n");
}

static void put_json(const struct host_check *v, size_t n, struct buf *out)
{
	buf_puts(out, "{\"engines\":[");
	for (const struct engine *en = engines; en->name; en++) {
		buf_printf(out, "%s\n{\"name\":\"%s\",\"summary\":", en == engines ? "" : ",",
			   en->name);
		buf_json(out, en->summary);
		buf_printf(out,
			   ",\"kernel\":\"%s\",\"needs_root\":%s,\"works\":%s,\"untested\":%s,"
			   "\"steps\":{",
			   engine_strength_name(en->strength), en->needs_root ? "true" : "false",
			   is_available(en, v, n) ? "true" : "false",
			   en->is_untested ? "true" : "false");
		for (enum engine_step s = 0; s < STEP_COUNT_; s++)
			buf_printf(out, "%s\"%s\":\"%s\"", s ? "," : "", engine_step_name(s),
				   honours(en, s));
		buf_puts(out, "}}");
	}
	buf_puts(out, "\n]}\n");
}

/* No names: all of them. */
static bool is_asked(char *const *names, const char *name)
{
	char *const *at = names;

	while (*at && !str_eq(*at, name))
		at++;
	return *names == NULL || *at;
}

static void put_costs(const struct host_check *v, size_t n, char *const *names, bool is_json,
		      struct buf *out)
{
	bool has_one = false;

	buf_puts(out, is_json ? "{\"engines\":["
			      : "engine          best      median    of a start and end of "
				"'true'\n");
	for (const struct engine *en = engines; en->name; en++) {
		struct measured m = { 0 };

		if (!is_asked(names, en->name))
			continue;
		bool starts =
			is_available(en, v, n) && !en->is_untested && measure_start(en->name, &m);

		if (is_json && starts)
			buf_printf(out, "%s\n{\"name\":\"%s\",\"best_ms\":%.2f,\"median_ms\":%.2f}",
				   has_one ? "," : "", en->name, (double)m.best_ns / 1e6,
				   (double)m.median_ns / 1e6);
		else if (!is_json && starts)
			buf_printf(out, "%-16s%6.1f ms %6.1f ms\n", en->name,
				   (double)m.best_ns / 1e6, (double)m.median_ns / 1e6);
		else if (!is_json)
			buf_printf(out, "%-16sdoes not start here\n", en->name);
		has_one |= starts;
	}
	buf_puts(out, is_json ? "\n]}\n" : "");
}

int cmd_engines(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	_free_ struct host_check *v = mem_new(HOST_CHECKS_MAX, sizeof(*v));
	bool is_json = false, measures = false;
	struct opts o;
	size_t n;
	int r;

	opts_init(&o, engines_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0)
		*(r == OPT_JSON ? &is_json : &measures) = true;
	if (r == 0 && o.at < argc && !measures)
		r = err_set(e, ERR_USAGE, EINVAL, "engines takes no arguments");
	if (r < 0)
		return r;
	n = host_checks(v, HOST_CHECKS_MAX);
	if (measures) {
		put_costs(v, n, argv + o.at, is_json, &out);
		return cli_print(&out, e);
	}
	if (is_json)
		put_json(v, n, &out);
	else
		put_table(v, n, &out);
	return cli_print(&out, e);
}
