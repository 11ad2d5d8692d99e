/* addr: see addr.h. */
#include "ddp/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const struct ddp_addr *a)
{
    return !memcmp(a->ip, v4_prefix, sizeof v4_prefix);
}

bool ddp_addr_from(const struct sockaddr *sa, struct ddp_addr *ret)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memset(ret, 0, sizeof *ret);
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof v4);
        memcpy(ret->ip, v4_prefix, sizeof v4_prefix);
        memcpy(ret->ip + 12, &v4.sin_addr, 4);
        ret->port = ntohs(v4.sin_port);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        memcpy(&v6, sa, sizeof v6);
        memcpy(ret->ip, &v6.sin6_addr, 16);
        ret->port = ntohs(v6.sin6_port);
        ret->scope = v6.sin6_scope_id;
        return true;
    }
    return false;
}

socklen_t ddp_addr_to(const struct ddp_addr *a, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(a->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(a->port),
                              .sin6_scope_id = a->scope};

    memset(ret, 0, sizeof *ret);
    if (is_v4(a)) {
        memcpy(&v4.sin_addr, a->ip + 12, 4);
        memcpy(ret, &v4, sizeof v4);
        return sizeof v4;
    }
    memcpy(&v6.sin6_addr, a->ip, 16);
    memcpy(ret, &v6, sizeof v6);
    return sizeof v6;
}

const char *ddp_addr_text(const struct ddp_addr *a, char buf[DDP_ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";

    if (is_v4(a)) {
        (void)inet_ntop(AF_INET, a->ip + 12, ip, sizeof ip);
        (void)snprintf(buf, DDP_ADDR_TEXT, "%s:%u", ip, (unsigned)a->port);
        return buf;
    }
    (void)inet_ntop(AF_INET6, a->ip, ip, sizeof ip);
    (void)snprintf(buf, DDP_ADDR_TEXT, "[%s]:%u", ip, (unsigned)a->port);
    return buf;
}

bool ddp_addr_is_loopback(const struct ddp_addr *a)
{
    static const uint8_t one[16] = {[15] = 1};

    return is_v4(a) ? a->ip[12] == 127 : !memcmp(a->ip, one, sizeof one);
}

bool ddp_addr_is_link_local(const struct ddp_addr *a)
{
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

bool ddp_addr_local(int fd, struct ddp_addr *ret)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;

    return getsockname(fd, (struct sockaddr *)&ss, &len) == 0 &&
           ddp_addr_from((struct sockaddr *)&ss, ret);
}

bool ddp_addr_remote(int fd, struct ddp_addr *ret)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;

    return getpeername(fd, (struct sockaddr *)&ss, &len) == 0 &&
           ddp_addr_from((struct sockaddr *)&ss, ret);
}
