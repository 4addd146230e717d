/* SPDX-License-Identifier: Apache-2.0 */
/* view/index_share.c - a second process that looks at directories beside the walk
 *
 * In a tree of thousands of directories the statx() calls are all that a walk does, and where a processor is idle a second
 * process halves their time. It goes through the list from its end, the walk from its beginning; each byte of a shared
 * page says that one entry is the same. The walk never waits for one: what is not said yet it looks at itself, and where
 * the two meet the rest is done. A process that fails, or is never run, has said nothing.
 *
 * An entry is looked at by the path that it had when the list was made. The walk only asks about one that it met in that
 * place, through directories that are the same.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sys/spread.h"
#include "view/index_own.h"

#define SHARED_DIRS_MIN 3000 /* for fewer a process costs more than it brings */

static bool has_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
}

/* The paths of neighbours differ in their last part only. */
static void look_at_all(struct index_share *h, const struct index *old, const struct index *now,
			int root_fd)
{
	_free_ char *dir = NULL, *path = NULL;
	uint32_t parent = INDEX_NONE;

	for (uint32_t i = (uint32_t)old->n; i-- > 1;) {
		struct index_id id;

		if (__atomic_load_n(&h->said[0], __ATOMIC_RELAXED))
			return;
		if (old->dirs[i].parent != parent) {
			parent = old->dirs[i].parent;
			free(dir);
			dir = index_path(old, parent, "");
		}
		free(path);
		path = mem_fmt("%s%s", dir, old->text + old->dirs[i].name);
		if (index_look(root_fd, path, &id) && index_is_same(old, i, now, &id))
			__atomic_store_n(&h->said[i], 1, __ATOMIC_RELEASE);
	}
}

void index_share_begin(struct index_share *h, const struct index *old, const struct index *now,
		       int root_fd)
{
	pid_t walk = getpid();
	void *p;

	*h = (struct index_share){ 0 };
	if (old->n < SHARED_DIRS_MIN || !has_processors())
		return;
	p = mmap(NULL, old->n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	h->said = p;
	h->n = old->n;
	h->pid = fork();
	if (h->pid == 0) {
		mem_share_end();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == walk)
			look_at_all(h, old, now, root_fd);
		_exit(0);
	}
	if (h->pid > 0)
		spread_child(h->pid);
}

bool index_share_says(const struct index_share *h, uint32_t dir)
{
	return h->said && dir > 0 && dir < h->n &&
	       __atomic_load_n(&h->said[dir], __ATOMIC_ACQUIRE) == 1;
}

void index_share_end(struct index_share *h)
{
	if (h->said && h->pid > 0) {
		__atomic_store_n(&h->said[0], 1, __ATOMIC_RELAXED);
		(void)kill(h->pid, SIGKILL);
		while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (h->said)
		(void)munmap(h->said, h->n);
	*h = (struct index_share){ 0 };
}
