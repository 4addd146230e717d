/* SPDX-License-Identifier: Apache-2.0 */
/* plan/env.c - the environment of the command inside, and of an engine's program outside */
#include "base/sabotage.h"
#include "plan/parts.h"
#include "sys/netns.h"

/* Programs that know proxies are told of ours; the others come to it by themselves. */
static void plan_proxy_env(struct plan *p)
{
	static const char *const http[] = { "HTTP_PROXY",  "HTTPS_PROXY", "http_proxy",
					    "https_proxy", "ALL_PROXY",   "all_proxy" };
	static const char *const no[] = { "NO_PROXY", "no_proxy" };
	char url[40];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", NETNS_PROXY_PORT);
	for (size_t i = 0; i < ARRAY_LEN(http); i++)
		plan_add_env_kv(p, http[i], url);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		plan_add_env_kv(p, no[i], "localhost,127.0.0.1,::1");
}

/* Without network a second try is as good as the first: package managers that would wait for a minute (npm: 70 s) fail
 * at once. */
static void plan_offline_env(struct plan *p)
{
	static const char *const vars[] = {
		"npm_config_fetch_retries", /* npm, pnpm */
		"YARN_HTTP_RETRY",          /* yarn from 2 on */
		"PIP_RETRIES",              /* pip */
		"UV_HTTP_RETRIES",          /* uv */
		"CARGO_NET_RETRY",          /* cargo */
		"BUNDLE_RETRY",             /* bundler */
	};

	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		plan_add_env_kv(p, vars[i], "0");
}

/* For OpenTelemetry, in the one form every exporter has; and for `vitrine hook`. */
static void plan_receiver_env(struct plan *p)
{
	static const char *const exporters[] = { "OTEL_LOGS_EXPORTER", "OTEL_METRICS_EXPORTER",
						 "OTEL_TRACES_EXPORTER" };
	char url[40], port[8];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", NETNS_TELEMETRY_PORT);
	(void)snprintf(port, sizeof(port), "%d", NETNS_TELEMETRY_PORT);
	for (size_t i = 0; i < ARRAY_LEN(exporters); i++)
		plan_add_env_kv(p, exporters[i], "otlp");
	plan_add_env_kv(p, "OTEL_EXPORTER_OTLP_ENDPOINT", url);
	plan_add_env_kv(p, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
	plan_add_env_kv(p, "VITRINE_EVENTS", port);
}

/* Safe tools stand first, whoever set the rest. */
static void plan_tools_path(struct plan *p)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (str_starts(p->env[i], "PATH=")) {
			_free_ char *kv = mem_fmt("PATH=" PLAN_TOOLS ":%s", p->env[i] + 5);

			plan_add_env(p, kv);
			plan_add_env_kv(p, "VITRINE_WORKSPACE", p->workspace);
			return;
		}
}

/* Where the user's settings lie inside, for who does not look there by itself. A template with users of its own has an
 * /etc of its own, into which nothing is put. */
static void plan_home_env(struct plan *p, const struct facts *f)
{
	static const struct {
		enum home_file what;
		const char *var, *name;
		bool is_known; /* the program looks into /etc */
	} vars[] = {
		{ HOME_GIT, "GIT_CONFIG_SYSTEM", "gitconfig", true },
		{ HOME_NPM, "NPM_CONFIG_GLOBALCONFIG", "npmrc", false },
		{ HOME_PIP, "PIP_CONFIG_FILE", "pip.conf", true },
	};
	bool has_own_etc = p->ids.root == ROOT_SETUID;

	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		_free_ char *text = plan_home_text(f, vars[i].what);
		_free_ char *path =
			mem_fmt("%s/etc/%s", has_own_etc ? "/.vitrine" : "", vars[i].name);

		if (text && text[0] && (has_own_etc || !vars[i].is_known))
			plan_add_env_kv(p, vars[i].var, path);
	}
}

/* The placeholder, or a text with the placeholder in it: a URL with a password, for programs that know no other form. */
static void plan_secret_env(struct plan *p, const struct secret_fact *s, const char *var)
{
	const char *hole = s->around ? strstr(s->around, "{}") : NULL;
	_free_ char *text = hole ? mem_fmt("%.*s%s%s", (int)(hole - s->around), s->around,
					   s->placeholder, hole + 2)
				 : NULL;

	plan_add_env_kv(p, var, text ? text : s->placeholder);
}

void plan_env(struct plan *p, const struct policy *pol, const struct facts *f)
{
	plan_add_env_kv(p, "PATH", "/usr/local/bin:/usr/bin:/bin");
	for (char *const *v = f->environ; v && *v; v++) {
		_free_ char *name = mem_strn(*v, strcspn(*v, "="));

		if (strchr(*v, '=') && (policy_env_passes(pol, name) || sabotaged("env")))
			plan_add_env(p, *v);
	}
	plan_add_env_kv(p, "HOME", p->home);
	plan_add_env_kv(p, "USER", p->user);
	plan_add_env_kv(p, "LOGNAME", p->user);
	plan_add_env_kv(p, "PWD", p->cwd);
	plan_add_env_kv(p, "container", "vitrine");
	plan_add_env_kv(p, "VITRINE", p->name);
	plan_home_env(p, f);
	/* A new submodule's hooks would be refused, and git stops at that. */
	if (p->serves_git)
		plan_add_env_kv(p, "GIT_TEMPLATE_DIR", "");
	if (p->net.has_gate)
		plan_proxy_env(p);
	else
		plan_offline_env(p);
	if (p->net.has_receiver)
		plan_receiver_env(p);
	for (const char *const *v = plan_trust_vars; p->net.has_seal && *v; v++)
		plan_add_env_kv(p, *v, PLAN_BUNDLE);
	for (size_t i = 0; !p->net.has_seal && i < f->n_own_trust; i++) {
		_free_ char *path = plan_own_trust_path(f, i);

		plan_add_env_kv(p, f->own_trust[i].var, path);
	}
	if (p->net.has_java)
		plan_add_env_kv(p, "JAVA_TOOL_OPTIONS", plan_trust_java);
	for (size_t i = 0; p->net.has_gate && i < f->n_secrets; i++)
		for (size_t k = 0; k < f->secrets[i].n_env; k++)
			plan_secret_env(p, &f->secrets[i], f->secrets[i].env[k]);
	for (size_t i = 0; i < pol->env_set.n; i++)
		plan_add_env(p, pol->env_set.v[i].text);
	if (f->tools_exe.path)
		plan_tools_path(p);
}

/* The engine's program runs outside, as the user: it gets what it needs to find its own things, and no more. */
static const char
	*const engine_vars[] = { "DOCKER_HOST",
				 "DOCKER_CONTEXT",
				 "DOCKER_CONFIG",
				 "VITRINE_VM_KERNEL",
				 "VITRINE_VM_MODULES",
				 "VITRINE_VM_KEEP",
				 "VITRINE_VM_DIR",
				 "VITRINE_VM_SHARE",
				 "VITRINE_VM_VIRTIOFSD",
				 "VITRINE_GVISOR_PLATFORM",
				 "DBUS_SESSION_BUS_ADDRESS" /* the last: podman has none */ };
/* And podman's client to find a service: never podman itself, which would become one. */
static const char *const remote_vars[] = { "CONTAINER_HOST", "CONTAINER_CONNECTION",
					   "CONTAINER_SSHKEY", "XDG_CONFIG_HOME" };

/* Those of the caller's that have one of these names; the new end of p->engine_env. */
static size_t pass_vars(struct plan *p, size_t n, char *const *from, const char *const *names,
			size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		for (char *const *v = from; v && *v; v++)
			if (str_starts(*v, names[i]) && (*v)[strlen(names[i])] == '=') {
				p->engine_env[n++] = mem_str(*v);
				break; /* a caller may name one twice */
			}
	return n;
}

void plan_engine(struct plan *p, const struct facts *f)
{
	bool is_podman = str_eq(p->engine, "podman"), is_remote = str_eq(p->engine, "podman-"
										    "remote");
	size_t n = 0;

	plan_add_mount(p, MOUNT_BIND, f->init_exe, "/.vitrine/init", MOUNT_RO, "init");
	p->engine_env = mem_new(ARRAY_LEN(engine_vars) + ARRAY_LEN(remote_vars) + 5,
				sizeof(*p->engine_env));
	p->engine_env[n++] = mem_str("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/"
				     "sbin:/bin");
	/* What podman keeps for itself lies with our state and not in the user's home; and nobody is asked for control groups. */
	p->engine_env[n++] = is_podman ? mem_fmt("HOME=%s/podman/home", f->state_dir)
				       : mem_fmt("HOME=%s", f->home);
	if (f->has_runtime_dir)
		n = pass_vars(p, n, f->environ, (const char *const[]){ "XDG_RUNTIME_DIR" }, 1);
	n = pass_vars(p, n, f->environ, engine_vars, ARRAY_LEN(engine_vars) - is_podman);
	if (is_remote)
		n = pass_vars(p, n, f->environ, remote_vars, ARRAY_LEN(remote_vars));
	/* It mounts one there, whatever it is told, and would make the directory as somebody else. */
	if (is_podman || is_remote)
		plan_add_skel(p, SKEL_DIR, "sys", "");
	if (is_podman) {
		p->engine_env[n++] = mem_fmt("XDG_CONFIG_HOME=%s/podman/config", f->state_dir);
		p->engine_env[n++] = mem_fmt("XDG_DATA_HOME=%s/podman/data", f->state_dir);
	}
}
