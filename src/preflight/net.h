/* net: the interfaces of this pod, and the one that leads to pod 0. */
#ifndef PREFLIGHT_NET_H
#define PREFLIGHT_NET_H

#include "preflight/net_rules.h"

#include <sys/socket.h>

/* In the order of the system, each once; with an address alone. */
void net_list(struct net_list *ret);

/* The name of the interface that has `a`, or false. */
bool net_holder(const struct sockaddr *a, char name[NET_NAME_MAX]);

/* 127.0.0.0/8, which no interface needs to have, and ::1. */
bool net_is_loopback(const struct sockaddr *a);

/* By which interface packets to `to` leave; 0, or -errno where none does. To
 * an address of this pod's own: the interface that has it. */
int net_route(const struct sockaddr_storage *to, socklen_t len,
              char name[NET_NAME_MAX]);

/* A literal address; false where `host` is a name. */
bool net_literal(const char *host, unsigned port, struct sockaddr_storage *ret,
                 socklen_t *ret_len);

/* "10.0.0.1" */
#define NET_SHOWN_MAX 64
const char *net_shown(char buf[NET_SHOWN_MAX], const struct sockaddr *a);

#endif
