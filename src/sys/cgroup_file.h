/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup_file.h - between cgroup.c and cgroup_find.c */
#ifndef VITRINE_SYS_CGROUP_FILE_H
#define VITRINE_SYS_CGROUP_FILE_H

#include "base/buf.h"
#include "sys/cgroup.h"

#define CGROUP_PREFIX "vitrine-"
#define CGROUP_FILE_MAX (256 * KIB)

/* What each controller is called and which file shows that it can do what we need; NULL: there is none in v2. */
struct cgroup_name {
	const char *v1, *v1_file, *v2, *people;
};
extern const struct cgroup_name cgroup_names[CG_COUNT_];

bool cgroup_read(const char *dir, const char *file, struct buf *b);
int cgroup_write(const char *dir, const char *file, const char *text, struct err *e);

/* `file` in it, or with NULL the directory itself. */
bool cgroup_may_write(const char *dir, const char *file);

/* Is `word` one of the words of this list, which are parted by any of `seps`? */
bool cgroup_has_word(const char *list, const char *word, const char *seps);
bool cgroup_file_has(const char *dir, const char *file, const char *word);

/* A number that stands alone in its file, or behind `key` on a line of it. 0 when there is none. */
uint64_t cgroup_number(const char *dir, const char *file, const char *key);

#endif
