/* SPDX-License-Identifier: Apache-2.0 */
/* base/open.c - open() for a program linked with musl
 *
 * musl's calls fcntl(F_SETFD) after every open() with O_CLOEXEC, for kernels before 2.6.23 that do not know the flag. A start
 * opens some forty files, so that was one system call in twenty.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __GLIBC__

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
#ifdef SYS_open
	return (int)syscall(SYS_open, path, flags, mode);
#else
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
#endif
}

#endif
