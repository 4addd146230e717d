/* SPDX-License-Identifier: Apache-2.0 */
/* core/homefiles.c - reads the user's settings of git, npm, pip and cargo; view/homecfg.h decides what comes inside
 *
 * On the start path: an open for each file, and most do not exist.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/facts.h"
#include "view/homecfg.h"

int host_read_setting(const char *path, struct buf *out)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct err ignored = ERR_INIT;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= (off_t)HOMECFG_MAX)
		return -EINVAL;
	return io_read_fd(fd, out, &ignored) < 0 ? -EINVAL : 1;
}

/* Not from the workspace, which the inside writes: it could include any file by a link, or one file without end. */
static bool read_included(void *arg, const char *path, struct buf *out)
{
	const struct host *h = arg;
	_free_ char *real = realpath(path, NULL);

	return real && !path_is_beneath(real, h->workspace) && host_read_setting(real, out) == 1;
}

static int show(const struct host *h, enum home_file what, const char *path, const struct buf *text,
		struct buf *out)
{
	const struct homecfg_place place = { h->home, h->workspace, read_included,
					     (void *)(uintptr_t)h };

	if (sabotaged("homecfg")) {
		buf_add(out, text->p, text->n);
		return 0;
	}
	switch (what) {
	case HOME_GIT:
		return homecfg_git(path, buf_cstr(text), text->n, &place, out);
	case HOME_NPM:
		return homecfg_npm(buf_cstr(text), text->n, out);
	case HOME_PIP:
		return homecfg_pip(buf_cstr(text), text->n, out);
	case HOME_CARGO:
	case HOME_CARGO_OLD:
		return homecfg_cargo(buf_cstr(text), text->n, out);
	case HOME_FILE_COUNT_:
		break;
	}
	return -EINVAL;
}

static void look_at(struct host *h, enum home_file what, const char *path)
{
	_cleanup_(buf_done) struct buf text = BUF(HOMECFG_MAX + 1), out = BUF(2 * HOMECFG_MAX);
	struct home_text *to = &h->facts.home_files[what];
	_free_ char *before = NULL;
	int r = host_read_setting(path, &text);

	if (r == 0)
		return;
	if (r < 0 || show(h, what, path, &text, &out) < 0) {
		out.n = 0;
		free(h->home_note);
		h->home_note = mem_fmt("'%s' cannot be read with certainty: none of it is seen "
				       "inside",
				       path);
	}
	if (to->path == NULL) {
		char *real = realpath(path, NULL);

		to->path = real ? real : mem_str(path);
	}
	/* Of two files git reads the later over the earlier one; of the others' the later counts. */
	before = to->text;
	to->text = mem_fmt("%s%.*s", before && what == HOME_GIT ? before : "", (int)out.n,
			   out.n ? out.p : "");
}

void host_home_files(struct host *h)
{
	static const struct {
		enum home_file what;
		bool is_config; /* below the directory of configurations, which XDG_CONFIG_HOME may name */
		const char *name;
	} files[] = {
		{ HOME_GIT, true, "git/config" },
		{ HOME_GIT, false, ".gitconfig" },
		{ HOME_NPM, false, ".npmrc" },
		{ HOME_PIP, false, ".pip/pip.conf" },
		{ HOME_PIP, true, "pip/pip.conf" },
		{ HOME_CARGO, false, ".cargo/config.toml" },
		{ HOME_CARGO_OLD, false, ".cargo/config" },
	};
	_free_ char *config = path_parent(h->config_dir);

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_free_ char *path = path_join(files[i].is_config ? config : h->home, files[i].name);

		look_at(h, files[i].what, path);
	}
}

void host_home_files_done(struct host *h)
{
	for (size_t i = 0; i < HOME_FILE_COUNT_; i++) {
		free(h->facts.home_files[i].path);
		free(h->facts.home_files[i].text);
		h->facts.home_files[i] = (struct home_text){ 0 };
	}
	free(h->home_note);
	h->home_note = NULL;
}
