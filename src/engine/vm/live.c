/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/live.c - a machine that works is written down, and goes on
 *
 *     FOLDER/{memory,view,system,key}
 *
 * Memory and devices are QEMU's own stream. It is taken from a machine that runs, which stops by itself when the last page is
 * written: so what is read back runs at once, as a kept machine does. The tables of open files are vitrine-files' own. What the
 * machine depends on (QEMU, kernel, our programs, the words of the machine) is the key; where one line of it differs it is another
 * machine, and nothing of it is started.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/loop.h"
#include "engine/engine.h"
#include "engine/vm/vm.h"
#include "engine/vm/wake.h"

#define SAVE_SECONDS 600

/* ---- what it depends on ---- */

static int key_of(const struct plan *p, struct buf *out, struct err *e)
{
	_cleanup_(vm_kernel_done) struct vm_kernel k = { 0 };
	const struct engine *en = engine_find(p->engine);
	_free_ char *tool = en ? engine_tool(en) : NULL;
	int r = tool ? vm_kernel_find(p, &k, e) : err_set(e, ERR_UNSUPPORTED, ENOENT, "no engine");

	if (r == 0)
		vm_key_text(&(struct vm_kind){ p, &k, tool, en->is_emulated, false }, out);
	return r;
}

int engine_key(const struct plan *p, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	int r = key_of(p, &b, e);

	return r < 0 ? r : request_seal(&b, e);
}

/* The first line of `now` that `then` does not have, up to its first space where it names a file. */
static void tell_difference(const struct buf *then, const struct buf *now, struct buf *out)
{
	const char *a = buf_cstr(then), *b = buf_cstr(now);

	while (*a && *b) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (n != m || memcmp(a, b, n) != 0)
			break;
		a += n + (a[n] == '\n');
		b += m + (b[m] == '\n');
	}
	if (*b == '/')
		buf_esc(out, b, strcspn(b, " \n"));
	else
		buf_puts(out, "the words of the machine (its memory, its devices)");
}

int vm_key_check(const struct vm_kind *kind, const char *again, struct err *e)
{
	_cleanup_(buf_done) struct buf then = BUF(MIB), now = BUF(MIB), what = BUF(8 * KIB);
	_free_ char *path = mem_fmt("%s/key", again);
	int r = io_read_file(path, &then, e);

	if (r < 0)
		return r;
	vm_key_text(kind, &now);
	if (then.n == now.n && memcmp(buf_cstr(&then), buf_cstr(&now), now.n) == 0)
		return 0;
	tell_difference(&then, &now, &what);
	return err_set(e, ERR_CONFLICT, ESTALE,
		       "the saved machine is of another kind: %.300s has changed since",
		       buf_cstr(&what));
}

/* ---- save ---- */

/* Answers to what was said before are for nobody. */
static void drain(int monitor)
{
	char bytes[4096];

	while (recv(monitor, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static int save_memory(int monitor, int dir, struct err *e)
{
	_cleanup_(qmp_done) struct qmp q = QMP(monitor);
	_close_ int fd = openat(dir, "memory", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint64_t deadline = clock_now() + SAVE_SECONDS * NS_PER_SEC;
	struct err ignored = ERR_INIT;
	int r;

	if (fd < 0)
		return err_sys(e, "the machine's memory");
	drain(monitor);
	/* One that goes on from a kept machine has done so already, and says that it does not know the command. */
	(void)qmp_command(&q, "{\"execute\":\"qmp_capabilities\"}\n", FD_NONE, deadline, NULL,
			  &ignored);
	/* Whatever it still writes, it stops when all else is on the disk: nobody waits for it to become quiet. */
	r = qmp_command(&q,
			"{\"execute\":\"migrate-set-parameters\",\"arguments\":{\"downtime-limit\":"
			"2000000}}\n",
			FD_NONE, deadline, NULL, e);
	if (r == 0)
		r = qmp_save(&q, fd, true, deadline, e);
	return r == 0 && fsync(fd) < 0 ? err_sys(e, "the machine's memory") : r;
}

static int save_files(int ctl, int dir, const char *name, uint64_t *lost, struct err *e)
{
	_close_ int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? err_sys(e, "'%s'", name) : vm_files_save(ctl, fd, lost, e);

	return r == 0 && fsync(fd) < 0 ? err_sys(e, "'%s'", name) : r;
}

int engine_save(int monitor, const int *files, size_t n_files, int dir, uint64_t *ret_lost,
		struct err *e)
{
	static const char *const names[] = { "view", "system" };
	int r = save_memory(monitor, dir, e);

	*ret_lost = 0;
	for (size_t i = 0; r == 0 && i < n_files && i < ARRAY_LEN(names); i++)
		r = save_files(files[i], dir, names[i], ret_lost, e);
	return r;
}

/* ---- go on ---- */

int engine_go_on(const struct native *n, struct err *e)
{
	/* What it answers is for nobody; a save that was cut off must not stop it later. */
	static const char words[] = "{\"execute\":\"migrate_cancel\"}\n{\"execute\":\"cont\"}\n";
	struct init_msg m = { .type = INIT_AGAIN };
	struct link_again again;
	int r = vm_again(&again, e);

	if (r < 0)
		return r;
	memcpy(m.err.msg, &again, sizeof(again));
	if (io_write_all(n->monitor, words, strlen(words)) < 0)
		r = err_sys(e, "the machine's monitor");
	if (r == 0 && init_send(n->ctl, &m, NULL, 0) < 0)
		r = err_set(e, ERR_SYSTEM, EPIPE, "vitrine-link does not answer");
	explicit_bzero(&again, sizeof(again));
	explicit_bzero(&m, sizeof(m));
	return r;
}
