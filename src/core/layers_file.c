/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_file.c - layers.json, and which layers are still named by one
 *
 * The reader is strict: a layer's id is 16 hex digits and nothing else, because it becomes part of a path.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "core/layers.h"
#include "core/layers_own.h"
#include "core/workshop.h"

#define FILE_NAME "layers.json"
#define NEW_NAME "layers.json.new"

/* ---- writing ---- */

static void put_stack(struct buf *b, const char *key, const struct stack *s)
{
	buf_printf(b, "\"%s\":[", key);
	for (size_t i = 0; i < s->n; i++)
		buf_printf(b, "%s\"%s\"", i ? "," : "", s->v[i]);
	buf_putc(b, ']');
}

static void put_point(struct buf *b, const struct point *p)
{
	buf_printf(b, "{\"id\":%llu,\"created\":%llu,\"since\":%llu,\"kind\":\"%s\",\"message\":",
		   (unsigned long long)p->id, (unsigned long long)p->created,
		   (unsigned long long)p->since, tree_kind_name(p->kind));
	buf_json(b, p->message);
	buf_putc(b, ',');
	put_stack(b, "ws", &p->ws);
	buf_putc(b, ',');
	put_stack(b, "home", &p->home);
	buf_putc(b, ',');
	put_stack(b, "sys", &p->sys);
	buf_printf(b, ",\"below\":\"%s\",\"tree\":%llu}", p->below, (unsigned long long)p->tree);
}

int layers_write(const struct layers *l, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(JSON_MAX_BYTES);
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", l->state_dir, l->name);
	_close_ int at = FD_NONE, fd = FD_NONE;
	int r;

	buf_puts(&b, "{");
	put_stack(&b, "ws", &l->ws);
	buf_putc(&b, ',');
	put_stack(&b, "home", &l->home);
	buf_putc(&b, ',');
	put_stack(&b, "sys", &l->sys);
	buf_printf(&b, ",\"below\":\"%s\",\"moving\":\"%s\",\"points\":[", l->below, l->moving);
	for (size_t i = 0; i < l->n_points; i++) {
		buf_puts(&b, i ? ",\n" : "\n");
		put_point(&b, &l->points[i]);
	}
	buf_puts(&b, "]}\n");
	if (b.is_over)
		return err_set(e, ERR_USAGE, E2BIG,
			       "'%s' has too many checkpoints; remove some with 'vitrine "
			       "checkpoints "
			       "--keep N %s'",
			       l->name, l->name);
	r = path_make(dir, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerrordesc_np(-r));
	at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at >= 0)
		fd = openat(at, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	r = fd < 0 ? -errno : io_write_all(fd, b.p, b.n);
	if (r == 0 && (fdatasync(fd) < 0 || renameat(at, NEW_NAME, at, FILE_NAME) < 0))
		r = -errno;
	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s/%s'", dir, FILE_NAME);
	}
	return 0;
}

/* ---- reading ---- */

static bool is_id(const char *s)
{
	return strlen(s) == LAYER_ID_BYTES - 1 &&
	       strspn(s, "0123456789abcdef") == LAYER_ID_BYTES - 1;
}

static bool take_stack(const struct json *o, const char *key, struct stack *ret)
{
	const struct json *v = json_get(o, key);
	size_t i = 0;

	if (v == NULL || v->type != JSON_ARRAY || v->n > OVERLAY_LAYERS_MAX)
		return false;
	ret->v = mem_new(v->n + 1, sizeof(*ret->v));
	for (const struct json *c = v->first; c; c = c->next) {
		if (c->type != JSON_STRING || !is_id(c->text))
			return false;
		memcpy(ret->v[i++], c->text, LAYER_ID_BYTES);
	}
	ret->n = i;
	return true;
}

/* It came later: files from before have none. */
static bool take_sys(const struct json *o, struct stack *ret)
{
	return json_get(o, "sys") == NULL || take_stack(o, "sys", ret);
}

static bool take_below(const struct json *o, char below[LAYERS_BELOW_BYTES])
{
	const struct json *v = json_get(o, "below");

	if (v == NULL)
		return true;
	if (v->type != JSON_STRING || strlen(v->text) >= LAYERS_BELOW_BYTES ||
	    v->text[strspn(v->text, "0123456789abcdefghijklmnopqrstuvwxyz-")] != '\0')
		return false;
	memcpy(below, v->text, strlen(v->text) + 1);
	return true;
}

static bool take_number(const struct json *o, const char *key, uint64_t *ret)
{
	const struct json *v = json_get(o, key);

	return v && json_u64(v, ret);
}

static bool take_point(const struct json *o, struct point *p)
{
	const struct json *kind = json_get(o, "kind"), *message = json_get(o, "message");

	if (o->type != JSON_OBJECT || kind == NULL || kind->type != JSON_STRING ||
	    message == NULL || message->type != JSON_STRING)
		return false;
	while (p->kind < TREE_KIND_COUNT_ && !str_eq(tree_kind_name(p->kind), kind->text))
		p->kind++;
	p->message = mem_str(message->text);
	p->kind = tree_kind_of(p->kind, p->message);
	return p->kind < TREE_KIND_COUNT_ && take_number(o, "id", &p->id) &&
	       take_number(o, "created", &p->created) && take_number(o, "since", &p->since) &&
	       take_stack(o, "ws", &p->ws) && take_stack(o, "home", &p->home) &&
	       take_sys(o, &p->sys) && take_below(o, p->below) &&
	       (json_get(o, "tree") == NULL || take_number(o, "tree", &p->tree));
}

static bool take_all(const struct json *o, struct layers *l)
{
	const struct json *points, *moving;

	if (o->type != JSON_OBJECT)
		return false;
	points = json_get(o, "points");
	moving = json_get(o, "moving");
	if (points == NULL || points->type != JSON_ARRAY || points->n > LAYERS_POINTS_MAX ||
	    moving == NULL || moving->type != JSON_STRING ||
	    (moving->text[0] && !is_id(moving->text)))
		return false;
	(void)snprintf(l->moving, sizeof(l->moving), "%s", moving->text);
	l->points = mem_new(points->n + 1, sizeof(*l->points));
	for (const struct json *c = points->first; c; c = c->next)
		if (!take_point(c, &l->points[l->n_points++]))
			return false;
	return take_stack(o, "ws", &l->ws) && take_stack(o, "home", &l->home) &&
	       take_sys(o, &l->sys) && take_below(o, l->below);
}

bool layers_exist(const char *state_dir, const char *name)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/%s", state_dir, name, FILE_NAME);

	return access(path, F_OK) == 0;
}

static int parse_file(const char *state_dir, const char *name, struct layers *ret, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/%s", state_dir, name, FILE_NAME);
	_cleanup_(buf_done) struct buf b = BUF(JSON_MAX_BYTES);
	struct layers l = { .state_dir = mem_str(state_dir), .name = mem_str(name) };
	struct json_doc doc;
	int r = io_read_file(path, &b, e);

	if (r == -ENOENT) {
		*ret = l;
		return 0;
	}
	if (r == 0)
		r = json_parse(buf_cstr(&b), b.n, &doc, e);
	if (r == 0) {
		bool is_right = take_all(doc.root, &l);

		json_done(&doc);
		if (!is_right)
			r = err_set(e, ERR_SYSTEM, EBADMSG, "not what we wrote there");
	}
	if (r < 0) {
		layers_done(&l);
		return err_wrap(e, r, "'%s'", path);
	}
	*ret = l;
	return 0;
}

int layers_read_held(const char *state_dir, const char *name, struct layers *ret, struct err *e)
{
	int r = parse_file(state_dir, name, ret, e);

	if (r < 0 || !ret->moving[0])
		return r;
	r = layers_finish_move(ret, e);
	if (r < 0)
		layers_done(ret);
	return r;
}

/* A move that is under way belongs to who holds the lock; only what nobody holds was left behind by a crash. */
int layers_read(const char *state_dir, const char *name, struct layers *ret, struct err *e)
{
	_close_ int lock = FD_NONE;
	int r = parse_file(state_dir, name, ret, e);

	if (r < 0 || !ret->moving[0])
		return r;
	layers_done(ret);
	lock = layers_lock(state_dir, e);
	return lock < 0 ? lock : layers_read_held(state_dir, name, ret, e);
}

bool layers_is_rooted(const char *state_dir, const char *name)
{
	struct err ignored;
	struct layers l;
	bool is;

	if (layers_read(state_dir, name, &l, &ignored) < 0)
		return false;
	is = l.sys.n > 0 && str_starts(l.below, "sudo-");
	layers_done(&l);
	return is;
}

/* ---- what nobody names ---- */

struct named {
	char (*v)[LAYER_ID_BYTES];
	size_t n, cap;
};

static void add_stack(struct named *n, const struct stack *s)
{
	for (size_t i = 0; i < s->n; i++) {
		vec_reserve(n->v, n->n, n->cap);
		memcpy(n->v[n->n++], s->v[i], LAYER_ID_BYTES);
	}
}

static void add_layers(struct named *n, struct layers *take_l)
{
	add_stack(n, &take_l->ws);
	add_stack(n, &take_l->home);
	add_stack(n, &take_l->sys);
	for (size_t i = 0; i < take_l->n_points; i++) {
		add_stack(n, &take_l->points[i].ws);
		add_stack(n, &take_l->points[i].home);
		add_stack(n, &take_l->points[i].sys);
	}
	layers_done(take_l);
}

static bool is_named(const struct named *n, const char *id)
{
	for (size_t i = 0; i < n->n; i++)
		if (str_eq(n->v[i], id))
			return true;
	return false;
}

void layers_named(const char *state_dir, const char *name, char (**ret)[LAYER_ID_BYTES],
		  size_t *ret_n)
{
	struct named n = { 0 };
	struct layers l;
	struct err ignored;
	size_t kept = 0;

	if (layers_read(state_dir, name, &l, &ignored) == 0)
		add_layers(&n, &l);
	for (size_t i = 0; i < n.n; i++) {
		struct named before = { .v = n.v, .n = kept };

		if (!is_named(&before, n.v[i]))
			memmove(n.v[kept++], n.v[i], LAYER_ID_BYTES);
	}
	*ret = n.v;
	*ret_n = kept;
}

static int find_named(const char *state_dir, struct named *n, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	DIR *d = opendir(path);
	struct dirent *en;
	struct layers l;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	while (r == 0) {
		errno = 0;
		en = readdir(d);
		if (en == NULL) /* whoever was not read may name any layer */
			break;
		if (en->d_name[0] == '.')
			continue;
		r = layers_read_held(state_dir, en->d_name, &l, e);
		if (r == 0)
			add_layers(n, &l);
	}
	if (r == 0 && errno != 0)
		r = err_sys(e, "'%s'", path);
	(void)closedir(d);
	return r;
}

/* A sandbox whose file cannot be read may name any layer: then nothing goes. */
int layers_collect(const char *state_dir, uint64_t *ret_removed, struct err *e)
{
	_free_ char *path = mem_fmt("%s/layers", state_dir);
	_close_ int lock = FD_NONE;
	struct named n = { 0 };
	struct dirent *en;
	DIR *d;
	int r;

	*ret_removed = 0;
	if (access(path, F_OK) < 0)
		return 0; /* nobody ever had one */
	lock = layers_lock(state_dir, e);
	r = lock < 0 ? lock : find_named(state_dir, &n, e);
	d = r < 0 ? NULL : opendir(path);
	while (d && (en = readdir(d)) != NULL) {
		_free_ char *gone = mem_fmt("%s/%s", path, en->d_name);
		struct err ignored; /* what stays is tried again the next time */

		if (is_id(en->d_name) && !is_named(&n, en->d_name))
			*ret_removed += workshop_remove(state_dir, gone, &ignored) == 0;
	}
	if (d)
		(void)closedir(d);
	free(n.v);
	return r;
}
