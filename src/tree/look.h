/* SPDX-License-Identifier: Apache-2.0 */
/* tree/look.h - what the files of tree/ share about live files; internal to tree/ */
#ifndef VITRINE_TREE_LOOK_H
#define VITRINE_TREE_LOOK_H

#include "base/io.h"
#include "tree/tree.h"

int64_t tree_now(void); /* realtime, ns */
void tree_from_stat(struct tree_entry *en, const struct stat *st);

/* Has nobody the file open for writing now? See steady.c. True also where that cannot be known. */
bool tree_may_be_written(int fd);

/* Attributes of a file or directory by its path; none when it cannot be read. */
void tree_read_xattrs(int root_fd, struct tree_index *x, struct tree_entry *en);
/* Makes the attributes of fd those of the entry; what the file system does not take is passed over. */
void tree_write_xattrs(int fd, const struct tree_entry *en);

#endif
