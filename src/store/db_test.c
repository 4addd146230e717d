/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "store/eventdb.h"

static char place[64];

static char *fresh(const char *name)
{
	if (place[0] == '\0') {
		(void)snprintf(place, sizeof(place), "/tmp/vitrine-store-XXXXXX");
		bug_on(mkdtemp(place) == NULL);
	}
	return mem_fmt("%s/%s", place, name);
}

__attribute__((destructor)) static void clean_up(void)
{
	if (place[0])
		(void)path_remove(AT_FDCWD, place);
}

/* Every table and index, in words. */
static char *tables(struct db *d)
{
	_cleanup_(stmt_close) struct stmt s = { 0 };
	struct err e = ERR_INIT;

	CHECK_INT(stmt_open(&s, d,
			    "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema "
			    "WHERE sql IS NOT NULL ORDER BY name)",
			    &e),
		  0);
	CHECK_INT(stmt_step(&s, &e), 1);
	return mem_str(stmt_get_text(&s, 0));
}

static void from_every_earlier(const struct db_schema *now, const char *insert, const char *count)
{
	_free_ char *new_path = fresh("new.db"), *want = NULL;
	struct err e = ERR_INIT;
	struct db d;

	(void)unlink(new_path);
	CHECK_INT(db_open(&d, new_path, DB_CREATE, now, &e), 0);
	want = tables(&d);
	db_close(&d);
	for (int version = 1; version < now->n; version++) {
		struct db_schema old = *now;
		_free_ char *path = mem_fmt("%s/%x-%d.db", place, (unsigned)now->app_id, version);
		_free_ char *got = NULL;
		uint64_t n = 0;

		old.n = version;
		CHECK_INT(db_open(&d, path, DB_CREATE, &old, &e), 0);
		CHECK_INT(db_exec(&d, insert, &e), 0);
		CHECK_STR(e.msg, "");
		db_close(&d);
		/* Only looking must not change it. */
		CHECK_INT(db_open(&d, path, DB_READ, now, &e), -EPROTO);
		e = ERR_INIT;
		CHECK_INT(db_open(&d, path, DB_WRITE, now, &e), 0);
		CHECK_STR(e.msg, "");
		got = tables(&d);
		CHECK_STR(got, want);
		CHECK_INT(db_number(&d, count, 0, &n, &e), 0);
		CHECK_INT(n, 1);
		CHECK_INT(db_number(&d, "PRAGMA user_version", 0, &n, &e), 0);
		CHECK_INT(n, now->n);
		db_close(&d);
	}
}

TEST(events_from_every_earlier_schema)
{
	from_every_earlier(&schema_events,
			   "INSERT INTO run(run, sandbox, named, boot, started) VALUES('r', 's', "
			   "0, 'b', 1); INSERT INTO stream(run, session, started, head, base, "
			   "change) VALUES(1, 0, 1, x'00', x'00', 1); INSERT INTO event(stream, "
			   "nr, number, time, type, frame, hash) VALUES(1, 1, 0, 1, 1, x'00', "
			   "x'00')",
			   "SELECT count(*) FROM event JOIN stream ON stream.id=event.stream");
}

TEST(the_registry_from_every_earlier_schema)
{
	from_every_earlier(&schema_registry,
			   "INSERT INTO session(run, session, source, sandbox, named, state, "
			   "started, ended, status, reason, argv, events, head, dropped) "
			   "VALUES('r', 0, 's', 'b', 0, 0, 1, 2, 0, '', '', 1, x'00', 0)",
			   "SELECT count(*) FROM session WHERE cpu=0");
}

/* The steps above are what other machines' databases were made with: a step that has been released is never edited. */
static void is_as_released(const struct db_schema *s, const char *const *want, int n)
{
	CHECK_INT(s->n, n);
	for (int i = 0; i < s->n && i < n; i++) {
		uint8_t hash[SHA256_BYTES];
		char hex[SHA256_HEX_BYTES];

		sha256(s->steps[i], strlen(s->steps[i]), hash);
		chain_hex(hash, hex);
		hex[16] = 0;
		CHECK_STR(hex, want[i]);
	}
}

TEST(released_steps_are_never_edited)
{
	static const char *const events[] = { "a793c506369c8f55", "b07e4c141e44ffc5" };
	static const char *const registry[] = { "dc5080b08f49b207", "6f7a4509359aa49a",
						"9bb4995a3b884b7a" };

	is_as_released(&schema_events, events, ARRAY_LEN(events));
	is_as_released(&schema_registry, registry, ARRAY_LEN(registry));
}

TEST(a_newer_schema_is_left_alone)
{
	static const char *const steps[] = { "CREATE TABLE a(x)", "CREATE TABLE b(x)" };
	struct db_schema one = { .app_id = 7, .what = "a test", .steps = steps, .n = 1 };
	struct db_schema two = one;
	_free_ char *path = fresh("newer.db");
	struct err e = ERR_INIT;
	struct db d;

	two.n = 2;
	CHECK_INT(db_open(&d, path, DB_CREATE, &two, &e), 0);
	db_close(&d);
	CHECK_INT(db_open(&d, path, DB_WRITE, &one, &e), -EPROTO);
	CHECK_INT(e.kind, ERR_UNSUPPORTED);
	CHECK(strstr(e.msg, "newer Vitrine") != NULL);
}

TEST(a_failed_step_leaves_the_old_schema)
{
	static const char *const good[] = { "CREATE TABLE a(x)" };
	static const char *const wrong[] = { "CREATE TABLE a(x)", "CREATE TABLE b(x); nonsense" };
	struct db_schema s = { .app_id = 7, .what = "a test", .steps = good, .n = 1 };
	_free_ char *path = fresh("step.db");
	struct err e = ERR_INIT;
	uint64_t n = 9;
	struct db d;

	CHECK_INT(db_open(&d, path, DB_CREATE, &s, &e), 0);
	db_close(&d);
	s = (struct db_schema){ .app_id = 7, .what = "a test", .steps = wrong, .n = 2 };
	CHECK(db_open(&d, path, DB_WRITE, &s, &e) < 0);
	s = (struct db_schema){ .app_id = 7, .what = "a test", .steps = good, .n = 1 };
	e = ERR_INIT;
	CHECK_INT(db_open(&d, path, DB_WRITE, &s, &e), 0);
	CHECK_INT(db_number(&d, "SELECT count(*) FROM sqlite_schema WHERE name='b'", 9, &n, &e), 0);
	CHECK_INT(n, 0);
	db_close(&d);
}

TEST(what_is_not_ours_is_refused)
{
	static const char *const steps[] = { "CREATE TABLE a(x)" };
	struct db_schema other = { .app_id = 7, .what = "a test", .steps = steps, .n = 1 };
	_free_ char *path = fresh("other.db"), *text = fresh("text.db"), *link = fresh("link.db");
	_close_ int fd = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct err e = ERR_INIT;
	struct db d;

	CHECK_INT(db_open(&d, path, DB_CREATE, &other, &e), 0);
	db_close(&d);
	CHECK_INT(db_open(&d, path, DB_WRITE, &schema_events, &e), -EBADMSG);
	CHECK(strstr(e.msg, "is not an event database") != NULL);
	CHECK(write(fd, "this is no database, whatever its name may say", 46) == 46);
	CHECK_INT(db_open(&d, text, DB_WRITE, &schema_events, &e), -EBADMSG);
	CHECK(strstr(e.msg, "OPERATIONS.md") != NULL);
	CHECK_INT(symlink(path, link), 0);
	CHECK(db_open(&d, link, DB_WRITE, &other, &e) < 0);
	e = ERR_INIT;
	CHECK_INT(db_open(&d, "/nonexistent/x.db", DB_READ, &other, &e), -ENOENT);
}

TEST(network_file_systems_are_known)
{
	static const uint64_t network[] = { NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
					    V9FS_MAGIC,      FUSE_SUPER_MAGIC, CEPH_SUPER_MAGIC };
	static const uint64_t local[] = { EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
					  TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC };

	for (size_t i = 0; i < ARRAY_LEN(network); i++)
		CHECK(db_is_network(network[i]));
	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		CHECK(!db_is_network(local[i]));
	/* f_type is signed on some machines. */
	CHECK(db_is_network((uint64_t)(int64_t)(int32_t)CIFS_SUPER_MAGIC));
}

static char *journal_mode(struct db *d)
{
	_cleanup_(stmt_close) struct stmt s = { 0 };
	struct err e = ERR_INIT;

	CHECK_INT(stmt_open(&s, d, "PRAGMA journal_mode", &e), 0);
	CHECK_INT(stmt_step(&s, &e), 1);
	return mem_str(stmt_get_text(&s, 0));
}

TEST(no_wal_on_a_network_file_system)
{
	_free_ char *path = fresh("net.db"), *local = NULL, *remote = NULL;
	struct db_schema on_network = schema_events;
	struct err e = ERR_INIT;
	struct db d;

	CHECK_INT(db_open(&d, path, DB_CREATE, &schema_events, &e), 0);
	local = journal_mode(&d);
	db_close(&d);
	CHECK_STR(local, "wal");
	/* The folder was moved to a network: the mode follows, though the file says WAL. */
	on_network.is_without_wal = true;
	CHECK_INT(db_open(&d, path, DB_WRITE, &on_network, &e), 0);
	remote = journal_mode(&d);
	CHECK(!d.is_wal);
	db_close(&d);
	CHECK_STR(remote, "delete");
}

TEST(a_reader_does_not_keep_the_writer_from_writing)
{
	_free_ char *path = fresh("both.db");
	_cleanup_(stmt_close) struct stmt s = { 0 };
	struct err e = ERR_INIT;
	struct db writer, reader;
	uint64_t n = 0;

	CHECK_INT(db_open(&writer, path, DB_CREATE, &schema_events, &e), 0);
	CHECK_INT(db_open(&reader, path, DB_READ, &schema_events, &e), 0);
	CHECK_INT(stmt_open(&s, &reader, "SELECT key FROM meta", &e), 0);
	CHECK_INT(stmt_step(&s, &e), 1);
	CHECK_INT(db_begin(&writer, &e), 0);
	CHECK_INT(db_exec(&writer, "UPDATE meta SET value=5", &e), 0);
	CHECK_INT(db_commit(&writer, &e), 0);
	CHECK_INT(stmt_step(&s, &e), 0);
	CHECK_INT(db_number(&reader, "SELECT value FROM meta", 0, &n, &e), 0);
	CHECK_INT(n, 5);
	stmt_close(&s);
	db_close(&reader);
	db_close(&writer);
}

TEST(a_reader_of_what_is_only_being_made)
{
	_free_ char *path = fresh("empty.db");
	struct err e = ERR_INIT;
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct db d;

	CHECK(fd >= 0);
	CHECK_INT(db_open(&d, path, DB_READ, &schema_events, &e), -EAGAIN);
	CHECK_INT(db_open(&d, path, DB_CREATE, &schema_events, &e), 0);
	db_close(&d);
	CHECK_INT(db_open(&d, path, DB_READ, &schema_events, &e), 0);
	db_close(&d);
}

TEST(chains)
{
	struct chain a, b, c;

	chain_init(&a, "run", 0);
	chain_init(&b, "run", 1);
	chain_init(&c, "run", CHAIN_NO_SESSION);
	CHECK(memcmp(a.head, b.head, SHA256_BYTES) != 0);
	CHECK(memcmp(a.head, c.head, SHA256_BYTES) != 0);
	b = a;
	chain_add(&a, "one", 3);
	chain_add(&a, "two", 3);
	chain_add(&b, "two", 3);
	chain_add(&b, "one", 3);
	CHECK_INT(a.n, 2);
	CHECK(memcmp(a.head, b.head, SHA256_BYTES) != 0);
	{
		_free_ char *large = mem_new(EVENT_MAX_BYTES, 1);

		chain_add(&a, large, EVENT_MAX_BYTES);
		CHECK_INT(a.n, 3);
	}
}

TEST_MAIN()
