/* SPDX-License-Identifier: Apache-2.0 */
/* core/packages.c - see packages.h
 *
 * A tree is a directory `files` and a list `index` of what is in it: "f MODE PATH" or "l PATH TARGET" in lines. It is made
 * beside and renamed into place, so that one that is there is whole.
 *
 * Every directory on the way to a file must be root's and nobody else's to write, and no link is followed: what is read is
 * what the records speak of. A link's target is only ever looked up inside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/md5.h"
#include "base/path.h"
#include "base/redact.h"
#include "base/sabotage.h"
#include "base/sha256.h"
#include "core/packages.h"

#define VERSION "1" /* of the rules below: with others, other trees */
#define STATUS_MAX (64 * MIB)
#define LIST_MAX (16 * MIB)
#define FILE_MAX (256 * KIB)
#define INDEX_MAX (1 * MIB)
#define TREES_KEPT 4
#define NEW_TREE ".new-"
#define ABANDONED_S 3600
#define REL_MAX 256

/* ---- what may be shown ---- */

/* Of the machine, not of programs that somebody runs: nothing inside would ever read them. */
static const char *const skipped[] = {
	"X11/Xsession.d/",
	"alternatives/",
	"apparmor.d/",
	"cron.",
	"default/",
	"grub.d/",
	"init.d/",
	"init/",
	"initramfs",
	"kernel/",
	"lightdm/",
	"logrotate.d/",
	"modprobe.d/",
	"modules",
	"network/",
	"pam.",
	"pam.d/",
	"polkit-1/",
	"ppp/",
	"rc",
	"security/",
	"shadow",
	"skel/",
	"ssh/",
	"sudo",
	"systemd/",
	"udev/",
	"update-motd.d/",
};

/* Names that people give to files with secrets in them, in lower case. */
static const char *const secret_names[] = {
	"secret", "token",  "passw",      "shadow", "credential", "private",
	"keytab", "id_rsa", "id_ed25519", ".key",   ".pem",       ".p12",
	".pfx",   ".jks",   ".kdbx",      ".env",   "netrc",      "htpasswd",
};

static bool is_plain(const char *rel)
{
	if (rel[0] == '\0' || rel[0] == '/' || strlen(rel) > REL_MAX)
		return false;
	for (const char *p = rel; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return false;
	return strstr(rel, "//") == NULL && strncmp(rel, "./", 2) != 0 &&
	       strstr(rel, "/./") == NULL && strncmp(rel, "../", 3) != 0 &&
	       strstr(rel, "/../") == NULL && !str_ends(rel, "/..") && !str_ends(rel, "/") &&
	       !str_ends(rel, "/.");
}

bool packages_may_show(const char *rel)
{
	char lower[REL_MAX + 1] = { 0 };

	if (!is_plain(rel))
		return false;
	for (size_t i = 0; rel[i]; i++)
		lower[i] = (char)(rel[i] >= 'A' && rel[i] <= 'Z' ? rel[i] | 0x20 : rel[i]);
	for (size_t i = 0; i < ARRAY_LEN(skipped); i++)
		if (str_starts(rel, skipped[i]))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(secret_names); i++)
		if (strstr(lower, secret_names[i]))
			return false;
	return true;
}

/* Nothing but packages writes there; and the text of a link says no more than that. */
bool packages_may_link(const char *rel, const char *target)
{
	_free_ char *from = path_join("/etc", rel), *up = path_parent(from);
	_free_ char *to = path_join(up, target);
	const char *below = target[0] == '/' ? target + 1 : target;

	if (!packages_may_show(rel) || to == NULL || strlen(target) > REL_MAX)
		return false;
	for (const char *p = below; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return false;
	return path_is_beneath(to, "/usr") || path_is_beneath(to, "/etc");
}

/* ---- the records ---- */

static size_t line_len(const char *p)
{
	return strcspn(p, "\n");
}

/* "PATH MD5" or "MD5  PATH"; anything behind that (obsolete, remove-on-upgrade) is no file of the package's any more. */
static void offer(const char *path, size_t path_n, const char *md5, packages_fn fn, void *arg)
{
	_free_ char *rel = mem_strn(path, path_n), *sum = mem_strn(md5, MD5_HEX_BYTES - 1);

	if (strspn(sum, "0123456789abcdef") == MD5_HEX_BYTES - 1 && packages_may_show(rel))
		fn(arg, rel, sum);
}

void packages_status(const char *text, packages_fn fn, void *arg)
{
	bool is_installed = false, is_list = false;

	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = line_len(p);

		if (n == 0) {
			is_installed = is_list = false;
		} else if (p[0] != ' ') {
			is_list = n == 10 && strncmp(p, "Conffiles:", 10) == 0;
			if (str_starts(p, "Status: "))
				is_installed = n == 28 &&
					       strncmp(p, "Status: install ok installed", 28) == 0;
		} else if (is_list && is_installed && str_starts(p, " /etc/")) {
			size_t path_n = strcspn(p + 6, " \n");

			if (n == 6 + path_n + MD5_HEX_BYTES && p[6 + path_n] == ' ')
				offer(p + 6, path_n, p + 7 + path_n, fn, arg);
		}
		p += n;
	}
}

void packages_sums(const char *text, packages_fn fn, void *arg)
{
	const size_t head = MD5_HEX_BYTES - 1;

	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = line_len(p);

		if (n > head + 6 && strncmp(p + head, "  etc/", 6) == 0)
			offer(p + head + 6, n - head - 6, p, fn, arg);
		p += n;
	}
}

/* ---- the tree ---- */

struct making {
	const struct packages *at;
	int etc;   /* the system's */
	int files; /* ours */
	struct buf index;
};

static bool is_owners(const struct making *m, const struct stat *st)
{
	return st->st_uid == m->at->owner && (st->st_mode & 0022) == 0;
}

/* Can everybody get there, and only root change the way? */
static bool is_open_way(const struct making *m, const char *rel)
{
	for (const char *p = strchr(rel, '/'); p; p = strchr(p + 1, '/')) {
		_free_ char *up = mem_strn(rel, (size_t)(p - rel));
		struct stat st;

		if (fstatat(m->etc, up, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
		    (st.st_mode & 0005) != 0005 || !is_owners(m, &st))
			return false;
	}
	return true;
}

static bool holds_secret(const struct buf *b)
{
	return b->n && (memchr(b->p, '\0', b->n) || redact_has_token(buf_cstr(b)) ||
			strstr(buf_cstr(b), "PRIVATE KEY"));
}

static int put_file(struct making *m, const char *rel, const struct buf *b, unsigned mode)
{
	_free_ char *up = path_parent(rel);
	_close_ int fd = FD_NONE;
	int r = path_mkdirs(m->files, up, 0755);

	if (r < 0)
		return r;
	fd = openat(m->files, rel, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, buf_cstr(b), b->n);
	return r == 0 && fchmod(fd, mode) < 0 ? -errno : r;
}

static void on_file(void *arg, const char *rel, const char *md5)
{
	struct making *m = arg;
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);
	_close_ int fd =
		path_openat2(m->etc, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct err ignored = ERR_INIT;
	char sum[MD5_HEX_BYTES];
	unsigned mode;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_open_way(m, rel) ||
	    (!sabotaged("conffiles") && (!(st.st_mode & 0004) || !is_owners(m, &st))) ||
	    io_read_fd(fd, &b, &ignored) < 0)
		return;
	md5_hex(buf_cstr(&b), b.n, sum);
	if ((!str_eq(sum, md5) || holds_secret(&b)) && !sabotaged("conffiles"))
		return;
	mode = st.st_mode & 0001 ? 0755 : 0644;
	/* One path may be in two lists. */
	if (put_file(m, rel, &b, mode) == 0)
		buf_printf(&m->index, "f %o %s\n", mode, rel);
}

static void on_link(struct making *m, const char *rel)
{
	char target[REL_MAX + 2];
	ssize_t n = readlinkat(m->etc, rel, target, sizeof(target) - 1);
	struct stat st;

	if (n <= 0 || (size_t)n >= sizeof(target) - 1 || !is_open_way(m, rel) ||
	    fstatat(m->etc, rel, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != m->at->owner)
		return;
	target[n] = '\0';
	if (packages_may_link(rel, target))
		buf_printf(&m->index, "l %s %s\n", rel, target);
}

static void on_list(struct making *m, const char *text)
{
	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = line_len(p);

		if (n > 5 && strncmp(p, "/etc/", 5) == 0) {
			_free_ char *rel = mem_strn(p + 5, n - 5);

			if (is_plain(rel))
				on_link(m, rel);
		}
		p += n;
	}
}

/* The lists of all packages; of what is not installed any more nothing is left that would match. */
static void read_lists(struct making *m)
{
	_free_ char *path = mem_fmt("%s/info", m->at->records);
	DIR *d = opendir(path);
	const struct dirent *en;

	while (d && (en = readdir(d)) != NULL) {
		_free_ char *name = mem_fmt("%s/%s", path, en->d_name);
		_cleanup_(buf_done) struct buf b = BUF(LIST_MAX);
		bool is_sums = str_ends(en->d_name, ".md5sums");
		struct err ignored = ERR_INIT;

		if ((!is_sums && !str_ends(en->d_name, ".list")) ||
		    io_read_file(name, &b, &ignored) < 0)
			continue;
		if (is_sums)
			packages_sums(buf_cstr(&b), on_file, m);
		else
			on_list(m, buf_cstr(&b));
	}
	if (d)
		(void)closedir(d);
}

static int fill(const struct packages *at, int dir)
{
	_cleanup_(buf_done) struct buf status = BUF(STATUS_MAX);
	_free_ char *path = mem_fmt("%s/status", at->records);
	_close_ int etc = open(at->etc, O_PATH | O_DIRECTORY | O_CLOEXEC), files = FD_NONE,
		    list = FD_NONE;
	struct making m = { .at = at, .etc = etc, .index = BUF(INDEX_MAX) };
	struct err ignored = ERR_INIT;
	int r = io_read_file(path, &status, &ignored);

	if (r < 0 || etc < 0)
		return r < 0 ? r : -ENOENT;
	if (mkdirat(dir, "files", 0755) < 0)
		return -errno;
	files = openat(dir, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list = openat(dir, "index", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (files < 0 || list < 0)
		return -errno;
	m.files = files;
	packages_status(buf_cstr(&status), on_file, &m);
	read_lists(&m);
	r = m.index.is_over ? -E2BIG : io_write_all(list, buf_cstr(&m.index), m.index.n);
	buf_done(&m.index);
	return r;
}

/* A tree that a killed start left half made. */
static bool is_abandoned(int trees, const char *name)
{
	struct stat st;

	return str_starts(name, NEW_TREE) && fstatat(trees, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec < time(NULL) - ABANDONED_S;
}

/* A few trees stay, for starts that are about to use one. */
static void prune(int trees, const char *keep)
{
	int again = openat(trees, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	const struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (en->d_name[0] == '.' ? is_abandoned(trees, en->d_name)
					 : !str_eq(en->d_name, keep) && ++n >= TREES_KEPT)
			path_remove(trees, en->d_name);
	if (d)
		(void)closedir(d);
}

static int make(const struct packages *at, const char *trees_path, const char *key)
{
	_close_ int trees = FD_NONE, dir = FD_NONE;
	char name[40];
	uint64_t number;
	int r = path_make(trees_path, 0700);

	if (r < 0)
		return r;
	trees = open(trees_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (trees < 0 || getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	(void)snprintf(name, sizeof(name), NEW_TREE "%016llx", (unsigned long long)number);
	if (mkdirat(trees, name, 0700) < 0)
		return -errno;
	dir = openat(trees, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? -errno : fill(at, dir);
	if (r == 0 && renameat(trees, name, trees, key) < 0 && errno != EEXIST &&
	    errno != ENOTEMPTY)
		r = -errno;
	path_remove(trees, name); /* gone already when it was renamed */
	prune(trees, key);
	return r;
}

char *packages_tree(const struct packages *at, const char *state_dir, bool may_make)
{
	_free_ char *status = mem_fmt("%s/status", at->records),
		    *trees = mem_fmt("%s/packages", state_dir), *text = NULL, *index = NULL;
	char hex[SHA256_HEX_BYTES], key[17];
	struct stat st;

	if (stat(status, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	text = mem_fmt(VERSION " %llu %lld %lld.%ld %u", (unsigned long long)st.st_ino,
		       (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		       at->owner);
	sha256_hex(text, strlen(text), hex);
	memcpy(key, hex, sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	index = mem_fmt("%s/%s/index", trees, key);
	if (may_make && access(index, R_OK) < 0 && make(at, trees, key) < 0)
		return NULL;
	return mem_fmt("%s/%s", trees, key);
}
