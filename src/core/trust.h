/* SPDX-License-Identifier: Apache-2.0 */
/* core/trust.h - which project files the user has read and accepted, by content
 *
 * The list is CONFIG_DIR/trusted: one line per file, SHA-256 of its content and its absolute real path. It must lie
 * where nothing inside a sandbox can write, so a list below the workspace in question is refused, as is one that
 * others could have written.
 */
#ifndef VITRINE_CORE_TRUST_H
#define VITRINE_CORE_TRUST_H

#include "base/buf.h"
#include "base/err.h"

/* 1: exactly this content at exactly this path is trusted; 0: it is not; < 0: the list cannot be relied on. */
int trust_check(const char *config_dir, const char *path, const char *text, size_t n,
		struct err *e);

/* Pins the content, in place of any earlier pin of that path. Makes config_dir (0700) when it is missing. */
int trust_add(const char *config_dir, const char *path, const char *text, size_t n, struct err *e);

/* 1: was pinned and is no more; 0: was not pinned. */
int trust_remove(const char *config_dir, const char *path, struct err *e);

/* The list as it is on disk; empty when there is none. */
int trust_read(const char *config_dir, struct buf *out, struct err *e);

#endif
