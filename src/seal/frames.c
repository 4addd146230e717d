/* SPDX-License-Identifier: Apache-2.0 */
/* seal/frames.c - see frames.h
 *
 * A head is two bytes, then none, two or eight for the length. The payload of a message goes through the mask as one text.
 * A head that comes while the mask holds bytes back stands behind those bytes, so it waits in `marks` with their number. At
 * the end of a message the mask lets go of everything, a beginning of a value replaced. A control frame, which may stand
 * between the frames of a message, waits in the same way.
 */
#include "seal/frames.h"
#include "seal/fifo.h"

enum {
	OPCODE = 0x0f,
	RESERVED = 0x70,
	FIN = 0x80,
	MASKED = 0x80,
	CONTROL = 0x08,
	CONTROL_MAX = 125,
	MARKS_MAX = 1024 /* heads that wait at a time: more than that hide something */
};

struct frames {
	uint8_t head[10];
	size_t head_n;             /* of it that came */
	uint64_t left;             /* bytes of this frame's payload that are still to come */
	bool is_open;              /* its head was read */
	bool is_control;           /* this frame is: its payload is not part of a message */
	bool is_final;             /* this frame ends its message */
	bool is_in_message;        /* a message has begun and goes on in the next frame */
	char control[CONTROL_MAX]; /* its payload, until it is whole */
	size_t control_n;
	/* Heads, and control frames, that stand behind payload which the mask holds back. */
	struct mark {
		size_t at; /* bytes of that payload before it */
		char bytes[10 + CONTROL_MAX];
		size_t n;
	} * marks;
	size_t n_marks, cap_marks;
	struct fifo out;
};

struct frames *frames_new(void)
{
	struct frames *f = mem_new(1, sizeof(*f));

	f->out = FIFO(SIZE_MAX);
	return f;
}

void frames_free(struct frames *f)
{
	if (f == NULL)
		return;
	fifo_done(&f->out);
	free(f->marks);
	free(f);
}

static size_t head_size(const struct frames *f)
{
	unsigned length = f->head_n >= 2 ? f->head[1] & 0x7fU : 0;

	return f->head_n < 2 ? 2 : length == 126 ? 4 : length == 127 ? 10 : 2;
}

/* Masked payload of a message, with the heads that stand in it put in their places. */
static void put_payload(struct frames *f, struct str text)
{
	while (text.n > 0 || (f->n_marks > 0 && f->marks[0].at == 0)) {
		size_t n = f->n_marks > 0 && f->marks[0].at < text.n ? f->marks[0].at : text.n;

		if (f->n_marks > 0 && f->marks[0].at == 0) {
			fifo_force(&f->out, f->marks[0].bytes, f->marks[0].n);
			memmove(f->marks, f->marks + 1, --f->n_marks * sizeof(*f->marks));
			continue;
		}
		fifo_force(&f->out, text.p, n);
		text = str_from(text, n);
		for (size_t i = 0; i < f->n_marks; i++)
			f->marks[i].at -= n;
	}
}

/* The head, and the payload of a control frame, stand behind all payload that came so far, of which the mask may hold
 * some. */
static void put_head(struct frames *f, const struct mask *m)
{
	struct mark *k;

	vec_reserve(f->marks, f->n_marks, f->cap_marks);
	k = &f->marks[f->n_marks++];
	*k = (struct mark){ .at = mask_held(m), .n = f->head_n + f->control_n };
	memcpy(k->bytes, f->head, f->head_n);
	memcpy(k->bytes + f->head_n, f->control, f->control_n);
	f->head_n = f->control_n = 0;
	put_payload(f, STR(""));
}

static int begin_frame(struct frames *f)
{
	unsigned opcode = f->head[0] & OPCODE, length = f->head[1] & 0x7fU;

	if (f->head[0] & RESERVED || f->head[1] & MASKED || (opcode & 7) > 2)
		return -EBADMSG;
	f->is_control = opcode & CONTROL;
	f->is_final = f->head[0] & FIN;
	/* A message begins with its kind and goes on with none: a reader that joins others would see a value that we do not. */
	if (!f->is_control && f->is_in_message != (opcode == 0))
		return -EBADMSG;
	if (!f->is_control)
		f->is_in_message = !f->is_final;
	f->left = length;
	if (length >= 126) {
		f->left = 0;
		for (size_t i = 2; i < f->head_n; i++)
			f->left = f->left << 8 | f->head[i];
	}
	return f->is_control && (f->left > CONTROL_MAX || !f->is_final) ? -EBADMSG : 0;
}

static void end_message(struct frames *f, struct mask *m)
{
	struct str rest;

	mask_end(m, &rest);
	put_payload(f, rest);
}

static size_t take_head(struct frames *f, const char *p, size_t n)
{
	size_t want = head_size(f) - f->head_n, used = n < want ? n : want;

	memcpy(f->head + f->head_n, p, used);
	f->head_n += used;
	return used;
}

static size_t take_payload(struct frames *f, struct mask *m, const char *p, size_t n)
{
	size_t used = f->left < n ? (size_t)f->left : n;
	struct str text;

	f->left -= used;
	if (f->is_control) {
		memcpy(f->control + f->control_n, p, used);
		f->control_n += used;
		return used;
	}
	mask_feed(m, p, used, &text);
	put_payload(f, text);
	return used;
}

/* The frame is complete: a control frame goes on as a whole, a message that ends lets go of everything. */
static void end_frame(struct frames *f, struct mask *m)
{
	f->is_open = false;
	if (f->is_control) {
		(void)mask_text(m, f->control, f->control_n);
		put_head(f, m);
	} else if (f->is_final) {
		end_message(f, m);
	}
}

int frames_feed(struct frames *f, struct mask *m, const char *p, size_t n, struct str *ret)
{
	fifo_take(&f->out, f->out.n);
	while (n > 0) {
		size_t used = f->is_open ? take_payload(f, m, p, n) : take_head(f, p, n);

		if (f->n_marks > MARKS_MAX)
			return -EBADMSG;
		p += used;
		n -= used;
		if (!f->is_open && f->head_n == head_size(f) && f->head_n >= 2) {
			if (begin_frame(f) < 0)
				return -EBADMSG;
			f->is_open = true;
			if (!f->is_control)
				put_head(f, m);
		}
		if (f->is_open && f->left == 0)
			end_frame(f, m);
	}
	*ret = fifo_view(&f->out);
	return 0;
}
