/* SPDX-License-Identifier: Apache-2.0 */
/* guard/shell_test.c - what the reader sees in a text, in bash's hard corners */
#include "base/buf.h"
#include "base/test.h"
#include "guard/seen.h"
#include "guard/value.h"
#include "guard/wrap.h"

/* Names in their order, "?" for one made at run time. */
static const struct {
	const char *text, *want;
} texts[] = {
	{ "a b; c && d | e & f", "a c d e f" },
	{ "a\nb", "a b" },
	{ "a # b; c\nd", "a d" },
	{ "a \\\n# b\nc", "a c" },
	{ "a\\\nb c", "ab" },
	{ "echo hi\r#x; a", "echo a" },
	{ "ls\n\\a -x", "ls a" },
	{ "x=$\na", "a" },
	{ "echo =~\na", "echo a" },
	{ "a <<E\nb\nE\nc", "a c" },
	{ "a <<E && c\nb\nE\nd", "a c d" },
	{ "a <<'E'\n$(b)\nE\nc", "a c" },
	{ "a <<E\n$(b)\nE\nc", "b a c" },
	{ "a <<-E\n\tb\n\tE\nc", "a c" },
	/* Lines are joined before tabs are taken off and the end is looked for, unless the body is quoted. */
	{ "a <<-E\n\\\n\tE\nc", "a c" },
	{ "a <<-E\n\t\\\n\t\tE\nc", "a c" },
	{ "a <<-E\n\tF\\\nE\nc\nE\nd", "a d" },
	{ "a <<-E\nb\\\n\tE\nc\nE\nd", "a d" },
	{ "a <<-'E'\n\\\n\tE\nc", "a c" },
	{ "a <<E\n\\\nE\nc", "a c" },
	{ "a <<E <<F\nb\nE\nc\nF\nd", "a d" },
	{ "$(a <<E\nb\nE\n) c", "a ? c" },
	{ "sh <<E\nb\nE\nc", "sh b c" },
	{ "a \"$(b \"$(c)\")\"", "c b a" },
	{ "a `b \\`c\\``", "c b a" },
	{ "a ${x:-$(b)}", "b a" },
	{ "a $((1 + $(b)))", "b a" },
	{ "((a)); b", "b" },
	{ "a $(( $(b \"$(c)\" '(') + ${x:-(1)} )); d", "refused: parentheses in arithmetic that do "
						       "not pair" },
	{ "a $(( $(b \"$(c)\" '(x)') + ${x:-(1)} )); d", "c b a d" },
	{ "((a); b)", "a b" },
	{ "( (a); b)", "a b" },
	{ "a <(b) >(c)", "b c a" },
	{ "if a; then b; elif c; then d; else e; fi", "a b c d e" },
	{ "while a; do b; done; until c; do d; done", "a b c d" },
	{ "for x in 1 2; do a; done", "a a" },
	{ "for ((i=0; i<3; i++)); do a; done", "a" },
	{ "case x in (a|b) c;; *) d;& e) f;;& esac; g", "c d f g" },
	{ "f() { a; }; f", "a f" },
	{ "function g { a; }; b", "a b" },
	{ "[[ a && $(b) ]] && c", "b c" },
	{ "[[ a =~ (b|c) ]]; d", "d" },
	{ "! a; time b; time -p c", "a b c" },
	{ "a | time b", "a time b" },
	{ "coproc a; coproc N { b; }", "a b" },
	{ "x=1 a; y=(b c); declare -a z=(d); e", "a declare e" },
	{ "a 2>&1 >x <y &>z 3<>w >|v; b", "a b" },
	{ "a {fd}>x; b", "a b" },
	{ ">&-a b; <& -c", "a c" },
	{ "'a' \"b\"; $'\\x61b'; \"a\"'b'", "a ab ab" },
	{ "{a,b}", "a" },
	{ "{a},b}", "a}" },
	{ "{}a,b}; x{}a,b}; {}{a,b}; {c,{}a,b}; {x,y}{}a,b}", "{}a,b} x}a {}a c ?" },
	{ "$x a", "? a" },
	{ "x=a; $x", "a" },
	{ "x='a b'; $x; \"$x\"", "a a b" },
	{ "x=a; (x=b); $x", "a" },
	{ "if c; then x=b; fi; $x", "c ?" },
	{ "eval 'a; b'; trap 'c' EXIT", "eval a b trap c" },
	{ "sudo -u root env X=1 nice -n 5 a", "sudo env nice a" },
	{ "xargs -n 1 a; find . -exec b {} \\;", "xargs a find b" },
	{ "bash -c 'a' | ssh host b", "bash a ssh b" },
	{ "echo 'a; b' | sh", "echo sh a b" },
	{ "printf 'a\\nb' | bash -s", "printf bash a b" },
	{ "cat > x.sh <<E\na\nE\nsh x.sh", "cat sh a" },
	{ "alias x='a'; timeout 5 b; exec c; command d; builtin e", "alias a timeout b exec c "
								    "command d builtin e" },
	{ "env -S 'a b' c; watch -n1 d", "env a watch d d" },
	{ "flock /tmp/x a; su -c 'b' u; script -qc 'c' /dev/null", "flock a su b script c" },
	{ "docker run --rm -v x:y image a; kubectl exec pod -- b", "docker a kubectl b" },
	{ "parallel a ::: 1; parallel ::: 'b c'", "parallel a parallel b" },
	{ "python3 -c 'import os; os.system(\"a b\")'", "python3 a" },
	{ "awk 'BEGIN { system(\"a b\") }'", "awk a" },
	{ "git -c alias.x='!a b' x; vim -c '!c' f; sed '1e d' f", "git a vim c sed d" },
	{ "bash -c '$1' _ a", "bash a" },
};

static void put_name(const struct seen *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++) {
		const char *name = s->names[i][0] ? s->names[i] : "?";

		buf_printf(out, "%s%s", i ? " " : "", name);
	}
}

TEST(commands_are_seen)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		_cleanup_(buf_done) struct buf got = BUF(KIB);
		struct seen s = { .mem = &mem };

		if (!seen_text(&s, texts[i].text, strlen(texts[i].text)))
			buf_printf(&got, "refused: %s", s.why);
		else
			put_name(&s, &got);
		if (!str_eq(buf_cstr(&got), texts[i].want))
			(void)fprintf(stderr, "in: %s\n", texts[i].text);
		CHECK_STR(buf_cstr(&got), texts[i].want);
	}
}

TEST(what_is_not_modelled_is_refused)
{
	static const char *const bad[] = { "a 'b",
					   "a \"b",
					   "a `b",
					   "a $(b",
					   "a ${b",
					   "a ${ b; }",
					   "a $[1]",
					   "(a",
					   "a)",
					   "{ a",
					   "if a",
					   "case a in",
					   "a <",
					   "a |",
					   "a &&",
					   "; a",
					   "& a",
					   "a ;; b",
					   "x=(a",
					   "a(b",
					   "f() a",
					   "[[ a",
					   "for",
					   "a \x01",
					   "$'\\x01'",
					   "`a # b`",
					   "then a",
					   "a b(c)",
					   "a \\",
					   "$(((x=$(case a in a) b;; esac) c); d))",
					   "$((1 + ${x%)}))",
					   "$(($(a # )\n) + 1))" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		struct shell_error e;

		if (shell_parse(&mem, bad[i], strlen(bad[i]), &e))
			(void)fprintf(stderr, "accepted: %s\n", bad[i]);
		CHECK(shell_parse(&mem, bad[i], strlen(bad[i]), &e) == NULL);
		CHECK(e.what != NULL);
	}
}

TEST(words_know_what_is_literal)
{
	static const struct {
		const char *text, *want;
		bool is_dynamic, is_glob;
	} words[] = {
		{ "a'b'\"c\"\\d", "abcd", false, false },
		{ "~/x", "/h/x", false, false },
		{ "\"~/x\"", "~/x", false, false },
		{ "$HOME/x", "/h/x", false, false },
		{ "a$y", "a\x02", true, false },
		{ "a\"$y\"", "a\x01", true, false },
		{ "*.c", "*.c", false, true },
		{ "'*'.c", "*.c", false, false },
		{ "${y:-z}", "z", true, false },
		{ "$(pwd)/x", "/w/x", false, false },
		{ "$(echo a)b", "ab", false, false },
		{ "${y}$(z)", "\x02\x02", true, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		_cleanup_(arena_done) struct arena mem = ARENA(MIB);
		struct vars v = { .mem = &mem, .home = "/h", .cwd = "/w", .tmp = "/tmp" };
		struct shell_error e;
		struct node *n = shell_parse(&mem, words[i].text, strlen(words[i].text), &e);
		struct value *x;

		CHECK(n && n->first && n->first->words);
		x = value_of(&v, n->first->words);
		CHECK(x != NULL);
		CHECK_STR(x->s, words[i].want);
		CHECK_INT(x->is_dynamic, words[i].is_dynamic);
		CHECK_INT(x->is_glob, words[i].is_glob);
	}
}

TEST(the_table_of_wrappers_is_sorted)
{
	size_t n;
	const struct wrapper *t = wrap_table(&n);

	for (size_t i = 1; i < n; i++)
		CHECK(strcmp(t[i - 1].name, t[i].name) < 0);
}

TEST_MAIN()
