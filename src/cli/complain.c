/* SPDX-License-Identifier: Apache-2.0 */
/* cli/complain.c - the one way our text reaches standard output and a line of ours standard error
 *
 * Names of files, options and hosts in it are foreign bytes; none of them may reach the terminal as they are.
 */
#include "base/io.h"
#include "cli/cli.h"

void cli_complain(const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	buf_esc(&b, text, strlen(text));
	(void)fprintf(stderr, "vitrine: %s\n", buf_cstr(&b));
}

int cli_print(const struct buf *out, struct err *e)
{
	int r;

	bug_on(out->is_over);
	r = io_write_all(STDOUT_FILENO, buf_cstr(out), out->n);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write to stdout");
	}
	return 0;
}

bool cli_is_agreed(const char *question)
{
	char answer[8] = "";

	if (!isatty(0))
		return false;
	(void)fprintf(stderr, "%s [y/N] ", question);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}
