/* addr: IPv4 and IPv6 socket addresses as one type, and their look-up. */
#ifndef DDP_ADDR_H
#define DDP_ADDR_H

#include "ddp/frame.h"

#include <stdbool.h>
#include <sys/socket.h>

#define DDP_ADDR_TEXT 72 /* "[ipv6%scope]:port", NUL included. */
#define DDP_ADDRS_MAX 16 /* Taken of a name. */

/* From what the kernel or getaddrinfo gives; false for other families. */
bool ddp_addr_from(const struct sockaddr *sa, struct ddp_addr *ret);

/* For connect and bind: AF_INET where it is an IPv4 address. */
socklen_t ddp_addr_to(const struct ddp_addr *a, struct sockaddr_storage *ret);

/* "10.0.0.1:29500", "[::1]:29500". Returns `buf`. */
const char *ddp_addr_text(const struct ddp_addr *a, char buf[DDP_ADDR_TEXT]);

bool ddp_addr_is_loopback(const struct ddp_addr *a);
bool ddp_addr_is_link_local(const struct ddp_addr *a); /* IPv6 only. */

/* Local and remote end of a connected socket. */
bool ddp_addr_local(int fd, struct ddp_addr *ret);
bool ddp_addr_remote(int fd, struct ddp_addr *ret);

/* An address in digits, or "localhost", without asking anybody. */
bool ddp_addr_literal(const char *host, uint16_t port, struct ddp_addr *ret);

/* Resolve `host` until `deadline` (ddp_now). The number of addresses, or 0
 * with *ret_why (static text). The look-up runs in a thread of its own, since
 * it cannot be bounded; one that is late ends by itself. */
unsigned ddp_addr_resolve(const char *host, uint64_t deadline,
                          struct ddp_addr ret[DDP_ADDRS_MAX],
                          const char **ret_why);

#endif
