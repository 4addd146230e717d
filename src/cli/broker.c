/* SPDX-License-Identifier: Apache-2.0 */
/* cli/broker.c - the verb `broker`: what waits for a person, and the answer
 *
 * A broker that needs an answer has written its question below the sandbox's folder (broker/approve.c) and looks for a
 * file beside it. Both are outside; nothing inside can write either. A yes carries the hash of the question that was
 * shown: ID.shown is what `show` printed last, or the person says it with --shown.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"
#include "base/sha256.h"
#include "cli/cli.h"
#include "cli/pending.h"
#include "cli/table.h"
#include "core/facts.h"

enum { OPT_SHOWN = 1 };

const struct opt broker_opts[] = {
	{ "shown", 0, "HASH", "approve: only if this is the hash that 'show' printed", OPT_SHOWN },
	TABLE_OPTS("ls: print JSON", "ls: print the ids only"),
	{ NULL, 0, NULL, NULL, 0 },
};

static int read_question(int dir, const char *id, struct buf *out, struct err *e)
{
	_close_ int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, ERR_NOTFOUND, ENOENT, "nothing waits as '%.20s'", id)
		      : io_read_fd(fd, out, e);
}

static const struct column columns[] = {
	{ "id", "Id", "ID", COLUMN_TEXT },
	{ "sandbox", "Sandbox", "SANDBOX", COLUMN_TEXT },
	{ "title", "Title", "TITLE", COLUMN_TEXT },
};

static void add_row(struct table *t, int dir, const char *name, const char *id)
{
	_cleanup_(buf_done) struct buf text = BUF(8 * MIB);
	struct err e = ERR_INIT;
	struct cell *c;

	if (read_question(dir, id, &text, &e) < 0 || text.n == 0)
		return;
	text.p[strcspn(text.p, "\n")] = '\0';
	c = table_row(t);
	c[0].text = mem_str(id);
	c[1].text = mem_str(name);
	c[2].text = mem_str(text.p);
}

static void list_one(const struct host *h, const char *name, struct table *t)
{
	int dir = pending_open(h->state_dir, name);
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (pending_is_id(en->d_name))
			add_row(t, dirfd(d), name, en->d_name);
	if (d)
		(void)closedir(d);
}

static int list(const struct host *h, struct table_how *how, struct err *e)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_free_ char *path = mem_fmt("%s/sandboxes", h->state_dir);
	DIR *d = opendir(path);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (en->d_name[0] != '.')
			list_one(h, en->d_name, &t);
	if (d)
		(void)closedir(d);
	/* For people the words that 'approve' wants, in their order, and no head: most often there is nothing. */
	if (!how->as_json && !table_is_asked(how))
		how->format = "{{.Sandbox}}  {{.Id}}  {{.Title}}";
	return table_show(&t, how, e);
}

struct question {
	int dir;
	const char *name, *id;
	struct buf text;
	char hash[SHA256_HEX_BYTES];
};

static void question_done(struct question *q)
{
	buf_done(&q->text);
	fd_close(q->dir);
}

static int question_open(struct question *q, const struct host *h, const char *name, const char *id,
			 struct err *e)
{
	int r;

	*q = (struct question){ .dir = pending_open(h->state_dir, name),
				.name = name,
				.id = id,
				.text = BUF(8 * MIB) };
	r = pending_is_id(id) && q->dir >= 0
		    ? read_question(q->dir, id, &q->text, e)
		    : err_set(e, ERR_NOTFOUND, ENOENT, "nothing of '%.64s' waits as '%.20s'", name,
			      id);
	if (r == 0)
		sha256_hex(buf_cstr(&q->text), q->text.n, q->hash);
	return r;
}

/* One file beside the question. */
static int put_beside(const struct question *q, const char *suffix, int how, const char *text,
		      struct err *e)
{
	_free_ char *file = mem_fmt("%s%s", q->id, suffix);
	_close_ int fd =
		openat(q->dir, file, O_WRONLY | O_CREAT | how | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || io_write_all(fd, text, strlen(text)) < 0 ? err_sys(e, "'%s'", file) : 0;
}

static int show(const struct question *q, struct err *e)
{
	int r = cli_print(&q->text, e);

	if (r == 0)
		(void)fprintf(stderr,
			      "to approve exactly this: vitrine broker approve --shown %s %s %s\n",
			      q->hash, q->name, q->id);
	return r < 0 ? r : put_beside(q, ".shown", O_TRUNC, q->hash, e);
}

static bool was_shown(const struct question *q)
{
	_cleanup_(buf_done) struct buf said = BUF(KIB);
	_free_ char *file = mem_fmt("%s.shown", q->id);
	_close_ int fd = openat(q->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	return fd >= 0 && io_read_fd(fd, &said, &ignored) == 0 && str_eq(buf_cstr(&said), q->hash);
}

/* The file has its name when it is whole: who waits reads it at once. */
static int allow(const struct question *q, struct err *e)
{
	_free_ char *part = mem_fmt("%s.allowing", q->id), *file = mem_fmt("%s.allow", q->id);
	int r = put_beside(q, ".allowing", O_TRUNC, q->hash, e);

	return r == 0 && renameat(q->dir, part, q->dir, file) < 0 ? err_sys(e, "'%s'", file) : r;
}

static int approve(const struct question *q, const char *shown, struct err *e)
{
	int r;

	if (shown && !str_eq(shown, q->hash))
		return err_set(e, ERR_CONFLICT, ESTALE,
			       "what waits as '%s' is not what was shown as %.20s...; 'vitrine "
			       "broker "
			       "show %s %s' shows it",
			       q->id, shown, q->name, q->id);
	if (shown || was_shown(q))
		return allow(q, e);
	r = show(q, e);
	if (r == 0 && !cli_is_agreed("approve this?"))
		r = err_set(e, ERR_CONFLICT, ESTALE,
			    "it was not shown before; it is shown above, and the same command "
			    "again "
			    "approves it");
	return r < 0 ? r : allow(q, e);
}

static int answer(const struct host *h, const char *const *words, const char *shown, struct err *e)
{
	_cleanup_(question_done) struct question q = { .dir = FD_NONE };
	int r = question_open(&q, h, words[1], words[2], e);

	if (r < 0)
		return r;
	if (str_eq(words[0], "show"))
		return show(&q, e);
	return str_eq(words[0], "approve") ? approve(&q, shown, e)
					   : put_beside(&q, ".deny", O_EXCL, "", e);
}

int cmd_broker(int argc, char **argv, struct err *e)
{
	_cleanup_(host_done) struct host h = { .ws_fd = FD_NONE };
	const char *words[4] = { NULL }, *shown = NULL;
	struct table_how how = { 0 };
	size_t n = 0;
	struct opts o;
	int r;

	/* Options may stand before and behind the words. */
	opts_init(&o, broker_opts, argc, argv);
	for (;;) {
		while ((r = opts_next(&o, e)) > 0)
			if (!table_opt(&how, &o, r) && r == OPT_SHOWN)
				shown = o.value;
		if (r < 0 || o.at >= argc || n == ARRAY_LEN(words))
			break;
		words[n++] = argv[o.at++];
	}
	if (r == 0)
		r = host_init(&h, NULL, e);
	if (r < 0)
		return r;
	if (n == 0 || (n == 1 && str_eq(words[0], "ls")))
		return list(&h, &how, e);
	if (n == 3 && strchr(words[1], '/') == NULL && words[1][0] != '.' &&
	    (str_eq(words[0], "show") || str_eq(words[0], "approve") || str_eq(words[0], "deny")))
		return answer(&h, words, shown, e);
	return err_set(e, ERR_USAGE, EINVAL, "broker ls, or broker show|approve|deny NAME ID");
}
