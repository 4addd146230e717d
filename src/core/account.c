/* SPDX-License-Identifier: Apache-2.0 */
/* core/account.c - see account.h */
#include "core/account.h"

#include "base/io.h"
#include "base/passwd.h"

void account_done(struct account *a)
{
	free(a->name);
	free(a->home);
	free(a->shell);
}

/* Accounts that are not in the file are taken from the environment. */
static bool parse_account(char *line, struct account *a)
{
	struct passwd_line l;

	if (!passwd_parse(line, &l))
		return false;
	*a = (struct account){ .uid = l.uid,
			       .gid = l.gid,
			       .name = mem_str(l.name),
			       .home = mem_str(l.home),
			       .shell = mem_str(l.shell) };
	return true;
}

bool account_find(const char *name, uid_t uid, struct account *ret)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err ignored;
	char *line, *next;

	if (io_read_file("/etc/passwd", &b, &ignored) < 0 || b.n == 0)
		return false;
	for (line = b.p; line && *line; line = next) {
		struct account a = { 0 };

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!parse_account(line, &a))
			continue;
		if (name ? str_eq(a.name, name) : a.uid == uid) {
			*ret = a;
			return true;
		}
		account_done(&a);
	}
	return false;
}

/* ---- ids for a root inside ---- */

static int find_range(const char *file, const char *user, uint32_t *ret_first, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err ignored;

	if (io_read_file(file, &b, &ignored) < 0 ||
	    !subids_find(buf_cstr(&b), user, geteuid(), ret_first))
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "'%s' gives this account no %u ids to be root with; 'vitrine "
			       "doctor' says how to get them",
			       file, SUBIDS_COUNT);
	return 0;
}

int account_subids(uint32_t *ret_uid, uint32_t *ret_gid, struct err *e)
{
	struct account a = { 0 };
	const char *name = account_find(NULL, geteuid(), &a) ? a.name : "";
	int r = find_range("/etc/subuid", name, ret_uid, e);

	if (r == 0)
		r = find_range("/etc/subgid", name, ret_gid, e);
	account_done(&a);
	return r;
}

int account_id_maps(struct id_map *ret_uids, struct id_map *ret_gids, struct err *e)
{
	uint32_t uid = 0, gid = 0;
	int r = account_subids(&uid, &gid, e);

	if (r < 0)
		return r;
	*ret_uids = subids_map(geteuid(), uid);
	*ret_gids = subids_map(getegid(), gid);
	return 0;
}
