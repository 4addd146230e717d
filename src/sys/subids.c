/* SPDX-License-Identifier: Apache-2.0 */
/* sys/subids.c - see subids.h
 *
 * Who is not root cannot write such a map: newuidmap and newgidmap do it, which look into /etc/subuid and /etc/subgid
 * themselves. They are run by their absolute path and with an empty environment.
 */
#include "sys/subids.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/num.h"

/* ---- /etc/subuid ---- */

static bool parse_line(char *line, const char *user, uid_t uid, uint32_t *ret_first)
{
	char *first = strchr(line, ':'), *count;
	struct err ignored;
	uint64_t from, n, id;

	if (first == NULL)
		return false;
	*first++ = '\0';
	count = strchr(first, ':');
	if (count == NULL)
		return false;
	*count++ = '\0';
	if (!str_eq(line, user) &&
	    (num_parse(line, 0, UINT32_MAX - 1, &id, &ignored) < 0 || id != uid))
		return false;
	/* The host's own low ids are never given away, whatever the file says. */
	if (num_parse(first, SUBIDS_COUNT, UINT32_MAX - SUBIDS_COUNT, &from, &ignored) < 0 ||
	    num_parse(count, SUBIDS_COUNT, UINT32_MAX, &n, &ignored) < 0 ||
	    (uid >= from && uid - from < SUBIDS_COUNT))
		return false;
	*ret_first = (uint32_t)from;
	return true;
}

bool subids_find(const char *text, const char *user, uid_t uid, uint32_t *ret_first)
{
	bool is_found = false;

	while (!is_found && *text) {
		size_t n = strcspn(text, "\n");
		_free_ char *line = mem_strn(text, n);

		is_found = parse_line(line, user, uid, ret_first);
		text += n + (text[n] == '\n');
	}
	return is_found;
}

/* ---- maps ---- */

static void add(struct id_map *m, uint32_t in, uint32_t out, uint32_t count)
{
	if (count > 0)
		m->v[m->n++] = (struct id_range){ in, out, count };
}

struct id_map subids_map(uint32_t own, uint32_t first)
{
	uint32_t below = own < SUBIDS_COUNT ? own : SUBIDS_COUNT;
	struct id_map m = { 0 };

	add(&m, 0, first, below);
	add(&m, own, own, 1);
	if (own < SUBIDS_COUNT)
		add(&m, own + 1, first + own + 1, SUBIDS_COUNT - own - 1);
	return m;
}

struct id_map subids_map_all(uint32_t first)
{
	struct id_map m = { 0 };

	add(&m, 0, first, SUBIDS_COUNT);
	return m;
}

void subids_text(const struct id_map *m, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < m->n && at < size; i++)
		at += (size_t)snprintf(ret + at, size - at, "%u %u %u\n", m->v[i].in, m->v[i].out,
				       m->v[i].count);
	bug_on(at >= size);
}

/* ---- writing ---- */

static int write_map(pid_t pid, const char *file, const struct id_map *m, struct err *e)
{
	_close_ int fd = FD_NONE;
	char path[64], text[128];
	int r;

	subids_text(m, text, sizeof(text));
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "map ids: %s", strerrordesc_np(-r)) : 0;
}

#define WORDS_MAX 12

static _Noreturn void exec_tool(const char *tool, char *const *argv)
{
	static const char *const places[] = { "/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin" };
	char *const none[] = { NULL };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], tool);
		(void)execve(path, argv, none);
	}
	_exit(127);
}

static int run_tool(const char *tool, pid_t pid, const struct id_map *m, struct err *e)
{
	char words[WORDS_MAX][12], *argv[WORDS_MAX + 1] = { NULL };
	size_t n = 1;
	int status = 0;
	pid_t child;

	(void)snprintf(words[0], sizeof(words[0]), "%s", tool);
	(void)snprintf(words[n++], sizeof(words[0]), "%d", (int)pid);
	for (size_t i = 0; i < m->n; i++) {
		(void)snprintf(words[n++], sizeof(words[0]), "%u", m->v[i].in);
		(void)snprintf(words[n++], sizeof(words[0]), "%u", m->v[i].out);
		(void)snprintf(words[n++], sizeof(words[0]), "%u", m->v[i].count);
	}
	for (size_t i = 0; i < n; i++)
		argv[i] = words[i];
	child = fork();
	if (child == 0)
		exec_tool(tool, argv);
	if (child < 0)
		return err_sys(e, "fork");
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "'%s' is not installed (Debian: uidmap), so there are no ids to be "
			       "root with; 'vitrine doctor' says more",
			       tool);
	return status == 0 ? 0
			   : err_set(e, ERR_UNSUPPORTED, EPERM,
				     "'%s' refuses to map this account's subordinate ids; 'vitrine "
				     "doctor' says more",
				     tool);
}

int subids_write(pid_t pid, const struct id_map *uids, const struct id_map *gids, struct err *e)
{
	bool is_root = geteuid() == 0;
	int r = is_root ? write_map(pid, "uid_map", uids, e) : run_tool("newuidmap", pid, uids, e);

	if (r < 0)
		return r;
	return is_root ? write_map(pid, "gid_map", gids, e) : run_tool("newgidmap", pid, gids, e);
}
