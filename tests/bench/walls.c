/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/walls.c - a program behind single walls, without a sandbox
 *
 * walls WALLS DIR CMD...: WALLS, of "filter", "landlock", "writes" and "watch", with commas. What the kernel asks of a
 * call when nothing but these is in its way; each is the least of its kind: a filter that lets everything pass but one
 * number, one right of Landlock's that no opening of a file asks for, the one that opening for writing asks for, granted
 * below DIR and /dev, and one watch, on DIR.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "walls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put_filter(const char *dir)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_reboot, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	(void)dir;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		die("filter");
}

static void allow(int set, const char *path, uint64_t right)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = right,
						   .parent_fd = open(path, O_PATH | O_CLOEXEC) };

	if (rule.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		die(path);
	(void)close(rule.parent_fd);
}

static void put_right(const char *dir, uint64_t right)
{
	struct landlock_ruleset_attr all = { .handled_access_fs = right };
	int set = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);

	if (set < 0)
		die("landlock");
	allow(set, dir, right);
	allow(set, "/dev", right);
	if (syscall(SYS_landlock_restrict_self, set, 0))
		die("landlock");
	(void)close(set);
}

static void put_landlock(const char *dir)
{
	put_right(dir, LANDLOCK_ACCESS_FS_MAKE_DIR);
}

static void put_writes(const char *dir)
{
	put_right(dir, LANDLOCK_ACCESS_FS_WRITE_FILE);
}

/* Its descriptor goes on to the command, and nobody reads from it. */
static void put_watch(const char *dir)
{
	int fd = inotify_init();

	if (fd < 0 || inotify_add_watch(fd, dir, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
		die(dir);
}

static const struct {
	const char *name;
	void (*put)(const char *dir);
} walls[] = { { "landlock", put_landlock },
	      { "writes", put_writes },
	      { "watch", put_watch },
	      { "filter", put_filter } };

int main(int argc, char **argv)
{
	if (argc < 4) {
		(void)fprintf(stderr, "usage: walls WALLS DIR CMD...\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	for (size_t i = 0; i < sizeof(walls) / sizeof(*walls); i++)
		if (strstr(argv[1], walls[i].name))
			walls[i].put(argv[2]);
	execvp(argv[3], argv + 3);
	die(argv[3]);
}
