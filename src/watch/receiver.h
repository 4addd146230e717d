/* SPDX-License-Identifier: Apache-2.0 */
/* watch/receiver.h - the OTLP/HTTP receiver a sandbox's agent is pointed at, and how its keeper starts it
 *
 * The agent's telemetry is kept instead of switched off. The listening socket is made inside the sandbox's network
 * namespace, on its loopback, and handed out; `vitrine-otlp` serves it from outside, confined before its first byte:
 * no file, no socket of its own, no other process. What it reads goes to the keeper as frames over one socketpair
 * (SOCK_SEQPACKET, one frame a packet); the keeper restamps them (journal_frame), so nothing else can be forged.
 */
#ifndef VITRINE_WATCH_RECEIVER_H
#define VITRINE_WATCH_RECEIVER_H

#include <sys/types.h>

#include "base/err.h"

/* OpenTelemetry's own port for HTTP. */
#define RECEIVER_PORT 4318

/* For the sandbox's environment. */
#define RECEIVER_ENV_ENDPOINT "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"
#define RECEIVER_ENV_PROTOCOL "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"

/* Listens on 127.0.0.1:port of the network namespace the caller is in (0: any free port). The descriptor or < 0. */
int receiver_listen(uint16_t port, struct err *e);

/* Starts vitrine-otlp on that socket, which is taken. *ret_events is the keeper's end: non-blocking, one frame a packet,
 * at its end when the receiver is gone. The caller reaps the pid. */
int receiver_spawn(int take_listener, pid_t *ret_pid, int *ret_events, struct err *e);

/* vitrine-otlp itself: confines the process and serves until the keeper's end is gone. */
int receiver_run(int listener, int events, struct err *e);

#endif
