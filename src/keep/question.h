/* SPDX-License-Identifier: Apache-2.0 */
/* keep/question.h - what only a person can decide, asked on the terminal of the run
 *
 * The screen stands still and what is typed goes nowhere else while a question is open, so that nothing inside can
 * write over it or be mistaken for it. `vitrine net allow|deny` answers it as well; nobody's answer is a refusal.
 */
#ifndef VITRINE_KEEP_QUESTION_H
#define VITRINE_KEEP_QUESTION_H

#include "base/base.h"

struct client;
struct gate_msg;
struct keeper;
struct questions;

/* True when somebody sits at a terminal and will be asked. */
bool question_ask(struct keeper *k, const struct gate_msg *m);
/* Typed by this client: true when it was for a question, and for nobody else. */
bool question_typed(struct client *c, const char *p, size_t n);
/* The rules have changed: what waits may be decided by them. */
void questions_settle(struct keeper *k, const char *rule);
/* The client leaves; its question goes to whoever else is there. */
void question_leave(struct client *c);
/* The client is stopped as a job of its shell (is_suspended and HOLD_SUSPEND are set): its question goes to another
 * client, or waits for question_resume. */
void question_suspend(struct client *c);
void question_resume(struct keeper *k);

#endif
