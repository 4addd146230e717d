/* SPDX-License-Identifier: Apache-2.0 */
/* core/settings.h - the policy files of this user and this workspace, found, judged and merged */
#ifndef VITRINE_CORE_SETTINGS_H
#define VITRINE_CORE_SETTINGS_H

#include "base/buf.h"
#include "policy/policy.h"

#define SETTINGS_USER_NAME "policy.jsonc"
#define SETTINGS_PROJECT_NAME ".vitrine.jsonc"

struct settings_in {
	const char *config_dir; /* absolute; NULL: there is none */
	const char *
		state_dir; /* of the sandboxes that must not be able to write it; NULL: not asked */
	const char *workspace; /* absolute real path; NULL: no project file */
	const char *
		policy_file; /* from --policy: in place of the user's file; NULL: the user's file */
	bool use_project;    /* false: leave the project file alone */
	/* The layer of an agent's preset, which lies between the two files; NULL: none. */
	int (*preset)(struct policy *p, void *arg, struct err *e);
	void *arg;
};

/* Merges the user's file (LAYER_USER) and the project file (LAYER_PROJECT) into *p, which holds the built-in layer.
 * Files that do not exist are no failure, but for one named by policy_file. A user file that others can write, a
 * configuration directory inside the workspace and a project file that is a symlink are. A policy_file that lies in
 * the workspace counts as a project file, because what runs in the sandbox can write it: it only tightens unless it
 * is trusted. */
int settings_load(struct policy *p, const struct settings_in *in, struct err *e);

/* The content and real path of WORKSPACE/.vitrine.jsonc, following no link. -ENOENT without a story: no such file. */
int settings_read_project(const char *workspace, struct buf *out, char **ret_path, struct err *e);

#endif
