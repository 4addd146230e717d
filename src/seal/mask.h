/* SPDX-License-Identifier: Apache-2.0 */
/* seal/mask.h - replace words in a stream by others of the same length, across any cut
 *
 * Lengths stay, so a Content-Length or a frame around the bytes stays true. Bytes are held back only while the end
 * of what came may be the start of a word, and then only from its fourth byte on: an event that happens to end in an
 * 's' is not delayed. If the rest of the word then comes, the first three letters are out ("sk-") and the rest is
 * replaced.
 *
 * The words are made once and shared by every stream that is looked through for them.
 */
#ifndef VITRINE_SEAL_MASK_H
#define VITRINE_SEAL_MASK_H

#include "base/str.h"

struct words;

struct words *words_new(void);
struct words *words_ref(struct words *w);
void words_unref(struct words *w); /* wipes */
bool words_is_empty(const struct words *w);

/* word is at least MASK_SHORTEST bytes; a shorter one would hit by chance and is ignored (false). by is cut or
 * filled with '*' to the length of word. One that is there already stays. Only while no mask uses them. */
#define MASK_SHORTEST 8
bool words_add(struct words *w, struct str word, struct str by);

struct mask;

struct mask *mask_new(struct words *take_words); /* takes the reference */
void mask_free(struct mask *m);                  /* wipes */
bool mask_is_empty(const struct mask *m);

/* Other words from here on; a word that is in both and has begun goes on. */
void mask_learn(struct mask *m, struct words *take_words);

/* n more bytes; *ret is what may go on: in p or in the mask, valid until the next call and while p stands. */
void mask_feed(struct mask *m, const char *p, size_t n, struct str *ret);
/* The end: what was still held back. What may be the beginning of a word is replaced as well: an answer that breaks off, or
 * a message that ends, inside a word shows no more of it than one that holds all of it. */
void mask_end(struct mask *m, struct str *ret);

/* How many bytes are held back. */
size_t mask_held(const struct mask *m);

/* Does a word stand in the text, or does the text end inside one? */
bool mask_finds(const struct mask *m, struct str text);
/* Whole text in place, with a word in which it ends: true when something was replaced. */
bool mask_text(const struct mask *m, char *p, size_t n);

#endif
