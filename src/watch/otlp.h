/* SPDX-License-Identifier: Apache-2.0 */
/* watch/otlp.h - OpenTelemetry export requests, read strictly and turned into fields of `otel` events
 *
 * Both encodings become the same tree (struct json): JSON by base/json, protobuf by the table of messages in
 * otlp_proto.c, under the names JSON uses. One walker reads the tree. Pure: bytes in, fields out.
 */
#ifndef VITRINE_WATCH_OTLP_H
#define VITRINE_WATCH_OTLP_H

#include "base/json.h"
#include "event/event.h"

enum otlp_signal { OTLP_LOGS, OTLP_METRICS, OTLP_TRACES, OTLP_SIGNAL_COUNT_ };

#define OTLP_MAX_BYTES ((size_t)4 * MIB)
#define OTLP_MAX_RECORDS ((size_t)10000)

/* One record. Fields are borrowed. Non-zero ends the walk and is returned. */
typedef int otlp_record_fn(void *arg, const struct event_field *f, size_t n);

struct otlp_request {
	enum otlp_signal signal;
	bool is_json; /* else protobuf */
	const void *p;
	size_t n;
};

/* The records of one request; how many, or -EBADMSG, -E2BIG, or what fn said. */
int otlp_read(const struct otlp_request *q, otlp_record_fn *fn, void *arg, struct err *e);

const char *otlp_signal_name(enum otlp_signal signal);

/* otlp_proto.c: protobuf as the tree that its JSON form would give. *ret needs otlp_tree_done(). */
struct otlp_tree {
	struct json *root;
	struct arena mem;
	size_t nodes;
};
int otlp_proto(enum otlp_signal signal, const void *p, size_t n, struct otlp_tree *ret,
	       struct err *e);
void otlp_tree_done(struct otlp_tree *t);

#endif
