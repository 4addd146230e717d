/* SPDX-License-Identifier: Apache-2.0 */
/* watch/receiver.h - listens to what the inside says of itself: the OTLP/HTTP receiver a sandbox's agent is pointed at,
 * reports of tool calls, structured output; and how its keeper starts it
 *
 * The agent's telemetry is kept instead of switched off. The listening socket is made inside the sandbox's network
 * namespace, on its loopback, and handed out; `vitrine-otlp` serves it from outside, confined before its first byte:
 * no file, no socket of its own, no other process. What it reads goes to the keeper as frames over one socketpair
 * (SOCK_SEQPACKET, one frame a packet); the keeper restamps them (journal_frame), so nothing else can be forged.
 *
 * POST /v1/logs, /v1/metrics, /v1/traces   OpenTelemetry, JSON or protobuf: `otel` events
 * POST /vitrine/v1/calls                   a report in JSON (watch/said.h): `tool.call`, `guard.decision`
 *
 * The other way on the same socketpair the keeper shows what sessions print, where that looks like structured output.
 */
#ifndef VITRINE_WATCH_RECEIVER_H
#define VITRINE_WATCH_RECEIVER_H

#include <sys/types.h>

#include "base/err.h"

/* Starts vitrine-otlp on that socket, which is taken. *ret_events is the keeper's end: non-blocking, one frame a packet,
 * at its end when the receiver is gone. The caller reaps the pid. */
int receiver_spawn(int take_listener, pid_t *ret_pid, int *ret_events, struct err *e);

/* What the keeper shows: a session's number, how it goes on, and bytes of its output. */
#define RECEIVER_SHOW_BYTES ((size_t)32 * 1024)
enum receiver_show { SHOW_MORE, SHOW_GAP /* something is missing before this */, SHOW_END };
struct receiver_packet {
	uint32_t session, how;
	char bytes[RECEIVER_SHOW_BYTES];
};
/* All of p in packets. False: it does not keep up, and some of it was not shown. */
bool receiver_say(int events, uint32_t session, enum receiver_show how, const char *p, size_t n);

/* vitrine-otlp itself: confines the process and serves until the keeper's end is gone. */
int receiver_run(int listener, int events, struct err *e);

#endif
