/* http_listen: see http_listen.h. */
#include "agent/http_listen.h"

#include "rendezvous/port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128

/* A listening socket, or a negative errno. An address of no family here is
 * -EINVAL. */
static int listen_on(const char *addr, unsigned port)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICHOST | AI_PASSIVE |
                                              AI_NUMERICSERV};
    struct addrinfo *found;
    char service[8];
    int one = 1, zero = 0, fd, r;

    (void)snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(addr, service, &want, &found) != 0)
        return -EINVAL;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                0);
    r = fd < 0 ? -errno : 0;
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (found->ai_family == AF_INET6)
            (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero,
                             sizeof zero);
        if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
            listen(fd, BACKLOG) != 0)
            r = -errno;
    }
    freeaddrinfo(found);
    if (r == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return r;
}

/* Where the first is of a family that is not here, the second. */
static int listen_either(const char *first, const char *second, unsigned port)
{
    int fd = listen_on(first, port);

    return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL
               ? listen_on(second, port) : fd;
}

int http_listen(const char *addr, unsigned port, struct err *e)
{
    char who[128], shown[80];
    int fd;

    (void)snprintf(shown, sizeof shown, strchr(addr, ':') ? "[%.60s]:%u"
                                                          : "%.60s:%u",
                   addr, port);
    if (addr[0] == '\0')
        fd = listen_either("127.0.0.1", "::1", port);
    else if (strcmp(addr, "*") == 0)
        fd = listen_either("::", "0.0.0.0", port);
    else
        fd = listen_on(addr, port);
    if (fd >= 0)
        return fd;
    if (fd == -EINVAL)
        return err_set(e, ERR_USAGE, "--http %s: %.60s is no IPv4 or IPv6 "
                       "address", shown, addr);
    if (fd == -EADDRINUSE) {
        port_holder(port, who, sizeof who);
        return err_set(e, ERR_RESOURCE, "--http %s: the port is taken%s%s: "
                       "give another one", shown, who[0] ? " by " : "", who);
    }
    return err_set(e, ERR_RESOURCE, "--http %s: %s%s", shown, strerror(-fd),
                   fd == -EADDRNOTAVAIL ? "; give an address of this pod, or "
                                          "* for all" : "");
}
