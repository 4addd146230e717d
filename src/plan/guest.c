/* SPDX-License-Identifier: Apache-2.0 */
/* plan/guest.c - see guest.h */
#include "plan/guest.h"
#include "base/num.h"
#include "base/path.h"

#define GUEST_LINES 4096 /* of one kind */

static const char *const access_words[ACCESS_KIND_COUNT_] = {
	[ACCESS_READ] = "read",
	[ACCESS_WRITE] = "write",
	[ACCESS_DEVICE] = "device",
	[ACCESS_PROC] = "proc",
};

/* ---- encode ---- */

static void put(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s %s", key, value);
	buf_putc(out, '\0');
}

static void put_number(struct buf *out, const char *key, uint64_t n)
{
	buf_printf(out, "%s %llu", key, (unsigned long long)n);
	buf_putc(out, '\0');
}

/* What the listeners inside need to know; who may go where is decided outside. */
static void put_net(struct buf *out, const struct plan_net *n)
{
	put_number(out, "gate", n->has_gate);
	for (char *const *v = n->host_ports; v && *v; v++)
		put(out, "host_port", *v);
	for (char *const *v = n->rules; v && *v; v++)
		if (strncmp(*v, "allow ", 6) == 0 && strrchr(*v, ':'))
			put(out, "rule", *v);
}

/* The first mount below a directory that is private; what is below that comes with it. */
static bool is_in_private(const struct plan *p, size_t i)
{
	const struct mount *over = NULL;

	for (size_t j = 0; j < i; j++)
		if (!str_eq(p->mounts[j].dst, p->mounts[i].dst) &&
		    path_is_beneath(p->mounts[i].dst, p->mounts[j].dst) &&
		    (over == NULL || path_is_beneath(p->mounts[j].dst, over->dst)))
			over = &p->mounts[j];
	return over && over->kind == MOUNT_PRIVATE;
}

/* Of a machine that can be saved, private space is its own memory: where, and what of the host shows through it. */
static void put_private(struct buf *out, const struct plan *p)
{
	put_number(out, "live", 1);
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (path_is_beneath(m->dst, "/proc") || path_is_beneath(m->dst, "/dev"))
			continue;
		if (m->kind == MOUNT_PRIVATE) {
			buf_printf(out, "private %s %s", m->src, m->dst);
			buf_putc(out, '\0');
		} else if (is_in_private(p, i)) {
			put(out, "through", m->dst);
		}
	}
}

void guest_encode(const struct plan *p, const struct guest_walls *w, struct buf *out)
{
	put_number(out, "uid", p->ids.uid_in);
	put_number(out, "gid", p->ids.gid_in);
	put_number(out, "debug", p->debug);
	put_number(out, "named", p->is_named);
	put_number(out, "check_reads", p->check_reads);
	put_number(out, "containers", p->has_containers);
	if (p->private_bytes) {
		put_number(out, "private_bytes", p->private_bytes);
		put_number(out, "private_inodes", p->private_inodes);
	}
	if (p->is_live)
		put_private(out, p);
	put_number(out, "own_kernel", w->has_own_kernel);
	put_number(out, "landlock", w->has_own_kernel ? 0 : p->landlock_abi);
	put_number(out, "umask", w->umask);
	put_number(out, "sample", w->sample_ms);
	put_number(out, "receiver", p->net.has_receiver);
	if (p->net.has_gate)
		put_net(out, &p->net);
	if (w->is_elsewhere) {
		put(out, "workspace", p->workspace);
		put_number(out, "ws_ino", p->ws_ino);
		put_number(out, "ws_mtime", w->ws_mtime);
	}
	put(out, "cwd", p->cwd);
	for (char *const *v = p->env; v && *v; v++)
		put(out, "env", *v);
	for (size_t i = 0; i < p->n_access; i++) {
		buf_printf(out, "access %s %s", access_words[p->access[i].kind], p->access[i].path);
		buf_putc(out, '\0');
	}
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++)
		if (p->limits[id].is_set && (id != LIMIT_PIDS || !w->has_cgroups))
			put_number(out, limit_name(id), p->limits[id].max);
}

/* ---- decode ---- */

struct reader {
	struct plan *plan;
	struct guest_walls *walls;
	size_t n_env, cap_env;
};

static int to_number(const char *value, uint64_t max, uint64_t *ret)
{
	struct err ignored;

	return num_parse(value, 0, max, ret, &ignored);
}

static bool take_number(struct reader *r, const char *key, const char *value)
{
	struct plan *p = r->plan;
	uint64_t n;

	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		if (!str_eq(key, limit_name(id)))
			continue;
		if (to_number(value, UINT64_MAX, &p->limits[id].max) < 0)
			return false;
		return p->limits[id].is_set = true;
	}
	if (to_number(value, UINT32_MAX, &n) < 0)
		return false;
	if (str_eq(key, "uid"))
		p->ids.uid_in = (uid_t)n;
	else if (str_eq(key, "gid"))
		p->ids.gid_in = (gid_t)n;
	else if (str_eq(key, "debug"))
		p->debug = n != 0;
	else if (str_eq(key, "named"))
		p->is_named = n != 0;
	else if (str_eq(key, "check_reads"))
		p->check_reads = n != 0;
	else if (str_eq(key, "containers"))
		p->has_containers = n != 0;
	else if (str_eq(key, "live"))
		p->is_live = n != 0;
	else if (str_eq(key, "own_kernel"))
		r->walls->has_own_kernel = n != 0;
	else if (str_eq(key, "landlock"))
		p->landlock_abi = (unsigned)n;
	else if (str_eq(key, "gate"))
		p->net.has_gate = n != 0;
	else if (str_eq(key, "receiver"))
		p->net.has_receiver = n != 0;
	else if (str_eq(key, "umask"))
		r->walls->umask = (unsigned)n & 0777;
	else if (str_eq(key, "sample"))
		r->walls->sample_ms = (unsigned)n;
	else
		return false;
	return true;
}

static bool take_access(struct plan *p, const char *value)
{
	const char *path = strchr(value, ' ');

	if (path == NULL || !path_is_clean(path + 1))
		return false;
	for (enum access_kind k = 0; k < ACCESS_KIND_COUNT_; k++) {
		size_t n = strlen(access_words[k]);

		if ((size_t)(path - value) != n || memcmp(value, access_words[k], n) != 0)
			continue;
		vec_reserve(p->access, p->n_access, p->cap_access);
		p->access[p->n_access++] = (struct access){ .kind = k, .path = mem_str(path + 1) };
		return true;
	}
	return false;
}

static bool take_env(struct reader *r, const char *value)
{
	struct plan *p = r->plan;

	if (strchr(value, '=') == NULL)
		return false;
	/* Room for the NULL behind it. */
	if (r->n_env + 2 > r->cap_env) {
		r->cap_env = r->cap_env ? r->cap_env * 2 : 16;
		p->env = mem_grow(p->env, r->cap_env, sizeof(*p->env));
	}
	p->env[r->n_env++] = mem_str(value);
	p->env[r->n_env] = NULL;
	p->n_env = r->n_env;
	return true;
}

static bool take_text(char ***list, size_t *n, const char *value)
{
	if (*n >= GUEST_LINES)
		return false;
	*list = mem_grow(*list, *n + 2, sizeof(**list));
	(*list)[(*n)++] = mem_str(value);
	(*list)[*n] = NULL;
	return true;
}

static bool take_host_port(struct plan_net *n, const char *value)
{
	struct err ignored;
	uint64_t port;

	return num_parse(value, 1, 65535, &port, &ignored) == 0 &&
	       take_text(&n->host_ports, &n->n_host_ports, value);
}

static bool take_mount(struct plan *p, enum mount_kind kind, const char *src, const char *dst)
{
	if (!path_is_clean(dst) || p->n_mounts >= GUEST_LINES)
		return false;
	vec_reserve(p->mounts, p->n_mounts, p->cap_mounts);
	p->mounts[p->n_mounts++] =
		(struct mount){ .kind = kind, .src = mem_str(src), .dst = mem_str(dst) };
	return true;
}

static bool take_private(struct plan *p, const char *value)
{
	_free_ char *name = mem_strn(value, strcspn(value, " "));

	value += strlen(name);
	return *value == ' ' && take_mount(p, MOUNT_PRIVATE, name, value + 1);
}

static bool take_line(struct reader *r, const char *line)
{
	_free_ char *key = mem_strn(line, strcspn(line, " "));
	const char *value = line + strlen(key);

	if (*value++ != ' ')
		return false;
	if (str_eq(key, "env"))
		return take_env(r, value);
	if (str_eq(key, "access"))
		return take_access(r->plan, value);
	if (str_eq(key, "host_port"))
		return take_host_port(&r->plan->net, value);
	if (str_eq(key, "rule"))
		return take_text(&r->plan->net.rules, &r->plan->net.n_rules, value);
	if (str_eq(key, "cwd")) {
		if (r->plan->cwd || !path_is_clean(value))
			return false;
		r->plan->cwd = mem_str(value);
		return true;
	}
	if (str_eq(key, "workspace")) {
		if (r->plan->workspace || !path_is_clean(value))
			return false;
		r->plan->workspace = mem_str(value);
		return r->walls->is_elsewhere = true;
	}
	if (str_eq(key, "ws_ino"))
		return to_number(value, UINT64_MAX, &r->plan->ws_ino) == 0;
	if (str_eq(key, "ws_mtime"))
		return to_number(value, UINT64_MAX, &r->walls->ws_mtime) == 0;
	if (str_eq(key, "private"))
		return take_private(r->plan, value);
	if (str_eq(key, "through"))
		return take_mount(r->plan, MOUNT_BIND, "", value);
	if (str_eq(key, "private_bytes"))
		return to_number(value, UINT64_MAX, &r->plan->private_bytes) == 0;
	if (str_eq(key, "private_inodes"))
		return to_number(value, UINT64_MAX, &r->plan->private_inodes) == 0;
	return take_number(r, key, value);
}

int guest_decode(const char *p, size_t n, struct plan *ret, struct guest_walls *walls,
		 struct err *e)
{
	struct plan plan = { 0 };
	struct reader r = { .plan = &plan, .walls = walls };

	*walls = (struct guest_walls){ 0 };
	while (n > 0) {
		size_t len = strnlen(p, n);

		if (len == n || !take_line(&r, p)) {
			plan_done(&plan);
			return err_set(e, ERR_CONFIG, EBADMSG, "not the guest half of a plan");
		}
		p += len + 1;
		n -= len + 1;
	}
	if (plan.cwd == NULL || plan.env == NULL) {
		plan_done(&plan);
		return err_set(e, ERR_CONFIG, EBADMSG, "the guest half of the plan is cut off");
	}
	*ret = plan;
	return 0;
}
