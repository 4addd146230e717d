/* SPDX-License-Identifier: Apache-2.0 */
/* files/serve.h - a directory tree for a guest's kernel, in 9P2000.L */
#ifndef VITRINE_FILES_SERVE_H
#define VITRINE_FILES_SERVE_H

#include "files/fids.h"

#define DEVS_MAX 256

struct files {
	struct fids fids;
	dev_t devs[DEVS_MAX]; /* file systems that were met, for numbers that differ between them */
	size_t n_devs;
	bool is_open; /* the version is agreed on */
	struct buf out;
};

/* Takes the root. `most`: descriptors that we may have. */
int files_init(struct files *f, int take_root, size_t most);
void files_done(struct files *f);
/* One message; the answer is in f->out. < 0: this peer speaks something else. */
int files_answer(struct files *f, const void *p, size_t n);

/* ---- loop.c: the process, with the descriptors of files/wire.h ---- */

/* Opens the tree and confines the process. is_again: goes on from the table in FILES_FD_TABLE. */
int files_start(struct files *f, const char *root, bool is_again, struct err *e);
/* Until the guest or the keeper hangs up. */
void files_loop(struct files *f);

/* ---- confine.c ---- */

/* Before the first foreign byte: nothing but this tree, and only what serves it. */
int files_confine(const char *root, struct err *e);

#endif
