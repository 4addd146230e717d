/* SPDX-License-Identifier: Apache-2.0 */
/* event/event.h - one typed record of something that happened: its table, its bytes, its text
 *
 * The tables (event/keys.def, event/types.def) name every type and every field once. Frames, JSON, the line for people,
 * docs/EVENTS.md and docs/events.schema.json are all made from it. Everything in this folder is pure: bytes in, bytes
 * out; no descriptors, no clock.
 *
 * A frame is a fixed header and fields, little-endian:
 *
 *     0  u32 magic "VEV1"          16  u64 nanoseconds since 1970
 *     4  u32 bytes in all          24  u32 number within its run, from 0
 *     8  u16 type                  28  u32 sum over all other bytes
 *    10  u16 flags                 32  fields: u16 key, u8 kind, then
 *    12  u32 session                       text, list: u16 bytes and the bytes; u64: 8 bytes; bool: 1 byte, 0 or 1
 *
 * The sum finds torn and rotten bytes; against edits there is the chain of the store. A reader skips no byte: a frame
 * is wholly right or it is refused. Types and keys it does not know are not an error (a newer Vitrine wrote them).
 */
#ifndef VITRINE_EVENT_EVENT_H
#define VITRINE_EVENT_EVENT_H

#include "base/buf.h"
#include "base/err.h"

#define EVENT_MAX_BYTES ((size_t)65536)
#define EVENT_HEAD_BYTES ((size_t)32)
#define EVENT_MAX_FIELDS ((size_t)48)
/* Longest text in a frame that event_encode() makes; more is cut, and the cut is marked. */
#define EVENT_MAX_TEXT ((size_t)16384)
/* The event is about the sandbox as a whole. */
#define EVENT_NO_SESSION UINT32_MAX

enum event_kind { EVENT_TEXT = 1, EVENT_U64, EVENT_BOOL, EVENT_LIST, EVENT_KIND_COUNT_ };

enum event_key {
#define KEY(id, number, name, kind, help) EK_##id = (number),
#include "event/keys.def"
#undef KEY
};

enum event_type {
#define TYPE(id, number, name, flags, help, keys) EV_##id = (number),
#include "event/types.def"
#undef TYPE
};

enum {
	EVENT_VERDICT = 1,  /* written before the act it is about */
	EVENT_INTERNAL = 2, /* of the journal itself; never a row of the store */
};

struct event_key_def {
	uint16_t key;
	uint8_t kind; /* enum event_kind */
	const char *name, *help;
};

/* Keys an event of this type has; those behind `needed` may be missing. */
struct event_type_def {
	uint16_t type, flags;
	const char *name, *help;
	const uint16_t *keys;
	size_t n_keys, n_needed;
};

extern const struct event_type_def event_types[];
extern const size_t event_types_n;
extern const struct event_key_def event_keys[];
extern const size_t event_keys_n;

/* NULL when it is not in the table. */
const struct event_type_def *event_type_def(unsigned type);
const struct event_type_def *event_type_named(const char *name);
const struct event_key_def *event_key_def(unsigned key);

/* A field to be written, or one that was read; text and list are borrowed. A list is its words, each ended by NUL. */
struct event_field {
	uint16_t key;
	uint8_t kind;
	uint64_t num; /* u64; bool as 0 or 1 */
	const char *p;
	size_t n;
};

/* Literals, so that & works on them; EVENT_STR looks at s twice. */
#define EVENT_STR(id, s)                                                                           \
	((struct event_field){ .key = EK_##id, .kind = EVENT_TEXT, .p = (s), .n = strlen(s) })
#define EVENT_NUM(id, v)                                                                           \
	((struct event_field){ .key = EK_##id, .kind = EVENT_U64, .num = (uint64_t)(v) })
#define EVENT_IS(id, v)                                                                            \
	((struct event_field){ .key = EK_##id, .kind = EVENT_BOOL, .num = (v) ? 1 : 0 })

static inline struct event_field event_text(enum event_key key, const char *p, size_t n)
{
	return (struct event_field){ .key = (uint16_t)key, .kind = EVENT_TEXT, .p = p, .n = n };
}

/* Words of an argument vector, packed into `b`, which must outlive the field. */
struct event_field event_list(enum event_key key, const char *const *words, struct buf *b);

/* What stands around the fields. */
struct event_head {
	uint16_t type, flags;
	uint32_t session, number;
	uint64_t time_ns;
};

struct event {
	struct event_head head;
	struct event_field fields[EVENT_MAX_FIELDS];
	size_t n;
};

/* Appends one frame. Fields must be of the key's kind (a bug otherwise); long texts are cut and end in "[+N bytes]",
 * and fields that find no room any more are left out, with the key `cut` saying how many. */
void event_encode(const struct event_head *h, const struct event_field *f, size_t n,
		  struct buf *out);

/* The frame at the beginning of p. Its size; 0 when p ends before it does; -EBADMSG when it is none. Fields borrow p. */
ssize_t event_decode(const void *p, size_t n, struct event *ret);

/* The same frame as heard from another process of the sandbox, under a new head; type and fields are kept. The
 * flags of its type, or -EBADMSG: not one whole frame, or a type that only the journal itself may write. */
int event_restamp(const void *p, size_t n, const struct event_head *h, struct buf *out);

const struct event_field *event_get(const struct event *ev, enum event_key key);
/* The text of a field or NULL; the number or 0. */
char *event_get_text(const struct event *ev, enum event_key key);
uint64_t event_get_num(const struct event *ev, enum event_key key);

/* Where an event comes from, for the two forms below; any may be NULL. */
struct event_origin {
	const char *sandbox, *run;
};

/* One JSON object without a newline, as docs/events.schema.json says. Bytes that are no UTF-8 become U+FFFD; control
 * characters, C1, line separators and bidirectional overrides are escaped. */
void event_json(const struct event *ev, const struct event_origin *from, struct buf *out);

/* One line for people, without a newline; whatever came from inside is escaped. */
void event_line(const struct event *ev, const struct event_origin *from, struct buf *out);

void event_time(uint64_t ns, struct buf *out); /* 2026-01-31T23:59:59.123456789Z */

/* Name of a part of a journal, in the folder `journal` of the state directory: RUN.PART, with a dot in front while it
 * is being made. */
#define EVENT_RUN_CHARS ((size_t)18)
struct event_part {
	char run[EVENT_RUN_CHARS + 1];
	uint32_t part;
	bool is_hidden;
};
void event_part_name(const struct event_part *p, struct buf *out);
bool event_part_parse(const char *name, struct event_part *ret);

/* docs/events.schema.json and docs/EVENTS.md. */
void event_schema(struct buf *out);
void event_manual(struct buf *out);

#endif
