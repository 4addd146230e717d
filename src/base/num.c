/* SPDX-License-Identifier: Apache-2.0 */
/* base/num.c - see num.h */
#include "base/num.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },      { "b", 1 },    { "k", KIB },   { "kb", KIB },  { "kib", KIB },
	{ "m", MIB },   { "mb", MIB }, { "mib", MIB }, { "g", GIB },   { "gb", GIB },
	{ "gib", GIB }, { "t", TIB },  { "tb", TIB },  { "tib", TIB },
};

static const struct unit time_units[] = {
	{ "", NS_PER_SEC },         { "s", NS_PER_SEC },        { "ms", NS_PER_MS },
	{ "m", 60 * NS_PER_SEC },   { "h", 3600 * NS_PER_SEC }, { "d", 86400 * NS_PER_SEC },
	{ "min", 60 * NS_PER_SEC },
};

/* Reads digits at s; returns how many, 0 when there are none, they overflow, or they begin with a spare 0. */
static size_t digits(const char *s, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; s[i] >= '0' && s[i] <= '9'; i++)
		if (!mul_ok(v, (uint64_t)10, &v) || !add_ok(v, (uint64_t)(s[i] - '0'), &v))
			return 0;
	if (i > 1 && s[0] == '0')
		return 0;
	*ret = v;
	return i;
}

int num_parse(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	uint64_t v;
	size_t n = digits(s, &v);

	if (n == 0 || s[n] != '\0')
		return err_set(e, ERR_USAGE, EINVAL, "'%.64s' is not a whole number", s);
	if (v < min || v > max)
		return err_set(e, ERR_USAGE, ERANGE, "%s is outside %llu..%llu", s,
			       (unsigned long long)min, (unsigned long long)max);
	*ret = v;
	return 0;
}

static bool unit_eq(const char *text, const char *unit)
{
	for (; *unit; text++, unit++)
		if ((*text | 0x20) != *unit)
			return false;
	return *text == '\0';
}

static int with_unit(const char *s, const struct unit *units, size_t n_units, const char *expected,
		     uint64_t *ret, struct err *e)
{
	uint64_t v;
	size_t n = digits(s, &v);

	for (size_t i = 0; n > 0 && i < n_units; i++) {
		if (!unit_eq(s + n, units[i].name))
			continue;
		if (!mul_ok(v, units[i].factor, &v))
			break;
		*ret = v;
		return 0;
	}
	return err_set(e, ERR_USAGE, EINVAL, "'%.64s' is not %s", s, expected);
}

int num_size(const char *s, uint64_t *ret_bytes, struct err *e)
{
	return with_unit(s, size_units, ARRAY_LEN(size_units), "a size such as 512m or 2g",
			 ret_bytes, e);
}

int num_duration(const char *s, uint64_t *ret_ns, struct err *e)
{
	return with_unit(s, time_units, ARRAY_LEN(time_units), "a time such as 90s, 10m or 2h",
			 ret_ns, e);
}

int num_milli(const char *s, uint64_t *ret_milli, struct err *e)
{
	uint64_t whole, milli = 0, scale = 100;
	size_t n = digits(s, &whole);

	if (n > 0 && whole <= 1000000) {
		const char *p = s + n;

		if (*p == '.' && p[1] != '\0')
			for (p++; *p >= '0' && *p <= '9' && scale > 0; p++, scale /= 10)
				milli += (uint64_t)(*p - '0') * scale;
		if (*p == '\0') {
			*ret_milli = whole * 1000 + milli;
			return 0;
		}
	}
	return err_set(e, ERR_USAGE, EINVAL, "'%.64s' is not a number such as 2 or 0.5", s);
}
