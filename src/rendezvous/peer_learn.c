/* peer_learn: what a pod learns of the network from its connections: the
 * interface that the job uses, and pod 0's address. */
#include "rendezvous/peer.h"

#include "base/text.h"
#include "rendezvous/peer_parts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

    if (a->sa_family == AF_INET && b->sa_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    if (a->sa_family == AF_INET6 && b->sa_family == AF_INET6)
        return memcmp(&a6->sin6_addr, &b6->sin6_addr, 16) == 0;
    if (a->sa_family == AF_INET6 && b->sa_family == AF_INET)
        return IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr) &&
               memcmp(a6->sin6_addr.s6_addr + 12, &b4->sin_addr, 4) == 0;
    return false;
}

static void learn_zero(struct conn *c)
{
    struct sockaddr_storage zero;
    struct peers *p = c->peers;
    struct wire_addr a;
    int len = sizeof zero;
    int r = c->id == PEER_LINK
                ? uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&zero, &len)
                : uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&zero, &len);

    if (r != 0)
        return;
    peer_addr((struct sockaddr *)&zero, &a);
    if (IN6_IS_ADDR_V4MAPPED((struct in6_addr *)(void *)a.ip))
        (void)inet_ntop(AF_INET, a.ip + 12, p->zero_ip, sizeof p->zero_ip);
    else
        (void)inet_ntop(AF_INET6, a.ip, p->zero_ip, sizeof p->zero_ip);
}

static void learn_interface(struct conn *c)
{
    struct sockaddr_storage here;
    int len = sizeof here;
    struct ifaddrs *list = NULL;
    struct peers *p = c->peers;

    if (p->ifname[0] ||
        uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&here, &len) != 0 ||
        getifaddrs(&list) != 0)
        return;
    if (here.ss_family == AF_INET6)
        p->scope_id = ((struct sockaddr_in6 *)(void *)&here)->sin6_scope_id;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (i->ifa_addr && !(i->ifa_flags & IFF_LOOPBACK) &&
            same_address((struct sockaddr *)&here, i->ifa_addr)) {
            (void)text_copy(p->ifname, sizeof p->ifname, i->ifa_name);
            break;
        }
    freeifaddrs(list);
}

void conn_learn(struct conn *c)
{
    learn_zero(c);
    learn_interface(c);
}

const char *peers_zero_ip(const struct peers *p)
{
    return p->zero_ip[0] ? p->zero_ip : NULL;
}

const char *peers_interface(struct peers *p)
{
    return p->ifname[0] ? p->ifname : NULL;
}
