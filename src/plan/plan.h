/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.h - the policy compiled for one start on one host: pure data, every decision taken
 *
 * plan_build() sees only a policy and facts about the host; it opens nothing and asks nothing. The same input
 * gives the same plan, byte for byte, so plans are golden-tested and `vitrine explain` shows exactly what an
 * engine will do. An engine carries out every step or refuses by name.
 */
#ifndef VITRINE_PLAN_PLAN_H
#define VITRINE_PLAN_PLAN_H

#include <sys/types.h>

#include "policy/policy.h"
#include "sys/subids.h"

/* ---- facts: what the host is like, gathered once by core/facts.c ---- */

enum entry_kind {
	ENTRY_NONE,
	ENTRY_FILE,
	ENTRY_DIR,
	ENTRY_LINK,
	ENTRY_SOCKET,
	ENTRY_OTHER,
	ENTRY_KIND_COUNT_
};

/* One thing that may become part of the view: does it exist, and what is it. */
struct cover;
struct entry {
	char *path;
	char *src;    /* where it lies, when that is not where it shall be seen: in a template */
	char *target; /* of a link */
	enum entry_kind kind;
	uint64_t dev, ino, size, mtime_ns;
	uint32_t uid;   /* whose it is, on disk */
	char **sockets; /* of a granted directory: what must not be reachable in it, relative */
	size_t n_sockets;
	/* Granted for writing: what is covered in it, and the git dir it is a part of (NULL: none). */
	struct cover *covers;
	size_t n_covers;
	char *gitdir;
};

struct entries {
	struct entry *v;
	size_t n, cap;
};

/* A path of the workspace to be hidden, protected or pinned, as view/ found it. */
enum cover_kind { COVER_HIDE, COVER_PROTECT, COVER_PIN, COVER_KIND_COUNT_ };

struct cover {
	const char *rel;
	const char *rule;
	enum cover_kind kind;
	bool is_dir, is_alias;
	const char *
		shown; /* COVER_PROTECT of a file: what is seen there instead of it; NULL: the file */
};

/* The repository of a linked worktree (core/worktree.h); no common: there is none. */
struct plan_worktree {
	const char *common, *own; /* its git dir; the worktree's own directory in it */
	const char *place;        /* our copies of its refs */
	uint64_t dev, ino;        /* of own */
	unsigned missing;         /* bits of its parts, in the order of plan_worktree_parts */
	struct cover *covers;     /* below own */
	size_t n_covers;
};

/* A secret that the policy names: what stands for it inside, and where it may go. Never its value. */
struct secret_fact {
	const char *name, *placeholder;
	const char *terms; /* JSON, for vitrine-seal */
	char *const *env;
	size_t n_env;
	char *const *hosts;
	size_t n_hosts;
	const char
		*npm; /* a setting of npm that names the variable, "//HOST/:_authToken"; or NULL */
	const char *around; /* what the variable holds, with "{}" for the placeholder; or NULL */
	const char *file,
		*text; /* below home: what lies there instead of the agent's token store; or NULL */
	const char *const *
		gives; /* host/path of what gives out tokens to who logs in inside; NULL-ended, or NULL */
	const char *login; /* the same as JSON, for vitrine-seal */
	bool is_open;      /* a login that is not there yet: no placeholder, no terms */
};

/* Settings of the user's home as they may be seen inside (view/homecfg.h), never the files themselves. */
enum home_file { HOME_GIT, HOME_NPM, HOME_PIP, HOME_CARGO, HOME_CARGO_OLD, HOME_FILE_COUNT_ };

struct home_text {
	char *path; /* where the file really lies; NULL: there is none */
	char *text;
};

/* May there be a root inside, with ids that the account was given for it, and a few capabilities over them? */
enum root_kind {
	ROOT_NONE,   /* no: one id, no capability, ever */
	ROOT_SETUID, /* a template with ids of its own: programs with the set-user-id bit make one of its ids of the user's */
	ROOT_JOB, /* the command itself is root, and gains nothing more: for what makes and packs such templates */
	ROOT_KIND_COUNT_
};

/* A file of the agent's preset that lies in /etc inside: settings with which its own sandbox is switched off. */
struct etc_text {
	char *path; /* below /etc */
	char *text;
};

/* Certificates that the caller's own programs trust. */
struct own_trust {
	const char *var; /* of plan_trust_vars */
	char *path;      /* that it names */
	char *text; /* what the file holds, as plan_certificates() leaves it; NULL: it is there inside, or in one before */
};

/* So many files, and a look at all of them at the end takes a quarter of a millisecond: then it pays to know that there is no
 * need. A notice costs nothing where none is sent, but the question costs every opening of a file some thirty nanoseconds. */
#define PLAN_NOTICE_FILES 250

struct facts {
	uid_t uid, gid; /* of the caller, after dropping to the user of sudo or --user */
	bool is_root;   /* then ids are mapped away */
	enum root_kind inner_root;
	uint32_t sub_uid, sub_gid; /* where the ranges begin, when there is a root inside */
	const char *user, *home, *shell;
	const char *workspace; /* real path */
	uint64_t ws_dev, ws_ino;
	uint64_t
		n_files; /* of the host's that can be written inside, as far as they were counted */
	const char *cwd; /* real path of the caller's working directory */
	const char *self_exe; /* our own binary */
	const char *init_exe; /* vitrine-init, for engines other than native */
	struct entry
		tools_exe; /* vitrine-tools; no path: neither safe tools nor a broker are wanted */
	const char *state_dir, *config_dir;
	const char *config_real, *policy_real; /* where they lead, for grants; NULL: not there */
	/* Layers of a sandbox that keeps its changes to itself, top first, NULL-ended; the top is the one that is written
	 * (a directory with fs/ and work/), the others are frozen. NULL: none. */
	char *const *ws_layers;
	char *const *home_layers;
	bool has_broker;         /* the program is installed */
	char *const *sys_layers; /* above the template's /usr; NULL: it is read-only */
	const char *
		root_dir; /* of a template: what takes the place of the host's system; NULL: the host's */
	const char *ws_repo;  /* mode clone: the host's commits, for PLAN_REPO */
	struct entries root;  /* /usr /bin /sbin /lib* /nix ... */
	struct entries etc;   /* candidates below /etc */
	const char *etc_tree; /* more for /etc: the configuration of installed programs; or NULL */
	const struct etc_text *etc_texts; /* of the preset */
	size_t n_etc_texts;
	struct home_text home_files[HOME_FILE_COUNT_];
	struct entries tools; /* toolchain roots below home, and credential files in them */
	struct entries
		extra; /* read, write, mount and socket paths of the policy, in that order, resolved */
	struct cover *covers;
	size_t n_covers;
	struct plan_worktree worktree;
	char *const *environ;
	bool has_java; /* the host has one, so the inside may have it too */
	const struct own_trust *own_trust;
	size_t n_own_trust;
	unsigned trust_gone; /* bits of plan_trust_files: those that the host does not have */
	const struct secret_fact *secrets;
	size_t n_secrets;
	unsigned landlock_abi;
	unsigned cgroup_usable;   /* BIT(CG_x) */
	const char *cgroup_why;   /* when something is not */
	uint64_t hard_open_files; /* our own hard limit */
	uint32_t
		root_slot; /* which of root's ids a sandbox gets: what the kernel counts for an id is then its own */
	bool engine_has_cgroups; /* the engine makes control groups for the limits itself */
	bool engine_is_elsewhere; /* what it starts is not below us: our control groups do not hold it */
	bool engine_counts_no_files; /* it bounds bytes of private space, but not the number of files */
	bool has_runtime_dir;        /* XDG_RUNTIME_DIR names a directory of the user's own */
	bool has_own_kernel; /* the engine's kernel is not the host's, and counts no processes */
	bool can_serve; /* the workspace has a .git, and /dev/fuse and vitrine-dir can be used */
	uint64_t git_dev, git_ino;
};

/* ---- the plan ---- */

enum ns_bits {
	NS_USER = 1,
	NS_MOUNT = 2,
	NS_PID = 4,
	NS_IPC = 8,
	NS_UTS = 16,
	NS_CGROUP = 32,
	NS_NET = 64,
	NS_ALL = 127
};

/* The skeleton: a small read-only tree on disk that is the sandbox's root directory. It holds mount points, links
 * and the synthetic files of /etc, is made once per distinct content and shared by all sandboxes that need the
 * same. (A disk file system remembers names that do not exist; a tmpfs root would ask anew each time, at four
 * times the cost of a failed look-up.) */
#define SKEL_KEY_BYTES 16
enum skel_kind { SKEL_DIR, SKEL_FILE, SKEL_LINK, SKEL_COPY, SKEL_TREE, SKEL_KIND_COUNT_ };

struct skel {
	enum skel_kind kind;
	char *path; /* relative to the root */
	char *text; /* file content, link target, the host file to copy, or the tree (core/packages.h) for /etc */
	unsigned mode;
	uint64_t stamp; /* SKEL_COPY: changes when the source does */
};

enum mount_kind {
	MOUNT_BIND,    /* a host path */
	MOUNT_PRIVATE, /* a directory of the sandbox's own tmpfs */
	MOUNT_PROC,
	MOUNT_PTS,
	MOUNT_DEVICE,  /* one device node of the host */
	MOUNT_HIDE,    /* the unreadable file or directory over a name */
	MOUNT_PROTECT, /* a name over itself, read-only */
	MOUNT_PIN,     /* a directory over itself, so that it cannot be renamed */
	MOUNT_LAYER, /* part of the overlay that follows at the same place; never visible itself */
	MOUNT_OVERLAY, /* the layers before it, top first, as one tree */
	MOUNT_PART,    /* what lies at src, a path inside without its first slash */
	MOUNT_SERVE,   /* a git dir by name, from vitrine-dir; with dev and ino: this one */
	MOUNT_KIND_COUNT_
};

enum mount_flags {
	MOUNT_RO = 1,
	MOUNT_IDMAP = 2,   /* ids of the files' owner appear as the sandbox's */
	MOUNT_DIR = 4,     /* the target is a directory */
	MOUNT_GONE_OK = 8, /* the name may have vanished since the scan */
	MOUNT_MKDIR = 16,  /* target lies in private space: make it */
	MOUNT_NOEXEC = 32,
	MOUNT_VERIFY = 64, /* dev and ino must be those */
	MOUNT_OWN = 128,   /* our own space: mount points below may be made */
	MOUNT_SKEL = 256,  /* the target is a mount point of the skeleton */
	MOUNT_SUID = 512,  /* set-user-id bits count */
	MOUNT_SERVED =
		1024, /* a cover that only counts when the git dir it lies in is not served */
};

struct mount {
	enum mount_kind kind;
	unsigned flags;
	char *src; /* host path, or name below the private tmpfs */
	char *dst; /* absolute path inside */
	uint64_t dev, ino;
	const char *why; /* for explain: rule or reason */
};

enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_DEVICE, ACCESS_PROC, ACCESS_KIND_COUNT_ };

/* Landlock: what may be done beneath a path inside. */
struct access {
	enum access_kind kind;
	char *path;
};

enum enforcer { BY_NONE, BY_WATCHED, BY_KERNEL, BY_COUNT_ };

struct plan_limit {
	bool is_set;
	uint64_t max;
	enum enforcer by;
	const char *how; /* "cgroup", "rlimit", "tmpfs", "keeper", ... */
};

/* The way out, when there is one. */
struct plan_net {
	bool has_gate;
	bool is_asking;
	char **rules; /* "allow HOST" and "deny HOST", NULL-ended */
	size_t n_rules;
	char **ports; /* "8080:80", NULL-ended */
	size_t n_ports;
	char **host_ports; /* "5432", NULL-ended */
	size_t n_host_ports;
	char *upstream; /* or NULL */
	bool has_seal;  /* some hosts are inspected */
	char **inspect; /* "host" and "*.host", NULL-ended */
	size_t n_inspect;
	char *terms;        /* JSON, for vitrine-seal */
	char *extra_trust;  /* certificates for the bundle inside beside those; or NULL */
	char *trust;        /* host file that servers are verified against; NULL: the system's */
	bool has_java;      /* the bundle is wanted as Java's own store too */
	char **open_logins; /* names of those that are kept when they are made inside; NULL-ended */
	size_t n_open_logins;
	char **logins; /* in pairs: name in the sandbox's folder, content; NULL-ended */
	size_t n_logins;
	char *bundle; /* host file: the trust store with the sandbox's CA in it, made by the keeper */
	bool has_receiver;       /* what the inside says of itself is listened to, gate or none */
	const char *no_receiver; /* it was asked for and is not there: why, in words */
};

/* Who the sandbox's processes are, inside and outside. */
struct ids {
	uid_t uid_in, uid_out;
	gid_t gid_in, gid_out;
	bool is_root; /* the caller is, and is mapped away */
	enum root_kind root;
	struct id_map uids, gids; /* when there is a root inside */
};

/* A socket of the host: inside, at the same path, lies one of the keeper's that carries its bytes. */
#define SOCKETS_NAME "socket-" /* and its number: in the sandbox's folder */
struct relay_socket {
	char *host; /* exact path, outside and inside */
};

/* What runs outside on request; the rules are those of the policy, "push RULE" and so on. */
#define PLAN_BROKER                                                                                \
	"/.vitrine/broker" /* its socket inside, and the same last name in the sandbox's folder */
#define BROKER_NAME "broker-socket"
struct plan_broker {
	bool is_on;
	bool is_self; /* vitrine-checkpoint is there */
	char **rules; /* NULL-ended */
	size_t n_rules;
	char **env; /* of the programs it runs, outside; NULL-ended */
};

struct plan {
	char *name; /* of the sandbox; also its directory in the state directory */
	bool is_named;
	char *workspace;
	uint64_t ws_dev, ws_ino;
	unsigned ns; /* enum ns_bits */
	struct ids ids;
	char *user, *home, *hostname;
	struct skel *skel;
	size_t n_skel, cap_skel;
	char skel_key[2 * SKEL_KEY_BYTES + 1]; /* hash of all that the skeleton is made from */
	struct mount *mounts;
	size_t n_mounts, cap_mounts;
	struct access *access;
	size_t n_access, cap_access;
	struct relay_socket *sockets;
	size_t n_sockets;
	struct plan_limit limits[LIMIT_COUNT_];
	bool has_cgroup; /* one of the limits is enforced by a control group */
	uint64_t private_bytes, private_inodes;
	unsigned landlock_abi;
	bool debug;
	struct plan_net net;
	bool check_reads;    /* Landlock judges reading too */
	bool has_containers; /* root of a kernel of its own: a container engine works inside */
	bool is_live;        /* a machine that can be saved while it works */
	bool may_suid; /* set-user-id files can be made: there is a root inside, and nothing of the host's to write */
	bool wants_notices; /* the filter sends a notice before a set-ID file is made: see PLAN_NOTICE_FILES */
	struct plan_broker broker;
	bool serves_git; /* the workspace's .git is served by name: there is one MOUNT_SERVE */
	char *worktree; /* where the copies of a linked worktree's refs lie; NULL: there are none */
	char *state_dir;
	char **env; /* NULL-ended */
	size_t n_env;
	char **argv;
	char *cwd;
	char *engine;
	char **engine_env; /* for the engine's own program, outside; NULL-ended, NULL: native */
};

/* Parts of a repository that its linked worktrees see; NULL-ended. */
extern const char *const plan_worktree_parts[];

/* Directories of a served git dir that are attached as they are, and not served; NULL-ended. */
extern const char *const plan_served_binds[];
/* Something else is to be mounted in the served git dir: then its server is needed before the first command. */
bool plan_mounts_in_served(const struct plan *p, const struct mount *serve);
/* Is the path inside served by name, and not below one of those? */
bool plan_is_served(const struct plan *p, const char *path);

/* Is it a directory that can be given away at all? Asked before it is looked through, and again by plan_build(). */
int plan_check_workspace(const struct facts *f, struct err *e);

/* Layers of one overlay: what the kernel takes is more, but each costs a look-up. */
#define PLAN_LAYERS_MAX 64

/* What is to be run. */
struct errand {
	const char *name;    /* of the sandbox; "-x" is a generated name x */
	char *const *argv;   /* NULL-ended */
	const char *workdir; /* inside, relative to the workspace; NULL: where the caller is */
};

/* Known before the rest, so that init can be made meanwhile. */
struct ids plan_ids(const struct facts *f);

int plan_build(const struct policy *p, const struct facts *f, const struct errand *errand,
	       struct plan *ret, struct err *e);
void plan_done(struct plan *p);

/* The network's part of it. `env` is the caller's, for an upstream of "env". */
int plan_net_build(struct plan_net *n, const struct policy *pol, const struct facts *f,
		   struct err *e);

/* Where the sandbox's CA must be known, from the tables in plan/trust.c. */
#define PLAN_BUNDLE "/etc/vitrine/ca-bundle.pem"
#define PLAN_BUNDLE_JAVA "/etc/vitrine/ca-bundle.jks"
#define PLAN_OWN_TRUST                                                                             \
	"/.vitrine/certificates" /* nothing is inspected: the caller's own, by variable */
/* Adds the certificates of a PEM file to out, and nothing else of it: no key, no text. Returns their number. */
size_t plan_certificates(const char *text, size_t n, struct buf *out);
extern const char plan_trust_java[];         /* JAVA_TOOL_OPTIONS */
extern const char *const plan_trust_vars[];  /* variables that name a bundle */
extern const char *const plan_trust_files[]; /* bundles of the system, covered where they exist */
void plan_net_done(struct plan_net *n);
/* Where connections cannot be redirected: the ports that are listened on for every address, the usual ones and those
 * that rules name. No allocation. */
#define PLAN_PORTS_MAX 32
size_t plan_net_ports(const struct plan_net *n, uint16_t ret[PLAN_PORTS_MAX]);

/* For people, or as JSON. The plan's whole content, in order. */
void plan_print(const struct plan *p, bool as_json, struct buf *out);

/* Root's ids on this host, where the caller is root: above systemd's ranges, below 2^31, so that nothing belongs to them. */
#define PLAN_ROOT_SUBIDS 1888065536U

#define PLAN_ROOT_SLOTS                                                                            \
	60000 /* ids below those that are root's sandboxes' own, one each; two may have the same */

/* The layers of a template with ids of its own, as one tree: here until its parts are in their places. */
#define PLAN_SYSTEM "/.vitrine/system"

/* Where a clone finds the host's commits. */
#define PLAN_REPO "/vitrine/repo.git"

/* Is the workspace made of layers of the sandbox's own, so that nothing written there is on the host? */
bool plan_is_review(const struct plan *p);

/* One of its limits can only be seen by looking at the processes inside. */
bool plan_needs_samples(const struct plan *p);
/* Memory is limited, and not by the kernel. */
static inline bool plan_watches_memory(const struct plan *p)
{
	return p->limits[LIMIT_MEMORY].is_set && p->limits[LIMIT_MEMORY].by == BY_WATCHED;
}
/* Of --disk, what is /dev/shm's where it is a file system apart from all other private space: a machine's own. */
static inline uint64_t plan_shm_part(uint64_t all)
{
	return all / 8;
}

const char *enforcer_name(enum enforcer by);

/* Safe tools and the broker (plan/tools.c): are they wanted, and by what names are they called inside? */
#define PLAN_TOOLS "/.vitrine/tools"
bool plan_wants_tools(const struct policy *pol, bool is_named);
bool plan_wants_broker(const struct policy *pol);
extern const char plan_tool_names[][16]; /* ends with "" */
extern const char plan_broker_names[][24];
void plan_broker_build(struct plan_broker *b, const struct policy *pol, const struct facts *f,
		       bool is_named);
void plan_broker_done(struct plan_broker *b);
/* What git reads so that it finds the broker by itself. */
void plan_broker_git(const struct plan_broker *b, struct buf *out);
/* What the broker pushes to and runs must not lie where the agent can write. */
int plan_broker_check(const struct plan *p, const struct policy *pol, struct err *e);

/* The candidates core/facts.c looks at, from the tables in plan/view_table.c. */
extern const char *const plan_root_paths[];
extern const char *const plan_template_paths[]; /* of a template beside those */
extern const char *const plan_own_root_paths[]; /* of one with ids of its own beside those */
extern const char *const plan_etc_paths[];
extern const char *const plan_tool_paths[];   /* below home, read-only when present */
extern const char *const plan_secret_paths[]; /* below home: hidden when a tool path covers them */

#endif
