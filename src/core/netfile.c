/* SPDX-License-Identifier: Apache-2.0 */
/* core/netfile.c - see netfile.h */
#include <fcntl.h>

#include "base/io.h"
#include "core/netfile.h"

#define MAX_BYTES (MIB)
#define MAX_LINES 1024

void netfile_done(struct netfile *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->lines[i]);
	free(f->lines);
	*f = (struct netfile){ 0 };
}

static void add(struct netfile *f, char *take_line)
{
	f->lines = mem_grow(f->lines, f->n + 1, sizeof(*f->lines));
	f->lines[f->n++] = take_line;
}

static void drop(struct netfile *f, const char *line, bool is_prefix)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (is_prefix ? str_starts(f->lines[i], line) : str_eq(f->lines[i], line))
			free(f->lines[i]);
		else
			f->lines[kept++] = f->lines[i];
	}
	f->n = kept;
}

int netfile_read(const char *state_dir, const char *name, struct netfile *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MAX_BYTES);
	_free_ char *path = mem_fmt("%s/sandboxes/%s/net", state_dir, name);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	*ret = (struct netfile){ 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	r = io_read_fd(fd, &b, e);
	if (r < 0)
		return err_wrap(e, r, "'%s'", path);
	for (const char *p = buf_cstr(&b); *p;) {
		size_t n = strcspn(p, "\n");

		if (n > 0 && ret->n < MAX_LINES)
			add(ret, mem_strn(p, n));
		p += n + (p[n] == '\n');
	}
	return 0;
}

void netfile_set(struct netfile *f, bool is_deny, const char *rule)
{
	_free_ char *other = mem_fmt("--%s=%s", is_deny ? "allow" : "deny", rule);
	char *line = mem_fmt("--%s=%s", is_deny ? "deny" : "allow", rule);

	drop(f, other, false);
	drop(f, line, false);
	add(f, line);
}

void netfile_preset(struct netfile *f, const char *preset)
{
	drop(f, "--net=", true);
	add(f, mem_fmt("--net=%s", preset));
	/* First: what is allowed behind it opens the network that "none" closes. */
	for (size_t i = f->n - 1; i > 0; i--) {
		char *line = f->lines[i];

		f->lines[i] = f->lines[i - 1];
		f->lines[i - 1] = line;
	}
}

int netfile_write(const char *state_dir, const char *name, const struct netfile *f, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MAX_BYTES);
	_free_ char *path = mem_fmt("%s/sandboxes/%s/net", state_dir, name);
	_free_ char *new = mem_fmt("%s.new", path);
	_close_ int fd = FD_NONE;
	int r;

	if (f->n > MAX_LINES)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d network rules", MAX_LINES);
	for (size_t i = 0; i < f->n; i++)
		buf_printf(&b, "%s\n", f->lines[i]);
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, "'%s'", new);
	r = io_write_all(fd, buf_cstr(&b), b.n);
	if (r < 0 || fsync(fd) < 0 || rename(new, path) < 0)
		return err_sys(e, "'%s'", path);
	return 0;
}
