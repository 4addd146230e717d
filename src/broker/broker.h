/* SPDX-License-Identifier: Apache-2.0 */
/* broker/broker.h - vitrine-broker: one request from inside, carried out outside under the policy
 *
 * Started by the keeper for each connection, ends with it. It never runs anything on the agent's repository nor reads a
 * file of the workspace: commits come as a pack stream into a repository of the sandbox's own broker, and go on from
 * there. Every program it runs is a child with its own environment, files and time (run.c).
 */
#ifndef VITRINE_BROKER_BROKER_H
#define VITRINE_BROKER_BROKER_H

#include "base/buf.h"
#include "base/err.h"
#include "broker/wire.h"
#include "policy/brokerrule.h"
#include "sys/confine.h"

#define BROKER_CONN_FD 3
#define BROKER_CONFIG_FD 4
#define BROKER_EVENT_FD 5

struct broker {
	int conn;
	char *name, *state_dir;
	char *dir; /* STATE/sandboxes/NAME/broker */
	struct broker_rules rules;
	char **closed; /* host paths that the inside can write, NULL-ended */
	size_t n_closed;
	char **env;    /* NULL-ended */
	char *vitrine; /* the program that makes sandboxes */
	struct request req;
};

/* ---- config.c ---- */

/* Lines: name, state, write PATH, and the rules. */
int broker_config(struct broker *b, const char *text, struct err *e);

/* ---- tell.c ---- */

struct told {
	const char *const *what; /* the words of the act, NULL-ended */
	const char *verdict, *rule, *message;
	bool has_status; /* it has been done, and ended so */
	int status;
};

/* On record before it is done; refused where that fails. */
int broker_tell(const struct told *t, struct err *e);
void broker_say(const struct broker *b, const char *fmt, ...)
	PRINTF(2, 3); /* to the inside's stderr, escaped */
int broker_end(const struct broker *b, int status);

/* ---- run.c ---- */

struct task {
	const char *program;            /* absolute */
	const char *const *argv;        /* NULL-ended; argv[0] included */
	const char *const *env;         /* added to the broker's; NULL-ended or NULL */
	const char *cwd;                /* NULL: the broker's directory */
	const char *read[8], *write[4]; /* beyond what every program may read; NULL-ended */
	bool sees_home;                 /* ssh needs ~/.ssh, gh its config */
	bool reads_all;
	enum confine_net net;
	uint16_t port;      /* of CONFINE_WEB; those of proxies in the environment come with it */
	int in, out;        /* FD_NONE: nothing, and collected */
	struct buf *text;   /* standard output when out is FD_NONE; its ceiling is the limit */
	struct buf *errors; /* standard error, or NULL */
	bool *is_cut; /* not NULL: text over the ceiling is cut at a line's end and the program ended */
	unsigned seconds;
};

#define TASK_NONE ((struct task){ .in = FD_NONE, .out = FD_NONE, .seconds = 120 })

/* Exit status, or -errno when it could not be run at all or not to its end. */
int task_run(const struct broker *b, const struct task *j, struct err *e);

/* A program that is there, is one, and that neither the inside nor another user can change. */
int task_check_program(const struct broker *b, const char *path, struct err *e);

/* ---- token.c ---- */

/* PREFIX + the secret's value + what `encode` makes of it; wiped by the caller (token_free). Refused unless the secret is
 * for one of these hosts, NULL-ended. */
int token_load(const struct broker *b, const char *name, const char *const *hosts, bool is_basic,
	       char **ret, struct err *e);
void token_free(char **text);
/* The host of https:// and http:// URLs; NULL: another kind. */
char *token_host(const char *url);

/* ---- repo.c: the broker's own bare repository of one URL ---- */

struct repo {
	const struct broker *b;
	const char *url;
	char *dir;
	char *git; /* the program */
	int lock;
	char *secret; /* GIT_CONFIG_VALUE_0: a header with the token; wiped */
};

int repo_open(struct repo *r, const struct broker *b, const char *url, const char *secret,
	      struct err *e);
void repo_close(struct repo *r);
/* git in that repository; words NULL-ended. `is_remote`: it may use the network, the token and the ssh agent. */
int repo_git(const struct repo *r, const char *const *words, bool is_remote, struct buf *out,
	     struct buf *errors, struct err *e);
/* The same without a network, for output of any size: what `out` cannot hold is cut off and *ret_cut set. A status other
 * than 0 is an error with git's own words. */
int repo_git_cut(const struct repo *r, const char *const *words, struct buf *out, bool *ret_cut,
		 struct err *e);
/* "OID\tREF\n" of the upstream, branches and tags. */
int repo_list(const struct repo *r, struct buf *out, struct err *e);
/* Upstream's branches and tags into ours. */
int repo_update(const struct repo *r, struct err *e);
/* Takes these objects from the inside. */
int repo_take(const struct repo *r, const char *const *oids, size_t n, struct err *e);
/* Serves it to the inside, over the connection itself. */
int repo_serve(const struct repo *r, struct err *e);
/* 1, 0 or -errno. */
int repo_is_ancestor(const struct repo *r, const char *old, const char *new, struct err *e);
/* Searches what `new` has and `known` (NULL-ended) have not. ERR_DENIED names what was found and where. */
int repo_scan(const struct repo *r, const char *new, const char *const *known, struct err *e);

bool is_oid(const char *s);

/* ---- scan.c: pure ---- */

/* What kind of secret stands in these bytes; NULL: none that is known. */
const char *scan_secret(const char *p, size_t n);
/* Does a pointer of git-lfs stand here instead of a file's content? */
bool scan_is_lfs(const char *p, size_t n);

/* ---- decide.c: pure ---- */

struct update {
	const char *old, *new, *ref; /* old, new: "" for none */
	bool is_forced, is_ff;
};

/* The rule that permits it, or NULL and why not. */
const struct broker_rule *decide_push(const struct broker_rules *r, const char *url,
				      const struct update *u, char say[static 256]);
/* The port that a URL of http, https or a proxy names, or `usual`. 0: it is none of these. */
uint16_t url_port(const char *url, uint16_t usual);
/* `gh` words into the vector that is run; the rest of gh does not exist here. */
#define GH_LIST_MAX 8
struct gh_call {
	const char *repo, *head, *base, *title, *body;
	bool is_draft;
	const char *labels[GH_LIST_MAX], *reviewers[GH_LIST_MAX];
	size_t n_labels, n_reviewers;
};
int decide_gh(const char *const *words, size_t n, struct gh_call *ret, struct err *e);

/* ---- show.c ---- */

/* What a person reads before a push is allowed: the sum and every commit by itself. */
int show_push(const struct repo *r, const struct update *u, struct buf *page, struct err *e);
/* The same before a command gets the files of a commit. */
int show_commit(const struct repo *r, const char *oid, struct buf *page, struct err *e);

/* ---- approve.c ---- */

/* Asks a person and waits. `text`: all they need to know. 0, or ERR_DENIED. */
int approve_wait(const struct broker *b, const char *title, const struct buf *text, struct err *e);

/* ---- request.c ---- */

/* Reads the one request from b->conn and answers it. The exit status of the process. */
int broker_serve(struct broker *b);

/* ---- one function for each kind of request ---- */

int serve_about(struct broker *b);
int serve_list(struct broker *b, struct err *e);
int serve_fetch(struct broker *b, struct err *e);
int serve_push(struct broker *b, struct err *e);
int serve_gh(struct broker *b, struct err *e);
int serve_run(struct broker *b, struct err *e);

/* ---- self.c ---- */

int serve_checkpoint(struct broker *b, struct err *e);
/* command.c: runs it, passes on what it said, and its status. */
int run_and_tell(struct broker *b, struct task *j, const char *rule, struct err *e);

#endif
