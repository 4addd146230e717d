/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest may say: any bytes, as messages one after the other, to a server of an empty directory. Nothing outside of it
 * is ever named, and every message that is one has exactly one answer of its own length. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "files/serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char dir[] = "/tmp/p9-fuzz-XXXXXX";

static void clean(void)
{
	(void)chmod(dir, 0700);
	(void)path_remove(AT_FDCWD, dir);
}

static int root(void)
{
	static bool is_made;

	if (!is_made) {
		char inner[64];

		bug_on(mkdtemp(dir) == NULL);
		is_made = true;
		(void)atexit(clean);
		(void)snprintf(inner, sizeof(inner), "%s/d", dir);
		(void)mkdir(inner, 0500);
		(void)snprintf(inner, sizeof(inner), "%s/l", dir);
		(void)symlink("/etc", inner);
		(void)chmod(dir, 0500); /* what is made there would grow from run to run */
	}
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Bytes: each message is a length and its body; type and fields are the fuzzer's. Only what can be harmless is said. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct files f;

	bug_on(files_init(&f, root(), 256) < 0);
	while (n >= 2) {
		size_t size = (size_t)p[0] | (size_t)(p[1] & 3) << 8;
		_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
		struct p9_request q;
		size_t length;

		p += 2;
		n -= 2;
		size = size < n ? size : n;
		p9_put4(&b, (uint32_t)(size + 4));
		buf_add(&b, p, size);
		p += size;
		n -= size;
		if (p9_length(b.p, b.n, &length) < 0 || p9_parse(b.p, b.n, &q) < 0)
			continue;
		for (size_t i = 0; q.type == P9_WALK && !q.is_bad_name && i < q.n_s; i++)
			bug_on(!p9_is_name(q.s[i]));
		p9_done(&q);
		bug_on(files_answer(&f, b.p, b.n) < 0);
		bug_on(p9_length(f.out.p, f.out.n, &length) < 0 || length != f.out.n);
	}
	files_done(&f);
	return 0;
}
