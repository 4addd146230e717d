/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/lstat_walk.c - the least work with which every file of a tree can have been looked at
 *
 * openat() and getdents64() for each directory, one fstatat() for each entry, nothing kept, nothing
 * sorted. It is the yardstick for a start in a large workspace, so it must not be slower than it
 * has to be: linked statically, no allocation, no library walker. Prints the number of files that
 * are not directories.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 64

static unsigned long files;

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "lstat_walk: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void walk(int at, const char *name, unsigned depth);

static void look(int dir, const char *name, unsigned depth)
{
	struct stat st;

	if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
		return;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		die(name);
	if (S_ISDIR(st.st_mode))
		walk(dir, name, depth + 1);
	else
		files++;
}

static void walk(int at, const char *name, unsigned depth)
{
	_Alignas(struct dirent64) char buf[16384];
	int dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (depth > MAX_DEPTH) {
		errno = ELOOP;
		die(name);
	}
	if (dir < 0)
		die(name);
	while ((n = getdents64(dir, buf, sizeof(buf))) > 0) {
		for (ssize_t off = 0; off < n;) {
			const struct dirent64 *d = (const void *)(buf + off);

			look(dir, d->d_name, depth);
			off += d->d_reclen;
		}
	}
	if (n < 0)
		die(name);
	close(dir);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: lstat_walk DIR\n");
		return 2;
	}
	walk(AT_FDCWD, argv[1], 0);
	(void)printf("%lu\n", files);
	return 0;
}
