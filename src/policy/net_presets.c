/* SPDX-License-Identifier: Apache-2.0 */
/* policy/net_presets.c - the network presets, as data: `vitrine net presets` prints them
 *
 * An ecosystem is named by its project's domain, not by the names of its servers: those change. Every preset but
 * `none` and `open` holds what the one before it holds.
 */
#include "policy/rules.h"

#define AI_APIS                                                                                    \
	"**.anthropic.com", "**.claude.ai", "**.claude.com", "**.openai.com", "**.chatgpt.com",    \
		"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com",                \
		"oauth2.googleapis.com", "**.mistral.ai", "**.deepseek.com", "**.x.ai",            \
		"**.openrouter.ai", "**.groq.com"

#define CODE_HOSTS                                                                                 \
	"**.github.com", "**.githubusercontent.com", "**.githubassets.com", "**.gitlab.com",       \
		"**.bitbucket.org", "**.codeberg.org", "**.sr.ht"

#define PACKAGE_HOSTS                                                                              \
	"**.npmjs.org", "**.npmjs.com", "**.yarnpkg.com", "**.nodejs.org", "**.pypi.org",          \
		"**.pythonhosted.org", "**.python.org", "**.crates.io", "**.rust-lang.org",        \
		"**.rustup.rs", "**.golang.org", "**.go.dev", "**.rubygems.org",                   \
		"**.ruby-lang.org", "**.packagist.org", "**.maven.org", "**.apache.org",           \
		"**.gradle.org", "**.nuget.org", "**.hackage.haskell.org", "**.hex.pm",            \
		"**.cpan.org", "**.debian.org", "**.ubuntu.com", "**.fedoraproject.org",           \
		"**.alpinelinux.org", "**.archlinux.org", "**.nixos.org", "**.brew.sh",            \
		"**.conda.io", "**.anaconda.org"

static const char *const nothing[] = { NULL };
static const char *const locked[] = { AI_APIS, NULL };
static const char *const balanced[] = { AI_APIS, CODE_HOSTS, PACKAGE_HOSTS, NULL };
static const char *const everything[] = { "*", NULL };

const struct net_preset net_presets[] = {
	{ "none", "nothing but what is allowed by name", nothing },
	{ "locked", "the APIs of AI services", locked },
	{ "balanced", "AI services, code hosts, package hosts", balanced },
	{ "open", "every public host; private ranges, metadata and this host stay closed",
	  everything },
	{ NULL, NULL, NULL },
};
