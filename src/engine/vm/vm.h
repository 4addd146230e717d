/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/vm.h - private to the engine with a kernel of its own */
#ifndef VITRINE_ENGINE_VM_VM_H
#define VITRINE_ENGINE_VM_VM_H

#include "base/json.h"
#include "engine/render.h"

/* The guest's kernel and its modules: what the plan's environment names, else the newest of this host. */
struct vm_kernel {
	char *image;
	char *modules; /* directory with modules.dep */
};

int vm_kernel_find(const struct plan *p, struct vm_kernel *ret, struct err *e);
void vm_kernel_done(struct vm_kernel *k);
/* Does it know this module, built in or not? */
bool vm_kernel_has(const struct vm_kernel *k, const char *module);
/* A word of the caller's environment that is about machines: VITRINE_VM_x. NULL: not said. */
const char *vm_word(const struct plan *p, const char *name);

/* The first file system of the guest: our init and the modules it loads, in that order, as a cpio archive. */
int vm_initrd(const struct vm_kernel *k, const char *init, bool has_virtiofs, struct buf *out,
	      struct err *e);
int vm_initrd_write(const struct plan *p, const struct vm_kernel *k, bool has_virtiofs,
		    const char *dir, struct err *e);
/* Takes the signature off a module's end, where there is one. Pure. */
void vm_unsign(struct buf *module);
/* Our init, outside. */
const char *vm_init_of(const struct plan *p);

/* Order of loading for `wanted` (file names without .ko), from the text of modules.dep; what is not in it is built in.
 * Pure. Relative paths, in order, NULL-ended. */
void vm_modules(const char *dep, const char *const *wanted, struct args *out);

/* ---- the machine's words ---- */

enum vm_use {
	VM_COLD,  /* boots */
	VM_KEEP,  /* boots, and is kept as it is then */
	VM_WARM,  /* goes on from there */
	VM_AGAIN, /* goes on from where it was saved, in the middle of its work */
};

/* Descriptors that the program finds besides its stdio. */
/* The last two: files of a machine that can be saved (plan.is_live). */
enum { VM_FD_MONITOR = 3, VM_FD_STATE, VM_FD_VIEW, VM_FD_SYSTEM, VM_FD_END_ };
/* Of a copy whose files virtiofsd serves: its memory, which is shared with that. */
enum { VM_FD_RAM = VM_FD_VIEW };

/* Has /usr a share of its own? */
bool vm_has_system(const struct plan *p);

/* The connections to virtiofsd, one for each share, made at the last moment: numbers that are nobody's. */
enum { VM_FD_SHARE = 40 };
/* Shares by virtiofs: the view, and /usr where that is one of its own. */
enum { VM_SHARES = 2 };
size_t vm_shares(const struct plan *p);

/* `kept`: the folder of the machine that is (to be) kept; NULL: VM_COLD. */
void vm_words(const struct render_in *in, enum vm_use use, bool is_emulated, struct args *out);
/* What the monitor of a VM_WARM machine is told first. */
const char *vm_warm_words(void);
/* What it is told when it runs, where virtiofsd serves its files: a device for share i. */
const char *vm_plug_words(size_t i);

/* ---- kept machines ---- */

/* All that decides what a booted machine is. */
struct vm_kind {
	const struct plan *plan;
	const struct vm_kernel *kernel;
	const char *tool;
	bool is_emulated, is_virtiofs;
};

/* The name of the machine that this plan's is a copy of: another one wherever a booted machine would be another. */
char *vm_key(const struct vm_kind *kind);
/* The folder of the machine that this plan's is a copy of; booted now, once, when there is none. */
int vm_keep(const struct vm_kind *kind, char **ret, struct err *e);

/* ---- its memory ---- */

/* What of a file is zero becomes a hole in it. */
int vm_ram_thin(int fd);
/* What is in the one, and no hole, into the other, which is empty and as long then. 0 or -errno. */
int vm_ram_copy(int from, int to);

/* ---- its monitor ---- */

struct qmp {
	int fd;
	struct buf in;
};

#define QMP(f) ((struct qmp){ .fd = (f), .in = BUF(MIB) })

void qmp_done(struct qmp *q);
/* One command in JSON, and perhaps a descriptor for it; waits for its answer. `ret` may be NULL. */
int qmp_command(struct qmp *q, const char *command, int fd, uint64_t deadline, struct json_doc *ret,
		struct err *e);
/* Waits until a machine that was told to go on from somewhere does. */
int qmp_wait_running(struct qmp *q, uint64_t deadline, struct err *e);
/* All of a running machine into a file. With `ram_is_kept` its memory is a shared file already. */
int qmp_save(struct qmp *q, int fd, bool ram_is_kept, uint64_t deadline, struct err *e);

/* ---- who serves its files ---- */

struct vm_files {
	size_t n; /* shares; 0: QEMU serves them itself */
	char *program;
	int guest[2][2]; /* the server's end, the machine's */
	int ctl[2][2];   /* ours, its */
	int table[2];    /* what it goes on from; FD_NONE: from nothing */
};

#define VM_FILES_NONE                                                                              \
	((struct vm_files){                                                                        \
		.guest = { { FD_NONE, FD_NONE }, { FD_NONE, FD_NONE } },                           \
		.ctl = { { FD_NONE, FD_NONE }, { FD_NONE, FD_NONE } },                             \
		.table = { FD_NONE, FD_NONE },                                                     \
	})

int vm_files_open(const struct plan *p, struct vm_files *f, struct err *e);
void vm_files_done(struct vm_files *f);
/* In the process that becomes the machine, when the view is built; its descriptors lie behind the machine's, three for
 * each share. 0 or -errno. */
int vm_files_spawn(const struct vm_files *f, const char *program, const char *dir,
		   char *const *env);
/* Has what is open written down. Nothing may be on its way. */
int vm_files_save(int ctl, int to, uint64_t *ret_lost, struct err *e);
/* ---- virtiofsd ---- */

/* VITRINE_VM_SHARE: who serves the machine's files. VM_SHARE_AUTO: virtiofsd where it is and the guest knows it, else
 * QEMU. */
enum vm_share { VM_SHARE_9P, VM_SHARE_VIRTIOFS, VM_SHARE_AUTO, VM_SHARE_COUNT_ };
/* What a word says; VM_SHARE_COUNT_: nothing. Pure. */
enum vm_share vm_share_said(const char *word);
/* The program that shall serve them; left NULL: QEMU itself. */
int vm_share_find(const struct plan *p, const struct vm_kernel *k, char **ret, struct err *e);
/* In the child that becomes the machine, when the view is built: it finds the connections from VM_FD_SHARE on. 0 or -errno. */
int vm_share_spawn(const char *program, const char *dir, size_t n_shares, char *const *env);

/* ---- start ---- */

/* What is made before the program starts. */
struct vm_start {
	struct vm_kernel kernel;
	char *kept;
	int monitor[2];  /* ours, its */
	int state;       /* what a VM_WARM machine goes on from */
	int ram;         /* its memory, where that is shared */
	char *virtiofsd; /* NULL: QEMU serves the files itself */
	size_t n_shares; /* of virtiofsd */
	struct vm_files files;
};

#define VM_START_NONE                                                                              \
	((struct vm_start){ .monitor = { FD_NONE, FD_NONE },                                       \
			    .state = FD_NONE,                                                      \
			    .ram = FD_NONE,                                                        \
			    .files = VM_FILES_NONE })

/* Which kernel, and who serves the files, is found out here. `again`: the folder of what was saved of it. */
int vm_start_open(struct vm_kind kind, const char *dir, const char *again, struct vm_start *ret,
		  struct err *e);
/* All that the machine of this plan depends on, one line each. */
void vm_key_text(const struct vm_kind *kind, struct buf *out);
/* It must be the same as the one that was saved. */
int vm_key_check(const struct vm_kind *kind, const char *again, struct err *e);
void vm_start_done(struct vm_start *s);
/* A copy whose files virtiofsd serves: its memory is filled, it goes on, and gets the device that a machine cannot be kept with. */
int vm_start_plug(struct vm_start *s, struct err *e);
/* The first bytes of the link. */
int vm_start_wake(int to_init, bool is_again, struct err *e);
struct link_again;
int vm_again(struct link_again *ret, struct err *e);

/* In the child that becomes the machine: a mount namespace in which dir/view is what the guest may see, and nothing
 * else is handed to it. 0 or -errno; *where says at what. */
int vm_view(const struct render_in *in, const char **where);
/* After that: of the host's files it may open what it is made of, and the view where it `serves_files` itself. */
int vm_jail(const struct render_in *in, bool serves_files, struct err *e);

#endif
