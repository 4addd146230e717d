/* SPDX-License-Identifier: Apache-2.0 */
/* base/loop.h - waiting: one loop, no threads
 *
 * Callbacks do not block and do not run the loop. A watch is level-triggered and stays until watch_free().
 */
#ifndef VITRINE_BASE_LOOP_H
#define VITRINE_BASE_LOOP_H

#include "base/base.h"

enum { WATCH_READ = 1, WATCH_WRITE = 2 };

struct loop;
struct watch;
typedef void watch_fn(void *arg);

struct loop *loop_new(void);
void loop_free(struct loop *l);
/* Runs until loop_stop(). */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* fd readiness; made switched on. A regular file is always ready. */
struct watch *watch_fd(struct loop *l, int fd, int what, watch_fn *fn, void *arg);
struct watch *watch_signal(struct loop *l, int signo, watch_fn *fn, void *arg);
/* Every `every_ns` when is_repeating, else once; made switched off unless ns > 0. */
struct watch *watch_timer(struct loop *l, uint64_t ns, bool is_repeating, watch_fn *fn, void *arg);
void watch_set(struct watch *w, bool is_on);
void watch_free(struct watch *w);

/* Outside a loop: waits until fd can be read or has ended. false: not by `until`, of clock_now(). */
bool wait_readable(int fd, uint64_t until);

uint64_t clock_now(void);  /* CLOCK_MONOTONIC, ns */
uint64_t clock_real(void); /* CLOCK_REALTIME, ns since 1970 */

#endif
