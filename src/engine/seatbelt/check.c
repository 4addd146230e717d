/* SPDX-License-Identifier: Apache-2.0 */
/* engine/seatbelt/check.c - does a text say what a profile of ours may say?
 *
 * sandbox-exec is not here to ask, so this is the grammar our profiles keep to, by name:
 *
 *     profile   (version 1) (deny default) rule*                  comments between them
 *     rule      (allow|deny OPERATION+ FILTER*)
 *     FILTER    (literal|subpath|global-name STRING) | (regex #STRING) | (target others|self|same-sandbox)
 *
 * A word that is not in the tables is refused: a slip of the pen would be an error at the start, on a machine that we do
 * not have. And no rule may allow everything.
 */
#include "engine/seatbelt/seatbelt.h"

static const char *const operations[] = {
	"appleevent-send", "file-ioctl",         "file-read*",
	"file-read-data",  "file-read-metadata", "file-write*",
	"file-write-data", "ipc-posix-sem",      "file-write-unlink",
	"mach-lookup",     "network*",           "process-exec",
	"process-fork",    "process-info*",      "pseudo-tty",
	"signal",          "sysctl-read",        NULL,
};
static const char *const path_filters[] = { "literal", "subpath", "global-name", NULL };
static const char *const targets[] = { "others", "self", "same-sandbox", NULL };

struct cursor {
	const char *p;
	char word[64];
};

static void skip(struct cursor *c)
{
	for (;;) {
		c->p += strspn(c->p, " \n");
		if (*c->p != ';')
			return;
		c->p += strcspn(c->p, "\n");
	}
}

static bool take_char(struct cursor *c, char want)
{
	skip(c);
	if (*c->p != want)
		return false;
	c->p++;
	return true;
}

/* Into c->word; "" when there is none. */
static const char *take_word(struct cursor *c)
{
	size_t n;

	skip(c);
	n = strspn(c->p, "abcdefghijklmnopqrstuvwxyz0123456789-*");
	if (n >= sizeof(c->word))
		n = 0;
	memcpy(c->word, c->p, n);
	c->word[n] = '\0';
	c->p += n;
	return c->word;
}

static bool is_one_of(const char *word, const char *const *v)
{
	for (; *v; v++)
		if (str_eq(*v, word))
			return true;
	return false;
}

static bool take_string(struct cursor *c)
{
	if (!take_char(c, '"'))
		return false;
	for (; *c->p != '"'; c->p++) {
		if (*c->p == '\\' && (c->p[1] == '"' || c->p[1] == '\\'))
			c->p++;
		else if (*c->p == '\\' || (unsigned char)*c->p < ' ')
			return false; /* the text's end, too */
	}
	c->p++;
	return true;
}

/* Behind its opening bracket. */
static bool take_filter(struct cursor *c)
{
	const char *word = take_word(c);
	bool is_good;

	if (is_one_of(word, path_filters))
		is_good = take_string(c);
	else if (str_eq(word, "regex"))
		is_good = take_char(c, '#') && *c->p == '"' && take_string(c);
	else if (str_eq(word, "target"))
		is_good = is_one_of(take_word(c), targets);
	else
		is_good = false;
	return is_good && take_char(c, ')');
}

static bool take_rule(struct cursor *c)
{
	size_t n = 0;

	if (!take_char(c, '('))
		return false;
	(void)take_word(c);
	if (!str_eq(c->word, "allow") && !str_eq(c->word, "deny"))
		return false;
	for (; take_word(c)[0]; n++)
		if (!is_one_of(c->word, operations))
			return false;
	while (take_char(c, '('))
		if (!take_filter(c))
			return false;
	return n > 0 && take_char(c, ')');
}

bool seatbelt_is_profile(const char *text)
{
	static const char head[] = "(version 1)\n(deny default)\n";
	struct cursor c = { .p = text + strlen(head) };

	if (!str_starts(text, head))
		return false;
	for (skip(&c); *c.p; skip(&c))
		if (!take_rule(&c))
			return false;
	return true;
}
