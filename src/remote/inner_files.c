/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_files.c - files for `vitrine cp`, over the link
 *
 * The acts are the native engine's (engine/native/init_file.c), done behind the same walls with the same rights; where that
 * one hands out a descriptor, this sends the bytes behind it. As much of a file goes out as it had when it was opened, and one
 * that has less meanwhile breaks off: whoever copies it must not take the half for the whole. A directory goes out as its
 * names. What comes in is written as it comes; when all of it is there, or it could not be written, the trailer says so.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/listing.h"
#include "base/num.h"
#include "remote/inner.h"

#define FILES_MAX 64 /* at once */

struct file_work {
	enum file_op op;
	mode_t mode;
	size_t n_paths; /* bytes of them in the body */
	bool is_done;   /* the act, not what follows from it */
	int fd;
	DIR *dir;
	uint64_t left;
	struct buf names;
	size_t names_at;
	int error;
};

/* ---- what goes out ---- */

static ssize_t pull_file(void *arg, void *p, size_t n)
{
	struct file_work *w = ((struct part *)arg)->file;
	ssize_t r;

	if (w->left == 0)
		return PULL_END;
	r = io_read(w->fd, p, n < w->left ? n : (size_t)w->left);
	if (r <= 0)
		return PULL_RESET;
	w->left -= (uint64_t)r;
	return r;
}

static void add_name(struct file_work *w, const struct dirent *en)
{
	char target[4096];
	ssize_t n = readlinkat(dirfd(w->dir), en->d_name, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	(void)listing_add(&w->names, en->d_name, target); /* "." and ".." are no names */
}

static ssize_t pull_names(void *arg, void *p, size_t n)
{
	struct file_work *w = ((struct part *)arg)->file;
	struct dirent *en;
	size_t left;

	if (w->names.n == w->names_at) {
		w->names.n = w->names_at = 0;
		while (w->names.n < LISTING_ENTRY && (en = readdir(w->dir)) != NULL)
			add_name(w, en);
	}
	left = w->names.n - w->names_at;
	if (left == 0)
		return PULL_END;
	n = n < left ? n : left;
	memcpy(p, w->names.p + w->names_at, n);
	w->names_at += n;
	return (ssize_t)n;
}

static int answer(struct part *part, int error)
{
	struct head h = { .status = 200 };

	head_add(&h, "errno", "%d", error);
	part->kind = PART_DONE;
	return stream_respond(part->stream, &h, NULL, false);
}

static int answer_open(struct part *part)
{
	struct file_work *w = part->file;
	struct head h = { .status = 200 };
	struct stat st;

	if (fstat(w->fd, &st) < 0)
		return answer(part, errno);
	if (S_ISDIR(st.st_mode)) {
		w->dir = fdopendir(w->fd);
		if (w->dir == NULL)
			return answer(part, errno);
		w->fd = FD_NONE;
		w->names = BUF(4 * LISTING_ENTRY);
	}
	w->left = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	head_add(&h, "errno", "0");
	head_add(&h, "mode", "%u", st.st_mode);
	head_add(&h, "size", "%llu", (unsigned long long)w->left);
	return stream_respond(part->stream, &h, w->dir ? pull_names : pull_file, false);
}

static int answer_create(struct part *part)
{
	struct head h = { .status = 200 };

	head_add(&h, "errno", "0");
	stream_widen(part->stream, WIDE_STDIO);
	return stream_respond(part->stream, &h, NULL, true);
}

/* ---- what comes ---- */

static int act(struct part *part)
{
	struct file_work *w = part->file;
	int r = session_file(w->op, w->mode, part->body.p, part->body.n, &w->fd);

	w->is_done = true;
	if (r < 0 || w->fd < 0)
		return answer(part, -r);
	return w->op == FILE_OPEN ? answer_open(part) : answer_create(part);
}

int file_ask(struct part *part, const struct head *h, const char *path)
{
	struct server *sv = part->server;
	uint64_t op, mode, n;
	struct err ignored;

	if (!sv->is_locked || num_parse(path, 1, FILE_OP_COUNT_ - 1, &op, &ignored) < 0 ||
	    head_number(h, "mode", 07777, &mode) < 0 ||
	    head_number(h, "paths", FILE_PATHS, &n) < 0 || n == 0)
		return -EBADMSG;
	if (sv->n_files == FILES_MAX)
		return answer(part, EMFILE);
	sv->n_files++;
	part->kind = PART_FILE;
	part->file = mem_new(1, sizeof(*part->file));
	*part->file = (struct file_work){ .op = (enum file_op)op,
					  .mode = (mode_t)mode,
					  .n_paths = (size_t)n,
					  .fd = FD_NONE,
					  .names = BUF(0) };
	return 0;
}

int file_data(struct part *part, const void *p, size_t n)
{
	struct file_work *w = part->file;
	size_t want = w->is_done ? 0 : w->n_paths - part->body.n;
	int r = 0;

	stream_consumed(part->stream, n);
	want = want < n ? want : n;
	if (want > 0) {
		buf_add(&part->body, p, want);
		if (part->body.n == w->n_paths)
			r = act(part);
	}
	if (r < 0 || want == n)
		return r;
	if (part->kind == PART_DONE) /* refused: what was on its way is not for us any more */
		return 0;
	if (w->op != FILE_CREATE || w->fd < 0)
		return -EBADMSG;
	if (w->error == 0)
		w->error = -io_write_all(w->fd, (const char *)p + want, n - want);
	return 0;
}

int file_end(struct part *part)
{
	struct file_work *w = part->file;
	struct head h = { 0 };

	if (!w->is_done)
		return -EBADMSG;
	if (w->op != FILE_CREATE)
		return 0;
	head_add(&h, "errno", "%d", w->error);
	fd_close(take_fd(w->fd));
	return stream_trailers(part->stream, &h);
}

void file_gone(struct part *part)
{
	struct file_work *w = part->file;

	if (w == NULL)
		return;
	part->server->n_files--;
	if (w->dir)
		(void)closedir(w->dir);
	fd_close(w->fd);
	buf_done(&w->names);
	free(w);
	part->file = NULL;
}
