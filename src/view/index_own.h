/* SPDX-License-Identifier: Apache-2.0 */
/* view/index_own.h - between index.c, index_file.c and index_live.c */
#ifndef VITRINE_VIEW_INDEX_OWN_H
#define VITRINE_VIEW_INDEX_OWN_H

#include "view/index.h"

#define INDEX_FOLDER "index"
#define INDEX_HEAD_BYTES 136
#define INDEX_HEAD_CLOCK 48 /* where in it lies the clock, and behind it the boot */
#define INDEX_HEAD_BOOT 56
#define INDEX_HEAD_DIGEST 96

/* "a/b/name" for the entry of a/b. */
char *index_path(const struct index *x, uint32_t dir, const char *name);
void index_add_setid(struct index *x, const char *names, size_t len);
void index_unmap(struct index *x);

/* Puts the sum into a file's bytes, of which the head must be whole. */
void index_seal(char *bytes, size_t len);

/* The folder in the state directory, O_PATH; -ENOENT when there is none. */
int index_folder(const char *state_dir);
/* Is it a file of ours that nobody else can write to? */
bool index_is_ours(int fd, struct stat *ret);

/* What the names of a tree's files begin with: device and inode of its root. */
#define INDEX_STEM_MAX 40
void index_stem(const struct index *x, char ret[static INDEX_STEM_MAX]);

#endif
