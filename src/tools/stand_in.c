/* SPDX-License-Identifier: Apache-2.0 */
/* tools/stand_in.c - a tool was called by its name: decide about the call, then execute the real tool
 *
 * Nothing is opened, allocated in bulk or read before the decision: a call that is the ordinary thing is one exec away
 * from the program that was meant. See judge.h for what is decided.
 */
#include <stdlib.h>
#include <time.h>

#include "base/path.h"
#include "tools/tools.h"

#define BROKER_SOCKET "/.vitrine/broker"

/* The top of the work tree, without asking git: the nearest directory above that has a .git. */
static char *find_top(const char *cwd)
{
	_free_ char *dir = mem_str(cwd);

	for (int i = 0; i < 64 && !str_eq(dir, "/"); i++) {
		_free_ char *git = path_join(dir, ".git");
		char *up;

		if (access(git, F_OK) == 0)
			return take(dir);
		up = path_parent(dir);
		free(dir);
		dir = up;
	}
	return NULL;
}

static bool is_closed(const char *top)
{
	_free_ char *config = top ? path_join(top, ".git/config") : NULL;

	return config && access(config, F_OK) == 0 && access(config, W_OK) < 0;
}

/* Uncommitted changes become a commit that a ref keeps; the work tree is not touched by that. */
static void save_git(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	_free_ char *ref = mem_fmt("refs/vitrine/saved/%lld", (long long)time(NULL));
	const char *v[64];
	int n = 0, at = judge_git_word(argc, argv);

	for (int i = 0; i < at && n < 50; i++)
		v[n++] = argv[i];
	v[n] = "stash";
	v[n + 1] = "create";
	v[n + 2] = NULL;
	if (real_run("git", v, &out) != 0 || out.n < 40)
		return; /* nothing to keep, or no repository */
	v[n] = "update-ref";
	v[n + 1] = ref;
	v[n + 2] = buf_cstr(&out);
	v[n + 3] = NULL;
	{
		_cleanup_(buf_done) struct buf none = BUF(KIB);

		if (real_run("git", v, &none) == 0)
			(void)fprintf(stderr,
				      "vitrine: uncommitted changes are kept: 'git stash apply %s' "
				      "brings them back\n",
				      ref);
	}
}

static int refuse(const char *name, const char *say)
{
	(void)fprintf(stderr, "vitrine: %s: %s\n", name, say);
	return 126;
}

int stand_in_main(const char *name, int argc, char **argv)
{
	char cwd[4096];
	const char *home = getenv("HOME");
	struct place p = { .home = home && path_is_clean(home) ? home : "/root",
			   .cwd = getcwd(cwd, sizeof(cwd)) && path_is_clean(cwd) ? cwd : "/" };
	const char *told = getenv("VITRINE_WORKSPACE");
	_free_ char *top = find_top(p.cwd);
	struct decision d;

	p.workspace = told && path_is_clean(told) ? told : top;
	p.has_broker = access(BROKER_SOCKET, F_OK) == 0;
	p.is_config_closed = str_eq(name, "git") && is_closed(top);
	argv[0] = (char *)(uintptr_t)name;
	judge(&p, argc, argv, &d);
	switch (d.act) {
	case ACT_SAVE:
		for (size_t i = 0; i < d.n_files; i++)
			(void)trash_save(p.cwd, d.files[i],
					 str_eq(name, "rm")); /* what could not be kept was said */
		break;
	case ACT_SAVE_GIT:
		save_git(argc, argv);
		break;
	case ACT_DROP:
		(void)fprintf(stderr, "vitrine: %s\n", d.say);
		memmove(argv + d.drop, argv + d.drop + 1, (size_t)(argc - d.drop) * sizeof(*argv));
		break;
	case ACT_REFUSE:
		return refuse(name, d.say);
	case ACT_PASS:
	case ACT_COUNT_:
		break;
	}
	real_exec(name, argv);
}
