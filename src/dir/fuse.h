/* SPDX-License-Identifier: Apache-2.0 */
/* dir/fuse.h - one request of the kernel's FUSE protocol, taken apart. Pure and fuzzed. */
#ifndef VITRINE_DIR_FUSE_H
#define VITRINE_DIR_FUSE_H

#include <linux/fuse.h>

#include "base/base.h"

#define FUSE_WRITE_MAX (128 * KIB)
#define FUSE_REQUEST_MAX (FUSE_WRITE_MAX + 8 * KIB)

union fuse_arg {
	struct fuse_init_in init;
	struct fuse_forget_in forget;
	struct fuse_batch_forget_in batch;
	struct fuse_getattr_in getattr;
	struct fuse_setattr_in setattr;
	struct fuse_mknod_in mknod;
	struct fuse_mkdir_in mkdir;
	struct fuse_rename_in rename;
	struct fuse_rename2_in rename2;
	struct fuse_link_in link;
	struct fuse_open_in open;
	struct fuse_create_in create;
	struct fuse_read_in read;
	struct fuse_write_in write;
	struct fuse_release_in release;
	struct fuse_fsync_in fsync;
};

struct fuse_request {
	struct fuse_in_header head;
	union fuse_arg arg;
	const char *name,
		*name2;   /* names of one component; the text of a symbolic link is no name */
	const char *data; /* of a write, or of many that are forgotten */
	size_t n;
};

/* 0; -ENOSYS: no request that the server knows (head is set); -EIO: not a request in the protocol's form (head is set);
 * -EBADMSG: not even a head. */
int fuse_parse(const char *p, size_t n, struct fuse_request *ret);

/* What the kernel's first request is answered with; false: its version is not ours. */
bool fuse_hello(const struct fuse_init_in *in, struct fuse_init_out *ret);

#endif
