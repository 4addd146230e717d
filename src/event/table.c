/* SPDX-License-Identifier: Apache-2.0 */
/* event/table.c - the table as data; see keys.def and types.def */
#include "event/event.h"

const struct event_key_def event_keys[] = {
#define KEY(id, number, word, k, text)                                                             \
	{ .key = (number), .kind = EVENT_##k, .name = (word), .help = (text) },
#include "event/keys.def"
#undef KEY
};
const size_t event_keys_n = ARRAY_LEN(event_keys);

/* Only here the keys go by their bare names, as types.def writes them. */
enum {
#define KEY(id, number, word, k, text) id = EK_##id,
#include "event/keys.def"
#undef KEY
};

/* A type's keys are written as KEYS(A, B) ALSO(C). Behind a zero, so that either list may be empty. */
#define KEYS(...) 0, ##__VA_ARGS__
#define ALSO(...) , ##__VA_ARGS__
#define TYPE(id, number, word, bits, text, wanted) static const uint16_t keys_##id[] = { wanted };
#include "event/types.def"
#undef TYPE
#undef ALSO

#define ALSO(...)
const struct event_type_def event_types[] = {
#define TYPE(id, number, word, bits, text, wanted)                                                 \
	{ .type = (number),                                                                        \
	  .flags = (bits),                                                                         \
	  .name = (word),                                                                          \
	  .help = (text),                                                                          \
	  .keys = keys_##id + 1,                                                                   \
	  .n_keys = ARRAY_LEN(keys_##id) - 1,                                                      \
	  .n_needed = sizeof((const uint16_t[]){ wanted }) / sizeof(uint16_t) - 1 },
#include "event/types.def"
#undef TYPE
};
const size_t event_types_n = ARRAY_LEN(event_types);

const struct event_type_def *event_type_def(unsigned type)
{
	for (size_t i = 0; i < event_types_n; i++)
		if (event_types[i].type == type)
			return &event_types[i];
	return NULL;
}

const struct event_type_def *event_type_named(const char *name)
{
	for (size_t i = 0; i < event_types_n; i++)
		if (str_eq(event_types[i].name, name))
			return &event_types[i];
	return NULL;
}

/* Keys are numbered from 1 without a gap: the table is its own index (the test holds it to that). */
const struct event_key_def *event_key_def(unsigned key)
{
	return key > 0 && key <= event_keys_n ? &event_keys[key - 1] : NULL;
}
