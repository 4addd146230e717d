/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal_values.c - the values of secrets: where they are, and when they are told anew
 *
 * What came with the keeper's birth is good for the first telling and wiped then. Later each is read where it lies: a
 * command's output is good for its cache time, a file until it changes. What cannot be read stays as it was.
 */
#include <sys/stat.h>

#include "keep/seal_parts.h"

#define LOOK_NS NS_PER_SEC /* at files that values come from */

void seal_values_wipe(const struct keeper_in *in)
{
	for (size_t i = 0; i < in->n_values; i++)
		explicit_bzero(in->values[i].value->p, in->values[i].value->cap);
}

/* A service's variable in the caller's environment, where nobody has described a secret for it (core/secrets.c). */
static const char *variable_of(const char *name)
{
	const struct secret_service *known = secret_service_find(name);

	for (size_t i = 0; known && i < ARRAY_LEN(known->env) && known->env[i]; i++) {
		const char *value = getenv(known->env[i]);

		if (value && value[0])
			return value;
	}
	return NULL;
}

int seal_tell_value(const struct seal *s, const char *name, struct err *e)
{
	const char *state_dir = s->k->in->plan->state_dir;
	_cleanup_(secret_done) struct secret v = { 0 };
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	int r = secret_load(state_dir, name, &v, e);

	if (r >= 0) {
		r = secret_value(state_dir, &v, &value, e);
	} else if (r == -ENOENT && variable_of(name)) {
		*e = ERR_INIT;
		buf_puts(&value, variable_of(name));
		r = 0;
	}
	return r < 0 ? r : seal_send_all(s->fd, SEAL_VALUE, name, value.p, value.n);
}

/* Those that are due; what cannot be read stays as it was, and is tried again when it is due the next time. */
static int tell_due(struct seal *s, struct err *e)
{
	struct keeper_in *in = s->k->in;

	for (size_t i = 0; i < in->n_values; i++)
		if (s->is_due[i] && seal_tell_value(s, in->values[i].name, e) >= 0)
			(void)seal_send(s->fd, SEAL_REFRESH, 0, in->values[i].name, NULL, 0);
	return e->kind == ERR_NONE ? 0 : -EIO;
}

/* Whether a file is another one, or has other content, than when it was last looked at. */
static bool has_changed(struct source *f)
{
	struct stat st;
	uint64_t mark;

	if (stat(f->path, &st) < 0)
		return false; /* being replaced: the next look sees it */
	mark = (uint64_t)st.st_ino * 31 + (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC +
	       (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_size;
	if (mark == f->mark)
		return false;
	f->mark = mark;
	return true;
}

static void on_refresh(void *arg)
{
	struct seal *s = arg;
	uint64_t now = clock_now();
	bool is_any = false;

	if (s->teller > 0 || s->state != SEAL_SERVES)
		return;
	for (size_t i = 0; i < s->k->in->n_values; i++) {
		struct source *f = &s->sources[i];

		s->is_due[i] = f->path ? has_changed(f) : f->every > 0 && now >= f->due;
		if (s->is_due[i])
			f->due = now + f->every;
		is_any |= s->is_due[i];
	}
	if (is_any)
		seal_tell(s, tell_due);
}

/* A command's output is good for its cache time, a file until it changes. */
void seal_values_watch(struct seal *s)
{
	static char *none[] = { NULL };
	const struct keeper_in *in = s->k->in;
	uint64_t every = UINT64_MAX;

	if (in->n_values == 0 || s->sources)
		return;
	s->sources = mem_new(in->n_values, sizeof(*s->sources));
	environ = in->env ? in->env : environ; /* a login lies below the caller's home */
	for (size_t i = 0; i < in->n_values; i++) {
		_cleanup_(secret_done) struct secret v = { 0 };
		struct source *f = &s->sources[i];
		struct err e = ERR_INIT;

		if (secret_load(in->plan->state_dir, in->values[i].name, &v, &e) < 0)
			continue;
		f->every = v.source == SECRET_COMMAND ? v.cache : 0;
		f->due = clock_now() + f->every;
		f->path = v.source == SECRET_FILE || v.source == SECRET_LOGIN ? take(v.from) : NULL;
		if (f->path)
			(void)has_changed(f);
		if (f->path && every > LOOK_NS)
			every = LOOK_NS;
		else if (f->every && every > f->every)
			every = f->every;
	}
	environ = none;
	if (every < NS_PER_SEC / 10)
		every = NS_PER_SEC / 10;
	if (every != UINT64_MAX)
		s->on_refresh = watch_timer(s->k->loop, every, true, on_refresh, s);
}
