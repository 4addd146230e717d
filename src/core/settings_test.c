/* SPDX-License-Identifier: Apache-2.0 */
/* core/settings_test.c - files on disk: which are taken, which are refused, and what trust is tied to
 *
 * Each case works in a directory of its own: ws/ is the workspace, cfg/ the configuration directory.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "core/settings.h"
#include "core/trust.h"

struct bench {
	char root[64];
	char *ws, *cfg, *project, *user, *outside;
	struct err e;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .root = "/tmp/settings_test.XXXXXX" };
	CHECK(mkdtemp(b->root) != NULL);
	b->ws = mem_fmt("%s/ws", b->root);
	b->cfg = mem_fmt("%s/cfg", b->root);
	b->project = mem_fmt("%s/ws/.vitrine.jsonc", b->root);
	b->user = mem_fmt("%s/cfg/policy.jsonc", b->root);
	b->outside = mem_fmt("%s/outside", b->root);
	CHECK(mkdir(b->ws, 0755) == 0);
}

static void bench_done(struct bench *b)
{
	CHECK(nftw(b->root, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
	free(b->ws);
	free(b->cfg);
	free(b->project);
	free(b->user);
	free(b->outside);
}

static void put(const char *path, const char *text, mode_t mode)
{
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
	CHECK(fchmod(fd, mode) == 0);
}

static int load_with(struct bench *b, struct policy *p, const char *policy_file)
{
	struct settings_in in = { .config_dir = b->cfg,
				  .workspace = b->ws,
				  .policy_file = policy_file,
				  .use_project = true };

	b->e = ERR_INIT;
	policy_init(p);
	return settings_load(p, &in, &b->e);
}

static int load(struct bench *b)
{
	_cleanup_(policy_done) struct policy p;

	return load_with(b, &p, NULL);
}

static int pin(struct bench *b, const char *text)
{
	return trust_add(b->cfg, b->project, text, strlen(text), &b->e);
}

TEST(nothing_there)
{
	_cleanup_(bench_done) struct bench b;

	bench_init(&b);
	CHECK_INT(load(&b), 0);
	CHECK_STR(b.e.msg, "");
}

TEST(layers_in_order)
{
	_cleanup_(bench_done) struct bench b;
	_cleanup_(policy_done) struct policy p;

	bench_init(&b);
	CHECK(mkdir(b.cfg, 0700) == 0);
	put(b.user, "{\"limits\":{\"memory\":\"2g\",\"pids\":500}}", 0600);
	put(b.project, "{\"limits\":{\"memory\":\"1g\"}}", 0644);
	CHECK_INT(load_with(&b, &p, NULL), 0);
	CHECK_STR(b.e.msg, "");
	CHECK_INT(p.limits[LIMIT_MEMORY].max, GIB);
	CHECK_INT(p.limits[LIMIT_MEMORY].origin, LAYER_PROJECT);
	CHECK_INT(p.limits[LIMIT_PIDS].max, 500);
	CHECK_INT(p.limits[LIMIT_PIDS].origin, LAYER_USER);
}

TEST(user_file_of_others)
{
	_cleanup_(bench_done) struct bench b;

	bench_init(&b);
	CHECK(mkdir(b.cfg, 0700) == 0);
	put(b.user, "{}", 0666);
	CHECK_INT(load(&b), -EPERM);
	CHECK(strstr(b.e.msg, "can be written by others") != NULL);
	put(b.user, "{}", 0644);
	CHECK_INT(load(&b), 0);
	if (geteuid() == 0) { /* only root can give a file away */
		CHECK(chown(b.user, 12345, 12345) == 0);
		CHECK_INT(load(&b), -EPERM);
		CHECK(strstr(b.e.msg, "belongs to another user") != NULL);
	}
	CHECK(unlink(b.user) == 0);
	CHECK(mkfifo(b.user, 0600) == 0); /* must neither hang nor be read */
	CHECK_INT(load(&b), -EINVAL);
}

TEST(project_must_be_a_plain_file)
{
	_cleanup_(bench_done) struct bench b;
	_free_ char *elsewhere = NULL;

	bench_init(&b);
	elsewhere = mem_fmt("%s/elsewhere", b.root);
	put(elsewhere, "{}", 0600);
	CHECK(symlink(elsewhere, b.project) == 0);
	CHECK_INT(load(&b), -ELOOP);
	CHECK(strstr(b.e.msg, "is a symbolic link") != NULL);
	CHECK(unlink(b.project) == 0);
	CHECK(mkfifo(b.project, 0600) == 0);
	CHECK_INT(load(&b), -EINVAL);
	CHECK(unlink(b.project) == 0);
	CHECK(mkdir(b.project, 0700) == 0);
	CHECK(load(&b) < 0);
}

static const char widening[] = "{\"files\":{\"read\":[\"/opt\"]}}";

TEST(trust_is_tied_to_content_and_path)
{
	_cleanup_(bench_done) struct bench b;
	_cleanup_(policy_done) struct policy p;

	bench_init(&b);
	put(b.project, widening, 0644);
	CHECK_INT(load(&b), -EINVAL);
	CHECK_STR(b.e.msg, ".vitrine.jsonc:1:19: files.read would widen the policy; a project file "
			   "can only tighten. "
			   "Run 'vitrine trust' to allow exactly this content");
	CHECK_INT(pin(&b, widening), 0);
	CHECK_INT(load_with(&b, &p, NULL), 0);
	CHECK_INT(p.read.n, 1);
	put(b.project, "{\"files\":{\"read\":[\"/opt\"]} }", 0644); /* one space more */
	CHECK_INT(load(&b), -EINVAL);
	put(b.project, widening, 0644);
	CHECK_INT(load(&b), 0);
	CHECK_INT(trust_check(b.cfg, "/other/.vitrine.jsonc", widening, strlen(widening), &b.e), 0);
	CHECK_INT(trust_check(b.cfg, b.project, widening, strlen(widening), &b.e), 1);
	CHECK_INT(trust_remove(b.cfg, b.project, &b.e), 1);
	CHECK_INT(trust_remove(b.cfg, b.project, &b.e), 0);
	CHECK_INT(load(&b), -EINVAL);
}

TEST(trust_list_on_disk)
{
	_cleanup_(bench_done) struct bench b;
	_cleanup_(buf_done) struct buf list = BUF(MIB);
	_free_ char *path = NULL, *longer = NULL;
	struct stat st;

	bench_init(&b);
	path = mem_fmt("%s/trusted", b.cfg);
	longer = mem_fmt("/x%s", b.project); /* ends like the other, and is another */
	CHECK_INT(pin(&b, "one"), 0);
	CHECK_INT(trust_add(b.cfg, longer, "two", 3, &b.e), 0);
	CHECK_INT(pin(&b, "three"), 0);
	CHECK_INT(trust_check(b.cfg, b.project, "one", 3, &b.e), 0); /* replaced */
	CHECK_INT(trust_check(b.cfg, b.project, "three", 5, &b.e), 1);
	CHECK_INT(trust_check(b.cfg, longer, "two", 3, &b.e), 1);
	CHECK_INT(trust_read(b.cfg, &list, &b.e), 0);
	CHECK_INT(list.n, (size_t)2 * (64 + 2 + 1) + strlen(longer) + strlen(b.project));
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(stat(b.cfg, &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(chmod(path, 0620) == 0);
	CHECK_INT(trust_check(b.cfg, b.project, "three", 5, &b.e), -EPERM);
	CHECK_INT(pin(&b, "four"), -EPERM);
	CHECK(chmod(path, 0600) == 0);
	CHECK(chmod(b.cfg, 0777) == 0);
	CHECK_INT(trust_check(b.cfg, b.project, "three", 5, &b.e), -EPERM);
	CHECK(chmod(b.cfg, 0700) == 0);
	CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0);
	CHECK(trust_check(b.cfg, b.project, "three", 5, &b.e) < 0);
}

static int mkdir_in(const char *dir, const char *name)
{
	_free_ char *path = path_join(dir, name);

	return mkdir(path, 0700);
}

TEST(configuration_inside_the_workspace)
{
	_cleanup_(bench_done) struct bench b;
	char *cfg;

	bench_init(&b);
	cfg = mem_fmt("%s/.config/vitrine", b.ws);
	free(b.cfg);
	b.cfg = cfg;
	CHECK_INT(load(&b), 0); /* not there: nothing to be fooled by */
	CHECK_INT(pin(&b, widening), -EPERM);
	CHECK(strstr(b.e.msg, "lies inside the workspace") != NULL);
	CHECK(access(b.cfg, F_OK) < 0); /* and nothing was made */
	CHECK_INT(mkdir_in(b.ws, ".config"), 0);
	CHECK_INT(mkdir_in(b.ws, ".config/vitrine"), 0);
	CHECK_INT(load(&b), -EPERM);
	CHECK(symlink(b.cfg, b.outside) == 0); /* the same by way of a link */
	free(b.cfg);
	b.cfg = mem_str(b.outside);
	CHECK_INT(pin(&b, widening), -EPERM);
	CHECK_INT(load(&b), -EPERM);
}

TEST(named_policy)
{
	_cleanup_(bench_done) struct bench b;
	_cleanup_(policy_done) struct policy p;
	_free_ char *outside = NULL, *inside = NULL, *none = NULL;

	bench_init(&b);
	outside = mem_fmt("%s/p.jsonc", b.root);
	inside = mem_fmt("%s/p.jsonc", b.ws);
	none = mem_fmt("%s/none.jsonc", b.root);
	CHECK(mkdir(b.cfg, 0700) == 0);
	put(b.user, "{\"limits\":{\"memory\":\"2g\"}}", 0600);
	put(outside, widening, 0600);
	put(inside, widening, 0600);
	CHECK_INT(load_with(&b, &p, outside), 0);
	CHECK(p.read.n == 1 && p.read.v[0].origin == LAYER_USER);
	CHECK(!p.limits[LIMIT_MEMORY].is_set); /* in place of the user's own file */
	policy_done(&p);
	CHECK_INT(load_with(&b, &p, inside), -EINVAL); /* what is inside could have written it */
	CHECK(strstr(b.e.msg, "would widen") != NULL);
	policy_done(&p);
	CHECK_INT(load_with(&b, &p, none), -ENOENT);
	CHECK_INT(b.e.kind, ERR_USAGE);
}

TEST_MAIN()
