/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/spawn.h - how a pid 1 of ours starts a command: the native engine's init, and the init of all others */
#ifndef VITRINE_ENGINE_NATIVE_SPAWN_H
#define VITRINE_ENGINE_NATIVE_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct command {
	char *const *argv;
	char *const *env;
	const char *cwd;
	const char *path; /* value of PATH; filled in by command_spawn() */
	int fd[3];
	int pty;             /* slave side, or FD_NONE */
	uint64_t open_files; /* its limit; 0: as ours */
	unsigned
		signals; /* BIT(signal) of all that we do not have as a program begins with; 0: not known */
	/* Not NULL: what another child of ours runs, in the command's session and at its terminal, and what it is told by. */
	void (*beside)(const struct command *c);
	int beside_fd;
	/* Written by the vfork child. */
	volatile pid_t beside_pid;
	volatile int error;
	volatile int is_chdir;
};

/* Its pid, or < 0. A child that did not become the command is reaped: `error` says why, `is_chdir` at what. */
pid_t command_spawn(struct command *c);

/* What it and all it waited for used, from wait4(). */
void command_used(const struct rusage *used, uint64_t *ret_cpu_ns, uint64_t *ret_rss);

/* Soft and hard limit, as far down as we may go; raw, usable after vfork. 0 or -errno. */
int rlimit_set(int which, uint64_t value);

/* A terminal of the sandbox's own: returns the master side or -errno. */
int command_pty(uint16_t rows, uint16_t cols, int *ret_slave);

/* A command as bytes: this header, then argc + envc NUL-ended strings and the cwd ("": the sandbox's own). The native
 * engine's init gets them in a sealed memfd, the others' over the link. */
#define REQUEST_MAX (4 * MIB)
#define REQUEST_MAGIC 0x76727131U
struct request_head {
	uint32_t magic, argc, envc, bytes;
};

struct request {
	char *text; /* owned; the strings lie in it */
	char **argv;
	char **env; /* the sandbox's variables with the request's over them */
	const char *cwd;
};

/* Takes the text behind the head. 0, or -EBADMSG: not a request of ours. */
int request_parse(const struct request_head *head, char *take_text, char *const *base_env,
		  struct request *ret);
/* The head alone: does it make sense? */
bool request_is_head(const struct request_head *head);
void request_done(struct request *r);

/* Bytes in a sealed memfd, which nobody changes while it is read. */
int request_seal(const struct buf *b, struct err *e);
/* A command so, for whoever asks init. */
int request_make(char *const *argv, char *const *env, const char *cwd, struct err *e);

#endif
