/* SPDX-License-Identifier: Apache-2.0 */
/* image/extract.c - see image.h: entries of a tar onto a directory
 *
 * libarchive reads, we write: a path is taken apart by image_path(), its directory is opened within the root (a link on
 * the way leads to where it would lead inside the image, never out), what is there under the name goes first, and the
 * new thing is made with O_EXCL. Devices and attributes other than user.* are not taken over. Neither are owners and
 * set-user-id bits, and all of it belongs to who runs us; unless that is the root of a range of ids (has_owners).
 */
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/path.h"
#include "image/image.h"

#define IN_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
#define PARENTS_MAX 512

struct archive *image_open_tar(int fd, struct err *e)
{
	struct archive *a = archive_read_new();

	bug_on(a == NULL);
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_format_tar(a);
	(void)archive_read_support_format_empty(a);
	if (archive_read_open_fd(a, fd, 65536) == ARCHIVE_OK)
		return a;
	(void)err_set(e, ERR_DENIED, EBADMSG, "not a tar archive: %s", archive_error_string(a));
	(void)archive_read_free(a);
	return NULL;
}

/* The directory of a path; what is missing on the way is made. */
static int open_parent(int root, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	_free_ char *dir = mem_strn(path, slash ? (size_t)(slash - path) : 0);
	int fd = path_openat2(root, dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY, IN_ROOT);
	int depth = 0;

	if (fd != -ENOENT)
		return fd < 0 ? err_set(e, ERR_DENIED, -fd, "'%.200s': %s", dir,
					strerrordesc_np(-fd))
			      : fd;
	fd = path_openat2(root, ".", O_RDONLY | O_DIRECTORY, IN_ROOT);
	for (char *p = dir; fd >= 0 && *p; depth++) {
		size_t n = strcspn(p, "/");
		char was = p[n];
		int next;

		p[n] = '\0';
		next = path_openat2(root, dir, O_RDONLY | O_DIRECTORY, IN_ROOT);
		if (next == -ENOENT && (mkdirat(fd, p, 0755) == 0 || errno == EEXIST))
			next = path_openat2(root, dir, O_RDONLY | O_DIRECTORY, IN_ROOT);
		fd_close(fd);
		fd = depth == PARENTS_MAX ? -ENAMETOOLONG : next;
		p[n] = was;
		p += n + (was == '/');
	}
	return fd < 0 ? err_set(e, ERR_DENIED, -fd, "'%.200s': %s", path, strerrordesc_np(-fd))
		      : fd;
}

/* Ids that cannot be there are nobody's. */
static uint32_t bounded(int64_t id)
{
	return id >= 0 && id < IMAGE_IDS_MAX ? (uint32_t)id : 65534;
}

/* Giving a file away takes such bits off, so its mode comes after. */
static int own(const struct extract *x, struct archive_entry *en, int dir, const char *name)
{
	if (!x->has_owners)
		return 0;
	return fchownat(dir, name, bounded(archive_entry_uid(en)), bounded(archive_entry_gid(en)),
			AT_SYMLINK_NOFOLLOW);
}

static mode_t mode_of(const struct extract *x, struct archive_entry *en, mode_t mask, mode_t least)
{
	return x->has_owners ? archive_entry_perm(en) & 07777
			     : (archive_entry_perm(en) & mask) | least;
}

static void set_xattrs(struct archive_entry *en, int fd)
{
	const char *name;
	const void *value;
	size_t size;

	(void)archive_entry_xattr_reset(en);
	while (archive_entry_xattr_next(en, &name, &value, &size) == ARCHIVE_OK)
		if (str_starts(name, "user.") && !str_starts(name, "user.overlay."))
			(void)fsetxattr(fd, name, value, size,
					0); /* an attribute is not worth the file */
}

static int put_data(struct archive *a, struct extract *x, int fd, int64_t size, struct err *e)
{
	const void *p;
	size_t n;
	la_int64_t at;
	int r;

	while ((r = archive_read_data_block(a, &p, &n, &at)) == ARCHIVE_OK) {
		x->bytes += n;
		if (x->bytes > EXTRACT_BYTES_MAX || at < 0 || at + (int64_t)n > size)
			return err_set(e, ERR_DENIED, EFBIG, "the archive holds too much");
		for (size_t done = 0; done < n;) {
			ssize_t w = pwrite(fd, (const char *)p + done, n - done, at + (off_t)done);

			if (w < 0)
				return err_sys(e, "write");
			done += (size_t)w;
		}
	}
	if (r != ARCHIVE_EOF)
		return err_set(e, ERR_DENIED, EBADMSG, "the archive is damaged: %s",
			       archive_error_string(a));
	return ftruncate(fd, size) < 0 ? err_sys(e, "a file of %lld bytes", (long long)size) : 0;
}

static int put_file(struct archive *a, struct archive_entry *en, struct extract *x, int dir,
		    const char *name, struct err *e)
{
	_close_ int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { archive_entry_mtime(en), archive_entry_mtime_nsec(en) } };
	int64_t size = archive_entry_size(en);
	int r;

	if (fd < 0)
		return err_sys(e, "'%.200s'", name);
	if (size < 0 || (uint64_t)size > 1024 * GIB)
		return err_set(e, ERR_DENIED, EFBIG, "'%.200s' is too large", name);
	r = put_data(a, x, fd, size, e);
	if (r < 0)
		return r;
	set_xattrs(en, fd);
	if (own(x, en, dir, name) < 0 || fchmod(fd, mode_of(x, en, 0777, 0400)) < 0)
		return err_sys(e, "'%.200s'", name);
	(void)futimens(fd, times); /* a time is not worth the file */
	return 0;
}

static int put_link(const struct extract *x, const char *target, int dir, const char *name,
		    struct err *e)
{
	_free_ char *clean = image_path(target);
	const char *below = clean;
	_close_ int fd = FD_NONE;
	char proc[64];

	if (clean && x->strip) {
		size_t n = strlen(x->strip);

		below = str_starts(clean, x->strip) && clean[n] == '/' ? clean + n + 1 : NULL;
	}
	if (below == NULL || below[0] == '\0')
		return err_set(e, ERR_DENIED, EINVAL, "a hard link leads out of the image");
	fd = path_openat2(x->root, below, O_PATH | O_NOFOLLOW, IN_ROOT);
	if (fd < 0)
		return err_set(e, ERR_DENIED, -fd, "a hard link to '%.200s', which is not there",
			       below);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW) < 0
		       ? err_sys(e, "'%.200s'", name)
		       : 0;
}

static int put_dir(const struct extract *x, struct archive_entry *en, int dir, const char *name,
		   struct err *e)
{
	mode_t mode = mode_of(x, en, 01777, 0700);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
		(void)path_remove(dir, name); /* if it stays, making it says so */
		if (mkdirat(dir, name, 0700) < 0)
			return err_sys(e, "'%.200s'", name);
	}
	return own(x, en, dir, name) < 0 || fchmodat(dir, name, mode, 0) < 0
		       ? err_sys(e, "'%.200s'", name)
		       : 0;
}

/* Of all that lower layers have there nothing is left. */
static int empty_dir(const struct extract *x, const char *path, struct err *e)
{
	_close_ int dir = open_parent(x->root, path, e);
	DIR *d = dir < 0 ? NULL : fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 3));
	struct dirent *en;

	if (d == NULL)
		return dir < 0 ? dir : err_sys(e, "'%.200s'", path);
	while ((en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			(void)path_remove(dir, en->d_name);
	(void)closedir(d);
	return 0;
}

/* Marks are about the layers below, whatever their place in the archive: they are carried out in a pass of their own. */
static int put_white(struct extract *x, const char *path, const char *name, struct err *e)
{
	_free_ char *gone = mem_fmt("%.*s%s", (int)(name - path), path, name + 4);
	bool is_opaque = str_eq(name, ".wh..wh..opq");
	_close_ int dir = FD_NONE;

	if (name[4] == '\0' || str_eq(name + 4, ".") || str_eq(name + 4, ".."))
		return err_set(e, ERR_DENIED, EINVAL, "a mark that leads out of the image");
	if (x->whites) {
		if (!is_opaque)
			buf_add(x->whites, gone, strlen(gone) + 1);
		return x->whites->is_over ? err_set(e, ERR_DENIED, E2BIG, "too many names") : 0;
	}
	if (is_opaque)
		return empty_dir(x, path, e);
	dir = open_parent(x->root, path, e);
	if (dir >= 0)
		(void)path_remove(dir, name + 4);
	return dir < 0 ? dir : 0;
}

static int put_one(struct archive *a, struct archive_entry *en, struct extract *x, const char *path,
		   struct err *e)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	bool is_white = str_starts(name, ".wh.");
	_close_ int dir = FD_NONE;

	if (is_white != x->is_white_pass)
		return 0;
	if (is_white)
		return put_white(x, path, name, e);
	dir = open_parent(x->root, path, e);
	if (dir < 0)
		return dir;
	if (archive_entry_filetype(en) == AE_IFDIR)
		return put_dir(x, en, dir, name, e);
	(void)path_remove(dir,
			  name); /* what an earlier layer had; if it stays, making it says so */
	if (archive_entry_hardlink(en))
		return put_link(x, archive_entry_hardlink(en), dir, name, e);
	if (archive_entry_filetype(en) == AE_IFREG)
		return put_file(a, en, x, dir, name, e);
	if (archive_entry_filetype(en) == AE_IFLNK && archive_entry_symlink(en))
		return symlinkat(archive_entry_symlink(en), dir, name) < 0 ||
				       own(x, en, dir, name) < 0
			       ? err_sys(e, "'%.200s'", path)
			       : 0;
	if (archive_entry_filetype(en) == AE_IFIFO)
		return mkfifoat(dir, name, archive_entry_perm(en) & 0777) < 0 ||
				       own(x, en, dir, name) < 0
			       ? err_sys(e, "'%.200s'", path)
			       : 0;
	x->left_out++;
	return 0;
}

/* The path below what is stripped; NULL: not below it. */
static const char *stripped(const struct extract *x, const char *path)
{
	size_t n = x->strip ? strlen(x->strip) : 0;

	if (n == 0)
		return path;
	return str_starts(path, x->strip) && path[n] == '/' ? path + n + 1 : NULL;
}

int image_extract(struct archive *a, struct extract *x, struct err *e)
{
	struct archive_entry *en;
	int r = 0, got;

	while (r == 0 && (got = archive_read_next_header(a, &en)) != ARCHIVE_EOF) {
		const char *raw = got < ARCHIVE_WARN ? NULL : archive_entry_pathname(en);
		_free_ char *path = NULL;
		const char *below;

		if (raw == NULL)
			return err_set(e, ERR_DENIED, EBADMSG, "the archive is damaged: %s",
				       archive_error_string(a) ? archive_error_string(a)
							       : "a name");
		path = image_path(raw);
		if (path == NULL)
			return err_set(e, ERR_DENIED, EINVAL, "a name that leads out of the image");
		if (++x->entries > EXTRACT_ENTRIES_MAX)
			return err_set(e, ERR_DENIED, E2BIG, "the archive holds too many names");
		below = stripped(x, path);
		if (below && below[0])
			r = put_one(a, en, x, below, e);
	}
	return r;
}
