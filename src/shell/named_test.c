/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/named.h"

#include "base/buf.h"
#include "base/test.h"

struct want {
	const char *dir, *path;
	bool is_sure, is_there, is_there_unsure;
};

static void look(void *arg, const char *dir, const char *path, bool is_sure)
{
	struct want *w = arg;

	if (!str_eq(path, w->path) || !str_eq(dir, w->dir))
		return;
	if (is_sure)
		w->is_there = true;
	else
		w->is_there_unsure = true;
}

static struct want named(const char *text, const char *dir, const char *path)
{
	struct want w = { .dir = dir, .path = path };

	shell_named(text, look, &w);
	return w;
}

TEST(scripts_behind_interpreters)
{
	static const struct {
		const char *text, *dir, *path;
	} cases[] = {
		{ "./x", "", "./x" },
		{ "tools/x --flag", "", "tools/x" },
		{ "'./my x' %f", "", "./my x" },
		{ "python3 tools/clean.py", "", "tools/clean.py" },
		{ "python3 -u x.py %f", "", "x.py" },
		{ "python3 -W ignore x.py", "", "x.py" },
		{ "/usr/bin/env -S python3 x", "", "x" },
		{ "env FOO=1 sh x", "", "x" },
		{ "sudo -u me nice -n 5 perl -I. x", "", "x" },
		{ "timeout 5 ./x", "", "./x" },
		{ "sh -c './x'", "", "./x" },
		{ "sh -c \"cd t && ./x\"", "t", "./x" },
		{ "cd t && ./x", "t", "./x" },
		{ "cd a; cd b; sh x", "a/b", "x" },
		{ "node --require ./x y", "", "./x" },
		{ "node --require ./x y", "", "y" },
		{ "node -r ./x y", "", "./x" },
		{ "perl -I. x", "", "x" },
		{ "make -f x clean", "", "x" },
		{ "make -C t -f x", "t", "x" },
		{ "awk -f x.awk", "", "x.awk" },
		{ "sh < x", "", "x" },
		{ ". ./x", "", "./x" },
		{ "source x", "", "x" },
		{ "BASH_ENV=./x sh y", "", "./x" },
		{ "NODE_OPTIONS='--require ./x' node y", "", "./x" },
		{ "f() { python3 t/x \"$@\"; }; f", "", "t/x" },
		{ "\"$(git rev-parse --show-toplevel)\"/tools/x.py", "", "./tools/x.py" },
		{ "${PWD}/x", "", "./x" },
		{ "a | (b; sh x) && c", "", "x" },
		{ "if true; then sh x; fi", "", "x" },
		{ "sh <<EOF\n./x\nEOF\n", "", "./x" },
		{ "git -c core.pager=./x log", "", "./x" },
		{ "git bisect run ./x", "", "./x" },
		{ "xargs -n1 sh x", "", "x" },
		/* What cannot be read is cut into words. */
		{ "./x 'unclosed", "", "./x" },
		{ "sh -c \"'unclosed ./x", "", "./x" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (!named(cases[i].text, cases[i].dir, cases[i].path).is_there)
			CHECK_STR(cases[i].path, cases[i].text);
}

TEST(words_that_may_be_files)
{
	/* Named, but only where such a file exists: subcommands look the same. */
	CHECK(named("frob x", "", "x").is_there_unsure);
	CHECK(named("cat x | sh", "", "x").is_there_unsure);
	CHECK(named("make clean", "", "clean").is_there_unsure);
	CHECK(!named("make clean", "", "clean").is_there);
	CHECK(!named("git-lfs clean -- %f", "", "clean").is_there);
	CHECK(!named("git-lfs clean -- %f", "", "%f").is_there_unsure);
}

TEST(words_that_are_none)
{
	static const struct {
		const char *text, *path;
	} cases[] = {
		{ "rm -rf dist/x", "dist/x" },
		{ "cp src/a b", "src/a" },
		{ "git log -- src/main.c", "src/main.c" },
		{ "git add x", "x" },
		{ "$HOME/bin/x", "./bin/x" },
		{ "echo ./x", "./x" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct want w = named(cases[i].text, "", cases[i].path);

		if (w.is_there || w.is_there_unsure)
			CHECK_STR("named", cases[i].text);
	}
}

TEST(nested_texts_end)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	for (int i = 0; i < 20000; i++)
		buf_puts(&b, "sh -c \"a ");
	CHECK(!named(buf_cstr(&b), "", "./x").is_there);
}

TEST_MAIN()
