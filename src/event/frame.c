/* SPDX-License-Identifier: Apache-2.0 */
/* event/frame.c - events as bytes; see event.h for the layout
 *
 * Encoding never fails: a keeper must be able to say what happened whatever the words are. Decoding never guesses:
 * the bytes may come from a disk that was full, from a process that died in the middle, or from a confined process
 * that was taken over.
 */
#include "event/event.h"

#define MAGIC 0x31564556U /* "VEV1" */
/* Room kept for the key `cut`, so that leaving out can always be said. */
#define CUT_BYTES ((size_t)11)

static void put(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static uint64_t fnv1a(uint64_t h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

/* FNV-1a over everything but the sum's own four bytes, folded. */
static uint32_t sum_of(const uint8_t *p, size_t n)
{
	uint64_t h = fnv1a(0xcbf29ce484222325ULL, p, 28);

	h = fnv1a(h, p + EVENT_HEAD_BYTES, n - EVENT_HEAD_BYTES);
	return (uint32_t)(h ^ h >> 32);
}

static void put_head(uint8_t *p, const struct event_head *h, size_t n)
{
	put(p, MAGIC, 4);
	put(p + 4, n, 4);
	put(p + 8, h->type, 2);
	put(p + 10, h->flags, 2);
	put(p + 12, h->session, 4);
	put(p + 16, h->time_ns, 8);
	put(p + 24, h->number, 4);
	put(p + 28, sum_of(p, n), 4);
}

/* ---- writing ---- */

static size_t field_bytes(const struct event_field *f, size_t n_text)
{
	switch ((enum event_kind)f->kind) {
	case EVENT_U64:
		return 3 + 8;
	case EVENT_BOOL:
		return 3 + 1;
	case EVENT_TEXT:
	case EVENT_LIST:
		return 3 + 2 + n_text;
	case EVENT_KIND_COUNT_:
		break;
	}
	bug_on(true);
}

/* How much of a long text stays: never half a character, and for a list whole words only. */
static size_t cut_at(const struct event_field *f, size_t max)
{
	size_t n = max;

	while (f->kind == EVENT_TEXT && n > max - 4 && ((unsigned char)f->p[n] & 0xc0) == 0x80)
		n--;
	while (f->kind == EVENT_LIST && n > 0 && f->p[n - 1] != '\0')
		n--;
	return n;
}

static void put_field(struct buf *out, const struct event_field *f)
{
	const struct event_key_def *d = event_key_def(f->key);
	char mark[40] = "";
	size_t n = f->n, n_mark = 0;
	uint8_t head[11];

	bug_on(d == NULL || d->kind != f->kind);
	if (n > EVENT_MAX_TEXT) {
		n = cut_at(f, EVENT_MAX_TEXT - sizeof(mark));
		(void)snprintf(mark, sizeof(mark), "[+%zu bytes]", f->n - n);
		n_mark = strlen(mark) + (f->kind == EVENT_LIST);
	}
	put(head, f->key, 2);
	head[2] = f->kind;
	if (f->kind == EVENT_U64)
		put(head + 3, f->num, 8);
	else if (f->kind == EVENT_BOOL)
		head[3] = f->num != 0;
	else
		put(head + 3, n + n_mark, 2);
	buf_add(out, head, f->kind == EVENT_U64 ? 11 : f->kind == EVENT_BOOL ? 4 : 5);
	if (f->kind == EVENT_TEXT || f->kind == EVENT_LIST) {
		buf_add(out, f->p, n);
		buf_add(out, mark, n_mark);
	}
}

void event_encode(const struct event_head *h, const struct event_field *f, size_t n,
		  struct buf *out)
{
	static const uint8_t head[EVENT_HEAD_BYTES];
	size_t start = out->n, left_out = 0;

	buf_add(out, head, sizeof(head));
	for (size_t i = 0; i < n; i++) {
		size_t text = f[i].n < EVENT_MAX_TEXT ? f[i].n : EVENT_MAX_TEXT;
		size_t used = out->n - start;

		if (i >= EVENT_MAX_FIELDS - 1 ||
		    used + field_bytes(&f[i], text) + CUT_BYTES > EVENT_MAX_BYTES)
			left_out++;
		else
			put_field(out, &f[i]);
	}
	if (left_out > 0)
		put_field(out, &EVENT_NUM(CUT, left_out));
	bug_on(out->is_over);
	put_head((uint8_t *)out->p + start, h, out->n - start);
}

struct event_field event_list(enum event_key key, const char *const *words, struct buf *b)
{
	size_t start = b->n;

	for (; words && *words && !b->is_over; words++)
		buf_add(b, *words, strlen(*words) + 1);
	return (struct event_field){ .key = (uint16_t)key,
				     .kind = EVENT_LIST,
				     .p = buf_cstr(b) + start,
				     .n = b->n - start };
}

/* ---- reading ---- */

static bool is_list(const uint8_t *p, size_t n)
{
	return n == 0 || p[n - 1] == '\0';
}

/* One field at p; its bytes, or 0. A known key has its kind. */
static size_t read_field(const uint8_t *p, size_t n, struct event_field *f)
{
	const struct event_key_def *d;

	if (n < 4)
		return 0;
	*f = (struct event_field){ .key = (uint16_t)get(p, 2), .kind = p[2] };
	d = event_key_def(f->key);
	if (f->key == 0 || (d && d->kind != f->kind))
		return 0;
	if (f->kind == EVENT_BOOL) {
		f->num = p[3];
		return f->num <= 1 ? 4 : 0;
	}
	if (f->kind == EVENT_U64) {
		f->num = n >= 11 ? get(p + 3, 8) : 0;
		return n >= 11 ? 11 : 0;
	}
	if ((f->kind != EVENT_TEXT && f->kind != EVENT_LIST) || n < 5)
		return 0;
	f->n = get(p + 3, 2);
	f->p = (const char *)p + 5;
	if (f->n > n - 5 || (f->kind == EVENT_LIST && !is_list(p + 5, f->n)))
		return 0;
	return 5 + f->n;
}

static bool read_fields(const uint8_t *p, size_t n, struct event *ev)
{
	size_t used;

	for (ev->n = 0; n > 0; p += used, n -= used) {
		if (ev->n == EVENT_MAX_FIELDS)
			return false;
		used = read_field(p, n, &ev->fields[ev->n]);
		if (used == 0)
			return false;
		/* One way to say a thing: no key twice. */
		if (event_get(ev, ev->fields[ev->n].key))
			return false;
		ev->n++;
	}
	return true;
}

static bool has_needed(const struct event *ev)
{
	const struct event_type_def *d = event_type_def(ev->head.type);

	for (size_t i = 0; d && i < d->n_needed; i++)
		if (!event_get(ev, d->keys[i]) && !event_get(ev, EK_CUT))
			return false;
	return true;
}

ssize_t event_decode(const void *bytes, size_t n, struct event *ret)
{
	const uint8_t *p = bytes;
	size_t len;

	if (n < EVENT_HEAD_BYTES)
		return 0;
	len = get(p + 4, 4);
	if (get(p, 4) != MAGIC || len < EVENT_HEAD_BYTES || len > EVENT_MAX_BYTES)
		return -EBADMSG;
	if (n < len)
		return 0;
	if (get(p + 28, 4) != sum_of(p, len))
		return -EBADMSG;
	ret->head = (struct event_head){ .type = (uint16_t)get(p + 8, 2),
					 .flags = (uint16_t)get(p + 10, 2),
					 .session = (uint32_t)get(p + 12, 4),
					 .time_ns = get(p + 16, 8),
					 .number = (uint32_t)get(p + 24, 4) };
	if (!read_fields(p + EVENT_HEAD_BYTES, len - EVENT_HEAD_BYTES, ret) || !has_needed(ret))
		return -EBADMSG;
	return (ssize_t)len;
}

int event_restamp(const void *p, size_t n, const struct event_head *h, struct buf *out)
{
	const struct event_type_def *d;
	struct event_head head = *h;
	struct event ev;
	size_t start = out->n;
	ssize_t used = event_decode(p, n, &ev);

	if (used <= 0 || (size_t)used != n)
		return -EBADMSG;
	d = event_type_def(ev.head.type);
	if (d == NULL || d->flags & EVENT_INTERNAL)
		return -EBADMSG;
	head.type = ev.head.type;
	head.flags = d->flags;
	buf_add(out, p, n);
	bug_on(out->is_over);
	put_head((uint8_t *)out->p + start, &head, n);
	return d->flags;
}

const struct event_field *event_get(const struct event *ev, enum event_key key)
{
	for (size_t i = 0; i < ev->n; i++)
		if (ev->fields[i].key == key)
			return &ev->fields[i];
	return NULL;
}

char *event_get_text(const struct event *ev, enum event_key key)
{
	const struct event_field *f = event_get(ev, key);

	return f && f->kind == EVENT_TEXT ? mem_strn(f->p, f->n) : NULL;
}

uint64_t event_get_num(const struct event *ev, enum event_key key)
{
	const struct event_field *f = event_get(ev, key);

	return f ? f->num : 0;
}

/* ---- names of journals ---- */

void event_part_name(const struct event_part *p, struct buf *out)
{
	buf_printf(out, "%s%s.%06u", p->is_hidden ? "." : "", p->run, p->part);
}

bool event_part_parse(const char *name, struct event_part *ret)
{
	struct event_part p = { .is_hidden = name[0] == '.' };
	const char *run = name + p.is_hidden, *digits;

	if (strspn(run, "0123456789abcdef") != EVENT_RUN_CHARS || run[EVENT_RUN_CHARS] != '.')
		return false;
	digits = run + EVENT_RUN_CHARS + 1;
	if (strspn(digits, "0123456789") != 6 || digits[6] != '\0')
		return false;
	memcpy(p.run, run, EVENT_RUN_CHARS);
	for (; *digits; digits++)
		p.part = 10 * p.part + (uint32_t)(*digits - '0');
	*ret = p;
	return true;
}
