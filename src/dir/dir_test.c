/* SPDX-License-Identifier: Apache-2.0 */
/* What the server of a git dir lets pass: rules by name, the judgement of a configuration, requests and nodes. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "dir/serve.h"
#include "dir/wire.h"

static struct dir_rules rules(void)
{
	struct dir_rules r = { .workspace = mem_str("/ws") };

	dir_rules_add(&r, DIR_READONLY, "info/attributes");
	dir_rules_add(&r, DIR_HIDDEN, "secret");
	dir_rules_add(&r, DIR_PLAIN, "modules/m");
	dir_rules_add(&r, DIR_READONLY, "modules/m/commondir");
	return r;
}

TEST(every_name_has_one_kind)
{
	static const struct {
		const char *rel;
		enum dir_kind kind;
	} names[] = {
		{ "HEAD", DIR_PLAIN },
		{ "index.lock", DIR_PLAIN },
		{ "config", DIR_CONFIG },
		{ "CONFIG", DIR_CONFIG },
		{ "config.worktree", DIR_CONFIG },
		{ "config.lock", DIR_LOCK },
		{ "Config.Lock", DIR_LOCK },
		{ "config.worktree.lock", DIR_LOCK },
		{ "config~", DIR_LOCK },
		{ ".config.swp", DIR_LOCK },
		{ "sedA1b2C3", DIR_LOCK },
		{ "hooks", DIR_READONLY },
		{ "hooks/pre-commit", DIR_READONLY },
		{ "Hooks/x", DIR_READONLY },
		{ "modules/a/b/config", DIR_CONFIG },
		{ "modules/a/hooks/x", DIR_READONLY },
		{ "modules/refs/config", DIR_CONFIG },
		{ "modules/refs/heads/config", DIR_CONFIG },
		{ "worktrees/w/config.worktree", DIR_CONFIG },
		{ "worktrees/w/logs/config", DIR_PLAIN },
		{ "refs/heads/config", DIR_PLAIN },
		{ "refs/heads/hooks/x", DIR_PLAIN },
		{ "logs/refs/heads/config", DIR_PLAIN },
		{ "objects/config", DIR_PLAIN },
		{ "info/attributes", DIR_READONLY },
		{ "secret", DIR_HIDDEN },
		{ "secret/below", DIR_HIDDEN },
		{ DIR_OWN_NAME "1", DIR_OWN },
		{ "modules/x/" DIR_OWN_NAME "1", DIR_OWN },
		{ "refs/" DIR_OWN_NAME "1", DIR_OWN },
		{ "modules/m/commondir", DIR_READONLY },
		{ "modules/m", DIR_PLAIN },
	};
	_cleanup_(dir_rules_done) struct dir_rules r = rules();

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (dir_kind_of(&r, names[i].rel) != names[i].kind)
			(void)fprintf(stderr, "%s\n", names[i].rel);
		CHECK_INT(dir_kind_of(&r, names[i].rel), names[i].kind);
	}
}

TEST(what_may_be_done_to_a_name)
{
	_cleanup_(dir_rules_done) struct dir_rules r = rules();

	for (enum dir_act a = 0; a < DIR_ACT_COUNT_; a++) {
		CHECK_INT(dir_may(&r, "config", a), a == DIR_READ ? DIR_YES : -EPERM);
		CHECK_INT(dir_may(&r, "hooks/x", a), a == DIR_READ ? DIR_YES : -EPERM);
		CHECK_INT(dir_may(&r, "info/attributes", a), a == DIR_READ ? DIR_YES : -EPERM);
		CHECK_INT(dir_may(&r, "secret", a), a == DIR_READ ? -EACCES : -EPERM);
		CHECK_INT(dir_may(&r, "HEAD", a), a == DIR_LINK ? -EPERM : DIR_YES);
		CHECK(dir_may(&r, DIR_OWN_NAME "x", a) < 0);
		CHECK_INT(dir_may(&r, "config.lock", a), a == DIR_CREATE ? DIR_YES
							 : a == DIR_LINK ? -EPERM
									 : DIR_IF_OWN);
	}
	CHECK_INT(dir_may(&r, "modules/m", DIR_REMOVE), -EPERM);
	CHECK_INT(dir_may(&r, "modules", DIR_REMOVE), -EPERM);
	CHECK_INT(dir_may(&r, "modules/n", DIR_REMOVE), DIR_YES);
}

TEST(what_may_be_moved)
{
	_cleanup_(dir_rules_done) struct dir_rules r = rules();

	CHECK_INT(dir_may_move(&r, "index.lock", "index", 0), DIR_MOVE);
	CHECK_INT(dir_may_move(&r, "config.lock", "config", 0), DIR_JUDGE);
	CHECK_INT(dir_may_move(&r, "modules/x/config.lock", "modules/x/config", 0), DIR_JUDGE);
	CHECK_INT(dir_may_move(&r, "config.worktree.lock", "config.worktree", 0), DIR_JUDGE);
	/* No other way to the name. */
	CHECK_INT(dir_may_move(&r, "config.lock", "config", RENAME_EXCHANGE), -EPERM);
	CHECK_INT(dir_may_move(&r, "config.lock", "config", RENAME_NOREPLACE), -EPERM);
	CHECK_INT(dir_may_move(&r, "mine", "config", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "modules/x/config.lock", "config", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "config.lock", "config.worktree", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "config", "x", 0), -EPERM);
	/* Nor to its lock. */
	CHECK_INT(dir_may_move(&r, "mine", "config.lock", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "config.lock", "mine", 0), DIR_MOVE_OWN);
	CHECK_INT(dir_may_move(&r, "config.lock", "mine", RENAME_EXCHANGE), -EPERM);
	CHECK_INT(dir_may_move(&r, "rebase-merge/sedABC", "rebase-merge/git-rebase-todo", 0),
		  DIR_MOVE_OWN);
	CHECK_INT(dir_may_move(&r, "mine", "hooks/pre-commit", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "mine", "hooks", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "modules", "m2", 0), -EPERM);
	CHECK_INT(dir_may_move(&r, "x", "modules/m", 0), -EPERM);
	/* Where names are free, what is named there stays there. */
	CHECK_INT(dir_may_move(&r, "refs/evil", "modules/evil", 0), -EXDEV);
	CHECK_INT(dir_may_move(&r, "x", "logs/x", 0), -EXDEV);
	CHECK_INT(dir_may_move(&r, "refs/heads/a", "refs/heads/config", 0), DIR_MOVE);
	CHECK_INT(dir_may_move(&r, "a", "b", 1U << 2), -EINVAL);
}

/* "": accepted, with that text; else why not. */
static const char *judged(const char *rel, const char *host, const char *now, char *text, size_t n)
{
	static struct err e;
	_cleanup_(dir_rules_done) struct dir_rules r = rules();
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct dir_text was = { host, host ? strlen(host) : 0 }, is = { now, strlen(now) };
	int status;

	e = ERR_INIT;
	status = dir_judge(&r, rel, host ? &was : NULL, &is, &out, &e);
	(void)snprintf(text, n, "%s", status < 0 ? "" : buf_cstr(&out));
	CHECK(status == 0 || status == -EPERM);
	return status < 0 ? e.msg : "";
}

#define BORN "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"

TEST(a_configuration_is_judged_both_ways)
{
	static const char *const yes[][2] = {
		{ BORN, BORN "[user]\n\tname = x\n" },
		{ BORN "[user]\n\tname = x\n", BORN },
		{ BORN, BORN "[remote \"o\"]\n\turl = https://h/x\n\tfetch = "
			     "+refs/*:refs/remotes/o/*\n" },
		{ BORN "[core]\n\tpager = less\n", BORN "[core]\n\tpager = less\n[user]\n\tname = "
							"x\n" },
		{ BORN "[branch \"a\"]\n\tremote = o\n", BORN "[branch \"b\"]\n\tremote = o\n" },
	};
	static const char *const no[][3] = {
		{ BORN, BORN "[core]\n\tpager = x\n", "core.pager" },
		{ BORN, BORN "[core]\n\tfsmonitor = x\n", "core.fsmonitor" },
		{ BORN, BORN "[core]\n\thooksPath = x\n", "core.hookspath" },
		{ BORN, BORN "[alias]\n\tx = !id\n", "alias.x" },
		{ BORN, BORN "[include]\n\tpath = x\n", "include.path" },
		{ BORN, BORN "[remote \"o\"]\n\turl = ext::sh -c id\n", "remote.o.url" },
		{ BORN, BORN "[url \"x\"]\n\tinsteadOf = y\n", "url.x.insteadof" },
		{ BORN, BORN "[submodule \"s\"]\n\tupdate = !id\n", "submodule.s.update" },
		{ BORN, BORN "[core]\n\tworktree = ../x\n", "core.worktree" },
		/* What goes counts as much. */
		{ BORN "[core]\n\thooksPath = /dev/null\n", BORN, "core.hookspath" },
		{ BORN "[core]\n\tfsmonitor = false\n", BORN, "core.fsmonitor" },
		{ BORN "[protocol \"ext\"]\n\tallow = never\n", BORN, "protocol.ext.allow" },
		{ BORN "[safe]\n\tdirectory = /x\n", BORN, "safe.directory" },
		{ BORN "[core]\n\tpager = a\n", BORN "[core]\n\tpager = b\n", "core.pager" },
		/* Ways of writing that readers differ on. */
		{ BORN, BORN "[core] pager = x\n", "core.pager" },
		{ BORN, BORN "[user]\n\tname = a\\\n b\n", "certainty" },
		{ BORN, "[core", "certainty" },
	};
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		CHECK_STR(judged("config", yes[i][0], yes[i][1], text, sizeof(text)), "");
		CHECK_STR(text, yes[i][1]);
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		const char *why = judged("config", no[i][0], no[i][1], text, sizeof(text));

		if (strstr(why, no[i][2]) == NULL)
			(void)fprintf(stderr, "%zu: '%s' has no '%s'\n", i, why, no[i][2]);
		CHECK(strstr(why, no[i][2]) != NULL);
	}
}

TEST(a_submodule_is_born)
{
	char text[4096];

	CHECK_STR(judged("modules/s/config", NULL, BORN, text, sizeof(text)), "");
	CHECK_STR(judged("modules/s/config", BORN, BORN "[core]\n\tworktree = ../../../s\n", text,
			 sizeof(text)),
		  "");
	CHECK_STR(judged("modules/s/config", NULL, BORN "[core]\n\tworktree = /ws/s\n", text,
			 sizeof(text)),
		  "");
	/* Outside, the git dir itself, the whole workspace. */
	CHECK(judged("modules/s/config", BORN, BORN "[core]\n\tworktree = ../../../../x\n", text,
		     sizeof(text))[0]);
	CHECK(judged("modules/s/config", BORN, BORN "[core]\n\tworktree = /etc\n", text,
		     sizeof(text))[0]);
	CHECK(judged("modules/s/config", BORN, BORN "[core]\n\tworktree = ../../hooks\n", text,
		     sizeof(text))[0]);
	CHECK(judged("modules/s/config", BORN, BORN "[core]\n\tworktree = ../../..\n", text,
		     sizeof(text))[0]);
	CHECK(judged("modules/s/config", NULL, BORN "[core]\n\tpager = x\n", text,
		     sizeof(text))[0]);
	CHECK(judged("config", NULL, BORN "[core]\n\tworktree = s\n", text, sizeof(text))[0]);
}

TEST(a_placeholder_becomes_the_value_again_or_is_refused)
{
	static const char host[] = "[remote \"o\"]\n\turl = https://me:t0ken@h/x\n";
	char text[4096];

	CHECK_STR(judged("config", host,
			 "[remote \"o\"]\n\turl = "
			 "\"https://vitrine-hidden-1:vitrine-hidden-1@h/x\"\n"
			 "[user]\n\tname = y\n",
			 text, sizeof(text)),
		  "");
	CHECK_STR(text, "[remote \"o\"]\n\turl = https://me:t0ken@h/x\n[user]\n\tname = y\n");
	CHECK(judged("config", host,
		     "[remote \"o\"]\n\turl = "
		     "\"https://vitrine-hidden-1:vitrine-hidden-1@evil/x\"\n",
		     text, sizeof(text))[0]);
}

/* ---- requests ---- */

static size_t request(char *to, uint32_t opcode, uint64_t node, const void *arg, size_t n_arg,
		      const char *tail, size_t n_tail)
{
	struct fuse_in_header h = { .len = (uint32_t)(sizeof(h) + n_arg + n_tail),
				    .opcode = opcode,
				    .unique = 7,
				    .nodeid = node };

	memcpy(to, &h, sizeof(h));
	if (n_arg)
		memcpy(to + sizeof(h), arg, n_arg);
	if (n_tail)
		memcpy(to + sizeof(h) + n_arg, tail, n_tail);
	return h.len;
}

TEST(requests_are_taken_apart_or_refused)
{
	struct fuse_request q;
	char p[512];
	size_t n = request(p, FUSE_LOOKUP, 1, NULL, 0, "a\0", 2);
	struct fuse_write_in w = { .size = 5 };

	CHECK_INT(fuse_parse(p, n, &q), 0);
	CHECK_STR(q.name, "a");
	CHECK_INT(fuse_parse(p, n - 1, &q), -EBADMSG);
	CHECK_INT(fuse_parse(p, 10, &q), -EBADMSG);
	n = request(p, FUSE_LOOKUP, 1, NULL, 0, "a", 1);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, FUSE_LOOKUP, 1, NULL, 0, "a/b\0", 4);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, FUSE_LOOKUP, 1, NULL, 0, "..\0", 3);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, FUSE_LOOKUP, 1, NULL, 0, "\0", 1);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, FUSE_RENAME, 1, &(struct fuse_rename_in){ 1 }, 8, "a\0b\0", 4);
	CHECK_INT(fuse_parse(p, n, &q), 0);
	CHECK_STR(q.name2, "b");
	n = request(p, FUSE_RENAME, 1, &(struct fuse_rename_in){ 1 }, 8, "a\0b\0c\0", 6);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, FUSE_WRITE, 1, &w, sizeof(w), "12345", 5);
	CHECK_INT(fuse_parse(p, n, &q), 0);
	n = request(p, FUSE_WRITE, 1, &w, sizeof(w), "1234", 4);
	CHECK_INT(fuse_parse(p, n, &q), -EIO);
	n = request(p, 9999, 1, NULL, 0, NULL, 0);
	CHECK_INT(fuse_parse(p, n, &q), -ENOSYS);
}

TEST(nodes_are_never_given_out_twice)
{
	struct nodes *t = mem_new(1, sizeof(*t));
	struct node *a, *b, *c;
	char path[64];
	uint64_t was;

	nodes_init(t, 1, 1);
	a = nodes_look(t, &t->root, "d", 1, 10);
	b = nodes_look(t, a, "f", 1, 11);
	CHECK_INT(nodes_path(t, b, path, sizeof(path)), 0);
	CHECK_STR(path, "d/f");
	CHECK(nodes_look(t, a, "f", 1, 11) == b);
	/* Another file under the same name is another node, and the first one has no name any more. */
	c = nodes_look(t, a, "f", 1, 12);
	CHECK(c != b && c->id != b->id);
	CHECK_INT(nodes_path(t, b, path, sizeof(path)), -ESTALE);
	nodes_move(t, a, "f", &t->root, "g");
	CHECK_INT(nodes_path(t, c, path, sizeof(path)), 0);
	CHECK_STR(path, "g");
	was = c->id;
	nodes_forget(t, b->id, 2);
	nodes_forget(t, c->id, 1);
	CHECK(nodes_get(t, was) == NULL);
	CHECK(nodes_look(t, &t->root, "g", 1, 12)->id > was);
	nodes_forget(t, a->id, 99);
	CHECK_INT(nodes_path_in(t, &t->root, "x", path, 2), -ENAMETOOLONG);
	nodes_done(t);
	free(t);
}

/* ---- the whole ---- */

static char top[] = "/tmp/dir-test-XXXXXX";

static int ask(struct dir *d, uint32_t opcode, uint64_t node, const void *arg, size_t n_arg,
	       const char *tail, size_t n_tail)
{
	static char p[4096];
	struct fuse_out_header h;

	CHECK(dir_answer(d, p, request(p, opcode, node, arg, n_arg, tail, n_tail)));
	CHECK(d->out_n >= sizeof(h));
	memcpy(&h, d->out, sizeof(h));
	CHECK_INT(h.len, d->out_n);
	CHECK(h.error == 0 || h.len == sizeof(h)); /* an error is the bare head */
	CHECK_INT(h.unique, 7);
	return h.error;
}

static uint64_t looked_up(struct dir *d, const char *name)
{
	struct fuse_entry_out e = { 0 };

	if (ask(d, FUSE_LOOKUP, 1, NULL, 0, name, strlen(name) + 1) < 0)
		return 0;
	memcpy(&e, d->out + sizeof(struct fuse_out_header), sizeof(e));
	CHECK(S_ISDIR(e.attr.mode) ? e.entry_valid == 0 && e.attr_valid > 0
				   : e.entry_valid == 0 && e.attr_valid == 0 &&
					     e.attr_valid_nsec < 20 * NS_PER_MS);
	CHECK(S_ISDIR(e.attr.mode) ? e.entry_valid_nsec < NS_PER_SEC : e.entry_valid_nsec == 0);
	CHECK_INT(e.attr.uid, 4242);
	return e.nodeid;
}

static uint64_t fh_of(const struct dir *d)
{
	struct fuse_open_out o;

	memcpy(&o, d->out + sizeof(struct fuse_out_header), sizeof(o));
	return o.fh;
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "we");
	CHECK(f && fputs(text, f) >= 0);
	if (f)
		(void)fclose(f);
}

TEST(a_git_dir_is_served)
{
	struct dir *d = mem_new(1, sizeof(*d));
	struct fuse_init_in init = { .major = 7, .minor = 38 };
	struct fuse_open_in rw = { .flags = O_RDWR }, ro = { .flags = O_RDONLY };
	struct fuse_create_in create = { .flags = O_RDWR, .mode = 0644 };
	struct fuse_rename2_in move = { .newdir = 1 };
	struct fuse_setattr_in set = { .valid = FATTR_MODE | FATTR_FH, .mode = 0777 };
	uint64_t node;

	CHECK(mkdtemp(top) != NULL);
	write_file("config", BORN);
	write_file("HEAD", "ref: refs/heads/main\n");
	CHECK_INT(dir_init(d, open(top, O_PATH | O_DIRECTORY | O_CLOEXEC)), 0);
	d->rules = rules();
	d->uids = d->gids = (struct dir_ids){ .v = { { 4242, geteuid(), 1 } }, .n = 1 };
	CHECK_INT(ask(d, FUSE_LOOKUP, 1, NULL, 0, "HEAD", 5),
		  -EIO); /* before the version is agreed on */
	CHECK_INT(ask(d, FUSE_INIT, 0, &init, sizeof(init), NULL, 0), 0);
	node = looked_up(d, "HEAD");
	CHECK(node > 1);
	CHECK_INT(ask(d, FUSE_OPEN, node, &rw, sizeof(rw), NULL, 0), 0);
	CHECK_INT(ask(d, FUSE_OPEN, node + 100, &rw, sizeof(rw), NULL, 0), -ESTALE);
	node = looked_up(d, "config");
	CHECK_INT(ask(d, FUSE_OPEN, node, &ro, sizeof(ro), NULL, 0), 0);
	CHECK_INT(ask(d, FUSE_OPEN, node, &rw, sizeof(rw), NULL, 0), -EPERM);
	CHECK_INT(ask(d, FUSE_UNLINK, 1, NULL, 0, "config", 7), -EPERM);
	/* The host's lock is nobody's inside. */
	write_file("config.lock", BORN);
	node = looked_up(d, "config.lock");
	CHECK_INT(ask(d, FUSE_OPEN, node, &ro, sizeof(ro), NULL, 0), -EACCES);
	CHECK_INT(ask(d, FUSE_OPEN, node, &rw, sizeof(rw), NULL, 0), -EACCES);
	CHECK_INT(ask(d, FUSE_UNLINK, 1, NULL, 0, "config.lock", 12), -EACCES);
	CHECK_INT(ask(d, FUSE_RENAME2, 1, &move, sizeof(move), "config.lock\0config", 19), -EPERM);
	CHECK_INT(ask(d, FUSE_RENAME2, 1, &move, sizeof(move), "config.lock\0mine", 17), -EACCES);
	CHECK_INT(unlinkat(d->root, "config.lock", 0), 0);
	/* Its own is judged. */
	CHECK_INT(ask(d, FUSE_CREATE, 1, &create, sizeof(create), "config.lock", 12), 0);
	write_file("config.lock", BORN "[core]\n\tpager = x\n");
	CHECK_INT(ask(d, FUSE_RENAME2, 1, &move, sizeof(move), "config.lock\0config", 19), -EPERM);
	CHECK(strstr(d->refusal, "core.pager") != NULL);
	write_file("config.lock", BORN "[user]\n\tname = x\n");
	CHECK_INT(ask(d, FUSE_RENAME2, 1, &move, sizeof(move), "config.lock\0config", 19), 0);
	CHECK_INT(looked_up(d, "config.lock"), 0);
	/* A directory may be called like that, but not like the lock itself. */
	CHECK_INT(
		ask(d, FUSE_MKDIR, 1, &(struct fuse_mkdir_in){ .mode = 0755 }, 8, "my-config", 10),
		0);
	CHECK_INT(ask(d, FUSE_RMDIR, 1, NULL, 0, "my-config", 10), 0);
	CHECK_INT(ask(d, FUSE_MKDIR, 1, &(struct fuse_mkdir_in){ .mode = 0755 }, 8, "config.lock",
		      12),
		  -EPERM);
	/* A descriptor for reading changes no mode, whatever the request says. */
	node = looked_up(d, "config");
	CHECK_INT(ask(d, FUSE_OPEN, node, &ro, sizeof(ro), NULL, 0), 0);
	set.fh = fh_of(d);
	CHECK_INT(ask(d, FUSE_SETATTR, node, &set, sizeof(set), NULL, 0), -EPERM);
	/* A second name of a file is not written through, nor is a link made. */
	CHECK_INT(linkat(d->root, "config", d->root, "alias", 0), 0);
	CHECK_INT(ask(d, FUSE_OPEN, looked_up(d, "alias"), &rw, sizeof(rw), NULL, 0), -EPERM);
	CHECK_INT(ask(d, FUSE_SYMLINK, 1, NULL, 0, "l\0/etc", 7), -EPERM);
	/* What the server makes for itself is not there. */
	write_file(DIR_OWN_NAME "1", "");
	CHECK_INT(looked_up(d, DIR_OWN_NAME "1"), 0);
	CHECK_INT(path_remove(AT_FDCWD, top), 0);
	dir_done(d);
	free(d);
}

/* What the keeper reads and answers before there is a server. */
static int hello(uint32_t opcode, uint32_t minor, struct fuse_out_header *ret)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in init;
	} in = { .head = { .len = sizeof(in), .opcode = opcode, .unique = 77 },
		 .init = { .major = 7, .minor = minor, .flags = ~0U } };
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} out = { 0 };
	struct err e = ERR_INIT;
	int pair[2], r;

	bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0);
	bug_on(write(pair[0], &in, sizeof(in)) != (ssize_t)sizeof(in));
	r = dir_hello(pair[1], &e);
	fd_close(pair[1]);
	if (r == 0) {
		CHECK_INT(read(pair[0], &out, sizeof(out)), sizeof(out));
		CHECK_INT(out.init.major, 7);
		CHECK_INT(out.init.minor, 31);
		CHECK_INT(out.init.max_write, FUSE_WRITE_MAX);
		CHECK((out.init.flags & FUSE_WRITEBACK_CACHE) == 0);
	} else {
		CHECK_INT(read(pair[0], &out, sizeof(out)), 0);
	}
	fd_close(pair[0]);
	*ret = out.head;
	return r;
}

TEST(the_first_request_is_answered_without_a_server)
{
	struct fuse_out_header head;

	CHECK_INT(hello(FUSE_INIT, 38, &head), 0);
	CHECK_INT(head.unique, 77);
	CHECK_INT(head.error, 0);
	CHECK_INT(head.len, sizeof(head) + sizeof(struct fuse_init_out));
	CHECK_INT(hello(FUSE_INIT, 30, &head), -EPROTO);
	CHECK_INT(hello(FUSE_LOOKUP, 38, &head), -EPROTO);
}

TEST_MAIN()
