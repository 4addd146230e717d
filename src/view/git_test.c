/* SPDX-License-Identifier: Apache-2.0 */
/* Is a directory a repository? Git is asked as well, about directories that a generator makes from every kind of HEAD,
 * objects, refs and commondir. Where git says yes we must; where only we say yes, one of the reasons in git.c must hold. */
#include <spawn.h>

#include "view/git.h"
#include "view/testtree.h"
#include "view/walk.h"

#define CASES 2500

struct rng {
	uint64_t s;
};

static unsigned pick(struct rng *r, unsigned n)
{
	r->s = r->s * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(r->s >> 33) % n;
}

#define HEX40 "0123456789abcdefABCDEF0123456789abcdef01"

static const char *const heads[] = {
	"ref: refs/heads/m\n",
	"ref: refs/heads/m",
	"ref:refs/x",
	"ref: \t \r\n refs/x\n",
	HEX40 "\n",
	HEX40 "0123456789abcdef01234567",
	HEX40 "zzz",
	"",
	"x",
	"ref: heads/m\n",
	"ref:  refs",
	"ref refs/heads/m\n",
	"REF: refs/heads/m\n",
	" ref: refs/heads/m\n",
	"0123456789abcdef0123456789abcdef0123456\n",
	"g123456789abcdef0123456789abcdef01234567\n",
	"ref: refs/\n",
	"ref:\v refs/heads/m\n",
};

/* Names a HEAD of another kind. Returns false where git's answer may depend on who asks. */
static bool put_head(const struct tree *t, const char *dir, struct rng *r)
{
	_free_ char *path = mem_fmt("%s/HEAD", dir);
	unsigned kind = pick(r, 24);

	if (kind < 16) {
		tree_file(t, path, heads[pick(r, pick(r, 2) ? 7 : ARRAY_LEN(heads))]);
	} else if (kind == 16) {
		tree_dir(t, path);
	} else if (kind == 17) {
		tree_link(t, "refs/heads/none", path);
	} else if (kind == 18) {
		tree_link(t, "../good-head", path);
	} else if (kind == 19) {
		tree_link(t, "refs", path);
	} else if (kind == 20) {
		tree_link(t, "refs/", path);
	} else if (kind == 21) {
		tree_file(t, path, "ref: refs/heads/m\n");
		bug_on(fchmodat(t->fd, path, 0, 0) < 0);
		return false;
	} /* else none */
	return true;
}

/* objects or refs. */
static bool put_dir(const struct tree *t, const char *dir, const char *name, struct rng *r)
{
	static const mode_t modes[] = { 0755, 0700, 0111, 0100, 0010, 0001, 0600, 0644, 0 };
	static const char *const targets[] = { "../good-dir", "../good-head", "../good-program",
					       "nowhere" };
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	mode_t mode = modes[pick(r, ARRAY_LEN(modes))];
	unsigned kind = pick(r, 12);

	if (kind == 0)
		return true;
	if (kind < 7) {
		tree_dir(t, path);
		if (kind < 5)
			return true;
	} else if (kind < 9) {
		tree_file(t, path, "");
	} else if (kind < 11) {
		tree_link(t, targets[pick(r, ARRAY_LEN(targets))], path);
		return false;
	} else {
		bug_on(mkfifoat(t->fd, path, 0600) < 0);
	}
	bug_on(fchmodat(t->fd, path, mode, 0) < 0);
	return false;
}

static bool put_commondir(const struct tree *t, const char *dir, struct rng *r)
{
	static const char *const texts[] = { "../good-common\n", "../good-common", "../none\n",
					     ".\n", "" };
	_free_ char *path = mem_fmt("%s/commondir", dir);
	unsigned kind = pick(r, 16);

	if (kind < 4)
		tree_file(t, path, texts[pick(r, ARRAY_LEN(texts))]);
	else if (kind == 4)
		tree_dir(t, path);
	else if (kind == 5)
		tree_link(t, "nowhere", path);
	else
		return true;
	return false;
}

static bool git_says(const char *path, char *const *env)
{
	static char *const argv[] = { (char *)(uintptr_t) "git", (char *)(uintptr_t) "rev-parse",
				      (char *)(uintptr_t) "--git-dir", NULL };
	posix_spawn_file_actions_t fa;
	int status = -1;
	pid_t pid;

	bug_on(posix_spawn_file_actions_init(&fa) ||
	       posix_spawn_file_actions_addchdir_np(&fa, path));
	for (int i = 0; i < 3; i++)
		bug_on(posix_spawn_file_actions_addopen(&fa, i, "/dev/null", O_RDWR, 0));
	bug_on(posix_spawnp(&pid, "git", &fa, NULL, argv, env) != 0 ||
	       waitpid(pid, &status, 0) < 0);
	(void)posix_spawn_file_actions_destroy(&fa);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool we_say(const struct tree *t, const char *dir)
{
	_close_ int fd = openat(t->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned bits = 0;
	bool is;

	bug_on(fd < 0);
	for (size_t i = 0; i < 4; i++) {
		unsigned char type = walk_type(fd, git_names[i].text);

		if (type != DT_UNKNOWN)
			bits |= git_bits_of_type(git_names[i].bits, type);
	}
	is = git_is_repo(fd);
	/* The walk asks the names first. */
	CHECK(!is || git_bits_are_repo(bits));
	return is;
}

TEST(as_git_says)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	_free_ char *ceiling = mem_fmt("GIT_CEILING_DIRECTORIES=%s", t.path);
	_free_ char *path_var = mem_fmt("PATH=%s", getenv("PATH"));
	char *const env[] = { ceiling, path_var, (char *)(uintptr_t) "GIT_CONFIG_GLOBAL=/dev/null",
			      (char *)(uintptr_t) "GIT_CONFIG_NOSYSTEM=1", NULL };
	struct rng r = { .s = 20 };
	unsigned yes = 0, only_we = 0;

	tree_file(&t, "good-head", "ref: refs/heads/m\n");
	tree_file(&t, "good-program", "x");
	bug_on(fchmodat(t.fd, "good-program", 0755, 0) < 0);
	tree_dir(&t, "good-dir");
	tree_dir(&t, "good-common/objects");
	tree_dir(&t, "good-common/refs");
	for (unsigned i = 0; i < CASES; i++) {
		_free_ char *dir = mem_fmt("%u", i), *path = tree_path(&t, dir);
		bool is_plain, by_git, by_us;

		tree_dir(&t, dir);
		is_plain = put_head(&t, dir, &r);
		is_plain = put_dir(&t, dir, "objects", &r) && is_plain;
		is_plain = put_dir(&t, dir, "refs", &r) && is_plain;
		is_plain = put_commondir(&t, dir, &r) && is_plain;
		by_git = git_says(path, env);
		by_us = we_say(&t, dir);
		yes += by_git;
		only_we += by_us && !by_git;
		if ((by_git && !by_us) || (by_us && !by_git && is_plain)) {
			(void)fprintf(stderr, "case %u: git says %d, we say %d\n", i, by_git,
				      by_us);
			CHECK(by_git == by_us);
		}
	}
	(void)fprintf(stderr, "%u of %d are repositories to git, %u more to us\n", yes, CASES,
		      only_we);
	CHECK(yes > CASES / 20); /* the generator makes both */
}
TEST_MAIN()
