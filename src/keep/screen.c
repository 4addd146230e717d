/* SPDX-License-Identifier: Apache-2.0 */
/* keep/screen.c - see screen.h
 *
 * The parser is the one that terminals share (ECMA-48, as VT500 reads it): text, controls, ESC x, CSI, and strings (OSC, DCS, APC,
 * PM, SOS) up to BEL or ST. CAN and SUB end a sequence, ESC begins another one. It keeps the bytes of a sequence up to a bound;
 * a longer one is still followed to its end.
 *
 * A replay passes on what is in the tables of silent sequences, and nothing else: a terminal answers some thirty different
 * queries, its maker may add another one, and each answer would be typed into the command. Modes are left out of it and are
 * set once, at its end, to what they are now.
 */
#include "keep/screen.h"

/* ---- what can be set ---- */

static const struct {
	uint16_t number;
	char prefix;      /* '?', or 0: an ANSI mode */
	bool is_on_first; /* a terminal begins with it switched on */
	bool is_drawing;  /* says where text goes: stays in its place in a replay */
} modes[] = {
	{ 1049, '?' },
	{ 1047, '?' },
	{ 47, '?' },              /* the alternate screen: ALT_MODES */
	{ 2026, '?' },            /* drawing is held back */
	{ 6, '?', false, true },  /* origin */
	{ 7, '?', true, true },   /* wrap */
	{ 69, '?', false, true }, /* left and right margins */
	{ 4, 0, false, true },    /* insert */
	{ 20, 0, false, true },   /* line feed is new line */
	{ 1, '?' },
	{ 5, '?' },
	{ 25, '?', true },
	{ 66, '?' },
	{ 9, '?' },
	{ 1000, '?' },
	{ 1001, '?' },
	{ 1002, '?' },
	{ 1003, '?' },
	{ 1004, '?' },
	{ 1005, '?' },
	{ 1006, '?' },
	{ 1015, '?' },
	{ 1016, '?' },
	{ 2004, '?' },
	{ 2031, '?' },
	{ 2048, '?' },
	{ 5522, '?' },
};
#define ALT_MODES 3
#define ALT_BITS (BIT64(ALT_MODES) - 1)

/* Behind the modes; 48 to 55 are the depths of the two keyboard stacks. */
enum {
	SET_KEYPAD = 32, /* ESC = */
	SET_MARGINS,
	SET_STYLE,      /* of the cursor */
	SET_OTHER_KEYS, /* xterm's modifyOtherKeys */
	SET_KEYBOARD,   /* kitty's flags, set without a push */
	SET_PALETTE,
	SET_COLOURS, /* of text, background, cursor */
	SET_LINK,    /* a hyperlink is open */
	SET_DRAWN,   /* the cursor was moved about: lines below it may be the command's */
	DEPTH_AT = 48
};

_Static_assert(ARRAY_LEN(modes) <= SET_KEYPAD, "modes and the rest share one number");

bool screen_is_alternate(const struct screen *s)
{
	return s->set & ALT_BITS;
}

/* ---- the parser ---- */

enum state { GROUND, UTF8, ESCAPE, ESCAPE_MORE, CONTROL, STRING, STRING_ESCAPE };
enum token { TOKEN_NONE, TOKEN_TEXT, TOKEN_CONTROL, TOKEN_ESCAPE, TOKEN_CSI, TOKEN_STRING };

static void keep_byte(struct screen_parser *p, char c)
{
	if (p->n < sizeof(p->seq))
		p->seq[p->n++] = c;
	else
		p->is_long = true;
}

static void begin(struct screen_parser *p, enum state state, char c)
{
	p->state = (uint8_t)state;
	p->n = 0;
	p->is_long = false;
	keep_byte(p, c);
}

static enum token end(struct screen_parser *p, enum token t)
{
	p->state = GROUND;
	return t;
}

/* Bytes that are no UTF-8 show nothing that could be repeated: 8-bit controls are among them. */
static enum token on_ground(struct screen_parser *p, unsigned char c)
{
	begin(p, GROUND, (char)c);
	if (c == 0x1b)
		p->state = ESCAPE;
	else if (c < 0x20 || c == 0x7f)
		return TOKEN_CONTROL;
	else if (c < 0x80)
		return TOKEN_TEXT;
	else if (c >= 0xc2 && c <= 0xf4) {
		p->state = UTF8;
		p->more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	}
	return TOKEN_NONE;
}

static enum token on_utf8(struct screen_parser *p, unsigned char c)
{
	if ((c & 0xc0) != 0x80)
		return on_ground(p, c);
	keep_byte(p, (char)c);
	if (--p->more > 0)
		return TOKEN_NONE;
	/* U+0080 to U+009F are controls. */
	return end(p, (unsigned char)p->seq[0] == 0xc2 && c < 0xa0 ? TOKEN_NONE : TOKEN_TEXT);
}

static enum token on_escape(struct screen_parser *p, unsigned char c)
{
	keep_byte(p, (char)c);
	if (c >= 0x20 && c < 0x30) {
		p->state = ESCAPE_MORE;
		return TOKEN_NONE;
	}
	if (p->state == ESCAPE && c == '[')
		p->state = CONTROL;
	else if (p->state == ESCAPE && (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X'))
		p->state = STRING;
	else
		return end(p, c >= 0x30 && c < 0x7f ? TOKEN_ESCAPE : TOKEN_NONE);
	return TOKEN_NONE;
}

static enum token on_string(struct screen_parser *p, unsigned char c)
{
	if (p->state == STRING_ESCAPE && c == '\\') {
		p->n--; /* the ESC */
		return end(p, TOKEN_STRING);
	}
	if (p->state == STRING_ESCAPE) {
		begin(p, ESCAPE, 0x1b);
		return on_escape(p, c);
	}
	if (c == '\a')
		return end(p, TOKEN_STRING);
	if (c == 0x1b)
		p->state = STRING_ESCAPE;
	keep_byte(p, (char)c);
	if (p->state == STRING_ESCAPE && p->is_long)
		p->n = sizeof(p->seq); /* the ESC was not kept; on_string() takes one off */
	return TOKEN_NONE;
}

/* One byte. Of a whole token the bytes are in seq. */
static enum token step(struct screen_parser *p, unsigned char c)
{
	if ((c == 0x18 || c == 0x1a) && p->state != GROUND)
		return end(p, TOKEN_NONE);
	switch ((enum state)p->state) {
	case GROUND:
		return on_ground(p, c);
	case UTF8:
		return on_utf8(p, c);
	case STRING:
	case STRING_ESCAPE:
		return on_string(p, c);
	case ESCAPE:
	case ESCAPE_MORE:
	case CONTROL:
		break;
	}
	if (c == 0x1b)
		return on_ground(p, c);
	if (c < 0x20 || c > 0x7e) /* a control in the middle is not part of the sequence */
		return TOKEN_NONE;
	if (p->state != CONTROL)
		return on_escape(p, c);
	keep_byte(p, (char)c);
	return c >= 0x40 ? end(p, TOKEN_CSI) : TOKEN_NONE;
}

/* ---- sequences ---- */

#define CSI_NUMBERS 16

struct csi {
	char prefix, middle, final; /* 0: none */
	uint16_t v[CSI_NUMBERS];
	size_t n; /* at least 1 */
};

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* One byte behind "ESC [". False: more than we look at, or not in order. */
static bool csi_byte(struct csi *c, char b, bool is_first)
{
	uint16_t *last = &c->v[c->n - 1];

	if (b >= '<' && b <= '?') {
		c->prefix = b;
		return is_first;
	}
	if (b >= '0' && b <= '9') {
		if (*last < 6000)
			*last = (uint16_t)(*last * 10 + (b - '0'));
		return true;
	}
	if (b == ';' || b == ':')
		return ++c->n <= CSI_NUMBERS;
	if (b >= 0x40) {
		c->final = b;
		return true;
	}
	if (c->middle)
		return false;
	c->middle = b;
	return true;
}

static bool csi_read(const struct screen_parser *p, struct csi *c)
{
	*c = (struct csi){ .n = 1 };
	if (p->is_long)
		return false;
	for (size_t i = 2; i < p->n; i++)
		if (!csi_byte(c, p->seq[i], i == 2))
			return false;
	return true;
}

static int find_mode(char prefix, uint16_t number)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (modes[i].number == number && modes[i].prefix == prefix)
			return (int)i;
	return -1;
}

static void set_bit(struct screen *s, int bit, bool is_set)
{
	s->set = is_set ? s->set | BIT64(bit) : s->set & ~BIT64(bit);
}

static void on_mode(struct screen *s, const struct csi *c)
{
	for (size_t i = 0; i < c->n; i++) {
		int at = find_mode(c->prefix, c->v[i]);

		if (at < 0)
			continue;
		/* One screen has three names; leaving it by any of them leaves it. */
		if (at < ALT_MODES)
			s->set &= ~ALT_BITS;
		set_bit(s, at, (c->final == 'h') != modes[at].is_on_first);
	}
}

/* Kitty's keyboard protocol: each screen has a stack of its own. */
static void on_keyboard(struct screen *s, const struct csi *c)
{
	uint8_t *stack = s->keyboards[screen_is_alternate(s)],
		*n = &s->n_keyboards[screen_is_alternate(s)];
	uint16_t many = c->v[0] ? c->v[0] : 1;

	if (c->prefix == '>') {
		if (*n == SCREEN_KEYBOARDS)
			memmove(stack, stack + 1, --*n); /* the oldest is lost, as in terminals */
		stack[(*n)++] = (uint8_t)(c->v[0] & 31);
	} else if (c->prefix == '<') {
		*n = (uint8_t)(many < *n ? *n - many : 0);
	} else if (c->prefix == '=' && *n > 0) {
		/* 1: these flags, 2: these too, 3: without these. */
		uint8_t flags = (uint8_t)(c->v[0] & 31), *top = &stack[*n - 1];

		*top = c->n > 1 && c->v[1] == 2   ? *top | flags
		       : c->n > 1 && c->v[1] == 3 ? (uint8_t)(*top & ~flags)
						  : flags;
	} else if (c->prefix == '=') {
		set_bit(s, SET_KEYBOARD, c->v[0] != 0);
	}
}

/* DECSTR: what a soft reset puts back. */
static void on_soft_reset(struct screen *s)
{
	static const uint16_t back[] = { 1, 6, 25 };

	for (size_t i = 0; i < ARRAY_LEN(back); i++)
		set_bit(s, find_mode('?', back[i]), false);
	set_bit(s, find_mode(0, 4), false);
	set_bit(s, SET_MARGINS, false);
	set_bit(s, SET_KEYPAD, false);
}

/* With a byte in the middle: the cursor's form, the soft reset. */
static void on_csi_middle(struct screen *s, const struct csi *c)
{
	if (c->prefix == 0 && c->middle == ' ' && c->final == 'q') {
		s->cursor_style = (uint8_t)(c->v[0] <= 6 ? c->v[0] : 0);
		set_bit(s, SET_STYLE, s->cursor_style != 0);
	} else if (c->prefix == 0 && c->middle == '!' && c->final == 'p') {
		on_soft_reset(s);
	}
}

static void on_csi(struct screen *s)
{
	struct csi c;

	if (!csi_read(&s->parser, &c))
		return;
	if (c.middle)
		on_csi_middle(s, &c);
	else if (is_one_of(c.final, "hl"))
		on_mode(s, &c);
	else if (c.final == 'u' && c.prefix)
		on_keyboard(s, &c);
	else if (c.final == 'm' && c.prefix == '>' && c.v[0] == 4)
		set_bit(s, SET_OTHER_KEYS, c.n > 1 && c.v[1] > 0);
	else if (c.final == 'r' && c.prefix == 0)
		set_bit(s, SET_MARGINS, c.n > 1 || c.v[0] > 1);
	else if (c.prefix == 0 && is_one_of(c.final, "ABEFHLMSTfd"))
		set_bit(s, SET_DRAWN, true);
}

/* "]8;..." -> 8; -1: no OSC. */
static int osc_number(const struct screen_parser *p, const char **ret_rest)
{
	size_t i = 2;
	int n = 0;

	if (p->n < 3 || p->seq[1] != ']')
		return -1;
	for (; i < p->n && p->seq[i] >= '0' && p->seq[i] <= '9' && n < 10000; i++)
		n = n * 10 + (p->seq[i] - '0');
	*ret_rest = i < p->n ? p->seq + i + 1 : NULL;
	return i > 2 && (i == p->n || p->seq[i] == ';') ? n : -1;
}

static void on_osc(struct screen *s)
{
	const struct screen_parser *p = &s->parser;
	const char *rest = NULL, *close;
	int n = osc_number(p, &rest);
	size_t left = rest ? p->n - (size_t)(rest - p->seq) : 0;

	if (n == 8 && left > 0) {
		/* "params;URI": no URI closes it. */
		close = memchr(rest, ';', left);
		set_bit(s, SET_LINK, close && close + 1 < rest + left);
	} else if (left > 0 && memchr(rest, '?', left) == NULL) {
		if (n == 4 || n == 5)
			set_bit(s, SET_PALETTE, true);
		if (n >= 10 && n <= 12)
			set_bit(s, SET_COLOURS, true);
	}
}

static void reset_all(struct screen *s)
{
	struct screen_parser p = s->parser;

	*s = (struct screen){ .parser = p };
}

static void on_token(struct screen *s, enum token t)
{
	char last = s->parser.seq[s->parser.n > 1];

	switch (t) {
	case TOKEN_CSI:
		on_csi(s);
		break;
	case TOKEN_STRING:
		on_osc(s);
		break;
	case TOKEN_ESCAPE:
		if (s->parser.n == 2 && (last == '=' || last == '>'))
			set_bit(s, SET_KEYPAD, last == '=');
		else if (s->parser.n == 2 && last == 'c')
			reset_all(s);
		break;
	case TOKEN_NONE:
	case TOKEN_TEXT:
	case TOKEN_CONTROL:
		break;
	}
}

void screen_follow(struct screen *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s->parser.state == GROUND) {
			const char *esc = memchr(p + i, 0x1b, n - i);

			if (esc == NULL)
				return;
			i = (size_t)(esc - p);
		}
		on_token(s, step(&s->parser, (unsigned char)p[i]));
	}
}

/* ---- reset ---- */

uint64_t screen_bits(const struct screen *s)
{
	return s->set | (uint64_t)s->n_keyboards[0] << DEPTH_AT |
	       (uint64_t)s->n_keyboards[1] << (DEPTH_AT + 4);
}

static void put_mode(struct buf *out, size_t i, bool is_on)
{
	buf_puts(out, modes[i].prefix ? "\033[?" : "\033[");
	buf_printf(out, "%u%c", modes[i].number, is_on ? 'h' : 'l');
}

static void put_pops(struct buf *out, uint64_t n)
{
	if (n > 0)
		buf_printf(out, "\033[<%uu", (unsigned)n);
}

/* Of a terminal whose keeper died: all modes, and 1047, which does nothing where no alternate screen is on. */
static uint64_t unknown_bits(void)
{
	return ((BIT64(ARRAY_LEN(modes)) - 1) & ~ALT_BITS) | BIT64(1) | BIT64(SET_KEYPAD) |
	       BIT64(SET_STYLE) | BIT64(SET_OTHER_KEYS) | BIT64(SET_KEYBOARD) | BIT64(SET_LINK);
}

static void put_others(uint64_t bits, struct buf *out)
{
	static const struct {
		int bit;
		const char *text;
	} undo[] = {
		{ SET_KEYBOARD, "\033[=0u" },
		{ SET_OTHER_KEYS, "\033[>4m" },
		{ SET_KEYPAD, "\033>" },
		{ SET_STYLE, "\033[0 q" },
		{ SET_PALETTE, "\033]104\033\\" },
		{ SET_COLOURS, "\033]110\033\\\033]111\033\\\033]112\033\\" },
		{ SET_LINK, "\033]8;;\033\\" },
		{ SET_MARGINS, "\0337\033[r\0338" }, /* which moves the cursor */
	};

	for (size_t i = 0; i < ARRAY_LEN(undo); i++)
		if (bits & BIT64(undo[i].bit))
			buf_puts(out, undo[i].text);
}

void screen_put_reset(uint64_t given, enum screen_leave how, struct buf *out)
{
	uint64_t bits = given == SCREEN_UNKNOWN ? unknown_bits() : given;

	if ((bits & ~BIT64(SET_DRAWN)) == 0 && how == SCREEN_ENDED)
		return;
	buf_puts(out, "\033\\"); /* ends a sequence that was cut off */
	for (size_t i = ALT_MODES; i < ARRAY_LEN(modes); i++)
		if (bits & BIT64(i))
			put_mode(out, i, modes[i].is_on_first);
	put_pops(out, bits >> (DEPTH_AT + 4) & 15);
	for (size_t i = 0; i < ALT_MODES; i++)
		if (bits & BIT64(i))
			put_mode(out, i, false);
	put_pops(out, bits >> DEPTH_AT & 15);
	put_others(bits, out);
	if (how == SCREEN_LEFT) {
		buf_puts(out, "\033(B\017\033[0m");
		if (bits & BIT64(SET_DRAWN) && !(bits & ALT_BITS))
			buf_puts(out, "\033[J");
	}
}

/* ---- replay ---- */

/* A mode that says where text goes, and no other beside it. */
static bool is_drawing_mode(const struct csi *c)
{
	for (size_t i = 0; i < c->n; i++) {
		int at = find_mode(c->prefix, c->v[i]);

		if (at < 0 || !modes[at].is_drawing)
			return false;
	}
	return true;
}

static bool is_silent_csi(const struct screen_parser *p)
{
	struct csi c;

	if (!csi_read(p, &c))
		return false;
	if (c.middle)
		return c.middle == '!' && c.final == 'p' && c.prefix == 0;
	if (c.final == 'h' || c.final == 'l')
		return (c.prefix == '?' || c.prefix == 0) && is_drawing_mode(&c);
	if (c.prefix == '?')
		return c.final == 'J' || c.final == 'K';
	if (c.prefix)
		return false;
	if (c.final == 'T' || c.final == 's' || c.final == 'u')
		return c.n == 1; /* with more they mean something else */
	return is_one_of(c.final, "@ABCDEFGHIJKLMPSXZ`abdefgmr");
}

static bool is_silent(const struct screen_parser *p, enum token t)
{
	const char *rest = NULL;
	int n;

	switch (t) {
	case TOKEN_TEXT:
		return true;
	case TOKEN_CONTROL:
		return is_one_of(p->seq[0], "\b\t\n\v\f\r\016\017");
	case TOKEN_ESCAPE:
		if (p->n == 2)
			return is_one_of(p->seq[1], "78DEHMc");
		return p->n == 3 && is_one_of(p->seq[1], "()*+#");
	case TOKEN_CSI:
		return is_silent_csi(p);
	case TOKEN_STRING:
		n = p->is_long ? -1 : osc_number(p, &rest);
		if (n != 8 && (n < 0 || n > 2))
			return false;
		for (size_t i = 2; i < p->n; i++)
			if (p->seq[i] < 0x20 || p->seq[i] > 0x7e)
				return false; /* some of U+0080 to U+009F end a string */
		return true;
	case TOKEN_NONE:
		break;
	}
	return false;
}

/* The screen before the first byte: an alternate one that is left before another is entered was on already. */
static bool began_alternate(const struct str part[2], bool is_now)
{
	struct screen s = { 0 };

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < part[k].n; i++) {
			struct csi c;

			if (step(&s.parser, (unsigned char)part[k].p[i]) != TOKEN_CSI ||
			    !csi_read(&s.parser, &c) || c.prefix != '?' || c.middle ||
			    (c.final != 'h' && c.final != 'l'))
				continue;
			for (size_t j = 0; j < c.n; j++) {
				int at = find_mode('?', c.v[j]);

				if (at >= 0 && at < ALT_MODES)
					return c.final == 'l';
			}
		}
	return is_now;
}

static void put_token(struct buf *out, const struct screen_parser *p, enum token t)
{
	buf_add(out, p->seq, p->n);
	if (t == TOKEN_STRING)
		buf_puts(out, "\033\\");
}

static void put_output(const struct screen *s, const struct str part[2], struct buf *out)
{
	bool is_alt = screen_is_alternate(s);
	struct screen then = { .set = began_alternate(part, is_alt) ? BIT64(0) : 0 };
	size_t begins = out->n;

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < part[k].n; i++) {
			enum token t = step(&then.parser, (unsigned char)part[k].p[i]);
			bool was_alt = screen_is_alternate(&then);

			on_token(&then, t);
			/* What stood there before was cleared. */
			if (is_alt && !was_alt && screen_is_alternate(&then))
				out->n = begins;
			if (t != TOKEN_NONE && screen_is_alternate(&then) == is_alt &&
			    is_silent(&then.parser, t))
				put_token(out, &then.parser, t);
		}
}

static void put_keyboards(const struct screen *s, int which, struct buf *out)
{
	for (size_t i = 0; i < s->n_keyboards[which]; i++)
		buf_printf(out, "\033[>%uu", s->keyboards[which][i]);
}

void screen_put_replay(const struct screen *s, const struct str part[2], bool is_again,
		       struct buf *out)
{
	buf_puts(out, is_again ? "\033\\" : "");
	if (!is_again)
		put_keyboards(s, 0, out);
	for (size_t i = 0; i < ALT_MODES; i++)
		if (s->set & BIT64(i))
			put_mode(out, i, true);
	if (screen_is_alternate(s) && !is_again)
		put_keyboards(s, 1, out);
	put_output(s, part, out);
	for (size_t i = ALT_MODES; i < ARRAY_LEN(modes); i++)
		if (s->set & BIT64(i) && !modes[i].is_drawing)
			put_mode(out, i, !modes[i].is_on_first);
	if (s->set & BIT64(SET_KEYPAD))
		buf_puts(out, "\033=");
	if (s->set & BIT64(SET_OTHER_KEYS))
		buf_puts(out, "\033[>4;1m");
	if (s->cursor_style)
		buf_printf(out, "\033[%u q", s->cursor_style);
}
