/* SPDX-License-Identifier: Apache-2.0 */
/* event/table.c - the table as data; see table.def */
#include "event/event.h"

const struct event_key_def event_keys[] = {
#define KEY(id, number, word, k, text)                                                             \
	{ .key = (number), .kind = EVENT_##k, .name = (word), .help = (text) },
#include "event/table.def"
#undef KEY
};
const size_t event_keys_n = ARRAY_LEN(event_keys);

/* A type's keys are written as KEYS(A, B) ALSO(C): two lists, one behind the other in one array. */
#define EACH_(f, ...) __VA_OPT__(AGAIN4_(EACH_HELP_(f, __VA_ARGS__)))
#define EACH_HELP_(f, a, ...) f(a) __VA_OPT__(EACH_AGAIN_ PAREN_(f, __VA_ARGS__))
#define EACH_AGAIN_() EACH_HELP_
#define PAREN_ ()
#define AGAIN4_(...) AGAIN3_(AGAIN3_(AGAIN3_(__VA_ARGS__)))
#define AGAIN3_(...) AGAIN2_(AGAIN2_(AGAIN2_(__VA_ARGS__)))
#define AGAIN2_(...) AGAIN1_(AGAIN1_(AGAIN1_(__VA_ARGS__)))
#define AGAIN1_(...) __VA_ARGS__
#define KEY_(id) EK_##id,
#define ONE_(id) +1

#define KEYS(...) EACH_(KEY_, __VA_ARGS__)
#define ALSO(...) EACH_(KEY_, __VA_ARGS__)
#define TYPE(id, number, name, flags, help, keys) static const uint16_t keys_##id[] = { keys };
#include "event/table.def"
#undef TYPE
#undef KEYS
#undef ALSO

#define KEYS(...) 0 EACH_(ONE_, __VA_ARGS__)
#define ALSO(...)
const struct event_type_def event_types[] = {
#define TYPE(id, number, word, bits, text, wanted)                                                 \
	{ .type = (number),                                                                        \
	  .flags = (bits),                                                                         \
	  .name = (word),                                                                          \
	  .help = (text),                                                                          \
	  .keys = keys_##id,                                                                       \
	  .n_keys = ARRAY_LEN(keys_##id),                                                          \
	  .n_needed = (wanted) },
#include "event/table.def"
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
