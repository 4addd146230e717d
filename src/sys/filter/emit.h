/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/emit.h - from the table to a classic BPF program; build time and tests only */
#ifndef SYS_FILTER_EMIT_H
#define SYS_FILTER_EMIT_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/filter/syscalls.h"

#define EMIT_MAX BPF_MAXINSNS /* the kernel takes no longer program */

/* One calling convention of a kernel. */
struct abi {
	const char *name;
	uint32_t audit_arch; /* as in seccomp_data.arch */
	uint32_t scmp_arch;  /* as libseccomp calls it */
};

/* The conventions one kernel serves: its own and the 32-bit one. */
struct family {
	const char *name; /* as meson's cpu_family() */
	struct abi native;
	struct abi compat;
};

extern const struct family families[];
extern const size_t family_count;

/* NULL if there is none of that name. */
const struct family *family_find(const char *name);

struct variant {
	const char *name;   /* C identifier of the array */
	const char *macro;  /* preprocessor condition around it, or NULL */
	bool has_debug;     /* RULE_DEBUG is allowed */
	bool has_setuid;    /* so is making a set-user-ID file */
	bool has_notice;    /* what can make a set-ID file waits for the listener's answer */
	bool is_any_compat; /* sabotage: the 32-bit convention passes unseen */
	bool is_any_args;   /* sabotage: checked calls pass whatever their arguments */
};

extern const struct variant variants[];
extern const size_t variant_count;

struct emit_prog {
	struct sock_filter insn[EMIT_MAX];
	size_t n;
};

/* A run of values that share a verdict; `leaf` indexes the caller's own list of outcomes. */
struct range {
	uint32_t lo, hi;
	int leaf;
};

/*
 * The number of a row under one convention. 1: written to *ret_nr; 0: the call does not exist
 * there; -1: the name is unknown, or libseccomp and the table disagree about it.
 */
int emit_resolve(const struct sys_row *row, const struct abi *abi, uint32_t *ret_nr);

/* All below return 0, or -1 after writing one line to `why` (of `size` bytes). */

/* Names that resolve nowhere, names or numbers given twice, ill-formed argument tables. */
int emit_check(char *why, size_t size);

/* The whole filter. */
int emit_filter(const struct family *f, const struct variant *v, struct emit_prog *ret_prog,
		char *why, size_t size);

/* A search tree alone: `r` covers 0..UINT32_MAX without gaps, leaf i returns ret[i]. */
struct emit_tree {
	const struct range *r;
	size_t n;
	const uint32_t *ret;
	size_t n_ret;
};

/* The tree over the call number and nothing else. Lets a test reach sizes the table does not. */
int emit_tree_only(const struct emit_tree *t, struct emit_prog *ret_prog, char *why, size_t size);

#endif
