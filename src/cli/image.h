/* SPDX-License-Identifier: Apache-2.0 */
/* cli/image.h - what save, load and template share: a place for half-made things, and vitrine-image behind walls */
#ifndef VITRINE_CLI_IMAGE_H
#define VITRINE_CLI_IMAGE_H

#include "core/facts.h"
#include "core/workshop.h"

/* `STATE/images`, locked: what was left half-made there by somebody who was killed is gone. */
struct bench {
	char *dir;  /* STATE/images */
	char *part; /* an empty directory in it, removed by bench_close() unless it was moved away */
	int lock;
	const char *state_dir;
	pid_t watcher; /* a child that cleans up when we are killed; 0: none */
	int watched;   /* its end is how the child notices */
};
#define BENCH_NONE ((struct bench){ .lock = FD_NONE, .watched = FD_NONE })
/* Gives it to the root of its own ids, so that they can write in it. */
int bench_give(const struct bench *b, struct err *e);
int bench_open(struct bench *b, const char *state_dir, struct err *e);
/* A second empty directory, under the lock of the first. */
int bench_more(const struct bench *b, struct bench *ret, struct err *e);
void bench_close(struct bench *b);
/* A half-made file outside the state directory that is to go when we are killed; "": it has its name now. */
void bench_file(const struct bench *b, const char *path);

/* ---- image_left.c ---- */

/* How many half-made things killed commands left, and how many bytes they take; none while a command works there.
 * is_to_go: they are removed. */
size_t bench_left(const char *state_dir, bool is_to_go, uint64_t *ret_bytes);
/* Under the lock: removes what is half-made. */
void bench_clean(const char *state_dir, const char *dir);
void bench_watch(struct bench *b);
void bench_unwatch(struct bench *b);

/* Runs vitrine-image with these words; its program is one of the views. stdout goes to `out` (FD_NONE: nowhere). */
struct image_job {
	const char *state_dir;
	const char *views[WORKSHOP_VIEWS_MAX];
	size_t n_views;
	const char *words[WORKSHOP_VIEWS_MAX + 32];
	size_t n_words;
	char *owned[2 * WORKSHOP_VIEWS_MAX]; /* texts that go with it */
	size_t n_owned;
	bool is_as_root;
};
void image_view(struct image_job *j, char *take_text);
/* The same for a path that may hold a ':', as names of templates and images do: shown read-only at `inside`. */
int image_view_path(struct image_job *j, const struct bench *b, const char *path,
		    const char *inside, struct err *e);
void image_word(struct image_job *j, const char *word);
void image_own_word(struct image_job *j, char *take_word);
int image_run(struct image_job *j, int out, struct err *e);
void image_job_done(struct image_job *j);

/* Letters, digits, '.', '_', '-' and ':', at most 128, a letter or digit first. */
bool image_is_tag(const char *tag);

/* Did `save` keep something under this tag? */
bool image_is_saved(const char *state_dir, const char *tag);
struct saved {
	bool has_system; /* a template of the tag's name */
	bool is_review;  /* changes wait */
};
/* What `save` kept under the tag becomes the home, and what waits for review in `workspace`, of a new sandbox of that name;
 * its system, where it has one, becomes the template of the tag's name. The definition is still to be made. */
int saved_begin(const struct host *h, const char *tag, const char *workspace, const char *name,
		struct saved *ret, struct err *e);
/* The image of this name of docker or podman on this host becomes a template of that name. */
int template_take_local(const struct host *h, const char *image, struct err *e);

/* STATE/templates/NAME, where it exists; '/' of an image's name is '-' there. */
int template_find(const char *state_dir, const char *name, char **ret_root, struct err *e);
/* What a template of this image is called. */
char *template_name(const char *image);
/* Which one it is, also among those that had its name before: for what is written above it. */
char *template_mark(const char *root, bool is_rooted);
/* Does its root have ids of its own? */
int template_is_rooted(const char *root, uid_t own, bool *ret, struct err *e);
/* The one with this mark, whatever its name. */
int template_of_mark(const char *state_dir, uid_t own, const char *mark, char **ret_root,
		     struct err *e);

#endif
