/* SPDX-License-Identifier: Apache-2.0 */
/* base/err.h - the one way failures travel
 *
 * Functions that can fail return int: >= 0 is success, < 0 is -errno. The story for people is in struct err,
 * flat and owned by the caller, so it crosses fork and fits in one packet. `kind` fixes the exit status.
 */
#ifndef VITRINE_BASE_ERR_H
#define VITRINE_BASE_ERR_H

#include "base/base.h"

enum err_kind {
	ERR_NONE,
	ERR_USAGE,       /* the call itself is wrong: exit 2 */
	ERR_CONFIG,      /* a policy file is wrong: exit 2 */
	ERR_DENIED,      /* policy says no */
	ERR_UNSUPPORTED, /* this host cannot enforce it, so we do not start */
	ERR_NOTFOUND,
	ERR_CONFLICT,
	ERR_SYSTEM,
	ERR_BUG, /* a wall did not hold when we tried it */
	ERR_KIND_COUNT_
};

struct err {
	enum err_kind kind;
	int num;
	char msg[488];
};

#define ERR_INIT ((struct err){ .kind = ERR_NONE })

/* The machine's word for a kind, as in the "error" field of --json. */
const char *err_kind_name(enum err_kind kind);

/* 2 for what the caller got wrong, 125 for what is ours. */
int err_exit_code(const struct err *e);

void err_put_(struct err *e, enum err_kind kind, int num, const char *fmt, ...) PRINTF(4, 5);
void err_put_sys_(struct err *e, int num, const char *fmt, ...) PRINTF(3, 4);
void err_prefix_(struct err *e, const char *fmt, ...) PRINTF(2, 3);

/* Macros, so that both readers and -fanalyzer see that the result is negative. */
#define err_set(e, kind, num, ...)                                                                 \
	({                                                                                         \
		err_put_((e), (kind), (num), __VA_ARGS__);                                         \
		-(num);                                                                            \
	})

/* Takes errno: "open 'x': No such file or directory". */
#define err_sys(e, ...)                                                                            \
	({                                                                                         \
		int err_n_ = errno > 0 ? errno : EIO;                                              \
		err_put_sys_((e), err_n_, __VA_ARGS__);                                            \
		-err_n_;                                                                           \
	})

/* Adds context in front and keeps r. */
#define err_wrap(e, r, ...)                                                                        \
	({                                                                                         \
		err_prefix_((e), __VA_ARGS__);                                                     \
		(r);                                                                               \
	})

#endif
