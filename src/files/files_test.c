/* SPDX-License-Identifier: Apache-2.0 */
/* files/files_test.c - a guest that is polite, one that is not, and what is written down and comes back */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "files/serve.h"

static struct files f;
static char dir[64];
static struct buf message = BUF(256 * KIB);

static void begin(uint8_t type)
{
	p9_begin(&message, (uint8_t)(type - 1), 7); /* it is an answer's type there */
}

/* The answer's error, 0 when it is none; < 0: the connection would end. */
static int ask(void)
{
	int r;

	p9_end(&message);
	r = files_answer(&f, message.p, message.n);
	if (r < 0)
		return r;
	if (f.out.p[4] != P9_LERROR + 1)
		return 0;
	return (uint8_t)f.out.p[7];
}

static void text(const char *s)
{
	p9_put_text(&message, s, strlen(s));
}

static int walk(uint32_t from, uint32_t to, const char *a, const char *b)
{
	begin(P9_WALK);
	p9_put4(&message, from);
	p9_put4(&message, to);
	p9_put2(&message, (uint16_t)((a != NULL) + (b != NULL)));
	if (a)
		text(a);
	if (b)
		text(b);
	return ask();
}

static int lopen(uint32_t fid, uint32_t flags)
{
	begin(P9_LOPEN);
	p9_put4(&message, fid);
	p9_put4(&message, flags);
	return ask();
}

static int clunk(uint32_t fid)
{
	begin(P9_CLUNK);
	p9_put4(&message, fid);
	return ask();
}

static int create(uint32_t fid, const char *name, uint32_t mode)
{
	begin(P9_LCREATE);
	p9_put4(&message, fid);
	text(name);
	p9_put4(&message, O_RDWR | O_CREAT);
	p9_put4(&message, mode);
	p9_put4(&message, 0);
	return ask();
}

static int put_bytes(uint32_t fid, uint64_t at, const char *s)
{
	begin(P9_WRITE);
	p9_put4(&message, fid);
	p9_put8(&message, at);
	p9_put4(&message, (uint32_t)strlen(s));
	buf_add(&message, s, strlen(s));
	return ask();
}

static const char *get_bytes(uint32_t fid, uint32_t count)
{
	static char copy[64];
	uint32_t n;

	begin(P9_READ);
	p9_put4(&message, fid);
	p9_put8(&message, 0);
	p9_put4(&message, count);
	if (ask() != 0)
		return "(error)";
	n = (uint8_t)f.out.p[7];
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)n, f.out.p + 11);
	return copy;
}

static void start(bool has_session)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/files-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	CHECK_INT(files_init(&f, open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), 256), 0);
	if (!has_session)
		return;
	begin(P9_VERSION);
	p9_put4(&message, 1 << 20);
	text("9P2000.L");
	CHECK_INT(ask(), 0);
	begin(P9_ATTACH);
	p9_put4(&message, 0);
	p9_put4(&message, P9_NO_FID);
	text("");
	text("");
	p9_put4(&message, 0);
	CHECK_INT(ask(), 0);
}

static void end(void)
{
	files_done(&f);
	(void)path_remove(AT_FDCWD, dir);
}

static char *below(const char *name)
{
	return mem_fmt("%s/%s", dir, name);
}

TEST(a_file_is_made_written_and_read)
{
	_free_ char *path = below("a");
	struct stat st;

	start(true);
	CHECK_INT(walk(0, 1, NULL, NULL), 0);
	CHECK_INT(create(1, "a", 06755), 0);
	CHECK_INT(put_bytes(1, 0, "hello"), 0);
	CHECK_STR(get_bytes(1, 100), "hello");
	CHECK_INT(clunk(1), 0);
	CHECK_INT(clunk(1), EBADF);
	end();
	start(true);
	(void)path;
	CHECK_INT(walk(0, 1, NULL, NULL), 0);
	CHECK_INT(create(1, "a", 06755), 0);
	{
		_free_ char *here = below("a");

		CHECK_INT(stat(here, &st), 0);
		CHECK_INT(st.st_mode & 07000, 0);
	}
	end();
}

TEST(no_way_out)
{
	_free_ char *link = NULL, *plain = NULL;

	start(true);
	link = below("link");
	plain = below("plain");
	CHECK_INT(symlink("/etc", link), 0);
	CHECK_INT(symlink("/etc/passwd", plain), 0);
	CHECK_INT(walk(0, 1, "..", NULL), EINVAL);
	CHECK_INT(walk(0, 1, ".", NULL), EINVAL);
	CHECK_INT(walk(0, 1, "", NULL), EINVAL);
	CHECK_INT(walk(0, 1, "a/b", NULL), EINVAL);
	CHECK_INT(walk(0, 1, "/etc", NULL), EINVAL);
	/* A link is what it is; behind it there is nothing. */
	CHECK_INT(walk(0, 1, "link", "passwd"), 0);
	CHECK_INT((uint8_t)f.out.p[7], 1);
	CHECK(fids_get(&f.fids, 1) == NULL);
	CHECK_INT(walk(0, 1, "plain", NULL), 0);
	CHECK_INT(lopen(1, O_RDONLY), ENXIO);
	CHECK_INT(walk(0, 2, NULL, NULL), 0);
	CHECK_INT(create(2, "plain", 0644), ELOOP);
	end();
}

TEST(no_device_and_no_foreign_act)
{
	start(true);
	begin(P9_MKNOD);
	p9_put4(&message, 0);
	text("null");
	p9_put4(&message, S_IFCHR | 0666);
	p9_put4(&message, 1);
	p9_put4(&message, 3);
	p9_put4(&message, 0);
	CHECK_INT(ask(), EPERM);
	begin(P9_UNLINKAT);
	p9_put4(&message, 0);
	text("..");
	p9_put4(&message, 0x200);
	CHECK_INT(ask(), EINVAL);
	begin(P9_RENAMEAT);
	p9_put4(&message, 0);
	text("a");
	p9_put4(&message, 0);
	text("../b");
	CHECK_INT(ask(), EINVAL);
	end();
}

TEST(numbers_are_its_own_and_once)
{
	start(true);
	CHECK_INT(walk(0, 1, NULL, NULL), 0);
	CHECK_INT(walk(0, 1, NULL, NULL), EINVAL);
	CHECK_INT(walk(0, FIDS_MAX, NULL, NULL), ENFILE);
	CHECK_INT(walk(0, P9_NO_FID, NULL, NULL), ENFILE);
	CHECK_INT(walk(77, 2, NULL, NULL), EBADF);
	CHECK_INT(lopen(1, O_RDONLY), 0);
	CHECK_INT(lopen(1, O_RDONLY), EBUSY);
	CHECK_STR(get_bytes(0, 10), "(error)"); /* not open */
	end();
}

TEST(what_is_no_message_ends_it)
{
	static const char huge[] = "\xff\xff\xff\x7f\x64\x01\x00";
	size_t n;

	start(false);
	CHECK_INT(p9_length(huge, 7, &n), -EBADMSG);
	CHECK_INT(p9_length("\x03\0\0\0", 4, &n), -EBADMSG);
	begin(P9_CLUNK);
	CHECK_INT(ask(), -EBADMSG); /* too short */
	begin(P9_CLUNK);
	p9_put8(&message, 1);
	CHECK_INT(ask(), -EBADMSG); /* too long */
	begin(99);
	CHECK_INT(ask(), -EBADMSG); /* unknown */
	begin(P9_WRITE);
	p9_put4(&message, 0);
	p9_put8(&message, 0);
	p9_put4(&message, UINT32_MAX); /* more than there is */
	CHECK_INT(ask(), -EBADMSG);
	begin(P9_WALK);
	p9_put4(&message, 0);
	p9_put4(&message, 1);
	p9_put2(&message, 17);
	CHECK_INT(ask(), -EBADMSG);
	begin(P9_CLUNK); /* before the version */
	p9_put4(&message, 0);
	CHECK_INT(ask(), EPROTO);
	end();
}

/* More fids than there may be descriptors: each still is its file. */
TEST(more_than_can_be_open)
{
	start(true);
	for (uint32_t i = 1; i < 600; i++)
		CHECK_INT(walk(0, i, NULL, NULL), 0);
	CHECK_INT(create(5, "x", 0644), 0);
	CHECK(f.fids.n_at < 256);
	end();
}

TEST(saved_and_back)
{
	_close_ int table = (int)open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	_free_ char *gone = NULL, *root = NULL;
	struct err e = ERR_INIT;
	size_t lost = 9;

	start(true);
	CHECK_INT(walk(0, 1, NULL, NULL), 0);
	CHECK_INT(create(1, "kept", 0644), 0);
	CHECK_INT(put_bytes(1, 0, "one"), 0);
	CHECK_INT(walk(0, 2, NULL, NULL), 0);
	CHECK_INT(create(2, "gone", 0644), 0);
	CHECK_INT(put_bytes(2, 0, "two"), 0);
	gone = below("gone");
	CHECK_INT(unlink(gone), 0);
	CHECK_INT(fids_save(&f.fids, table, &lost, &e), 0);
	CHECK_INT(lost, 0);
	files_done(&f);
	CHECK_INT(lseek(table, 0, SEEK_SET), 0);
	root = mem_str(dir);
	CHECK_INT(files_init(&f, open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), 256), 0);
	f.is_open = true;
	CHECK_INT(fids_load(&f.fids, table, &lost, &e), 0);
	CHECK_INT(lost, 0);
	CHECK_STR(get_bytes(1, 10), "one");
	CHECK_STR(get_bytes(2, 10), "two");
	CHECK_INT(put_bytes(1, 3, "+"), 0);
	CHECK_STR(get_bytes(1, 10), "one+");
	CHECK_INT(walk(0, 3, "kept", NULL), 0);
	end();
}

TEST_MAIN()
