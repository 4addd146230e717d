/* SPDX-License-Identifier: Apache-2.0 */
/* policy/addr.c - see addr.h
 *
 * No libc function reads an address here: inet_aton and getaddrinfo accept octal, hexadecimal, short and packed forms
 * ("127.1", "0x7f.1", "2130706433"), each of which is a way around a rule. A name that looks like one of those forms
 * is not a name either and is refused.
 */
#include "policy/addr.h"

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool addr_is_v4(const struct addr *a)
{
	return memcmp(a->b, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

struct addr addr_from_v4(const uint8_t v4[4])
{
	struct addr a;

	memcpy(a.b, mapped_prefix, sizeof(mapped_prefix));
	memcpy(a.b + 12, v4, 4);
	return a;
}

bool addr_in(const struct addr *a, const struct addr *net, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a->b, net->b, whole) != 0)
		return false;
	return rest == 0 || ((a->b[whole] ^ net->b[whole]) >> (8 - rest)) == 0;
}

/* ---- text ---- */

/* The longest run of zero groups, for "::"; a run of one is not shortened (RFC 5952). */
static void zero_run(const uint16_t g[8], int *ret_at, int *ret_n)
{
	int best = -1, best_n = 1;

	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && g[i + n] == 0)
			n++;
		if (n > best_n) {
			best = i;
			best_n = n;
		}
		i += n;
	}
	*ret_at = best;
	*ret_n = best_n;
}

void addr_text(const struct addr *a, char ret[ADDR_TEXT])
{
	uint16_t g[8];
	int run, run_n;
	size_t n = 0;

	if (addr_is_v4(a)) {
		(void)snprintf(ret, ADDR_TEXT, "%u.%u.%u.%u", a->b[12], a->b[13], a->b[14],
			       a->b[15]);
		return;
	}
	for (size_t i = 0; i < 8; i++)
		g[i] = (uint16_t)(a->b[2 * i] << 8 | a->b[2 * i + 1]);
	zero_run(g, &run, &run_n);
	for (int i = 0; i < 8; i++) {
		if (i == run) {
			n += (size_t)snprintf(ret + n, ADDR_TEXT - n, "::");
			i += run_n - 1;
			continue;
		}
		n += (size_t)snprintf(ret + n, ADDR_TEXT - n, "%s%x",
				      i > 0 && i != run + run_n ? ":" : "", g[i]);
	}
}

static int parse_v4(const char *s, size_t n, uint8_t ret[4])
{
	size_t at = 0;

	for (int i = 0; i < 4; i++) {
		unsigned v = 0;
		size_t from = at;

		while (at < n && s[at] >= '0' && s[at] <= '9' && at - from < 3)
			v = v * 10 + (unsigned)(s[at++] - '0');
		if (at == from || v > 255 || (s[from] == '0' && at - from > 1))
			return -EINVAL;
		ret[i] = (uint8_t)v;
		if (i < 3 && (at == n || s[at++] != '.'))
			return -EINVAL;
	}
	return at == n ? 0 : -EINVAL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One group of up to four hex digits; the number of bytes read, 0 when there is none. */
static size_t parse_group(const char *s, size_t n, uint16_t *ret)
{
	size_t at = 0;
	unsigned v = 0;

	while (at < n && at < 4 && hex_digit(s[at]) >= 0)
		v = v << 4 | (unsigned)hex_digit(s[at++]);
	*ret = (uint16_t)v;
	return at;
}

struct v6 {
	uint8_t b[16];
	size_t n;
	size_t gap; /* where "::" stands; 17: nowhere */
};

static int parse_v6_groups(const char *s, size_t n, struct v6 *v)
{
	size_t at = 0;

	while (at < n) {
		uint16_t group;
		size_t len;

		if (n - at >= 2 && s[at] == ':' && s[at + 1] == ':') {
			if (v->gap != 17)
				return -EINVAL;
			v->gap = v->n;
			at += 2;
			continue;
		}
		if (v->n > 0 && v->n != v->gap && s[at++] != ':')
			return -EINVAL;
		/* A dotted quad may stand for the last two groups. */
		if (v->n <= 12 && parse_v4(s + at, n - at, v->b + v->n) == 0) {
			v->n += 4;
			return 0;
		}
		len = parse_group(s + at, n - at, &group);
		if (len == 0 || v->n > 14)
			return -EINVAL;
		at += len;
		v->b[v->n++] = (uint8_t)(group >> 8);
		v->b[v->n++] = (uint8_t)group;
	}
	return 0;
}

static int parse_v6(const char *s, size_t n, struct addr *ret)
{
	struct v6 v = { .gap = 17 };

	if (parse_v6_groups(s, n, &v) < 0 || (v.gap == 17) != (v.n == 16) || v.n > 16)
		return -EINVAL;
	*ret = (struct addr){ 0 };
	if (v.gap == 17) {
		memcpy(ret->b, v.b, 16);
		return 0;
	}
	memcpy(ret->b, v.b, v.gap);
	memcpy(ret->b + 16 - (v.n - v.gap), v.b + v.gap, v.n - v.gap);
	return 0;
}

int addr_parse(const char *s, size_t n, struct addr *ret)
{
	uint8_t v4[4];

	if (n == 0 || n >= ADDR_TEXT)
		return -EINVAL;
	if (memchr(s, ':', n))
		return parse_v6(s, n, ret);
	if (parse_v4(s, n, v4) < 0)
		return -EINVAL;
	*ret = addr_from_v4(v4);
	return 0;
}

/* ---- classes ---- */

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		{                                                                                  \
			[10] = 0xff, 0xff, a, b, c, d                                              \
		}                                                                                  \
	}
#define V6(...)                                                                                    \
	{                                                                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* The first that matches decides, so narrow ones come before what they lie in. From the IANA registries of special
 * purpose addresses. */
static const struct {
	struct addr net;
	unsigned bits;
	enum addr_class class;
} ranges[] = {
	{ V4(127, 0, 0, 0), 96 + 8, ADDR_LOOPBACK },
	{ V4(0, 0, 0, 0), 96 + 8, ADDR_LOOPBACK }, /* Linux takes 0.0.0.0 as "this host" */
	{ V4(169, 254, 0, 0), 96 + 16, ADDR_LINK_LOCAL },
	{ V4(10, 0, 0, 0), 96 + 8, ADDR_PRIVATE },
	{ V4(172, 16, 0, 0), 96 + 12, ADDR_PRIVATE },
	{ V4(192, 168, 0, 0), 96 + 16, ADDR_PRIVATE },
	{ V4(168, 63, 129, 16), 128,
	  ADDR_LINK_LOCAL }, /* a cloud's host agent, on a public number */
	{ V4(100, 64, 0, 0), 96 + 10, ADDR_SHARED },
	{ V4(192, 0, 0, 0), 96 + 24, ADDR_RESERVED },
	{ V4(192, 0, 2, 0), 96 + 24, ADDR_RESERVED },
	{ V4(192, 88, 99, 0), 96 + 24, ADDR_RESERVED },
	{ V4(198, 18, 0, 0), 96 + 15, ADDR_RESERVED },
	{ V4(198, 51, 100, 0), 96 + 24, ADDR_RESERVED },
	{ V4(203, 0, 113, 0), 96 + 24, ADDR_RESERVED },
	{ V4(224, 0, 0, 0), 96 + 4, ADDR_MULTICAST },
	{ V4(240, 0, 0, 0), 96 + 4, ADDR_RESERVED },
	{ V6([15] = 1), 128, ADDR_LOOPBACK },
	{ V6(0), 128, ADDR_LOOPBACK },
	{ V6(0xfe, 0x80), 10, ADDR_LINK_LOCAL },
	{ V6(0xfe, 0xc0), 10, ADDR_PRIVATE },
	{ V6(0xfc), 7, ADDR_PRIVATE },
	{ V6(0xff), 8, ADDR_MULTICAST },
	{ V6(0x20, 0x01, 0x0d, 0xb8), 32, ADDR_RESERVED },
	{ V6(0x3f, 0xff), 20, ADDR_RESERVED },
	{ V6(0x01), 64, ADDR_RESERVED },
	{ V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48, ADDR_PRIVATE },
};

/* Where an IPv6 address carries an IPv4 one. The classes of both count. */
static bool embedded(const struct addr *a, struct addr *ret)
{
	static const struct addr nat64 = V6(0x00, 0x64, 0xff, 0x9b);
	static const struct addr six_to_four = V6(0x20, 0x02);
	static const struct addr teredo = V6(0x20, 0x01, 0x00, 0x00);
	static const struct addr compatible = V6(0);
	uint8_t v4[4];

	if (addr_is_v4(a))
		return false;
	if (addr_in(a, &nat64, 96) || addr_in(a, &compatible, 96)) {
		memcpy(v4, a->b + 12, 4);
	} else if (addr_in(a, &six_to_four, 16)) {
		memcpy(v4, a->b + 2, 4);
	} else if (addr_in(a, &teredo, 32)) {
		for (size_t i = 0; i < 4; i++)
			v4[i] = (uint8_t)~a->b[12 + i];
	} else {
		return false;
	}
	*ret = addr_from_v4(v4);
	return true;
}

enum addr_class addr_classify(const struct addr *a, unsigned *ret_bits)
{
	struct addr inner;
	unsigned bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		if (!addr_in(a, &ranges[i].net, ranges[i].bits))
			continue;
		if (ret_bits)
			*ret_bits = ranges[i].bits;
		return ranges[i].class;
	}
	if (embedded(a, &inner)) {
		enum addr_class c = addr_classify(&inner, &bits);

		if (ret_bits)
			*ret_bits = 128; /* only a rule for this very address names it */
		return c;
	}
	if (ret_bits)
		*ret_bits = 0;
	return ADDR_PUBLIC;
}

const char *addr_class_name(enum addr_class c)
{
	static const char *const names[ADDR_CLASS_COUNT_] = {
		"public",
		"loopback",
		"link-local (cloud metadata)",
		"private",
		"shared (carrier NAT)",
		"multicast",
		"reserved",
	};

	bug_on(c >= ADDR_CLASS_COUNT_);
	return names[c];
}

/* ---- hosts ---- */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* "ends in a number": what browsers and libc would read as an address in some old spelling. */
static bool is_numeric(const char *label, size_t n)
{
	size_t digits = 0;

	if (n >= 2 && label[0] == '0' && label[1] == 'x')
		return true;
	while (digits < n && label[digits] >= '0' && label[digits] <= '9')
		digits++;
	return digits == n;
}

static int check_labels(const char *name, const char **ret_why)
{
	size_t from = 0, n = strlen(name);

	for (;;) {
		size_t len = strcspn(name + from, ".");

		if (len == 0 || len > 63) {
			*ret_why = len ? "a label longer than 63 bytes" : "an empty label";
			return -EINVAL;
		}
		if (name[from] == '-' || name[from + len - 1] == '-') {
			*ret_why = "a label that begins or ends with '-'";
			return -EINVAL;
		}
		if (from + len == n) {
			if (!is_numeric(name + from, len))
				return 0;
			*ret_why = "an address in a spelling that is not accepted (four decimal "
				   "numbers, or IPv6)";
			return -EINVAL;
		}
		from += len + 1;
	}
}

static int parse_name(const char *s, size_t n, struct host_id *ret, const char **ret_why)
{
	if (n > 0 && s[n - 1] == '.')
		n--;
	if (n == 0 || n > HOST_MAX) {
		*ret_why = n ? "a name longer than 253 bytes" : "an empty name";
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		char c = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] + 32) : s[i];

		if (!is_name_char(c) && c != '.') {
			*ret_why = (unsigned char)c >= 0x80 ? "a name with letters beyond ASCII "
							      "(write it as xn--...)"
							    : "a byte that no host name has";
			return -EINVAL;
		}
		ret->name[i] = c;
	}
	ret->name[n] = '\0';
	return check_labels(ret->name, ret_why);
}

int host_parse(const char *s, size_t n, struct host_id *ret, const char **ret_why)
{
	*ret = (struct host_id){ 0 };
	*ret_why = "";
	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
		if (memchr(s, ':', n) == NULL) {
			*ret_why = "brackets around what is not IPv6";
			return -EINVAL;
		}
	}
	if (addr_parse(s, n, &ret->addr) == 0) {
		ret->is_addr = true;
		addr_text(&ret->addr, ret->name);
		return 0;
	}
	if (n > 0 && memchr(s, ':', n)) {
		*ret_why = "not an IPv6 address";
		return -EINVAL;
	}
	return parse_name(s, n, ret, ret_why);
}

static int parse_port(const char *s, size_t n, uint16_t *ret)
{
	unsigned v = 0;

	if (n == 0 || n > 5 || s[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	if (v > 65535)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

int host_port_parse(const char *s, size_t n, uint16_t port, struct host_id *ret, uint16_t *ret_port,
		    const char **ret_why)
{
	size_t host = n;

	for (size_t i = n; i-- > 0 && s[i] != ']';)
		if (s[i] == ':') {
			host = i;
			break;
		}
	if (host < n && parse_port(s + host + 1, n - host - 1, &port) < 0) {
		*ret_why = "a port that is not a number from 1 to 65535";
		return -EINVAL;
	}
	if (port == 0) {
		*ret_why = "no port";
		return -EINVAL;
	}
	*ret_port = port;
	/* "::1:443" could be read in two ways. */
	if (host > 0 && s[0] != '[' && memchr(s, ':', host)) {
		*ret_why = "IPv6 without brackets";
		return -EINVAL;
	}
	return host_parse(s, host, ret, ret_why);
}
