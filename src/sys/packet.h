/* SPDX-License-Identifier: Apache-2.0 */
/* sys/packet.h - fixed-size packets with descriptors over SOCK_SEQPACKET
 *
 * Both ends know the one size; anything else is not a message. No allocation, usable between clone and exec.
 */
#ifndef VITRINE_SYS_PACKET_H
#define VITRINE_SYS_PACKET_H

#include "base/base.h"

#define PACKET_FDS 4

/* 0 or -errno. -EAGAIN: the peer does not read. */
int packet_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds);

/* 1: a packet of exactly n bytes; 0: the peer is gone; -EBADMSG: not one of ours; -EAGAIN; other -errno.
 * fds[] holds what came along, FD_NONE elsewhere; the caller owns them. */
int packet_recv(int fd, void *p, size_t n, int fds[PACKET_FDS]);

#endif
