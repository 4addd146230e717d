/* SPDX-License-Identifier: Apache-2.0 */
/* guard/wrap.c - commands that start other commands
 *
 * Most are a prefix: options, perhaps a number of arguments, then the command. The table says which options take a
 * value, because a value must not be taken for the command. The others have their own ways of being given a
 * command: as a text for a shell, as a template, behind a host or a container, once per file found.
 */
#include "guard/wrap.h"

#include <ctype.h>

static void open_shell(struct walk *w, struct cmd *c, const struct wrapper *t);
static void open_prefix(struct walk *w, struct cmd *c, const struct wrapper *t);

enum {
	WAY_PREFIX,
	WAY_SHELL,
	WAY_ALIAS,
	WAY_COMMAND,
	WAY_CONTAINER,
	WAY_DASHES,
	WAY_ENV,
	WAY_EVAL,
	WAY_FIND,
	WAY_FLOCK,
	WAY_PARALLEL,
	WAY_RUNNER,
	WAY_SCRIPT,
	WAY_SOURCE,
	WAY_SSH,
	WAY_STDIN,
	WAY_SU,
	WAY_SUDO,
	WAY_TRAP,
	WAY_WATCH,
	WAY_XARGS
};

static void (*const ways[])(struct walk *w, struct cmd *c, const struct wrapper *t) = {
	[WAY_PREFIX] = open_prefix,
	[WAY_SHELL] = open_shell,
	[WAY_ALIAS] = wrap_alias,
	[WAY_COMMAND] = wrap_command,
	[WAY_CONTAINER] = wrap_container,
	[WAY_DASHES] = wrap_dashes,
	[WAY_ENV] = wrap_env,
	[WAY_EVAL] = wrap_eval,
	[WAY_FIND] = wrap_find,
	[WAY_FLOCK] = wrap_flock,
	[WAY_PARALLEL] = wrap_parallel,
	[WAY_RUNNER] = wrap_runner,
	[WAY_SCRIPT] = wrap_script,
	[WAY_SOURCE] = wrap_source,
	[WAY_SSH] = wrap_ssh,
	[WAY_STDIN] = wrap_stdin,
	[WAY_SU] = wrap_su,
	[WAY_SUDO] = wrap_sudo,
	[WAY_TRAP] = wrap_trap,
	[WAY_WATCH] = wrap_watch,
	[WAY_XARGS] = wrap_xargs,
};

#define PREFIX(n, v, s)                                                                            \
	{                                                                                          \
		.name = (n), .way = WAY_PREFIX, .values = (v), .skip = (s)                         \
	}
#define OWN(n, f)                                                                                  \
	{                                                                                          \
		.name = (n), .way = (f)                                                            \
	}

/* Sorted by name. */
static const struct wrapper wrappers[] = {
	OWN(".", WAY_SOURCE),
	OWN("alias", WAY_ALIAS),
	{ .name = "asdf", .way = WAY_RUNNER, .values = "", .skip = 0 },
	OWN("ash", WAY_SHELL),
	OWN("at", WAY_STDIN),
	{ .name = "aws-vault", .way = WAY_RUNNER, .values = "", .skip = 1 },
	OWN("bash", WAY_SHELL),
	OWN("batch", WAY_STDIN),
	PREFIX("builtin", "", 0),
	{ .name = "bundle", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("bunx", "", 0),
	PREFIX("busybox", "", 0),
	PREFIX("bwrap", "--bind|--ro-bind|--dev|--proc|--chdir", 0),
	PREFIX("caffeinate", "-t|-w", 0),
	PREFIX("catchsegv", "", 0),
	PREFIX("cgexec", "-g", 0),
	{ .name = "chamber", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("chpst", "-u|-e", 0),
	PREFIX("chronic", "", 0),
	PREFIX("chroot", "--userspec|--groups", 1),
	PREFIX("chrt", "-T|-P|-D|-p", 1),
	OWN("command", WAY_COMMAND),
	{ .name = "conda", .way = WAY_RUNNER, .values = "-n|--name|-p|--prefix", .skip = 0 },
	PREFIX("cpulimit", "-l|-p|-e", 0),
	OWN("csh", WAY_SHELL),
	OWN("dash", WAY_SHELL),
	PREFIX("dbus-launch", "", 0),
	PREFIX("dbus-run-session", "", 0),
	{ .name = "direnv", .way = WAY_RUNNER, .values = "", .skip = 1 },
	{ .name = "distrobox", .way = WAY_RUNNER, .values = "-n|--name", .skip = 0 },
	OWN("doas", WAY_SUDO),
	OWN("docker", WAY_CONTAINER),
	{ .name = "doppler", .way = WAY_RUNNER, .values = "", .skip = 0 },
	{ .name = "dotenv", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("dumb-init", "", 0),
	PREFIX("eatmydata", "", 0),
	OWN("env", WAY_ENV),
	PREFIX("envdir", "", 1),
	OWN("eval", WAY_EVAL),
	PREFIX("exec", "-a", 0),
	PREFIX("fakechroot", "", 0),
	PREFIX("fakeroot", "-l|-s|-i|-b", 0),
	PREFIX("faketime", "", 1),
	OWN("fd", WAY_FIND),
	OWN("fdfind", WAY_FIND),
	OWN("find", WAY_FIND),
	PREFIX("firejail", "", 0),
	OWN("fish", WAY_SHELL),
	{ .name = "flatpak-spawn", .way = WAY_RUNNER, .values = "", .skip = 0 },
	OWN("flock", WAY_FLOCK),
	{ .name = "foreman", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("gnice", "-n", 0),
	PREFIX("gosu", "", 1),
	PREFIX("gtimeout", "-k|-s", 1),
	{ .name = "hatch", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("heaptrack", "", 0),
	{ .name = "honcho", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("hyperfine", "-w|-r|-m|-M|-p", 0),
	PREFIX("ifne", "", 0),
	{ .name = "infisical", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("ionice", "-c|-n|-p|-P|-u", 0),
	OWN("ksh", WAY_SHELL),
	OWN("kubectl", WAY_DASHES),
	PREFIX("ltrace", "-o|-e|-u|-p|-s|-a|-n|-l|-x", 0),
	OWN("lxc", WAY_DASHES),
	{ .name = "mamba", .way = WAY_RUNNER, .values = "-n|--name|-p|--prefix", .skip = 0 },
	{ .name = "micromamba", .way = WAY_RUNNER, .values = "-n|--name|-p|--prefix", .skip = 0 },
	{ .name = "mise", .way = WAY_RUNNER, .values = "", .skip = 0 },
	OWN("mksh", WAY_SHELL),
	OWN("nerdctl", WAY_CONTAINER),
	PREFIX("nice", "-n|--adjustment", 0),
	{ .name = "nix", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("nocorrect", "", 0),
	PREFIX("noglob", "", 0),
	PREFIX("nohup", "", 0),
	PREFIX("npx", "-p|--package|-w", 0),
	PREFIX("nsenter", "-t|--target|-S|-G|--setuid|--setgid", 0),
	PREFIX("numactl", "-m|-N|-C|-i|-p", 0),
	OWN("oc", WAY_DASHES),
	{ .name = "op", .way = WAY_RUNNER, .values = "", .skip = 0 },
	OWN("parallel", WAY_PARALLEL),
	{ .name = "pdm", .way = WAY_RUNNER, .values = "", .skip = 0 },
	{ .name = "pipenv", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("pkexec", "--user", 0),
	OWN("podman", WAY_CONTAINER),
	{ .name = "poetry", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("prlimit", "-p|--pid", 0),
	PREFIX("proot", "-r|-b|-w", 0),
	PREFIX("proxychains", "-f", 0),
	PREFIX("proxychains4", "-f", 0),
	{ .name = "pyenv", .way = WAY_RUNNER, .values = "", .skip = 0 },
	OWN("rbash", WAY_SHELL),
	{ .name = "rbenv", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("repeat", "", 1),
	PREFIX("retry", "-t|-d", 0),
	PREFIX("rlwrap", "", 0),
	PREFIX("rtk", "", 0),
	OWN("runuser", WAY_SU),
	{ .name = "rye", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("samply", "", 1),
	OWN("script", WAY_SCRIPT),
	PREFIX("setarch", "", 1),
	PREFIX("setlock", "", 1),
	PREFIX("setpriv", "--reuid|--regid|--groups", 0),
	PREFIX("setsid", "", 0),
	OWN("sh", WAY_SHELL),
	OWN("source", WAY_SOURCE),
	OWN("ssh", WAY_SSH),
	PREFIX("start-stop-daemon", "", 0),
	PREFIX("stdbuf", "-i|-o|-e|--input|--output|--error", 0),
	PREFIX("strace", "-o|-e|-p|-u|-s|-a|-E|-O|-P|-S|-I|-X|-b", 0),
	OWN("su", WAY_SU),
	PREFIX("su-exec", "", 1),
	OWN("sudo", WAY_SUDO),
	PREFIX("systemd-cat", "-t|-p", 0),
	PREFIX("systemd-inhibit", "", 0),
	PREFIX("systemd-run", "-p|--property|-u|--unit|-E|--setenv|--uid|--gid|-M|--machine|-H", 0),
	PREFIX("taskset", "", 1),
	OWN("tcsh", WAY_SHELL),
	PREFIX("time", "-f|--format|-o|--output", 0),
	PREFIX("timeout", "-k|-s|--kill-after|--signal", 1),
	PREFIX("tini", "", 0),
	{ .name = "toolbox", .way = WAY_RUNNER, .values = "", .skip = 0 },
	PREFIX("torify", "", 0),
	PREFIX("torsocks", "-u|-p|-a|-P", 0),
	PREFIX("toybox", "", 0),
	OWN("trap", WAY_TRAP),
	PREFIX("trickle", "-d|-u", 0),
	PREFIX("unbuffer", "", 0),
	PREFIX("unbuffer-p", "", 0),
	PREFIX("unshare", "-S|-G|-R|-w|--setuid|--setgid|--root|--wd", 0),
	{ .name = "uv",
	  .way = WAY_RUNNER,
	  .values = "-p|--python|--with|--extra|--group|--from",
	  .skip = 0 },
	PREFIX("uvx", "--from|--with|-p|--python", 0),
	PREFIX("valgrind", "", 0),
	OWN("watch", WAY_WATCH),
	PREFIX("watchexec", "-w|-e|-i", 0),
	{ .name = "wsl", .way = WAY_RUNNER, .values = "-d|-u", .skip = 0 },
	OWN("xargs", WAY_XARGS),
	PREFIX("xterm", "-e|-T|-geometry", 0),
	PREFIX("xvfb-run", "-e|-f|-n|-p|-s|-w", 0),
	OWN("zsh", WAY_SHELL),
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct wrapper *)entry)->name);
}

const struct wrapper *wrap_table(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(wrappers);
	return wrappers;
}

bool wrap_is(const char *name)
{
	return bsearch(name, wrappers, ARRAY_LEN(wrappers), sizeof(wrappers[0]), by_name) != NULL;
}

bool wrap_open(struct walk *w, struct cmd *c)
{
	const struct wrapper *t =
		bsearch(c->name, wrappers, ARRAY_LEN(wrappers), sizeof(*t), by_name);

	if (t)
		ways[t->way](w, c, t);
	return t != NULL;
}

/* The first word from `at` on that is neither an option nor an option's value. `values` lists those that take one. */
size_t wrap_skip_options(const struct cmd *c, size_t at, const char *values)
{
	char name[3] = "-?";

	for (; at < c->argc; at++) {
		const char *s = c->argv[at]->s;
		bool takes_next = false;

		if (str_eq(s, "--"))
			return at + 1;
		if (s[0] != '-' || s[1] == '\0')
			return at;
		if (s[1] == '-') {
			takes_next = !strchr(s, '=') && rules_list_has(values, s);
		} else {
			for (const char *l = s + 1; *l; l++) {
				name[1] = *l;
				if (!rules_list_has(values, name))
					continue;
				takes_next = l[1] == '\0';
				break;
			}
		}
		at += takes_next;
	}
	return at;
}

bool wrap_is_assignment(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n > 0 && s[n] == '=';
}

static void open_prefix(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	size_t at = wrap_skip_options(c, 1, t->values);

	walk_inner(w, c, at + t->skip, t->name);
}

/* Shells. */

struct shell_args {
	const struct value *code; /* -c */
	size_t operand;           /* index of the first operand; argc when there is none */
	bool reads_stdin, is_check, has_code;
};

/* Letters of one -abc or +abc; false when a value in the next word was taken. */
static void shell_letters(const struct cmd *c, size_t *at, struct shell_args *ret)
{
	const char *s = c->argv[*at]->s;

	for (const char *l = s + 1; *l; l++) {
		if (*l == 'c' && s[0] == '-')
			ret->has_code = true;
		else if (*l == 's' && s[0] == '-')
			ret->reads_stdin = true;
		else if (*l == 'n' && s[0] == '-')
			ret->is_check = true;
		else if (*l == 'o' || *l == 'O') {
			/* Its value is attached in zsh, and the next word otherwise. */
			if (l[1] == '\0')
				++*at;
			else if (!strchr(l + 1, 'c') || str_starts(c->name, "zsh"))
				return;
		}
	}
}

static void shell_args(const struct cmd *c, struct shell_args *ret)
{
	size_t at = 1;

	for (; at < c->argc; at++) {
		const char *s = c->argv[at]->s;

		if (str_eq(s, "--") || str_eq(s, "-")) {
			at++;
			break;
		}
		if (s[0] != '-' && s[0] != '+')
			break;
		if (str_eq(s, "--rcfile") || str_eq(s, "--init-file"))
			at++;
		else if (s[1] != '-')
			shell_letters(c, &at, ret);
	}
	ret->operand = at < c->argc ? at : c->argc;
	if (ret->has_code && ret->operand < c->argc)
		ret->code = c->argv[ret->operand];
}

/* $0, $1 ... of the text. */
static void shell_params(struct walk *w, const struct cmd *c, size_t from)
{
	const char **v = arena_take(w->mem, 10 * sizeof(*v));
	size_t n = 0;

	for (size_t i = from; i < c->argc && n < 10; i++)
		v[n++] = c->argv[i]->is_dynamic || value_begins_open(c->argv[i]) ? NULL
										 : c->argv[i]->s;
	w->vars.params = v;
	w->vars.n_params = n;
}

static void shell_code(struct walk *w, const struct cmd *c, const struct shell_args *a)
{
	const char *const *params = w->vars.params;
	size_t n = w->vars.n_params;
	struct vars before = w->vars;
	const char *cwd = w->places.cwd;

	/* Whatever is fed in would be read as code: a file called "; rm -rf ~". */
	if (c->is_fed && strpbrk(a->code->s, VALUE_MARKS))
		walk_find(w, "dynamic-code", c);
	shell_params(w, c, a->operand + 1);
	walk_text(w, a->code->s, a->code->n, c, c->name);
	w->vars = before;
	w->places.cwd = cwd;
	w->vars.params = params;
	w->vars.n_params = n;
}

void wrap_run_input(struct walk *w, const struct cmd *c)
{
	if (c->input == INPUT_TEXT)
		walk_text(w, c->input_text, strlen(c->input_text), c, c->name);
	else if (c->input == INPUT_UNKNOWN)
		walk_find(w, "unknown-source", c);
}

void wrap_run_file(struct walk *w, const struct cmd *c, const struct value *file)
{
	const char *text = walk_written(w, file->s);

	if (file->is_dynamic || str_starts(file->s, "/dev/fd/"))
		walk_find(w, "unknown-source", c);
	else if (rules_list_has("/dev/stdin|-", file->s))
		wrap_run_input(w, c);
	else if (text)
		walk_text(w, text, strlen(text), c, c->name);
}

/* --rcfile and BASH_ENV run a file before anything else. */
static void shell_startup(struct walk *w, const struct cmd *c)
{
	for (size_t i = 1; i + 1 < c->argc; i++)
		if (rules_list_has("--rcfile|--init-file", c->argv[i]->s))
			wrap_run_file(w, c, c->argv[i + 1]);
}

static void open_shell(struct walk *w, struct cmd *c, const struct wrapper *t)
{
	struct shell_args a = { 0 };

	(void)t;
	shell_args(c, &a);
	if (a.is_check)
		return;
	shell_startup(w, c);
	if (a.has_code) {
		if (a.code)
			shell_code(w, c, &a);
		else if (c->is_fed)
			walk_find(w, "dynamic-code", c);
	} else if (a.operand < c->argc && !a.reads_stdin) {
		wrap_run_file(w, c, c->argv[a.operand]);
	} else {
		wrap_run_input(w, c);
	}
}
