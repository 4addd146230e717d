/* SPDX-License-Identifier: Apache-2.0 */
/* base/banned.h - functions that do not compile here, each with the one to use instead
 *
 * Included last by base.h, so system headers come first and keep their own declarations.
 */
#ifndef VITRINE_BASE_BANNED_H
#define VITRINE_BASE_BANNED_H

/* With _FORTIFY_SOURCE clang sees glibc's sprintf as a macro, and objects to poisoning one. */
#undef sprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok strtok_r gets atoi atol atoll atof
#pragma GCC poison strtol strtoll strtoul strtoull sscanf tmpnam mktemp strncpy strncat

#endif
