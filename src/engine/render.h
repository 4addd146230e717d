/* SPDX-License-Identifier: Apache-2.0 */
/* engine/render.h - a plan as the words of another tool: pure, the same plan gives the same words
 *
 * A renderer opens nothing and asks nothing. What it is given besides the plan are names: where the skeleton lies,
 * where the sandbox may put files for the tool, which program the tool is. It renders every mount of the plan in the
 * plan's order; which steps a tool can honour at all is in the table of engine.c, and a plan that asks for more never
 * gets here.
 */
#ifndef VITRINE_ENGINE_RENDER_H
#define VITRINE_ENGINE_RENDER_H

#include "engine/args.h"
#include "plan/plan.h"

#define INIT_INSIDE "/.vitrine/init"

struct render_in {
	const struct plan *plan;
	const char *tool; /* path of the program */
	const char *skel; /* the skeleton: the root directory inside */
	const char *
		place; /* of root's sandboxes: where mount i lies as "i" (engine/mapped.h); NULL: where the plan says */
	const char *dir;    /* the sandbox's own directory for the tool: bundles, pid files */
	const char *id;     /* unique on this host */
	const char *kernel; /* for a machine: its kernel's image */
	const char *kept; /* for a machine: the folder of the one it is a copy of; NULL: it boots */
	bool is_again;    /* for a machine: it goes on from where it was saved */
	bool is_virtiofs; /* for a machine: virtiofsd serves its files */
	const bool *gone; /* per mount: the name it covers has vanished; NULL: none has */
	const char *
		runtime; /* for a container engine: its OCI runtime; NULL: what it takes by itself */
};

/* What to run, and a file it wants to find in `dir` first. */
struct rendering {
	struct args args;
	struct args env; /* of the tool; none: the plan's */
	char *file;      /* name below dir; NULL: none */
	struct buf text;
};

#define RENDERING ((struct rendering){ .text = BUF(16 * MIB) })

typedef int render_fn(const struct render_in *in, struct rendering *out, struct err *e);
void rendering_done(struct rendering *r);

render_fn render_bwrap, render_nsjail, render_firejail, render_systemd_user, render_systemd_system;
render_fn render_crun, render_runc, render_runsc;
render_fn render_podman, render_podman_remote, render_docker;
render_fn render_vm, render_vm_emulated;

/* ---- for renderers ---- */

/* Not to be rendered: it would cover nothing. */
bool render_skips(const struct render_in *in, size_t i);
/* Path on the host whose content is seen there: for binds, covers and devices. */
char *render_source(const struct render_in *in, const struct mount *m);
/* A private directory: its permissions, its share of the space, and of the number of files (0: unbounded). */
unsigned render_mode(const struct mount *m);
uint64_t render_bytes(const struct plan *p, const struct mount *m);
uint64_t render_files(const struct plan *p, const struct mount *m);
bool render_is_dev(const struct mount *m);
/* The value of a variable; NULL: it is not there. */
const char *render_word(char *const *env, const char *name);

#endif
