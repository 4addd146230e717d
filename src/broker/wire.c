/* SPDX-License-Identifier: Apache-2.0 */
/* broker/wire.c - see wire.h */
#include "broker/wire.h"

#include "base/io.h"

ssize_t request_length(const uint8_t head[WIRE_HEAD])
{
	size_t n = (size_t)head[4] | (size_t)head[5] << 8 | (size_t)head[6] << 16 |
		   (size_t)head[7] << 24;

	if (memcmp(head, WIRE_MAGIC, 4) != 0 || n == 0 || n > WIRE_BYTES)
		return -EBADMSG;
	return (ssize_t)n;
}

static bool is_fit(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if ((c < 32 && c != '\0' && c != '\n' && c != '\t') || c == 127)
			return false;
	}
	return true;
}

int request_parse(const char *p, size_t n, struct request *ret)
{
	struct request r = { 0 };

	if (n == 0 || n > WIRE_BYTES || p[n - 1] != '\0' || p[0] == '\0' || !is_fit(p, n))
		return -EBADMSG;
	r.text = mem_new(n, 1);
	memcpy(r.text, p, n);
	for (size_t at = 0; at < n; at += strlen(r.text + at) + 1) {
		if (r.n == WIRE_WORDS - 1) {
			free(r.text);
			return -EBADMSG;
		}
		r.words[r.n++] = r.text + at;
	}
	*ret = r;
	return 0;
}

void request_done(struct request *r)
{
	free(r->text);
	*r = (struct request){ 0 };
}

bool request_make(const char *const *words, size_t n, struct buf *out)
{
	size_t sum = 0;
	uint8_t head[WIRE_HEAD] = WIRE_MAGIC;

	for (size_t i = 0; i < n; i++)
		sum += strlen(words[i]) + 1;
	if (n == 0 || n >= WIRE_WORDS || sum > WIRE_BYTES)
		return false;
	for (size_t i = 0; i < 4; i++)
		head[4 + i] = (uint8_t)(sum >> (8 * i));
	buf_add(out, head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		buf_add(out, words[i], strlen(words[i]) + 1);
	return !out->is_over;
}

void frame_put_head(uint8_t head[FRAME_HEAD], enum wire_kind kind, size_t n)
{
	head[0] = (uint8_t)kind;
	head[1] = 0;
	head[2] = (uint8_t)n;
	head[3] = (uint8_t)(n >> 8);
}

int frame_head(const uint8_t head[FRAME_HEAD], struct frame *ret)
{
	size_t n = (size_t)head[2] | (size_t)head[3] << 8;

	if (head[0] == 0 || !strchr("OERXUDC", head[0]) || head[1] != 0 || n > WIRE_FRAME_MAX)
		return -EBADMSG;
	*ret = (struct frame){ .kind = head[0], .n = (uint16_t)n };
	return 0;
}

int frame_send(int fd, enum wire_kind kind, const void *p, size_t n)
{
	uint8_t head[FRAME_HEAD];

	for (;;) {
		size_t part = n < WIRE_FRAME_MAX ? n : WIRE_FRAME_MAX;
		int r;

		frame_put_head(head, kind, part);
		r = io_write_all(fd, head, sizeof(head));
		if (r == 0 && part > 0)
			r = io_write_all(fd, p, part);
		if (r < 0 || part == n)
			return r;
		p = (const char *)p + part;
		n -= part;
	}
}

/* 1, 0 at an end before the first byte, -errno. */
static int read_all(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = io_read(fd, (char *)p + got, n - got);

		if (r < 0)
			return (int)r;
		if (r == 0)
			return got ? -EBADMSG : 0;
		got += (size_t)r;
	}
	return 1;
}

int frame_recv(int fd, struct frame *ret, char *data)
{
	uint8_t head[FRAME_HEAD];
	int r = read_all(fd, head, sizeof(head));

	if (r <= 0)
		return r;
	r = frame_head(head, ret);
	if (r < 0)
		return r;
	if (ret->n == 0)
		return 1;
	r = read_all(fd, data, ret->n);
	return r == 0 ? -EBADMSG : r;
}
