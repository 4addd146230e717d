/* SPDX-License-Identifier: Apache-2.0 */
/* dir/loop.c - the settings from the keeper, then requests from the kernel, one after the other
 *
 * Requests come from the kernel on behalf of the inside; they are parsed by fuse.c, judged by rules.c and carried out by
 * serve.c.
 */
#include <sys/socket.h>

#include "base/io.h"
#include "base/num.h"
#include "dir/serve.h"
#include "dir/wire.h"

static _Alignas(8) char request[FUSE_REQUEST_MAX];

/* ---- settings ---- */

static int add_range(struct dir_ids *ids, const char *text, struct err *e)
{
	uint64_t v[3];

	if (ids->n == RANGES_MAX)
		return err_set(e, ERR_BUG, E2BIG, "too many ranges of ids");
	for (size_t i = 0; i < 3; i++) {
		_free_ char *word = mem_strn(text, strcspn(text, " "));
		int r = num_parse(word, 0, UINT32_MAX, &v[i], e);

		if (r < 0)
			return r;
		text += strlen(word);
		text += *text == ' ';
	}
	ids->v[ids->n++] = (struct dir_range){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2] };
	return 0;
}

static int take_setting(struct dir *d, const char *s, struct err *e)
{
	switch (s[0]) {
	case 'w':
		d->rules.workspace = mem_str(s + 1);
		return 0;
	case 'p':
		dir_rules_add(&d->rules, DIR_READONLY, s + 1);
		return 0;
	case 'h':
		dir_rules_add(&d->rules, DIR_HIDDEN, s + 1);
		return 0;
	case 'n':
		dir_rules_add(&d->rules, DIR_PLAIN, s + 1);
		return 0;
	case 'u':
		return add_range(&d->uids, s + 1, e);
	case 'g':
		return add_range(&d->gids, s + 1, e);
	case 'o':
		d->is_open = true;
		return 0;
	default:
		return err_set(e, ERR_BUG, EINVAL, "unknown setting");
	}
}

int dir_take_settings(struct dir *d, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(DIR_SETTINGS_MAX);
	int r = io_read_fd(DIR_FD_SETTINGS, &b, e);
	const char *p = buf_cstr(&b), *end = p + b.n;

	(void)close(DIR_FD_SETTINGS);
	for (; r == 0 && p < end; p += strlen(p) + 1)
		r = take_setting(d, p, e);
	if (r == 0 && d->rules.workspace == NULL)
		r = err_set(e, ERR_BUG, EINVAL, "no workspace was named");
	return r;
}

/* ---- the loop ---- */

/* A keeper that does not read loses the sentence, and nothing else. */
static void send_refusal(struct dir *d)
{
	if (d->refusal[0])
		(void)send(DIR_FD_KEEPER, d->refusal, strlen(d->refusal),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
	d->refusal[0] = '\0';
}

/* ENOENT: the request was given up before it was read, and an answer may be too late as well. */
void dir_loop(struct dir *d)
{
	while (!d->is_over) {
		ssize_t n = io_read(DIR_FD_FUSE, request, sizeof(request));

		if (n == -ENOENT || n == -EAGAIN)
			continue;
		if (n <= 0 || !dir_answer(d, request, (size_t)n))
			return;
		if (d->out_n && write(DIR_FD_FUSE, d->out, d->out_n) < 0 && errno != ENOENT)
			return;
		send_refusal(d);
	}
}
