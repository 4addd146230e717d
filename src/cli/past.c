/* SPDX-License-Identifier: Apache-2.0 */
/* cli/past.c - see past.h */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/past.h"

static char *copy_of(const char *text)
{
	return text ? mem_str(text) : NULL;
}

static bool read_one(int dir, const char *path, struct past *ret)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	_close_ int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	if (fd < 0 || io_read_fd(fd, &b, &ignored) < 0 ||
	    json_parse(buf_cstr(&b), b.n, &doc, &ignored) < 0 || doc.root->type != JSON_OBJECT)
		return false;
	ret->has_ended = json_u64(json_get(doc.root, "ended"), &ret->ended);
	(void)json_u64(json_get(doc.root, "started"), &ret->started);
	(void)json_u64(json_get(doc.root, "first"), &ret->first);
	(void)json_u64(json_get(doc.root, "cpu_ns"), &ret->cpu_ns);
	(void)json_i64(json_get(doc.root, "exit"), &ret->status);
	ret->command = copy_of(json_text(doc.root, "command", NULL));
	ret->reason = copy_of(json_text(doc.root, "reason", NULL));
	return true;
}

static int newest_first(const void *a, const void *b)
{
	uint32_t x = ((const struct past *)a)->id, y = ((const struct past *)b)->id;

	return x < y ? 1 : x > y ? -1 : 0;
}

int past_read(const char *state_dir, const char *name, struct past **ret, size_t *ret_n,
	      struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/sessions", state_dir, name);
	DIR *d = opendir(path);
	struct past *v = NULL;
	struct dirent *en;
	size_t n = 0;

	if (d == NULL && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	while (d && (en = readdir(d)) != NULL) {
		struct past p = { 0 };
		struct err ignored;
		uint64_t id;

		_free_ char *file = NULL;

		if (num_parse(en->d_name, 1, UINT32_MAX, &id, &ignored) < 0)
			continue;
		p.id = (uint32_t)id;
		file = mem_fmt("%s/session.json", en->d_name);
		if (!read_one(dirfd(d), file, &p))
			continue;
		v = mem_grow(v, n + 1, sizeof(*v));
		v[n++] = p;
	}
	if (d)
		(void)closedir(d);
	if (n > 1)
		qsort(v, n, sizeof(*v), newest_first);
	*ret = v;
	*ret_n = n;
	return 0;
}

void past_done(struct past *p)
{
	free(p->command);
	free(p->reason);
}

void past_free(struct past *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		past_done(&v[i]);
	free(v);
}

bool past_left(const char *state_dir, const char *name, struct past *ret)
{
	_free_ char *path = mem_fmt("%s/" STORY_LEFT_DIR "/%s", state_dir, name);

	*ret = (struct past){ .id = 1 };
	return strchr(name, '/') == NULL && name[0] != '.' && read_one(AT_FDCWD, path, ret);
}

bool past_is_lost(const struct past *v, size_t n)
{
	bool is_lost = false;

	for (size_t i = 0; i < n && (i == 0 || v[i].id >= v[0].first); i++)
		is_lost |= !v[i].has_ended;
	return is_lost;
}

static bool runs(const struct live *live, uint32_t id)
{
	for (size_t i = 0; i < live->n; i++)
		if (live->sessions[i].session == id)
			return true;
	return false;
}

void past_print(const struct past *v, size_t n, const struct live *live, struct buf *out)
{
	bool is_first = true;

	buf_puts(out, ",\n  \"past\": [");
	for (size_t i = 0; i < n; i++) {
		if (!v[i].has_ended && runs(live, v[i].id))
			continue;
		buf_printf(out, "%s{\"id\": %u, \"status\": \"%s\", \"started\": %llu",
			   is_first ? "" : ",\n    ", v[i].id, v[i].has_ended ? "ended" : "lost",
			   (unsigned long long)v[i].started);
		if (v[i].has_ended)
			buf_printf(out, ", \"ended\": %llu, \"exit\": %lld, \"cpu_ns\": %llu",
				   (unsigned long long)v[i].ended, (long long)v[i].status,
				   (unsigned long long)v[i].cpu_ns);
		buf_puts(out, ", \"reason\": ");
		buf_json(out, v[i].reason ? v[i].reason : "lost");
		buf_puts(out, ", \"command\": ");
		buf_json(out, v[i].command ? v[i].command : "");
		buf_putc(out, '}');
		is_first = false;
	}
	buf_putc(out, ']');
}
