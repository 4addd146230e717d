/* SPDX-License-Identifier: Apache-2.0 */
/* files/wire.h - what a keeper and vitrine-files say to each other, in packets (sys/packet.h) */
#ifndef VITRINE_FILES_WIRE_H
#define VITRINE_FILES_WIRE_H

#include "base/err.h"

/* Descriptors of vitrine-files: the guest's stream, the keeper, and the table that it goes on from, if it does. */
enum { FILES_FD_GUEST = 3, FILES_FD_KEEPER, FILES_FD_TABLE };
#define FILES_AGAIN "--again" /* behind the root's path: there is a table */

struct files_msg {
	uint32_t
		is_save; /* to it, with one descriptor: write the table there. It answers with the rest. */
	int32_t error;
	uint64_t lost; /* open files that cannot come back */
	char why[200];
};

#endif
