/* SPDX-License-Identifier: Apache-2.0 */
/* engine/engine.h - what carries out a plan, and what each engine can honour
 *
 * An engine honours every step of a plan or is refused by name. The table says which steps each one claims; the same
 * table is printed by `vitrine engines` and decides what `--engine auto` may pick. The native engine makes the walls
 * by itself; every other one is a renderer (engine/render.h) of the outer walls, behind which our own init closes the
 * inner locks and starts the commands.
 */
#ifndef VITRINE_ENGINE_ENGINE_H
#define VITRINE_ENGINE_ENGINE_H

#include "engine/native/native.h"
#include "engine/render.h"
#include "plan/plan.h"

/* What a plan may ask for. */
enum engine_step {
	STEP_MOUNTS, /* only the mounts that are named, read-only where read-only */
	STEP_HIDE,   /* hidden and protected names in the workspace */
	STEP_REMASK, /* they stay so when the host replaces them */
	STEP_NO_NETWORK,
	STEP_PROCESSES, /* sees, signals and shares memory with its own only */
	STEP_ENV,       /* environment from an allowlist */
	STEP_IDS,       /* no id of the host's root inside */
	STEP_ROOT,      /* and none even when root starts it */
	STEP_CALLS,     /* system call allowlist */
	STEP_LANDLOCK,
	STEP_PIDS,
	STEP_MEMORY,
	STEP_TIME,
	STEP_DISK,
	STEP_PTY,        /* a terminal of its own */
	STEP_EOF,        /* on which ctrl-D at the beginning of a line ends the input */
	STEP_EXEC,       /* further commands in a running sandbox */
	STEP_GATE,       /* a network through the gate */
	STEP_DIRECT,     /* for programs that know no proxy too: connections are redirected */
	STEP_USERNS,     /* where no id but the user's is known */
	STEP_COUNTS,     /* what is counted for each user is counted apart: inotify */
	STEP_LAYERS,     /* layers over the workspace or the home */
	STEP_SOCKETS,    /* host sockets by exact path */
	STEP_OWN_IDS,    /* a template with ids of its own, root's among them */
	STEP_LIVE,       /* saved while it works, memory included */
	STEP_CONTAINERS, /* a container engine inside: root of a kernel that is not the host's */
	STEP_COUNT_
};

enum engine_strength { STRENGTH_PROCESS, STRENGTH_KERNEL, STRENGTH_VM, STRENGTH_COUNT_ };

struct engine {
	const char *name;
	const char *summary;
	const char *tool;  /* the program it is; NULL: none */
	const char *first; /* the first word of each call of it; NULL: none */
	unsigned least;    /* its version, the first number that --version says; 0: any */
	enum engine_strength strength;
	unsigned steps; /* BIT(STEP_x) */
	unsigned ends;  /* of those: honoured by ending the sandbox when it comes to it */
	bool needs_root;
	bool needs_stage; /* a user namespace of its own to be started in */
	bool minds_hybrid; /* it looks at control groups though told not to, and two versions at once are too much for it */
	bool leaves_some; /* killed while it starts it leaves processes: it is started in a pid namespace of its own */
	bool has_helpers; /* processes of it that outlive it: they are minded */
	bool makes_points; /* in the skeleton, where it lacks one: then that must belong to whom the tool runs as */
	bool wants_ids; /* a range of them besides the user's: the account's, of /etc/subuid; root's is made for it */
	bool is_deaf; /* no socket of the host's that lies in a directory it shows can be reached, or covered */
	bool is_told; /* they are a daemon's, which is told to end them */
	bool seals_itself; /* it would start a second time, from a read-only mount of its program: give it one */
	bool is_untested; /* rendered and compared, but never run by our tests: never picked by itself */
	const char *
		unfit; /* what it does not hold here though its table must say so: never picked by itself; NULL: nothing */
	bool has_cgroups; /* limits by a daemon's control groups: it is not our child */
	bool dies_by_child; /* all inside is dead when the tool's children are: one is pid 1 of its namespace, or its kernel */
	bool counts_no_files; /* its tmpfs have a size and no bound on the number of files */
	/* Before the first start of a skeleton, where the tool cannot take it from the disk. */
	int (*prepare)(const struct plan *p, const char *tool, const char *dir, struct err *e);
	bool is_emulated;  /* a machine without KVM: slow, for tests */
	render_fn *render; /* NULL: native */
};

extern const struct engine engines[]; /* ends with a NULL name */

const struct engine *engine_find(const char *name);
const char *engine_step_name(enum engine_step s);
const char *engine_strength_name(enum engine_strength s);
/* "process", "kernel", "vm": as a policy says it. */
const char *engine_isolation_name(enum engine_strength s);

/* The steps this plan asks for. */
unsigned engine_steps_of(const struct plan *p);

/* ERR_UNSUPPORTED that names the first of these steps that the engine cannot honour, and an engine that can. */
int engine_needs(const struct engine *en, unsigned steps, struct err *e);
/* The same for all that the plan asks for. */
int engine_check(const struct engine *en, const struct plan *p, struct err *e);

/* What the plan must know of its engine. */
void engine_tell(const struct engine *en, struct facts *f);

/* Where its program lies, looked for in the system's directories only; NULL: nowhere. */
char *engine_tool(const struct engine *en);

/* Where this environment leads a client that is named: "podman-remote" for podman, where it names a service. Pure. */
const char *engine_led(const char *name, char *const *env);

/* Is it there, and may this user use it? */
bool engine_is_here(const struct engine *en);

/* The engine of a name, "auto" being the strongest that is here and has all of `needs`; none may be weaker than `least`. */
int engine_pick(const char *name, enum engine_strength least, unsigned needs,
		const struct engine **ret, struct err *e);

/* ---- a running sandbox ---- */

/* For the engine that the plan names. *ret is NATIVE_NONE or what native_begin() has made already. */
/* `again`: the folder of a saved machine that goes on; NULL: a new one. */
int engine_start(const struct plan *p, const struct stdio *io, const struct cgroup *cg,
		 const char *again, struct native *ret, struct err *e);
/* Hands a command to init: `request` and the stdio descriptors that are not its terminal. 0 or -errno. */
int engine_exec(const struct native *n, const struct init_msg *start, int request, const int fd[3]);
/* Everything inside shall die now. */
void engine_kill(const struct native *n);
/* The sandbox's one command has ended: is everything inside dead, by the kernel's word and not by that of what was inside?
 * Waits for a moment, because init is ending. False: not known, or not so. */
bool engine_is_empty(const struct native *n, const struct plan *p);
/* Init (or what stands for it) is dead: waits until nothing of the engine is left. True: it ended by itself. */
bool engine_reap(struct native *n, const struct plan *p);
/* Removes the files that were made for the engine's program, when whoever waits has been told. */
void engine_tidy(const struct plan *p);
void engine_done(struct native *n);
int engine_cover(const struct native *n, const struct mount *m, struct err *e);
/* What the engine's program complained of last; "" when nothing. */
void engine_words(const struct native *n, struct buf *out);
/* What helps against it, to be said behind it; "" when nothing is known. Pure. */
const char *engine_advice(const char *engine, const char *words);

/* ---- a machine that is saved while it works ---- */

/* A command in it, as it lies in the file `sessions` of its folder. */
struct engine_saved {
	uint32_t id, pty;
	uint16_t rows, cols;
	char command[192];
};

/* All that a saved machine depends on, one line each, as a memfd. */
int engine_key(const struct plan *p, struct err *e);
/* Its memory, devices and open files into a folder; nothing of it may be on the way. */
int engine_save(int monitor, const int *files, size_t n_files, int dir, uint64_t *ret_lost,
		struct err *e);
/* Whatever came of it: the machine goes on. */
int engine_go_on(const struct native *n, struct err *e);

/* stage.c: in the child that becomes the tool. 0 or -errno. Where the engine `leaves_some`, this returns in another process: the
 * first of a pid namespace. */
int stage_enter(const struct engine *en);
/* Runs a program from a read-only mount of its own, and tells it so. Returns only when it cannot. */
void stage_exec_sealed(char *const *argv, char *const *env);
/* Both versions of control groups at once, which crun refuses. */
bool stage_is_hybrid(void);

/* Whom to tell that the container of this name shall end, and the first word of it, if any; .tool NULL: nobody. */
struct last_words {
	const char *tool, *first, *id;
	char *const *env;
};

/* mind.c: in the child that becomes the tool: returns, 0 or -errno, in a child of it, and minds that one and all orphans below
 * it from then on. SIGTERM, or the end of the keeper, is the end of them all. */
int mind_tool(const struct last_words *w);

/* container/load.c */
int docker_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e);
int podman_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e);
int podman_remote_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e);

/* wall.c: the same for engines that are rendered. */
int wall_start(const struct plan *p, const struct stdio *io, const struct cgroup *cg,
	       const char *again, struct native *ret, struct err *e);
int wall_exec(const struct native *n, const struct init_msg *start, int request, const int fd[3]);
void wall_reap(struct native *n, const struct plan *p);
void wall_tidy(const struct plan *p);
bool wall_is_empty(const struct native *n);

#endif
