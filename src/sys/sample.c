/* SPDX-License-Identifier: Apache-2.0 */
/* sys/sample.c - see sample.h */
#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"
#include "sys/sample.h"

/* The number at p, which moves behind it and the blank that follows. */
static uint64_t take_number(const char **p)
{
	uint64_t v = 0;

	for (; **p >= '0' && **p <= '9'; ++*p)
		v = v * 10 + (uint64_t)(**p - '0');
	*p += **p == ' ';
	return v;
}

/* Field `want` (counted from 1), behind the name in parentheses; 0 when absent. */
static uint64_t stat_field(const char *text, int want)
{
	const char *p = strrchr(text, ')');
	int at = 2;

	while (p && *p && at < want)
		if (*p++ == ' ')
			at++;
	return p && at == want ? take_number(&p) : 0;
}

/* What stands in parentheses; it may hold some itself. */
static void take_name(const char *text, char *ret, size_t size)
{
	const char *from = strchr(text, '('), *to = strrchr(text, ')');
	size_t n = from && to && to > from ? (size_t)(to - from - 1) : 0;

	n = n < size ? n : size - 1;
	if (n > 0)
		memcpy(ret, from + 1, n);
	ret[n] = '\0';
}

static size_t read_small(int dir, const char *name, char *p, size_t n)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t r = fd < 0 ? -1 : io_read(fd, p, n - 1);

	p[r > 0 ? r : 0] = '\0';
	return r > 0 ? (size_t)r : 0;
}

bool process_look(int proc, const char *pid, struct process *ret)
{
	static uint64_t tick_ns, page;
	char name[64], text[1024];

	if (tick_ns == 0) {
		tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
		page = (uint64_t)sysconf(_SC_PAGESIZE);
	}
	(void)snprintf(name, sizeof(name), "%.16s/stat", pid);
	if (read_small(proc, name, text, sizeof(text)) == 0)
		return false;
	*ret = (struct process){ .ppid = stat_field(text, 4),
				 .sid = stat_field(text, 6),
				 .born = stat_field(text, 22) };
	take_name(text, ret->name, sizeof(ret->name));
	for (int f = 14; f <= 17;
	     f++) /* utime stime cutime cstime: what was waited for is in the waiter's */
		ret->cpu_ns += stat_field(text, f) * tick_ns;
	(void)snprintf(name, sizeof(name), "%.16s/statm", pid);
	if (read_small(proc, name, text, sizeof(text)) > 0) {
		const char *p = text;
		uint64_t resident, shared;

		(void)take_number(&p);
		resident = take_number(&p);
		shared = take_number(&p);
		ret->memory = resident > shared ? (resident - shared) * page
						: 0; /* not shared with a file */
	}
	return true;
}

void processes_each(int proc, process_fn *fn, void *arg)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;
	struct process p;
	bool goes_on = true;

	while (d && goes_on && (en = readdir(d)) != NULL)
		if (en->d_name[0] >= '1' && en->d_name[0] <= '9' &&
		    process_look(proc, en->d_name, &p))
			goes_on = fn(arg, en->d_name, &p);
	if (d)
		(void)closedir(d);
	else
		fd_close(fd);
}

size_t process_words(int proc, const char *pid, char *ret, size_t size)
{
	char name[64];
	size_t n;

	(void)snprintf(name, sizeof(name), "%.16s/cmdline", pid);
	n = read_small(proc, name, ret, size);
	/* Each word has its end, the last one too. */
	return n > 0 && ret[n - 1] != '\0' ? n + 1 : n;
}
