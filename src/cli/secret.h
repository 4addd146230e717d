/* SPDX-License-Identifier: Apache-2.0 */
/* cli/secret.h - between the files of the verb `secret` */
#ifndef VITRINE_CLI_SECRET_H
#define VITRINE_CLI_SECRET_H

#include "cli/cli.h"
#include "secret/secret.h"

struct host;

int secret_say_saved(const struct secret *s, struct err *e);
/* `said`: the tool as its name, and the host that --host gives. */
int secret_import(const struct host *h, const struct secret *said, struct err *e);

#endif
