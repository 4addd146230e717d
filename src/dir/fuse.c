/* SPDX-License-Identifier: Apache-2.0 */
/* dir/fuse.c - see fuse.h
 *
 * Lengths come from one table. Nothing is read past what the request says of itself, and it must say exactly what was
 * received.
 */
#include "dir/fuse.h"

#define NAME_LONGEST 255

enum tail { NO_TAIL, ONE_NAME, TWO_NAMES, NAME_AND_TEXT, DATA, FORGETS };

static const struct form {
	uint32_t opcode;
	uint16_t size; /* of what stands before the names; FUSE_INIT: at least */
	uint16_t tail;
} forms[] = {
	{ FUSE_LOOKUP, 0, ONE_NAME },
	{ FUSE_FORGET, sizeof(struct fuse_forget_in), NO_TAIL },
	{ FUSE_GETATTR, sizeof(struct fuse_getattr_in), NO_TAIL },
	{ FUSE_SETATTR, sizeof(struct fuse_setattr_in), NO_TAIL },
	{ FUSE_READLINK, 0, NO_TAIL },
	{ FUSE_SYMLINK, 0, NAME_AND_TEXT },
	{ FUSE_MKNOD, sizeof(struct fuse_mknod_in), ONE_NAME },
	{ FUSE_MKDIR, sizeof(struct fuse_mkdir_in), ONE_NAME },
	{ FUSE_UNLINK, 0, ONE_NAME },
	{ FUSE_RMDIR, 0, ONE_NAME },
	{ FUSE_RENAME, sizeof(struct fuse_rename_in), TWO_NAMES },
	{ FUSE_RENAME2, sizeof(struct fuse_rename2_in), TWO_NAMES },
	{ FUSE_LINK, sizeof(struct fuse_link_in), ONE_NAME },
	{ FUSE_OPEN, sizeof(struct fuse_open_in), NO_TAIL },
	{ FUSE_READ, sizeof(struct fuse_read_in), NO_TAIL },
	{ FUSE_WRITE, sizeof(struct fuse_write_in), DATA },
	{ FUSE_STATFS, 0, NO_TAIL },
	{ FUSE_RELEASE, sizeof(struct fuse_release_in), NO_TAIL },
	{ FUSE_FSYNC, sizeof(struct fuse_fsync_in), NO_TAIL },
	{ FUSE_INIT, 16, NO_TAIL },
	{ FUSE_OPENDIR, sizeof(struct fuse_open_in), NO_TAIL },
	{ FUSE_READDIR, sizeof(struct fuse_read_in), NO_TAIL },
	{ FUSE_RELEASEDIR, sizeof(struct fuse_release_in), NO_TAIL },
	{ FUSE_FSYNCDIR, sizeof(struct fuse_fsync_in), NO_TAIL },
	{ FUSE_CREATE, sizeof(struct fuse_create_in), ONE_NAME },
	{ FUSE_INTERRUPT, sizeof(struct fuse_interrupt_in), NO_TAIL },
	{ FUSE_DESTROY, 0, NO_TAIL },
	{ FUSE_BATCH_FORGET, sizeof(struct fuse_batch_forget_in), FORGETS },
};

static const struct form *form_of(uint32_t opcode)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (forms[i].opcode == opcode)
			return &forms[i];
	return NULL;
}

/* NUL-ended within what is there; *p and *n go behind it. */
static const char *take_text(const char **p, size_t *n)
{
	const char *text = *p, *end = *n ? memchr(text, '\0', *n) : NULL;

	if (end == NULL)
		return NULL;
	*n -= (size_t)(end + 1 - text);
	*p = end + 1;
	return text;
}

static const char *take_name(const char **p, size_t *n)
{
	const char *name = take_text(p, n);

	if (name == NULL || name[0] == '\0' || strlen(name) > NAME_LONGEST || strchr(name, '/') ||
	    str_eq(name, ".") || str_eq(name, ".."))
		return NULL;
	return name;
}

static bool take_tail(struct fuse_request *q, enum tail tail, const char *p, size_t n)
{
	switch (tail) {
	case NO_TAIL:
		return n == 0;
	case ONE_NAME:
		q->name = take_name(&p, &n);
		return q->name && n == 0;
	case TWO_NAMES:
		q->name = take_name(&p, &n);
		q->name2 = q->name ? take_name(&p, &n) : NULL;
		return q->name2 && n == 0;
	case NAME_AND_TEXT:
		q->name = take_name(&p, &n);
		q->data = q->name ? take_text(&p, &n) : NULL;
		return q->data && n == 0;
	case DATA:
		q->data = p;
		q->n = n;
		return n == q->arg.write.size && n <= FUSE_WRITE_MAX;
	case FORGETS:
		q->data = p;
		q->n = n / sizeof(struct fuse_forget_one);
		return q->n == q->arg.batch.count && n % sizeof(struct fuse_forget_one) == 0;
	}
	return false;
}

int fuse_parse(const char *p, size_t n, struct fuse_request *ret)
{
	const struct form *f;
	size_t size;

	*ret = (struct fuse_request){ 0 };
	if (n < sizeof(ret->head))
		return -EBADMSG;
	memcpy(&ret->head, p, sizeof(ret->head));
	if (ret->head.len != n)
		return -EBADMSG;
	p += sizeof(ret->head);
	n -= sizeof(ret->head);
	f = form_of(ret->head.opcode);
	if (f == NULL)
		return -ENOSYS;
	if (n < f->size)
		return -EIO;
	/* What a newer kernel says of itself beyond our structure we have no use for. */
	size = f->opcode == FUSE_INIT ? n : f->size;
	memcpy(&ret->arg, p, size < sizeof(ret->arg) ? size : sizeof(ret->arg));
	return take_tail(ret, f->tail, p + size, n - size) ? 0 : -EIO;
}

bool fuse_hello(const struct fuse_init_in *in, struct fuse_init_out *ret)
{
	const uint32_t wanted = FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES |
				FUSE_AUTO_INVAL_DATA | FUSE_PARALLEL_DIROPS;

	if (in->major != FUSE_KERNEL_VERSION || in->minor < 31)
		return false;
	*ret = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
				       .minor = 31,
				       .max_readahead = in->max_readahead,
				       .flags = wanted & in->flags,
				       .max_background = 16,
				       .congestion_threshold = 12,
				       .max_write = FUSE_WRITE_MAX,
				       .time_gran = 1 };
	return true;
}
