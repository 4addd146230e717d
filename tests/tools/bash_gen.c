/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/bash_gen.c - texts that a shell may or may not run, for bash_diff.c
 *
 * Three ways, mixed: a soup of tokens glued with odd separators, templates of every construct filled with more of the
 * same, and the scars of a mutation. Every probe (a command that does not exist) has a name of its own, so that one
 * that was seen cannot stand in for one that was not.
 */
#include "tests/tools/bash_gen.h"

static uint64_t next(struct gen *g)
{
	/* xorshift64*: good enough to choose tokens with, and the same everywhere. */
	g->state ^= g->state >> 12;
	g->state ^= g->state << 25;
	g->state ^= g->state >> 27;
	return g->state * 0x2545f4914f6cdd1dULL;
}

static size_t pick(struct gen *g, size_t n)
{
	return (size_t)(next(g) >> 33) % n;
}

static bool chance(struct gen *g, size_t one_in)
{
	return pick(g, one_in) == 0;
}

/* In a template: P a probe, W a word, C a command, L a list, S a blank or what passes for one, N a newline,
 * E the name of a heredoc. Everything else stands for itself. */
static const char *const templates[] = {
	"P",
	"P W",
	"P W W",
	"P; P",
	"P && P",
	"P || P",
	"P | P",
	"P |& P",
	"P & P",
	"PNP",
	"! P",
	"time P",
	"P | time P",
	"time -p P",
	"time -- P",
	"( L )",
	"(L)",
	"{ L; }",
	"{ L;N}",
	"((1)) || P",
	"((1+(2))); P",
	"( (L) )",
	"((L); P)",
	"(( (1) )); P",
	"if L; then L; fi",
	"if L; then L; else L; fi",
	"if L; then L; elif L; then L; fi",
	"ifSL;SthenSL;Sfi",
	"for x in W W; do L; done",
	"for x in W; { L; }",
	"for xNdo L; done",
	"for ((i=0;i<1;i++)); do L; done",
	"for ((i=0;i<1;i++)) { L; }",
	"while false; do L; done; P",
	"until true; do L; done; P",
	"case W in W) L;; esac",
	"case W in (W) L;; *) L;; esac",
	"case W in W|W) L;; *) L; esac",
	"case a in a) L;& b) L;; esac",
	"case a in a) L;;& *) L;; esac",
	"case a in a) ;; esac; P",
	"f() { L; }; f",
	"f () ( L ); f",
	"function f { L; }; f",
	"function f() { L; }; f",
	"f()N{ L;N}Nf",
	"[[ W ]] || P",
	"[[ W == W ]] || P",
	"[[ W =~ W ]] || P",
	"[[ W < W ]]; P",
	"[[ -n W && W ]]; P",
	"[[ ( W ) ]]; P",
	"[ W ]; P",
	"coproc P",
	"coproc { L; }",
	"coproc NAME { L; }",
	"coproc x=W { P; }",
	"x=W P",
	"x=W; P",
	"x=W y=W P W",
	"x=(W W); P",
	"x=(WNW); P",
	"x[1]=W; P",
	"x+=W; P",
	"declare x=(W); P",
	"export x=W; P",
	"x=$NP",
	"P >/dev/null",
	"P 2>&1",
	"P &>/dev/null; P",
	"P </dev/null",
	">/dev/null P",
	"2>/dev/null P W",
	"P <<<W",
	"P $(((x=$(case a in a) P;; esac) P); P))",
	"P $(( $(P) + ${x:-1} )); P",
	"{}P,P}",
	"P <<<WNP",
	"P <<ENWNENP",
	"P <<'E'NWNENP",
	"P <<\\ENWNENP",
	"P <<\"E\"NWNENP",
	"P <<-EN\tWN\tENP",
	"P <<-EN\\\n\tENP",
	"P <<-EN\t\\\nENPNENP",
	"P <<-EN\tW\\\n\tENPNENP",
	"P <<EN\\\nENP",
	"P <<EN\\\n\tENPNENP",
	"P <<E | PNWNENP",
	"P <<E; PNWNENP",
	"P <<E <<FNWNENWNFNP",
	"P <<E && PNWNEN",
	"P <<ENP",
	"P <<EN$(P)NENP",
	"P <<EN`P`NENP",
	"P <<EN\\$(P)NENP",
	"P <<EN${x:-$(P)}NENP",
	"P <<EN\\NENP",
	"P <<EN\\\\NENP",
	"$(P <<ENWNEN)",
	"x=$(P <<ENWNE)NP",
	"echo $(P <<ENWNEN) W",
	"P $(P)",
	"P \"$(P)\"",
	"P `P`",
	"P \"`P`\"",
	"P `P \\`P\\``",
	"P $(P $(P))",
	"P $((1+$(P)))",
	"P $(( $(P) ))",
	"P $( (P) )",
	"P $((P); P)",
	"P ${x:-$(P)}",
	"P \"${x:-$(P)}\"",
	"P ${x:-`P`}",
	"P ${x:-W}",
	"P ${x:=W}",
	"P \"${x:-W}\"",
	"P ${x#W}",
	"P ${x/W/W}",
	"P ${#x} W",
	"P ${x:0:1}",
	"P <(P)",
	"P >(P)",
	"P < <(P)",
	"P W<(P)",
	"P 2> >(P)",
	"P $'W'",
	"P $'\\''; P",
	"P $'a\\nb' ; P",
	"P $\"W\"; P",
	"P '#'; P",
	"P #WNP",
	"P W#W; P",
	"P \\#W; P",
	"P;#WNP",
	"#WNP",
	"P \\N#WNP",
	"P \\N P",
	"\\NP",
	"P\\N; P",
	"P W\\N#W; P",
	"P; \\NP",
	"P &\\N& P",
	"P |\\N| P",
	"i\\Nf P; then P; fi",
	"P\rNP",
	"P \r#W; P",
	"P \xc2\xa0#W; P",
	"P\xc2\xa0NP",
	"P \v#W; P",
	"P \"W\" ; P",
	"P 'W' ; P",
	"P \"a\\\"b\"; P",
	"P \"$x\"; P",
	"P \"a'b\"; P",
	"P 'a\"b'; P",
	"P \\'; P",
	"P \\\"; P",
	"P \"\\\\\"; P",
	"P =~NP",
	"P == ; P",
	"P {a,b}; P",
	"P {; P",
	"P }; P",
	"P !; P",
	"P in; P",
	"P if; P",
	"echo W; P",
	": W; P",
	"true && P",
	"false || P",
	"eval P",
	"eval 'L'",
	"eval \"P; P\"",
	"trap 'P' EXIT",
	"command P",
	"builtin eval P",
	"exec P",
	"! ! P",
	"P <&-; P",
	">&-P W",
	"P 2>&1-; P",
	"P 3<>/dev/null; P",
	"P {fd}>/dev/null; P",
	"P >&2 W; P",
	"P>/dev/null;P",
	"P</dev/null&&P",
	"P;P",
	"P&P",
	"P|P",
	"P&&P",
	"(P)&&(P)",
	"(P);(P)",
	"{ P;};P",
	"`P`",
	"$(P)",
	"\"P\"",
	"'P'",
	"\\P",
	"P\\\nP",
	"''P",
	"\"\"P W",
	"{P,W}",
	"x=1 $(P)",
	"a=$(P) b=`P`",
	"a=\"$(P)\"",
	"x[$(P)]=1",
	"x[$$(P)]=1",
	"x[$W]=W P",
	"x[(1)]=W; P",
	"x=([0]=$(P))",
	"((x=$(P)+1))",
	"[[ $(P) ]]",
	"[[ -z \"$(P)\" ]] && P",
	"case $(P) in *) P;; esac",
	"case a in $(P)) ;; esac",
	"for x in $(P); do P; done; P",
	"select x in a; do P; done; P",
	"P > \"$(P)\"",
	"P <<< \"$(P)\"",
	"P <<< $(P)",
};

static const char *const pieces[] = {
	"a",        "b",        "'a'",     "\"b\"",    "\\a",
	"$x",       "\"$x\"",   "${x}",    "a=b",      "*",
	"?",        "[a]",      "{",       "}",        "!",
	"#",        "a#b",      "~",       "-",        "--",
	"$",        "\\",       "$$",      "$#",       "$1",
	"$*",       "$@",       "'",       "\"",       "`",
	"(",        ")",        "((",      "))",       "[[",
	"]]",       "[",        "]",       ";",        ";;",
	";&",       "&",        "&&",      "|",        "||",
	"|&",       "<",        ">",       ">>",       "<<",
	"<<-",      "<<<",      "<&",      ">&",       "&>",
	"<>",       ">|",       "<(",      ">(",       "$(",
	"$((",      "${",       "$'",      "$\"",      "if",
	"then",     "else",     "elif",    "fi",       "for",
	"while",    "until",    "do",      "done",     "case",
	"esac",     "in",       "select",  "function", "time",
	"coproc",   "\n",       "\\\n",    "\r",       "\t",
	"\xc2\xa0", " ",        "  ",      "=",        "==",
	"=~",       "!=",       "-f",      "-p",       "2",
	"2>",       "10<",      "{fd}",    "x=(",      "x[",
	"f()",      "f ()",     "{ ",      "; }",      ":-",
	"EOF",      "<<EOF",    "<<'EOF'", "\nEOF\n",  "$(cat <<EOF\n",
	"'a b'",    "\"a b\"",  "a'b'c",   "$[",       "((1))",
	"x=$",      "+=",       ",",       "..",       "{a,b}",
	"{1..2}",   "\v",       "\f",      "@(",       "?(",
	"a\\",      "\\\\",     "echo",    ":",        "true",
	"false",    "eval",     "exec",    "command",  "trap",
	"builtin",  "declare",  "export",  "local",    "return",
	"break",    "continue", "exit",
};

static void put(struct gen *g, const char *s)
{
	buf_puts(g->out, s);
}

static void put_probe(struct gen *g)
{
	buf_printf(g->out, "p%u", g->probes++);
}

static void put_template(struct gen *g, unsigned depth);

static void put_word(struct gen *g, unsigned depth)
{
	static const char *const words[] = {
		"a",  "'b c'", "\"d e\"",   "$x",    "\"$x\"", "f\\ g", "-r", "x=y",  "\"`:`\"",
		"''", "*",     "a'b'\"c\"", "{a,b}", "#h",     "${x}",  "~",  "\\\n", "$'q'",
		"%",  "1",     "=~",        "<a",    "!",      "]]",    "]",  "}"
	};

	if (chance(g, 6) && depth < 4) {
		put(g, "$(");
		put_template(g, depth + 1);
		put(g, ")");
	} else if (chance(g, 12)) {
		put(g, pieces[pick(g, ARRAY_LEN(pieces))]);
	} else {
		put(g, words[pick(g, chance(g, 4) ? ARRAY_LEN(words) : 12)]);
	}
}

/* A word of four letters that begins like a mark; how far the template goes on. */
static size_t put_whole(struct gen *g, const char *word)
{
	put(g, word);
	return strlen(word) - 1;
}

static void put_blank(struct gen *g)
{
	static const char *const blanks[] = { " ", "  ", "\t", "\\\n", " \\\n", "\n", " \\\n " };

	put(g, blanks[pick(g, ARRAY_LEN(blanks))]);
}

static void put_template(struct gen *g, unsigned depth)
{
	const char *t = templates[depth > 4 ? pick(g, 6) : pick(g, ARRAY_LEN(templates))];

	for (; *t && g->out->n < 2000; t++) {
		/* A capital letter inside a longer word (EXIT, NAME) is no mark. */
		if (*t == 'P')
			put_probe(g);
		else if (*t == 'W')
			put_word(g, depth);
		else if (*t == 'C' || *t == 'L')
			put_template(g, depth + 1);
		else if (*t == 'S')
			put_blank(g);
		else if (*t == 'N' && t[1] != 'A')
			put(g, "\n");
		else if (*t == 'E' && t[1] == 'X')
			t += put_whole(g, "EXIT");
		else if (*t == 'N')
			t += put_whole(g, "NAME");
		else if (*t == 'E')
			put(g, "EOF");
		else
			buf_putc(g->out, *t);
	}
}

static void put_soup(struct gen *g)
{
	static const char *const glue[] = { " ", " ", " ", "", "\n", ";", "\\\n", "\t" };
	size_t n = 1 + pick(g, 12);

	for (size_t i = 0; i < n; i++) {
		if (chance(g, 3))
			put_probe(g);
		else if (chance(g, 5))
			put_template(g, 3);
		else
			put(g, pieces[pick(g, ARRAY_LEN(pieces))]);
		put(g, glue[pick(g, ARRAY_LEN(glue))]);
	}
	if (chance(g, 2))
		put_probe(g);
}

/* One byte gone, doubled, changed, or a piece put in. */
static void scar(struct gen *g)
{
	struct buf *b = g->out;
	size_t at = b->n ? pick(g, b->n) : 0;
	char rest[4096];
	size_t n = b->n - at;

	if (b->n == 0 || n > sizeof(rest))
		return;
	memcpy(rest, b->p + at, n);
	b->n = at;
	b->p[at] = '\0';
	switch (pick(g, 4)) {
	case 0:
		buf_add(b, rest + 1, n - 1);
		break;
	case 1:
		buf_add(b, rest, 1);
		buf_add(b, rest, n);
		break;
	default:
		put(g, pieces[pick(g, ARRAY_LEN(pieces))]);
		buf_add(b, rest, n);
	}
}

void gen_text(struct gen *g, struct buf *out)
{
	g->out = out;
	g->probes = 0;
	out->n = 0;
	if (chance(g, 3))
		put_soup(g);
	else
		put_template(g, 0);
	while (chance(g, 3)) {
		put(g, chance(g, 2) ? "\n" : "; ");
		put_template(g, 1);
	}
	while (chance(g, 4))
		scar(g);
	buf_puts(out, "");
}
