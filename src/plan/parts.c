/* SPDX-License-Identifier: Apache-2.0 */
/* plan/parts.c - the lists that a plan is made of, one entry at a time */
#include "plan/parts.h"

struct mount *plan_add_mount(struct plan *p, enum mount_kind kind, const char *src, const char *dst,
			     unsigned flags, const char *why)
{
	vec_reserve(p->mounts, p->n_mounts, p->cap_mounts);
	p->mounts[p->n_mounts] = (struct mount){
		.kind = kind, .flags = flags, .src = mem_str(src), .dst = mem_str(dst), .why = why
	};
	return &p->mounts[p->n_mounts++];
}

struct skel *plan_add_skel(struct plan *p, enum skel_kind kind, const char *path, const char *text)
{
	while (*path == '/')
		path++;
	for (size_t i = 0; i < p->n_skel; i++)
		if (str_eq(p->skel[i].path, path))
			return &p->skel[i];
	vec_reserve(p->skel, p->n_skel, p->cap_skel);
	p->skel[p->n_skel] = (struct skel){ .kind = kind,
					    .path = mem_str(path),
					    .text = mem_str(text),
					    .mode = kind == SKEL_DIR ? 0755 : 0644 };
	return &p->skel[p->n_skel++];
}

void plan_add_access(struct plan *p, enum access_kind kind, const char *path)
{
	vec_reserve(p->access, p->n_access, p->cap_access);
	p->access[p->n_access++] = (struct access){ .kind = kind, .path = mem_str(path) };
}

void plan_add_env(struct plan *p, const char *kv)
{
	size_t key = strcspn(kv, "=") + 1;

	for (size_t i = 0; i < p->n_env; i++) {
		if (strncmp(p->env[i], kv, key) == 0) {
			free(p->env[i]);
			p->env[i] = mem_str(kv);
			return;
		}
	}
	p->env = mem_grow(p->env, p->n_env + 2, sizeof(*p->env));
	p->env[p->n_env++] = mem_str(kv);
	p->env[p->n_env] = NULL;
}

void plan_add_env_kv(struct plan *p, const char *key, const char *value)
{
	_free_ char *kv = mem_fmt("%s=%s", key, value);

	plan_add_env(p, kv);
}
