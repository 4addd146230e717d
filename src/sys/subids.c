/* SPDX-License-Identifier: Apache-2.0 */
/* sys/subids.c - see subids.h
 *
 * Who is not root cannot write such a map: newuidmap and newgidmap do it, which look into /etc/subuid and /etc/subgid
 * themselves. They are run by their absolute path and with an empty environment.
 */
#include "sys/subids.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/num.h"
#include "sys/userns.h"

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

/* ---- being root of them ---- */

static _Noreturn void run_own(void (*fn)(void *), void *arg)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    userns_enter(geteuid(), getegid(), 0) < 0)
		_exit(1);
	fn(arg);
	_exit(0);
}

/* In the child: one byte says that it has its namespace, one comes when that has its ids. */
static _Noreturn void run_inside(int link, void (*fn)(void *), void *arg)
{
	char word = 'n';

	if (unshare(CLONE_NEWUSER) < 0 || io_write_all(link, &word, 1) < 0 ||
	    io_read(link, &word, 1) != 1 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 ||
	    setresuid(0, 0, 0) < 0)
		_exit(1);
	/* Changing ids takes it away, so it comes last; whoever waited may be gone already. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || io_write_all(link, &word, 1) < 0)
		_exit(1);
	fn(arg);
	_exit(0);
}

int subids_run(const struct id_map *uids, const struct id_map *gids, void (*fn)(void *), void *arg,
	       struct err *e)
{
	int pair[2], status = 1, r;
	char word = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid = fork();
	if (pid == 0) {
		fd_close(pair[0]);
		if (uids == NULL)
			run_own(fn, arg);
		run_inside(pair[1], fn, arg);
	}
	fd_close(pair[1]);
	r = pid < 0 ? err_sys(e, "fork") : 0;
	if (r == 0 && uids && io_read(pair[0], &word, 1) != 1)
		r = err_set(e, ERR_UNSUPPORTED, EPERM, "no user namespace can be made");
	if (r == 0 && uids)
		r = subids_write(pid, uids, gids, e);
	if (r == 0 && uids && io_write_all(pair[0], &word, 1) < 0)
		r = err_sys(e, "socketpair");
	fd_close(r == 0 ? FD_NONE : take_fd(pair[0])); /* then it gives up */
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	fd_close(pair[0]);
	return r < 0 || status == 0 ? r
				    : err_set(e, ERR_SYSTEM, ECHILD,
					      "root of subordinate ids did not get there");
}
