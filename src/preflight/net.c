/* net: see net.h. */
#include "preflight/net.h"

#include "base/mem.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const void *bytes_of(const struct sockaddr *a, size_t *ret_len)
{
    if (a->sa_family == AF_INET) {
        *ret_len = sizeof(struct in_addr);
        return &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    }
    if (a->sa_family == AF_INET6) {
        *ret_len = sizeof(struct in6_addr);
        return &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    }
    return NULL;
}

void net_list(struct net_list *ret)
{
    struct ifaddrs *list = NULL;
    size_t len;

    ret->n = 0;
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct net_if *at = &ret->at[ret->n];

        if (!i->ifa_addr || !bytes_of(i->ifa_addr, &len) ||
            net_find(ret, i->ifa_name, strlen(i->ifa_name)))
            continue;
        if (ret->n == NET_IF_MAX)
            break;
        (void)text_copy(at->name, sizeof at->name, i->ifa_name);
        at->is_loopback = i->ifa_flags & IFF_LOOPBACK;
        at->is_up = i->ifa_flags & IFF_UP;
        ret->n++;
    }
    freeifaddrs(list);
}

bool net_holder(const struct sockaddr *a, char name[NET_NAME_MAX])
{
    size_t len = 0, n = 0;
    const void *want = bytes_of(a, &len), *has;
    struct ifaddrs *list = NULL;
    bool found = false;

    if (!want || getifaddrs(&list) != 0)
        return false;
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != a->sa_family)
            continue;
        has = bytes_of(i->ifa_addr, &n);
        found = has && n == len && memcmp(has, want, len) == 0;
        if (found)
            (void)text_copy(name, NET_NAME_MAX, i->ifa_name);
    }
    freeifaddrs(list);
    return found;
}

bool net_is_loopback(const struct sockaddr *a)
{
    size_t len = 0;
    const struct in6_addr *six = bytes_of(a, &len);

    if (!six)
        return false;
    if (a->sa_family == AF_INET)
        return *(const uint8_t *)six == 127;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

int net_route(const struct sockaddr_storage *to, socklen_t len,
              char name[NET_NAME_MAX])
{
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    autoclose int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    name[0] = '\0';
    if (net_holder((const struct sockaddr *)to, name))
        return 0;
    /* Nothing is sent: the kernel looks up the route. */
    if (fd < 0 || connect(fd, (const struct sockaddr *)to, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&from, &n) != 0)
        return -errno;
    return net_holder((struct sockaddr *)&from, name) ? 0 : -ENODEV;
}

bool net_literal(const char *host, unsigned port, struct sockaddr_storage *ret,
                 socklen_t *ret_len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *ret_len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        *ret_len = sizeof *v6;
        return true;
    }
    return false;
}

const char *net_shown(char buf[NET_SHOWN_MAX], const struct sockaddr *a)
{
    size_t len;
    const void *at = bytes_of(a, &len);

    if (!at || !inet_ntop(a->sa_family, at, buf, NET_SHOWN_MAX))
        (void)snprintf(buf, NET_SHOWN_MAX, "?");
    return buf;
}
