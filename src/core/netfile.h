/* SPDX-License-Identifier: Apache-2.0 */
/* core/netfile.h - network rules that a sandbox was given after it was made: `net allow`, `net deny`, `network proxy`
 *
 * Lines of options of `run` ("--allow=HOST", "--deny=HOST", "--net=PRESET") in the file `net` of the sandbox's folder,
 * applied after the definition's own and before the caller's. The definition itself is written once.
 */
#ifndef VITRINE_CORE_NETFILE_H
#define VITRINE_CORE_NETFILE_H

#include "base/err.h"

struct netfile {
	char **lines;
	size_t n;
};

/* A sandbox without the file has no lines. */
int netfile_read(const char *state_dir, const char *name, struct netfile *ret, struct err *e);
void netfile_done(struct netfile *f);

/* One rule; its opposite goes, and it is there once. */
void netfile_set(struct netfile *f, bool is_deny, const char *rule);
/* The one line for the preset. */
void netfile_preset(struct netfile *f, const char *preset);
/* Replaced as a whole. */
int netfile_write(const char *state_dir, const char *name, const struct netfile *f, struct err *e);

#endif
