/* SPDX-License-Identifier: Apache-2.0 */
/* view/known.h - the last content known to be the host's, and what is done when the host replaces a masked file
 *
 * A mask goes with the file that it lay on. From the host's rename to the new mask the inside can write to the new
 * file, and through a descriptor that it took before (of the file that git was still writing) even afterwards. Nothing
 * in the kernel says who wrote a byte. What is known for certain is what was read under the mask.
 *
 * So what lies under the name after a replacement is never trusted, and never left there as that file:
 *   the same bytes as before     they stay, in a new file that nobody inside ever had open
 *   a git config                 stays, in a new file, less entries that could run and were not there before; where one
 *                                that was there is missing: as all others
 *   all others                   go to the quarantine, and the content from before is put back, in a new file
 * A name that the host removed is not made again.
 */
#ifndef VITRINE_VIEW_KNOWN_H
#define VITRINE_VIEW_KNOWN_H

#include "base/buf.h"
#include "view/gitcfg.h"
#include "view/view.h"

#define KNOWN_BYTES_MAX                                                                            \
	(16 * MIB) /* a larger directory is taken and not put back; so is a file over 256 KiB */
#define KNOWN_RULE "replaced while the sandbox could write to it; as it was before is put back"
#define KNOWN_RULE_CUT "replaced while the sandbox could write to it; all but what can run stays"
#define KNOWN_RULE_LOST                                                                            \
	"replaced while the sandbox could write to it; what was before is unknown or too large"

enum known_act { KNOWN_STAYS, KNOWN_PUT_BACK };

/* Pure. last is NULL when the content from before is not known. Returns KNOWN_STAYS when `now` may stay: as bytes. */
struct known_text {
	const char *p;
	size_t n;
};
enum known_act known_judge(bool is_config, const struct known_text *last,
			   const struct known_text *now);
/* Is a change from one config to the other one that can make nothing else run? */
bool known_is_calm(const struct known_text *last, const struct known_text *now);
/* The same; core.worktree may also come, go and change where both values are accepted by is_beneath. */
bool known_is_calm_near(const struct known_text *last, const struct known_text *now,
			gitcfg_path_fn is_beneath, void *arg);

/* Why not: the first entry that could run and comes, goes or changes, by name ("core.pager"); to be freed. NULL: it cannot
 * be told. */
char *known_difference(const struct known_text *last, const struct known_text *now,
		       gitcfg_path_fn is_beneath, void *arg);

/* Leaves out of `now` what could run and was not there before. False: what is left would still make a difference. */
bool known_cut(const struct known_text *last, const struct known_text *now, struct buf *ret);

struct known;

/* ws_fd and s are borrowed. Nothing is opened yet. */
struct known *known_new(int ws_fd, const struct scan *s);
void known_free(struct known *k);

/* Opens up to `most` more of the masked files. True: there are more. */
bool known_step(struct known *k, size_t most);

/* Readable when the host has written to a masked file in place; then known_read(). */
int known_fd(const struct known *k);
void known_read(struct known *k);

/* Is the file at rel the very one that was last seen or put there, untouched since? Then an event about it was ours. */
bool known_is_own(const struct known *k, const char *rel);

/* What lies at rel now, and at every masked name below, is the host's: nothing inside could have written there, because
 * the name is served (dir/) and not masked. True: something is there. */
bool known_renew(struct known *k, const char *rel);

/* The host removed rel, and what is below it: whatever appears there is new, and not for us to judge. */
void known_forget(struct known *k, const char *rel);

/* Looks at rel and every masked name below ("": at all), puts right what was replaced and adds what it took to *out.
 * The number of names where a file was put, to be masked and then verified; or -errno, with the rest done. */
int known_settle(struct known *k, const char *rel, struct sweep *out, struct err *e);

/* After the masks are on again: is what was put there, unchanged, and does nobody have it open for writing? */
enum known_state {
	KNOWN_WHOLE,
	KNOWN_AGAIN,  /* another file has the name: it was replaced once more */
	KNOWN_BROKEN, /* somebody inside got at it */
};
enum known_state known_verify(struct known *k);

/* ---- for the case that the keeper dies ---- */

/* Writes down what is known of protected names, if that changed, at `path`; locked until known_free(), so that the record
 * of who lives is not taken for one of the dead. 0 or -errno. */
int known_record(struct known *k, const char *path, const char *workspace);
void known_unrecord(struct known *k, const char *path);

/* Every record in `dir` of somebody who died in this workspace: what was replaced since, by whomever, is put right and
 * added to *out. The number of such records, or -errno. */
int known_recover(const char *dir, const char *workspace, int ws_fd, struct sweep *out,
		  struct err *e);

#endif
