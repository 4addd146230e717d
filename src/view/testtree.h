/* SPDX-License-Identifier: Apache-2.0 */
/* view/testtree.h - a directory tree to try things on; for the tests of this folder only */
#ifndef VITRINE_VIEW_TESTTREE_H
#define VITRINE_VIEW_TESTTREE_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "view/view.h"

struct tree {
	char path[256];
	int fd;
};

static UNUSED struct tree tree_new(void)
{
	const char *tmp = getenv("TMPDIR");
	struct tree t = { .fd = FD_NONE };

	(void)snprintf(t.path, sizeof(t.path), "%s/view-test-XXXXXX",
		       tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	bug_on(mkdtemp(t.path) == NULL);
	t.fd = open(t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bug_on(t.fd < 0);
	return t;
}

static UNUSED int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static UNUSED void tree_done(struct tree *t)
{
	fd_close(t->fd);
	(void)nftw(t->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static UNUSED char *tree_path(const struct tree *t, const char *rel)
{
	return mem_fmt("%s/%s", t->path, rel);
}

static UNUSED void tree_dir(const struct tree *t, const char *rel)
{
	bug_on(path_mkdirs(t->fd, rel, 0755) < 0);
}

static UNUSED void tree_file(const struct tree *t, const char *rel, const char *text)
{
	_free_ char *up = path_parent(rel);
	_close_ int fd = FD_NONE;

	tree_dir(t, up);
	fd = openat(t->fd, rel, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bug_on(fd < 0 || io_write_all(fd, text, strlen(text)) < 0);
}

static UNUSED void tree_link(const struct tree *t, const char *target, const char *rel)
{
	bug_on(symlinkat(target, t->fd, rel) < 0);
}

static UNUSED void tree_hard(const struct tree *t, const char *from, const char *rel)
{
	bug_on(linkat(t->fd, from, t->fd, rel, 0) < 0);
}

static UNUSED bool tree_has(const struct tree *t, const char *rel)
{
	struct stat st;

	return fstatat(t->fd, rel, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static UNUSED char *tree_text(const struct tree *t, const char *rel)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	_free_ char *path = tree_path(t, rel);
	struct err e = ERR_INIT;

	return io_read_file(path, &b, &e) < 0 ? NULL : mem_str(buf_cstr(&b));
}

/* git in the directory dir of the tree, with nothing of this machine's configuration; NULL ends the arguments. */
static UNUSED int tree_git(const struct tree *t, const char *dir, ...)
{
	const char *argv[32] = { "git",
				 "-c",
				 "protocol.file.allow=always",
				 "-c",
				 "user.name=t",
				 "-c",
				 "user.email=t@example.org",
				 "-c",
				 "init.defaultBranch=main" };
	_free_ char *path = tree_path(t, dir);
	size_t n = 9;
	va_list ap;
	int status;
	pid_t pid;

	va_start(ap, dir);
	while (n < ARRAY_LEN(argv) - 1 && (argv[n] = va_arg(ap, const char *)) != NULL)
		n++;
	va_end(ap);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)dup2(null, 0);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
		(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
		(void)setenv("HOME", path, 1);
		if (chdir(path) == 0)
			(void)execvp("git", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	bug_on(pid < 0 || waitpid(pid, &status, 0) < 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

#define GIT(t, dir, ...) CHECK_INT(tree_git((t), (dir), __VA_ARGS__, NULL), 0)

static UNUSED void policy_of(struct policy *p, const char *hide, const char *protect)
{
	*p = (struct policy){ 0 };
	for (int i = 0; i < 2; i++) {
		const char *s = i ? protect : hide;

		while (*s) {
			size_t n = strcspn(s, " ");
			_free_ char *word = mem_strn(s, n);

			if (n)
				items_add(i ? &p->protect : &p->hide, word, LAYER_FLAGS);
			s += n;
			s += *s == ' ';
		}
	}
}

static UNUSED void policy_gone(struct policy *p)
{
	items_done(&p->hide);
	items_done(&p->protect);
}

static UNUSED uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
