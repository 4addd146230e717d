/* SPDX-License-Identifier: Apache-2.0 */
/* sys/cgroup_file.c - the names of controllers, and the small files through which the kernel is asked and told */
#include "sys/cgroup_file.h"
#include <fcntl.h>

#include "base/io.h"
#include "base/num.h"

/* What each controller is called and which file shows that it can do what we need. */
const struct cgroup_name cgroup_names[CG_COUNT_] = {
	[CG_MEMORY] = { "memory", "memory.limit_in_bytes", "memory", "memory" },
	[CG_CPU] = { "cpu", "cpu.cfs_quota_us", "cpu", "cpu" },
	[CG_PIDS] = { "pids", "pids.max", "pids", "pids" },
	[CG_IO] = { "blkio", "blkio.throttle.read_bps_device", "io", "io" },
	[CG_FREEZER] = { "freezer", "freezer.state", NULL, "freezer" },
	[CG_CPUACCT] = { "cpuacct", "cpuacct.usage", NULL, "cpu accounting" },
};

const char *cgroup_ctl_name(enum cgroup_ctl ctl)
{
	bug_on(ctl >= CG_COUNT_);
	return cgroup_names[ctl].people;
}

bool cgroup_read(const char *dir, const char *file, struct buf *b)
{
	_free_ char *path = mem_fmt("%s/%s", dir, file);
	struct err ignored = ERR_INIT;

	return io_read_file(path, b, &ignored) >= 0;
}

int cgroup_write(const char *dir, const char *file, const char *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", dir, file);

	return io_write_file(path, text, e);
}

bool cgroup_may_write(const char *dir, const char *file)
{
	_free_ char *path = mem_fmt("%s%s%s", dir, file ? "/" : "", file ? file : "");

	return faccessat(AT_FDCWD, path, file ? W_OK : W_OK | X_OK, AT_EACCESS) == 0;
}

/* Is `word` one of the words of this list, which are parted by any of `seps`? */
bool cgroup_has_word(const char *list, const char *word, const char *seps)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, seps);

		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

bool cgroup_file_has(const char *dir, const char *file, const char *word)
{
	_cleanup_(buf_done) struct buf b = BUF(CGROUP_FILE_MAX);

	return cgroup_read(dir, file, &b) && cgroup_has_word(buf_cstr(&b), word, " \n");
}

/* A number that stands alone in its file, or behind `key` on a line of it. 0 when there is none. */
uint64_t cgroup_number(const char *dir, const char *file, const char *key)
{
	_cleanup_(buf_done) struct buf b = BUF(CGROUP_FILE_MAX);
	struct err ignored = ERR_INIT;
	size_t key_len = key ? strlen(key) : 0;
	uint64_t v = 0;

	if (!cgroup_read(dir, file, &b))
		return 0;
	for (const char *s = buf_cstr(&b); *s;) {
		size_t n = strcspn(s, "\n");
		_free_ char *line = mem_strn(s, n);

		if (key == NULL && num_parse(line, 0, UINT64_MAX, &v, &ignored) >= 0)
			return v;
		if (key && str_starts(line, key) && line[key_len] == ' ' &&
		    num_parse(line + key_len + 1, 0, UINT64_MAX, &v, &ignored) >= 0)
			return v;
		s += n + (s[n] == '\n');
	}
	return 0;
}
