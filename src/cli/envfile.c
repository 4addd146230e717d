/* SPDX-License-Identifier: Apache-2.0 */
/* cli/envfile.c - --env-file of 'run' and 'exec': a variable a line, as -e takes it; empty lines and # are left out */
#include "base/io.h"
#include "cli/cli.h"

int env_file_each(const char *path, env_fn *fn, void *arg, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	int r = io_read_file(path, &b, e), line = 0;
	char *next;

	if (r < 0) {
		e->kind = ERR_USAGE;
		return r;
	}
	for (char *p = b.p; p && *p; p = next) {
		line++;
		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		else
			next = p + strlen(p);
		if (p[0] == '\0' || p[0] == '#')
			continue;
		if (fn(arg, p, e) < 0)
			return err_set(e, ERR_USAGE, EINVAL, "%s:%d: expected NAME=VALUE", path,
				       line);
	}
	return 0;
}
