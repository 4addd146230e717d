/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/table.c - expands syscalls.def into the tables of syscalls.h
 *
 * One pass per table; each pass defines the macros it does not want as nothing. The verdict word of
 * a row is pasted to RULE_ before it could be expanded, so EPERM in the table never becomes a
 * number.
 */
#include "sys/filter/syscalls.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define NR_LIB NR_FROM_LIB, 0
#define NR_COMMON(n) NR_FROM_COMMON, n
#define NR_X86_64(n) NR_FROM_X86_64, n
#define NR_I386(n) NR_FROM_I386, n
#define ROW(call, verdict, from, number, reason)                                                   \
	{ .name = call, .rule = verdict, .source = from, .nr = number, .why = reason },
#define ROW_EXPAND(...) ROW(__VA_ARGS__)

const struct sys_row sys_rows[] = {
#define GROUP(title, reason) { .group = title, .why = reason },
#define SYS(call, verdict, number, reason) ROW_EXPAND(#call, RULE_##verdict, number, reason)
#define IOCTL(...)
#define IOCTL_TYPE(...)
#define PRCTL(...)
#define FCNTL(...)
#define FCNTL_LAST(...)
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};
const size_t sys_row_count = COUNT(sys_rows);

const struct ioctl_row ioctl_rows[] = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(low, high, verdict, request, reason)                                                 \
	{ .lo = low, .hi = high, .rule = RULE_##verdict, .name = request, .why = reason },
#define IOCTL_TYPE(...)
#define PRCTL(...)
#define FCNTL(...)
#define FCNTL_LAST(...)
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};
const size_t ioctl_row_count = COUNT(ioctl_rows);

const struct ioctl_type_row ioctl_type_rows[] = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(...)
#define IOCTL_TYPE(byte, driver, reason) { .type = byte, .name = driver, .why = reason },
#define PRCTL(...)
#define FCNTL(...)
#define FCNTL_LAST(...)
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};
const size_t ioctl_type_row_count = COUNT(ioctl_type_rows);

const struct prctl_row prctl_rows[] = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(...)
#define IOCTL_TYPE(...)
#define PRCTL(number, word, reason) { .option = number, .name = word, .why = reason },
#define FCNTL(...)
#define FCNTL_LAST(...)
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};
const size_t prctl_row_count = COUNT(prctl_rows);

const struct prctl_row fcntl_rows[] = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(...)
#define IOCTL_TYPE(...)
#define PRCTL(...)
#define FCNTL(number, word, reason) { .option = number, .name = word, .why = reason },
#define FCNTL_LAST(...)
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};
const size_t fcntl_row_count = COUNT(fcntl_rows);

const struct prctl_row fcntl_last = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(...)
#define IOCTL_TYPE(...)
#define PRCTL(...)
#define FCNTL(...)
#define FCNTL_LAST(number, word) .option = number, .name = word
#define PERSONA(...)
#include "sys/filter/syscalls.def"
};

const struct persona_row persona_rows[] = {
#define GROUP(...)
#define SYS(...)
#define IOCTL(...)
#define IOCTL_TYPE(...)
#define PRCTL(...)
#define FCNTL(...)
#define FCNTL_LAST(...)
#define PERSONA(number, verdict, word) { .value = number, .rule = RULE_##verdict, .name = word },
#include "sys/filter/syscalls.def"
};
const size_t persona_row_count = COUNT(persona_rows);
