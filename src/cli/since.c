/* SPDX-License-Identifier: Apache-2.0 */
/* cli/since.c - a moment in the words of --since */
#include <time.h>

#include "base/num.h"
#include "cli/cli.h"

static bool midnight(const char *word, uint64_t *ret)
{
	time_t now = time(NULL), then;
	struct tm tm;

	if ((!str_eq(word, "today") && !str_eq(word, "yesterday")) ||
	    localtime_r(&now, &tm) == NULL)
		return false;
	tm.tm_mday -= str_eq(word, "yesterday"); /* mktime() knows what the 0th of a month is */
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	then = mktime(&tm);
	if (then < 0)
		return false;
	*ret = (uint64_t)then * NS_PER_SEC;
	return true;
}

int cli_since(const char *text, uint64_t *ret, struct err *e)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct err ignored = ERR_INIT;
	uint64_t ns;

	if (midnight(text, ret))
		return 0;
	if (num_duration(text, &ns, &ignored) == 0) {
		uint64_t now = (uint64_t)time(NULL) * NS_PER_SEC;

		*ret = now > ns ? now - ns : 0;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *rest = strptime(text, forms[i], &tm);
		time_t t;

		if (rest == NULL || !(*rest == '\0' || str_eq(rest, "Z")))
			continue;
		t = *rest ? timegm(&tm) : mktime(&tm);
		if (t < 0)
			break;
		*ret = (uint64_t)t * NS_PER_SEC;
		return 0;
	}
	buf_esc(&b, text, strnlen(text, 64));
	return err_set(e, ERR_USAGE, EINVAL,
		       "--since '%s' is no time; write 10m, 2h, 3d, today, yesterday, 2026-01-31 "
		       "or "
		       "2026-01-31T12:00",
		       buf_cstr(&b));
}
