/* SPDX-License-Identifier: Apache-2.0 */
/* base/sha256.c - see sha256.h; names and steps follow FIPS 180-4, section 6.2
 *
 * Whole blocks are taken from the input where it lies; the rest, the padding and the length in bits make one or two
 * last blocks. Where the processor has instructions for it they are used, ten times as fast; but asking it costs a
 * virtual machine more than hashing a short text does, so only long inputs ask.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/sha256.h"

#define LONG_INPUT ((size_t)4096)

#define BLOCK ((size_t)64)

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void schedule(const uint8_t *block, uint32_t w[static 64])
{
	for (size_t t = 0; t < 16; t++)
		w[t] = load32(block + 4 * t);
	for (unsigned t = 16; t < 64; t++) {
		uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;

		w[t] = w[t - 16] + s0 + w[t - 7] + s1;
	}
}

static void compress(uint32_t h[static 8], const uint8_t *block)
{
	uint32_t w[64], v[8];

	schedule(block, w);
	memcpy(v, h, sizeof(v));
	for (unsigned t = 0; t < 64; t++) {
		uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
		uint32_t ch = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + ch + k[t] + w[t];
		uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
		uint32_t maj = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + s0 + maj;
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] += v[i];
}

static void compress_all(uint32_t h[static 8], const uint8_t *p, size_t blocks)
{
	for (size_t i = 0; i < blocks; i++)
		compress(h, p + i * BLOCK);
}

#if defined(__x86_64__)
static int knows_instructions; /* 0: not asked yet */

static bool has_instructions(bool may_ask)
{
	unsigned a, b, c, d;

	if (knows_instructions == 0 && may_ask) {
		knows_instructions = -1;
		if (__get_cpuid_max(0, NULL) < 7)
			return false;
		__cpuid(1, a, b, c, d);
		if (!(c & bit_SSE4_1) || !(c & bit_SSSE3))
			return false;
		__cpuid_count(7, 0, a, b, c, d);
		if (b & bit_SHA)
			knows_instructions = 1;
	}
	return knows_instructions > 0;
}

/* The instructions keep the eight words in two registers, (a b e f) and (c d g h), highest lane first; each does two
 * rounds, so four rounds take one word of the schedule, kept as a ring of four registers. */
__attribute__((target("sha,sse4.1,ssse3"))) static void
compress_fast(uint32_t h[static 8], const uint8_t *p, size_t blocks)
{
	const __m128i flip = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i x = _mm_set_epi32((int)h[0], (int)h[1], (int)h[4], (int)h[5]);
	__m128i y = _mm_set_epi32((int)h[2], (int)h[3], (int)h[6], (int)h[7]);

	for (; blocks > 0; blocks--, p += BLOCK) {
		__m128i x0 = x, y0 = y, w[4];

#pragma GCC unroll 16
		for (size_t i = 0; i < 16; i++) {
			__m128i m;

			if (i < 4) {
				m = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
				w[i] = _mm_shuffle_epi8(m, flip);
			} else {
				__m128i last = w[(i + 3) % 4];

				m = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
				m = _mm_add_epi32(m, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
				w[i % 4] = _mm_sha256msg2_epu32(m, last);
			}
			m = _mm_loadu_si128((const __m128i *)(const void *)(k + 4 * (size_t)i));
			m = _mm_add_epi32(m, w[i % 4]);
			y = _mm_sha256rnds2_epu32(y, x, m);
			x = _mm_sha256rnds2_epu32(x, y, _mm_shuffle_epi32(m, 0x0e));
		}
		x = _mm_add_epi32(x, x0);
		y = _mm_add_epi32(y, y0);
	}
	h[0] = (uint32_t)_mm_extract_epi32(x, 3);
	h[1] = (uint32_t)_mm_extract_epi32(x, 2);
	h[4] = (uint32_t)_mm_extract_epi32(x, 1);
	h[5] = (uint32_t)_mm_extract_epi32(x, 0);
	h[2] = (uint32_t)_mm_extract_epi32(y, 3);
	h[3] = (uint32_t)_mm_extract_epi32(y, 2);
	h[6] = (uint32_t)_mm_extract_epi32(y, 1);
	h[7] = (uint32_t)_mm_extract_epi32(y, 0);
}
#else
static bool has_instructions(bool may_ask)
{
	return false;
}

static void compress_fast(uint32_t h[static 8], const uint8_t *p, size_t blocks)
{
	compress_all(h, p, blocks);
}
#endif

typedef void compress_fn(uint32_t h[static 8], const uint8_t *p, size_t blocks);

static void digest(const void *p, size_t n, compress_fn *fn, uint8_t ret[static SHA256_BYTES])
{
	uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	uint8_t last[2 * BLOCK] = { 0 };
	size_t rest = n % BLOCK, last_n = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	const uint8_t *at = p;

	fn(h, at, n / BLOCK);
	if (rest > 0)
		memcpy(last, at + n - rest, rest);
	last[rest] = 0x80;
	store32(last + last_n - 8, (uint32_t)((uint64_t)n >> 29));
	store32(last + last_n - 4, (uint32_t)((uint64_t)n << 3));
	fn(h, last, last_n / BLOCK); /* of a short input that is all there is */
	for (size_t i = 0; i < 8; i++)
		store32(ret + 4 * i, h[i]);
}

void sha256_plain(const void *p, size_t n, uint8_t ret[static SHA256_BYTES])
{
	digest(p, n, compress_all, ret);
}

void sha256(const void *p, size_t n, uint8_t ret[static SHA256_BYTES])
{
	digest(p, n, has_instructions(n >= LONG_INPUT) ? compress_fast : compress_all, ret);
}

void sha256_expect_much(void)
{
	(void)has_instructions(true);
}

void sha256_hex(const void *p, size_t n, char ret[static SHA256_HEX_BYTES])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t sum[SHA256_BYTES];

	sha256(p, n, sum);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		ret[2 * i] = hex[sum[i] >> 4];
		ret[2 * i + 1] = hex[sum[i] & 15];
	}
	ret[SHA256_HEX_BYTES - 1] = '\0';
}
