/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keys.c - see keys.h */
#include "keep/keys.h"

void keys_set(struct keys *k, const uint8_t seq[KEEP_KEYS])
{
	*k = (struct keys){ 0 };
	memcpy(k->seq, seq, KEEP_KEYS);
	while (k->n < KEEP_KEYS && k->seq[k->n])
		k->n++;
}

static int one_key(const char *word, size_t n)
{
	int c = n > 0 ? (unsigned char)word[n - 1] : 0;

	if (n == 1 && c > ' ' && c < 0x7f)
		return c;
	if (n == 6 && str_starts(word, "ctrl-")) {
		if (c >= 'a' && c <= 'z')
			return c - 'a' + 1;
		if (c >= '[' && c <= '_')
			return c - '@';
	}
	return 0;
}

int keys_parse(const char *text, uint8_t ret[KEEP_KEYS], struct err *e)
{
	uint8_t seq[KEEP_KEYS] = { 0 };
	size_t n = 0;

	if (str_eq(text, "none")) {
		memcpy(ret, seq, KEEP_KEYS);
		return 0;
	}
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int key = n < KEEP_KEYS ? one_key(p, len) : 0;

		if (key == 0)
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%.64s': expected up to %d keys like 'ctrl-p,ctrl-q', or "
				       "'none'",
				       text, KEEP_KEYS);
		seq[n++] = (uint8_t)key;
		p += len;
		if (*p == '\0')
			break;
	}
	memcpy(ret, seq, KEEP_KEYS);
	return 0;
}

/* ---- what is typed ---- */

#define TOKEN_MAX 32

/* One key, however a terminal writes it. */
struct typed {
	size_t n;       /* bytes */
	int key;        /* as in a sequence; 0: none of those */
	bool is_silent; /* a key was let go, or a modifier alone: says nothing about the sequence */
};

/* "112:80;5:1u" in its fields: 3, of 2 numbers each. */
static bool read_fields(const char *p, size_t n, unsigned v[3][2])
{
	size_t field = 0, part = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] >= '0' && p[i] <= '9') {
			if (part < 2 && v[field][part] < 100000)
				v[field][part] = v[field][part] * 10 + (unsigned)(p[i] - '0');
		} else if (p[i] == ':') {
			part++;
		} else if (p[i] == ';' && field + 1 < 3) {
			field++;
			part = 0;
		} else {
			return false;
		}
	}
	return true;
}

enum { SHIFT = 1, CTRL = 4, CAPS_LOCK = 64, NUM_LOCK = 128 };

static int key_of(unsigned code, unsigned shifted, unsigned modifiers)
{
	unsigned m = modifiers & ~(unsigned)(CAPS_LOCK | NUM_LOCK);
	bool is_letter = code >= 'a' && code <= 'z';

	if (code <= ' ' || code >= 0x7f)
		return 0;
	if (m == 0)
		return (int)code;
	if (m == SHIFT)
		return shifted > ' ' && shifted < 0x7f ? (int)shifted : 0;
	if (m == CTRL && is_letter)
		return (int)(code - 'a' + 1);
	if ((m == CTRL || m == (CTRL | SHIFT)) && code >= '[' && code <= '_')
		return (int)(code - '@');
	if (m == (CTRL | SHIFT) && shifted >= '[' && shifted <= '_')
		return (int)(shifted - '@');
	return 0;
}

/* Kitty's "CSI code:shifted ; modifiers:event u", and xterm's "CSI 27 ; modifiers ; code ~". Only what is there as a whole: an
 * Escape key must not wait for the next one. */
static struct typed typed_of(const char *p, size_t n)
{
	struct typed t = { .n = 1, .key = (unsigned char)p[0] };
	unsigned v[3][2] = { { 0 } }, modifiers;
	size_t len = 2;

	if (n < 4 || p[0] != 0x1b || p[1] != '[')
		return t;
	while (len < n && len < TOKEN_MAX && p[len] >= '0' && p[len] <= ';')
		len++;
	if (len == n || len == TOKEN_MAX || (p[len] != 'u' && p[len] != '~') ||
	    !read_fields(p + 2, len - 2, v))
		return t;
	if (p[len] == '~' && v[0][0] != 27)
		return t;
	t.n = len + 1;
	modifiers = v[1][0] ? v[1][0] - 1 : 0;
	if (p[len] == '~') {
		t.key = key_of(v[2][0], 0, modifiers);
		return t;
	}
	t.is_silent = v[1][1] == 3 || (v[0][0] >= 57358 && v[0][0] <= 57360) ||
		      (v[0][0] >= 57441 && v[0][0] <= 57454);
	t.key = t.is_silent ? 0 : key_of(v[0][0], v[0][1], modifiers);
	return t;
}

static bool hold(struct keys *k, const char *p, size_t n)
{
	if (k->n_held + n > sizeof(k->held))
		return false;
	memcpy(k->held + k->n_held, p, n);
	k->n_held += n;
	return true;
}

bool keys_feed(struct keys *k, const char *in, size_t n, char *out, size_t *ret_n)
{
	struct typed t;
	size_t m = 0;

	for (size_t i = 0; i < n; i += t.n) {
		bool is_next;

		t = typed_of(in + i, n - i);
		if (k->at > 0 && t.is_silent && hold(k, in + i, t.n))
			continue;
		is_next = k->n > 0 && t.key == k->seq[k->at];
		if (!is_next || !hold(k, in + i, t.n)) {
			/* Not the sequence after all: what was held back was meant for the command. */
			memcpy(out + m, k->held, k->n_held);
			m += k->n_held;
			k->at = k->n_held = 0;
			is_next = k->n > 0 && t.key == k->seq[0] && hold(k, in + i, t.n);
		}
		if (!is_next) {
			memcpy(out + m, in + i, t.n);
			m += t.n;
		} else if (++k->at == k->n) {
			k->at = k->n_held = 0;
			*ret_n = m;
			return true;
		}
	}
	*ret_n = m;
	return false;
}

bool keys_has(const char *p, size_t n, uint8_t key)
{
	struct typed t;

	for (size_t i = 0; i < n; i += t.n) {
		t = typed_of(p + i, n - i);
		if (!t.is_silent && t.key == key)
			return true;
	}
	return false;
}
