/* SPDX-License-Identifier: Apache-2.0 */
/* cli/net.c - vitrine net log|rules|test|presets|groups|allow|deny, and vitrine network proxy|log
 *
 * Rules that are given later are kept with the sandbox (core/netfile) and told to its keeper where it runs; the gate
 * applies them at once, also to what is connected. Judging a host needs no gate: the rules are pure, so `test` asks
 * the same code with the same rules: those of its keeper, or of the plan where it does not run.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "base/program.h"
#include "cli/client.h"
#include "cli/run.h"
#include "cli/table.h"
#include "core/netfile.h"
#include "gate/config.h"
#include "policy/inspect.h"
#include "policy/net.h"
#include "policy/table.h"

enum {
	OPT_FOLLOW = 1,
	OPT_DENIED,
	OPT_POLICY,
	OPT_ALLOW_HOST,
	OPT_BLOCK_HOST,
	OPT_ALLOW_CIDR,
	OPT_BLOCK_CIDR
};

const struct opt net_opts[] = {
	{ "follow", 'f', NULL, "log: go on and print what happens", OPT_FOLLOW },
	{ "denied", 0, NULL, "log: only what was refused", OPT_DENIED },
	TABLE_OPTS("for machines", "rules, presets, log: print the rules, names or ids only"),
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt network_opts[] = {
	{ "policy", 0, "allow|deny", "proxy: what happens to hosts that are not listed",
	  OPT_POLICY },
	{ "allow-host", 0, "HOST", "proxy: let it reach a host", OPT_ALLOW_HOST },
	{ "block-host", 0, "HOST", "proxy: keep it from a host", OPT_BLOCK_HOST },
	{ "allow-cidr", 0, "PREFIX", "proxy: let it reach a network", OPT_ALLOW_CIDR },
	{ "block-cidr", 0, "PREFIX", "proxy: keep it from a network", OPT_BLOCK_CIDR },
	TABLE_OPTS("log: for machines", "log: print the ids only"),
	{ NULL, 0, NULL, NULL, 0 },
};

struct net_args {
	bool is_following, is_denied;
	struct table_how how;
	char *const *words;
	size_t n;
	struct netfile changes; /* of network proxy */
	bool is_open, is_closed;
};

/* ---- presets ---- */

static const struct column preset_columns[] = {
	{ "name", "Name", "NAME", COLUMN_TEXT },
	{ "summary", "Summary", "SUMMARY", COLUMN_TEXT },
	{ "allow", "Allow", "ALLOW", COLUMN_TEXT },
};

static int show_preset_rows(const struct net_preset *list, const struct table_how *how,
			    struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = preset_columns,
						 .n_columns = ARRAY_LEN(preset_columns) };

	for (const struct net_preset *p = list; p->name; p++) {
		struct cell *c = table_row(&t);
		struct buf hosts = BUF(64 * KIB);

		for (const char *const *v = p->allow; *v; v++)
			buf_printf(&hosts, "%s%s", v == p->allow ? "" : " ", *v);
		c[0].text = mem_str(p->name);
		c[1].text = mem_str(p->summary);
		c[2].text = hosts.n ? buf_take(&hosts) : NULL;
	}
	return table_show(&t, how, e);
}

static void presets_json(const struct net_preset *list, struct buf *b)
{
	for (const struct net_preset *p = list; p->name; p++) {
		buf_printf(b, "%s\"%s\":[", p == list ? "{" : ",", p->name);
		for (const char *const *v = p->allow; *v; v++)
			buf_printf(b, "%s\"%s\"", v == p->allow ? "" : ",", *v);
		buf_putc(b, ']');
	}
	buf_puts(b, "}\n");
}

/* `net presets` and `net groups`. */
static int show_presets(const struct net_preset *list, const struct table_how *how, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	if (table_is_asked(how))
		return show_preset_rows(list, how, e);
	if (how->as_json) {
		presets_json(list, &b);
		return cli_print(&b, e);
	}
	for (const struct net_preset *p = list; p->name; p++) {
		buf_printf(&b, "%s  %s\n", p->name, p->summary);
		for (const char *const *v = p->allow; *v; v++)
			buf_printf(&b, "    %s\n", *v);
	}
	return cli_print(&b, e);
}

/* ---- the rules in force ---- */

/* Of a running sandbox, from its keeper. */
static int ask_keeper(const char *state_dir, const char *name, struct config *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);
	struct keep_msg m = { .type = KEEP_NET, .a = NET_SHOW };
	_close_ int conn = keep_connect(state_dir, name, e);
	struct pollfd p = { .fd = conn, .events = POLLIN };
	int fds[PACKET_FDS], r;

	if (conn < 0)
		return conn;
	if (keep_send(conn, &m, NULL, 0) < 0 || poll(&p, 1, 5000) <= 0 ||
	    keep_recv(conn, &m, fds) != 1 || m.type != KEEP_NET_DONE)
		return err_set(e, ERR_SYSTEM, EPIPE, "the keeper of '%s' does not answer", name);
	for (int i = 1; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	_close_ int text = fds[0];

	if (m.a != 0) {
		*e = m.err;
		return -m.a;
	}
	r = config_read(text, &b);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "the rules of '%s' cannot be read", name);
	return config_parse(b.n ? b.p : (char[]){ "" }, ret, e);
}

/* Of a sandbox as it would be started, or of a run here without flags. */
static int ask_plan(const char *name, struct config *ret, struct err *e)
{
	_free_ char *flag = name ? mem_fmt("--name=%s", name) : NULL;
	const char *words[] = { "run", flag ? flag : "--", flag ? "--" : "true",
				flag ? "true" : NULL, NULL };
	char **argv = (char **)(uintptr_t)words;
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);
	struct run r = { 0 };
	int x = run_parse(&r, flag ? 4 : 3, argv, e);

	if (x == 0)
		x = run_plan(&r, e);
	if (x == 0) {
		for (char *const *v = r.plan.net.rules; v && *v; v++)
			buf_printf(&b, "%s\n", *v);
		for (char *const *v = r.plan.net.inspect; v && *v; v++)
			buf_printf(&b, "inspect %s\n", *v);
		if (r.plan.net.has_seal)
			inspect_show(&r.policy, "path ", &b);
		if (r.plan.net.is_asking)
			buf_puts(&b, "ask\n");
		x = config_parse(b.n ? b.p : (char[]){ "" }, ret, e);
	}
	run_done(&r);
	return x;
}

static int ask_sandbox(const char *name, struct config *ret, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	int r = host_init(&h, NULL, e);

	if (r == 0)
		r = ask_keeper(h.state_dir, name, ret, e);
	if (r != -ENOENT || def_read(h.state_dir, name, &d, &(struct err){ 0 }) < 0)
		return r;
	*e = ERR_INIT; /* it is there, and does not run */
	return ask_plan(name, ret, e);
}

static int get_rules(const char *name, struct config *ret, struct err *e)
{
	return name ? ask_sandbox(name, ret, e) : ask_plan(NULL, ret, e);
}

static const struct column rule_columns[] = {
	{ "rule", "Rule", "RULE", COLUMN_TEXT },
	{ "verdict", "Verdict", "VERDICT", COLUMN_TEXT },
};

/* A row, and a line for people. */
static void put_rule(struct table *t, struct buf *b, const char *verdict, const char *rule)
{
	struct cell *c = table_row(t);

	c[0].text = mem_str(rule);
	c[1].text = mem_str(verdict);
	buf_printf(b, "%-7s  %s\n", verdict, rule);
}

static int show_rules(const struct net_args *a, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = rule_columns,
						 .n_columns = ARRAY_LEN(rule_columns) };
	_cleanup_(config_done) struct config c = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	int r = get_rules(a->n > 1 ? a->words[1] : NULL, &c, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < c.rules.n; i++)
		put_rule(&t, &b, c.rules.v[i].is_deny ? "deny" : "allow", c.rules.v[i].text);
	/* No rule, but what people want to know. */
	buf_printf(&b, "%-7s  everything else\n", c.is_asking ? "ask" : "deny");
	for (size_t i = 0; i < c.n_inspect; i++)
		put_rule(&t, &b, "inspect", c.inspect[i]);
	for (size_t i = 0; i < c.n_paths; i++) {
		bool is_deny = str_starts(c.paths[i], "deny ");

		put_rule(&t, &b, is_deny ? "deny" : "allow", c.paths[i] + (is_deny ? 5 : 6));
	}
	return a->how.as_json || table_is_asked(&a->how) ? table_show(&t, &a->how, e)
							 : cli_print(&b, e);
}

/* ---- test ---- */

static const char *reason(const struct verdict *v, const struct host_id *h, char *text, size_t size)
{
	if (v->rule && !v->is_allowed && !v->rule->is_deny)
		(void)snprintf(text, size,
			       "'%.280s' allows it, but %s addresses are closed unless named",
			       v->rule->text, addr_class_name(v->class));
	else if (v->rule)
		(void)snprintf(text, size, "the rule '%s %.280s' decides: it is the most specific",
			       v->rule->is_deny ? "deny" : "allow", v->rule->text);
	else
		(void)snprintf(text, size, "no rule matches%s",
			       h->is_addr && v->class != ADDR_PUBLIC ? ", and such an address is "
								       "closed"
								     : "");
	return text;
}

static int test_host(const struct net_args *a, struct err *e)
{
	_cleanup_(config_done) struct config c = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);
	const char *target = a->words[a->n - 1], *why;
	struct host_id h;
	const char *word;
	struct verdict v;
	uint16_t port;
	char text[400];
	int r;

	if (host_port_parse(target, strlen(target), 443, &h, &port, &why) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "'%.80s': %s", target, why);
	r = get_rules(a->n > 2 ? a->words[1] : NULL, &c, e);
	if (r < 0)
		return r;
	v = rules_host(&c.rules, &h, port);
	(void)reason(&v, &h, text, sizeof(text));
	word = v.is_allowed ? "allow" : c.is_asking && v.rule == NULL ? "ask" : "deny";
	if (a->how.as_json) {
		buf_puts(&b, "{\"host\":");
		buf_json(&b, h.name);
		buf_printf(&b, ",\"port\":%u,\"verdict\":\"%s\",\"rule\":", port, word);
		if (v.rule)
			buf_json(&b, v.rule->text);
		else
			buf_puts(&b, "null");
		buf_puts(&b, ",\"why\":");
		buf_json(&b, text);
		buf_puts(&b, "}\n");
	} else {
		buf_printf(&b, "%-5s %s:%u: %s\n", word, h.name, port, text);
		if (v.is_allowed && !h.is_addr)
			buf_puts(&b, "       its addresses are judged when it is looked up: "
				     "private ones "
				     "stay closed unless named\n");
	}
	r = cli_print(&b, e);
	return r < 0 ? r : v.is_allowed ? 0 : 1;
}

/* ---- changes ---- */

static struct keep_msg message_of(const char *line)
{
	struct keep_msg m = { .type = KEEP_NET };
	const char *value = strchr(line, '=') + 1;

	if (str_starts(line, "--net="))
		m.a = str_eq(value, "open") ? NET_OPEN : NET_SHUT;
	else
		m.a = str_starts(line, "--deny=") ? NET_DENY : NET_ALLOW;
	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", value);
	return m;
}

/* One change at a time is made there: the next waits for the one before. */
static int tell_keeper(const char *state_dir, const char *name, const char *line, struct err *e)
{
	for (int i = 0;; i++) {
		struct keep_msg m = message_of(line);
		_close_ int conn = keep_connect(state_dir, name, e);
		int r = conn < 0 ? conn : client_ask(conn, &m, KEEP_NET_DONE, e);

		if (r < 0 || m.a == 0)
			return r;
		if (m.a != EBUSY || i == 100) {
			*e = m.err;
			return -m.a;
		}
		(void)usleep(20000);
	}
}

/* A sandbox that does not run has it when it starts, and so has one that runs without what it needs. */
static int tell_or_keep(const char *state_dir, const char *name, const char *line, bool lasts,
			struct err *e)
{
	int r = tell_keeper(state_dir, name, line, e);

	if (!lasts || (r != -ENOENT && r != -ENETDOWN))
		return r;
	if (r == -ENETDOWN)
		(void)fprintf(stderr, "vitrine: '%s' is kept: %s\n", strchr(line, '=') + 1, e->msg);
	*e = ERR_INIT;
	return 0;
}

/* Told to one that runs, kept with a sandbox that lasts: what a keeper refuses is not kept. */
static int change(const struct host *h, const char *name, const struct netfile *changes,
		  struct err *e)
{
	_cleanup_(netfile_done) struct netfile f = { 0 };
	_cleanup_(def_done) struct def d = { 0 };
	bool lasts = def_read(h->state_dir, name, &d, e) == 0;
	struct err said = ERR_INIT;
	int r, w = 0;

	/* A preset is for the next start: of a sandbox that is not there, there is none. */
	for (size_t i = 0; !lasts && i < changes->n; i++)
		if (str_starts(changes->lines[i], "--net="))
			return -ENOENT;
	*e = ERR_INIT;
	r = lasts ? netfile_read(h->state_dir, name, &f, e) : 0;
	for (size_t i = 0; r == 0 && i < changes->n; i++) {
		const char *line = changes->lines[i];

		r = tell_or_keep(h->state_dir, name, line, lasts, e);
		if (r == 0 && str_starts(line, "--net="))
			netfile_preset(&f, line + 6);
		else if (r == 0)
			netfile_set(&f, str_starts(line, "--deny="), strchr(line, '=') + 1);
	}
	if (lasts && (r == 0 || f.n > 0))
		w = netfile_write(h->state_dir, name, &f, r < 0 ? &said : e);
	return r < 0 ? r : w;
}

static int change_rules(const struct net_args *a, bool is_deny, struct err *e)
{
	_cleanup_(netfile_done) struct netfile changes = { 0 };
	struct host h;
	int r = 0;

	if (a->n < 3)
		return err_set(e, ERR_USAGE, EINVAL,
			       "net %s: which sandbox and which host? 'vitrine net %s "
			       "NAME HOST...'",
			       a->words[0], a->words[0]);
	for (size_t i = 2; r == 0 && i < a->n; i++) {
		const struct net_preset *group = net_group_find(a->words[i]);
		struct rule rule;

		for (const char *const *v = group ? group->allow : NULL; v && *v; v++)
			netfile_set(&changes, is_deny, *v);
		if (group)
			continue;
		/* 'METHOD HOST/PATH' is for vitrine-seal, all else for the gate. */
		r = strchr(a->words[i], ' ') ? check_inspect_rule(a->words[i], e)
					     : rule_parse(a->words[i], is_deny, false, &rule, e);
		netfile_set(&changes, is_deny, a->words[i]);
	}
	if (r < 0)
		return r;
	r = host_init(&h, NULL, e);
	if (r == 0)
		r = change(&h, a->words[1], &changes, e);
	host_done(&h);
	return r;
}

/* ---- the log: the store's own events, of the network ---- */

/* With --denied each row begins with its verdict between these; what is foreign in a row is escaped and has none. */
#define MARK '\001'

static int exec_events(const struct net_args *a, const char *name, struct err *e)
{
	const char *argv[10] = { "vitrine-store", "events", "--type", "net" };
	const char *format = a->how.format ? a->how.format : "{{.Run}}:{{.Number}}";
	_free_ char *marked = mem_fmt("--format=%c{{.verdict}}%c%s", MARK, MARK, format);
	_free_ char *plain = mem_fmt("--format=%s", format);
	size_t n = 4;

	if (a->is_following)
		argv[n++] = "--follow";
	if (table_is_asked(&a->how))
		argv[n++] = a->is_denied ? marked : plain;
	else if (a->how.as_json || a->is_denied)
		argv[n++] = "--json";
	if (name)
		argv[n++] = name;
	return program_exec("vitrine-store", (char *const *)(uintptr_t)argv, e);
}

/* One line of the store's JSON: is it a refusal? Printed as it is, or as a sentence. */
static void show_denied(const char *line, size_t n, bool as_json)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err e = ERR_INIT;
	const struct json *data, *verdict, *host, *port, *message, *time;

	if (json_parse(line, n, &doc, &e) < 0)
		return;
	data = json_get(doc.root, "data");
	verdict = data ? json_get(data, "verdict") : NULL;
	if (verdict == NULL || verdict->type != JSON_STRING || !str_eq(verdict->text, "deny"))
		return;
	if (as_json) {
		(void)printf("%.*s\n", (int)n, line);
		(void)fflush(stdout);
		return;
	}
	host = json_get(data, "host");
	port = json_get(data, "port");
	message = json_get(data, "message");
	time = json_get(doc.root, "time");
	if (time && time->type == JSON_STRING)
		buf_printf(&b, "%s  ", time->text);
	buf_puts(&b, "deny  ");
	if (host && host->type == JSON_STRING)
		buf_esc(&b, host->text, strlen(host->text));
	if (port && port->text)
		buf_printf(&b, ":%s", port->text);
	buf_puts(&b, "  ");
	if (message && message->type == JSON_STRING)
		buf_esc(&b, message->text, strlen(message->text));
	(void)printf("%s\n", buf_cstr(&b));
	(void)fflush(stdout);
}

/* Rows of --quiet or --format: the part behind a mark is printed when the verdict was a refusal. */
static int filter_marked(int fd)
{
	_cleanup_(buf_done) struct buf verdict = BUF(KIB);
	bool is_verdict = false, is_shown = false;
	char part[16384];
	ssize_t got;

	while ((got = io_read(fd, part, sizeof(part))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (part[i] == MARK && is_verdict)
				is_shown = str_eq(buf_cstr(&verdict), "deny");
			if (part[i] == MARK) {
				is_verdict = !is_verdict;
				buf_done(&verdict);
				verdict = BUF(KIB);
			} else if (is_verdict) {
				buf_putc(&verdict, part[i]);
			} else if (is_shown) {
				(void)putchar(part[i]);
			}
		}
		(void)fflush(stdout);
	}
	return 0;
}

static int filter_denied(int fd, bool as_json)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);
	char part[16384];
	ssize_t got;

	while ((got = io_read(fd, part, sizeof(part))) > 0) {
		size_t done = 0;

		buf_add(&b, part, (size_t)got);
		for (;;) {
			const char *end = b.n > done ? memchr(b.p + done, '\n', b.n - done) : NULL;

			if (end == NULL)
				break;
			show_denied(b.p + done, (size_t)(end - b.p) - done, as_json);
			done = (size_t)(end - b.p) + 1;
		}
		if (done > 0) {
			memmove(b.p, b.p + done, b.n - done);
			b.n -= done;
		}
	}
	return 0;
}

static int show_log(const struct net_args *a, struct err *e)
{
	const char *name = a->n > 1 ? a->words[1] : NULL;
	int pipes[2], status = 0;
	pid_t pid;

	if (!a->is_denied)
		return exec_events(a, name, e);
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipes[1], 1);
		fd_close(pipes[0]);
		fd_close(pipes[1]);
		_exit(exec_events(a, name, e) < 0 ? 125 : 0);
	}
	fd_close(pipes[1]);
	if (table_is_asked(&a->how))
		(void)filter_marked(pipes[0]);
	else
		(void)filter_denied(pipes[0], a->how.as_json);
	fd_close(pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return err_set(e, ERR_SYSTEM, ECHILD, "the events cannot be read");
	return WEXITSTATUS(status);
}

/* ---- verbs ---- */

static int take_opt(struct net_args *a, const struct opts *o, int id, struct err *e)
{
	bool is_deny = id == OPT_BLOCK_HOST || id == OPT_BLOCK_CIDR;
	struct rule rule;

	if (table_opt(&a->how, o, id))
		return 0;
	if (id == OPT_POLICY) {
		a->is_open = str_eq(o->value, "allow");
		a->is_closed = str_eq(o->value, "deny");
		if (!a->is_open && !a->is_closed)
			return err_set(e, ERR_USAGE, EINVAL, "--policy is allow or deny");
	} else if (id >= OPT_ALLOW_HOST) {
		if (rule_parse(o->value, is_deny, false, &rule, e) < 0)
			return -EINVAL;
		netfile_set(&a->changes, is_deny, o->value);
	}
	a->is_following |= id == OPT_FOLLOW;
	a->is_denied |= id == OPT_DENIED;
	return 0;
}

static int read_args(struct net_args *a, const struct opt *table, int argc, char **argv,
		     struct err *e)
{
	_free_ char **words = mem_new((size_t)argc + 1, sizeof(*words));
	struct opts o;
	int id;

	/* Options may stand behind the words too, as Docker's users write them. */
	for (opts_init(&o, table, argc, argv); o.at < argc;) {
		while ((id = opts_next(&o, e)) > 0) {
			int r = take_opt(a, &o, id, e);

			if (r < 0)
				return r;
		}
		if (id < 0)
			return id;
		if (o.at < argc)
			words[a->n++] = argv[o.at++];
	}
	a->words = take(words);
	return 0;
}

static int net_verb(const struct net_args *a, struct err *e)
{
	const char *word = a->n > 0 ? a->words[0] : "";

	if (str_eq(word, "presets") && a->n == 1)
		return show_presets(net_presets, &a->how, e);
	if (str_eq(word, "groups") && a->n == 1)
		return show_presets(net_groups, &a->how, e);
	if (str_eq(word, "rules") && a->n <= 2)
		return show_rules(a, e);
	if (str_eq(word, "test") && (a->n == 2 || a->n == 3))
		return test_host(a, e);
	if (str_eq(word, "test"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "net test: which host? 'vitrine net test [NAME] HOST[:PORT]'");
	if (str_eq(word, "allow") || str_eq(word, "deny"))
		return change_rules(a, word[0] == 'd', e);
	if (str_eq(word, "log") && a->n <= 2)
		return show_log(a, e);
	return err_set(e, ERR_USAGE, EINVAL,
		       "net: log, rules, test, presets, groups, allow or deny; see 'vitrine "
		       "help net'");
}

int cmd_net(int argc, char **argv, struct err *e)
{
	struct net_args a = { 0 };
	int r = read_args(&a, net_opts, argc, argv, e);

	if (r == 0)
		r = net_verb(&a, e);
	free((void *)(uintptr_t)a.words);
	return r;
}

static int network_proxy(struct net_args *a, struct err *e)
{
	struct host h;
	int r;

	if (a->n != 2 || (a->changes.n == 0 && !a->is_open && !a->is_closed))
		return err_set(e, ERR_USAGE, EINVAL,
			       "network proxy: which sandbox, and what? 'vitrine network proxy "
			       "NAME "
			       "--policy deny --allow-host HOST'");
	if (a->is_open || a->is_closed)
		netfile_preset(&a->changes, a->is_open ? "open" : "none");
	r = host_init(&h, NULL, e);
	if (r == 0)
		r = change(&h, a->words[1], &a->changes, e);
	host_done(&h);
	return r;
}

int cmd_network(int argc, char **argv, struct err *e)
{
	struct net_args a = { 0 };
	int r = read_args(&a, network_opts, argc, argv, e);

	if (r == 0 && a.n > 0 && str_eq(a.words[0], "proxy"))
		r = network_proxy(&a, e);
	else if (r == 0 && a.n > 0 && a.n <= 2 && str_eq(a.words[0], "log"))
		r = show_log(&a, e);
	else if (r == 0)
		r = err_set(e, ERR_USAGE, EINVAL,
			    "network: proxy NAME or log [NAME]; see 'vitrine help network'");
	netfile_done(&a.changes);
	free((void *)(uintptr_t)a.words);
	return r;
}
