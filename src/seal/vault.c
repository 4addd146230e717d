/* SPDX-License-Identifier: Apache-2.0 */
/* seal/vault.c - see vault.h
 *
 * Values live in one mapping that is locked and left out of dumps; copies made for a request are wiped when it is
 * over, and the words that answers are looked through for (mask.h) with the vault. A placeholder of a secret that is not for this host stays what it is: it opens nothing anywhere.
 */
#include <sys/mman.h>

#include "base/base64.h"
#include "base/sabotage.h"
#include "http/head.h"
#include "policy/pathrule.h"
#include "seal/vault.h"
#include "secret/secret.h"

void wipe_free(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void vault_init(struct vault *v, size_t bytes)
{
	*v = (struct vault){ .size = bytes };
	v->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bug_on(v->memory == MAP_FAILED);
	/* Pages are locked as they are used: most sandboxes need one or two of them. */
	v->is_locked = mlock2(v->memory, bytes, MLOCK_ONFAULT) == 0 || mlock(v->memory, bytes) == 0;
	(void)madvise(v->memory, bytes, MADV_DONTDUMP); /* beside RLIMIT_CORE 0 */
	(void)madvise(v->memory, bytes, MADV_WIPEONFORK);
}

static void free_list(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

void vault_done(struct vault *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->v[i].name);
		free(v->v[i].placeholder);
		free_list(v->v[i].hosts, v->v[i].n_hosts);
		free_list(v->v[i].headers, v->v[i].n_headers);
		free_list(v->v[i].doors, v->v[i].n_doors);
	}
	free(v->former);
	for (size_t i = 0; i < ARRAY_LEN(v->cached); i++) {
		words_unref(v->cached[i].words);
		free(v->cached[i].host);
	}
	if (v->memory) {
		explicit_bzero(v->memory, v->used);
		(void)munmap(v->memory, v->size);
	}
	*v = (struct vault){ 0 };
}

static int read_list(const struct json *o, const char *key, char ***ret, size_t *ret_n,
		     struct err *e)
{
	const struct json *list = json_get(o, key);
	size_t n = 0;

	if (list == NULL)
		return 0;
	if (list->type != JSON_ARRAY)
		return err_set(e, ERR_CONFIG, EINVAL, "secrets: '%s' is a list", key);
	*ret = mem_new(list->n, sizeof(char *));
	for (const struct json *m = list->first; m; m = m->next) {
		if (m->type != JSON_STRING || m->n == 0)
			return err_set(e, ERR_CONFIG, EINVAL, "secrets: '%s' holds strings", key);
		(*ret)[n++] = mem_str(m->text);
		*ret_n = n;
	}
	return 0;
}

static int read_places(const struct vault_entry *s, const struct json *o, unsigned *ret,
		       struct err *e)
{
	const struct json *list = json_get(o, "in");

	*ret = VAULT_HEADER;
	if (list == NULL)
		return 0;
	*ret = 0;
	for (const struct json *m = list->first; m; m = m->next) {
		unsigned bit = m->type != JSON_STRING      ? 0
			       : str_eq(m->text, "header") ? VAULT_HEADER
			       : str_eq(m->text, "query")  ? VAULT_QUERY
			       : str_eq(m->text, "body")   ? VAULT_BODY
							   : 0;

		if (bit == 0)
			return err_set(e, ERR_CONFIG, EINVAL,
				       "secret '%s': 'in' holds header, query, body", s->name);
		*ret |= bit;
	}
	return 0;
}

int vault_add(struct vault *v, const struct json *o, struct err *e)
{
	const struct json *name = o->type == JSON_OBJECT ? json_get(o, "name") : NULL;
	const struct json *holder = o->type == JSON_OBJECT ? json_get(o, "placeholder") : NULL;
	struct vault_entry *s;
	int r;

	if (!name || name->type != JSON_STRING || !holder || holder->type != JSON_STRING ||
	    holder->n < MASK_SHORTEST)
		return err_set(e, ERR_CONFIG, EINVAL, "a secret needs a name and a placeholder");
	if (v->n == VAULT_MAX)
		return err_set(e, ERR_CONFIG, E2BIG, "more than %d secrets", VAULT_MAX);
	s = &v->v[v->n++];
	*s = (struct vault_entry){ .name = mem_str(name->text),
				   .placeholder = mem_str(holder->text) };
	r = read_list(o, "hosts", &s->hosts, &s->n_hosts, e);
	if (r >= 0)
		r = read_list(o, "headers", &s->headers, &s->n_headers, e);
	if (r >= 0)
		r = read_places(s, o, &s->places, e);
	if (r >= 0 && s->n_hosts == 0)
		r = err_set(e, ERR_CONFIG, EINVAL, "secret '%s' has no host", s->name);
	return r;
}

struct vault_entry *vault_find(struct vault *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(v->v[i].name, name))
			return &v->v[i];
	return NULL;
}

/* A copy in the locked memory, which is given back only as a whole: every value stays known. NULL: it is full. */
static char *keep_value(struct vault *v, struct str value)
{
	char *to = v->memory + v->used;

	if (v->size - v->used < value.n + 1)
		return NULL;
	memcpy(to, value.p, value.n);
	to[value.n] = '\0';
	v->used += value.n + 1;
	return to;
}

static bool is_known(const struct vault *v, const struct vault_entry *s, struct str value)
{
	for (size_t i = 0; i < v->n_former; i++)
		if (v->former[i].of == s && v->former[i].n == value.n &&
		    memcmp(v->former[i].value, value.p, value.n) == 0)
			return true;
	return false;
}

static void add_former(struct vault *v, const struct vault_entry *s, const char *value, size_t n)
{
	if (is_known(v, s, (struct str){ .p = value, .n = n }))
		return;
	vec_reserve(v->former, v->n_former, v->cap_former);
	v->former[v->n_former++] = (struct vault_former){ .of = s, .value = value, .n = n };
	v->changes++;
}

int vault_set(struct vault *v, const char *name, struct str value)
{
	struct vault_entry *s = vault_find(v, name);
	char *kept;

	if (s == NULL)
		return -ENOENT;
	if (value.n < MASK_SHORTEST || value.n > VAULT_VALUE_MAX || !http_is_value(value))
		return -EINVAL;
	if (s->value && s->n == value.n && memcmp(s->value, value.p, value.n) == 0)
		return 0;
	kept = keep_value(v, value);
	if (kept == NULL)
		return -ENOSPC;
	if (s->value)
		add_former(v, s, s->value, s->n);
	s->value = kept;
	s->n = value.n;
	v->changes++;
	return 0;
}

static char **copy_list(char *const *from, size_t n)
{
	char **v = n ? mem_new(n, sizeof(*v)) : NULL;

	for (size_t i = 0; i < n; i++)
		v[i] = mem_str(from[i]);
	return v;
}

int vault_capture(struct vault *v, const struct vault_entry *what, const char *placeholder,
		  struct str value)
{
	struct vault_entry *s = vault_find(v, what->name);

	if (s && !s->is_captured)
		return -EEXIST;
	if (s == NULL && v->n == VAULT_MAX)
		return -ENOSPC;
	if (s == NULL) {
		s = &v->v[v->n++];
		*s = (struct vault_entry){ .name = mem_str(what->name),
					   .hosts = copy_list(what->hosts, what->n_hosts),
					   .n_hosts = what->n_hosts,
					   .doors = copy_list(what->doors, what->n_doors),
					   .n_doors = what->n_doors,
					   .places = what->places,
					   .is_captured = true };
	}
	free(s->placeholder);
	s->placeholder = mem_str(placeholder);
	return vault_set(v, what->name, value);
}

/* A value that a secret of that name had elsewhere. */
static int adopt_former(struct vault *v, const char *name, const char *value, size_t n)
{
	const struct vault_entry *s = vault_find(v, name);
	char *kept;

	if (s == NULL || (s->value && s->n == n && memcmp(s->value, value, n) == 0) ||
	    is_known(v, s, (struct str){ .p = value, .n = n }))
		return 0;
	kept = keep_value(v, (struct str){ .p = value, .n = n });
	if (kept)
		add_former(v, s, kept, n);
	return kept ? 0 : -ENOSPC;
}

int vault_adopt(struct vault *v, const struct vault *from)
{
	int r = 0;

	for (size_t i = 0; i < from->n && r >= 0; i++) {
		const struct vault_entry *s = &from->v[i];

		if (s->value && s->is_captured)
			r = vault_capture(v, s, s->placeholder,
					  (struct str){ .p = s->value, .n = s->n });
		else if (s->value)
			r = adopt_former(v, s->name, s->value, s->n);
		/* Under the new terms a secret may have the name that a captured one had. */
		r = r == -EEXIST ? adopt_former(v, s->name, s->value, s->n) : r;
	}
	for (size_t i = 0; i < from->n_former && r >= 0; i++)
		r = adopt_former(v, from->former[i].of->name, from->former[i].value,
				 from->former[i].n);
	return r;
}

static bool is_listed(char *const *v, size_t n, const char *host)
{
	for (size_t i = 0; i < n; i++)
		if (host_matches(v[i], host))
			return true;
	return false;
}

bool vault_is_for(const struct vault_entry *s, const char *host)
{
	return is_listed(s->hosts, s->n_hosts, host);
}

static bool is_in_header(const struct vault_entry *s, struct str name)
{
	for (size_t i = 0; i < s->n_headers; i++)
		if (str_is_nocase(name, s->headers[i]))
			return true;
	return s->n_headers == 0;
}

/* One request field, with where it goes: which secrets may stand in it. */
struct place {
	const struct vault *v;
	const char *host;
	unsigned kind;
	struct str header;
	struct vault_note *note;
};

static bool may_swap(const struct place *p, const struct vault_entry *s)
{
	return s->value && (s->places & p->kind) && vault_is_for(s, p->host) &&
	       (p->kind != VAULT_HEADER || is_in_header(s, p->header));
}

/* The secret whose placeholder stands at text, or NULL. */
static const struct vault_entry *at_placeholder(const struct vault *v, struct str text)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_has_prefix(text, v->v[i].placeholder))
			return &v->v[i];
	return NULL;
}

static bool has_placeholder(const struct vault *v, struct str text)
{
	for (size_t i = 0; i < v->n; i++)
		if (text.n > 0 &&
		    memmem(text.p, text.n, v->v[i].placeholder, strlen(v->v[i].placeholder)))
			return true;
	return false;
}

bool vault_is_placeholder(const struct vault *v, struct str text)
{
	return at_placeholder(v, text) != NULL;
}

/* Ways to write a text within another: as an address or a form must, and as JSON must (what stands for itself stays as it is,
 * because some programs say that JSON is a form); and the same with '/' and its kin written otherwise, too, as many do. */
enum writing {
	WRITE_FORM,
	WRITE_JSON,
	WRITE_FORM_ALL,
	WRITE_FORM_SMALL,
	WRITE_JSON_ALL,
	WRITINGS,
};

static bool is_form_special(unsigned char c)
{
	return c <= ' ' || c >= 0x7f || strchr("\"#%&+;<>\\^`{|}", c);
}

static bool is_often_written(unsigned char c)
{
	return c != '\0' && strchr("/+=~", c);
}

static void write_char(struct buf *out, unsigned char c, enum writing how)
{
	bool is_json = how == WRITE_JSON || how == WRITE_JSON_ALL;

	if (is_json && c == '\t')
		buf_puts(out, "\\t");
	else if (is_json && (c == '"' || c == '\\' || (c == '/' && how == WRITE_JSON_ALL)))
		buf_printf(out, "\\%c", c);
	else if (!is_json && (is_form_special(c) || (how != WRITE_FORM && is_often_written(c))))
		buf_printf(out, how == WRITE_FORM_SMALL ? "%%%02x" : "%%%02X", c);
	else
		buf_putc(out, (char)c);
}

static void write_value(struct buf *out, struct str text, enum writing how)
{
	for (size_t i = 0; i < text.n; i++)
		write_char(out, (unsigned char)text.p[i], how);
}

static struct str value_of(const struct vault_entry *s)
{
	return (struct str){ .p = s->value, .n = s->n };
}

/* Appends text to out with what may be swapped swapped; true when there was something. */
static bool swap_into(const struct place *p, struct str text, struct buf *out)
{
	bool is_hit = false;

	while (text.n > 0) {
		const struct vault_entry *s = at_placeholder(p->v, text);

		if (s == NULL) {
			buf_putc(out, text.p[0]);
			text = str_from(text, 1);
			continue;
		}
		if (may_swap(p, s)) {
			if (p->kind == VAULT_QUERY)
				write_value(out, value_of(s), WRITE_FORM);
			else
				buf_add(out, s->value, s->n);
			p->note->swapped |= UINT64_C(1) << (s - p->v->v);
			is_hit = true;
		} else {
			buf_puts(out, s->placeholder);
			p->note->elsewhere |= UINT64_C(1) << (s - p->v->v);
		}
		text = str_from(text, strlen(s->placeholder));
	}
	return is_hit;
}

static void wipe_done(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}

static struct str view(const struct buf *b)
{
	return (struct str){ .p = buf_cstr(b), .n = b->n };
}

/* Enough for the longest value in every place a head has. The buffer never grows, so no copy is left behind. */
static struct buf head_buf(void)
{
	struct buf b = BUF(2 * HTTP_HEAD_MAX + 2 * VAULT_VALUE_MAX);

	b.cap = b.max + 1;
	b.p = mem_new(b.cap, 1);
	return b;
}

/* Too long with the values in it: the note says so, because what was asked for must not go out as it was. */
static char *take_text(const struct place *p, const struct buf *b)
{
	p->note->is_over |= b->is_over;
	return b->is_over ? NULL : mem_strn(b->p, b->n);
}

static char *swap_basic(const struct place *p, struct str value)
{
	_cleanup_(wipe_done) struct buf plain = head_buf(), new = head_buf(), out = head_buf();

	if (!base64_read(str_trim(str_from(value, 6)), &plain) || !swap_into(p, view(&plain), &new))
		return NULL;
	buf_puts(&out, "Basic ");
	base64_put(&out, view(&new));
	out.is_over |= new.is_over;
	return take_text(p, &out);
}

char *vault_swap_field(const struct vault *v, const char *host, struct str name, struct str value,
		       struct vault_note *note)
{
	const struct place p = {
		.v = v, .host = host, .kind = VAULT_HEADER, .header = name, .note = note
	};
	_cleanup_(wipe_done) struct buf out = { 0 };

	if (v->n == 0)
		return NULL;
	if (str_is_nocase(name, "Authorization") && value.n > 6 &&
	    strncasecmp(value.p, "Basic ", 6) == 0)
		return swap_basic(&p, value);
	if (!has_placeholder(v, value))
		return NULL;
	out = head_buf();
	return swap_into(&p, value, &out) ? take_text(&p, &out) : NULL;
}

char *vault_swap_query(const struct vault *v, const char *host, struct str target,
		       struct vault_note *note)
{
	const struct place p = { .v = v, .host = host, .kind = VAULT_QUERY, .note = note };
	size_t mark = str_find(target, '?');
	_cleanup_(wipe_done) struct buf out = { 0 };

	if (mark == target.n || !has_placeholder(v, str_from(target, mark)))
		return NULL;
	out = head_buf();
	buf_add(&out, target.p, mark);
	return swap_into(&p, str_from(target, mark), &out) ? take_text(&p, &out) : NULL;
}

/* Could an answer of this host hold it? */
static bool is_known_to(const struct vault_entry *s, const char *host)
{
	return vault_is_for(s, host) || is_listed(s->doors, s->n_doors, host);
}

bool vault_holds_for(const struct vault *v, const char *host)
{
	for (size_t i = 0; i < v->n; i++)
		if (is_known_to(&v->v[i], host))
			return true;
	return false;
}

/* The characters of base64 that are made of the text alone, where `before` bytes precede it in their group of three. */
static char *base64_core(struct str text, size_t before, struct str *ret)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz01234567"
				      "89+/";
	size_t from = (before * 8 + 5) / 6, to = (before + text.n) * 8 / 6;
	char *core = mem_new(to - from + 1, 1);

	for (size_t i = from; i < to; i++) {
		unsigned v = 0;

		for (size_t bit = i * 6 - before * 8, k = 0; k < 6; k++, bit++)
			v = v << 1 | ((unsigned char)text.p[bit / 8] >> (7 - bit % 8) & 1U);
		core[i - from] = letters[v];
	}
	*ret = str_of(core);
	return core;
}

static void mask_writing(struct words *w, struct str value, struct str holder, enum writing how)
{
	_cleanup_(secret_wipe) struct buf a = secret_buf_of(3 * value.n);
	_cleanup_(secret_wipe) struct buf b = secret_buf_of(3 * holder.n);

	write_value(&a, value, how);
	write_value(&b, holder, how);
	if (a.n != value.n && !sabotaged("seal-writing"))
		(void)words_add(w, view(&a), view(&b));
}

/* As it is, as it stands in addresses and in JSON, and within Basic behind any name. */
static void mask_value(struct words *w, struct str value, struct str holder)
{
	bool is_plain = true;

	bug_on(!words_add(w, value, holder));
	for (size_t i = 0; i < value.n; i++)
		is_plain &= !is_form_special((unsigned char)value.p[i]) &&
			    !is_often_written((unsigned char)value.p[i]);
	for (enum writing how = 0; !is_plain && how < WRITINGS; how++)
		mask_writing(w, value, holder, how);
	for (size_t before = 0; before < 3; before++) {
		struct str word, by;
		char *a = base64_core(value, before, &word), *b = base64_core(holder, before, &by);

		bug_on(!words_add(w, word, by));
		wipe_free(a);
		wipe_free(b);
	}
}

static struct words *make_words(const struct vault *v, const char *host)
{
	struct words *w = words_new();

	for (size_t i = 0; i < v->n; i++) {
		const struct vault_entry *s = &v->v[i];

		if (s->value && is_known_to(s, host))
			mask_value(w, value_of(s), str_of(s->placeholder));
	}
	for (size_t i = 0; i < v->n_former && !sabotaged("seal-former"); i++) {
		const struct vault_former *f = &v->former[i];

		if (is_known_to(f->of, host))
			mask_value(w, (struct str){ .p = f->value, .n = f->n },
				   str_of(f->of->placeholder));
	}
	return w;
}

struct words *vault_words(struct vault *v, const char *host)
{
	struct vault_cached *c = &v->cached[v->next_cached];

	for (size_t i = 0; i < ARRAY_LEN(v->cached); i++)
		if (v->cached[i].words && str_eq(v->cached[i].host, host))
			c = &v->cached[i];
	if (c->words && str_eq(c->host, host) && c->changes == v->changes)
		return words_ref(c->words);
	if (c == &v->cached[v->next_cached])
		v->next_cached = (v->next_cached + 1) % ARRAY_LEN(v->cached);
	words_unref(c->words);
	free(c->host);
	*c = (struct vault_cached){ .host = mem_str(host),
				    .words = make_words(v, host),
				    .changes = v->changes };
	return words_ref(c->words);
}

/* The placeholder as it is, in the way of the body, and as an address, a form or JSON may write it: each becomes the value in the
 * same writing. */
static void add_body_words(struct swap *s, struct str holder, struct str value,
			   enum vault_text kind, size_t i)
{
	_cleanup_(secret_wipe) struct buf a = secret_buf_of(3 * holder.n);
	_cleanup_(secret_wipe) struct buf b = secret_buf_of(3 * value.n);

	if (holder.n != value.n && sabotaged("seal-length"))
		return;
	if (kind == VAULT_PLAIN)
		buf_add(&b, value.p, value.n);
	else
		write_value(&b, value, kind == VAULT_FORM ? WRITE_FORM : WRITE_JSON);
	swap_add(s, holder, view(&b), i);
	for (enum writing how = 0; how < WRITINGS; how++) {
		a.n = b.n = 0;
		write_value(&a, holder, how);
		write_value(&b, value, how);
		if (a.n != holder.n)
			swap_add(s, view(&a), view(&b), i);
	}
}

struct swap *vault_body_swap(const struct vault *v, const char *host, enum vault_text kind,
			     bool is_endpoint, uint64_t but)
{
	struct swap *swap = swap_new();

	for (size_t i = 0; i < v->n; i++) {
		const struct vault_entry *s = &v->v[i];
		bool is_meant = ((s->places & VAULT_BODY) && vault_is_for(s, host)) ||
				(is_endpoint && is_listed(s->doors, s->n_doors, host));

		if (s->value && is_meant && !(but >> i & 1))
			add_body_words(swap, str_of(s->placeholder), value_of(s), kind, i);
	}
	return swap;
}
