/* SPDX-License-Identifier: Apache-2.0 */
/* dir/wire.h - between a keeper and its vitrine-dir
 *
 * The settings are a file of records, each one letter, its text and a NUL:
 *   w PATH        the workspace; the git dir is ".git" in it
 *   p|h|n PATH    relative to the git dir: protected, hidden, pinned
 *   u|g IN OUT N  ids of the host and what they are inside
 *   o             the kernel's first request was answered already: dir_hello()
 * The server sends datagrams of text over the keeper's socket: why a change of a configuration was refused.
 */
#ifndef VITRINE_DIR_WIRE_H
#define VITRINE_DIR_WIRE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Descriptors of vitrine-dir. */
enum { DIR_FD_FUSE = 3, DIR_FD_GIT, DIR_FD_KEEPER, DIR_FD_SETTINGS };
#define DIR_SETTINGS_MAX (16 * MIB)
#define DIR_REFUSAL_MAX 400

/* Answers the kernel's first request, which comes with the mount and from nobody inside. What can be read from `fuse` after that
 * wants a server. */
int dir_hello(int fuse, struct err *e);

/* Starts the server. *ret_socket: what it sends; hangs up when it ends. */
int dir_spawn(int fuse, int git, const struct buf *settings, pid_t *ret_pid, int *ret_socket,
	      struct err *e);

#endif
