/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/ram.c - the memory of a kept machine, as a file
 *
 * Most of it was never touched and is a hole. A copy that serves its files from QEMU maps the file for itself; one whose files
 * virtiofsd serves shares its memory with that, so it gets a copy of what is no hole.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "engine/vm/vm.h"

#define PAGE 4096
#define HOLE (64 * KIB)
#define CHUNK ((off_t)(4 * MIB))

/* Calls `each` for every part of the file that is no hole, mapped. */
static int each_part(int fd, int (*each)(int to, const char *bytes, off_t at, size_t n), int to)
{
	off_t at = 0;
	int r = 0;

	while (r == 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(fd, at, SEEK_HOLE);

		for (; r == 0 && at < end; at += CHUNK) {
			size_t n = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
			void *bytes = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, at);

			if (bytes == MAP_FAILED)
				return -errno;
			r = each(to, bytes, at, n);
			(void)munmap(bytes, n);
		}
		at = end;
	}
	return r < 0 ? r : errno == ENXIO ? 0 : -errno;
}

static int put(int to, const char *bytes, off_t at, size_t n)
{
	while (n > 0) {
		ssize_t w = pwrite(to, bytes, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		bytes += w;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

int vm_ram_copy(int from, int to)
{
	struct stat st;

	if (fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0)
		return -errno;
	return each_part(from, put, to);
}

static bool is_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Runs of empty pages at once, and short ones not at all: every hole is one more part of the file. */
static int punch(int to, const char *bytes, off_t at, size_t n)
{
	for (size_t i = 0, end; i < n; i = end + PAGE) {
		for (end = i; end + PAGE <= n && is_zero(bytes + end, PAGE);)
			end += PAGE;
		if (end - i >= HOLE && fallocate(to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						 at + (off_t)i, (off_t)(end - i)) < 0)
			return -errno;
	}
	return 0;
}

int vm_ram_thin(int fd)
{
	return each_part(fd, punch, fd);
}
