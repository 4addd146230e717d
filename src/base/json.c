/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.c - see json.h
 *
 * Two passes. check_text() looks at every character once, comments included, and refuses what has no business in a
 * text file: a policy must mean what a person sees in an editor. The parser behind it may then rely on valid UTF-8
 * and only thinks about structure. It recurses at most JSON_MAX_DEPTH deep, and takes all its memory from one
 * arena.
 *
 * Duplicate keys are found by sorting the members, not by comparing each with each: the text may be hostile, and a
 * megabyte of keys must not cost a minute.
 */
#include "base/json.h"
#include "base/utf8.h"

#define NUMBER_MAX_BYTES 64

struct cursor {
	const unsigned char *p, *end;
	uint32_t line, col;
	unsigned depth, nodes;
	bool is_foreign;
	struct json_doc *doc;
	struct err *e;
};

struct mark {
	uint32_t line, col;
};

static const char *const type_names[JSON_TYPE_COUNT_] = {
	[JSON_NULL] = "null",       [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
	[JSON_STRING] = "a string", [JSON_ARRAY] = "a list",       [JSON_OBJECT] = "an object",
};

const char *json_type_name(enum json_type type)
{
	bug_on(type >= JSON_TYPE_COUNT_);
	return type_names[type];
}

#define fail_at(c, at, num, fmt, ...)                                                              \
	err_set((c)->e, ERR_CONFIG, (num), "%u:%u: " fmt, (at).line, (at).col, ##__VA_ARGS__)
#define fail(c, fmt, ...) fail_at((c), here(c), EINVAL, fmt, ##__VA_ARGS__)

static struct mark here(const struct cursor *c)
{
	return (struct mark){ .line = c->line, .col = c->col };
}

void json_done(struct json_doc *doc)
{
	arena_done(&doc->mem);
	doc->root = NULL;
}

static struct json *node_new(struct cursor *c, enum json_type type)
{
	struct json *v;

	if (c->nodes == JSON_MAX_NODES) {
		(void)fail_at(c, here(c), E2BIG, "more than %d values", JSON_MAX_NODES);
		return NULL;
	}
	c->nodes++;
	v = arena_new(&c->doc->mem, struct json);
	v->type = type;
	v->line = c->line;
	v->col = c->col;
	return v;
}

/* Characters. */

/* Control characters, and the ones that make a line look like another: line separators and bidirectional overrides. */
static bool is_banned(uint32_t v)
{
	if (v < 0x20)
		return v != '\t' && v != '\n' && v != '\r';
	return (v >= 0x7f && v <= 0x9f) || v == 0x2028 || v == 0x2029 ||
	       (v >= 0x202a && v <= 0x202e) || (v >= 0x2066 && v <= 0x2069) || v == 0xfeff;
}

static int check_text(struct cursor c)
{
	while (c.p < c.end) {
		uint32_t v = 0;
		size_t len = utf8_decode(c.p, (size_t)(c.end - c.p), &v);

		if (len == 0)
			return fail(&c, "byte 0x%02x is not valid UTF-8 here", *c.p);
		if (c.is_foreign && v >= 0x7f)
			v = 'x';
		if (v == 0xfeff)
			return fail(&c, "a byte order mark is not accepted; save the file as plain "
					"UTF-8");
		if (is_banned(v))
			return fail(&c, "control character U+%04X is not accepted", v);
		c.p += len;
		c.col++;
		if (v == '\n') {
			c.line++;
			c.col = 1;
		}
	}
	return 0;
}

/* -1 at the end; the text holds no negative characters. */
static int peek(const struct cursor *c)
{
	return c->p < c->end ? *c->p : -1;
}

static void skip_byte(struct cursor *c)
{
	bug_on(c->p == c->end);
	if (*c->p == '\n') {
		c->line++;
		c->col = 1;
	} else if ((*c->p & 0xc0) != 0x80) {
		c->col++;
	}
	c->p++;
}

/* A character that has no place where it stands. */
static int fail_unexpected(struct cursor *c, const char *wanted)
{
	int ch = peek(c);

	if (ch < 0)
		return fail(c, "the text ends where %s should be", wanted);
	if (ch > 0x20 && ch < 0x7f)
		return fail(c, "'%c' where %s should be", ch, wanted);
	return fail(c, "an unexpected character where %s should be", wanted);
}

static int skip_block_comment(struct cursor *c, struct mark start)
{
	skip_byte(c); /* the star of the opening, so that it cannot close too */
	for (; c->p < c->end; skip_byte(c)) {
		if (c->end - c->p >= 2 && c->p[0] == '*' && c->p[1] == '/') {
			skip_byte(c);
			skip_byte(c);
			return 0;
		}
	}
	return fail_at(c, start, EINVAL, "this comment is never closed");
}

static int skip_space(struct cursor *c)
{
	for (;;) {
		int ch = peek(c);
		struct mark start = here(c);

		if (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r') {
			skip_byte(c);
			continue;
		}
		if (ch != '/')
			return 0;
		skip_byte(c);
		if (peek(c) == '/') {
			while (c->p < c->end && *c->p != '\n')
				skip_byte(c);
		} else if (peek(c) == '*') {
			int r = skip_block_comment(c, start);

			if (r < 0)
				return r;
		} else {
			return fail_at(c, start, EINVAL, "'/' that begins no comment");
		}
	}
}

/* Strings. */

static int hex4(struct cursor *c, uint32_t *ret)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		int ch = peek(c);
		int lower = ch | 0x20;

		if (ch >= '0' && ch <= '9')
			v = v << 4 | (uint32_t)(ch - '0');
		else if (ch > 0 && lower >= 'a' && lower <= 'f')
			v = v << 4 | (uint32_t)(lower - 'a' + 10);
		else
			return fail(c, "\\u needs four hexadecimal digits");
		skip_byte(c);
	}
	*ret = v;
	return 0;
}

static char *utf8_put(char *out, uint32_t v)
{
	if (v < 0x80) {
		*out++ = (char)v;
	} else if (v < 0x800) {
		*out++ = (char)(0xc0 | v >> 6);
		*out++ = (char)(0x80 | (v & 0x3f));
	} else if (v < 0x10000) {
		*out++ = (char)(0xe0 | v >> 12);
		*out++ = (char)(0x80 | (v >> 6 & 0x3f));
		*out++ = (char)(0x80 | (v & 0x3f));
	} else {
		*out++ = (char)(0xf0 | v >> 18);
		*out++ = (char)(0x80 | (v >> 12 & 0x3f));
		*out++ = (char)(0x80 | (v >> 6 & 0x3f));
		*out++ = (char)(0x80 | (v & 0x3f));
	}
	return out;
}

/* Half a character, as JavaScript prints it. */
static bool is_lone(const struct cursor *c, uint32_t v)
{
	static const char low[] = "cdefCDEF";

	if (v < 0xd800 || v > 0xdfff)
		return false;
	return v >= 0xdc00 || c->end - c->p < 6 || c->p[0] != '\\' || c->p[1] != 'u' ||
	       (c->p[2] != 'd' && c->p[2] != 'D') || c->p[3] == '\0' ||
	       strchr(low, c->p[3]) == NULL;
}

/* Behind "\u". Six bytes of text become at most three, twelve at most four, so `out` cannot run over. */
static int unicode_escape(struct cursor *c, struct mark start, char **out)
{
	uint32_t v = 0, low = 0;
	int r = hex4(c, &v);

	if (r < 0)
		return r;
	if (v == 0)
		return fail_at(c, start, EINVAL, "a NUL character is not accepted");
	if (c->is_foreign && is_lone(c, v)) {
		*out = utf8_put(*out, 0xfffd);
		return 0;
	}
	if (v >= 0xdc00 && v <= 0xdfff)
		return fail_at(c, start, EINVAL, "a lone surrogate is not a character");
	if (v >= 0xd800 && v <= 0xdbff) {
		if (c->end - c->p < 2 || c->p[0] != '\\' || c->p[1] != 'u')
			return fail_at(c, start, EINVAL, "a lone surrogate is not a character");
		skip_byte(c);
		skip_byte(c);
		r = hex4(c, &low);
		if (r < 0)
			return r;
		if (low < 0xdc00 || low > 0xdfff)
			return fail_at(c, start, EINVAL, "a lone surrogate is not a character");
		v = 0x10000 + ((v - 0xd800) << 10 | (low - 0xdc00));
	}
	*out = utf8_put(*out, v);
	return 0;
}

static int escape(struct cursor *c, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	struct mark start = here(c);
	const char *at;
	int ch;

	skip_byte(c);
	ch = peek(c);
	if (ch < 0)
		return fail(c, "the text ends inside a string");
	if (ch == 'u') {
		skip_byte(c);
		return unicode_escape(c, start, out);
	}
	at = strchr(from, ch);
	if (at == NULL || ch == 0)
		return fail_at(c, start, EINVAL, "unknown escape in a string");
	*(*out)++ = to[at - from];
	skip_byte(c);
	return 0;
}

/* The raw length up to the closing quote: decoding never makes text longer. */
static size_t raw_length(const struct cursor *c)
{
	const unsigned char *p = c->p;

	while (p < c->end && *p != '"' && *p != '\n')
		p += *p == '\\' && c->end - p > 1 ? 2 : 1;
	return (size_t)(p - c->p);
}

/* At the opening quote. */
static int string(struct cursor *c, const char **ret, size_t *ret_n)
{
	struct mark start = here(c);
	char *text, *out;

	skip_byte(c);
	text = out = arena_take(&c->doc->mem, raw_length(c) + 1);
	for (;;) {
		int ch = peek(c), r;

		if (ch < 0)
			return fail_at(c, start, EINVAL, "this string is never closed");
		if (ch == '"')
			break;
		if (ch == '\n' || ch == '\r')
			return fail(c, "a line break inside a string; write \\n");
		if (ch == '\t')
			return fail(c, "a tab inside a string; write \\t");
		if (ch == '\\') {
			r = escape(c, &out);
			if (r < 0)
				return r;
			continue;
		}
		*out++ = (char)ch;
		skip_byte(c);
	}
	skip_byte(c);
	*out = '\0';
	*ret = text;
	*ret_n = (size_t)(out - text);
	return 0;
}

/* Numbers and words. */

static size_t digits(struct cursor *c)
{
	size_t n = 0;

	for (; peek(c) >= '0' && peek(c) <= '9'; n++)
		skip_byte(c);
	return n;
}

/* Digits that are known to be digits; false on overflow. */
static bool to_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	for (; *s; s++)
		if (*s < '0' || *s > '9' || !mul_ok(v, (uint64_t)10, &v) ||
		    !add_ok(v, (uint64_t)(*s - '0'), &v))
			return false;
	*ret = v;
	return true;
}

bool json_u64(const struct json *v, uint64_t *ret)
{
	return v && v->type == JSON_NUMBER && v->text[0] != '-' && to_u64(v->text, ret);
}

bool json_i64(const struct json *v, int64_t *ret)
{
	bool is_negative = v && v->type == JSON_NUMBER && v->text[0] == '-';
	uint64_t u;

	if (v == NULL || v->type != JSON_NUMBER || !to_u64(v->text + is_negative, &u))
		return false;
	if (u > (uint64_t)INT64_MAX + is_negative)
		return false;
	*ret = is_negative ? (int64_t)(0 - u) : (int64_t)u;
	return true;
}

static int number(struct cursor *c, struct json *v)
{
	const unsigned char *zero;
	struct mark start = here(c);
	bool is_decimal = false;
	uint64_t u;
	int64_t i;
	char *text;

	if (peek(c) == '-')
		skip_byte(c);
	zero = peek(c) == '0' ? c->p : NULL;
	if (digits(c) == 0)
		return fail_unexpected(c, "a digit");
	if (zero && c->p - zero > 1)
		return fail_at(c, start, EINVAL, "a number with a leading zero");
	if (peek(c) == '.') {
		is_decimal = true;
		skip_byte(c);
		if (digits(c) == 0)
			return fail_unexpected(c, "a digit");
	}
	if (peek(c) == 'e' || peek(c) == 'E') {
		if (!c->is_foreign)
			return fail(c, "a number with an exponent is not accepted");
		is_decimal = true;
		skip_byte(c);
		if (peek(c) == '-' || peek(c) == '+')
			skip_byte(c);
		if (digits(c) == 0)
			return fail_unexpected(c, "a digit");
	}
	v->n = c->col - start.col; /* ASCII only: columns are bytes */
	if (v->n > NUMBER_MAX_BYTES)
		return fail_at(c, start, ERANGE, "a number of more than %d characters",
			       NUMBER_MAX_BYTES);
	text = arena_take(&c->doc->mem, v->n + 1);
	memcpy(text, c->p - v->n, v->n);
	v->text = text;
	if (!is_decimal && !c->is_foreign && !json_u64(v, &u) && !json_i64(v, &i))
		return fail_at(c, start, ERANGE, "a whole number outside 64 bits");
	return 0;
}

static bool is_word_byte(int ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
	       ch == '_';
}

static int word(struct cursor *c, struct json *v)
{
	static const struct {
		const char *name;
		enum json_type type;
	} words[] = { { "null", JSON_NULL }, { "true", JSON_BOOL }, { "false", JSON_BOOL } };
	const unsigned char *begin = c->p;
	struct mark start = here(c);
	size_t n;

	while (is_word_byte(peek(c)))
		skip_byte(c);
	n = (size_t)(c->p - begin);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strlen(words[i].name) != n || memcmp(words[i].name, begin, n) != 0)
			continue;
		v->type = words[i].type;
		v->is_true = begin[0] == 't';
		return 0;
	}
	if (n == 0)
		return fail_unexpected(c, "a value");
	return fail_at(c, start, EINVAL, "'%.*s' is not a value; a string needs quotes",
		       (int)(n > 40 ? 40 : n), (const char *)begin);
}

/* Lists and objects. */

static int value(struct cursor *c, struct json **ret);

/* Behind a member: 1 when another follows, 0 when the bracket was closed. */
static int more(struct cursor *c, int close, struct mark open)
{
	int r = skip_space(c);

	if (r < 0)
		return r;
	if (peek(c) == ',') {
		skip_byte(c);
		r = skip_space(c);
		if (r < 0)
			return r;
		if (peek(c) != close)
			return 1;
	}
	if (peek(c) < 0)
		return fail(c, "the text ends before the '%c' of %u:%u is closed",
			    close == '}' ? '{' : '[', open.line, open.col);
	if (peek(c) != close)
		return fail_unexpected(c, close == '}' ? "',' or '}'" : "',' or ']'");
	skip_byte(c);
	return 0;
}

static bool is_before(const struct json *a, const struct json *b)
{
	return a->key_line < b->key_line || (a->key_line == b->key_line && a->key_col < b->key_col);
}

static int by_key(const void *a, const void *b)
{
	const struct json *const *x = a, *const *y = b;
	int d = strcmp((*x)->key, (*y)->key);

	return d ? d : is_before(*x, *y) ? -1 : is_before(*y, *x);
}

static int check_keys(struct cursor *c, const struct json *object)
{
	_free_ const struct json **v = mem_new(object->n, sizeof(void *));
	const struct json *again = NULL, *earlier = NULL;
	size_t n = 0;

	for (const struct json *m = object->first; m; m = m->next)
		v[n++] = m;
	qsort(v, n, sizeof(void *), by_key);
	for (size_t i = 1; i < n; i++) {
		if (str_eq(v[i - 1]->key, v[i]->key) && (again == NULL || is_before(v[i], again))) {
			again = v[i];
			earlier = v[i - 1];
		}
	}
	if (again)
		return err_set(c->e, ERR_CONFIG, EINVAL,
			       "%u:%u: duplicate key; it stands at %u:%u already", again->key_line,
			       again->key_col, earlier->key_line, earlier->key_col);
	return 0;
}

static int member_key(struct cursor *c, const char **ret, struct mark *ret_at)
{
	size_t n;
	int r;

	*ret_at = here(c);
	if (peek(c) != '"')
		return fail_unexpected(c, "a key in quotes");
	r = string(c, ret, &n);
	if (r < 0)
		return r;
	r = skip_space(c);
	if (r < 0)
		return r;
	if (peek(c) != ':')
		return fail_unexpected(c, "':'");
	skip_byte(c);
	return skip_space(c);
}

/* Fills v, whose opening bracket is next. */
static int container(struct cursor *c, struct json *v, int close)
{
	struct mark open = here(c);
	struct json **tail = &v->first;
	int r;

	if (++c->depth > JSON_MAX_DEPTH)
		return fail_at(c, open, ELOOP, "nested deeper than %d", JSON_MAX_DEPTH);
	skip_byte(c);
	r = skip_space(c);
	if (r < 0)
		return r;
	if (peek(c) == close) {
		skip_byte(c);
		c->depth--;
		return 0;
	}
	do {
		const char *key = NULL;
		struct mark at = { 0 };
		struct json *m = NULL;

		if (close == '}') {
			r = member_key(c, &key, &at);
			if (r < 0)
				return r;
		}
		r = value(c, &m);
		if (r < 0)
			return r;
		m->key = key;
		m->key_line = at.line;
		m->key_col = at.col;
		*tail = m;
		tail = &m->next;
		v->n++;
		r = more(c, close, open);
	} while (r > 0);
	c->depth--;
	return r;
}

static int value(struct cursor *c, struct json **ret)
{
	struct json *v = node_new(c, JSON_NULL);
	int ch = peek(c), r;

	if (v == NULL)
		return -E2BIG;
	switch (ch) {
	case '{':
		v->type = JSON_OBJECT;
		r = container(c, v, '}');
		if (r == 0 && v->n > 1)
			r = check_keys(c, v);
		break;
	case '[':
		v->type = JSON_ARRAY;
		r = container(c, v, ']');
		break;
	case '"':
		v->type = JSON_STRING;
		r = string(c, &v->text, &v->n);
		break;
	default:
		if (ch == '-' || (ch >= '0' && ch <= '9')) {
			v->type = JSON_NUMBER;
			r = number(c, v);
		} else {
			r = word(c, v);
		}
	}
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

static int whole(struct cursor *c)
{
	int r = skip_space(c);

	if (r < 0)
		return r;
	if (peek(c) < 0)
		return fail(c, "there is no value in this text");
	r = value(c, &c->doc->root);
	if (r < 0)
		return r;
	r = skip_space(c);
	if (r < 0)
		return r;
	return peek(c) < 0 ? 0 : fail_unexpected(c, "the end");
}

static int parse_as(const char *text, size_t n, bool is_foreign, struct json_doc *ret,
		    struct err *e)
{
	uint64_t max = is_foreign ? JSON_FOREIGN_MAX_BYTES : JSON_MAX_BYTES;
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct cursor c = {
		.p = (const unsigned char *)text,
		.line = 1,
		.col = 1,
		.is_foreign = is_foreign,
		.doc = &doc,
		.e = e,
	};
	int r;

	if (n > max)
		return fail_at(&c, here(&c), E2BIG, "larger than %llu bytes",
			       (unsigned long long)max);
	c.end = c.p + n;
	r = check_text(c);
	if (r < 0)
		return r;
	r = whole(&c);
	if (r < 0)
		return r;
	*ret = doc;
	doc = (struct json_doc){ 0 };
	return 0;
}

int json_parse(const char *text, size_t n, struct json_doc *ret, struct err *e)
{
	return parse_as(text, n, false, ret, e);
}

int json_parse_foreign(const char *text, size_t n, struct json_doc *ret, struct err *e)
{
	return parse_as(text, n, true, ret, e);
}

const struct json *json_get(const struct json *object, const char *key)
{
	if (object->type != JSON_OBJECT)
		return NULL;
	for (const struct json *m = object->first; m; m = m->next)
		if (str_eq(m->key, key))
			return m;
	return NULL;
}

const char *json_text(const struct json *object, const char *key, const char *otherwise)
{
	const struct json *v = object ? json_get(object, key) : NULL;

	return v && v->type == JSON_STRING && v->text[0] ? v->text : otherwise;
}
