/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/vm.h - private to the engine with a kernel of its own */
#ifndef VITRINE_ENGINE_VM_VM_H
#define VITRINE_ENGINE_VM_VM_H

#include "engine/render.h"

/* The guest's kernel and its modules: what the plan's environment names, else the newest of this host. */
struct vm_kernel {
	char *image;
	char *modules; /* directory with modules.dep */
};

int vm_kernel_find(const struct plan *p, struct vm_kernel *ret, struct err *e);
void vm_kernel_done(struct vm_kernel *k);

/* The first file system of the guest: our init and the modules it loads, in that order, as a cpio archive. */
int vm_initrd(const struct vm_kernel *k, const char *init, struct buf *out, struct err *e);

/* Order of loading for `wanted` (file names without .ko), from the text of modules.dep; what is not in it is built in.
 * Pure. Relative paths, in order, NULL-ended. */
void vm_modules(const char *dep, const char *const *wanted, struct args *out);

/* Before the first byte of the machine: writes the initrd into `dir`. */
int vm_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e);

/* In the child that becomes the machine: a mount namespace in which dir/view is what the guest may see, and nothing
 * else is handed to it. 0 or -errno; *where says at what. */
int vm_view(const struct plan *p, const char *skel, const char *dir, const char **where);

#endif
