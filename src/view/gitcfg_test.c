/* SPDX-License-Identifier: Apache-2.0 */
#include "view/gitcfg.h"

#include "base/buf.h"
#include "base/test.h"

static int put_item(void *arg, const struct gitcfg_item *it)
{
	struct buf *b = arg;

	buf_printf(b, "%s", it->section);
	if (it->sub)
		buf_printf(b, "<%s>", it->sub);
	buf_printf(b, ".%s", it->key);
	if (it->value)
		buf_printf(b, "=[%s]", it->value);
	buf_putc(b, ' ');
	return 0;
}

static char *items_of(const char *text, size_t n, enum gitcfg_grammar grammar)
{
	struct buf b = BUF(MIB);

	if (gitcfg_read(text, n, grammar, put_item, &b) < 0)
		buf_puts(&b, "!");
	return buf_take(&b);
}

#define READS(grammar, text, want)                                                                 \
	do {                                                                                       \
		_free_ char *got_items_ = items_of((text), sizeof(text) - 1, (grammar));           \
		CHECK_STR(got_items_ ? got_items_ : "", (want));                                   \
	} while (0)
#define GIT_READS(text, want) READS(GITCFG_GIT, text, want)
#define STRICT_READS(text, want) READS(GITCFG_STRICT, text, want)

TEST(reads_what_git_writes)
{
	STRICT_READS("[core]\n\tbare = false\n[remote \"o\"]\n\turl = https://h/x\n", "core.bare=["
										      "false] "
										      "remote<o>."
										      "url=[https:/"
										      "/h/x] ");
	STRICT_READS("[branch \"a\\\"b\\\\c\"]\n\tmerge = refs/heads/x\n", "branch<a\"b\\c>.merge=["
									   "refs/heads/x] ");
	STRICT_READS("# c\n; d\n[a]\n\tb\n\tC-d = 1 # no\n", "a.b a.c-d=[1] ");
	STRICT_READS("[a]\n\tb = \"x # y\" \n", "a.b=[x # y] ");
	STRICT_READS("[a]\n\tb = \"\\\"q\\\" \\\\ \\n\"\n", "a.b=[\"q\" \\ \n] ");
	STRICT_READS("", "");
	STRICT_READS("[a]\n\tb = ", "a.b=[] ");
}

TEST(strict_refuses_other_spellings)
{
	STRICT_READS("[a]b=1\n", "!");
	STRICT_READS("[a.b]\nc=1\n", "!");
	STRICT_READS("[a]\nb = 1\\\n2\n", "!");
	STRICT_READS("[a]\r\nb = 1\r\n", "!");
	STRICT_READS("\xef\xbb\xbf[a]\nb = 1\n", "!");
	STRICT_READS("[a]\nb = 1\0\n", "!");
	STRICT_READS("b = 1\n", "!");
	STRICT_READS("[a]\nb = \"1\n", "!");
	STRICT_READS("[a]\nb = \\x\n", "!");
	STRICT_READS("[a\n", "!");
	STRICT_READS("[]\n", "!");
	STRICT_READS("[a \"b]\n", "!");
	STRICT_READS("[a]\n1b = 2\n", "!");
	STRICT_READS("[a]\nb c = 2\n", "!");
	STRICT_READS("[a]\nb_c = 2\n", "!");
}

TEST(reads_as_git_reads)
{
	GIT_READS("[core]hooksPath=x\n", "core.hookspath=[x] ");
	GIT_READS("[Core]\r\n  FsMonitor = a\\\r\nb\r\n", "core.fsmonitor=[ab] ");
	GIT_READS("[remote.ORIGIN]\nurl = x\n", "remote<origin>.url=[x] ");
	GIT_READS("\xef\xbb\xbf[a]\nb = 1\n", "a.b=[1] ");
	GIT_READS("[a] b = x y   ; c\nd = \"  z \"\n", "a.b=[x y] a.d=[  z ] ");
	GIT_READS("[a \"\"]\nb\n", "a<>.b ");
	GIT_READS("[a]\nb = 1\n[", "a.b=[1] !");
}

static bool beneath_if_dots(void *arg, const char *path)
{
	(void)arg;
	return str_starts(path, "..");
}

#define HARMLESS(text)                                                                             \
	do {                                                                                       \
		_free_ char *why_ = gitcfg_objection((text), strlen(text), beneath_if_dots, NULL); \
		CHECK_STR(why_ ? why_ : "", "");                                                   \
	} while (0)
#define OBJECTS(text, want)                                                                        \
	do {                                                                                       \
		_free_ char *why_ = gitcfg_objection((text), strlen(text), beneath_if_dots, NULL); \
		CHECK_STR(why_, want);                                                             \
	} while (0)

TEST(a_fresh_clone_is_harmless)
{
	HARMLESS("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
		 "\tlogallrefupdates = true\n[remote \"origin\"]\n\turl = git@github.com:a/b.git\n"
		 "\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = "
		 "origin\n"
		 "\tmerge = refs/heads/main\n[user]\n\tname = A B\n\temail = a@b.c\n");
	HARMLESS("[submodule \"lib/x\"]\n\turl = https://h/x.git\n\tactive = "
		 "true\n[core]\n\tworktree = ../../../x\n");
	HARMLESS("[remote \"l\"]\n\turl = /srv/git/x.git\n[remote \"m\"]\n\turl = ../x\n[branch "
		 "\"x\"]\n\tremote = .\n");
}

/* A check that the user ordered for all repositories is not taken back by one. */
TEST(a_check_can_be_switched_on_only)
{
	HARMLESS("[fetch]\n\tfsckObjects = "
		 "true\n[merge]\n\tverifySignatures\n[transfer]\n\tfsckObjects = on\n");
	OBJECTS("[transfer]\n\tfsckObjects = false\n", "git config value of transfer.fsckobjects");
	OBJECTS("[receive]\n\tfsckObjects = 0\n", "git config value of receive.fsckobjects");
	OBJECTS("[merge]\n\tverifySignatures = no\n", "git config value of merge.verifysignatures");
	OBJECTS("[core]\n\tignoreStat = true\n", "git config key core.ignorestat");
}

/* What people and tools set in a repository, and nothing is run for. */
TEST(a_key_that_executes_nothing_is_harmless)
{
	HARMLESS("[commit]\n\tgpgsign = false\n\ttemplate = .gitmessage\n[tag]\n\tgpgSign = "
		 "true\n");
	HARMLESS("[log]\n\tdate = format:%Y-%m-%d\n[blame]\n\tignoreRevsFile = "
		 ".git-blame-ignore-revs\n");
	HARMLESS("[remote \"origin\"]\n\turl = https://h/x\n\tpromisor = true\n"
		 "\tpartialclonefilter = blob:none\n[extensions]\n\tpartialClone = origin\n");
	HARMLESS("[diff]\n\talgorithm = histogram\n[diff \"md\"]\n\txfuncname = ^#\n[pager]\n\tlog "
		 "= "
		 "false\n[status]\n\tshowUntrackedFiles = no\n[color \"diff\"]\n\tmeta = blue "
		 "bold\n");
}

TEST(patterns_of_what_to_ignore_are_harmless_below_the_work_tree)
{
	HARMLESS("[core]\n\texcludesFile = .ignored\n");
	OBJECTS("[core]\n\texcludesFile = /dev/tty\n", "git config value of core.excludesfile");
	OBJECTS("[core]\n\texcludesFile = ~/x\n", "git config value of core.excludesfile");
	OBJECTS("[core]\n\texcludesFile = ../x\n", "git config value of core.excludesfile");
}

TEST(what_sounds_harmless_and_runs)
{
	/* A remote without a URL is its name: git would run a helper, unasked. */
	OBJECTS("[remote \"ext::sh -c x\"]\n\tpromisor = true\n", "git config value of "
								  "remote.ext::sh "
								  "-c x.promisor");
	OBJECTS("[extensions]\n\tpartialClone = ext::sh -c x\n", "git config value of "
								 "extensions.partialclone");
	OBJECTS("[rebase]\n\tinstructionFormat = %s%nexec x\n", "git config key "
								"rebase.instructionformat");
	OBJECTS("[pull]\n\ttwohead = x\n", "git config key pull.twohead");
	OBJECTS("[branch \"b\"]\n\tmergeOptions = -s x\n", "git config key branch.b.mergeoptions");
	OBJECTS("[pager]\n\tlog = ./x\n", "git config value of pager.log");
	OBJECTS("[protocol]\n\tallow = always\n", "git config key protocol.allow");
	OBJECTS("[diff]\n\ttool = x\n", "git config key diff.tool");
	OBJECTS("[gpg \"ssh\"]\n\tdefaultKeyCommand = x\n", "git config key "
							    "gpg.ssh.defaultkeycommand");
	OBJECTS("[commit]\n\ttemplate = /etc/shadow\n", "git config value of commit.template");
	OBJECTS("[blame]\n\tignoreRevsFile = a/../../b\n", "git config value of "
							   "blame.ignorerevsfile");
	OBJECTS("[mailmap]\n\tfile = ~/.netrc\n", "git config value of mailmap.file");
}

TEST(what_is_left_of_a_config)
{
	static const char text[] = "[core]\n\tbare = false\n\tpager = x\n\tworktree = /etc\n"
				   "# a word\n[alias]\n\ta = !b\n[user]\n\tname = n\n";
	_cleanup_(buf_done) struct buf b = BUF(KIB), none = BUF(KIB);

	CHECK(gitcfg_rest(text, sizeof(text) - 1, beneath_if_dots, NULL, &b));
	CHECK_STR(buf_cstr(&b), "[core]\n\tbare = false\n# a word\n[user]\n\tname = n\n");
	CHECK(!gitcfg_rest("[a]b=c\n", 7, beneath_if_dots, NULL, &none));
}

TEST(what_runs_something_is_objected_to)
{
	OBJECTS("[core]\n\tfsmonitor = ./x\n", "git config key core.fsmonitor");
	OBJECTS("[core]\n\thooksPath = x\n", "git config key core.hookspath");
	OBJECTS("[core]\n\tsshCommand = x\n", "git config key core.sshcommand");
	OBJECTS("[core]\n\teditor = x\n", "git config key core.editor");
	OBJECTS("[core]\n\tpager = x\n", "git config key core.pager");
	OBJECTS("[include]\n\tpath = x\n", "git config key include.path");
	OBJECTS("[includeIf \"gitdir:/\"]\n\tpath = x\n", "git config key includeif.gitdir:/.path");
	OBJECTS("[filter \"x\"]\n\tclean = x\n", "git config key filter.x.clean");
	OBJECTS("[diff \"x\"]\n\ttextconv = x\n", "git config key diff.x.textconv");
	OBJECTS("[diff]\n\texternal = x\n", "git config key diff.external");
	OBJECTS("[merge \"x\"]\n\tdriver = x\n", "git config key merge.x.driver");
	OBJECTS("[alias]\n\tst = !x\n", "git config key alias.st");
	OBJECTS("[remote \"o\"]\n\tuploadpack = x\n", "git config key remote.o.uploadpack");
	OBJECTS("[remote \"o\"]\n\tvcs = x\n", "git config key remote.o.vcs");
	OBJECTS("[url \"ext::sh -c x\"]\n\tinsteadOf = a\n", "git config key url.ext::sh -c "
							     "x.insteadof");
	OBJECTS("[credential]\n\thelper = x\n", "git config key credential.helper");
	OBJECTS("[gpg]\n\tprogram = x\n", "git config key gpg.program");
	OBJECTS("[user]\n\tsigningkey = x\n", "git config key user.signingkey");
	OBJECTS("[sequence]\n\teditor = x\n", "git config key sequence.editor");
	OBJECTS("[trailer \"t\"]\n\tcommand = x\n", "git config key trailer.t.command");
}

TEST(values_count_too)
{
	OBJECTS("[remote \"o\"]\n\turl = ext::sh -c x\n", "git config value of remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl = \"e\"xt::sh\n", "git config value of remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl = -oProxyCommand=x\n", "git config value of remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n", "git config value of "
								      "remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl = ssh://a@-oProxyCommand=x/y\n", "git config value of "
									"remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl = foo://x\n", "git config value of remote.o.url");
	OBJECTS("[remote \"o\"]\n\turl\n", "git config value of remote.o.url");
	OBJECTS("[branch \"b\"]\n\tremote = ext::sh -c x\n", "git config value of branch.b.remote");
	OBJECTS("[submodule \"s\"]\n\tupdate = !x\n", "git config value of submodule.s.update");
	OBJECTS("[core]\n\tworktree = /etc\n", "git config value of core.worktree");
	OBJECTS("[core]\n\tbare = ./x\n", "git config value of core.bare");
	OBJECTS("[pull]\n\trebase = !x\n", "git config value of pull.rebase");
}

TEST(subsections_do_not_slip_past)
{
	OBJECTS("[core \"x\"]\n\tbare = true\n", "git config key core.x.bare");
	OBJECTS("[remote]\n\turl = x\n", "git config key remote.url");
	OBJECTS("[user \"x\"]\n\tname = y\n", "git config key user.x.name");
	/* The name is shown, so it may not talk to the terminal. */
	OBJECTS("[filter \"a\\tb\"]\n\tclean = x\n", "git config key filter.atb.clean");
}

TEST(what_cannot_be_read_is_objected_to)
{
	_free_ char *big = mem_new(GITCFG_NEW_MAX + 2, 1), *why = NULL;

	OBJECTS("[core]\n\tbare = \"tr\n", "git config that cannot be read with certainty");
	memset(big, '\n', GITCFG_NEW_MAX + 1);
	why = gitcfg_objection(big, GITCFG_NEW_MAX + 1, NULL, NULL);
	CHECK_STR(why, "git config larger than 64 KiB");
}

static int put_ref(void *arg, const struct gitcfg_item *it)
{
	buf_putc(arg, (char)('0' + gitcfg_refers(it)));
	return 0;
}

TEST(references_are_found)
{
	static const char text[] =
		"[core]\nhooksPath=.h\nbare=true\n[include]\npath=x\n[includeIf \"a\"]\npath=y\n"
		"[filter \"l\"]\nclean=./c\n[core]\nattributesFile=a\nworktree=..\nhooksPath=\n";
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	CHECK_INT(gitcfg_read(text, sizeof(text) - 1, GITCFG_GIT, put_ref, &b), 0);
	CHECK_STR(buf_cstr(&b), "10224350");
}

TEST_MAIN()
