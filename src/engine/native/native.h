/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/native.h - namespaces, mounts, Landlock and seccomp by our own system calls
 *
 * native_begin() runs in the keeper and clones init with its namespaces, while the plan may still be in the making:
 * what namespaces cost, the network's above all, is then spent beside the planning and not after it. native_plan()
 * hands the plan over, native_go() the rest; init builds the view, locks itself in, proves the lock and starts the first command. Every later
 * command is started by the same init, inside the same walls, so nothing ever joins a sandbox from outside. Keeper and
 * init speak over one SOCK_SEQPACKET pair in fixed-size messages; the keeper treats what comes from init as foreign.
 */
#ifndef VITRINE_ENGINE_NATIVE_NATIVE_H
#define VITRINE_ENGINE_NATIVE_NATIVE_H

#include "engine/native/spawn.h"
#include "plan/plan.h"
#include "sys/cgroup.h"
#include "sys/netns.h"
#include "sys/packet.h"

#define SERVED_PARTS 3   /* of plan_served_binds */
#define INIT_SESSIONS 64 /* commands running at once in one sandbox */

enum init_msg_type {
	/* from init */
	INIT_FAILED = 1, /* err: set-up stopped, nothing ran */
	INIT_STARTED, /* session; a = pid inside; with one descriptor when it has a terminal: its master side */
	INIT_NOT_STARTED, /* session; a = errno of execve; b = 1: chdir failed */
	INIT_EXITED, /* session; a = wait status; cpu_ns, max_rss and bytes written to disk of it and what it waited for; b = 1: nobody is left */
	INIT_PROC, /* with one descriptor: the sandbox's own /proc, before the first command runs */
	INIT_NET, /* a: has IPv6; b: enum init_net; descriptors as in enum netns_socket, none from vitrine-link; before the first command */
	INIT_NET_MORE, /* session = port, with one listener: a port of the host's loopback, or a: of every address; 0: two, see gate/inside.c */
	INIT_RECEIVER, /* with one listener: for what the inside says of itself; before the first command */
	INIT_FROZEN, /* init starts nothing more; a = that of INIT_FREEZE */
	INIT_READY,  /* there is no first command: init waits for requests */
	INIT_SAMPLE, /* from an init whose /proc we cannot have; flags: enum sample_kind; cpu_ns, max_rss, a: time, memory and
		      * processes inside, or of a session; of a process a, b: its number and its parent's, err.msg: 16 bytes of its
		      * name, then `rows` bytes of arguments */
	INIT_ORIGIN, /* rows, cols: ports of a connection that the gate is about to get; a = pid, session, err.msg: program, as
		      * far as init sees them; flags = 1: it says no more */
	INIT_FILE_DONE, /* session = the request's; a = errno; with one descriptor where the operation gives one; from
			 * vitrine-link that is a socket, see remote/link.h, and b = mode, written = size say what is behind it */
	INIT_PARKED,   /* a = 0, or errno: it cannot */
	INIT_RESOLVER, /* with one datagram socket: where names are asked for in a sandbox without network; before the first command */
	INIT_NOTICES, /* with one descriptor: the system call filter's listener (keep/notice.c); before the first command */
	INIT_SERVED, /* with one descriptor: /dev/fuse of the plan's MOUNT_SERVE; none: a = errno, its covers are used; before
		      * the first command */
	INIT_PARTS, /* flags: which of plan_served_binds; with a descriptor of each: to be attached in the served git dir */
	INIT_SHARED, /* with one descriptor, for shared_add(); before the first command runs */
	/* to init */
	INIT_MAPPED, /* where ids_are_given(): the ids are mapped */
	INIT_PLAN,   /* plan; may come before INIT_MAPPED, from whoever made the plan */
	INIT_STDIO, /* flags, rows, cols and descriptors: the first command's stdio; after the trees */
	INIT_TREE, /* a = number of a mount; with one descriptor: its id-mapped tree */
	INIT_GO,   /* control groups are in place: start the first command */
	INIT_START, /* session; flags; descriptors: request, then the stdio ones that are not the terminal's */
	INIT_SIGNAL, /* session; a = signal, to the process group of the session */
	INIT_FREEZE, /* requests to start wait; a = 1, and always behind other walls: SIGSTOP to all but init */
	INIT_THAW,      /* they are carried out; a = 1: SIGCONT */
	INIT_STAY,      /* somebody else may ask for commands: do not end with the first one */
	INIT_WANT_PROC, /* answered by INIT_PROC */
	INIT_FILE, /* session = any number; a = enum file_op, b = mode; one descriptor: the paths, as in a request */
	/* to vitrine-link, which stands for an init behind other walls */
	INIT_GUEST, /* one descriptor: the guest half of the plan; a = milliseconds between samples, 0: none; flags = 1:
		      * the sandbox outlives its first command; b = 1: it has none */
	INIT_RESIZE, /* session, rows, cols: its terminal is not ours to size */
	INIT_PARK,   /* the link ends in order, commands stay; answered by INIT_PARKED */
	INIT_AGAIN, /* it begins anew: err.msg is struct link_again. Or, first of all, init stands for long: a, flags as above;
		     * answered by INIT_READY */
	INIT_ADOPT, /* session, flags, descriptors as of INIT_START: a command that is there; answered by INIT_STARTED */
	INIT_GATE,  /* one descriptor: the way to the gate, in its messages */
	INIT_EAR,   /* one descriptor: connections to the receiver go there, each with one byte */
	INIT_MSG_COUNT_
};

/* How much of what is tried inside comes to the gate. */
enum init_net {
	NET_PORTS,    /* what goes to the usual ports, whatever the address */
	NET_REDIRECT, /* every TCP connection */
	NET_PROXY,    /* what asks for the proxy */
};

enum init_flags {
	INIT_PTY_IN = 1, /* which of 0, 1, 2 is the session's own terminal */
	INIT_PTY_OUT = 2,
	INIT_PTY_ERR = 4,
};

struct init_msg {
	uint32_t type;
	uint32_t session;
	int32_t a, b;
	uint32_t flags;
	uint16_t rows, cols;
	uint64_t cpu_ns, max_rss, written;
	const struct plan *plan; /* of INIT_PLAN: in memory that both have at the same address */
	struct err err;
};

/* What init does for `vitrine cp`, behind its own walls and with nothing but its own rights. Paths are absolute. */
enum file_op {
	FILE_OPEN =
		1, /* for reading: a file or a directory, no link at its end, nothing of /proc; gives it */
	FILE_CREATE, /* a new file with this mode, none may be there; gives it, for writing */
	FILE_MKDIR,  /* a new directory */
	FILE_RENAME, /* first path to second, over what is there unless it is a directory */
	FILE_UNLINK, /* a file that was created and not finished */
	FILE_OP_COUNT_
};

#define FILE_PATHS 8192 /* bytes of one or two paths, each ended by NUL */

struct stdio {
	int fd[3];      /* what the first command gets, where it is not its own terminal */
	unsigned flags; /* enum init_flags */
	uint16_t rows, cols;
};

struct native {
	pid_t pid; /* of init, outside */
	int pidfd;
	int ctl;             /* the keeper's end */
	int user_ns, mnt_ns; /* for putting masks back */
	uid_t uid_in;        /* who does that; 0: the caller's own ids will do */
	gid_t gid_in;
	int skel; /* holds a shared lock while the skeleton is in use */
	int idmap; /* root's, until its trees are made: the user namespace that maps the files' owner... */
	pid_t carrier; /* ...and who carried it; 0: nobody */
	/* Behind other walls (engine/wall.c) pid is vitrine-link, and besides there are: */
	pid_t tool;   /* the engine's program; 0: the native engine */
	int words;    /* what it says on its standard error */
	int alive;    /* hangs up when init and the program are gone */
	int monitor;  /* of a machine; FD_NONE: it is none */
	int files[2]; /* of one that can be saved: to those who serve its files */
};

#define NATIVE_NONE                                                                                \
	((struct native){ .pidfd = FD_NONE,                                                        \
			  .ctl = FD_NONE,                                                          \
			  .user_ns = FD_NONE,                                                      \
			  .mnt_ns = FD_NONE,                                                       \
			  .skel = FD_NONE,                                                         \
			  .idmap = FD_NONE,                                                        \
			  .words = FD_NONE,                                                        \
			  .alive = FD_NONE,                                                        \
			  .monitor = FD_NONE,                                                      \
			  .files = { FD_NONE, FD_NONE } })

/* The two ends of what keeper and init speak over: the keeper's, init's. */
int native_pair(int ret_ctl[2], struct err *e);
/* Makes init, in namespaces of its own, and the ids known to it. With control groups its command waits for INIT_GO.
 * turn: an eventfd that init counts up when it waits for the keeper, or FD_NONE. */
int native_begin(const struct ids *ids, const struct cgroup *cg, const int take_ctl[2], int turn,
		 struct native *ret, struct err *e);
/* Lets init begin to build, by whoever has the keeper's end: whatever the plan mounts must be there, the skeleton too.
 * The plan lies in memory that init has too: made before native_begin(), or between mem_share() and mem_share_give(). */
int native_plan(int ctl, const struct plan *p);
/* Gives it what else it needs, and the plan unless `skel` is set: then somebody opened the skeleton and gave the plan. */
int native_go(struct native *n, const struct plan *p, const struct stdio *io, struct err *e);
void native_done(struct native *n);

/* Root's files with the sandbox's outer id for their owner: a user namespace that says so, in n->idmap, */
int native_idmap(const struct ids *ids, struct native *n, struct err *e);
/* what `m` shows of the host as a tree that hangs nowhere yet, seen through it, */
int native_tree(const struct mount *m, int userns, struct err *e);
/* any such tree, of `src`, with no other attributes than these, */
int native_map_tree(int tree, const char *src, uint64_t attrs, int userns, struct err *e);
/* and the end of the namespace. */
void native_idmap_end(struct native *n);

/* Puts the cover of mount `m` back after the host replaced the file below it. The sandbox must be frozen. */
int native_cover(const struct native *n, const struct mount *m, struct err *e);

/* Attaches the parts of the served git dir `m` that init handed out. */
int native_parts(const struct native *n, const struct mount *m, const int trees[SERVED_PARTS],
		 struct err *e);

int init_send(int fd, const struct init_msg *m, const int *fds, size_t n_fds);
/* 1: a message; 0: the peer is gone; < 0: not a message, end the sandbox. At most 4 descriptors, FD_NONE where none. */
int init_recv(int fd, struct init_msg *m, int fds[PACKET_FDS]);

/* ---- inside the engine ---- */

/* The skeleton's directory in the state directory, made when missing; returns a fd with a shared lock. */
int skel_open(const struct plan *p, struct err *e);
/* Calls fn for each file and link of a SKEL_TREE that the plan has nothing else for. Stops at a negative result. */
typedef int (*skel_fn)(void *arg, const struct skel *s, struct err *e);
int skel_tree_each(const struct plan *p, const struct skel *tree, skel_fn fn, void *arg,
		   struct err *e);
/* Where its tree lies. 0, or -ENAMETOOLONG. */
int skel_path(const struct plan *p, char *ret, size_t size);

struct child {
	struct ids ids;
	const struct plan *given; /* came before we asked for it */
	const struct plan *plan;  /* NULL until step_plan */
	struct stdio io;
	int ctl;
	int turn;    /* the keeper's, see native_begin() */
	int root;    /* the new root */
	int private; /* the sandbox's tmpfs */
	int *trees; /* per mount: its source, from the keeper or opened while the host is still visible */
	int served;   /* the mount of the plan's MOUNT_SERVE; FD_NONE: there is none */
	int resolver; /* to be handed out; FD_NONE: the gate's, or none */
	int notices;  /* the filter's listener, to be handed out; FD_NONE: it has none */
	bool needs_go;
	bool has_own_kernel; /* not the host's: it may lack what guards the host's */
	bool wants_notices;  /* the filter is to have a listener */
	char where[256];     /* what the step was working on, for its error */
};

/* Does the keeper map them, because they are not its own? */
static inline bool ids_are_given(const struct ids *ids)
{
	return ids->is_root || ids->root != ROOT_NONE;
}

_Noreturn void child_main(struct child *c);
_Noreturn void init_main(struct child *c);
struct step {
	const char *name;
	int (*fn)(struct child *c); /* 0 or -errno */
};

/* Messages of the keeper go to the mate until the view is built, and then to init. */
int child_receive(struct child *c, uint32_t type, struct init_msg *m, int fds[PACKET_FDS]);
void child_tell(struct child *c, const char *step, int r);
int child_become(struct child *c);
int mate_begin(struct child *c);
int mate_plan(struct child *c); /* waits until it has the plan */
int mate_view(struct child *c); /* waits until we are in the view */
int mate_end(struct child *c);  /* waits until the old root and the mate are gone */
void init_file(int ctl, const struct init_msg *m, int take_request);
/* One act; `text` is its paths. 0 or -errno; *ret_fd is what it gives, FD_NONE: nothing. */
int file_act(enum file_op op, mode_t mode, const char *text, size_t n, int *ret_fd);
int lock_begin(struct child *c); /* bounding set, no_new_privs, seccomp; 0 or -errno */
int lock_files(struct child *c); /* landlock; 0 or -errno */
int lock_end(struct child *c);   /* caps, not dumpable; 0 or -errno */
int lock_prove(const struct plan *p, char *where,
	       size_t size); /* try what is forbidden; -EPERM... or 0 when every door is closed */
/* 0 or -errno. Open files are limited when a command is started, not before: see plan_limits(). */
int rlimits_set(const struct plan *p, bool shares_kernel);
static inline uint64_t rlimit_files(const struct plan *p)
{
	return p->limits[LIMIT_OPEN_FILES].is_set ? p->limits[LIMIT_OPEN_FILES].max : 0;
}
/* served.c: makes the mount of a served git dir and hands its /dev/fuse out; attaches it. */
int served_make(struct child *c);
int served_attach(struct child *c, const struct mount *m);
/* The directories in it that are not served; FD_NONE: there is none of that name. */
int served_attach_parts(int root, const struct mount *m, const int trees[SERVED_PARTS]);
int mounts_open(struct child *c);
/* What lies at path below dir, or dir itself where it is "", as a tree that hangs nowhere yet. < 0: -errno */
int mounts_clone(int dir, const char *path, uint64_t attrs);
int mounts_attach(struct child *c);
int mounts_cover(int root, const struct mount *m);
/* The directories to m->dst below a root, and a file or directory to mount on; over no link. */
int mounts_point(int root, const struct mount *m);
/* Mount i of the plan as a tree that hangs nowhere yet; one that is open already is that. < 0: -errno */
int mounts_source(const struct child *c, size_t i);
/* The layers before mount i, whose trees are open, as one below c->root; the working directory is another then. */
int mounts_overlay(struct child *c, size_t i);

#endif
