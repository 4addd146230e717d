/* SPDX-License-Identifier: Apache-2.0 */
/* sys/sample.h - what the processes of one /proc use, by looking at each */
#ifndef VITRINE_SYS_SAMPLE_H
#define VITRINE_SYS_SAMPLE_H

#include "base/base.h"

/* One process, from /proc/N/stat. */
struct process {
	uint64_t ppid, sid, cpu_ns, memory;
	uint64_t born; /* in ticks since boot; with its number this is one process */
	char name[16]; /* foreign */
};

/* `proc` is a directory of a proc file system. False: it has just ended. */
bool process_look(int proc, const char *pid, struct process *ret);

/* Its arguments as it shows them, foreign: words, each ended by NUL; how many bytes. */
size_t process_words(int proc, const char *pid, char *ret, size_t size);

/* Each of them, but for what ends while we look; false from fn: no more. */
typedef bool process_fn(void *arg, const char *pid, const struct process *p);
void processes_each(int proc, process_fn *fn, void *arg);

#endif
