/* SPDX-License-Identifier: Apache-2.0 */
/* history/events_sessions.h - the summary of each session: what it used, and how many events with which head it has */
#ifndef VITRINE_HISTORY_EVENTS_SESSIONS_H
#define VITRINE_HISTORY_EVENTS_SESSIONS_H

#include "base/buf.h"
#include "store/store.h"

enum sessions_as { SESSIONS_LINES, SESSIONS_JSON, SESSIONS_IDS };

void session_summary(const struct store_session *s, enum sessions_as as, struct buf *out);

#endif
