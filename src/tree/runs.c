/* SPDX-License-Identifier: Apache-2.0 */
/* tree/runs.c - see runs.h */
#include <sys/stat.h>

#include "base/sabotage.h"
#include "tree/runs.h"

/* Read by programs that execute what stands in them. By the last component, any case. */
static const char names[][24] = {
	"makefile",       "gnumakefile",    "package.json",     "setup.py",
	"setup.cfg",      "pyproject.toml", "tox.ini",          "noxfile.py",
	"conftest.py",    "build.rs",       "cargo.toml",       "cmakelists.txt",
	"meson.build",    "build.gradle",   "build.gradle.kts", "pom.xml",
	"build.xml",      "rakefile",       "gemfile",          "justfile",
	"taskfile.yml",   "dockerfile",     "compose.yaml",     "docker-compose.yml",
	"jenkinsfile",    "vagrantfile",    "configure.ac",     "webpack.config.js",
	"vite.config.js", "vite.config.ts", "jest.config.js",   "sitecustomize.py",
};

static bool is_build_file(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return str_ends(name, ".mk") || str_ends(name, ".pth");
}

const char *tree_runs(const struct change *c)
{
	if (c->b == NULL || !S_ISREG(c->b->mode) || sabotaged("runs"))
		return NULL;
	if (c->b->mode & (S_IXUSR | S_IXGRP | S_IXOTH))
		return "executable";
	return is_build_file(c->b->name) ? "build tools run what stands in it" : NULL;
}
