/* SPDX-License-Identifier: Apache-2.0 */
/* cli/image.c - see image.h */
#include "cli/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/program.h"
#include "plan/plan.h"

#define PART ".part-"
#define SECONDS 3600

static int make_part(struct bench *b, const char *dir, struct err *e)
{
	uint64_t n = 0;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return err_sys(e, "getrandom");
	b->part = mem_fmt("%s/" PART "%016llx", dir, (unsigned long long)n);
	return mkdir(b->part, 0700) < 0 ? err_sys(e, "'%s'", b->part) : 0;
}

int bench_more(const struct bench *b, struct bench *ret, struct err *e)
{
	*ret = BENCH_NONE;
	ret->state_dir = b->state_dir;
	return make_part(ret, b->dir, e);
}

int bench_open(struct bench *b, const char *state_dir, struct err *e)
{
	_free_ char *lock = NULL;
	int r;

	b->state_dir = state_dir;
	b->dir = mem_fmt("%s/images", state_dir);
	r = path_make(b->dir, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", b->dir, strerrordesc_np(-r));
	lock = mem_fmt("%s/.lock", b->dir);
	b->lock = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->lock < 0 || flock(b->lock, LOCK_EX) < 0)
		return err_sys(e, "'%s'", lock);
	bench_clean(state_dir, b->dir);
	bench_watch(b);
	return make_part(b, b->dir, e);
}

/* For an ordinary user it stays theirs, whom that root knows. */
int bench_give(const struct bench *b, struct err *e)
{
	return geteuid() == 0 && chown(b->part, PLAN_ROOT_SUBIDS, PLAN_ROOT_SUBIDS) < 0
		       ? err_sys(e, "'%s'", b->part)
		       : 0;
}

#define BENCH_LINKS 4 /* of image_view_path() */

void bench_close(struct bench *b)
{
	struct err ignored;

	if (b->part)
		(void)workshop_remove(b->state_dir, b->part, &ignored);
	for (int i = 0; b->part && i < BENCH_LINKS; i++) {
		_free_ char *link = mem_fmt("%s.link%d", b->part, i);

		(void)unlink(link); /* there need be none */
	}
	bench_unwatch(b);
	free(b->part);
	free(b->dir);
	fd_close(b->lock);
	*b = BENCH_NONE;
}

static void own_text(struct image_job *j, char *take_text)
{
	bug_on(j->n_owned == ARRAY_LEN(j->owned));
	j->owned[j->n_owned++] = take_text;
}

int image_view_path(struct image_job *j, const struct bench *b, const char *path,
		    const char *inside, struct err *e)
{
	if (strchr(path, ':') == NULL) {
		image_view(j, mem_fmt("%s:%s:ro", path, inside));
		return 0;
	}
	/* A view is HOST:INSIDE:MODE; a link has a name without ':'. The bench removes it. */
	for (int i = 0; i < BENCH_LINKS; i++) {
		_free_ char *link = mem_fmt("%s.link%d", b->part, i);

		if (symlink(path, link) == 0) {
			image_view(j, mem_fmt("%s:%s:ro", link, inside));
			return 0;
		}
		if (errno != EEXIST)
			return err_sys(e, "'%s'", link);
	}
	return err_set(e, ERR_BUG, E2BIG, "too many links beside '%s'", b->part);
}

void image_view(struct image_job *j, char *take_text)
{
	bug_on(j->n_views + 2 >= ARRAY_LEN(j->views));
	own_text(j, take_text);
	j->views[j->n_views++] = take_text;
}

void image_word(struct image_job *j, const char *word)
{
	bug_on(j->n_words + 1 >= ARRAY_LEN(j->words));
	j->words[j->n_words++] = word;
}

void image_own_word(struct image_job *j, char *take_word)
{
	own_text(j, take_word);
	image_word(j, take_word);
}

void image_job_done(struct image_job *j)
{
	for (size_t i = 0; i < j->n_owned; i++)
		free(j->owned[i]);
	j->n_owned = 0;
}

/* Its complaints are for people, so they go the way of all others: into one message. */
int image_run(struct image_job *j, int out, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF(64 * KIB);
	_free_ char *found = NULL, *program = NULL, *last = NULL;
	struct job job = {
		.state_dir = j->state_dir,
		.seconds = SECONDS,
		.in = FD_NONE,
		.out = out,
		.is_as_root = j->is_as_root,
	};
	int pair[2], status, r = program_find("vitrine-image", &found, e);
	pid_t pid;

	if (r == 0)
		r = path_real(found, &program, e);
	if (r < 0)
		return r;
	image_view(j, mem_fmt("%s:/vitrine-image:ro", program));
	memcpy(job.views, j->views, sizeof(job.views));
	j->words[j->n_words] = NULL;
	job.argv = j->words;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	job.err = pair[1];
	pid = workshop_start(&job, e);
	fd_close(pair[1]);
	if (pid < 0) {
		fd_close(pair[0]);
		return pid;
	}
	r = workshop_listen((struct listen[]){ { pair[0], &said, true } }, 1, SECONDS + 60, e);
	status = workshop_wait(pid);
	if (r < 0 || status == 0)
		return r;
	last = workshop_last_line(&said);
	return err_set(e, ERR_SYSTEM, EBADMSG, "%s",
		       last[0] ? last : "vitrine-image failed without a word");
}

bool image_is_tag(const char *tag)
{
	size_t n = strspn(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:"
			       "-");

	return n > 0 && n <= 128 && tag[n] == '\0' && !strchr("._:-", tag[0]);
}

bool image_is_saved(const char *state_dir, const char *tag)
{
	_free_ char *kept = mem_fmt("%s/images/%s", state_dir, tag);

	return image_is_tag(tag) && access(kept, F_OK) == 0;
}

char *template_name(const char *image)
{
	char *name = mem_str(image);

	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '-';
	return name;
}

int template_find(const char *state_dir, const char *name, char **ret_root, struct err *e)
{
	_free_ char *own = template_name(name);
	_free_ char *root = mem_fmt("%s/templates/%s/root", state_dir, own);
	struct stat st;

	if (!image_is_tag(own) || lstat(root, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no template '%.64s'; 'vitrine template ls' lists them, "
			       "'vitrine template pull %.64s' takes one from a registry, "
			       "--load-local-template from docker or podman of this host",
			       name, name);
	*ret_root = take(root);
	return 0;
}

/* Older ones have no id: then it is when they were made. */
char *template_mark(const char *root, bool is_rooted)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_free_ char *dir = path_parent(root), *path = mem_fmt("%s/info", dir);
	const char *kind = is_rooted ? "sudo" : "plain";
	const struct json *id = NULL;
	uint64_t created = 0;
	struct err ignored;

	if (io_read_file(path, &b, &ignored) < 0 ||
	    json_parse(buf_cstr(&b), b.n, &doc, &ignored) < 0 || doc.root->type != JSON_OBJECT)
		return mem_fmt("%s-", kind);
	id = json_get(doc.root, "id");
	(void)json_u64(json_get(doc.root, "created"), &created);
	if (id && id->type == JSON_STRING && strlen(id->text) == 16 &&
	    strspn(id->text, "0123456789abcdef") == 16)
		return mem_fmt("%s-%s", kind, id->text);
	return mem_fmt("%s-%llu", kind, (unsigned long long)created);
}

int template_is_rooted(const char *root, uid_t own, bool *ret, struct err *e)
{
	struct stat st;

	if (lstat(root, &st) < 0)
		return err_sys(e, "'%s'", root);
	*ret = st.st_uid != own;
	return 0;
}

int template_of_mark(const char *state_dir, uid_t own, const char *mark, char **ret_root,
		     struct err *e)
{
	_free_ char *dir = mem_fmt("%s/templates", state_dir), *found = NULL;
	DIR *d = opendir(dir);
	struct dirent *en;

	while (d && found == NULL && (en = readdir(d)) != NULL) {
		_free_ char *root = NULL, *its = NULL;
		struct err ignored;
		bool is_rooted = false;

		if (template_find(state_dir, en->d_name, &root, &ignored) < 0 ||
		    template_is_rooted(root, own, &is_rooted, &ignored) < 0)
			continue;
		its = template_mark(root, is_rooted);
		if (str_eq(its, mark))
			found = take(root);
	}
	if (d)
		(void)closedir(d);
	*ret_root = take(found);
	return *ret_root ? 0
			 : err_set(e, ERR_NOTFOUND, ENOENT,
				   "the template that it was installed above is not there any "
				   "more");
}
