/* SPDX-License-Identifier: Apache-2.0 */
/* broker/approve.c - a person looks at it first
 *
 * What is to be decided lies as DIR/pending/ID until `vitrine broker approve|deny` writes DIR/pending/ID.allow or
 * ID.deny beside it. Nobody answering is a no. ID.allow holds the hash of the question that the person saw: an id comes
 * again one day, and a yes to another question is none.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "base/sha256.h"
#include "base/str.h"
#include "broker/broker.h"

#define WAIT_NS ((uint64_t)15 * 60 * NS_PER_SEC)

static int put_question(int dir, const char *id, const char *title, const struct buf *text,
			char hash[static SHA256_HEX_BYTES], struct err *e)
{
	_cleanup_(buf_done) struct buf safe = BUF(8 * MIB);
	_free_ char *part = mem_fmt(".%s", id); /* it is there as a whole or not at all */
	_close_ int fd =
		openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* For a terminal: nothing in it may move the cursor. Lines stay lines. A zero byte is a byte like others: what stands
	 * behind it is pushed as well. */
	buf_printf(&safe, "%s\n\n", title);
	for (struct str rest = { .p = buf_cstr(text), .n = text->n }; rest.n > 0;) {
		size_t n = str_find(rest, '\n');

		buf_esc(&safe, rest.p, n);
		buf_putc(&safe, '\n');
		rest = str_from(rest, n < rest.n ? n + 1 : n);
	}
	if (fd < 0 || safe.is_over || io_write_all(fd, safe.p, safe.n) < 0 ||
	    renameat(dir, part, dir, id) < 0)
		return err_set(e, ERR_SYSTEM, EIO, "the question cannot be written down");
	sha256_hex(buf_cstr(&safe), safe.n, hash);
	return 0;
}

static bool is_there(int dir, const char *id, const char *suffix)
{
	_free_ char *name = mem_fmt("%s%s", id, suffix);

	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The answer to this very question? */
static bool is_allowed(int dir, const char *id, const char *hash)
{
	_cleanup_(buf_done) struct buf said = BUF(KIB);
	_free_ char *name = mem_fmt("%s.allow", id);
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	return fd >= 0 && io_read_fd(fd, &said, &ignored) == 0 &&
	       (str_eq(buf_cstr(&said), hash) || sabotaged("approve-shown"));
}

static void forget(int dir, const char *id)
{
	static const char *const suffixes[] = { "", ".allow", ".deny", ".shown", ".allowing" };

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		_free_ char *name = mem_fmt("%s%s", id, suffixes[i]);

		(void)unlinkat(dir, name, 0);
	}
}

int approve_wait(const struct broker *b, const char *title, const struct buf *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/pending", b->dir);
	_close_ int dir = FD_NONE;
	uint64_t end = clock_now() + WAIT_NS;
	char id[16], hash[SHA256_HEX_BYTES] = "";
	int r = path_make(path, 0700);

	dir = r < 0 ? FD_NONE : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, ERR_SYSTEM, EIO, "'%s' cannot be made", path);
	(void)snprintf(id, sizeof(id), "%08x", (unsigned)(time(NULL) ^ ((unsigned)getpid() << 16)));
	r = put_question(dir, id, title, text, hash, e);
	if (r < 0)
		return r;
	broker_say(b, "this waits for a person: 'vitrine broker show %s %s', then approve or deny",
		   b->name, id);
	while (clock_now() < end && !is_there(dir, id, ".allow") && !is_there(dir, id, ".deny")) {
		struct pollfd p = { .fd = b->conn, .events = POLLIN };

		/* Who asked has gone: then it is not wanted any more. */
		if (poll(&p, 1, 100) > 0 && p.revents & (POLLHUP | POLLERR))
			break;
	}
	r = is_allowed(dir, id, hash) && !is_there(dir, id, ".deny") ? 0 : -EPERM;
	if (r < 0)
		(void)err_set(e, ERR_DENIED, EPERM, "%s",
			      is_there(dir, id, ".deny")    ? "a person said no"
			      : is_there(dir, id, ".allow") ? "what was approved is another "
							      "question"
							    : "nobody approved it in time");
	forget(dir, id);
	return r;
}
