/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keeper.h - the keeper's state, shared by the files of this folder only */
#ifndef VITRINE_KEEP_KEEPER_H
#define VITRINE_KEEP_KEEPER_H

#include "keep/gate.h"
#include "keep/journal.h"
#include "keep/keys.h"
#include "keep/origin.h"
#include "keep/question.h"
#include "keep/seal.h"
#include "keep/session.h"
#include "sys/freeze.h"
#include "sys/sample.h"
#include "sys/shared.h"
#include "view/setid.h"

/* Nothing inside lives any more: front and seal have so long to say what they still know. They need a millisecond, or
 * their turn on a busy machine. */
#define KEEPER_LAST_NS (2 * NS_PER_SEC)

#define KEEPER_CLIENTS 96
#define DRAIN_NS (2 * NS_PER_SEC) /* for readers of a command that has ended */

enum client_state {
	CLIENT_NEW = 1,      /* connected, has asked for nothing that lasts */
	CLIENT_SESSION = 2,  /* sits in a session */
	CLIENT_WAITING = 4,  /* for an end */
	CLIENT_FILE = 8,     /* for init's answer to a file operation */
	CLIENT_PAUSING = 16, /* for all inside to stand still */
	CLIENT_PAUSED = 32,  /* they do, because of it */
	CLIENT_PARKING = 64, /* for the machine to be still */
	CLIENT_PARKED = 128, /* it is, because of it */
};

struct keeper;
struct client {
	struct keeper *k;
	bool is_used;
	enum client_state state;
	int fd;
	struct watch *watch;
	struct session *s;   /* CLIENT_SESSION; CLIENT_WAITING: NULL is the whole sandbox */
	struct viewer *view; /* of its terminal; NULL: none */
	struct relay *input; /* what is typed */
	struct keys keys;
	uint16_t rows, cols;
	bool wants_detach;
	bool can_suspend, is_suspended;
	struct watch *on_suspend; /* a key was typed by which the command may stop itself */
	unsigned n_looks;
	uint32_t token; /* of the file operation */
	struct watch
		*on_look; /* it asked how things stand, and behind other walls somebody looks now */
};

/* ---- suspend.c ---- */

/* What was typed, before the command gets it. */
void suspend_typed(struct client *c, const char *p, size_t n);
/* The command goes on, and the client's terminal is read again. */
void suspend_end(struct client *c);
/* The client goes; a command that was stopped with it goes on. */
void suspend_leave(struct client *c);

struct usage {
	uint64_t cpu_ns, memory, memory_peak, processes;
};

struct keeper {
	struct keeper_in *in;
	struct native native;
	struct cgroup cgroup;
	struct loop *loop;
	struct watch *on_ctl, *on_pidfd, *on_term, *on_listener, *on_files[2];
	struct watch *on_time, *on_sample, *on_claim, *on_grace, *on_usage, *on_story, *on_drain;
	int dir, lock, listener;
	int sessions_dir; /* sessions/ of a named sandbox, made when first needed */
	struct session sessions[INIT_SESSIONS]; /* [0] is the command the sandbox was started for */
	struct client clients[KEEPER_CLIENTS];
	uint32_t last_id, last_number, last_token;
	uint32_t first_number; /* of this keeper's */
	uint64_t n_messages;
	bool has_left;     /* init ended by itself */
	bool is_empty;     /* init ended everybody else and has only itself to end */
	bool has_visitors; /* others than the first client have come */
	bool was_left;     /* a client left its session running */
	bool is_ready;     /* init stands and has nothing to do */
	bool is_cut;       /* the link to another engine's init broke while it stood */
	bool is_ending;    /* the last session is over, or somebody said so */
	int status;        /* of the first command */
	int last_status;   /* of the session that ended last, and why it ended */
	enum end_reason last_why;
	uint64_t ended_cpu_ns, ended_rss; /* of all sessions that ended */
	enum end_reason why;
	struct err err;
	uint64_t started, started_ns;
	struct {
		int64_t real_ns; /* both clocks at the start */
		uint64_t mono_ns;
		const char *root; /* being walked */
		struct setid look;
		enum { TIMES_UNKNOWN, TIMES_HOLD, TIMES_DO_NOT } times;
		const char **swept; /* directories that need no walk of their own */
		size_t n_swept, cap_swept;
		size_t told;
	} setid;                     /* setid.c */
	uint64_t timed_ns;           /* since when a limit on time counts */
	struct gate *gate;           /* gate.c; NULL: no network */
	struct origins *origins;     /* origin.c; NULL: no network */
	struct questions *questions; /* question.c; NULL: nothing was asked */
	struct listening *listening; /* listening.c */
	struct seal *seal;           /* seal.c; NULL: nothing is inspected */
	struct refuser *refuser;     /* refuser.c; NULL: nobody answers questions about names */
	struct notice *notice;       /* notice.c; NULL: the system call filter sends none */
	struct hearing
		*hearing; /* receiver.c; NULL: nobody listens to what the inside says of itself */
	/* limits.c */
	int proc; /* the sandbox's own /proc */
	bool wants_proc;
	uint64_t told_ns; /* processes that another init tells of: since then... */
	size_t n_told;    /* ...so many */
	uint64_t cpu_ns, idle_since_ns, memory_peak;
	uint64_t oom_kills;
	struct sockets *sockets;
	struct broker_door *broker; /* broker.c; NULL: none */
	/* tell.c */
	struct journal *journal;
	/* usage.c */
	struct usage usage;
	struct shared
		shared; /* what of it is no process's own; looked at only where memory is watched */
	struct seen *seen; /* processes that were there at the last look */
	size_t n_seen;
	/* layers.c */
	struct left *left;
	struct disk *disk; /* disk.c; NULL: not watched */
	/* freeze.c */
	enum freeze_state { FREEZE_OFF, FREEZE_ASKED, FREEZE_STOPPING, FREEZE_ON } freeze_state;
	struct freeze freeze;
	struct watch *on_freeze, *on_frozen;
	bool freeze_is_weak;   /* by SIGSTOP, which SIGCONT ends */
	struct served *served; /* served.c; NULL: .git is masked like everything else */
	/* masks.c */
	struct masks *masks;
	struct sweep swept;
};

void keeper_end(struct keeper *k, enum end_reason why);
void keeper_note(struct keeper *k, const char *text);
void keeper_note_now(struct keeper *k, const char *text); /* not with the others at the end */
void keeper_fail(struct keeper *k, const struct err *e);
/* Ends the sandbox when nobody needs it any more. */
void keeper_end_if_idle(struct keeper *k);
void keeper_verdict(struct keeper *k, struct session *s); /* it ended by itself: was it a limit? */
void keeper_moved(void *keeper);                          /* bytes went through */

static inline bool keeper_is_named(const struct keeper *k)
{
	return k->in->plan->is_named;
}

/* layers.c: before a named sandbox's view is built, and after its last process died. */
int keeper_claim_layers(const struct keeper *k, struct err *e);
/* What a root inside made in the workspace is the caller's again. Everything inside is dead. */
void keeper_give_back(struct keeper *k);
void keeper_look(struct keeper *k);
void keeper_seal(struct keeper *k); /* when the clients know */

/* place.c: the sandbox's folder, its lock and its control socket. */
int place_claim(struct keeper *k, struct err *e);
int place_listen(struct keeper *k, struct err *e);
void place_hide(struct keeper *k);
/* Who has connected and was not let in yet is told that the sandbox is ending. */
void place_shut(struct keeper *k); /* nobody can come any more */
void place_release(struct keeper *k);

/* served.c: the server of the workspace's .git. Waits until init has made its mount. */
int served_start(struct keeper *k, struct err *e);
void served_take(struct keeper *k, int take_fuse, int error);
/* Takes the message if it is INIT_PARTS, and its descriptors with it. */
bool served_parts(struct keeper *k, const struct init_msg *m, int fds[PACKET_FDS]);
bool served_is_on(const struct keeper *k);
/* Before the keeper waits for something that goes through the served mount: starts the server unless it runs. */
void served_need(struct keeper *k);
void served_finish(struct keeper *k);

/* listening.c: hints about what listens inside. */
void listening_start(struct keeper *k);

/* sockets.c: the host's unix sockets that the plan names. */
int sockets_open(struct keeper *k, struct err *e);
void sockets_close(struct keeper *k);

/* broker.c: who asks for something to be run outside. */
int broker_open(struct keeper *k, struct err *e);
void broker_finish(struct keeper *k);
void broker_remove(struct keeper *k);

/* clients.c: who is connected. */
struct client *client_add(struct keeper *k, int take_fd);
void client_enter(struct client *c, struct session *s, const struct keep_msg *m); /* sits down */
void client_seat(struct client *c, int take_in, int take_out, bool sees_past);
void clients_started(struct keeper *k, struct session *s);
void clients_ready(struct keeper *k);
void clients_end(struct keeper *k, struct session *s, int status, enum end_reason why);
void clients_end_all(struct keeper *k, int status, enum end_reason why);
/* Does a client want all inside to stand still? */
bool clients_pause(const struct keeper *k);
void clients_on_frozen(struct keeper *k);
void clients_not_frozen(struct keeper *k, const char *why);
/* Of an init behind other walls: a look has come, whole. */
void clients_on_look(struct keeper *k);
bool clients_any(const struct keeper *k);
bool client_sits(const struct keeper *k, const struct session *s); /* one is in that session */
void client_message(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS]);
void client_say(struct client *c, const struct keep_msg *m);
void client_drop(struct client *c);
bool request_is_sealed(int fd); /* nobody changes it any more */

/* clients_file.c */
void client_file(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS]);
void clients_file_done(struct keeper *k, const struct init_msg *said, int take_fd);

/* machine.c: a machine is saved while it works, or goes on from there. */
void client_park(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS]);
void clients_on_parked(struct keeper *k, int error);
bool machine_is_parked(const struct keeper *k); /* or about to be */
void machine_go_on(struct keeper *k);
void machine_watch(struct keeper *k);               /* it ends with whoever serves its files */
int machine_adopt(struct keeper *k, struct err *e); /* the commands that are in it */
void client_refuse(struct client *c, enum end_reason why, const char *text);

/* inside.c: what init says. */
void inside_message(struct keeper *k);
void inside_origins(struct keeper *k); /* those that are next to be read */
struct session *session_find(struct keeper *k, uint32_t id);
struct session *session_live(struct keeper *k, uint32_t number); /* 0: the newest */
size_t sessions_live(const struct keeper *k);

/* receiver.c: what the inside says of itself. */
void receiver_take(struct keeper *k, int take_listener);
void receiver_open(struct keeper *k); /* behind other walls */
void receiver_finish(struct keeper *k);
void receiver_look(struct keeper *k, struct session *s); /* its output may be structured */
void receiver_looked(struct session *s);                 /* all of it went through */

/* refuser.c: the name server of a sandbox without network. */
void refuser_take(struct keeper *k, int take_socket);
void refuser_finish(struct keeper *k);

/* story.c: what is written down of a session. */
void story_begin(struct keeper *k, struct session *s);
void story_soon(struct keeper *k); /* begins those that have none, in a moment */
void story_end(struct keeper *k, struct session *s, int status, enum end_reason why);
/* A sandbox whose folder goes with it, and that somebody left running: how its first command ended stays for a while
 * in STORY_LEFT_DIR (keep.h). */
void story_leave(struct keeper *k);
void story_numbers(struct keeper *k);
void story_prune(struct keeper *k);

/* tell.c: what happened, for the record. */
void tell_started(struct keeper *k);
void tell_stopped(struct keeper *k, int status);
void tell_session_started(struct keeper *k, struct session *s);
void tell_session_ended(struct keeper *k, const struct session *s, int status, enum end_reason why);
void tell_viewer(struct keeper *k, const struct session *s, bool has_come, const char *why);
void tell_limit(struct keeper *k, enum limit_id id, uint64_t value);
void tell_sample(struct keeper *k);
/* argv: words, each ended by NUL. */
void tell_process(struct keeper *k, const char *pid, const struct process *p, const char *argv,
		  size_t n);
void tell_quarantined(void *keeper, const char *rel, const char *rule);
void tell_masked(struct keeper *k, const char *path);
void tell_set_id(struct keeper *k, const char *path, const char *why);
/* < 0: a verdict that is not on record. */
int tell_net(struct keeper *k, const struct gate_msg *m);
void tell_gate(struct keeper *k, const char *reason);
void tell_note(struct keeper *k, const char *reason, const char *text);
/* -errno: it could not be put on record and must not be done. */
int tell_copied(struct keeper *k, const char *inside, const char *outside, bool is_out);

/* limits.c: what the kernel or the keeper enforces while the sandbox runs. */
int limits_open(struct keeper *k, struct err *e);   /* makes the control groups */
int limits_attach(struct keeper *k, struct err *e); /* puts init into them and lets it go */
void limits_start(struct keeper *k);
void limits_begin(struct keeper *k);               /* the first command does */
void limits_proc(struct keeper *k, int take_proc); /* init sent the sandbox's /proc */
void limits_look(struct keeper *k);                /* usage is fresh: is it too much? */
void limits_check_output(struct keeper *k);
/* A command ended so: was it a limit? */
enum end_reason limits_reason(struct keeper *k, int status, enum end_reason why);

/* disk.c: what it keeps on the disk, while somebody is inside. */
void disk_start(struct keeper *k);
void disk_finish(struct keeper *k);

/* usage.c: how much the sandbox uses, and each session. */
void usage_take(struct keeper *k);                           /* looks now */
void usage_told(struct keeper *k, const struct init_msg *m); /* by an init we cannot look at */
void usage_fill(const struct keeper *k, uint64_t v[KEEP_VALUES]);
void usage_start(struct keeper *k);

/* freeze.c: everything inside is stopped. masks_on_frozen() and clients_on_frozen() follow; goes on when neither needs it. */
void freeze_ask(struct keeper *k);
void freeze_on_init(struct keeper *k, int is_weak); /* init starts nothing any more */
void freeze_release(struct keeper *k);              /* unless somebody needs it still */
void freeze_drop(struct keeper *k);                 /* everything inside has been killed */

/* masks.c: hidden and protected names stay so when the host replaces them; what appears is quarantined. */
void masks_start(struct keeper *k);
void masks_on_frozen(struct keeper *k);
bool masks_want_freeze(const struct keeper *k);
void masks_finish(struct keeper *k);
/* After masks_finish(), when nobody waits: what the sweep saw is kept for the next start (view/index.h). */
void masks_leave(struct keeper *k);

/* The filter's notices about calls that can make a set-user-id or set-group-id file (notice.c). */
void notice_take(struct keeper *k, int take_listener);
void notice_finish(struct keeper *k);
/* No such call was made, and none can have been made unseen. */
bool notice_saw_none(const struct keeper *k);

/* Set-user-id and set-group-id bits that were made inside are taken off at the end (setid.c). */
void setid_start(struct keeper *k);
/* For the last sweep of a directory: what it looks for them with; NULL when it need not. `list` is the one of the scan before
 * the start, or NULL. is_whole: the sweep came to its end. */
struct setid *setid_begin(struct keeper *k, const char *path, int fd, const struct index *list);
void setid_end(struct keeper *k, struct setid *s, bool is_whole);
void setid_finish(struct keeper *k);

#endif
