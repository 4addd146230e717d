/* SPDX-License-Identifier: Apache-2.0 */
/* gate/hello.h - the server name a TLS client asks for */
#ifndef VITRINE_GATE_HELLO_H
#define VITRINE_GATE_HELLO_H

#include "policy/addr.h"

#define HELLO_MAX                                                                                  \
	((size_t)64 * 1024) /* post-quantum key shares make them large, nothing makes them larger */

enum hello_result {
	HELLO_MORE,    /* not complete yet */
	HELLO_NAME,    /* name[] is what it asks for */
	HELLO_NO_NAME, /* complete, and it names nobody */
	HELLO_NOT_TLS, /* does not begin like TLS */
	HELLO_BAD,     /* begins like TLS and is not a ClientHello in its one form */
	HELLO_RESULT_COUNT_
};

/* Looks at the first bytes of a connection. The handshake message may be split over several records. */
enum hello_result hello_parse(const uint8_t *p, size_t n, char name[HOST_TEXT]);

#endif
