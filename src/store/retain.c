/* SPDX-License-Identifier: Apache-2.0 */
/* store/retain.c - see retain.h
 *
 * Age: every stream of an ended run that ended longer ago goes as a whole. Size: bytes of frames are counted (not
 * of the file, which keeps its free pages for what comes next); while there are too many, the stream that ended first
 * goes as a whole. When only streams of running sessions are left, the oldest events of the largest go, down to half
 * of what is allowed, so that this is done rarely. What belongs to no session goes with the last session of its run.
 *
 * For each stream an event in the chain of the run's own stream (of the newest run, when its own is going) says how
 * many went and up to which hash; the row of the stream stays, with count and head, so verify can tell what the policy
 * removed from what somebody else did.
 */
#include "store/retain.h"

#include "base/loop.h"

/* One row of those that may go. */
struct victim {
	uint64_t stream, run, events, dropped, bytes;
	int64_t session;
	char name[EVENT_RUN_CHARS + 1];
};

static int find(struct eventdb *d, const char *sql, uint64_t arg, struct victim *v, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, &d->db, sql, e);

	if (r < 0)
		return r;
	if (sqlite3_bind_parameter_count(q.raw) > 0)
		stmt_num(&q, 1, arg);
	r = stmt_step(&q, e);
	if (r != 1)
		return r;
	*v = (struct victim){ .stream = stmt_get_num(&q, 0),
			      .run = stmt_get_num(&q, 1),
			      .session = (int64_t)stmt_get_num(&q, 2),
			      .events = stmt_get_num(&q, 3),
			      .dropped = stmt_get_num(&q, 4),
			      .bytes = stmt_get_num(&q, 5) };
	(void)snprintf(v->name, sizeof(v->name), "%s", stmt_get_text(&q, 6));
	return 1;
}

#define VICTIM                                                                                     \
	"SELECT s.id, s.run, s.session, s.events, s.dropped, s.bytes, r.run FROM stream s "        \
	"JOIN run r ON s.run=r.id WHERE s.bytes>0 "

/* A run's own stream waits for the others, and the newest run's stays: somebody must be left to tell. */
#define MAY_GO                                                                                     \
	"AND r.state<>0 AND (s.session>=0 OR (NOT EXISTS(SELECT 1 FROM stream o WHERE "            \
	"o.run=s.run "                                                                             \
	"AND o.session>=0 AND o.bytes>0) AND s.run<>(SELECT max(id) FROM run))) "

static const char too_old[] = VICTIM MAY_GO "AND ?1>max(s.ended, s.started) LIMIT 1";
static const char ended_first[] =
	VICTIM "AND ((s.session>=0 AND s.state<>0) OR (r.state<>0 AND s.session<0 AND NOT EXISTS("
	       "SELECT 1 FROM stream o WHERE o.run=s.run AND o.session>=0 AND o.bytes>0) AND "
	       "s.run<>(SELECT max(id) FROM run))) ORDER BY s.ended LIMIT 1";
static const char largest[] = VICTIM "ORDER BY s.bytes DESC LIMIT 1";

/* The hash of event `last`, which will be the base of what is left. */
static int base_hash(struct eventdb *d, const struct victim *v, uint64_t last,
		     uint8_t ret[static SHA256_BYTES], struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	const void *hash;
	size_t n;
	int r = stmt_open(&q, &d->db, "SELECT hash FROM event WHERE stream=?1 AND nr=?2", e);

	if (r < 0)
		return r;
	stmt_num(&q, 1, v->stream);
	stmt_num(&q, 2, last);
	r = stmt_step(&q, e);
	hash = r == 1 ? stmt_get_blob(&q, 0, &n) : NULL;
	if (r < 0)
		return r;
	if (hash == NULL || n != SHA256_BYTES)
		return err_set(e, ERR_SYSTEM, EBADMSG,
			       "'%s': event %llu of stream %llu is missing; 'vitrine events "
			       "--verify' says more",
			       d->db.path, (unsigned long long)last, (unsigned long long)v->stream);
	memcpy(ret, hash, n);
	return 0;
}

static int remove_rows(struct eventdb *d, const struct victim *v, uint64_t last,
		       const uint8_t base[static SHA256_BYTES], struct err *e)
{
	_cleanup_(stmt_close) struct stmt del = { 0 }, up = { 0 };
	int r = stmt_open(&del, &d->db, "DELETE FROM event WHERE stream=?1 AND nr<=?2", e);

	if (r == 0)
		r = stmt_open(&up, &d->db,
			      "UPDATE stream SET dropped=?2, base=?3, change=?4, bytes=(SELECT "
			      "ifnull(sum(length(frame)), 0) FROM event WHERE stream=?1) WHERE "
			      "id=?1",
			      e);
	if (r < 0)
		return r;
	stmt_num(&del, 1, v->stream);
	stmt_num(&del, 2, last);
	r = stmt_do(&del, e);
	if (r < 0)
		return r;
	stmt_num(&up, 1, v->stream);
	stmt_num(&up, 2, last);
	stmt_blob(&up, 3, base, SHA256_BYTES);
	stmt_num(&up, 4, d->change);
	return stmt_do(&up, e);
}

/* Told in the newest run: it is the one that stays longest. */
static int tell(struct eventdb *d, const struct victim *v, uint64_t last,
		const uint8_t base[static SHA256_BYTES], const char *reason, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	_cleanup_(run_done) struct run run = { 0 };
	_free_ char *about = v->session < 0 ? mem_str(v->name)
					    : mem_fmt("%s-%lld", v->name, (long long)v->session);
	char hex[SHA256_HEX_BYTES];
	struct event_field f[5];
	int r = stmt_open(&q, &d->db, "SELECT run FROM run ORDER BY id DESC LIMIT 1", e);

	if (r == 0)
		r = stmt_step(&q, e);
	if (r < 0)
		return r;
	chain_hex(base, hex);
	f[0] = EVENT_STR(ABOUT, about);
	f[1] = EVENT_NUM(COUNT, last - v->dropped);
	f[2] = EVENT_STR(HASH, hex);
	f[3] = EVENT_STR(REASON, reason);
	f[4] = EVENT_NUM(BYTES, v->bytes);
	r = run_load(&run, d, stmt_get_text(&q, 0), NULL, e);
	if (r == 0)
		r = run_say(&run, EVENT_NO_SESSION, EV_EVENTS_DROPPED, f, 5, e);
	return r < 0 ? r : run_save(&run, e);
}

static int drop(struct eventdb *d, const struct victim *v, uint64_t last, const char *reason,
		uint64_t *dropped, struct err *e)
{
	uint8_t base[SHA256_BYTES];
	int r = base_hash(d, v, last, base, e);

	if (r == 0)
		r = remove_rows(d, v, last, base, e);
	if (r == 0)
		r = tell(d, v, last, base, reason, e);
	*dropped += r == 0 ? last - v->dropped : 0;
	return r;
}

/* How far into a stream one must go to free that many bytes. */
static int cut_at(struct eventdb *d, const struct victim *v, uint64_t bytes, uint64_t *ret,
		  struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	uint64_t sum = 0;
	int r = stmt_open(&q, &d->db,
			  "SELECT nr, length(frame) FROM event WHERE stream=?1 ORDER BY nr", e);

	if (r < 0)
		return r;
	stmt_num(&q, 1, v->stream);
	*ret = v->dropped;
	while (sum < bytes && (r = stmt_step(&q, e)) == 1) {
		*ret = stmt_get_num(&q, 0);
		sum += stmt_get_num(&q, 1);
	}
	return r < 0 ? r : 0;
}

static int by_age(struct eventdb *d, uint64_t max_age, uint64_t *dropped, struct err *e)
{
	uint64_t now = clock_real(), before = now > max_age ? now - max_age : 0;
	struct victim v = { 0 };
	int r = 0;

	while (max_age > 0 && (r = find(d, too_old, before, &v, e)) == 1) {
		r = drop(d, &v, v.events, "age", dropped, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int by_size(struct eventdb *d, uint64_t max, uint64_t *dropped, struct err *e)
{
	uint64_t bytes = 0, last = 0;
	struct victim v = { 0 };
	int r;

	while (max > 0) {
		r = db_number(&d->db, "SELECT sum(bytes) FROM stream", 0, &bytes, e);
		if (r < 0 || bytes <= max)
			return r;
		r = find(d, ended_first, 0, &v, e);
		last = v.events;
		if (r == 0) {
			r = find(d, largest, 0, &v, e);
			if (r == 1)
				r = cut_at(d, &v, bytes - max / 2, &last, e);
			if (r < 0 || last <= v.dropped)
				return r;
		}
		r = r < 0 ? r : drop(d, &v, last, "size", dropped, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int retain(struct eventdb *d, const struct store_bounds *bounds, uint64_t *dropped, struct err *e)
{
	uint64_t before = *dropped;
	int r;

	if (bounds == NULL || (bounds->max_age_ns == 0 && bounds->max_bytes == 0))
		return 0;
	r = eventdb_begin(d, e);
	if (r < 0)
		return r;
	r = by_age(d, bounds->max_age_ns, dropped, e);
	if (r == 0)
		r = by_size(d, bounds->max_bytes, dropped, e);
	if (r == 0 && *dropped > before)
		r = eventdb_commit(d, e);
	db_rollback(&d->db);
	return r < 0 ? r : *dropped > before;
}
