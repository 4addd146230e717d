/* SPDX-License-Identifier: Apache-2.0 */
/* cli/template.h - between template.c and template_make.c */
#ifndef VITRINE_CLI_TEMPLATE_H
#define VITRINE_CLI_TEMPLATE_H

#include "cli/image.h"
#include "cli/table.h"
#include "core/facts.h"

struct template_ctx {
	struct host host;
	const char *packages, *suite;
	const char *with;
	bool is_plain, has_net;
	struct table_how how; /* of ls */
	bool is_sudo;         /* it has ids of its own */
	char **words;         /* behind the subcommand, NULL-ended */
	size_t n;
};

/* A tool of the host that writes an archive beside the empty directory. */
struct maker {
	const char *const *argv;
	const char *file, *name, *source;
	const char *part; /* of the image: "system" only; NULL: all of it */
	const char *id;   /* 16 hex digits, where it is known from what it holds; NULL: a new one */
	bool is_quiet;    /* its name is not printed */
};

int template_usage(struct err *e, const char *text);
int template_check_name(const char *name, struct err *e);
/* There is none of that name yet. */
int template_is_new(const struct template_ctx *c, const char *name, struct err *e);
/* What lies at `path`, an archive or a directory, becomes the template m->name. */
int template_import(const struct template_ctx *c, struct bench *b, const char *path,
		    const struct maker *m, struct err *e);
/* The root as an image of one layer; the tar of it to `out`, the layout to the bench. */
int template_pack(const struct template_ctx *c, const struct bench *b, const char *name, int out,
		  struct err *e);

/* template_make.c */
int template_debian(struct template_ctx *c, struct err *e);
int template_agent(struct template_ctx *c, struct err *e);
int template_build(struct template_ctx *c, struct err *e);
int template_pull(struct template_ctx *c, struct err *e);
int template_push(struct template_ctx *c, struct err *e);

#endif
