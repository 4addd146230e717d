/* SPDX-License-Identifier: Apache-2.0 */
/* store/chain.c - see chain.h */
#include "store/chain.h"

#include "event/event.h"

void chain_init(struct chain *c, const char *run, int64_t session)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "vitrine events 1 %.64s %lld", run,
			 (long long)session);

	c->n = 0;
	sha256(text, (size_t)n, c->head);
}

/* Almost every event is short, and clearing 64 KiB of stack for each would cost more than the hash. */
#define SHORT_BYTES ((size_t)1024)

void chain_add(struct chain *c, const void *frame, size_t n)
{
	uint8_t small[SHORT_BYTES];
	size_t all = SHA256_BYTES + 8 + n;
	_free_ uint8_t *large = all > sizeof(small) ? mem_new(all, 1) : NULL;
	uint8_t *text = large ? large : small;

	bug_on(n > EVENT_MAX_BYTES);
	c->n++;
	memcpy(text, c->head, SHA256_BYTES);
	for (size_t i = 0; i < 8; i++)
		text[SHA256_BYTES + i] = (uint8_t)(c->n >> 8 * i);
	memcpy(text + SHA256_BYTES + 8, frame, n);
	sha256(text, all, c->head);
}

void chain_hex(const uint8_t hash[static SHA256_BYTES], char ret[static SHA256_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_BYTES; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[SHA256_HEX_BYTES - 1] = '\0';
}
