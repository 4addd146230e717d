/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel may ask on behalf of the inside: any bytes, as requests one after the other, to the server of a git dir
 * whose files hold bytes of the fuzzer's too. Nothing outside is ever named, the configuration holds nothing that was not
 * judged, and every answer has the length that it says. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "dir/serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char top[] = "/tmp/dir-fuzz-XXXXXX";

static void clean(void)
{
	(void)path_remove(AT_FDCWD, top);
}

static void put(int dir, const char *name, const void *p, size_t n)
{
	_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	bug_on(fd < 0 || io_write_all(fd, p, n) < 0);
}

static int fresh(const uint8_t *p, size_t n)
{
	static bool is_made;
	int dir;

	if (!is_made) {
		bug_on(mkdtemp(top) == NULL);
		(void)atexit(clean);
		is_made = true;
	}
	(void)path_remove(AT_FDCWD, top);
	bug_on(mkdir(top, 0700) < 0);
	dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bug_on(dir < 0 || mkdirat(dir, "hooks", 0700) < 0 || mkdirat(dir, "d", 0700) < 0);
	put(dir, "config", p, n);
	put(dir, "f", p, n);
	return dir;
}

/* Short names for what there is, so that requests meet it. */
static void name_it(char *name, size_t n)
{
	static const char *const words[] = { "config", "config.lock", "hooks", "f", "d" };

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] >= 0xf0) {
			const char *w = words[(unsigned char)name[i] % ARRAY_LEN(words)];
			size_t len = strlen(w) + 1;

			if (i + len <= n)
				memcpy(name + i, w, len);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct dir d;
	static const struct fuse_init_in init = { .major = 7, .minor = 38 };
	_Alignas(8) char q[1024];
	struct fuse_in_header h = { .len = sizeof(h) + sizeof(init), .opcode = FUSE_INIT };
	size_t text = n ? p[0] % 64U : 0;

	text = text < n ? text : n;
	d = (struct dir){ 0 };
	bug_on(dir_init(&d, fresh(p, text)) < 0);
	d.rules.workspace = mem_str("/ws");
	memcpy(q, &h, sizeof(h));
	memcpy(q + sizeof(h), &init, sizeof(init));
	bug_on(!dir_answer(&d, q, h.len));
	p += text;
	n -= text;
	for (int i = 0; n >= 4 && i < 64; i++) {
		size_t size = (size_t)p[0] | (size_t)(p[1] & 1) << 8;
		struct fuse_out_header out;

		h = (struct fuse_in_header){ .opcode = p[2], .unique = 9, .nodeid = p[3] % 8U };
		p += 4;
		n -= 4;
		size = size < n ? size : n;
		h.len = (uint32_t)(sizeof(h) + size);
		memcpy(q, &h, sizeof(h));
		memcpy(q + sizeof(h), p, size);
		name_it(q + sizeof(h), size);
		p += size;
		n -= size;
		bug_on(!dir_answer(&d, q, h.len));
		if (d.out_n == 0)
			continue;
		memcpy(&out, d.out, sizeof(out));
		bug_on(out.len != d.out_n || out.unique != 9 || out.error > 0);
		bug_on(out.error < 0 && out.len != sizeof(out));
	}
	dir_done(&d);
	return 0;
}
