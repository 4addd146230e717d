/* SPDX-License-Identifier: Apache-2.0 */
/* plan/view_table.c - what of the host may become visible inside, as data
 *
 * The view is built from nothing: a path that is not in one of these tables, not the workspace and not named by
 * the policy does not exist inside. Order does not matter. Each table ends with NULL.
 */
#include "plan/plan.h"

/* Directories are bound read-only, links (a merged /usr) are recreated. */
const char *const plan_root_paths[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", NULL,
};

/* Of a template, which is nobody's machine. */
const char *const plan_template_paths[] = {
	"/opt",
	"/srv",
	NULL,
};

/* Of one that has users of its own. */
const char *const plan_own_root_paths[] = {
	"/etc",
	"/root",
	"/var",
	NULL,
};

/* Below /etc: what programs need to start, resolve names locally, speak TLS and show text. Nothing that holds a
 * secret or names the host's users. Files are copied into the skeleton, directories bound (each costs a mount at
 * every start, so there are few), links recreated. */
const char *const plan_etc_paths[] = {
	"/etc/alternatives",
	"/etc/bash.bashrc",
	"/etc/crypto-policies",
	"/etc/debian_version",
	"/etc/ethertypes",
	"/etc/fonts",
	"/etc/gai.conf",
	"/etc/inputrc",
	"/etc/java-11-openjdk",
	"/etc/java-17-openjdk",
	"/etc/java-21-openjdk",
	"/etc/java",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/locale.alias",
	"/etc/locale.conf",
	"/etc/localtime",
	"/etc/lsb-release",
	"/etc/magic",
	"/etc/mime.types",
	"/etc/networks",
	"/etc/os-release",
	"/etc/pki",
	"/etc/profile",
	"/etc/protocols",
	"/etc/redhat-release",
	"/etc/rpc",
	"/etc/services",
	"/etc/shells",
	"/etc/ssl",
	"/etc/timezone",
	"/etc/xattr.conf",
	NULL,
};

/* Toolchains people install below their home. Read-only, at their own path. */
const char *const plan_tool_paths[] = {
	".asdf",
	".bun",
	".cargo",
	".deno",
	".fnm",
	".ghcup",
	".goenv",
	".jenv",
	".juliaup",
	".local/bin",
	".local/lib",
	".local/pipx",
	".local/share/fnm",
	".local/share/mise",
	".local/share/pnpm",
	".local/share/uv",
	".local/share/claude",
	".nodenv",
	".npm-global",
	".nvm",
	".opam",
	".phpenv",
	".plenv",
	".pyenv",
	".rbenv",
	".rustup",
	".rvm",
	".sdkman",
	".swiftly",
	".volta",
	"go/bin",
	"go/pkg",
	NULL,
};

/* Credential files that lie inside those toolchains. */
const char *const plan_secret_paths[] = {
	".cargo/credentials",
	".cargo/credentials.toml",
	".local/share/mise/secrets",
	".opam/plugins/opam-publish",
	NULL,
};
