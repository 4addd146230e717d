/* SPDX-License-Identifier: Apache-2.0 */
/* core/review.h - changes that wait in layers: looked at, taken over, thrown away
 *
 * `sandboxes/NAME/ws.base` is what the host's workspace was like when the sandbox began to build on it. A file that
 * is another one now was edited on the host meanwhile: taking over the sandbox's version would lose that edit.
 */
#ifndef VITRINE_CORE_REVIEW_H
#define VITRINE_CORE_REVIEW_H

#include "core/layers.h"
#include "core/shown.h"
#include "core/takeover.h"
#include "policy/policy.h"
#include "tree/show.h"

#define REVIEW_BASE_FILE "ws.base"

struct review {
	struct layers layers;
	struct overlay overlay;
	int ws_fd; /* borrowed */
	const struct policy *policy;
	struct tree_index base;
	bool has_base;
};

/* is_empty: nothing was ever written. */
int review_open(struct review *r, const char *state_dir, const char *name, int ws_fd,
		const struct policy *p, struct err *e);
void review_close(struct review *r);

/* Before a start: remembers the host's files, but for those that a layer has already built on. */
int review_remember(struct review *r, struct err *e);

/* What waits, as it was at one moment, and what may come out of it. Nothing that is written afterwards is taken over:
 * every file is held against the hash it has here. Must not move. */
struct waiting {
	struct overlay_diff d;
	struct takeover t;
};

/* `paths`: what is meant, borrowed; NULL: everything. */
int review_look(const struct review *r, char *const *paths, bool with_renames, struct waiting *ret,
		struct err *e);
void review_look_done(struct waiting *w);

/* The changes that `diff` showed, beside the sandbox's definition. is_all: they replace those of before. */
void review_shown(const struct review *r, struct shown *ret);
int review_remember_shown(const struct review *r, const struct shown *s, bool is_all,
			  struct err *e);

enum refusal {
	REFUSED_NOT,
	REFUSED_CONFLICT,  /* edited on the host since */
	REFUSED_PROTECTED, /* only when named itself */
	REFUSED_LINK,
	REFUSED_SPECIAL,
	REFUSED_CLOSED, /* nobody knows what is in it */
	REFUSED_COUNT_
};

struct apply_wish {
	char *const *paths; /* NULL: everything */
	bool is_forced;     /* overwrite edits made on the host */
	bool with_links, with_special;
	const char *shown; /* only if what waits has this token; NULL: what was shown last */
	bool is_unseen;    /* also what was never shown */
	bool is_dry;       /* of `discard`: only named */
	void (*say)(void *arg, const char *path, const char *why);
	void *arg;
};

struct applied {
	struct restored sum;
	uint64_t refused;
};

/* `why`: what takeover_why() says of it. */
enum refusal review_refuses(const struct review *r, const struct apply_wish *w,
			    const struct change *c, const char *why);
/* Nothing differs from the host any more. */
bool review_is_done(struct review *r);
int review_apply(struct review *r, const struct apply_wish *w, struct waiting *waiting,
		 struct applied *ret, struct err *e);

#endif
