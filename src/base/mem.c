/* SPDX-License-Identifier: Apache-2.0 */
/* base/mem.c - allocation that cannot fail quietly, memory that children see, and the end of the line for bugs
 *
 * Ordinary blocks are libc's. Between mem_share() and mem_share_end() they come from one mapping shared with every
 * child forked since, at the same address: so a child can be at work on something else while its parent still writes
 * what it will need, pointers and all. There blocks are handed out one behind the other, each behind its size; only
 * the last one can be given back or grown in place, which suits strings that are made, copied and dropped.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "base/base.h"

#undef free

struct block {
	size_t size;
	size_t pad; /* what follows is aligned for everything */
};

/* At the start of the mapping. */
struct shared {
	void *root; /* what the giver wants found */
	size_t pad;
};

static struct {
	char *base;
	size_t size, at, high; /* everything from `high` on has never been written */
	int fd;
	bool is_open, is_over;
} share;

_Noreturn void bug_at(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "vitrine: bug: %s (%s:%d)\n", what, file, line);
	abort();
}

/* Nothing that could be done about it would need no memory. A keeper that ends so takes its sandbox with it. A program whose
 * last word matters (a hook, whose silence would be a yes) has a handler for SIGABRT that says it. */
static _Noreturn void no_memory(void)
{
	static const char text[] = "vitrine: out of memory\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
	struct sigaction last = { 0 };

	(void)n; /* the status says it too */
	if (sigaction(SIGABRT, NULL, &last) == 0 && last.sa_handler != SIG_DFL)
		abort();
	_exit(125);
}

/* ---- shared ---- */

int mem_share(size_t size)
{
	_close_ int fd = memfd_create("vitrine-start", MFD_CLOEXEC);
	void *p;

	bug_on(share.base != NULL);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	share.base = p;
	share.size = size;
	share.at = share.high = sizeof(struct shared);
	share.fd = take_fd(fd);
	share.is_open = true;
	return 0;
}

static struct shared *shared(void)
{
	return (struct shared *)(void *)share.base;
}

void mem_share_give(void *root)
{
	bug_on(!share.is_open);
	shared()->root = root;
	/* Who takes it must find it unchanged for good. */
	bug_on(mprotect(share.base, share.size, PROT_READ) < 0);
	mem_share_end();
}

void *mem_share_root(void)
{
	return shared()->root;
}

int mem_share_take(void)
{
	if (share.base == NULL || share.fd < 0)
		return 0; /* nothing to take, or taken */
	if (mmap(share.base, share.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, share.fd,
		 0) == MAP_FAILED)
		return -errno;
	fd_close(share.fd);
	share.fd = FD_NONE;
	return 0;
}

int mem_share_fd(void)
{
	return share.base ? share.fd : FD_NONE;
}

bool mem_is_shared(const void *p)
{
	const char *c = p;

	return share.base != NULL && c >= share.base && c < share.base + share.size;
}

void mem_share_end(void)
{
	share.is_open = false;
}

bool mem_share_is_whole(void)
{
	return share.is_open && !share.is_over;
}

static struct block *block_of(void *p)
{
	return (struct block *)p - 1;
}

static bool is_last(void *p)
{
	return share.is_open && (char *)p + block_of(p)->size == share.base + share.at;
}

static void *share_new(size_t size)
{
	struct block *b = (struct block *)(void *)(share.base + share.at);
	size_t end;

	size = (size + 15) & ~(size_t)15;
	if (!share.is_open || !add_ok(share.at + sizeof(*b), size, &end) || end > share.size) {
		share.is_over = true;
		return NULL;
	}
	b->size = size;
	if (share.at + sizeof(*b) < share.high)
		memset(b + 1, 0, (end < share.high ? end : share.high) - share.at - sizeof(*b));
	share.at = end;
	share.high = end > share.high ? end : share.high;
	return b + 1;
}

static void share_free(void *p)
{
	if (is_last(p))
		share.at = (size_t)((char *)block_of(p) - share.base);
}

/* ---- all ---- */

void *mem_new(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	bug_on(!mul_ok(n ? n : 1, size ? size : 1, &bytes) || bytes > SIZE_MAX / 2);
	p = share.is_open ? share_new(bytes) : NULL;
	p = p ? p : calloc(bytes, 1);
	if (p == NULL)
		no_memory();
	return p;
}

static void *grow_shared(void *p, size_t bytes)
{
	size_t old = block_of(p)->size;
	void *q;

	if (bytes <= old)
		return p;
	/* The next block would begin behind its own head: so this one grows by that much as well. */
	if (is_last(p) && (q = share_new(bytes - old)) != NULL) {
		block_of(p)->size = old + sizeof(struct block) + block_of(q)->size;
		memset(block_of(q), 0, sizeof(struct block));
		return p;
	}
	q = mem_new(bytes, 1);
	memcpy(q, p, old);
	return q;
}

void *mem_grow(void *p, size_t n, size_t size)
{
	size_t bytes;
	void *q;

	bug_on(!mul_ok(n, size, &bytes) || bytes > SIZE_MAX / 2);
	if (p == NULL)
		return mem_new(n, size);
	q = mem_is_shared(p) ? grow_shared(p, bytes) : realloc(p, bytes ? bytes : 1);
	if (q == NULL)
		no_memory();
	return q;
}

void mem_free(void *p)
{
	if (p != NULL && mem_is_shared(p))
		share_free(p);
	else
		free(p);
}

char *mem_str(const char *s)
{
	return mem_strn(s, strlen(s));
}

char *mem_strn(const char *s, size_t n)
{
	char *p = mem_new(n + 1, 1);

	if (n > 0) /* an empty view may have no address */
		memcpy(p, s, n);
	return p;
}

char *mem_fmt(const char *fmt, ...)
{
	char text[256], *p;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	bug_on(n < 0);
	if ((size_t)n < sizeof(text))
		return mem_strn(text, (size_t)n);
	p = mem_new((size_t)n + 1, 1);
	va_start(ap, fmt);
	bug_on(vsnprintf(p, (size_t)n + 1, fmt, ap) != n);
	va_end(ap);
	return p;
}
