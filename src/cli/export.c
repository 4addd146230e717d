/* SPDX-License-Identifier: Apache-2.0 */
/* cli/export.c - the policy written down for tools that do not know it: a devcontainer, an image to work in
 *
 * What is written is a weaker wall than a sandbox of ours, and says so in its own comments: no gate, no covers that
 * come back, no proof. What can be carried over is: no network, no privileges, limits, variables, a read-only root.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/run.h"

enum { OPT_FORCE = 1, OPT_GVISOR };

const struct opt export_opts[] = {
	{ "force", 0, NULL, "write over files that are there", OPT_FORCE },
	{ "gvisor", 0, NULL, "devcontainer: run it with gVisor's runtime", OPT_GVISOR },
	{ NULL, 0, NULL, NULL, 0 },
};

static void put_arg(struct buf *b, const char *text)
{
	buf_puts(b, ",\n    ");
	buf_json(b, text);
}

static void put_limits(struct buf *b, const struct plan *p)
{
	const struct plan_limit *l = p->limits;
	_free_ char *memory = mem_fmt("--memory=%llu", (unsigned long long)l[LIMIT_MEMORY].max);
	_free_ char *pids = mem_fmt("--pids-limit=%llu", (unsigned long long)l[LIMIT_PIDS].max);

	if (l[LIMIT_MEMORY].is_set)
		put_arg(b, memory);
	if (l[LIMIT_PIDS].is_set)
		put_arg(b, pids);
}

/* One more mount over the workspace. */
static void put_mount(struct buf *b, size_t *n, const char *text)
{
	buf_puts(b, (*n)++ ? ",\n    " : "\n    ");
	buf_json(b, text);
}

static bool is_cover(const struct plan *p, const struct mount *m)
{
	return (m->kind == MOUNT_HIDE || m->kind == MOUNT_PROTECT) &&
	       path_is_beneath(m->dst, p->workspace);
}

/* A name that is hidden is covered by an empty file system or file; one that is protected by itself, read-only. */
static void put_covers(struct buf *b, const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		_free_ char *text = NULL;
		const char *rel;

		if (!is_cover(p, m))
			continue;
		rel = path_below(m->dst, p->workspace);
		if (m->kind == MOUNT_PROTECT)
			text = mem_fmt("type=bind,source=${localWorkspaceFolder}/%s,"
				       "target=${containerWorkspaceFolder}/%s,readonly",
				       rel, rel);
		else if (m->flags & MOUNT_DIR)
			text = mem_fmt("type=tmpfs,target=${containerWorkspaceFolder}/%s", rel);
		else
			text = mem_fmt("type=bind,source=/dev/null,target="
				       "${containerWorkspaceFolder}/%s,readonly",
				       rel);
		put_mount(b, &n, text);
	}
}

/* Refuses rather than leaves out: what is hidden here must not be seen there. */
static int check_covers(const struct plan *p, struct err *e)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (is_cover(p, m) && strpbrk(path_below(m->dst, p->workspace), ",$"))
			return err_set(e, ERR_UNSUPPORTED, EINVAL,
				       "'%s' is hidden or protected, and a devcontainer cannot say "
				       "so: its name has ',' or '$' in it",
				       m->dst);
	}
	return 0;
}

static void put_devcontainer(const struct plan *p, bool has_gvisor, struct buf *b)
{
	buf_puts(b, "// Made by `vitrine export devcontainer` from the policy of this project. A "
		    "container like\n"
		    "// this is a weaker wall than `vitrine run`: hidden and protected names are "
		    "covered when it\n"
		    "// starts and not again, and nothing goes through a gate, so there is no "
		    "network at all.\n"
		    "{\n  \"name\": \"vitrine\",\n  \"build\": { \"dockerfile\": \"Dockerfile\" "
		    "},\n"
		    "  \"remoteUser\": \"agent\",\n  \"runArgs\": [\n    \"--network=none\"");
	put_arg(b, "--cap-drop=all");
	put_arg(b, "--security-opt=no-new-privileges");
	if (has_gvisor)
		put_arg(b, "--runtime=runsc");
	put_limits(b, p);
	buf_puts(b, "\n  ],\n  \"mounts\": [");
	put_covers(b, p);
	buf_puts(b, "\n  ]\n}\n");
}

static void put_dockerfile(struct buf *b)
{
	buf_puts(b, "# Made by `vitrine export dockerfile`: an image for an agent to work in. Add "
		    "what your project\n"
		    "# needs; nothing in it is trusted, and nothing in it should be secret.\n"
		    "FROM debian:stable-slim\n"
		    "RUN apt-get update && \\\n"
		    "    apt-get install -y --no-install-recommends ca-certificates git procps && "
		    "\\\n"
		    "    rm -rf /var/lib/apt/lists/* && \\\n"
		    "    useradd --create-home --shell /bin/bash agent\n"
		    "USER agent\n"
		    "WORKDIR /home/agent\n");
}

static int write_new(const char *path, const struct buf *b, bool force, struct err *e)
{
	_close_ int fd =
		open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (force ? O_TRUNC : O_EXCL),
		     0644);

	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_CONFLICT, EEXIST,
			       "'%s' is there already; --force writes over it", path);
	if (fd < 0 || io_write_all(fd, b->p, b->n) < 0)
		return err_sys(e, "'%s'", path);
	(void)printf("%s\n", path);
	return 0;
}

static int export_devcontainer(bool force, bool has_gvisor, struct err *e)
{
	_cleanup_(buf_done) struct buf json = BUF(MIB), docker = BUF(MIB);
	char *argv[] = { (char *)(uintptr_t) "explain", NULL };
	struct run r = { 0 };
	int x = run_parse(&r, 1, argv, e);

	if (x == 0)
		x = run_plan(&r, e);
	if (x == 0)
		x = check_covers(&r.plan, e);
	if (x == 0) {
		_free_ char *dir = mem_fmt("%s/.devcontainer", r.plan.workspace);
		_free_ char *json_path = mem_fmt("%s/devcontainer.json", dir);
		_free_ char *docker_path = mem_fmt("%s/Dockerfile", dir);

		put_devcontainer(&r.plan, has_gvisor, &json);
		put_dockerfile(&docker);
		x = path_make(dir, 0755);
		if (x < 0)
			x = err_set(e, ERR_SYSTEM, -x, "'%s': %s", dir, strerrordesc_np(-x));
		if (x == 0)
			x = write_new(json_path, &json, force, e);
		if (x == 0)
			x = write_new(docker_path, &docker, force, e);
	}
	run_done(&r);
	return x;
}

int cmd_export(int argc, char **argv, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	bool force = false, has_gvisor = false;
	const char *what = NULL;
	struct opts o;
	int id;

	opts_init(&o, export_opts, argc, argv);
	for (;;) {
		while ((id = opts_next(&o, e)) > 0)
			*(id == OPT_FORCE ? &force : &has_gvisor) = true;
		if (id < 0)
			return id;
		if (o.at >= argc)
			break;
		if (what)
			return err_set(e, ERR_USAGE, EINVAL, "export: one word only");
		what = argv[o.at++];
	}
	if (what && str_eq(what, "devcontainer"))
		return export_devcontainer(force, has_gvisor, e);
	if (what && str_eq(what, "dockerfile")) {
		put_dockerfile(&b);
		return cli_print(&b, e);
	}
	return err_set(e, ERR_USAGE, EINVAL, "export: what? 'devcontainer' or 'dockerfile'");
}
