/* SPDX-License-Identifier: Apache-2.0 */
#include "view/gitcfg_redact.h"

#include "base/test.h"

static char *text_of(struct buf *b)
{
	char *text = mem_str(buf_cstr(b));

	buf_done(b);
	return text;
}

static char *shown(const char *text)
{
	struct buf b = BUF(MIB);

	if (gitcfg_redact(text, strlen(text), &b) < 0)
		buf_puts(&b, "!");
	return text_of(&b);
}

#define SHOWS(text, want)                                                                          \
	do {                                                                                       \
		_free_ char *got_shown_ = shown(text);                                             \
		CHECK_STR(got_shown_, (want));                                                     \
	} while (0)

#define REMOTE "[remote \"o\"]\n"

TEST(passwords_and_tokens_in_urls)
{
	SHOWS(REMOTE "\turl = https://me:pw@h/x\n", REMOTE "\turl = "
							   "\"https://"
							   "vitrine-hidden-1:vitrine-hidden-1@h/"
							   "x\"\n");
	SHOWS(REMOTE "\turl = https://ghp_x@h/x\n", REMOTE "\turl = "
							   "\"https://vitrine-hidden-1@h/x\"\n");
	SHOWS(REMOTE "\turl = https://t:x-oauth-basic@h/x # n\n", REMOTE "\turl = "
									 "\"https://"
									 "vitrine-hidden-1:vitrine-"
									 "hidden-1@h/x\"\n");
	SHOWS(REMOTE "\turl = https://me:a/b@h/x\n", REMOTE "\turl = "
							    "\"https://"
							    "vitrine-hidden-1:vitrine-hidden-1@h/"
							    "x\"\n");
	SHOWS(REMOTE "\turl = https://me:a@b@h/x\n", REMOTE "\turl = "
							    "\"https://"
							    "vitrine-hidden-1:vitrine-hidden-1@h/"
							    "x\"\n");
	SHOWS("[http]\n\tproxy = http://me:pw@proxy:3128\n", "[http]\n\tproxy = "
							     "\"http://"
							     "vitrine-hidden-1:vitrine-hidden-1@"
							     "proxy:3128\"\n");
	SHOWS(REMOTE "\turl = https://h/x?private_token=abc\n", REMOTE "\turl = "
								       "\"https://h/"
								       "x?private_token=vitrine-"
								       "hidden-1\"\n");
	SHOWS("[url \"https://u:p@h/\"]\n\tinsteadOf = https://h/\n", "[url "
								      "\"https://"
								      "vitrine-hidden-1:vitrine-"
								      "hidden-1@h/\"]\n\tinsteadOf "
								      "= https://h/\n");
	/* One way of writing it as good as another. */
	SHOWS("[remote \"o\"] URL=\"https://me:p\\\nw@h/x\"\n", "[remote \"o\"] URL= "
								"\"https://"
								"vitrine-hidden-1:vitrine-hidden-1@"
								"h/x\"\n");
	SHOWS("[remote.o]\r\nurl = https://t@h\r\n", "[remote.o]\r\nurl = "
						     "\"https://vitrine-hidden-1@h\"\r\n");
}

TEST(other_secrets)
{
	struct buf b = BUF(KIB);

	SHOWS("[http \"https://h/\"]\n\textraheader = AUTHORIZATION: basic abc\n",
	      "[http \"https://h/\"]\n\textraheader = \"X-Hidden: vitrine-hidden-1\"\n");
	SHOWS("[sendemail]\n\tsmtpPass = pw\n", "[sendemail]\n\tsmtpPass = \"vitrine-hidden-1\"\n");
	SHOWS("[github]\n\toauth-token = pw\n", "[github]\n\toauth-token = \"vitrine-hidden-1\"\n");
	SHOWS("[credential]\n\thelper = \"!f() { echo password=abc; }; f\"\n", "[credential]"
									       "\n\thelper = \"!: "
									       "vitrine-hidden-"
									       "1\"\n");
	SHOWS("[a]\n\tb = 1 # ghp_abcdefghijkl\n", "[a]\n\tb = 1 # vitrine-hidden-1\n");
	SHOWS("# https://me:pw@h/x\n", "# https://vitrine-hidden-1:vitrine-hidden-1@h/x\n");
	/* Behind a mistake git reads nothing; inside it can be read all the same. */
	SHOWS("[a]\n\t=\n\turl = https://t@h/x\n", "[a]\n\t=\n\turl = "
						   "https://vitrine-hidden-1@h/x\n");
	/* Text of ours that the host itself wrote is not one of ours. */
	SHOWS("[a]\n\tb = vitrine-hidden-7\n", "[a]\n\tb = \"vitrine-hidden-1\"\n");
	CHECK_INT(gitcfg_redact("a\0b", 3, &b), -EINVAL);
}

TEST(what_is_no_secret_stays)
{
	static const char plain[] = "[core]\n\trepositoryformatversion = 0\n\taskPass = ./ask\n"
				    "[remote \"origin\"]\n\turl = git@github.com:a/b.git\n"
				    "\tpushurl = ssh://git@h:22/x\n"
				    "\tfetch = +refs/heads/auth:refs/remotes/origin/auth\n"
				    "[http]\n\tsslCertPasswordProtected = true\n"
				    "[credential \"https://h\"]\n\thelper = store\n"
				    "\thelper = !gh auth git-credential\n"
				    "[user]\n\tname = session: me\n\temail = a@b.c\n"
				    "[remote \"p\"]\n\turl = https://h:8443/~me@x/y\n"
				    "\turl = https://git@h/x\n";
	struct buf b = BUF(MIB);

	SHOWS(plain, plain);
	SHOWS("", "");
	CHECK_INT(gitcfg_redact(plain, sizeof(plain) - 1, &b), 0);
	buf_done(&b);
}

/* What the host gets when the inside writes `text`; "!" and the message when it is refused. */
static char *written(const char *host, const char *text)
{
	struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	if (gitcfg_unredact(host, strlen(host), text, strlen(text), &b, &e) < 0) {
		buf_done(&b);
		b = BUF(KIB);
		buf_printf(&b, "!%s", strstr(e.msg, "hidden value") ? "hidden" : e.msg);
	}
	return text_of(&b);
}

#define WRITES(host, text, want)                                                                   \
	do {                                                                                       \
		_free_ char *got_written_ = written((host), (text));                               \
		CHECK_STR(got_written_, (want));                                                   \
	} while (0)

#define HOST REMOTE "  url=https://me:pw@h/x # mine\n"
#define SHOWN "vitrine-hidden-1:vitrine-hidden-1@h/x"

TEST(what_comes_back_unchanged_is_the_hosts_again)
{
	WRITES(HOST, REMOTE "  url= \"https://" SHOWN "\"\n[remote \"p\"]\n\turl = https://i/y\n",
	       HOST "[remote \"p\"]\n\turl = https://i/y\n");
	/* By a program that writes the file in its own way. */
	WRITES(HOST, "[remote \"o\"]\n\tURL = https://" SHOWN "\n",
	       "[remote \"o\"]\n\turl=https://me:pw@h/x # mine\n");
	/* git remote rename, git remote remove */
	WRITES(HOST, "[remote \"new\"]\n\turl = https://" SHOWN "\n",
	       "[remote \"new\"]\n\turl=https://me:pw@h/x # mine\n");
	WRITES(HOST, "[core]\n", "[core]\n");
	WRITES("[a]\n\ttoken = x", "[a]\n\ttoken = vitrine-hidden-1\n[b]\n",
	       "[a]\n\ttoken = x\n[b]\n");
}

TEST(what_comes_back_changed_is_refused)
{
	/* Another host, path, scheme, key, section: all of them are places for the token to go to. */
	WRITES(HOST, REMOTE "url = https://vitrine-hidden-1:vitrine-hidden-1@evil/x\n", "!hidden");
	WRITES(HOST, REMOTE "url = https://vitrine-hidden-1:vitrine-hidden-1@h/y\n", "!hidden");
	WRITES(HOST, REMOTE "url = http://" SHOWN "\n", "!hidden");
	WRITES(HOST, REMOTE "pushurl = https://" SHOWN "\n", "!hidden");
	WRITES(HOST, "[submodule \"o\"]\nurl = https://" SHOWN "\n", "!hidden");
	WRITES(HOST, REMOTE "url = https://vitrine-hidden-1@h/x\n", "!hidden");
	WRITES(HOST, REMOTE "url = https://vitrine-hidden-2:vitrine-hidden-2@h/x\n", "!hidden");
	WRITES(HOST, REMOTE "url = https://vitrine-hidden-99999999999999999999@h/x\n", "!hidden");
	WRITES(HOST, "[alias]\na = !echo https://" SHOWN "\n", "!hidden");
	WRITES(HOST, "# https://" SHOWN "\n", "!hidden");
	WRITES(HOST, "[a \"https://" SHOWN "\"]\nb = 1\n", "!hidden");
	WRITES("[http \"https://h/\"]\nextraheader = A: b\n",
	       "[http \"https://evil/\"]\nextraheader = X-Hidden: vitrine-hidden-1\n", "!hidden");
	WRITES("[http \"https://h/\"]\nextraheader = A: b\n",
	       "[http]\nextraheader = X-Hidden: vitrine-hidden-1\n", "!hidden");
	/* A config without secrets has no placeholders. */
	WRITES("[core]\n", REMOTE "url = https://vitrine-hidden-1@h\n", "!hidden");
}

TEST_MAIN()
