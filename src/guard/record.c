/* SPDX-License-Identifier: Apache-2.0 */
/* guard/record.c - see record.h */
#include "guard/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/redact.h"

#define COMMAND_MAX ((size_t)1024)

int guard_state_dir(char **ret, struct err *e)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	_free_ char *dir = NULL;
	int r;

	if (xdg && xdg[0] == '/')
		dir = mem_fmt("%s/vitrine", xdg);
	else if (home && home[0] == '/')
		dir = mem_fmt("%s/.local/state/vitrine", home);
	else
		return err_set(e, ERR_SYSTEM, ENOENT,
			       "neither XDG_STATE_HOME nor HOME is an absolute path");
	r = path_make(dir, 0700);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s'", dir);
	}
	*ret = take(dir);
	return 0;
}

/* Kinds that a rule stopped, each once. */
static void put_effects(const struct judgement *j, struct buf *out)
{
	bool has[EFFECT_COUNT_] = { false }, is_first = true;

	for (size_t i = 0; i < j->n_effects; i++)
		has[j->effects[i].kind] |= j->effects[i].rule != NULL;
	for (enum effect_kind k = 0; k < EFFECT_COUNT_; k++)
		if (has[k]) {
			buf_printf(out, "%s\"%s\"", is_first ? "" : ",", effect_name(k));
			is_first = false;
		}
}

static void put_line(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		     struct buf *out)
{
	_cleanup_(buf_done) struct buf text = BUF(16 * KIB);
	struct timespec now;
	const char *what = c->command ? c->command : c->path ? c->path : "";

	(void)clock_gettime(CLOCK_REALTIME, &now);
	redact(what, COMMAND_MAX, &text);
	buf_printf(out, "{\"time\":%lld.%03ld,\"event\":\"guard\",\"agent\":\"%s\",\"session\":",
		   (long long)now.tv_sec, now.tv_nsec / 1000000, agent_name(c->agent));
	buf_json(out, c->session);
	buf_puts(out, ",\"tool\":");
	buf_json(out, c->tool);
	buf_printf(out, ",\"verdict\":\"%s\",\"rule\":", verdict_name(j->verdict));
	buf_json(out, j->rule);
	buf_printf(out, ",\"intent\":\"%s\",\"proved\":%s,\"took_us\":%llu,\"cwd\":",
		   j->verdict == VERDICT_ALLOW ? "" : intent_name(j->intent),
		   j->is_proved ? "true" : "false", (unsigned long long)took_us);
	buf_json(out, c->cwd);
	buf_puts(out, ",\"effects\":[");
	put_effects(j, out);
	buf_puts(out, "],\"command\":");
	buf_json(out, buf_cstr(&text));
	buf_puts(out, "}\n");
}

/* Opened without following links: the directory is ours, but a name in it may have been put there by anyone who
 * could write to it once. */
static int open_log(int dir, struct err *e)
{
	_close_ int fd =
		openat(dir, "guard.log",
		       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0)
		return err_sys(e, "guard.log");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_SYSTEM, EPERM, "guard.log is not a file of this user");
	if ((uint64_t)st.st_size < GUARD_LOG_MAX)
		return take_fd(fd);
	/* Two that come here at once lose nothing but the older half a little earlier. */
	if (renameat(dir, "guard.log", dir, "guard.log.1") < 0)
		return err_sys(e, "guard.log.1");
	fd_close(take_fd(fd));
	fd = openat(dir, "guard.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_sys(e, "guard.log") : take_fd(fd);
}

int guard_record(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		 struct err *e)
{
	_cleanup_(buf_done) struct buf line = BUF(64 * KIB);
	_free_ char *path = NULL;
	_close_ int dir = FD_NONE, fd = FD_NONE;
	int r = guard_state_dir(&path, e);

	if (r < 0 || path == NULL)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "'%s'", path);
	fd = open_log(dir, e);
	if (fd < 0)
		return fd;
	put_line(c, j, took_us, &line);
	r = io_write_all(fd, buf_cstr(&line), line.n);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "guard.log");
	}
	return 0;
}

/* Sums. */

#define MAX_KINDS 256

struct tally {
	char *name;
	uint64_t n;
};

struct stats {
	uint64_t verdicts[VERDICT_COUNT_], total, bad;
	struct tally rules[MAX_KINDS], agents[16], effects[EFFECT_COUNT_ + 1];
};

static void count(struct tally *v, size_t max, const char *name)
{
	for (size_t i = 0; i < max; i++) {
		if (v[i].name == NULL)
			v[i].name = mem_str(name);
		if (str_eq(v[i].name, name)) {
			v[i].n++;
			return;
		}
	}
}

static const char *field(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);

	return v && v->type == JSON_STRING ? v->text : "";
}

static void count_line(struct stats *s, const char *line, size_t n)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *effects;
	struct err e = ERR_INIT;

	if (json_parse_foreign(line, n, &doc, &e) < 0 || doc.root->type != JSON_OBJECT) {
		s->bad++;
		return;
	}
	s->total++;
	for (enum verdict v = 0; v < VERDICT_COUNT_; v++)
		s->verdicts[v] += str_eq(field(doc.root, "verdict"), verdict_name(v));
	if (field(doc.root, "rule")[0])
		count(s->rules, MAX_KINDS, field(doc.root, "rule"));
	count(s->agents, ARRAY_LEN(s->agents), field(doc.root, "agent"));
	effects = json_get(doc.root, "effects");
	for (const struct json *i = effects && effects->type == JSON_ARRAY ? effects->first : NULL;
	     i; i = i->next)
		if (i->type == JSON_STRING)
			count(s->effects, EFFECT_COUNT_, i->text);
}

static int read_log(struct stats *s, const char *dir, const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(2 * GUARD_LOG_MAX);
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	int r = io_read_file(path, &text, e);
	const char *at, *end;

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	for (at = buf_cstr(&text); *at; at = end + 1) {
		end = strchr(at, '\n');
		if (end == NULL)
			break;
		count_line(s, at, (size_t)(end - at));
	}
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	return x->n < y->n ? 1 : x->n > y->n ? -1 : 0;
}

static void put_tally(struct buf *out, const struct tally *v, size_t max, bool is_json)
{
	for (size_t i = 0; i < max && v[i].name; i++) {
		if (is_json) {
			buf_puts(out, i ? "," : "");
			buf_json(out, v[i].name);
			buf_printf(out, ":%llu", (unsigned long long)v[i].n);
		} else {
			buf_printf(out, "  %6llu  ", (unsigned long long)v[i].n);
			buf_esc(out, v[i].name, strlen(v[i].name));
			buf_putc(out, '\n');
		}
	}
}

static void put_stats(struct buf *out, const struct stats *s, bool is_json)
{
	if (is_json) {
		buf_printf(out,
			   "{\"total\":%llu,\"allow\":%llu,\"ask\":%llu,\"deny\":%llu,"
			   "\"unreadable\":%llu,\"rules\":{",
			   (unsigned long long)s->total,
			   (unsigned long long)s->verdicts[VERDICT_ALLOW],
			   (unsigned long long)s->verdicts[VERDICT_ASK],
			   (unsigned long long)s->verdicts[VERDICT_DENY],
			   (unsigned long long)s->bad);
		put_tally(out, s->rules, MAX_KINDS, true);
		buf_puts(out, "},\"effects\":{");
		put_tally(out, s->effects, EFFECT_COUNT_, true);
		buf_puts(out, "},\"agents\":{");
		put_tally(out, s->agents, ARRAY_LEN(s->agents), true);
		buf_puts(out, "}}\n");
		return;
	}
	buf_printf(out, "%llu decisions: %llu allowed, %llu asked, %llu denied\n",
		   (unsigned long long)s->total, (unsigned long long)s->verdicts[VERDICT_ALLOW],
		   (unsigned long long)s->verdicts[VERDICT_ASK],
		   (unsigned long long)s->verdicts[VERDICT_DENY]);
	if (s->rules[0].name)
		buf_puts(out, "by rule\n");
	put_tally(out, s->rules, MAX_KINDS, false);
	if (s->effects[0].name)
		buf_puts(out, "by effect\n");
	put_tally(out, s->effects, EFFECT_COUNT_, false);
	if (s->agents[0].name)
		buf_puts(out, "by agent\n");
	put_tally(out, s->agents, ARRAY_LEN(s->agents), false);
}

static void forget(struct tally *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].name);
}

int guard_stats(bool is_json, struct buf *out, struct err *e)
{
	_free_ struct stats *s = mem_new(1, sizeof(*s));
	_free_ char *dir = NULL;
	int r = guard_state_dir(&dir, e);

	if (r >= 0)
		r = read_log(s, dir, "guard.log.1", e);
	if (r >= 0)
		r = read_log(s, dir, "guard.log", e);
	if (r >= 0) {
		qsort(s->rules, MAX_KINDS, sizeof(s->rules[0]), by_count);
		qsort(s->effects, EFFECT_COUNT_, sizeof(s->effects[0]), by_count);
		qsort(s->agents, ARRAY_LEN(s->agents), sizeof(s->agents[0]), by_count);
		put_stats(out, s, is_json);
	}
	forget(s->rules, MAX_KINDS);
	forget(s->effects, EFFECT_COUNT_);
	forget(s->agents, ARRAY_LEN(s->agents));
	return r;
}
