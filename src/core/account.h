/* SPDX-License-Identifier: Apache-2.0 */
/* core/account.h - who has an account here, and which ids it may be root of */
#ifndef VITRINE_CORE_ACCOUNT_H
#define VITRINE_CORE_ACCOUNT_H

#include "base/err.h"
#include "sys/subids.h"

struct account {
	uid_t uid;
	gid_t gid;
	char *name, *home, *shell;
};

/* By its name, or where that is NULL by its id. Those that are not in the file are not found. */
bool account_find(const char *name, uid_t uid, struct account *ret);
void account_done(struct account *a);

/* The first of each range of subordinate ids that the caller's account has. */
int account_subids(uint32_t *ret_uid, uint32_t *ret_gid, struct err *e);
/* The ids of a root inside of this account, as a sandbox maps them. Not for root, who needs no help with files. */
int account_id_maps(struct id_map *ret_uids, struct id_map *ret_gids, struct err *e);

#endif
