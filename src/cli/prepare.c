/* SPDX-License-Identifier: Apache-2.0 */
/* cli/prepare.c - options -> policy -> facts -> plan, for every verb that starts or explains a sandbox
 *
 * Options are collected first and applied last, because the layers below them (user and project files) must be
 * read before a flag can override them, and reading those needs the workspace, which is itself an option.
 */
#include <sys/random.h>

#include "base/num.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "cli/image.h"
#include "cli/run.h"
#include "core/netfile.h"
#include "core/seed.h"
#include "core/settings.h"
#include "engine/engine.h"
#include "keep/keys.h"
#include "sys/lasting.h"

enum {
	OPT_ENV = 1,
	OPT_ENV_FILE,
	OPT_VOLUME,
	OPT_READ,
	OPT_WRITE,
	OPT_ALLOW,
	OPT_DENY,
	OPT_NET,
	OPT_ASK,
	OPT_PUBLISH,
	OPT_HOST_PORT,
	OPT_GIT_FETCH,
	OPT_GIT_PUSH,
	OPT_POLICY,
	OPT_NAME,
	OPT_RM,
	OPT_INTERACTIVE,
	OPT_TTY,
	OPT_WORKDIR,
	OPT_WORKSPACE,
	OPT_USER,
	OPT_JSON,
	OPT_DETACH,
	OPT_QUIET,
	OPT_TIED,
	OPT_DETACH_KEYS,
	OPT_FRESH,
	OPT_TEMPLATE,
	OPT_LOCAL,
	OPT_AS_ROOT,
	OPT_FREE,
	OPT_SHARE,
	OPT_ACCEPT_MOVED,
	/* The rest are no more than their rows: behind these stands what is set (enum limit_id, list_id, setting_id). */
	OPT_LIMIT = 0x100,
	OPT_LIST = 0x200,
	OPT_SETTING = 0x300, /* to its value; a switch: to true */
};

const struct opt run_opts[] = {
	{ "workspace", 0, "DIR", "directory the command may write in (default: the current one)",
	  OPT_WORKSPACE },
	{ "workdir", 'w', "DIR",
	  "where the command starts, inside (default: the current directory)", OPT_WORKDIR },
	{ "env", 'e', "K[=V]", "set a variable inside, or pass the caller's", OPT_ENV },
	{ "env-file", 0, "FILE", "set variables from a file of K=V lines", OPT_ENV_FILE },
	{ "volume", 'v', "HOST[:INSIDE][:ro]", "show a host path inside, writable unless :ro",
	  OPT_VOLUME },
	{ "read", 0, "PATH", "show a host path inside, read-only, at its own place", OPT_READ },
	{ "write", 0, "PATH", "show a host path inside, writable, at its own place", OPT_WRITE },
	{ "mode", 0, "MODE",
	  "direct: edits appear on the host; review: they wait for 'vitrine diff' and 'apply'; "
	  "clone: a private clone, its commits come out by 'vitrine fetch'",
	  OPT_SETTING + SETTING_MODE },
	{ "hide", 0, "GLOB", "make matching paths of the workspace unreadable ('!GLOB' takes back)",
	  OPT_LIST + LIST_HIDE },
	{ "protect", 0, "GLOB",
	  "make matching paths of the workspace read-only ('!GLOB' takes back)",
	  OPT_LIST + LIST_PROTECT },
	{ "socket", 0, "PATH", "let it talk to a unix socket of the host, in bytes only",
	  OPT_LIST + LIST_SOCKETS },
	{ "memory", 'm', "SIZE", "memory of all processes together", OPT_LIMIT + LIMIT_MEMORY },
	{ "cpus", 0, "N", "processor time, in processors", OPT_LIMIT + LIMIT_CPUS },
	{ "cpu-time", 0, "TIME", "processor time used altogether", OPT_LIMIT + LIMIT_CPU_TIME },
	{ "pids", 0, "N", "processes and threads at once", OPT_LIMIT + LIMIT_PIDS },
	{ "disk", 0, "SIZE", "private space: /tmp, home, /dev/shm together",
	  OPT_LIMIT + LIMIT_DISK },
	{ "io-read", 0, "SIZE", "bytes a second read from the workspace's disk",
	  OPT_LIMIT + LIMIT_IO_READ },
	{ "io-write", 0, "SIZE", "bytes a second written to the workspace's disk",
	  OPT_LIMIT + LIMIT_IO_WRITE },
	{ "open-files", 0, "N", "open files of each process", OPT_LIMIT + LIMIT_OPEN_FILES },
	{ "time", 0, "TIME", "end it after this long", OPT_LIMIT + LIMIT_TIME },
	{ "idle", 0, "TIME", "end it after this long without output or work",
	  OPT_LIMIT + LIMIT_IDLE },
	{ "output", 0, "SIZE", "end it after this much output", OPT_LIMIT + LIMIT_OUTPUT },
	{ "allow", 0, "HOST[:PORT]|GROUP",
	  "let it reach a host (name, *.name, address, prefix) or a group of hosts: npm, pypi, "
	  "github, ... ('vitrine net groups')",
	  OPT_ALLOW },
	{ "deny", 0, "HOST[:PORT]|GROUP", "keep it from a host that is allowed otherwise",
	  OPT_DENY },
	{ "net", 0, "PRESET", "let it reach what a preset lists: none, locked, balanced, open",
	  OPT_NET },
	{ "publish", 'p', "[HOST:]PORT", "show a port inside on this host's loopback",
	  OPT_PUBLISH },
	{ "host-port", 0, "PORT", "let it reach a port of this host's loopback", OPT_HOST_PORT },
	{ "ask", 0, NULL, "ask about hosts that no rule decides", OPT_ASK },
	{ "inspect", 0, "HOST", "look into its TLS: every request is judged and on record",
	  OPT_LIST + LIST_INSPECT_HOSTS },
	{ "git-fetch", 0, "HOST/PATH", "let git fetch this repository, and on that host no other",
	  OPT_GIT_FETCH },
	{ "git-push", 0, "HOST/PATH:REF", "let git push this ref, and on that host no other",
	  OPT_GIT_PUSH },
	{ "secret", 0, "NAME", "use a secret ('vitrine secret set') for its hosts",
	  OPT_LIST + LIST_SECRETS },
	{ "broker-fetch", 0, "URL", "let the broker, outside, fetch this repository for it",
	  OPT_LIST + LIST_BROKER_FETCH },
	{ "broker-push", 0, "'URL REF'",
	  "let the broker, outside, push this ref for it (docs/BROKER.md)",
	  OPT_LIST + LIST_BROKER_PUSH },
	{ "tools", 0, "WHEN", "safe tools first on PATH: auto (named sandboxes), always, never",
	  OPT_SETTING + SETTING_TOOLS },
	{ "policy", 0, "FILE", "policy file to use instead of the user's own", OPT_POLICY },
	{ "engine", 0, "NAME", "which walls to use (see 'vitrine engines')",
	  OPT_SETTING + SETTING_ENGINE },
	{ "name", 0, "NAME", "the sandbox of this name, made where there is none; its home is kept",
	  OPT_NAME },
	{ "fresh", 0, NULL, "begin with an empty home; what was in it is kept as a checkpoint",
	  OPT_FRESH },
	{ "accept-moved", 0, NULL,
	  "its workspace or a granted path was moved or replaced, and that is right",
	  OPT_ACCEPT_MOVED },
	{ "share", 0, NULL,
	  "show your own skills, commands and instructions for the agent, read-only", OPT_SHARE },
	{ "dsp", 0, NULL, "no questions; agents are run that way anyway", OPT_FREE },
	{ "yolo", 0, NULL, "the same", OPT_FREE },
	{ "rm", 0, NULL, "remove the sandbox when its last session has ended", OPT_RM },
	{ "detach", 'd', NULL, "run behind the scenes and print the sandbox's name", OPT_DETACH },
	{ "detached", 0, NULL, "the same in the words of 'docker sandbox'", OPT_DETACH },
	{ "tied", 0, NULL,
	  "end the sandbox when this process ends, however it ends (run without a name)",
	  OPT_TIED },
	{ "quiet", 'q', NULL, "create: do not print the name", OPT_QUIET },
	{ "detach-keys", 0, "KEYS",
	  "keys that leave a session running (default: ctrl-p,ctrl-q; 'none')", OPT_DETACH_KEYS },
	{ "interactive", 'i', NULL,
	  "read standard input even where it is a terminal and output is not", OPT_INTERACTIVE },
	{ "tty", 't', NULL, "give the command a terminal of its own", OPT_TTY },
	{ "template", 't', "NAME|IMAGE",
	  "start from this root file system, or from what 'vitrine save' kept, instead of the "
	  "host's system; see 'vitrine template'",
	  OPT_TEMPLATE },
	{ "load-local-template", 0, NULL,
	  "take an image that is no template yet from docker or podman of this host", OPT_LOCAL },
	{ "user", 'u', "NAME", "as root: run as this user", OPT_USER },
	{ "debug", 0, NULL, "let processes inside trace each other (gdb, strace)",
	  OPT_SETTING + SETTING_DEBUG },
	{ "containers", 0, NULL,
	  "a container engine works inside: root of the machine's own kernel (engine vm)",
	  OPT_SETTING + SETTING_CONTAINERS },
	{ "live", 0, NULL,
	  "'checkpoint --live' can save the machine while it works, memory included (engine vm)",
	  OPT_SETTING + SETTING_LIVE },
	{ "telemetry", 0, NULL, "keep what the inside says of itself (OpenTelemetry, tool calls)",
	  OPT_SETTING + SETTING_TELEMETRY },
	{ "as-root", 0, NULL,
	  "be root of subordinate ids inside, without a name: for what makes templates "
	  "(docs/TEMPLATES.md)",
	  OPT_AS_ROOT },
	{ "json", 0, NULL, "end with one line of JSON on standard error", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

/* ---- first pass: what must be known before the files are read ---- */

static int check_name(const char *name, struct err *e)
{
	if (!def_is_name(name))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--name '%.80s': letters, digits, '_', '.' and '-' only, at most "
			       "64, not beginning with '-' or '.' or 'run-'",
			       name);
	return 0;
}

/* `-t ubuntu:24.04` is a template, as Docker's users write it, and `-t` in front of other words a terminal. */
static bool is_template(const char *word)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	_free_ char *root = NULL;
	struct err ignored = ERR_INIT;

	if (strchr("./~", word[0]) == NULL && strpbrk(word, ":/"))
		return true;
	return host_init(&h, NULL, &ignored) == 0 &&
	       (template_find(h.state_dir, word, &root, &ignored) == 0 ||
		image_is_saved(h.state_dir, word));
}

static void init_opts(struct opts *o, int argc, char **argv)
{
	opts_init(o, run_opts, argc, argv);
	o->is_value = is_template;
}

/* Options may stand before and between the words; "--" ends both. Words are kept where r is given. */
static int next_opt(struct opts *o, struct run *r, struct err *e)
{
	for (;;) {
		int id = opts_next(o, e);

		/* `run sh -c x` was meant to be a command. */
		if (id < 0 && r && r->n_words > 0 && strlen(e->msg) < 300)
			(void)snprintf(e->msg + strlen(e->msg), 100,
				       "; a command stands behind '--'");
		if (id != 0 || o->saw_dashdash || o->at >= o->argc)
			return id;
		if (r && r->n_words == ARRAY_LEN(r->words))
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%.64s' is one word too many; a command or a prompt stands "
				       "behind '--': vitrine run [AGENT] [PATH] -- ...",
				       o->argv[o->at]);
		if (r && r->n_words == 0)
			r->first_word = o->at;
		if (r)
			r->words[r->n_words++] = o->argv[o->at];
		o->at++;
	}
}

/* What must be known before there is a policy. */
static int take_first(struct run *r, int id, const char *value, struct err *e)
{
	switch (id) {
	case OPT_WORKSPACE:
		r->workspace = value;
		break;
	case OPT_WORKDIR:
		r->workdir = value;
		break;
	case OPT_USER:
		r->user = value;
		break;
	case OPT_POLICY:
		r->policy_file = value;
		break;
	case OPT_JSON:
		r->as_json = true;
		break;
	case OPT_RM:
		r->is_rm = true;
		break;
	case OPT_FRESH:
		r->is_fresh = true;
		break;
	case OPT_ACCEPT_MOVED:
		r->accepts_moved = true;
		break;
	case OPT_FREE:
		r->is_free = true;
		break;
	case OPT_AS_ROOT:
		r->is_as_root = true;
		break;
	case OPT_TEMPLATE:
		r->template = value;
		break;
	case OPT_LOCAL:
		r->is_local = true;
		break;
	case OPT_INTERACTIVE:
		r->flags |= KEEP_WANT_STDIN;
		break;
	case OPT_TTY:
		r->flags |= KEEP_WANT_TTY;
		break;
	case OPT_DETACH:
		r->flags |= KEEP_BEHIND;
		break;
	case OPT_TIED:
		r->flags |= KEEP_TIED;
		break;
	case OPT_DETACH_KEYS:
		r->detach_keys = value;
		break;
	case OPT_QUIET:
		r->is_quiet = true;
		break;
	case OPT_SETTING + SETTING_ENGINE:
		r->is_eager &= str_eq(value, "native"); /* else the namespaces will not be ours */
		break;
	case OPT_NAME:
		r->name = value;
		return check_name(value, e);
	default:
		break; /* of the policy: the second pass */
	}
	return 0;
}

/* What is wrong behind the first word is kept for later: when that is a command, it is the command's own affair. */
static int first_pass(struct run *r, int argc, char **argv, struct err *e)
{
	struct opts o;
	int id, x = 0;

	init_opts(&o, argc, argv);
	while (x == 0 && (id = next_opt(&o, r, e)) != 0)
		x = id < 0 ? id : take_first(r, id, o.value, e);
	r->command = argv + o.at;
	if (x < 0 && r->n_words > 0) {
		r->word_err = *e;
		*e = ERR_INIT;
		x = 0;
	}
	return x;
}

/* ---- second pass: flags over all other layers ---- */

/* A path as the user means it: "~/" is the home, anything relative is seen from here. */
static char *user_path(const struct run *r, const char *path)
{
	return str_starts(path, "~/") ? path_join(r->host.home, path + 2)
				      : path_join(r->host.cwd, path);
}

/* One of --read and --write; "!" takes back. */
static int add_path(struct run *r, enum list_id list, const char *text, struct err *e)
{
	bool is_back = text[0] == '!';
	const char *path = text + is_back;
	_free_ char *full = NULL;
	_free_ char *item = NULL;

	if (path[0] == '\0')
		return err_set(e, ERR_USAGE, EINVAL, "an empty path");
	full = user_path(r, path);
	item = mem_fmt("%s%s", is_back ? "!" : "", full);
	return policy_add(&r->policy, list, item, LAYER_FLAGS, e);
}

/* HOST[:INSIDE][:ro|:rw] -> "HOST:INSIDE:mode", as struct policy wants it. */
static int add_volume(struct run *r, const char *text, struct err *e)
{
	_free_ char *copy = mem_str(text);
	_free_ char *host = NULL;
	_free_ char *item = NULL;
	char *inside = strchr(copy, ':');
	const char *mode = "rw";

	if (inside)
		*inside++ = '\0';
	if (inside && (str_eq(inside, "ro") || str_eq(inside, "rw"))) {
		mode = inside;
		inside = NULL;
	} else if (inside && strchr(inside, ':')) {
		char *m = strchr(inside, ':');

		*m++ = '\0';
		mode = m;
	}
	if (copy[0] == '\0' || (!str_eq(mode, "ro") && !str_eq(mode, "rw")))
		return err_set(e, ERR_USAGE, EINVAL, "'%.120s': expected HOST[:INSIDE][:ro]", text);
	host = user_path(r, copy);
	if (inside && !path_is_clean(inside))
		return err_set(e, ERR_USAGE, EINVAL, "'%.120s': '%s' is not an absolute path", text,
			       inside);
	item = mem_fmt("%s:%s:%s", host, inside ? inside : host, mode);
	if (strchr(host, ':'))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.120s': a path with ':' cannot be given this way", text);
	return policy_add(&r->policy, LIST_MOUNT, item, LAYER_FLAGS, e);
}

static bool is_env_name(const char *s, size_t n)
{
	if (n == 0 || (s[0] >= '0' && s[0] <= '9'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!(s[i] == '_' || (s[i] >= '0' && s[i] <= '9') ||
		      ((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z')))
			return false;
	return true;
}

static int add_env(void *run, const char *text, struct err *e)
{
	struct run *r = run;
	size_t n = strcspn(text, "=");
	const char *value;
	_free_ char *kv = NULL;

	if (!is_env_name(text, n))
		return err_set(e, ERR_USAGE, EINVAL, "'%.80s': expected NAME or NAME=VALUE", text);
	if (text[n] == '=')
		return policy_add(&r->policy, LIST_ENV_SET, text, LAYER_FLAGS, e);
	value = getenv(text);
	if (value == NULL)
		return 0; /* as other tools do: a variable the caller has not is not set inside */
	kv = mem_fmt("%s=%s", text, value);
	return policy_add(&r->policy, LIST_ENV_SET, kv, LAYER_FLAGS, e);
}

/* Options that need a way out open one. */
static int add_net(struct policy *p, enum list_id list, const char *value, struct err *e)
{
	int x = policy_add(p, list, value, LAYER_FLAGS, e);

	return x < 0 || list == LIST_NET_DENY || list == LIST_INSPECT_DENY
		       ? x
		       : policy_set(p, SETTING_NETWORK, "gate", LAYER_FLAGS, e);
}

/* A host, a group of hosts, or several with commas: "npm,github". "GET host/path" is for inspection. */
static int add_hosts(struct policy *p, bool is_deny, const char *value, struct err *e)
{
	_free_ char *copy = mem_str(value);
	int x = 0;

	if (strchr(value, ' '))
		return add_net(p, is_deny ? LIST_INSPECT_DENY : LIST_INSPECT_ALLOW, value, e);
	for (char *at = copy, *next; x == 0 && at; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		x = add_net(p, is_deny ? LIST_NET_DENY : LIST_NET_ALLOW, at, e);
	}
	return x;
}

static int set_net(struct policy *p, const char *preset, struct err *e)
{
	bool is_none = str_eq(preset, "none");
	int x = policy_set(p, SETTING_NET_PRESET, preset, LAYER_FLAGS, e);

	return x < 0 ? x
		     : policy_set(p, SETTING_NETWORK, is_none ? "none" : "gate", LAYER_FLAGS, e);
}

/* Without a gate there is nothing to be asked about. */
static int set_ask(struct policy *p, struct err *e)
{
	int x = policy_set(p, SETTING_NET_ASK, "true", LAYER_FLAGS, e);

	return x < 0 ? x : policy_set(p, SETTING_NETWORK, "gate", LAYER_FLAGS, e);
}

static int apply_net(struct policy *p, int id, const char *value, struct err *e)
{
	switch (id) {
	case OPT_ALLOW:
		return add_hosts(p, false, value, e);
	case OPT_GIT_FETCH:
		return add_net(p, LIST_GIT_FETCH, value, e);
	case OPT_GIT_PUSH:
		return add_net(p, LIST_GIT_PUSH, value, e);
	case OPT_DENY:
		return add_hosts(p, true, value, e);
	case OPT_ASK:
		return set_ask(p, e);
	case OPT_NET:
		return set_net(p, value, e);
	case OPT_PUBLISH:
		return add_net(p, LIST_NET_PORTS, value, e);
	case OPT_HOST_PORT:
		return add_net(p, LIST_NET_HOST_PORTS, value, e);
	default:
		return 0;
	}
}

/* What of the user's own the preset names, as far as it is there. */
static int add_share(struct run *r, struct err *e)
{
	int x = 0;

	if (!r->has_def || r->preset.share == NULL)
		return err_set(e, ERR_USAGE, EINVAL, "the preset names nothing to share");
	for (const struct json *v = r->preset.share->first; x == 0 && v; v = v->next) {
		_free_ char *path = user_path(r, v->text);

		if (access(path, F_OK) == 0)
			x = policy_add(&r->policy, LIST_READ, path, LAYER_FLAGS, e);
	}
	return x;
}

/* A file that is read at each start of a sandbox that lasts must still be that one; a pipe has no place. */
static int add_place(struct run *r, const char *path, struct err *e)
{
	_free_ char *full = user_path(r, path), *real = realpath(full, NULL);

	return real && r->has_def ? places_add(&r->host.places, full, real, FD_NONE, e) : 0;
}

static int apply(struct run *r, int id, const char *value, struct err *e)
{
	int x;

	struct policy *p = &r->policy;

	if (id >= OPT_SETTING)
		return policy_set(p, (enum setting_id)(id - OPT_SETTING), value ? value : "true",
				  LAYER_FLAGS, e);
	if (id >= OPT_LIST)
		return policy_add(p, (enum list_id)(id - OPT_LIST), value, LAYER_FLAGS, e);
	if (id >= OPT_LIMIT)
		return policy_set_limit(p, (enum limit_id)(id - OPT_LIMIT), value, LAYER_FLAGS, e);
	switch (id) {
	case OPT_ENV:
		return add_env(r, value, e);
	case OPT_ENV_FILE:
		x = add_place(r, value, e);
		return x < 0 ? x : env_file_each(value, add_env, r, e);
	case OPT_VOLUME:
		return add_volume(r, value, e);
	case OPT_READ:
		return add_path(r, LIST_READ, value, e);
	case OPT_WRITE:
		return add_path(r, LIST_WRITE, value, e);
	case OPT_SHARE:
		return add_share(r, e);
	case OPT_TEMPLATE: /* known already: find_template() */
	case OPT_LOCAL:
		return 0;
	default:
		return apply_net(p, id, value, e);
	}
}

/* Options that say how to talk to a session, not what its walls are. */
static bool is_of_session(int id)
{
	return id == OPT_WORKSPACE || id == OPT_WORKDIR || id == OPT_USER || id == OPT_JSON ||
	       id == OPT_RM || id == OPT_INTERACTIVE || id == OPT_TTY || id == OPT_DETACH ||
	       id == OPT_QUIET || id == OPT_TIED || id == OPT_DETACH_KEYS || id == OPT_NAME ||
	       id == OPT_FRESH || id == OPT_FREE || id == OPT_AS_ROOT || id == OPT_ACCEPT_MOVED ||
	       id == OPT_LOCAL;
}

/* An option as the definition keeps it: in one word, and meaning the same wherever it is read. */
static char *flag_text(const struct run *r, const struct opts *o)
{
	bool is_path = o->opt->id == OPT_READ || o->opt->id == OPT_WRITE ||
		       o->opt->id == OPT_VOLUME || o->opt->id == OPT_ENV_FILE ||
		       o->opt->id == OPT_POLICY;
	const char *v = o->value;
	_free_ char *path = NULL, *host = NULL;
	size_t n;

	if (v == NULL)
		return mem_fmt("--%s", o->opt->name);
	if (!is_path)
		return mem_fmt("--%s=%s", o->opt->name, v);
	v += v[0] == '!';
	n = o->opt->id == OPT_VOLUME ? strcspn(v, ":") : strlen(v);
	path = mem_strn(v, n);
	host = user_path(r, path);
	return mem_fmt("--%s=%s%s%s", o->opt->name, o->value[0] == '!' ? "!" : "", host, v + n);
}

static bool has_flag(const struct def *d, const char *text)
{
	for (size_t i = 0; i < d->n_flags; i++)
		if (str_eq(d->flags[i], text))
			return true;
	return false;
}

int run_each_flag(struct run *r, int argc, char **argv,
		  int (*fn)(struct run *r, const char *text, struct err *e), struct err *e)
{
	struct opts o;
	int id, x = 0;

	init_opts(&o, argc, argv);
	while (x == 0 && (id = next_opt(&o, NULL, e)) > 0) {
		_free_ char *text = NULL;

		/* An image without a system of its own has done its work (saved_begin). */
		if (is_of_session(id) || (id == OPT_TEMPLATE && r->template == NULL))
			continue;
		text = flag_text(r, &o);
		if (!has_flag(&r->def, text))
			x = fn(r, text, e);
	}
	return x;
}

static int apply_all(struct run *r, int argc, char **argv, bool is_def, struct err *e)
{
	struct opts o;
	int id, x = 0;

	init_opts(&o, argc, argv);
	while (x == 0 && (id = next_opt(&o, NULL, e)) > 0) {
		_free_ char *text = !is_def && r->has_def ? flag_text(r, &o) : NULL;

		/* What the definition says already is not said twice. */
		if (text == NULL || is_of_session(id) || !has_flag(&r->def, text))
			x = apply(r, id, o.value, e);
	}
	return x < 0 ? err_wrap(e, x, "--%s", o.opt ? o.opt->name : "?") : id < 0 ? id : 0;
}

/* What `net allow` and its like have added since. */
static int apply_netfile(struct run *r, char *verb, struct err *e)
{
	_cleanup_(netfile_done) struct netfile f = { 0 };
	bool had_gate = r->policy.network == NET_GATE;
	_free_ char **v = NULL;
	int x = netfile_read(r->host.state_dir, r->def.name, &f, e);

	if (x < 0 || f.n == 0)
		return x;
	v = mem_new(f.n + 2, sizeof(*v));
	v[0] = verb;
	memcpy(v + 1, f.lines, f.n * sizeof(*v));
	x = apply_all(r, (int)f.n + 1, v, true, e);
	/* `--policy deny` closes what a preset opened, not what is listed. */
	return x == 0 && had_gate ? policy_set(&r->policy, SETTING_NETWORK, "gate", LAYER_FLAGS, e)
				  : x;
}

/* The definition's flags, then the caller's. */
static int second_pass(struct run *r, int argc, char **argv, struct err *e)
{
	_free_ char **v = NULL;
	int x;

	if (r->has_def && r->def.n_flags > 0) {
		v = mem_new(r->def.n_flags + 2, sizeof(*v));
		v[0] = argv[0];
		memcpy(v + 1, r->def.flags, r->def.n_flags * sizeof(*v));
		x = apply_all(r, (int)r->def.n_flags + 1, v, true, e);
		if (x < 0)
			return err_wrap(e, x, "sandbox '%s'", r->def.name);
	}
	x = r->has_def ? apply_netfile(r, argv[0], e) : 0;
	return x < 0 ? x : apply_all(r, argc, argv, false, e);
}

/* ---- together ---- */

static int random_name(char *name, size_t size, struct err *e)
{
	uint32_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return err_sys(e, "getrandom");
	(void)snprintf(name, size, "-run-%08x", n); /* the first '-' marks a generated name */
	return 0;
}

/* Which engine it will be is decided before the plan is made, and never weaker than the policy's isolation. */
static int pick_engine(struct run *r, struct err *e)
{
	int x = engine_pick(engine_led(r->policy.engine, r->host.facts.environ),
			    (enum engine_strength)r->policy.isolation,
			    r->host.facts.is_root ? BIT(STEP_ROOT) : 0, &r->engine, e);

	if (x < 0)
		return x;
	if (r->engine->render)
		x = host_engine(&r->host, e);
	engine_tell(r->engine, &r->host.facts);
	free(r->policy.engine);
	r->policy.engine = mem_str(r->engine->name);
	return x;
}

/* What goes on behind the scenes is to outlive the login. Before the keeper is forked: it inherits the unit. */
void run_last(const struct run *r)
{
	struct err why = ERR_INIT;

	if (r->flags & KEEP_BEHIND)
		(void)lasting_enter(&why);
	if (why.msg[0])
		cli_complain(why.msg);
}

/* Our own mistake or the host's will be found by the plan or told by the keeper; here only its fork can fail. */
static int begin_early(struct run *r, struct err *e)
{
	struct ids ids = plan_ids(&r->host.facts);

	run_last(r);
	return keeper_begin(&ids, &r->early, e);
}

static void begin_run(struct run *r, int argc, char **argv, bool is_eager)
{
	*r = (struct run){ .host = { .ws_fd = FD_NONE },
			   .early = EARLY_NONE,
			   .is_eager = is_eager,
			   .argc = argc,
			   .argv = argv };
}

/* Does the value of --user stand behind the first word? */
static bool is_user_behind(const struct run *r)
{
	for (int i = r->first_word; r->user && i < r->argc; i++)
		if (r->user >= r->argv[i] && r->user <= r->argv[i] + strlen(r->argv[i]))
			return true;
	return false;
}

/* `run npm test`: the options end where the command begins, and the first pass is made again without what is behind. A
 * --user that stands there is ours only where the first word is no command. */
static int settle_words(struct run *r, struct err *e)
{
	bool is_eager = r->is_eager, is_behind = is_user_behind(r);
	int x = host_init(&r->host, is_behind ? NULL : r->user, e), at = r->first_word;
	struct host h;

	if (x < 0)
		return x;
	if (run_is_command(r)) {
		h = r->host;
		begin_run(r, at, r->argv, is_eager);
		r->host = h;
		x = first_pass(r, at, r->argv, e);
		r->command = r->argv + at;
		return x;
	}
	if (r->word_err.msg[0]) {
		*e = r->word_err;
		return -e->num;
	}
	if (is_behind) {
		host_done(&r->host);
		x = host_init(&r->host, r->user, e);
	}
	return x;
}

static int read_keys(struct run *r, struct err *e)
{
	int x = keys_parse(r->detach_keys ? r->detach_keys : "ctrl-p,ctrl-q", r->keys, e);

	return x < 0 ? err_wrap(e, x, "--detach-keys") : 0;
}

static int check_words(const struct run *r, bool lasts, struct err *e)
{
	if (r->is_free && r->n_words == 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "--dsp and --yolo are said to an agent: vitrine run claude . --dsp");
	if (r->flags & KEEP_TIED && (lasts || r->flags & KEEP_BEHIND))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--tied is for a run without a name that somebody waits for: a "
			       "sandbox "
			       "with a name, and one behind the scenes, outlive the command that "
			       "started them");
	if (r->is_as_root && (lasts || r->template))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--as-root is for a run without a name and on "
			       "the host's own system; in a "
			       "sandbox of a template there is 'sudo'");
	return 0;
}

int run_parse(struct run *r, int argc, char **argv, struct err *e)
{
	bool lasts, has_words;
	int x;

	begin_run(r, argc, argv, r->is_eager);
	x = first_pass(r, argc, argv, e);
	has_words = r->n_words > 0;
	if (x == 0)
		x = has_words ? settle_words(r, e) : host_become(&r->host, r->user, e);
	lasts = r->name || r->n_words > 0;
	if (x == 0)
		x = read_keys(r, e);
	if (x == 0)
		x = check_words(r, lasts, e);
	if (x == 0 && r->is_as_root)
		x = host_root(&r->host, ROOT_JOB, e);
	/* A run without a name needs to know nothing of those that have one; of those, some will only be joined. */
	if (x == 0 && r->is_eager && !lasts)
		x = begin_early(r, e);
	policy_init(&r->policy);
	if (x == 0 && !has_words)
		x = host_locate(&r->host, e);
	return x == 0 && lasts ? run_target(r, e) : x;
}

/* Whose ids there are inside depends on it. */
static int find_template(struct run *r, struct err *e)
{
	const char *name = r->template ? r->template : def_flag(&r->def, "--template=");
	char *root = NULL;
	int x = name ? template_find(r->host.state_dir, name, &root, e) : 0;

	if (x == -ENOENT && image_is_saved(r->host.state_dir, name))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.64s' is a sandbox that was saved: another one begins with it, "
			       "and needs a name: vitrine run --name NAME -t %.64s",
			       name, name);
	if (x == -ENOENT && r->is_local && r->is_starting) {
		*e = ERR_INIT;
		x = template_take_local(&r->host, name, e);
		if (x == 0)
			x = template_find(r->host.state_dir, name, &root, e);
	}
	if (x == 0 && name)
		x = host_template(&r->host, root, r->has_def, e);
	return x < 0 ? err_wrap(e, x, "--template '%.64s'", name) : 0;
}

/* Where a preset's agent finds the program that its hooks call. */
static int add_hook(struct run *r, struct policy *p, struct err *e)
{
	_free_ char *mount = NULL;

	/* One that lies in the workspace is seen there, and protected. */
	if (r->preset.hook == NULL || path_is_beneath(r->host.self_exe, r->host.workspace))
		return 0;
	mount = mem_fmt("%s:" SEED_PROGRAM ":ro", r->host.self_exe);
	return policy_add(p, LIST_MOUNT, mount, LAYER_PRESET, e);
}

/* The layer between the user's file and the project's. Secrets are used where there are any. */
static int add_preset(struct policy *p, void *arg, struct err *e)
{
	struct run *r = arg;
	const struct json *names = r->preset.secrets;
	int x = preset_apply(&r->preset, p, e);

	for (const struct json *v = names ? names->first : NULL; x == 0 && v; v = v->next)
		if (secrets_has(r->host.state_dir, v->text))
			x = policy_add(p, LIST_SECRETS, v->text, LAYER_PRESET, e);
	return x < 0 ? x : add_hook(r, p, e);
}

/* Before anything is read there, and once more when it is known what is granted. */
static int check_places(const struct run *r, struct err *e)
{
	return r->has_def && !r->accepts_moved
		       ? places_check(&r->was, &r->host.places,
				      &(struct place_of){ r->def.name, r->def.workspace }, e)
		       : 0;
}

static int find_place(struct run *r, struct err *e)
{
	int x = find_template(r, e);

	if (x == 0 && r->is_eager && r->early.conn < 0)
		x = begin_early(r, e);
	if (x == 0)
		x = host_workspace(&r->host, r->has_def ? r->def.workspace : r->workspace, e);
	if (x == 0 && r->has_def && !r->is_new)
		x = places_read(r->host.state_dir, r->def.name, &r->was, e);
	if (x == 0)
		x = check_places(r, e);
	return x < 0 ? x : plan_check_workspace(&r->host.facts, e);
}

static int settle_policy(struct run *r, struct err *e)
{
	struct settings_in in = {
		.use_project = true,
		.config_dir = r->host.config_dir,
		.state_dir = r->host.state_dir,
		.workspace = r->host.workspace,
		.policy_file = r->policy_file ? r->policy_file : def_flag(&r->def, "--policy="),
		.preset = r->has_def ? add_preset : NULL,
		.arg = r,
	};
	int x = in.policy_file ? add_place(r, in.policy_file, e) : 0;

	if (x == 0)
		x = settings_load(&r->policy, &in, e);
	if (x == 0)
		x = second_pass(r, r->argc, r->argv, e);
	if (x == 0)
		x = policy_validate(&r->policy, e);
	return x < 0 ? x : pick_engine(r, e);
}

static void tell_mended(const struct run *r)
{
	for (size_t i = 0; i < r->host.mended.n; i++) {
		const struct swept *s = &r->host.mended.v[i];
		_free_ char *line =
			mem_fmt("a sandbox was killed here: quarantined %s (%s)%s", s->rel, s->rule,
				s->saved ? "; 'vitrine quarantine ls found-later' "
					   "lists it, 'vitrine quarantine restore "
					   "found-later PATH' brings it back"
					 : ": it could not be kept, and is removed");

		cli_complain(line);
	}
}

/* The copies lie under the sandbox's name; `explain` makes none. */
static int prepare_worktree(struct run *r, const char *name, struct err *e)
{
	struct host *h = &r->host;

	if (h->worktree_why && r->is_starting) {
		_free_ char *note = mem_fmt("linked worktree: its repository is not shown inside, "
					    "because %.200s",
					    h->worktree_why);

		cli_complain(note);
	}
	if (h->facts.worktree.common == NULL)
		return 0;
	h->worktree_place = mem_fmt("%s/worktrees/%s", h->state_dir, name);
	h->facts.worktree.place = h->worktree_place;
	return r->is_starting ? worktree_prepare(&h->worktree, h->worktree_place, e) : 0;
}

/* Where a host is inspected, a trust store that cannot be read is a refusal of its own, which says so. */
static void tell_trust(const struct run *r)
{
	const char *why = r->host.trust_why;

	if (why && r->is_starting && !(r->plan.net.has_seal && str_starts(why, "SSL_CERT_FILE ")))
		cli_complain(why);
}

/* Settings of the preset that lie in /etc inside. */
static void give_etc_texts(struct run *r)
{
	const struct json *list = r->preset.etc;
	const struct preset_fill fill = { .workspace = r->host.workspace };
	size_t n = 0;

	if (list == NULL)
		return;
	r->etc_texts = mem_new(list->n + 1, sizeof(*r->etc_texts));
	for (const struct json *v = list->first; v; v = v->next) {
		struct buf text = BUF(64 * KIB);

		preset_seed_text(v, &fill, &text);
		r->etc_texts[n++] =
			(struct etc_text){ .path = mem_str(v->key), .text = buf_take(&text) };
	}
	r->etc_texts[n] = (struct etc_text){ 0 };
	r->host.facts.etc_texts = r->etc_texts;
	r->host.facts.n_etc_texts = n;
}

int run_plan(struct run *r, struct err *e)
{
	char name[24];
	int x = find_place(r, e);

	if (x == 0)
		x = settle_policy(r, e);
	if (x == 0)
		x = run_begin_soon(r, e);
	r->host.is_only_shown = !r->is_starting;
	if (x == 0)
		x = host_look(&r->host, &r->policy, e);
	tell_mended(r);
	if (r->host.home_note && r->is_starting)
		cli_complain(r->host.home_note);
	if (x == 0)
		x = check_places(r, e);
	if (x == 0 && (plan_wants_tools(&r->policy, r->has_def) || plan_wants_broker(&r->policy)))
		x = host_tools(&r->host, e);
	if (x == 0)
		x = run_layers(r, e);
	if (x == 0 && !r->has_def)
		x = random_name(name, sizeof(name), e);
	if (x == 0)
		x = secrets_look(&r->secrets, r->host.state_dir, r->has_def ? r->def.name : name,
				 &r->policy, e);
	if (x == 0)
		x = prepare_worktree(r, r->has_def ? r->def.name : name + 1, e);
	give_etc_texts(r);
	r->host.facts.secrets = r->secrets.facts;
	r->host.facts.n_secrets = r->secrets.n_facts;
	if (x == 0)
		x = plan_build(
			&r->policy, &r->host.facts,
			&(struct errand){ r->has_def ? r->def.name : name, r->command, r->workdir },
			&r->plan, e);
	r->has_plan = x == 0;
	if (x == 0)
		tell_trust(r);
	return x < 0 ? x : engine_check(r->engine, &r->plan, e);
}

void run_forget(struct run *r)
{
	if (mem_is_shared(r))
		return; /* the keeper's as well; it goes with the process */
	policy_done(&r->policy);
	host_done(&r->host);
	secrets_done(&r->secrets);
}

void run_done(struct run *r)
{
	if (mem_is_shared(r))
		return;
	if (r->has_plan)
		plan_done(&r->plan);
	def_done(&r->def);
	places_done(&r->was);
	layers_done(&r->layers);
	layers_paths_free(r->ws_layers);
	layers_paths_free(r->home_layers);
	layers_paths_free(r->sys_layers);
	free(r->made_command);
	free(r->ws_repo);
	for (struct etc_text *v = r->etc_texts; v && v->path; v++) {
		free(v->path);
		free(v->text);
	}
	free(r->etc_texts);
	preset_done(&r->preset);
	run_forget(r);
}
