/* SPDX-License-Identifier: Apache-2.0 */
/* seal/ca.h - the sandbox's own certificate authority
 *
 * Its key is made when seal starts, lives in this process and nowhere else, and ends with it: nothing on disk can be
 * stolen, and what was trusted in one run of a sandbox is worthless in the next. The price is that the bundle inside
 * is written anew at each start, which the keeper does anyway.
 */
#ifndef VITRINE_SEAL_CA_H
#define VITRINE_SEAL_CA_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/err.h"

struct ca;

int ca_new(struct ca **ret, struct err *e);
void ca_free(struct ca *c);

/* host is an IPv4 or IPv6 address. */
bool ca_is_address(const char *host);

/* The certificate, to be trusted inside. */
void ca_pem(const struct ca *c, struct buf *out);

/* Gives ssl a certificate for host (a name or an address), made now or before. */
int ca_serve(struct ca *c, const char *host, SSL *ssl, struct err *e);

#endif
