/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner.h - pid 1 behind the walls of every engine but native */
#ifndef VITRINE_REMOTE_INNER_H
#define VITRINE_REMOTE_INNER_H

#include "engine/native/native.h"
#include "plan/guest.h"
#include "remote/link.h"
#include "remote/port.h"
#include "sys/datagram.h"
#include "sys/owner.h"

struct server;

/* What one stream of the link is about; the stream's argument. */
enum part_kind {
	PART_DONE, /* answered: nothing more to come */
	PART_START,
	PART_SESSION,
	PART_IN,
	PART_OUT,
	PART_ERR,
	PART_TTY,
	PART_SAMPLES,
	PART_WAITS,    /* for something inside to connect */
	PART_GATE,     /* a connection */
	PART_QUESTION, /* one to the resolver */
	PART_FILE,
	PART_KIND_COUNT_
};

/* What was asked of the resolver, and what comes back. */
struct question {
	int fd;
	struct datagram from;
	struct buf text, answer;
};

struct part {
	enum part_kind kind;
	struct server *server;
	struct command_session *session;
	struct stream *stream;
	struct port *from, *to; /* what the stream sends, what it brings */
	struct buf body;
	bool has_end; /* the other side has said all */
	struct question *question;
	struct file_work *file;
	struct part *next; /* of those that wait */
};

/* A command. Its streams are asked for before it is. */
struct command_session {
	struct server *server;
	uint32_t id;
	bool is_used, has_ended;
	bool is_parked; /* nobody has asked for it since the link began anew */
	pid_t pid;
	int end[3]; /* the command's ends of its pipes, until it runs */
	int slave;  /* of its terminal, until it runs */
	int master; /* of its terminal */
	int keys;   /* to the child that sends its keys' signals; FD_NONE: the kernel does */
	pid_t keys_pid;
	struct part *part[4]; /* in, out, err, tty: NULL when there is none, or none any more */
	struct part *main;
	int status;
	uint64_t cpu_ns, rss, written;
};

/* A listener whose connections go to the gate. */
struct outlet {
	struct server *server;
	int fd;
	const char *way;
	struct watch *watch;
};

struct server_net {
	struct outlet v[4 + 64 + PLAN_PORTS_MAX];
	size_t n;
	bool has_v6;
	const char *
		mode; /* "redirect", "ports", "proxy": how much comes to us; NULL: there is no gate */
	struct part *waiting;
	size_t n_waiting, n_joined;
	bool is_full; /* no more files */
	struct owner owner;
};

struct server {
	struct loop *loop;
	struct link *link;
	struct plan plan; /* its guest half */
	struct guest_walls walls;
	bool is_locked, is_over;
	bool has_failed;   /* to lock: what was asked for behind the plan is refused */
	bool is_vm;        /* ours is the whole machine */
	bool begins_clean; /* this kernel began with us: no signal was ignored before we did */
	bool is_parting;   /* no stream says anything any more */
	int steward;       /* of one that can be saved; FD_NONE: there is none */
	struct samples *samples;
	int proc;
	int null;       /* /dev/null */
	size_t n_files; /* being read or made */
	struct server_net net;
	struct command_session sessions[INIT_SESSIONS];
};

/* inner_lock.c: 0, or < 0 with the reason. */
int server_lock(struct server *sv, const struct buf *guest, struct err *e);

/* inner_net.c */
int net_open(struct server *sv); /* before the lock; 0 or -errno */
int net_wait(struct part *part);
int net_connect(struct part *part, const char *path);
int net_answer(struct part *part, const void *p, size_t n);
void net_part_gone(struct part *part);

/* inner_files.c */
int file_ask(struct part *part, const struct head *h, const char *path);
int file_data(struct part *part, const void *p, size_t n);
int file_end(struct part *part);
void file_gone(struct part *part);

/* inner_samples.c */
int samples_ask(struct part *part, const char *path);
void samples_look(struct server *sv);
void samples_gone(struct part *part);
void samples_free(struct samples *s);

/* inner_sessions.c */
struct command_session *session_get(struct server *sv, uint32_t id, bool may_make);
/* Whose command leads this session of the kernel's; NULL: none's. */
const struct command_session *session_led(const struct server *sv, uint64_t sid);
int session_pipe(struct command_session *s, struct part *part, int which);
int session_tty(struct command_session *s, struct part *part, uint16_t rows, uint16_t cols);
int session_start(struct command_session *s, const char *stdio, struct buf *request);
void session_part_gone(struct part *part);
int session_again(struct command_session *s); /* its main stream has come: says what it is */
void session_signal(struct command_session *s, int signo);
void session_size(struct command_session *s, uint16_t rows, uint16_t cols);
void sessions_all(int signo); /* to every process but us */
void session_reap(struct server *sv);
ssize_t part_pull(void *part, void *p, size_t n);
/* file_act(); here with all else that a fuzzer must not do. */
int session_file(enum file_op op, mode_t mode, const char *text, size_t n, int *ret_fd);

/* inner_keys.c */
bool keys_are_missing(int master);                        /* from this terminal */
_Noreturn void keys_sit(const struct command *c);         /* what sits beside the command then */
int keys_put(struct part *part, const void *p, size_t n); /* sink_put() of what is typed */

/* inner_park.c: the link ends and begins anew, and commands do not notice. */
int park_ask(struct part *part);
void park_parted(void *server);
/* Keeps what a stream of a command was joined to. False: it is no such stream. */
bool park_keep(struct part *part);
/* Joins a stream to what was kept; -ENOENT: there is nothing. */
int park_again(struct command_session *s, struct part *part, int which);

/* inner_vm.c: where we are all there is. */
const char *vm_where(void); /* what the view was about when it failed; "": not known */
bool vm_is_one(const char *name);
int vm_boot(void); /* the link's descriptor, or < 0 */
/* Waits until this machine is to begin. `is_kept`: it may be copied here, so say when. 0 or -errno. */
int vm_wake(int port, bool is_kept);
bool vm_read(int port, void *to, size_t n); /* all of it, however it comes; waits */
/* What only a gate or containers need; where it is loaded already, nothing. */
void vm_load_extra(void);
/* `ret_steward`: of a machine that can be saved, its steward's control. */
int vm_view_enter(const struct plan *p, int *ret_steward);
bool vm_seed(const uint8_t *bytes, size_t n);
/* For a container engine: the kernel's own file systems, and a place for its things that can be stacked. */
int vm_containers(const struct plan *p);

/* inner_serve.c */
extern const struct link_ops server_ops;
void server_check_over(struct server *sv);
int server_proc(struct server *sv); /* /proc, once for all */

#endif
