/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/make_tree.c - a workspace of many files with nested git repositories
 *
 * make_tree DIR FILES REPOS puts FILES small files, fifty to a directory three or five levels deep,
 * below DIR and makes REPOS of those directories look as `git init` leaves them. The repositories'
 * own files come on top of FILES. Written in C because a script would take longer than the whole
 * benchmark.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PER_DIR 50
#define DIRS_PER_PKG 20

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "make_tree: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_dir(int at, const char *name)
{
	if (mkdirat(at, name, 0755) && errno != EEXIST)
		die(name);
}

static int enter_dir(int at, const char *name)
{
	make_dir(at, name);

	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		die(name);
	return fd;
}

static void make_file(int at, const char *name, const char *text, mode_t mode)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	size_t n = strlen(text);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		die(name);
	close(fd);
}

static void make_hooks(int git)
{
	static const char *const names[] = {
		"applypatch-msg", "commit-msg",         "fsmonitor-watchman", "post-update",
		"pre-applypatch", "pre-commit",         "pre-merge-commit",   "pre-push",
		"pre-rebase",     "pre-receive",        "prepare-commit-msg", "push-to-checkout",
		"update",         "sendemail-validate",
	};
	int hooks = enter_dir(git, "hooks");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%s.sample", names[i]);
		make_file(hooks, name, "#!/bin/sh\nexit 0\n", 0755);
	}
	close(hooks);
}

static void make_repo(int dir)
{
	static const char *const dirs[] = { "branches",     "info", "objects",    "objects/info",
					    "objects/pack", "refs", "refs/heads", "refs/tags" };
	int git = enter_dir(dir, ".git");

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		make_dir(git, dirs[i]);
	make_hooks(git);
	make_file(git, "HEAD", "ref: refs/heads/main\n", 0644);
	make_file(git, "config",
		  "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
		  "\tlogallrefupdates = true\n",
		  0644);
	make_file(git, "description", "Unnamed repository\n", 0644);
	make_file(git, "info/exclude", "# one pattern per line\n", 0644);
	close(git);
}

static void fill(int dir, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		char text[160];

		(void)snprintf(name, sizeof(name), "file%05u.c", first + i);
		(void)snprintf(text, sizeof(text),
			       "/* %u */\nint value_%u(int x)\n{\n\treturn x + %u;\n}\n", first + i,
			       first + i, first + i);
		make_file(dir, name, text, 0644);
	}
}

static void make_module(int root, unsigned index, unsigned first, unsigned count, int is_repo)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "pkg%02u", index / DIRS_PER_PKG);

	int pkg = enter_dir(root, name);

	(void)snprintf(name, sizeof(name), "mod%02u", index % DIRS_PER_PKG);

	int mod = enter_dir(pkg, name);

	if (is_repo)
		make_repo(mod);
	if (index % 2) {
		int src = enter_dir(mod, "src");
		int deep = enter_dir(src, "inner");

		fill(deep, first, count);
		close(deep);
		close(src);
	} else {
		fill(mod, first, count);
	}
	close(mod);
	close(pkg);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		(void)fprintf(stderr, "usage: make_tree DIR FILES REPOS\n");
		return 2;
	}

	unsigned files = (unsigned)strtoul(argv[2], NULL, 10);
	unsigned repos = (unsigned)strtoul(argv[3], NULL, 10);
	unsigned dirs = (files + PER_DIR - 1) / PER_DIR;
	unsigned step = repos ? dirs / repos : 0;
	int root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		die(argv[1]);
	if (repos > dirs) {
		(void)fprintf(stderr, "make_tree: more repositories than directories\n");
		return 2;
	}
	for (unsigned d = 0; d < dirs; d++) {
		unsigned first = d * PER_DIR;
		unsigned count = files - first < PER_DIR ? files - first : PER_DIR;
		int is_repo = step && d % step == 0 && d / step < repos;

		make_module(root, d, first, count, is_repo);
	}
	close(root);
	return 0;
}
