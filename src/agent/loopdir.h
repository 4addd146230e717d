/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loopdir.h - a loop on disk: its definition, and a folder of records for every try
 *
 *     sandboxes/NAME/loops/N/loop.json         what it is to do; written once
 *                           /lock              held by whoever runs it
 *                           /stop              there: somebody wants it to stop
 *                           /end.json          why it stopped
 *                           /log.txt           what a loop that nobody waits for complained about
 *                           /hints/            for the next iteration
 *                           /runs/0001/        prompt.txt, begin.json, output.txt, errors.txt, check.txt, tree.txt,
 *                                              record.json
 *
 * A try has begun when begin.json is there and is finished when record.json is: each appears whole (written aside,
 * synced, renamed, the folder synced). All of it lies below the state directory, which no sandbox ever sees.
 */
#ifndef VITRINE_AGENT_LOOPDIR_H
#define VITRINE_AGENT_LOOPDIR_H

#include <sys/types.h>

#include "agent/loop.h"

#define LOOPDIR_FILES_MAX 200
#define LOOPDIR_TEXT_MAX (256 * KIB)

struct loop_def {
	char *agent, *workspace, *mode;
	char *prompt;      /* the text; NULL: prompt_file */
	char *prompt_file; /* absolute; read anew for every iteration */
	char *until, *marker;
	char *notify;      /* a command of the host, or "desktop" */
	uint64_t run_time; /* ns, of one iteration; 0: no limit */
	uint64_t created;  /* seconds since 1970 */
	struct loop_conf conf;
};

struct loop_begin {
	uint64_t iteration, attempt; /* counted from 1 */
	uint64_t checkpoint, started;
	char **hints; /* names of files, NULL-ended */
};

struct loop_record {
	uint64_t number; /* of the folder */
	uint64_t iteration, attempt, checkpoint;
	uint64_t started; /* seconds since 1970 */
	struct loop_result result;
	bool has_cost, has_tokens, has_check;
	int check_status;
	char *reason;   /* how the session ended: exit, signal, time, ... */
	char *said;     /* the end of what it said */
	char **files;   /* changed; the first LOOPDIR_FILES_MAX, NULL-ended */
	char **outside; /* what attempts that were cut off did outside, NULL-ended */
};

struct loopdir {
	int fd, lock;
	uint64_t number;
};

#define LOOPDIR_NONE ((struct loopdir){ .fd = FD_NONE, .lock = FD_NONE })

void loop_def_done(struct loop_def *d);
void loop_begin_done(struct loop_begin *b);
void loop_record_done(struct loop_record *r);
void loop_texts_free(char **v);

/* The newest loop of a sandbox. -ENOENT (a story too): there is none. */
int loopdir_open(const char *state_dir, const char *name, struct loopdir *ret, struct err *e);
/* A new one, with its definition. The sandbox's folder must be there. */
int loopdir_create(const char *state_dir, const char *name, const struct loop_def *d,
		   struct loopdir *ret, struct err *e);
/* An older one, by its number. -ENOENT without a story: not there. */
int loopdir_open_old(const char *state_dir, const char *name, uint64_t number, struct loopdir *ret,
		     struct err *e);
void loopdir_close(struct loopdir *l);

/* -EBUSY: somebody runs it. */
int loopdir_lock(struct loopdir *l, struct err *e);
/* By another process. Not to be asked by the one that has the lock: looking would give it up. */
bool loopdir_is_locked(const struct loopdir *l);
/* The process that runs the loop; 0: none, or one of another pid namespace. */
pid_t loopdir_holder(const struct loopdir *l);

/* Replaces loop.json. */
int loopdir_write_def(const struct loopdir *l, const struct loop_def *d, struct err *e);
int loopdir_def(const struct loopdir *l, struct loop_def *ret, struct err *e);

/* The folder of a try, made where it is not there. */
int loopdir_run(const struct loopdir *l, uint64_t number, struct err *e);
/* -ENOENT without a story: not there. */
int loopdir_begin(const struct loopdir *l, uint64_t number, struct loop_begin *ret, struct err *e);
int loopdir_record(const struct loopdir *l, uint64_t number, struct loop_record *ret,
		   struct err *e);
int loopdir_write_begin(const struct loopdir *l, uint64_t number, const struct loop_begin *b,
			struct err *e);
int loopdir_write_record(const struct loopdir *l, const struct loop_record *r, struct err *e);

/* Every finished try in order; stops at the first that is not. */
int loopdir_sum(const struct loopdir *l, struct loop_sum *ret, struct err *e);

int loopdir_write_end(const struct loopdir *l, enum loop_stop why, struct err *e);
/* LOOP_GOES_ON: it has not ended. */
enum loop_stop loopdir_end(const struct loopdir *l);

/* Nobody runs it, and it has not come to an end that it was begun for: --resume goes on with it. */
bool loopdir_is_interrupted(const struct loopdir *l);

int loopdir_ask_stop(const struct loopdir *l, struct err *e);
bool loopdir_is_asked(const struct loopdir *l);
void loopdir_forget_stop(const struct loopdir *l);

int loopdir_add_hint(const struct loopdir *l, const char *text, struct err *e);
/* Names in order, NULL-ended. */
int loopdir_hints(const struct loopdir *l, char ***ret, struct err *e);
int loopdir_read_hint(const struct loopdir *l, const char *name, struct buf *out, struct err *e);
void loopdir_drop_hints(const struct loopdir *l, char *const *names);

/* A file of ours below dir, whole or not at all, and on the disk. */
int loopdir_put(int dir, const char *name, const char *text, size_t n, struct err *e);
/* The same for what nothing depends on before the next loopdir_put() there; not kept: of no use after a crash. */
int loopdir_note(int dir, const char *name, const char *text, size_t n, bool is_kept,
		 struct err *e);
int loopdir_get(int dir, const char *name, struct buf *out, struct err *e);

/* Texts, for tests and for the printing verbs. */
void loop_record_print(const struct loop_record *r, struct buf *out);
int loop_record_parse(const char *text, size_t n, struct loop_record *ret, struct err *e);

#endif
