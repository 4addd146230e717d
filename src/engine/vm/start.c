/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/start.c - what a machine needs before its program is started: kernel, a kept machine or none, its monitor */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "engine/vm/vm.h"
#include "engine/vm/wake.h"

#define PLUG_SECONDS 120 /* in software, on a machine that has other things to do */

static bool is_warm(const struct plan *p)
{
	const char *word = vm_word(p, "KEEP");

	return word == NULL || !str_eq(word, "no");
}

static int open_state(struct vm_start *s, struct err *e)
{
	_free_ char *path = mem_fmt("%s/state", s->kept);
	const char *words = vm_warm_words();

	s->state = open(path, O_RDONLY | O_CLOEXEC);
	if (s->state < 0)
		return err_sys(e, "'%s'", path);
	if (s->virtiofsd) { /* it goes on when its memory is there */
		s->ram = memfd_create("vitrine-machine", MFD_CLOEXEC);
		return s->ram < 0 ? err_sys(e, "memory for the machine") : 0;
	}
	/* It reads them when it is there; what it answers is for nobody. */
	return io_write_all(s->monitor[0], words, strlen(words)) < 0 ? err_sys(e, "the machine's "
										  "monitor")
								     : 0;
}

/* What was saved of it: its memory and devices, and the files it has open. */
static int open_saved(struct vm_start *s, const char *again, struct err *e)
{
	static const char *const names[] = { "view", "system" };
	_free_ char *memory = mem_fmt("%s/memory", again);
	const char *words = vm_warm_words();

	s->state = open(memory, O_RDONLY | O_CLOEXEC);
	if (s->state < 0)
		return err_sys(e, "'%s'", memory);
	for (size_t i = 0; i < s->files.n && i < ARRAY_LEN(names); i++) {
		_free_ char *path = mem_fmt("%s/%s", again, names[i]);

		s->files.table[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (s->files.table[i] < 0)
			return err_sys(e, "'%s'", path);
	}
	return io_write_all(s->monitor[0], words, strlen(words)) < 0 ? err_sys(e, "the machine's "
										  "monitor")
								     : 0;
}

/* Software in its place would be another wall than the one that was asked for, and thirty times as slow. */
static int check_kvm(struct err *e)
{
	if (access("/dev/kvm", R_OK | W_OK) == 0)
		return 0;
	return err_set(e, ERR_UNSUPPORTED, errno,
		       "engine 'vm': /dev/kvm: %s; whoever is in its group (often 'kvm') may use "
		       "it; "
		       "--engine vm-emulated does without, in software and slowly",
		       strerrordesc_np(errno));
}

int vm_start_open(struct vm_kind kind, const char *dir, const char *again, struct vm_start *ret,
		  struct err *e)
{
	const struct plan *p = kind.plan;
	_free_ char *view = mem_fmt("%s/view", dir);
	int r = kind.is_emulated ? 0 : check_kvm(e);

	if (r == 0)
		r = vm_kernel_find(p, &ret->kernel, e);
	if (r < 0)
		return r;
	kind.kernel = &ret->kernel;
	r = path_make(view, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", view, strerrordesc_np(-r));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret->monitor) < 0)
		return err_sys(e, "the machine's monitor");
	r = vm_files_open(p, &ret->files, e);
	if (r == 0)
		r = vm_share_find(p, &ret->kernel, &ret->virtiofsd, e);
	if (r < 0)
		return r;
	if (again) {
		r = vm_key_check(&kind, again, e);
		if (r == 0)
			r = open_saved(ret, again, e);
		return r < 0 ? r : vm_initrd_write(p, &ret->kernel, false, dir, e);
	}
	kind.is_virtiofs = ret->virtiofsd != NULL;
	ret->n_shares = kind.is_virtiofs ? vm_shares(p) : 0;
	if (!is_warm(p))
		return vm_initrd_write(p, &ret->kernel, kind.is_virtiofs, dir, e);
	r = vm_keep(&kind, &ret->kept, e);
	return r < 0 ? r : open_state(ret, e);
}

void vm_start_done(struct vm_start *s)
{
	vm_kernel_done(&s->kernel);
	free(s->kept);
	free(s->virtiofsd);
	fd_close(s->monitor[0]);
	fd_close(s->monitor[1]);
	fd_close(s->state);
	fd_close(s->ram);
	vm_files_done(&s->files);
}

/* Filled while QEMU starts, which looks at it when it goes on. */
static int fill_ram(const struct vm_start *s, struct err *e)
{
	_free_ char *path = mem_fmt("%s/ram", s->kept);
	_close_ int from = open(path, O_RDONLY | O_CLOEXEC);
	int r = from < 0 ? -errno : vm_ram_copy(from, s->ram);

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* The same words, one by one: here the answers count. */
static int go_on(struct qmp *q, uint64_t deadline, struct err *e)
{
	int r = 0;

	for (const char *p = vm_warm_words(); r == 0 && *p; p += strcspn(p, "\n") + 1) {
		_free_ char *line = mem_strn(p, strcspn(p, "\n") + 1);

		r = qmp_command(q, line, FD_NONE, deadline, NULL, e);
	}
	return r;
}

int vm_start_plug(struct vm_start *s, struct err *e)
{
	_cleanup_(qmp_done) struct qmp q = QMP(s->monitor[0]);
	uint64_t deadline = clock_now() + PLUG_SECONDS * NS_PER_SEC;
	int r;

	if (s->ram < 0)
		return 0;
	fd_close(take_fd(s->monitor[1])); /* the machine's: it must be heard when it ends */
	r = fill_ram(s, e);
	if (r == 0)
		r = go_on(&q, deadline, e);
	if (r == 0)
		r = qmp_wait_running(&q, deadline, e);
	for (size_t i = s->n_shares; r == 0 && i > 0; i--)
		r = qmp_command(&q, vm_plug_words(i - 1), FD_NONE, deadline, NULL, e);
	return r < 0 ? err_wrap(e, r, "files by virtiofs (VITRINE_VM_SHARE=9p does without)") : 0;
}

int vm_again(struct link_again *ret, struct err *e)
{
	struct timespec now;

	*ret = (struct link_again){ .magic = LINK_AGAIN_MAGIC };
	if (clock_gettime(CLOCK_REALTIME, &now) < 0 ||
	    getrandom(ret->seed, sizeof(ret->seed), 0) != (ssize_t)sizeof(ret->seed))
		return err_sys(e, "random numbers for the machine");
	ret->clock_ns = (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
	return 0;
}

static int wake_again(int to_init, struct err *e)
{
	struct link_again again;
	int r = vm_again(&again, e);

	if (r == 0 && io_write_all(to_init, &again, sizeof(again)) < 0)
		r = err_sys(e, "the machine's port");
	explicit_bzero(&again, sizeof(again));
	return r;
}

int vm_start_wake(int to_init, bool is_again, struct err *e)
{
	struct link_wake wake = { .magic = LINK_WAKE_MAGIC };
	int r;

	if (is_again)
		return wake_again(to_init, e);

	if (getrandom(wake.seed, sizeof(wake.seed), 0) != (ssize_t)sizeof(wake.seed))
		return err_sys(e, "random numbers for the machine");
	r = io_write_all(to_init, &wake, sizeof(wake));
	explicit_bzero(&wake, sizeof(wake));
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "the machine's port") : 0;
}
