/* role: see role.h. */
#include "rendezvous/role.h"

#include "rendezvous/port.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MS 200

bool role_is_named(const char *host, const char *name)
{
    size_t label = strcspn(host, "."), len = strcspn(name, ".");

    if (label == 0 || host[strspn(host, "0123456789.")] == '\0' ||
        strchr(host, ':'))
        return false; /* An address has no labels. */
    return len == label && strncasecmp(host, name, len) == 0;
}

static bool same(const struct sockaddr *a, const struct sockaddr *b)
{
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr ||
               (ntohl(a4->sin_addr.s_addr) >> 24 == 127 &&
                ntohl(b4->sin_addr.s_addr) >> 24 == 127);
    return a->sa_family == AF_INET6 &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, 16) == 0;
}

static bool is_here(const struct addrinfo *addrs)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list) != 0)
        return false;
    for (const struct addrinfo *a = addrs; a && !found; a = a->ai_next)
        for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
            found = i->ifa_addr && same(a->ai_addr, i->ifa_addr);
    freeifaddrs(list);
    return found;
}

/* Wait a little, or for a signal to stop; its number, or 0. */
static int wait_for_stop(void)
{
    struct timespec t = {.tv_nsec = RETRY_MS * 1000000L};
    sigset_t stops;
    int signo;

    sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigaddset(&stops, SIGQUIT);
    signo = sigtimedwait(&stops, NULL, &t);
    return signo > 0 ? signo : 0;
}

/* True where an interface has an address of `host`; waits for the name. */
static int find_here(const char *host, uint64_t timeout_ms, bool *ret_here,
                     struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addrs = NULL;
    struct timespec start, now;
    int r, signo;

    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        r = getaddrinfo(host, NULL, &hints, &addrs);
        if (r == 0)
            break;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if ((uint64_t)(now.tv_sec - start.tv_sec) * 1000 >= timeout_ms)
            return err_set(e, ERR_BARRIER,
                           "--master-addr %s does not resolve: %s", host,
                           gai_strerror(r));
        signo = wait_for_stop();
        if (signo)
            return err_set(e, 128 + signo,
                           "told to stop while --master-addr %s did not "
                           "resolve", host);
    }
    *ret_here = is_here(addrs);
    freeaddrinfo(addrs);
    return 0;
}

int role_find(const char *host, unsigned barrier_port, uint64_t timeout_ms,
              bool *ret_coordinates, struct err *e)
{
    char name[256] = "";
    bool here = false;
    int r = 0;

    if (gethostname(name, sizeof name - 1) == 0)
        here = role_is_named(host, name);
    if (!here)
        r = find_here(host, timeout_ms, &here, e);
    *ret_coordinates = r == 0 && here &&
                       port_claim_name("barrier", barrier_port);
    return r;
}
