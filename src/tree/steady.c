/* SPDX-License-Identifier: Apache-2.0 */
/* tree/steady.c - may the times of a file be believed?
 *
 * The kernel moves a file's times when a page of a shared mapping becomes writable, not at each store: a process whose
 * page is writable already changes the content and leaves mtime and ctime as they are. So "same times, same content" is
 * true only between two looks that satisfy both of these:
 *
 * no writer  When the content was read nobody had the file open for writing. A writer that comes later has no writable
 *            page yet; its first store is a fault, and the fault moves ctime. The kernel refuses a read lease on a file
 *            that is open for writing by a descriptor or by a mapping that outlives its descriptor, so asking for a lease
 *            is asking that question.
 * a fault    The file system makes each first store a fault that moves the times. Those in memory do not: a page that
 *            was only read is writable there. On an overlay the mapping holds another inode than the one that a lease
 *            is asked of.
 *
 * File systems are not told apart by a list: tree_times_hold() does what a hostile process would do to a nameless file
 * in the tree's own root and looks whether both answers are right. Where they are not, or where no such file can be
 * made, every content is read again at each look.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "tree/look.h"

#include "base/sabotage.h"

#define PAGE 4096

bool tree_may_be_written(int fd)
{
	char path[64];

	if (sabotaged("writers"))
		return false;
	/* Whoever opens the file for writing while the lease exists waits for us and causes a signal: by default SIGIO, which
	 * would end this process. SIGURG does nothing. */
	if (fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		(void)fcntl(fd, F_SETLEASE,
			    F_UNLCK); /* the lease ends with the descriptor at the latest */
		return false;
	}
	/* Another user's file: no lease for us. The inside has no more rights than we have. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return errno != EACCES || access(path, W_OK) == 0;
}

/* A store through the mapping after a read: is the file in use until the mapping goes, and did its times move? The store
 * is the kernel's, so a full disk is an error and no signal. */
static bool try_store(int fd, volatile char *page)
{
	struct stat st;
	bool is_seen = page[0] == 'x' && tree_may_be_written(fd);

	return is_seen && getrandom((void *)(uintptr_t)page, 1, 0) == 1 && fstat(fd, &st) == 0 &&
	       st.st_mtim.tv_sec != 0;
}

bool tree_times_hold(int root_fd)
{
	const struct timespec old[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 0 } };
	_close_ int rw = openat(root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	_close_ int ro = FD_NONE;
	char path[64];
	void *page;
	bool holds;

	if (sabotaged("writers"))
		return true;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", rw);
	if (rw >= 0)
		ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0 || pwrite(rw, "x", 1, 0) != 1 || futimens(rw, old) < 0)
		return false;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0);
	if (page == MAP_FAILED)
		return false;
	fd_close(take_fd(rw));
	holds = try_store(ro, page);
	(void)munmap(page, PAGE);
	return holds;
}
