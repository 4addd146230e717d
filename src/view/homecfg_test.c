/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "view/homecfg.h"

static bool read_included(void *arg, const char *path, struct buf *out)
{
	(void)arg;
	if (str_eq(path, "/home/u/work.inc"))
		buf_puts(out, "[user]\n\temail = me@work.example\n");
	else if (str_eq(path, "/home/u/again"))
		buf_puts(out, "[include]\n\tpath = again\n[user]\n\tname = Deep\n");
	else
		return false;
	return true;
}

static void git(const char *text, const char *want)
{
	struct homecfg_place place = { "/home/u", "/home/u/work/proj", read_included, NULL };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	CHECK(homecfg_git("/home/u/.gitconfig", text, strlen(text), &place, &b) == 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(git_keys_that_describe_come_inside)
{
	git("[user]\n\tname = A \"B\" C\n\temail = a@example.org\n", "[user]\n\tname = \"A B C\"\n"
								     "[user]\n\temail = "
								     "\"a@example.org\"\n");
	git("[init]\n defaultBranch = main\n[format] signOff\n", "[init]\n\tdefaultbranch = "
								 "\"main\"\n[format]\n\tsignoff = "
								 "\"true\"\n");
	git("[color \"diff\"]\n meta = yellow bold\n", "[color \"diff\"]\n\tmeta = \"yellow "
						       "bold\"\n");
}

TEST(git_keys_that_run_or_open_something_stay_outside)
{
	static const char *const texts[] = {
		"[credential]\n helper = store\n",
		"[credential \"https://h\"]\n username = u\n",
		"[core]\n editor = vim\n pager = less\n sshCommand = ssh -i k\n fsmonitor = x\n",
		"[core]\n hooksPath = /h\n excludesFile = ~/.ignore\n attributesFile = a\n",
		"[commit]\n gpgSign = true\n template = ~/t\n",
		"[user]\n signingKey = AB\n",
		"[gpg]\n program = gpg2\n",
		"[filter \"lfs\"]\n smudge = git-lfs smudge\n",
		"[diff]\n external = x\n tool = y\n",
		"[merge]\n tool = y\n",
		"[http]\n extraHeader = Authorization: Basic x\n cookieFile = c\n",
		"[http]\n proxy = http://u:p@h\n",
		"[http \"https://h/\"]\n postBuffer = 1\n",
		"[init]\n templateDir = /t\n defaultBranch = $(x)\n",
		"[github]\n token = abc\n",
		"[sendemail]\n smtpPass = abc\n",
		"[safe]\n directory = *\n",
		"[protocol]\n allow = always\n",
		"[user]\n name = ghp_0123456789abcdefghij0123456789abcdef\n",
		"[user]\n email = https://u:p@h\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		git(texts[i], "");
}

TEST(an_alias_comes_inside_when_it_runs_nothing)
{
	git("[alias]\n st = status -sb\n", "[alias]\n\tst = \"status -sb\"\n");
	git("[alias]\n lg = log --graph --format='%h %s'\n", "[alias]\n\tlg = \"log --graph "
							     "--format='%h %s'\"\n");
	git("[alias]\n a = !sh\n b = -c core.pager=x log\n c = rebase -x make\n d = rebase "
	    "--exec=x\n"
	    " e = difftool\n f = fetch --upload-pack=x\n g = submodule foreach x\n h = bisect run "
	    "x\n"
	    " i = log $(x)\n j = push https://u:p@h/\n k = rebase \"-xmake\"\n",
	    "");
}

TEST(an_included_file_counts_where_git_would_read_it)
{
	git("[includeIf \"gitdir:~/work/\"]\n path = work.inc\n", "[user]\n\temail = "
								  "\"me@work.example\"\n");
	git("[includeIf \"gitdir:/home/u/work/proj/.git\"]\n path = ~/work.inc\n", "[user]"
										   "\n\temail = "
										   "\"me@work."
										   "example\"\n");
	git("[includeIf \"gitdir:~/other/\"]\n path = work.inc\n", "");
	git("[includeIf \"onbranch:main\"]\n path = work.inc\n", "");
	git("[include]\n path = nowhere\n", "");
}

TEST(an_include_that_names_itself_ends)
{
	struct homecfg_place place = { "/home/u", "/home/u/work/proj", read_included, NULL };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	const char *text = "[include]\n path = again\n";

	CHECK(homecfg_git("/home/u/.gitconfig", text, strlen(text), &place, &b) == 0);
	CHECK(strstr(buf_cstr(&b), "Deep") && b.n < 200);
}

TEST(urls_lose_user_and_password)
{
	git("[url \"https://me:tok@git.example/\"]\n insteadOf = gh:\n", "[url "
									 "\"https://git.example/"
									 "\"]\n\tinsteadof = "
									 "\"gh:\"\n");
	git("[url \"git@git.example:\"]\n insteadOf = https://git.example/\n", "[url "
									       "\"git@git.example:"
									       "\"]\n\tinsteadof = "
									       "\"https://"
									       "git.example/\"\n");
	git("[url \"ssh://git@git.example/\"]\n insteadOf = https://a:b@git.example/\n",
	    "[url \"ssh://git@git.example/\"]\n\tinsteadof = \"https://git.example/\"\n");
	git("[url \"ext::sh -c x\"]\n insteadOf = x:\n[url \"secret@h:\"]\n insteadOf = y:\n", "");
}

TEST(what_git_cannot_read_is_not_shown)
{
	struct homecfg_place place = { "/home/u", "/w", NULL, NULL };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	const char *text = "[user]\n name = A\n[user\n";

	CHECK(homecfg_git("/c", text, strlen(text), &place, &b) == -EINVAL);
	CHECK(b.n == 0);
}

static void npm(const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	CHECK(homecfg_npm(text, strlen(text), &b) == 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(npm_registries_come_without_tokens)
{
	npm("registry=https://r.example/npm/\n//r.example/npm/:_authToken=abc\n", "registry=https:/"
										  "/r.example/npm/"
										  "\n");
	npm("@corp:registry = \"https://u:p@r.example/\"\n", "@corp:registry=https://r.example/\n");
	npm("_auth=abc\n_authToken=abc\n//h/:_password=abc\nemail=x\nalways-auth=true\n", "");
	npm("registry=https://r.example/?token=abc\n", "");
	npm("registry=https://r.example/0123abcd4567ef/npm\n", "");
	npm("registry=https://r.example/AbCdEfGhIjKlMnOp/npm\n", "");
	npm("registry=https://r.example/glpat-aB3-dE6_gH9-jK2_mN5p/\n", "");
	npm("registry=https://r.example/550e8400-e29b-41d4-a716-446655440000/\n", "");
	npm("registry=https://r.example/my-team-2024/feed-v2/\n", "registry=https://r.example/"
								  "my-team-2024/feed-v2/\n");
	npm("registry=${URL}\nregistry=https://${TOKEN}@h/\n", "");
	npm("registry=https://evil.example\\@r.example/\n", "");
	npm("script-shell=/bin/x\nnode-options=--require=x\ngit=/x\neditor=x\ncafile=/x\n", "");
	npm("[x]\nregistry=https://r.example/\n", "");
	npm("strict-ssl=false\nsave-exact=true\nelectron_mirror=https://m.example/e/\n",
	    "save-exact=true\nelectron_mirror=https://m.example/e/\n");
}

static int count_token(void *arg, const struct homecfg_token *t)
{
	buf_printf(arg, "%s %s %s %s;", t->key, t->host ? t->host : "-", t->value ? t->value : "-",
		   t->around ? t->around : "-");
	return 0;
}

TEST(npm_tokens_are_found_for_an_import)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	const char *text = "//r.example/:_authToken=abc\n//s.example/npm/:_authToken=\"d\"\n"
			   "//t.example/:_password=x\n_auth=y\nregistry=https://r.example/\n"
			   "//r.example/;x:_auth=z\n[s]\n//v.example/:_auth=z\n";

	CHECK(homecfg_npm_tokens(text, strlen(text), count_token, &b) == 0);
	CHECK_STR(buf_cstr(&b), "//r.example/:_authToken r.example abc -;"
				"//s.example/npm/:_authToken s.example d -;"
				"//t.example/:_password - - -;_auth - - -;//r.example/;x:_auth - - "
				"-;");
}

static void pip_tokens(const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	CHECK(homecfg_pip_tokens(text, strlen(text), count_token, &b) == 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(pip_tokens_are_found_for_an_import)
{
	pip_tokens("[global]\nindex-url = https://me:abc@I.example:8443/simple\n", "index-url "
										   "i.example abc "
										   "https://"
										   "me:{}@I."
										   "example:8443/"
										   "simple;");
	pip_tokens("[global]\nindex_url = https://tok@i.example/simple\n", "index-url i.example "
									   "tok "
									   "https://{}@i.example/"
									   "simple;");
	pip_tokens("[global]\nindex_url = https://tok:@i.example/simple\n", "index-url i.example "
									    "tok "
									    "https://{}:@i.example/"
									    "simple;");
	pip_tokens("[install]\nextra-index-url =\n https://a.example/s\n https://u:x@b.example/s\n"
		   " https://v:y@c.example/s\n",
		   "extra-index-url b.example x https://a.example/s https://u:{}@b.example/s "
		   "https://c.example/s;extra-index-url - - -;");
	/* Encoded, so that it is another text on the wire. */
	pip_tokens("[global]\nindex-url = https://me:a%40b@i.example/simple\n", "index-url - - -;");
	pip_tokens("[global]\nindex-url = https://i.example/simple\nproxy = http://u:p@h\n", "");
	pip_tokens("index-url = https://me:abc@i.example/\n", "");
}

TEST(cargo_tokens_are_found_for_an_import)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	const char *text = "[registry]\ntoken = \"abc\"\n[registries.corp]\ntoken = 'def'\n"
			   "[registries]\nx = { token = \"ghi\", index = \"u\" }\n[env]\ntoken = "
			   "\"no\"\n";

	CHECK(homecfg_cargo_tokens(text, strlen(text), count_token, &b) == 0);
	CHECK_STR(buf_cstr(&b), " - abc -;corp - def -;x - ghi -;");
	CHECK(homecfg_cargo_tokens("[[x]]\n", 6, count_token, &b) == -EINVAL);
}

static void pip(const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	CHECK(homecfg_pip(text, strlen(text), &b) == 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(pip_indexes_come_without_passwords)
{
	pip("[global]\nindex-url = https://u:p@i.example/simple\ntimeout: 60\n", "[global]\nindex-"
										 "url = "
										 "https://"
										 "i.example/"
										 "simple\ntimeout "
										 "= 60\n");
	pip("[global]\nextra_index_url =\n    https://a.example/simple\n    # no\n    "
	    "https://t:x@b.example/\n",
	    "[global]\nextra-index-url = https://a.example/simple\n\thttps://b.example/\n");
	pip("[install]\ntrusted-host = a.example\n", "[install]\ntrusted-host = a.example\n");
	pip("[global]\nproxy = http://u:p@h\nclient-cert = /k\nkeyring-provider = x\nextra = y\n",
	    "");
	pip("[global]\nindex-url = https://dl.example/0f1e2d3c4b5a6978/simple\n", "");
	pip("index-url = https://i.example/\n", "");
}

static void cargo(const char *text, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	CHECK(homecfg_cargo(text, strlen(text), &b) == 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(cargo_sources_come_without_tokens)
{
	cargo("[source.crates-io]\nreplace-with = 'm' # mirror\n[source.m]\n"
	      "registry = \"sparse+https://u:p@m.example/index/\"\n",
	      "\"source\".\"crates-io\".\"replace-with\" = \"m\"\n"
	      "\"source\".\"m\".\"registry\" = \"sparse+https://m.example/index/\"\n");
	cargo("[registries]\ncorp = { index = \"https://r.example/i\", token = \"abc\" }\n",
	      "\"registries\".\"corp\".\"index\" = \"https://r.example/i\"\n");
	cargo("[registry]\ntoken = \"abc\"\ndefault = \"corp\"\n", "\"registry\".\"default\" = "
								   "\"corp\"\n");
	cargo("[env]\nAWS_SECRET = \"abc\"\n[http]\nproxy = \"u:p@h:1\"\n", "");
	cargo("[build]\nrustflags = [\"-C\", \"target-cpu=native\",]\njobs = 4\n",
	      "\"build\".\"rustflags\" = [\"-C\", \"target-cpu=native\", ]\n\"build\".\"jobs\" = "
	      "4\n");
	cargo("[source.\"https://u:p@h\"]\nreplace-with = \"m\"\n", "");
}

TEST(toml_that_is_not_read_with_certainty_is_not_shown)
{
	static const char *const texts[] = {
		"[[x]]\na = 1\n",
		"a = \"\"\"x\"\"\"\n",
		"a = \n",
		"a\n",
		"[a\n",
		"a = \"x\n",
		"a = [1, [2]]\n",
		"a = {b = 1\n",
		"a = \"\\u0041\"\n",
		"a = 1 b = 2\n",
	};
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CHECK(homecfg_cargo(texts[i], strlen(texts[i]), &b) == -EINVAL);
	CHECK(b.n == 0);
}

TEST_MAIN()
