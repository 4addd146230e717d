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

bool keys_feed(struct keys *k, const char *in, size_t n, char *out, size_t *ret_n)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (k->n > 0 && (uint8_t)in[i] == k->seq[k->at]) {
			if (++k->at == k->n) {
				k->at = 0;
				*ret_n = m;
				return true;
			}
			continue;
		}
		/* Not the sequence after all: what was held back was meant for the command. */
		memcpy(out + m, k->seq, k->at);
		m += k->at;
		k->at = k->n > 0 && (uint8_t)in[i] == k->seq[0];
		if (k->at == 0)
			out[m++] = in[i];
		else if (k->n == 1) {
			*ret_n = m;
			return true;
		}
	}
	*ret_n = m;
	return false;
}
