/* SPDX-License-Identifier: Apache-2.0 */
/* plan/skel.c - mounts in order, and the skeleton they are mounted on
 *
 * Mounts are collected in any order; here they are sorted so that a parent precedes what lies below it, and only then is
 * it known which mount points the skeleton needs, and its name.
 */
#include "base/path.h"
#include "base/sha256.h"
#include "plan/parts.h"

/* Merge sort: stable, and parents of thousands of covers stay cheap. */
static void sort_mounts(struct mount *v, struct mount *tmp, size_t n)
{
	size_t mid = n / 2, i = 0, k = mid, at = 0;

	if (n < 2)
		return;
	sort_mounts(v, tmp, mid);
	sort_mounts(v + mid, tmp, n - mid);
	while (i < mid || k < n)
		tmp[at++] =
			k == n || (i < mid && path_cmp(v[i].dst, v[k].dst) <= 0) ? v[i++] : v[k++];
	memcpy(v, tmp, n * sizeof(*v));
}

/* The mount that mount `at` will lie in, or NULL for the skeleton. */
static const struct mount *holder_of(const struct plan *p, size_t at)
{
	for (size_t i = at; i-- > 0;)
		if (path_is_beneath(p->mounts[at].dst, p->mounts[i].dst) &&
		    (p->mounts[i].flags & MOUNT_DIR) && p->mounts[i].kind != MOUNT_LAYER)
			return &p->mounts[i];
	return NULL;
}

static bool is_cover(const struct mount *m)
{
	return m->kind == MOUNT_HIDE || m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN;
}

void plan_mount_points(struct plan *p)
{
	_free_ struct mount *tmp = mem_new(p->n_mounts, sizeof(*tmp));

	sort_mounts(p->mounts, tmp, p->n_mounts);
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct mount *m = &p->mounts[i];
		const struct mount *holder;

		if (is_cover(m) || m->kind == MOUNT_LAYER ||
		    ((m->kind == MOUNT_BIND || m->kind == MOUNT_PART) &&
		     (m->flags & MOUNT_GONE_OK)))
			continue; /* only ever over what exists; nowhere */
		holder = holder_of(p, i);
		if (holder == NULL) {
			struct skel *s = plan_add_skel(
				p, m->flags & MOUNT_DIR ? SKEL_DIR : SKEL_FILE, m->dst, "");

			/* Podman cannot say whose a tmpfs is, and its runtime gives it the mode of what it covers. */
			if (m->kind == MOUNT_PRIVATE && str_starts(p->engine, "podman"))
				s->mode = 01777;
			m->flags |= MOUNT_SKEL;
		} else if (holder->flags & MOUNT_OWN) {
			m->flags |= MOUNT_MKDIR;
		}
	}
}

/* Places where layers are for as long as it takes to make an overlay of them. */
void plan_layers(struct plan *p)
{
	size_t most = 0, n = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		n = p->mounts[i].kind == MOUNT_LAYER ? n + 1 : 0;
		most = n > most ? n : most;
	}
	for (size_t i = 0; i < most; i++) {
		_free_ char *path = mem_fmt(".vitrine/layers/%zu", i);

		plan_add_skel(p, SKEL_DIR, path, "");
	}
}

/* The skeleton's name: equal names hold equal trees. */
void plan_skel_name(struct plan *p)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * MIB);
	char hex[SHA256_HEX_BYTES];

	for (size_t i = 0; i < p->n_skel; i++) {
		const struct skel *s = &p->skel[i];

		buf_add(&b, &s->kind, sizeof(s->kind));
		buf_add(&b, &s->mode, sizeof(s->mode));
		buf_add(&b, &s->stamp, sizeof(s->stamp));
		buf_add(&b, s->path, strlen(s->path) + 1);
		buf_add(&b, s->text, strlen(s->text) + 1);
	}
	bug_on(b.is_over);
	sha256_hex(b.p, b.n, hex);
	memcpy(p->skel_key, hex, sizeof(p->skel_key) - 1);
}
