/* SPDX-License-Identifier: Apache-2.0 */
/* cli/doctor.c - the verb `doctor`: what this host can do, as a table or as JSON
 *
 * Both forms are made from the same array, and every row says in words what its sign says. Exit status 0 means
 * that the native engine can run for this user; 1 that a row it needs is missing.
 */
#include "cli/cli.h"
#include "cli/image.h"
#include "core/facts.h"
#include "sys/host.h"

enum { OPT_JSON = 1 };

/* Shared by the verbs that know no other option. */
const struct opt json_opts[] = {
	{ "json", 0, NULL, "print JSON", OPT_JSON },
	{ NULL },
};

static const struct {
	const char *sign, *colour;
} looks[HOST_STATE_COUNT_] = {
	[HOST_WORKS] = { "\xe2\x9c\x93", "\033[32m" },
	[HOST_WEAKER] = { "\xe2\x80\x93", "\033[33m" },
	[HOST_MISSING] = { "\xe2\x9c\x97", "\033[31m" },
};

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && isatty(STDOUT_FILENO) && term && !str_eq(term, "dumb");
}

static void put_row(const struct host_check *c, bool has_colour, struct buf *out)
{
	buf_printf(out, "%s%s %-8s%s %-22s", has_colour ? looks[c->state].colour : "",
		   looks[c->state].sign, host_state_name(c->state), has_colour ? "\033[0m" : "",
		   c->what);
	buf_esc(out, c->detail, strlen(c->detail));
	buf_putc(out, '\n');
	if (*c->fix && c->state != HOST_WORKS) {
		buf_printf(out, "%11s%-22s%s", "", "", c->is_needed ? "NEEDED. " : "");
		buf_puts(out, "to have it: ");
		buf_esc(out, c->fix, strlen(c->fix));
		buf_putc(out, '\n');
	}
}

static void put_tools(const struct host_check *v, size_t n, struct buf *out)
{
	for (int found = 1; found >= 0; found--) {
		size_t count = 0;

		buf_puts(out, found ? "\nOther programs, none of them required. Found:"
				    : ". Not found:");
		for (size_t i = 0; i < n; i++)
			if (v[i].is_tool && (v[i].state == HOST_WORKS) == (found == 1))
				buf_printf(out, "%s %s", count++ ? "," : "", v[i].what);
		if (count == 0)
			buf_puts(out, " none");
	}
	buf_puts(out, ".\n");
}

static void put_table(const struct host_check *v, size_t n, struct buf *out)
{
	bool has_colour = wants_colour();

	for (size_t i = 0; i < n; i++)
		if (!v[i].is_tool)
			put_row(&v[i], has_colour, out);
	put_tools(v, n, out);
	buf_puts(out, host_can_run(v, n) ? "\nVitrine can run here with the native engine.\n"
					 : "\nVitrine cannot run here with the native engine: see "
					   "the rows marked NEEDED.\n");
}

static void put_json(const struct host_check *v, size_t n, struct buf *out)
{
	buf_printf(out, "{\"can_run\":%s,\"checks\":[", host_can_run(v, n) ? "true" : "false");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%s\n{\"id\":\"%s\",\"state\":\"%s\",\"needed\":%s,\"detail\":",
			   i ? "," : "", v[i].id, host_state_name(v[i].state),
			   v[i].is_needed ? "true" : "false");
		buf_json(out, v[i].detail);
		buf_puts(out, ",\"fix\":");
		buf_json(out, v[i].state == HOST_WORKS ? "" : v[i].fix);
		buf_putc(out, '}');
	}
	buf_puts(out, "\n]}\n");
}

/* Half-made templates and images, which only a power cut leaves: a killed command is cleaned up after. */
static void check_left(struct host_check *c)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	struct err ignored = ERR_INIT;
	uint64_t bytes = 0;
	size_t n = host_init(&h, NULL, &ignored) < 0 ? 0 : bench_left(h.state_dir, false, &bytes);

	*c = (struct host_check){ .id = "left", .what = "half-made", .state = HOST_WORKS };
	(void)snprintf(c->detail, sizeof(c->detail),
		       n ? "%zu templates or images of commands that were cut off, %llu MiB"
			 : "nothing is left of commands that were cut off",
		       n, (unsigned long long)(bytes / MIB));
	if (n) {
		c->state = HOST_WEAKER;
		(void)snprintf(c->fix, sizeof(c->fix), "vitrine prune removes them");
	}
}

int cmd_doctor(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	_free_ struct host_check *v = mem_new(HOST_CHECKS_MAX, sizeof(*v));
	bool is_json = false;
	struct opts o;
	size_t n;
	int r;

	opts_init(&o, json_opts, argc, argv);
	while ((r = opts_next(&o, e)) > 0)
		is_json = true;
	if (r == 0 && o.at < argc)
		r = err_set(e, ERR_USAGE, EINVAL, "doctor takes no arguments");
	if (r < 0)
		return r;
	n = host_checks(v, HOST_CHECKS_MAX);
	if (n < HOST_CHECKS_MAX)
		check_left(&v[n++]);
	if (is_json)
		put_json(v, n, &out);
	else
		put_table(v, n, &out);
	r = cli_print(&out, e);
	return r < 0 ? r : !host_can_run(v, n);
}
