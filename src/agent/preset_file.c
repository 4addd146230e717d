/* SPDX-License-Identifier: Apache-2.0 */
/* agent/preset_file.c - where presets are found: the user's folder, then the bytes in this program
 *
 * A preset widens the policy, so its file must be the user's alone: what others can write is refused. The built-in ones
 * lie one behind the other in agents_data (made by agents_gen): name, NUL, text, NUL, ..., NUL.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/preset.h"
#include "base/io.h"
#include "policy/policy.h"

/* Made by the build. */
#include "agents_data.h"

static const char *next_builtin(const char *name)
{
	const char *text = name + strlen(name) + 1;

	return text + strlen(text) + 1;
}

static const char *find_builtin(const char *name)
{
	for (const char *p = agents_data; *p; p = next_builtin(p))
		if (str_eq(p, name))
			return p + strlen(p) + 1;
	return NULL;
}

/* A file name is made of it. */
static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return n > 0 && n < 64 && name[n] == '\0' && name[0] != '-';
}

static int open_own(const char *config_dir, const char *name, char **ret_path)
{
	_free_ char *path = config_dir && is_name(name)
				    ? mem_fmt("%s/" PRESET_DIR "/%s.json", config_dir, name)
				    : NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -ENOENT;

	if (fd < 0)
		return path ? -errno : -ENOENT;
	*ret_path = take(path);
	return fd;
}

static int check_own(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is not a regular file", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_CONFIG, EPERM, "'%s' belongs to another user", path);
	if (st.st_mode & 022)
		return err_set(e, ERR_CONFIG, EPERM,
			       "'%s' can be written by others; try: chmod go-w '%s'", path, path);
	return 0;
}

int preset_load(const char *config_dir, const char *name, struct preset *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	_free_ char *path = NULL;
	_close_ int fd = open_own(config_dir, name, &path);
	const char *builtin;
	int r;

	if (fd >= 0) {
		r = check_own(fd, path, e);
		if (r == 0)
			r = io_read_fd(fd, &text, e);
		return r < 0 ? r : preset_parse(name, path, buf_cstr(&text), text.n, ret, e);
	}
	if (fd != -ENOENT && fd != -ENOTDIR)
		return err_set(e, ERR_SYSTEM, -fd, "%s/" PRESET_DIR "/%s.json: %s", config_dir,
			       name, strerror(-fd));
	builtin = find_builtin(name);
	return builtin ? preset_parse(name, PRESET_BUILTIN, builtin, strlen(builtin), ret, e)
		       : -ENOENT;
}

bool preset_is_there(const char *config_dir, const char *name)
{
	_free_ char *path = NULL;
	_close_ int fd = find_builtin(name) ? FD_NONE : open_own(config_dir, name, &path);

	return fd >= 0 || find_builtin(name) != NULL;
}

static bool is_known(char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static int cmp_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int preset_names(const char *config_dir, char ***ret, struct err *e)
{
	_free_ char *path = config_dir ? mem_fmt("%s/" PRESET_DIR, config_dir) : NULL;
	DIR *d = path ? opendir(path) : NULL;
	size_t n = 0, cap = 0;
	char **names = NULL;

	if (path && d == NULL && errno != ENOENT)
		return err_sys(e, "open '%s'", path);
	for (const char *p = agents_data; *p; p = next_builtin(p)) {
		vec_reserve(names, n, cap);
		names[n++] = mem_str(p);
	}
	for (struct dirent *en; d && (en = readdir(d));) {
		_free_ char *name = mem_str(en->d_name);

		if (!str_ends(name, ".json"))
			continue;
		name[strlen(name) - strlen(".json")] = '\0';
		if (!is_name(name) || is_known(names, n, name))
			continue;
		vec_reserve(names, n, cap);
		names[n++] = take(name);
	}
	if (d)
		(void)closedir(d);
	vec_reserve(names, n, cap);
	names[n] = NULL;
	qsort(names, n, sizeof(*names), cmp_names);
	*ret = names;
	return 0;
}

void preset_names_free(char **names)
{
	for (char **v = names; v && *v; v++)
		free(*v);
	free(names);
}

int preset_apply(const struct preset *p, struct policy *policy, struct err *e)
{
	_free_ char *name = str_eq(p->origin, PRESET_BUILTIN) ? mem_fmt("preset %s", p->name)
							      : mem_str(p->origin);

	return p->policy ? policy_merge_json(policy, name, p->policy, LAYER_PRESET, true, e) : 0;
}
