/* SPDX-License-Identifier: Apache-2.0 */
/* base/md5.h - MD5 (RFC 1321), only because dpkg's records are in it
 *
 * It proves nothing against whoever can choose both contents. Here one of them is a package's and the record is root's.
 */
#ifndef VITRINE_BASE_MD5_H
#define VITRINE_BASE_MD5_H

#include "base/base.h"

#define MD5_HEX_BYTES 33 /* with the NUL */

void md5_hex(const void *p, size_t n, char ret[static MD5_HEX_BYTES]);

#endif
