/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h - a strict, bounded reader of JSON with comments, in which every value knows its place
 *
 * Accepted beyond RFC 8259: line and block comments, and one comma before a closing bracket. Refused although the
 * RFC leaves them open: duplicate keys, a byte order mark, NUL (raw or escaped), raw control and bidirectional
 * override characters anywhere (also in comments), lone surrogates, invalid UTF-8, exponents, whole numbers
 * outside int64/uint64, anything behind the value. All messages begin with "LINE:COLUMN: "; lines and columns
 * count from 1, and a column is a character, not a byte.
 */
#ifndef VITRINE_BASE_JSON_H
#define VITRINE_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define JSON_MAX_BYTES MIB
#define JSON_MAX_DEPTH 32
#define JSON_MAX_NODES 65536

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
	JSON_TYPE_COUNT_
};

struct json {
	enum json_type type;
	bool is_true;       /* JSON_BOOL */
	const char *text;   /* JSON_STRING decoded, JSON_NUMBER as written; no NUL inside */
	size_t n;           /* bytes of text, or number of children */
	struct json *first; /* children in the order of the text */
	struct json *next;
	const char *key; /* set in the children of an object */
	uint32_t line, col;
	uint32_t key_line, key_col;
};

struct json_doc {
	struct json *root;
	struct arena mem; /* owns every node and string */
};

/* *ret is written on success only and then needs json_done(). ERR_CONFIG and -EINVAL, -E2BIG or -ELOOP (depth). */
int json_parse(const char *text, size_t n, struct json_doc *ret, struct err *e);

/* What another program printed for us, not what a person wrote for us: every character is accepted in strings (half
 * of a surrogate pair becomes U+FFFD), numbers may have exponents and be of any size, and the text may be larger. */
#define JSON_FOREIGN_MAX_BYTES (8 * MIB)
int json_parse_foreign(const char *text, size_t n, struct json_doc *ret, struct err *e);

void json_done(struct json_doc *doc);

/* The member called key, or NULL. */
const struct json *json_get(const struct json *object, const char *key);

/* The string that the member called key is; `otherwise` where there is none, or it is empty. `object` may be NULL. */
const char *json_text(const struct json *object, const char *key, const char *otherwise);

/* Exact whole numbers; false for NULL, decimals, other types and values that do not fit. */
bool json_u64(const struct json *v, uint64_t *ret);
bool json_i64(const struct json *v, int64_t *ret);

/* The value as text, over several lines and without the last newline; numbers as they were written. */
void json_print(const struct json *v, struct buf *out);

struct json_style {
	bool is_compact; /* on one line, without a blank */
	/* Writes a string or a key, quotes included; NULL: as it is. */
	void (*put)(struct buf *out, const char *text, const void *arg);
	const void *arg;
};
void json_print_as(const struct json *v, const struct json_style *s, struct buf *out);

/* "null", "true or false", "a number", "a string", "a list", "an object": for messages. */
const char *json_type_name(enum json_type type);

#endif
